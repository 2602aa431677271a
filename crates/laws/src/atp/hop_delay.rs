//! D, the delay of a node's own hop: what a packet that it forwards now will take.
//! Source:     Zhang, Buck, Zappala 2011; the averages of ATP (Sundaresan et al. 2005), not checked against the
//!             original.
//! Equations:  Q' = alpha Q + (1 - alpha) q,   T' = alpha T + (1 - alpha) t,   D = Q + T;   idle: D = eta T
//! Symbols:    alpha = 0.75 -> `KEPT`; eta = 3 -> `OWN_CONTENTION`; q, from the queue to the head of the line; t, from there to the acknowledgement
//! Deviations: the source keeps a node's last Q for ever. Here a node that has sent nothing for a second, and has nothing to send, has no queue, and
//!             T stays. While a packet is at the head of the line, T is at least the time that it has been there.
//!             Packets to a group, which nobody acknowledges, count for nothing.
//! Validity:   completions in order of time.     Checked by: tests::*

use crate::ebpf::Shared;
use lasthop_signals::NodeDelay;
use lasthop_units::{Span, Time};

/// What is kept of an average at a new sample.
const KEPT: f64 = 0.75;
/// A flow over an idle node will compete with itself: at the hop before, here, and at the next.
const OWN_CONTENTION: u64 = 3;
/// A node that has sent nothing for so long is idle.
const IDLE: Span = Span::from_secs(1);

/// What the eBPF program that measures shares with the averages. Its times are nanoseconds.
pub const SHARED: Shared = Shared { name: "hop_delay", table: &[], keys: &[], constants: &[("IDLE", IDLE.as_nanos())] };

/// The averages of one node.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct HopDelay {
    node: NodeDelay,
    /// When a packet came to the empty queue last, or behind one to a group to the head of the line.
    busy: Time,
}

impl HopDelay {
    /// A node that has sent nothing: a lone packet would take it `service`.
    pub fn new(service: Span) -> HopDelay {
        HopDelay::of(NodeDelay { service, ..NodeDelay::default() })
    }

    /// A node with averages that a driver or the kernel keeps.
    pub fn of(node: NodeDelay) -> HopDelay {
        HopDelay { node, busy: Time::ZERO }
    }

    /// The averages, and what D follows from beside them.
    pub fn node(&self) -> NodeDelay {
        // What waits has not been at the head of the line since before it came.
        let last = self.node.last.map(|last| if self.node.waiting > 0 { last.max(self.busy) } else { last });
        NodeDelay { last, ..self.node }
    }

    /// A packet has entered the node's queue, or tried to.
    pub fn on_queued(&mut self, now: Time) {
        if self.node.waiting == 0 {
            self.busy = now;
        }
        self.node.waiting += 1;
    }

    /// A packet has left the queue without having been sent.
    pub fn on_dropped(&mut self) {
        self.node.waiting = self.node.waiting.saturating_sub(1);
    }

    /// The node has sent a packet to a group, which nobody acknowledges: it says nothing of what a neighbour's takes.
    pub fn on_group_done(&mut self, now: Time) {
        self.node.waiting = self.node.waiting.saturating_sub(1);
        // The next one has been at the head of the line since now.
        self.busy = now;
    }

    /// The node is done with a packet that entered its queue at `queued_at` and was at the head of the line from `head_at` on.
    pub fn on_done(&mut self, now: Time, queued_at: Time, head_at: Time) {
        let node = &mut self.node;
        node.waiting = node.waiting.saturating_sub(1);
        let (queueing, service) = (head_at.since(queued_at), now.since(head_at));
        let average = |kept: Span, sample: Span| kept.scale(KEPT) + sample.scale(1.0 - KEPT);
        // What was before a rest says nothing of now.
        let rested = node.last.is_none_or(|last| now.since(last) >= IDLE);
        node.queueing = if rested { queueing } else { average(node.queueing, queueing) };
        node.service = if node.last.is_none() { service } else { average(node.service, service) };
        node.last = Some(now);
    }

    /// D now.
    pub fn delay(&self, now: Time) -> Span {
        let NodeDelay { queueing, service, last, waiting } = self.node();
        match last {
            // What is at the head of the line is there since then, at least.
            Some(last) if waiting > 0 => queueing + service.max(now.since(last)),
            Some(last) if now.since(last) < IDLE => queueing + service,
            _ => service * OWN_CONTENTION,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_micros(us)
    }

    #[test]
    fn a_standing_queue_of_k_packets_is_k_more_service_times() {
        // A packet each 682 us, each of which has waited for three others.
        let mut node = HopDelay::new(Span::from_micros(682));
        for n in 1..60 {
            node.on_done(at(682 * (n + 3)), at(682 * (n - 1)), at(682 * (n + 2)));
        }
        assert_eq!(node.delay(at(682 * 63)), Span::from_micros(4 * 682));
    }

    #[test]
    fn multicast_changes_no_average_and_frees_the_head_of_line() {
        let mut node = HopDelay::new(Span::from_millis(1));
        node.on_queued(at(0));
        node.on_group_done(at(100));
        assert_eq!(node.delay(at(200)), Span::from_millis(3), "a node that has sent nothing to a neighbour is idle");
        node.on_queued(at(1_000));
        node.on_done(at(2_000), at(1_000), at(1_000));
        (0..2).for_each(|_| node.on_queued(at(2_000)));
        node.on_group_done(at(52_000));
        // The second of them has been at the head for 3 ms, and not since the last one was done.
        assert_eq!(node.delay(at(55_000)), Span::from_millis(3));
    }

    #[test]
    fn a_node_that_gets_no_turn_is_not_idle() {
        let mut node = HopDelay::new(Span::from_millis(1));
        (0..2).for_each(|_| node.on_queued(at(0)));
        node.on_done(at(2_000), at(0), at(1_000));
        assert_eq!(node.delay(at(1_502_000)), Span::from_millis(1_501));
        node.on_dropped();
        assert_eq!(node.delay(at(1_502_000)), Span::from_millis(3));
    }

    #[test]
    fn a_packet_that_comes_after_a_rest_was_not_waiting_meanwhile() {
        let mut node = HopDelay::new(Span::from_millis(1));
        node.on_queued(at(0));
        node.on_done(at(1_000), at(0), at(0));
        // A minute later two come, the second right behind the first.
        node.on_queued(at(60_000_000));
        assert_eq!(node.delay(at(60_000_100)), Span::from_millis(1));
        assert_eq!(node.delay(at(60_005_000)), Span::from_millis(5), "and it does wait from then on");
    }

    #[test]
    fn averages_by_hand() {
        let mut node = HopDelay::new(Span::from_millis(9));
        assert_eq!(node.delay(at(0)), Span::from_millis(27), "an idle node allows for the flow's own contention");
        node.on_done(at(3_000), at(0), at(1_000));
        assert_eq!(node.delay(at(3_000)), Span::from_millis(3));
        node.on_done(at(10_000), at(3_000), at(4_000));
        // Q = 1 ms again; T = 0.75 * 2 + 0.25 * 6 = 3 ms.
        assert_eq!(node.delay(at(10_000)), Span::from_millis(4));
        assert_eq!(node.delay(at(1_010_000)), Span::from_millis(9), "after a second of rest: 3 T");
    }
}
