//! Which station of the driver's reports a flow belongs to.

use lasthop_signals::{MacAddress, Node};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Stations: those that the operator named by their IP addresses, and the others by the hardware addresses that the driver
/// reports. A flow's is where its station's SYN came from, so nothing else need be known: it holds for an interface that is
/// a bridge's port, for addresses that change, and for hosts behind a station.
pub(super) struct Stations {
    named: BTreeMap<IpAddr, Node>,
    /// By hardware address, as the driver last said.
    heard: BTreeMap<[u8; 6], Node>,
    /// The node that stands for all stations behind the interface, if they are not told apart.
    everybody: Option<Node>,
}

impl Stations {
    pub(super) fn new(named: &[(IpAddr, Node)]) -> Stations {
        Stations { named: named.iter().copied().collect(), heard: BTreeMap::new(), everybody: None }
    }

    /// Takes every flow for one of this station that nobody has named another of.
    pub(super) fn take_all_for(&mut self, everybody: Option<Node>) {
        self.everybody = everybody;
    }

    /// Takes in what the driver says.
    pub(super) fn update(&mut self, addresses: &BTreeMap<Node, [u8; 6]>) {
        let same = self.heard.len() == addresses.len()
            && addresses.iter().all(|(station, mac)| self.heard.get(mac) == Some(station));
        if !same {
            self.heard = addresses.iter().map(|(station, mac)| (*mac, *station)).collect();
        }
    }

    /// What a station is called: its hardware address, or else one that the operator gave; `None` if it has neither.
    pub(super) fn address(&self, station: Node) -> Option<String> {
        let hardware = || self.heard.iter().find(|(_, node)| **node == station).map(|(mac, _)| *mac);
        let named = || self.named.iter().find(|(_, node)| **node == station).map(|(address, _)| address.to_string());
        hardware().map(|mac| MacAddress(mac).to_string()).or_else(named)
    }

    /// The station behind an address or a hardware address; `None` if nobody knows. A name that the operator gave goes first.
    pub(super) fn of(&self, address: IpAddr, hardware: Option<[u8; 6]>) -> Option<Node> {
        self.named.get(&address).copied().or_else(|| self.heard.get(&hardware?).copied()).or(self.everybody)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stations_are_found_by_mac_and_a_given_name_wins() {
        let [a, b, c] = [1, 2, 3].map(|n| (IpAddr::from([10, 0, 0, n]), Some([2, 0, 0, 0, 0, n])));
        let mut stations = Stations::new(&[(b.0, Node(9))]);
        assert_eq!(stations.of(a.0, a.1), None, "the driver has not spoken yet");
        stations.update(&BTreeMap::from([(Node(4), [2, 0, 0, 0, 0, 1]), (Node(5), [2, 0, 0, 0, 0, 2])]));
        let found = [a, b, c].map(|(address, hardware)| stations.of(address, hardware));
        assert_eq!(found, [Some(Node(4)), Some(Node(9)), None]);
        assert_eq!(stations.of(a.0, None), None, "its SYN has not passed");
        stations.update(&BTreeMap::from([(Node(6), [2, 0, 0, 0, 0, 1])]));
        assert_eq!(stations.of(a.0, a.1), Some(Node(6)), "it associated anew");
        let called = |station| stations.address(Node(station));
        assert_eq!([6, 9].map(called), [Some("02:00:00:00:00:01".to_owned()), Some("10.0.0.2".to_owned())]);
        assert_eq!(called(4), None);
        stations.take_all_for(Some(Node(1)));
        let found = [a, b, c].map(|(address, hardware)| stations.of(address, hardware));
        assert_eq!(found, [Some(Node(6)), Some(Node(9)), Some(Node(1))]);
    }
}
