//! A last hop of fixed rate, delay and loss.

use super::kind::HopTable;
use crate::bounds::{LONGEST_DELAY, Run, rate, span};
use crate::queue::{Queue, fifo};
use crate::read::{Context, Quantity, table};
use lasthop_radio::queue::{HopQueue, Kind};
use lasthop_radio::{LastHop, line};
use lasthop_units::{Rate, Span};

table! {
    /// A link of fixed rate, delay and loss to each station, alike in both directions.
    LineHop {
        /// Data rate in each direction.
        required rate: Quantity<Rate>,
        /// Propagation delay in each direction.
        default("\"0 s\"") delay: Quantity<Span>,
        /// Probability that a packet is lost, each independently, in either direction.
        default("0.0") loss: f64,
        /// The queue at each end; only `fifo`.
        required queue: Queue,
    }
}

impl<F> HopTable<F> for LineHop {
    const CALLED: &'static str = "a line";
    const INSTEAD: &'static str = "the rate is `hop.line.rate`";

    fn plan(&self, _: &F, _: Run, cx: &mut Context) -> Option<LastHop> {
        let rate = rate(&self.rate, cx);
        let delay = span(&self.delay, (Span::ZERO, LONGEST_DELAY), "TCP gives up a connection on longer paths", cx);
        let loss = cx.within(&self.loss, (0.0, 0.9), |p| p.to_string(), "a probability");
        let queue = self.queue.get().and_then(|queue| fifo(&queue, cx));
        let Kind::Fifo { packets } = queue? else { return None };
        Some(line::Plan { rate: rate?, delay: delay?, loss: loss?, packets }.into())
    }

    fn queue(table: &Queue, cx: &mut Context) -> Option<HopQueue> {
        fifo(table, cx).map(HopQueue::Stations)
    }
}
