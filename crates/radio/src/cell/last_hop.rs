//! A cell as a last hop.

use super::{Cell, Plan};
use crate::plan::{self, Observe};
use crate::star::CENTRE;
use lasthop_signals::Node;
use lasthop_units::{Bytes, Seed};

impl plan::Build for Plan {
    type Model<P: Clone> = Cell<P>;

    fn build<P: Clone>(self, _: u16, seed: Seed) -> Cell<P> {
        Cell::new(self, seed)
    }
}

impl plan::Plan for Plan {
    fn is(&self) -> &'static str {
        "a cell"
    }
}

impl<P> Observe for Cell<P> {
    fn waiting(&self, from: Node, to: Node) -> usize {
        if from == CENTRE { self.backlog(to).0 } else { self.uplink_backlog(from) }
    }

    fn decoded(&self, node: Node) -> Option<Bytes> {
        Some(self.decoded(node))
    }

    fn octets_waiting(&self, station: Node) -> Bytes {
        self.backlog(station).1
    }

    fn active_carriers(&mut self, station: Node) -> usize {
        self.active_carriers(station)
    }
}
