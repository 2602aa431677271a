//! What is said of a file as a whole: the schema, and where its items come from.

use crate::schema;
use lasthop_laws::oal::features::SCHEMA;
use lasthop_units::named;
use serde::{Deserialize, Serialize};

/// Under which the metadata stand in the Parquet file, as JSON.
pub const KEY: &str = "lasthop.dataset";

/// What stands there.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meta {
    /// The number of the schema, [`schema::VERSION`].
    pub schema: u32,
    /// The list of features, as a number in hexadecimal digits.
    pub features: String,
    /// The recordings that items are of.
    pub recordings: Vec<Recording>,
}

named! {
    /// Where something was recorded.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum World {
        /// In the simulator.
        Sim = "sim",
        /// In the lab: real stacks over an emulated radio.
        Lab = "lab",
        /// On an access point.
        AccessPoint = "access-point",
    }
}

/// One recording.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    /// A name that no other recording has.
    pub id: String,
    /// Where it was made.
    pub world: World,
    /// The scenario that ran, or what the access point calls itself.
    pub scenario: String,
    /// The set-up that ran there.
    pub law: String,
    /// The seed of a simulated or emulated run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// When its time 0 was, in RFC 3339; `None` in virtual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<String>,
    /// How much time it covers, in microseconds.
    pub duration_us: u64,
    /// Time from one moment to the next, in microseconds.
    pub every_us: u64,
    /// How far a label looks ahead at least, in microseconds.
    pub horizon_us: u64,
    /// How long after that a loss may be repaired and still count, in microseconds.
    pub repair_us: u64,
    /// The fingerprint of the key of its pseudonyms.
    pub key: String,
}

impl Meta {
    /// Of these recordings, under the present schema.
    pub fn new(recordings: Vec<Recording>) -> Meta {
        Meta { schema: schema::VERSION, features: features(), recordings }
    }

    /// The same, of recordings that last so long, in microseconds.
    pub(crate) fn lasting(&self, duration_us: u64) -> Meta {
        let mut meta = self.clone();
        meta.recordings.iter_mut().for_each(|recording| recording.duration_us = duration_us);
        meta
    }
}

/// The list of features that is known here, as metadata say it.
pub fn features() -> String {
    format!("{SCHEMA:016x}")
}
