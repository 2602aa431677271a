//! A link from one centre to each of several stations, with a driver that reports: the counterpart of an access point where
//! stations share no medium.
//! Source:     [`wired`](crate::wired) and [`trace`](crate::trace) for the links; the report imitates what an access point's
//!             driver counts.
//! Equations:  airtime of a packet = len / rate of its link
//! Deviations: a group packet of a station reaches the centre only; stations do not reach each other.
//! Validity:   any rate > 0.
//! Checked by: tests::*

use crate::duplex::{Backlog, Duplex};
use crate::plan::Observe;
use crate::wired::{Impairments, Params, Wire};
use crate::{Completion, Dest, Drop, Hop, NextEvent, Outbox, Packet, RxInfo};
use lasthop_signals::{ChannelTime, HopReport, Node, Signal, StationReport};
use lasthop_units::{Seed, Span, Time};

/// The node in the middle.
pub const CENTRE: Node = Node(0);

/// How often the centre's driver reports: 250 times a second.
pub const REPORT_EVERY: Span = Span::from_millis(4);

/// Links between [`CENTRE`] and the stations `Node(1)`, `Node(2)`…
#[derive(Clone, Debug)]
pub struct Star<L> {
    arms: Vec<Arm<L>>,
    next_report: Time,
}

/// One link and what was counted on it.
#[derive(Clone, Debug)]
struct Arm<L> {
    link: L,
    count: StationReport,
}

impl<L> Star<L> {
    /// A star of these links: the first to `Node(1)`, and so on.
    pub fn of(links: impl IntoIterator<Item = L>) -> Star<L> {
        let arm = |(n, link)| Arm { link, count: StationReport::unseen(Node(n)) };
        Star { arms: (1..).zip(links).map(arm).collect(), next_report: Time::ZERO + REPORT_EVERY }
    }
}

impl<P> Star<Wire<P>> {
    /// A star with `stations` arms, each described by `down` from the centre and `up` towards it.
    pub fn new(stations: u16, down: Params, up: Params) -> Star<Wire<P>> {
        Star::of((1..=stations).map(|n| Wire::new(CENTRE, Node(n), down, up)))
    }

    /// The same star with impairments of every cable, before anything has crossed it.
    pub fn impaired(mut self, impairments: &Impairments, seed: Seed) -> Star<Wire<P>> {
        let arms = self.arms.into_iter().enumerate();
        let impaired = |(n, arm): (usize, Arm<Wire<P>>)| {
            let link = arm.link.impaired(impairments, seed, &format!("radio/star/{}", n + 1));
            Arm { link, ..arm }
        };
        self.arms = arms.map(impaired).collect();
        self
    }
}

impl<L> Star<L> {
    /// What the centre's driver would report at `now`.
    fn report<P>(&mut self, now: Time) -> HopReport
    where
        L: Duplex<P>,
    {
        let station = |arm: &mut Arm<L>| {
            let (packets, bytes) = arm.link.backlog(CENTRE);
            StationReport {
                backlog_packets: u32::try_from(packets).unwrap_or(u32::MAX),
                backlog_bytes: bytes,
                head_wait: Some(arm.link.oldest(CENTRE).map_or(Span::ZERO, |since| now.since(since))),
                phy_rate: arm.link.rate(now, CENTRE),
                ..arm.count
            }
        };
        let stations: Vec<_> = self.arms.iter_mut().map(station).collect();
        // The links do not share a medium; the busiest stands for the channel, and what one of them carries says nothing of others.
        let busy = stations.iter().filter_map(|station| station.tx_airtime).max();
        let channel = ChannelTime { active: now.since(Time::ZERO), busy, ..ChannelTime::default() };
        HopReport { channel, stations, ..HopReport::default() }
    }

    fn advance_links<P>(&mut self, now: Time, out: &mut impl Outbox<P>)
    where
        L: Duplex<P>,
    {
        for arm in &mut self.arms {
            arm.link.run_to(now, &mut Counted { out, count: &mut arm.count });
        }
    }
}

impl<P: Clone, L: Duplex<P>, O: Outbox<P>> Hop<P, O> for Star<L> {
    fn enqueue(&mut self, now: Time, packet: Packet<P>, out: &mut O) {
        self.advance(now, out);
        let arms = match (packet.src, packet.dst) {
            (CENTRE, Dest::Group) => &mut self.arms[..],
            (CENTRE, Dest::Node(station)) | (station, _) => match self.arms.get_mut(station.index().wrapping_sub(1)) {
                Some(arm) => std::slice::from_mut(arm),
                None => return out.dropped(now, packet, Drop::Unreachable),
            },
        };
        let Some((last, others)) = arms.split_last_mut() else {
            return out.dropped(now, packet, Drop::Unreachable);
        };
        for arm in others {
            arm.enqueue(now, packet.clone(), out);
        }
        last.enqueue(now, packet, out);
    }

    fn advance(&mut self, now: Time, out: &mut O) {
        while self.next_report <= now {
            let at = self.next_report;
            self.advance_links(at, out);
            out.driver(at, CENTRE, &Signal::Hop(self.report(at)));
            self.next_report = at + REPORT_EVERY;
        }
        self.advance_links(now, out);
    }
}

impl<L: NextEvent> NextEvent for Star<L> {
    fn next_event(&self) -> Option<Time> {
        self.arms.iter().filter_map(|arm| arm.link.next_event()).chain([self.next_report]).min()
    }
}

