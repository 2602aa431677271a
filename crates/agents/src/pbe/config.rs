//! What an operator may choose, and what there is to say at the end.

use super::logs::Logs;
use crate::service::{Error, Say};
use lasthop_laws::Choice;
use lasthop_laws::pbe::Params;
use serde::Serialize;
use std::path::PathBuf;

/// What the congestion control is called if nothing else is said.
pub const NAME: &str = "lasthop_pbe";
/// Octets of a congestion control's name.
const LONGEST_NAME: usize = 15;

/// How a sender runs.
#[derive(Clone, Debug)]
pub struct SenderConfig {
    /// Programs in this cgroup (version 2) may use it.
    pub cgroup: PathBuf,
    /// What the congestion control is called: names are the whole kernel's, not a network namespace's.
    pub name: String,
    /// What is set of the law.
    pub law: Params,
    /// Give up all privileges once everything is open.
    pub drop_privileges: bool,
    /// The user, by name or number, that the process becomes then; `None` to keep its own. Only with `drop_privileges`.
    pub user: Option<String>,
}

impl SenderConfig {
    /// A sender for the programs of a cgroup, with the law's defaults.
    pub fn new(cgroup: impl Into<PathBuf>) -> SenderConfig {
        SenderConfig {
            cgroup: cgroup.into(),
            name: NAME.to_owned(),
            law: Params::default(),
            drop_privileges: true,
            user: None,
        }
    }

    pub(super) fn validate(&self) -> Result<(), Error> {
        let fits = |octet: u8| octet.is_ascii_alphanumeric() || b"_-".contains(&octet);
        if self.name.is_empty() || self.name.len() > LONGEST_NAME || !self.name.bytes().all(fits) {
            let bound = "1 to 15 letters, digits, `_` or `-`";
            return Err(Error::Config { key: "name", got: self.name.clone(), bound });
        }
        Ok(self.law.validate()?)
    }
}

/// What a sender did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct SenderSummary {
    /// Connections with the option in the peer's SYN.
    pub promised: u64,
    /// Options that were read.
    pub options: u64,
    /// Options that a later one had overtaken.
    pub overtaken: u64,
}

/// How a receiver runs.
#[derive(Clone, Debug)]
pub struct ReceiverConfig {
    /// Senders are told the capacity for connections of programs in this cgroup (version 2).
    pub cgroup: PathBuf,
    /// What is written of the terminal's cell.
    pub logs: Logs,
    /// The law that decides what is told.
    pub law: Choice,
    /// Give up all privileges once everything is open.
    pub drop_privileges: bool,
    /// The user, by name or number, that the process becomes then; `None` to keep its own. Only with `drop_privileges`.
    pub user: Option<String>,
    /// Receives messages about what happens meanwhile.
    pub say: Say,
}

impl ReceiverConfig {
    pub(super) fn validate(&self) -> Result<(), Error> {
        self.logs.validate()?;
        Ok(self.law.check()?)
    }
}

/// What a receiver did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct ReceiverSummary {
    /// Connections with the option in the peer's SYN.
    pub agreed: u64,
    /// Segments that had the option.
    pub written: u64,
    /// Packets of these connections that came.
    pub arrived: u64,
    /// News of the kernel that found no place.
    pub lost: u64,
    /// Subframes of all carriers.
    pub subframes: u64,
    /// Rows of logs that say nothing that can be understood.
    pub unread: u64,
    /// How often what is told to a connection was changed.
    pub changes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::{Rate, Span};

    #[test]
    fn what_cannot_be_is_refused_by_the_name_of_its_flag() {
        let refused = |config: &SenderConfig| config.validate().err().map(|error| error.to_string());
        let config = SenderConfig::new("/sys/fs/cgroup");
        assert_eq!(refused(&config), None);
        for name in ["", "sixteen_letters_", "with space", "ä"] {
            let said = refused(&SenderConfig { name: name.to_owned(), ..config.clone() }).expect(name);
            assert!(said.contains("name") && said.contains("1 to 15 letters"), "{said}");
        }
        let with = |law| SenderConfig { law, ..config.clone() };
        let said = refused(&with(Params { most: Rate::ZERO, ..Params::default() }));
        assert!(said.is_some_and(|said| said.contains("at least 1 Mbit/s")));
        let said = refused(&with(Params { headroom: Span::from_secs(1), ..Params::default() }));
        assert!(said.is_some_and(|said| said.contains("at most 100 ms")));
    }
}
