//! A full-duplex wired link: a drop-tail queue, a serialiser and a propagation delay in each direction.
//! Source:     the textbook store-and-forward link; what `tc tbf` and `netem delay` make together.
//! Equations:  departure = max(now, last departure) + len / rate;   arrival = departure + delay
//! Deviations: the packet being serialised does not count against the queue limit.     Validity: any rate > 0.
//! Checked by: tests::*

use crate::{Completion, Dest, Drop, Hop, NextEvent, Outbox, Outcome, Packet, RxInfo};
use lasthop_signals::Node;
use lasthop_units::{Bytes, Rate, Span, Time};
use std::collections::VecDeque;

/// One direction of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Bits of network-layer packets a second.
    pub rate: Rate,
    /// Time from the last bit's departure to its arrival.
    pub delay: Span,
    /// Packets that may wait behind the one being serialised.
    pub queue_packets: usize,
}

/// A link between two nodes.
#[derive(Clone, Debug)]
pub struct Wire<P> {
    ends: [Node; 2],
    lines: [Line<P>; 2],
}

/// One direction: from `ends[i]` to the other.
#[derive(Clone, Debug)]
struct Line<P> {
    params: Params,
    /// In the order of their coming: first those that have left and are on the wire, then those that wait or are being
    /// serialised.
    packets: VecDeque<Queued<P>>,
    /// How many are on the wire.
    flying: usize,
    /// When the last of those that have left did.
    free: Time,
}

#[derive(Clone, Debug)]
struct Queued<P> {
    arrived: Time,
    departs: Time,
    packet: Packet<P>,
}

impl<P> Wire<P> {
    /// A link from `a` to `b` described by `ab`, and back by `ba`.
    pub fn new(a: Node, b: Node, ab: Params, ba: Params) -> Wire<P> {
        let line = |params| Line { params, packets: VecDeque::new(), flying: 0, free: Time::ZERO };
        Wire { ends: [a, b], lines: [line(ab), line(ba)] }
    }

    /// Packets that waited to leave `from` when the wire was last advanced, the one being serialised included.
    pub fn backlog(&self, from: Node) -> usize {
        self.waiting(from).count()
    }

    /// Network-layer bytes of those packets.
    pub fn backlog_bytes(&self, from: Node) -> Bytes {
        self.waiting(from).map(|queued| queued.packet.len).sum()
    }

    /// When the oldest of those packets was enqueued; `None` if none waits.
    pub fn oldest(&self, from: Node) -> Option<Time> {
        self.waiting(from).next().map(|queued| queued.arrived)
    }

    /// Gives both directions another rate from `now` on; what is being serialised leaves as it would have.
    pub fn set_rate(&mut self, now: Time, rate: Rate, out: &mut impl Outbox<P>) {
        self.advance(now, out);
        for line in &mut self.lines {
            line.params.rate = rate;
            let mut free = None;
            for queued in line.packets.range_mut(line.flying..) {
                if let (Some(free), Some(serialisation)) = (free, rate.time_for(queued.packet.len)) {
                    queued.departs = free + serialisation;
                }
                free = Some(queued.departs);
            }
        }
    }

    /// Makes the delay of both directions longer by `by` from `now` on, also for what is on the wire.
    pub fn lengthen(&mut self, now: Time, by: Span, out: &mut impl Outbox<P>) {
        self.advance(now, out);
        self.lines.iter_mut().for_each(|line| line.params.delay += by);
    }

    fn waiting(&self, from: Node) -> impl Iterator<Item = &Queued<P>> {
        self.direction(from).into_iter().flat_map(|i| self.lines[i].packets.range(self.lines[i].flying..))
    }

    fn direction(&self, from: Node) -> Option<usize> {
        self.ends.iter().position(|end| *end == from)
    }
}

impl<P, O: Outbox<P>> Hop<P, O> for Wire<P> {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: Packet<P>, out: &mut O) {
        self.advance(now, out);
        let Some(from) = self.direction(packet.src) else {
            return out.dropped(now, packet, Drop::Unreachable);
        };
        if matches!(packet.dst, Dest::Node(to) if to != self.ends[1 - from]) {
            return out.dropped(now, packet, Drop::Unreachable);
        }
        let line = &mut self.lines[from];
        if line.packets.len() - line.flying > line.params.queue_packets {
            return out.dropped(now, packet, Drop::QueueFull);
        }
        let Some(serialisation) = line.params.rate.time_for(packet.len) else {
            return out.dropped(now, packet, Drop::Unreachable);
        };
        let starts = line.packets.back().map_or(now, |last| last.departs.max(now));
        line.packets.push_back(Queued { arrived: now, departs: starts + serialisation, packet });
    }

    fn advance(&mut self, now: Time, out: &mut O) {
        // The two directions share nothing, so each may run to `now` by itself.
        for (from, line) in self.lines.iter_mut().enumerate() {
            while let Some(left) = line.packets.get(line.flying).filter(|next| next.departs <= now) {
                if out.wants_completions() {
                    out.completed(left.departs, &left.completion(line.free));
                }
                line.free = left.departs;
                line.flying += 1;
            }
            while line.packets.front().is_some_and(|head| head.departs + line.params.delay <= now) {
                let head = line.packets.pop_front().expect("just seen");
                line.flying -= 1;
                let at = head.departs + line.params.delay;
                let rx = RxInfo { queued_at: head.arrived, rate: line.params.rate };
                out.deliver(at, self.ends[1 - from], head.packet, &rx);
            }
        }
    }
}

