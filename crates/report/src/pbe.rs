//! What the agents of PBE-CC on kernel TCP say that they have done.

use serde::{Deserialize, Serialize};

/// The accounts of senders' and receivers' agents, added up: the last line that each prints. Those of a run are one, and a part of `run.json`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PbeAccount {
    /// Senders: connections with the option in the peer's SYN.
    pub promised: u64,
    /// Senders: options that were read.
    pub options: u64,
    /// Senders: options that a later one had overtaken.
    pub overtaken: u64,
    /// Receivers: connections with the option in the peer's SYN.
    pub agreed: u64,
    /// Receivers: segments that had the option.
    pub written: u64,
    /// Receivers: packets of these connections that came.
    pub arrived: u64,
    /// Receivers: news of the kernel that found no place.
    pub lost: u64,
    /// Receivers: subframes of all carriers.
    pub subframes: u64,
    /// Receivers: rows of logs that say nothing that can be understood.
    pub unread: u64,
    /// Receivers: how often what is told to a connection was changed.
    pub changes: u64,
}

impl PbeAccount {
    /// This account and that of another agent as one.
    pub fn and(self, other: PbeAccount) -> PbeAccount {
        PbeAccount {
            promised: self.promised + other.promised,
            options: self.options + other.options,
            overtaken: self.overtaken + other.overtaken,
            agreed: self.agreed + other.agreed,
            written: self.written + other.written,
            arrived: self.arrived + other.arrived,
            lost: self.lost + other.lost,
            subframes: self.subframes + other.subframes,
            unread: self.unread + other.unread,
            changes: self.changes + other.changes,
        }
    }

    /// The last account in what an agent of either end printed; `None` if there is none.
    pub fn find(printed: &str) -> Option<PbeAccount> {
        #[derive(Deserialize)]
        struct Line {
            #[serde(alias = "pbe_sender", alias = "pbe_receiver")]
            pbe: PbeAccount,
        }
        printed.lines().rev().find_map(|line| serde_json::from_str::<Line>(line).ok()).map(|line| line.pbe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_of_both_ends_are_found_and_added_up() {
        let sender =
            PbeAccount::find("pbe sender: hello\n{\"pbe_sender\":{\"promised\":1,\"options\":9,\"overtaken\":2}}\n");
        let sender = sender.expect("an account");
        assert_eq!((sender.promised, sender.options, sender.overtaken), (1, 9, 2));
        let receiver = PbeAccount::find("{\"pbe_receiver\":{\"agreed\":1,\"written\":10,\"subframes\":77}}");
        let both = sender.and(receiver.expect("an account"));
        assert_eq!((both.options, both.agreed, both.written, both.subframes), (9, 1, 10, 77));
        assert_eq!(PbeAccount::find("pbe receiver: hello"), None);
    }
}
