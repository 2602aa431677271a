//! A full-duplex wired link: a drop-tail queue, a serialiser and a propagation delay in each direction.
//! Source:     the textbook store-and-forward link; what `tc tbf` and `netem delay loss` make together.
//! Equations:  departure d: integral of rate from max(now, last departure) to d = len;   arrival = d + delay + jitter
//! Symbols:    jitter: uniform in [0, `Impairments::jitter`], and as much longer as keeps packets in order
//! Deviations: the packet being serialised does not count against the queue limit. A lost packet takes its time on the link
//!             and is missed when it would have arrived.     Validity: any rate > 0.
//! Checked by: tests::*

use crate::duplex::{Backlog, Duplex};
use crate::plan::Observe;
use crate::{Completion, Dest, Drop, Hop, NextEvent, Outbox, Outcome, Packet, RxInfo};
use lasthop_signals::Node;
use lasthop_units::{Bytes, Rate, Seed, Span, Stream, Time};
use rand::RngExt;
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

/// What befalls a link, both of its directions alike.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Impairments {
    /// Rates from a time on, rising in time; until the first, that of [`Params`]. A change holds for the rest of a packet that
    /// is being serialised, too.
    pub changes: Vec<(Time, Rate)>,
    /// Probability with which a packet is damaged on its way, each by itself.
    pub loss: f64,
    /// The most by which a packet comes later than the delay says.
    pub jitter: Span,
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
    /// `None`: it is never impaired.
    impaired: Option<Box<Impaired>>,
    /// In the order of their coming: first those that have left and are on the wire, then those that wait or are being
    /// serialised.
    packets: VecDeque<Queued<P>>,
    /// How many are on the wire.
    flying: usize,
    /// When the last of those that have left did.
    free: Time,
}

/// What befalls a direction, and where its losses and jitter are drawn from.
#[derive(Clone, Debug)]
struct Impaired {
    impairments: Impairments,
    chance: Stream,
}

#[derive(Clone, Debug)]
struct Queued<P> {
    arrived: Time,
    departs: Time,
    /// By how much more than the link's delay it comes later.
    late: Span,
    lost: bool,
    packet: Packet<P>,
}

impl<P> Wire<P> {
    /// A link from `a` to `b` described by `ab`, and back by `ba`.
    pub fn new(a: Node, b: Node, ab: Params, ba: Params) -> Wire<P> {
        let line = |params| Line { params, impaired: None, packets: VecDeque::new(), flying: 0, free: Time::ZERO };
        Wire { ends: [a, b], lines: [line(ab), line(ba)] }
    }

    /// The same link with impairments, before anything has crossed it. Chance is drawn from the streams of `seed` that bear
    /// `name` and a direction.
    pub fn impaired(mut self, impairments: &Impairments, seed: Seed, name: &str) -> Wire<P> {
        for (line, direction) in self.lines.iter_mut().zip(["there", "back"]) {
            let chance = seed.stream(&format!("{name}/{direction}"));
            let impaired = *impairments != Impairments::default();
            line.impaired = impaired.then(|| Box::new(Impaired { impairments: impairments.clone(), chance }));
        }
        self
    }

    /// Packets that waited to leave `from` when the wire was last advanced, the one being serialised included.
    pub fn backlog(&self, from: Node) -> usize {
        self.direction(from).map_or(0, |i| self.lines[i].packets.len() - self.lines[i].flying)
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
        let starts = line.packets.back().map_or(now, |last| last.departs.max(now));
        let Some(departs) = line.departure(starts, packet.len) else {
            return out.dropped(now, packet, Drop::Unreachable);
        };
        let (late, lost) = line.fate(departs);
        line.packets.push_back(Queued { arrived: now, departs, late, lost, packet });
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
            while line.next_arrival().is_some_and(|at| at <= now) {
                let head = line.packets.pop_front().expect("just seen");
                line.flying -= 1;
                let at = head.departs + line.params.delay + head.late;
                if head.lost {
                    out.dropped(at, head.packet, Drop::Damaged);
                    continue;
                }
                let rx = RxInfo { queued_at: head.arrived, rate: line.rate(head.departs) };
                out.deliver(at, self.ends[1 - from], head.packet, &rx);
            }
        }
    }
}

