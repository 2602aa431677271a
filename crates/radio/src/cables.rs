//! A wired last hop: a cable to each station, all alike, for comparison with radios.

use crate::plan;
use crate::queue::{HopQueue, Kind};
use crate::star::Star;
use crate::wired::{Impairments, Params, Wire};
use lasthop_units::{Rate, Seed};

/// Cables from the access point to the stations.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// From the access point to a station; its queue is the access point's at this cable.
    pub down: Params,
    /// From a station to the access point.
    pub up: Params,
    /// What befalls each cable.
    pub impairments: Impairments,
}

impl plan::Build for Plan {
    type Model<P: Clone> = Star<Wire<P>>;

    fn build<P: Clone>(self, stations: u16, seed: Seed) -> Star<Wire<P>> {
        Star::new(stations, self.down, self.up).impaired(&self.impairments, seed)
    }
}

impl plan::Plan for Plan {
    fn is(&self) -> &'static str {
        "wired"
    }

    fn least_rate(&self) -> Rate {
        self.down.rate.min(self.up.rate)
    }

    fn queue(&self) -> Option<HopQueue> {
        Some(HopQueue::Stations(Kind::Fifo { packets: self.down.queue_packets }))
    }

    fn set_queue(&mut self, queue: HopQueue) -> bool {
        let HopQueue::Stations(Kind::Fifo { packets }) = queue else { return false };
        self.down.queue_packets = packets;
        true
    }
}
