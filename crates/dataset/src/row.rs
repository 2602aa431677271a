//! One item as files hold it.

use crate::Pseudonym;
use crate::metrics::Metrics;
use crate::recorder::Observed;
use lasthop_laws::oal::features::Vector;
use lasthop_laws::oal::label::Item;
use lasthop_laws::oal::predictor::LossClass;
use lasthop_units::{Span, Time};

/// One item: what was known of a station at a moment, and what it then lost.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The place of its recording in the metadata.
    pub recording: u32,
    /// The moment, since the recording began; whole microseconds.
    pub at: Time,
    /// How far its label looks ahead; whole microseconds.
    pub horizon: Span,
    /// The access point.
    pub access_point: Pseudonym,
    /// The station.
    pub station: Pseudonym,
    /// What a tree is given.
    pub features: Vector,
    /// What the driver counted since the moment before.
    pub metrics: Metrics,
    /// First copies that entered within the horizon; at least one.
    pub copies: u32,
    /// Those of them that queues lost.
    pub lost: u32,
    /// Whether windows were tight.
    pub acted: bool,
}

impl Row {
    /// What was observed, of these devices.
    pub fn new(recording: u32, access_point: Pseudonym, station: Pseudonym, observed: &Observed) -> Row {
        let Observed { item, metrics } = observed;
        let Item { at, until, features, copies, lost, acted, .. } = *item;
        let (micros, count) = (|time: u64| time / 1000 * 1000, |count: u64| u32::try_from(count).unwrap_or(u32::MAX));
        let horizon = Span::from_nanos(micros(until.since(at).as_nanos()));
        let at = Time::from_nanos(micros(at.as_nanos()));
        let (copies, lost, metrics) = (count(copies), count(lost.min(copies)), *metrics);
        Row { recording, at, horizon, access_point, station, features, metrics, copies, lost, acted }
    }

    /// Share of the first copies that queues lost.
    pub fn share(&self) -> f64 {
        f64::from(self.lost) / f64::from(self.copies)
    }

    /// The class of that share.
    pub fn class(&self) -> LossClass {
        LossClass::of(self.share())
    }

    /// The end of its horizon.
    pub fn until(&self) -> Time {
        self.at + self.horizon
    }

    /// Whether two rows hold the same, bit by bit.
    pub fn same(&self, other: &Row) -> bool {
        let bits = |row: &Row| row.features.iter().chain(&row.metrics).map(|value| value.to_bits()).collect::<Vec<_>>();
        let key = |row: &Row| (row.recording, row.at, row.horizon, row.access_point, row.station);
        key(self) == key(other)
            && (self.copies, self.lost, self.acted) == (other.copies, other.lost, other.acted)
            && bits(self) == bits(other)
    }
}
