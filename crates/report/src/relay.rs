//! What relays say that they have done.

use serde::{Deserialize, Serialize};

/// A relay's account of itself: the last line that it prints on standard output.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct RelayAccount {
    /// Interface by interface.
    pub devices: Vec<RelayedDevice>,
    /// Records of the driver that were used.
    pub records: u64,
    /// Messages of the driver that could not be read, or were too old.
    pub refused_records: u64,
    /// How often the driver went away.
    pub driver_losses: u64,
    /// Packets that a handler at user level saw.
    pub handled: u64,
}

/// What a relay has done at one interface.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct RelayedDevice {
    /// Its name.
    pub dev: String,
    /// How the program was attached.
    pub method: String,
    /// Datagrams that begin as ours.
    pub seen: u64,
    /// Of them, those in which D was raised.
    pub stamped: u64,
    /// Of them, those that left while no D was known.
    pub stale: u64,
    /// Datagrams of the relay's ports that do not begin as ours.
    pub other: u64,
    /// Packets marked as having experienced congestion.
    pub marked: u64,
    /// Packets that were measured on their way through the interface; none where the driver tells D.
    pub measured: u64,
    /// The largest D that was told to the program, microseconds.
    pub largest_us: u64,
}

impl RelayAccount {
    /// The account as the line that a relay prints: `{"relay":{…}}`.
    pub fn line(&self) -> String {
        serde_json::json!({ "relay": self }).to_string()
    }

    /// The last account in what a relay printed; `None` if there is none.
    pub fn find(printed: &str) -> Option<RelayAccount> {
        #[derive(Deserialize)]
        struct Line {
            relay: RelayAccount,
        }
        printed.lines().rev().find_map(|line| serde_json::from_str::<Line>(line).ok()).map(|line| line.relay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_found_among_what_else_was_printed() {
        let device = RelayedDevice { dev: "wlan0".into(), stamped: 5, ..RelayedDevice::default() };
        let account = RelayAccount { devices: vec![device], records: 3, ..RelayAccount::default() };
        let printed = format!("relay: wlan0\n{}\n", account.line());
        assert_eq!(RelayAccount::find(&printed), Some(account));
        assert_eq!(RelayAccount::find("relay: wlan0"), None);
    }
}