impl<P> Line<P> {
    /// The rate at `at`.
    #[inline]
    fn rate(&self, at: Time) -> Rate {
        let Some(impaired) = &self.impaired else { return self.params.rate };
        let changes = &impaired.impairments.changes;
        let past = changes.partition_point(|(from, _)| *from <= at);
        past.checked_sub(1).map_or(self.params.rate, |last| changes[last].1)
    }

    /// When the last bit of a packet leaves that is serialised from `starts` on; `None` if it never does.
    #[inline]
    fn departure(&self, starts: Time, len: Bytes) -> Option<Time> {
        let Some(impaired) = &self.impaired else {
            return self.params.rate.time_for(len).map(|span| starts + span);
        };
        let (mut at, mut rest) = (starts, u128::from(len.get()) * BIT_NS);
        let changes = &impaired.impairments.changes;
        let past = changes.partition_point(|(from, _)| *from <= at);
        for (until, _) in &changes[past..] {
            let sent = u128::from(self.rate(at).as_bps()) * u128::from(until.since(at).as_nanos());
            if sent >= rest {
                break;
            }
            (at, rest) = (*until, rest - sent);
        }
        let rate = u128::from(self.rate(at).as_bps());
        (rate > 0).then(|| u64::try_from(rest.div_ceil(rate)).ok()).flatten().map(|ns| at + Span::from_nanos(ns))
    }

    /// By how much a packet that departs then comes later, and whether it is lost.
    #[inline]
    fn fate(&mut self, departs: Time) -> (Span, bool) {
        let Some(impaired) = &mut self.impaired else { return (Span::ZERO, false) };
        let Impaired { impairments: Impairments { loss, jitter, .. }, chance } = impaired.as_mut();
        let lost = chance.random::<f64>() < *loss;
        let late = jitter.scale(chance.random::<f64>());
        let before = self.packets.back().map_or(Span::ZERO, |last| (last.departs + last.late).since(departs));
        (late.max(before), lost)
    }

    /// When the first of all packets arrives, or is missed.
    #[inline]
    fn next_arrival(&self) -> Option<Time> {
        self.packets.front().map(|head| head.departs + self.params.delay + head.late)
    }
}

/// Bits of an octet, times nanoseconds of a second.
const BIT_NS: u128 = 8 * 1_000_000_000;

impl<P> Queued<P> {
    /// What there is to say when its last bit has left; the line was `free` from then on.
    fn completion(&self, free: Time) -> Completion {
        let Packet { len, src: from, dst, class, flow_hash, .. } = self.packet;
        let head_at = self.arrived.max(free);
        Completion { from, dst, len, class, flow_hash, queued_at: self.arrived, head_at, outcome: Outcome::Sent }
    }
}

impl<P> Backlog for Wire<P> {
    fn backlog(&self, from: Node) -> (usize, Bytes) {
        (self.backlog(from), self.waiting(from).map(|queued| queued.packet.len).sum())
    }
    fn oldest(&self, from: Node) -> Option<Time> {
        self.waiting(from).next().map(|queued| queued.arrived)
    }
    fn rate(&mut self, now: Time, from: Node) -> Rate {
        self.direction(from).map_or(Rate::ZERO, |i| self.lines[i].rate(now))
    }
}

impl<P> Observe for Wire<P> {
    fn waiting(&self, from: Node, _: Node) -> usize {
        self.backlog(from)
    }
}

impl<P> Duplex<P> for Wire<P> {
    fn offer<O: Outbox<P>>(&mut self, now: Time, packet: Packet<P>, out: &mut O) {
        self.enqueue(now, packet, out);
    }
    fn run_to<O: Outbox<P>>(&mut self, now: Time, out: &mut O) {
        self.advance(now, out);
    }
}

