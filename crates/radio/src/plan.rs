//! What every kind of last hop says of itself before it is built, and what can be asked of one that was.

use crate::NextEvent;
use crate::queue::HopQueue;
use lasthop_signals::Node;
use lasthop_units::{Bytes, Rate, Seed, Span};

/// The access point on its own hop.
const ACCESS_POINT: Node = Node(0);

/// A description from which a hop can be built: whatever was to be checked is checked.
pub trait Build: Plan {
    /// The model.
    type Model<P: Clone>: Observe;

    /// The model at its beginning, with so many stations. Equal plans and seeds behave equally.
    fn build<P: Clone>(self, stations: u16, seed: Seed) -> Self::Model<P>;
}

/// What such a description tells. Node 0 is the access point, then come the stations. What only some kinds of hops have is absent
/// unless a kind says otherwise.
pub trait Plan {
    /// What it is, as in "this hop is wired".
    fn is(&self) -> &'static str;

    /// Its nodes, those that are no host's included.
    fn nodes(&self, stations: usize) -> usize {
        1 + stations
    }

    /// The access point of a station, by the station's place.
    ///
    /// # Panics
    /// If there is no such station.
    fn access_point_of(&self, station: usize) -> Node {
        let _ = station;
        ACCESS_POINT
    }

    /// Pairs of nodes that exchange packets, in both directions, where stations forward each other's; `None` where they do not.
    fn mesh(&self) -> Option<Vec<(Node, Node)>> {
        None
    }

    /// What a lone packet of 1500 octets takes each node: what it tells as its delay before it has sent anything. Empty where
    /// nodes tell none.
    fn lone_exchanges(&self) -> Vec<Span> {
        Vec::new()
    }

    /// The least rate of its lines; [`Rate::MAX`] where rates are the model's affair.
    fn least_rate(&self) -> Rate {
        Rate::MAX
    }

    /// The access point's queue towards the stations; `None` where no law can change it.
    fn queue(&self) -> Option<HopQueue> {
        None
    }

    /// Takes another queue there. False if it cannot have that one: it is as before then.
    fn set_queue(&mut self, queue: HopQueue) -> bool {
        let _ = queue;
        false
    }

    /// Receivers are to be shown what the hop could carry, where that is no part of the model anyway.
    fn show_capacity(&mut self) {}
}

/// What can be asked of a hop between its events.
pub trait Observe: NextEvent {
    /// Packets that wait at `from` for a node `to`, as of the last event. What has left over a line and is still on its way is
    /// not among them; what a radio has not delivered yet is.
    fn waiting(&self, from: Node, to: Node) -> usize;

    /// Octets that a node has decoded, in order or not; `None` where packets come whole.
    fn decoded(&self, node: Node) -> Option<Bytes> {
        let _ = node;
        None
    }

    /// Octets that wait for a station at its base station; zero where there is none.
    fn octets_waiting(&self, station: Node) -> Bytes {
        let _ = station;
        Bytes::ZERO
    }

    /// Carriers that a station has; zero where there are none.
    fn active_carriers(&mut self, station: Node) -> usize {
        let _ = station;
        0
    }
}
