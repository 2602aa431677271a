//! A Wi-Fi channel as a last hop.

use super::{Params, Plan, Reach, ReachMatrix, Role, Wifi};
use crate::plan::{self, Observe};
use crate::queue::HopQueue;
use lasthop_signals::Node;
use lasthop_units::{Bytes, Seed, Span};

impl plan::Build for Plan {
    type Model<P: Clone> = Wifi<P>;

    fn build<P: Clone>(self, _: u16, seed: Seed) -> Wifi<P> {
        Wifi::new(self, seed)
    }
}

impl plan::Plan for Plan {
    fn is(&self) -> &'static str {
        "Wi-Fi"
    }

    fn nodes(&self, _: usize) -> usize {
        self.params().nodes.len()
    }

    fn access_point_of(&self, station: usize) -> Node {
        match self.params().nodes[station + 1].role {
            Role::Station { ap } => ap,
            Role::Peer => Node(0),
            role => panic!("station {station} is {role:?}"),
        }
    }

    fn mesh(&self) -> Option<Vec<(Node, Node)>> {
        let Params { nodes, reach, .. } = self.params();
        nodes.iter().any(|node| node.role == Role::Peer).then(|| in_reach(reach))
    }

    fn lone_exchanges(&self) -> Vec<Span> {
        let nodes = (0..self.params().nodes.len()).map(|node| Node(node as u16));
        nodes.map(|node| self.lone_exchange(node, Bytes::new(1500))).collect()
    }

    fn queue(&self) -> Option<HopQueue> {
        Some(HopQueue::Stations(self.params().ap_queue))
    }

    fn set_queue(&mut self, queue: HopQueue) -> bool {
        let HopQueue::Stations(queue) = queue else { return false };
        let mut params = Params { ap_queue: queue, ..self.params().clone() };
        // The gateway of a mesh is a peer among others.
        if let Some(own) = params.nodes.first_mut().filter(|own| own.role == Role::Peer) {
            own.queue = Some(queue);
        }
        params.validate().map(|plan| *self = plan).is_ok()
    }
}

/// Pairs of nodes that decode each other's frames.
fn in_reach(reach: &ReachMatrix) -> Vec<(Node, Node)> {
    let nodes = 0..u16::try_from(reach.nodes()).unwrap_or(u16::MAX);
    let pairs = nodes.clone().flat_map(|a| nodes.clone().skip(usize::from(a) + 1).map(move |b| (Node(a), Node(b))));
    pairs.filter(|(a, b)| reach.get(*a, *b) == Reach::Decodes).collect()
}

impl<P: Clone> Observe for Wifi<P> {
    fn waiting(&self, from: Node, to: Node) -> usize {
        self.backlog(from, to)
    }
}
