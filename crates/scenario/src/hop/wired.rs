//! A cable to each station, for comparison.

use super::kind::HopTable;
use crate::bounds::Run;
use crate::cable::{Impaired, line};
use crate::quantity::Packets;
use crate::queue::{Queue, fifo};
use crate::read::{Context, Quantity, table};
use lasthop_radio::queue::{self, HopQueue};
use lasthop_radio::{LastHop, cables, wired};
use lasthop_units::{Rate, Span};

table! {
    /// A cable to each station, all alike.
    WiredHop {
        /// Data rate in each direction, at first.
        required rate: Quantity<Rate>,
        /// Propagation delay in each direction.
        default("\"0 s\"") delay: Quantity<Span>,
        /// The access point's queue at each cable; only `fifo`.
        required queue: Queue,
        /// Packets that may wait at the station, beside the one being sent.
        default("\"1000 packets\"") uplink_queue: Quantity<Packets>,
        /// What befalls the cables.
        flatten impaired: Impaired,
    }
}

impl<F> HopTable<F> for WiredHop {
    const CALLED: &'static str = "a wired hop";
    const INSTEAD: &'static str = "the rate is `hop.wired.rate`";

    fn plan(&self, _: &F, _: Run, cx: &mut Context) -> Option<LastHop> {
        let up = line(&self.rate, &self.delay, &self.uplink_queue, cx);
        let impairments = self.impaired.impairments(cx);
        let queue = self.queue.get().and_then(|queue| fifo(&queue, cx));
        let up = up?;
        let queue::Kind::Fifo { packets: limit } = queue? else { return None };
        let down = wired::Params { queue_packets: limit, ..up };
        Some(cables::Plan { down, up, impairments: impairments? }.into())
    }

    fn queue(table: &Queue, cx: &mut Context) -> Option<HopQueue> {
        fifo(table, cx).map(HopQueue::Stations)
    }
}
