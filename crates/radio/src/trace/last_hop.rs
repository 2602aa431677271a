//! A last hop that plays recorded traces.

use super::{Link, Params};
use crate::plan;
use crate::queue::HopQueue;
use crate::star::Star;
use lasthop_units::Seed;

/// A link to each station, all alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// From the access point to a station.
    pub down: Params,
    /// From a station to the access point.
    pub up: Params,
}

impl plan::Build for Plan {
    type Model<P: Clone> = Star<Link<P>>;

    fn build<P: Clone>(self, stations: u16, seed: Seed) -> Star<Link<P>> {
        Link::star(stations, &self.down, &self.up, seed)
    }
}

impl plan::Plan for Plan {
    fn is(&self) -> &'static str {
        "a recorded trace"
    }

    fn queue(&self) -> Option<HopQueue> {
        Some(HopQueue::Trace(self.down.queue))
    }

    fn set_queue(&mut self, queue: HopQueue) -> bool {
        let HopQueue::Trace(queue) = queue else { return false };
        self.down.queue = queue;
        true
    }

    fn show_capacity(&mut self) {
        self.down.shown = true;
    }
}