impl<L: Backlog> Observe for Star<L> {
    fn waiting(&self, from: Node, to: Node) -> usize {
        let station = from.max(to).index().checked_sub(1);
        station.and_then(|place| self.arms.get(place)).map_or(0, |arm| arm.link.backlog(from).0)
    }
}

impl<L> Arm<L> {
    fn enqueue<P>(&mut self, now: Time, packet: Packet<P>, out: &mut impl Outbox<P>)
    where
        L: Duplex<P>,
    {
        self.link.offer(now, packet, &mut Counted { out, count: &mut self.count });
    }
}

/// Passes everything on and counts it.
struct Counted<'a, O> {
    out: &'a mut O,
    count: &'a mut StationReport,
}

impl<P, O: Outbox<P>> Outbox<P> for Counted<'_, O> {
    fn deliver(&mut self, at: Time, to: Node, packet: Packet<P>, rx: &RxInfo) {
        if to == CENTRE {
            self.count.rx_packets += 1;
            self.count.rx_bytes += packet.len;
            *self.count.rx_airtime.get_or_insert(Span::ZERO) += rx.rate.time_for(packet.len).unwrap_or_default();
        } else {
            self.count.tx_packets += 1;
            *self.count.tx_attempts.get_or_insert(0) += 1;
            *self.count.tx_ppdus.get_or_insert(0) += 1;
            self.count.tx_bytes += packet.len;
            *self.count.tx_airtime.get_or_insert(Span::ZERO) += rx.rate.time_for(packet.len).unwrap_or_default();
        }
        self.out.deliver(at, to, packet, rx);
    }

    fn dropped(&mut self, at: Time, packet: Packet<P>, why: Drop) {
        if packet.src == CENTRE {
            self.count.queue_drops += 1;
        }
        self.out.dropped(at, packet, why);
    }

    fn wants_completions(&self) -> bool {
        self.out.wants_completions()
    }

    fn completed(&mut self, at: Time, completion: &Completion) {
        self.out.completed(at, completion);
    }

    fn driver(&mut self, at: Time, of: Node, signal: &Signal) {
        self.out.driver(at, of, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AccessClass, Ecn};
    use lasthop_units::{Bytes, Rate};

    #[derive(Default)]
    struct Log {
        delivered: Vec<(Node, u32)>,
        dropped: usize,
        reports: Vec<(Time, HopReport)>,
    }

    impl Outbox<u32> for Log {
        fn deliver(&mut self, _at: Time, to: Node, packet: Packet<u32>, _rx: &RxInfo) {
            self.delivered.push((to, packet.payload));
        }
        fn dropped(&mut self, _at: Time, _packet: Packet<u32>, _why: Drop) {
            self.dropped += 1;
        }
        fn driver(&mut self, at: Time, _of: Node, signal: &Signal) {
            if let Signal::Hop(report) = signal {
                self.reports.push((at, report.clone()));
            }
        }
    }

    fn packet(src: Node, dst: Dest, payload: u32) -> Packet<u32> {
        let (len, class, ecn) = (Bytes::new(1500), AccessClass::BestEffort, Ecn::NotEct);
        Packet { len, src, dst, class, flow_hash: 0, ecn, payload }
    }

    /// 12 Mbit/s: a millisecond a packet.
    fn star() -> Star<Wire<u32>> {
        let line = Params { rate: Rate::from_mbit(12), delay: Span::ZERO, queue_packets: 5 };
        Star::new(3, line, line)
    }

    fn ms(n: u64) -> Time {
        Time::from_nanos(n * 1_000_000)
    }

    #[test]
    fn a_group_packet_reaches_all_once_and_a_unicast_packet_one() {
        let (mut star, mut log) = (star(), Log::default());
        star.enqueue(Time::ZERO, packet(CENTRE, Dest::Group, 1), &mut log);
        star.enqueue(Time::ZERO, packet(CENTRE, Dest::Node(Node(2)), 2), &mut log);
        star.enqueue(Time::ZERO, packet(Node(3), Dest::Node(CENTRE), 3), &mut log);
        star.advance(ms(10), &mut log);
        log.delivered.sort_by_key(|(to, payload)| (*payload, *to));
        assert_eq!(log.delivered, [(Node(1), 1), (Node(2), 1), (Node(3), 1), (Node(2), 2), (CENTRE, 3)]);
    }

    #[test]
    fn the_driver_reports_backlog_wait_and_airtime_every_4_ms() {
        let (mut star, mut log) = (star(), Log::default());
        for n in 0..8 {
            star.enqueue(Time::ZERO, packet(CENTRE, Dest::Node(Node(1)), n), &mut log);
        }
        assert_eq!(log.dropped, 2);
        star.advance(ms(9), &mut log);
        let [(first, report), (second, _)] = &log.reports[..] else { panic!("two reports in 9 ms") };
        assert_eq!((*first, *second), (ms(4), ms(8)));
        let station = report.stations[0];
        assert_eq!((station.backlog_packets, station.backlog_bytes), (2, Bytes::new(3000)));
        assert_eq!((station.head_wait, station.tx_airtime), (Some(Span::from_millis(4)), Some(Span::from_millis(4))));
        assert_eq!((station.tx_packets, station.queue_drops), (4, 2));
    }

    #[test]
    fn a_packet_for_nobody_is_unreachable() {
        let (mut star, mut log) = (star(), Log::default());
        star.enqueue(Time::ZERO, packet(CENTRE, Dest::Node(Node(4)), 1), &mut log);
        star.enqueue(Time::ZERO, packet(CENTRE, Dest::Node(CENTRE), 1), &mut log);
        assert_eq!(log.dropped, 2);
    }
}