impl<P> Queued<P> {
    /// What there is to say when its last bit has left; the line was `free` from then on.
    fn completion(&self, free: Time) -> Completion {
        let Packet { len, src: from, dst, class, flow_hash, .. } = self.packet;
        let head_at = self.arrived.max(free);
        Completion { from, dst, len, class, flow_hash, queued_at: self.arrived, head_at, outcome: Outcome::Sent }
    }
}

impl<P> NextEvent for Wire<P> {
    // A departure shows nowhere but in the backlog, which is as of the last advance: it needs no event of its own.
    fn next_event(&self) -> Option<Time> {
        let arrives = |line: &Line<P>| line.packets.front().map(|head| head.departs + line.params.delay);
        self.lines.iter().filter_map(arrives).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AccessClass, Ecn};

    #[derive(Default)]
    struct Log {
        delivered: Vec<(Time, u32)>,
        dropped: Vec<u32>,
        completed: Vec<(Time, Completion)>,
    }

    impl Outbox<u32> for Log {
        fn deliver(&mut self, at: Time, _to: Node, packet: Packet<u32>, _rx: &RxInfo) {
            self.delivered.push((at, packet.payload));
        }
        fn dropped(&mut self, _at: Time, packet: Packet<u32>, _why: Drop) {
            self.dropped.push(packet.payload);
        }
        fn wants_completions(&self) -> bool {
            true
        }
        fn completed(&mut self, at: Time, completion: &Completion) {
            self.completed.push((at, *completion));
        }
    }

    fn packet(payload: u32) -> Packet<u32> {
        Packet {
            len: Bytes::new(1500),
            src: Node(0),
            dst: Dest::Node(Node(1)),
            class: AccessClass::BestEffort,
            flow_hash: 0,
            ecn: Ecn::NotEct,
            payload,
        }
    }

    fn link(queue_packets: usize) -> Wire<u32> {
        let line = Params { rate: Rate::from_mbit(12), delay: Span::from_millis(10), queue_packets };
        Wire::new(Node(0), Node(1), line, line)
    }

    #[test]
    fn packets_leave_one_serialisation_time_apart_and_arrive_a_delay_later() {
        let (mut wire, mut log) = (link(10), Log::default());
        wire.enqueue(Time::ZERO, packet(1), &mut log);
        wire.enqueue(Time::ZERO, packet(2), &mut log);
        wire.advance(Time::from_nanos(20_000_000), &mut log);
        let ms = |n: u64| Time::from_nanos(n * 1_000_000);
        assert_eq!(log.delivered, vec![(ms(11), 1), (ms(12), 2)]);
        assert_eq!(wire.next_event(), None);
    }

    #[test]
    fn a_packet_is_served_while_its_bits_leave() {
        let (mut wire, mut log) = (link(10), Log::default());
        let ms = |n: u64| Time::from_nanos(n * 1_000_000);
        wire.enqueue(Time::ZERO, packet(1), &mut log);
        wire.enqueue(Time::ZERO, packet(2), &mut log);
        wire.enqueue(ms(7), packet(3), &mut log);
        wire.advance(ms(8), &mut log);
        // They have left and not yet arrived.
        assert_eq!(log.delivered, vec![]);
        let times = log.completed.iter().map(|(at, packet)| (packet.queued_at, packet.head_at, *at));
        assert_eq!(times.collect::<Vec<_>>(), [(ms(0), ms(0), ms(1)), (ms(0), ms(1), ms(2)), (ms(7), ms(7), ms(8))]);
    }

    #[test]
    fn what_waits_leaves_at_the_rate_of_then() {
        let (mut wire, mut log) = (link(10), Log::default());
        (1..=3).for_each(|n| wire.enqueue(Time::ZERO, packet(n), &mut log));
        // The first leaves after 1 ms as it had begun; the others take 10 ms each at a tenth of the rate.
        let ms = |n: u64| Time::from_nanos(n * 1_000_000);
        wire.set_rate(Time::from_nanos(500_000), Rate::from_bps(1_200_000), &mut log);
        wire.enqueue(Time::from_nanos(600_000), packet(4), &mut log);
        wire.advance(ms(100), &mut log);
        assert_eq!(log.delivered, vec![(ms(11), 1), (ms(21), 2), (ms(31), 3), (ms(41), 4)]);
    }

    #[test]
    fn what_is_on_a_wire_that_becomes_longer_comes_later() {
        let (mut wire, mut log) = (link(10), Log::default());
        let ms = |n: u64| Time::from_nanos(n * 1_000_000);
        wire.enqueue(Time::ZERO, packet(1), &mut log);
        wire.enqueue(ms(8), packet(2), &mut log);
        wire.lengthen(ms(12), Span::from_millis(30), &mut log);
        wire.advance(ms(100), &mut log);
        assert_eq!(log.delivered, vec![(ms(11), 1), (ms(49), 2)]);
    }

    #[test]
    fn a_full_queue_refuses_the_newest() {
        let (mut wire, mut log) = (link(1), Log::default());
        (1..=3).for_each(|n| wire.enqueue(Time::ZERO, packet(n), &mut log));
        assert_eq!(log.dropped, vec![3]);
    }
}
