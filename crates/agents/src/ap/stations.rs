//! Which station of the driver's reports an IP address belongs to.

use super::neighbours::Neighbours;
use lasthop_signals::Node;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Stations by address: those that the operator named, and those that driver and neighbour table give away together.
pub(super) struct Stations {
    named: BTreeMap<IpAddr, Node>,
    /// By hardware address, as the driver last said.
    heard: BTreeMap<[u8; 6], Node>,
    neighbours: Box<dyn Neighbours>,
}

impl Stations {
    pub(super) fn new(named: &[(IpAddr, Node)], neighbours: Box<dyn Neighbours>) -> Stations {
        Stations { named: named.iter().copied().collect(), heard: BTreeMap::new(), neighbours }
    }

    /// Takes in what the driver says, and what the kernel has learned meanwhile.
    pub(super) fn update(&mut self, addresses: &BTreeMap<Node, [u8; 6]>) {
        let same = self.heard.len() == addresses.len()
            && addresses.iter().all(|(station, mac)| self.heard.get(mac) == Some(station));
        if !same {
            self.heard = addresses.iter().map(|(station, mac)| (*mac, *station)).collect();
        }
        self.neighbours.refresh();
    }

    /// The station behind an address; `None` if nobody knows. A name that the operator gave goes first.
    pub(super) fn of(&self, address: IpAddr) -> Option<Node> {
        let learned = || self.heard.get(&self.neighbours.hardware(address)?).copied();
        self.named.get(&address).copied().or_else(learned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_station_is_found_by_its_hardware_address_and_a_given_name_goes_first() {
        let [a, b, c] = [1, 2, 3].map(|n| IpAddr::from([10, 0, 0, n]));
        let neighbours = BTreeMap::from([(a, [2, 0, 0, 0, 0, 1]), (b, [2, 0, 0, 0, 0, 2])]);
        let mut stations = Stations::new(&[(b, Node(9))], Box::new(neighbours));
        assert_eq!(stations.of(a), None, "the driver has not spoken yet");
        stations.update(&BTreeMap::from([(Node(4), [2, 0, 0, 0, 0, 1]), (Node(5), [2, 0, 0, 0, 0, 2])]));
        assert_eq!([a, b, c].map(|address| stations.of(address)), [Some(Node(4)), Some(Node(9)), None]);
        stations.update(&BTreeMap::from([(Node(6), [2, 0, 0, 0, 0, 1])]));
        assert_eq!(stations.of(a), Some(Node(6)), "it associated anew");
    }
}