impl<P> NextEvent for Wire<P> {
    // A departure shows nowhere but in the backlog, which is as of the last advance: it needs no event of its own.
    fn next_event(&self) -> Option<Time> {
        self.lines.iter().filter_map(Line::next_arrival).min()
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
    fn packets_leave_a_serialisation_apart_and_arrive_after_delay() {
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

    fn impaired(queue_packets: usize, impairments: Impairments) -> Wire<u32> {
        link(queue_packets).impaired(&impairments, Seed(1), "wire")
    }

    #[test]
    fn a_rate_change_holds_for_the_rest_of_the_current_packet() {
        let ms = |n: u64| Time::from_nanos(n * 1_000_000);
        let changes = vec![
            (Time::from_nanos(500_000), Rate::from_bps(1_200_000)),
            (ms(8), Rate::from_bps(1_000)),
            (ms(174), Rate::from_mbit(12)),
        ];
        let (mut wire, mut log) = (impaired(10, Impairments { changes, ..Impairments::default() }), Log::default());
        (1..=4).for_each(|n| wire.enqueue(Time::ZERO, packet(n), &mut log));
        wire.advance(ms(1000), &mut log);
        // Half of the first leaves at 12 Mbit/s and half at a tenth of it, by 5.5 ms. 250 of the second's 1000 ns/bit leave until 8 ms, next
        // to nothing until 174 ms: 12 000 - 3000 - 166 bits remain, 0.736167 ms at 12 Mbit/s.
        let second = 174_000_000 + ((12_000_u64 - 3_000 - 166) * 1_000).div_ceil(12) + 10_000_000;
        let at = [15_500_000, second, second + 1_000_000, second + 2_000_000].map(Time::from_nanos);
        assert_eq!(log.delivered, vec![(at[0], 1), (at[1], 2), (at[2], 3), (at[3], 4)]);
        let (mut late, mut wire) = (
            Log::default(),
            impaired(10, Impairments { changes: vec![(ms(1), Rate::from_bps(1_200_000))], ..Impairments::default() }),
        );
        wire.enqueue(ms(20), packet(1), &mut late);
        wire.advance(ms(100), &mut late);
        assert_eq!(late.delivered, vec![(ms(40), 1)], "a change long ago");
    }

    #[test]
    fn losses_match_their_probability_and_still_take_link_time() {
        let impairments = Impairments { loss: 0.1, ..Impairments::default() };
        let (mut wire, mut log) = (impaired(20_000, impairments), Log::default());
        (0..10_000).for_each(|n| wire.enqueue(Time::ZERO, packet(n), &mut log));
        wire.advance(Time::from_nanos(u64::MAX / 2), &mut log);
        assert_eq!(log.delivered.len() + log.dropped.len(), 10_000);
        // Four standard deviations of a binomial of 10 000 with p = 0.1 are 120.
        assert!(
            (880..=1_120).contains(&log.dropped.len()),
            "{} of 10 000 lost, expected 1000 ± 120",
            log.dropped.len()
        );
        assert!(
            log.delivered.iter().all(|(at, n)| *at == Time::from_nanos((u64::from(*n) + 1) * 1_000_000 + 10_000_000))
        );
    }

    #[test]
    fn jitter_is_spread_over_its_range_and_keeps_the_order() {
        let impairments = Impairments { jitter: Span::from_millis(4), ..Impairments::default() };
        let (mut wire, mut log) = (impaired(10, impairments), Log::default());
        let due = |n: u32| Time::from_nanos(u64::from(n) * 10_000_000 + 11_000_000);
        for n in 0..1_000 {
            wire.enqueue(Time::from_nanos(u64::from(n) * 10_000_000), packet(n), &mut log);
        }
        wire.advance(Time::from_nanos(u64::MAX / 2), &mut log);
        let late: Vec<f64> = log.delivered.iter().map(|(at, n)| at.since(due(*n)).as_millis_f64()).collect();
        let mean = late.iter().sum::<f64>() / late.len() as f64;
        // Of a uniform variable on 0 to 4 ms: mean 2, and 4 standard errors of it are 4/sqrt(12)/sqrt(1000)*4 = 0.146.
        assert!((mean - 2.0).abs() < 0.146 && late.iter().all(|ms| (0.0..=4.0).contains(ms)), "mean {mean} ms");
        // Back to back they would overtake each other.
        let mut log = Log::default();
        (0..10).for_each(|n| wire.enqueue(Time::from_nanos(u64::MAX / 2), packet(n), &mut log));
        wire.advance(Time::from_nanos(u64::MAX), &mut log);
        assert_eq!(log.delivered.iter().map(|(_, n)| *n).collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
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
