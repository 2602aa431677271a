use super::*;
use crate::queue::{Limit, PieParams};
use crate::{AccessClass, Completion, Ecn, Hop, RxInfo};
use lasthop_signals::Signal;

#[derive(Default)]
struct Log {
    delivered: Vec<(u64, u32)>,
    dropped: Vec<(u32, Drop)>,
    marked: usize,
    completed: Vec<(u64, u64, u64)>,
    reports: usize,
    /// When a subframe was shown, its number, its PRBs and those that were used.
    shown: Vec<(u64, u64, u16, u16)>,
}

impl Outbox<u32> for Log {
    fn deliver(&mut self, at: Time, _to: Node, packet: Packet<u32>, _rx: &RxInfo) {
        self.marked += usize::from(packet.ecn == Ecn::Ce);
        self.delivered.push((at.as_nanos() / 1_000_000, packet.payload));
    }
    fn dropped(&mut self, _at: Time, packet: Packet<u32>, why: Drop) {
        self.dropped.push((packet.payload, why));
    }
    fn wants_completions(&self) -> bool {
        true
    }
    fn completed(&mut self, at: Time, completion: &Completion) {
        let ms = |at: Time| at.as_nanos() / 1_000_000;
        self.completed.push((ms(completion.queued_at), ms(completion.head_at), ms(at)));
    }
    fn driver(&mut self, at: Time, of: Node, signal: &Signal) {
        self.reports += usize::from(matches!(signal, Signal::Hop(_)));
        if let Signal::Subframe(shown) = signal {
            let given = shown.dcis.iter().map(|dci| dci.prb).sum();
            assert!(of == Node(1) && shown.dcis.iter().all(lasthop_signals::Dci::is_possible));
            self.shown.push((at.as_nanos() / 1_000_000, shown.number, shown.prb, given));
        }
    }
}

fn packet(len: u64, payload: u32) -> Packet<u32> {
    let (class, ecn) = (AccessClass::BestEffort, Ecn::NotEct);
    Packet { len: Bytes::new(len), src: CENTRE, dst: Dest::Node(Node(1)), class, flow_hash: 0, ecn, payload }
}

fn trace(stamps: &[u32]) -> DeliveryTrace {
    DeliveryTrace::new(stamps.to_vec()).expect("a right trace")
}

fn link(stamps: &[u32], queue: LinkKind, delay: Span) -> Link<u32> {
    let down = Params { trace: trace(stamps), queue, delay, shown: false };
    let up = Params { trace: trace(&[1]), queue: LinkKind::Infinite, delay, shown: false };
    Link::new(CENTRE, Node(1), &down, &up, Seed(1), "test")
}

fn ms(n: u64) -> Time {
    Time::ZERO + Span::from_millis(n)
}

#[test]
fn an_opportunity_serves_earlier_packets_or_is_lost() {
    let (mut link, mut log) = (link(&[5, 10, 10], LinkKind::Infinite, Span::from_millis(3)), Log::default());
    link.offer(ms(5), packet(1500, 1), &mut log);
    link.offer(Time::from_nanos(9_999_999), packet(1500, 2), &mut log);
    link.offer(ms(10), packet(1500, 3), &mut log);
    link.run_to(ms(100), &mut log);
    // The opportunities of 0 to 5 ms are over when the first comes; two at 10 ms; then 15.
    assert_eq!(log.delivered, [(13, 1), (13, 2), (18, 3)]);
    assert_eq!(log.completed, [(5, 10, 10), (9, 10, 10), (10, 15, 15)]);
    // Nothing was saved up in the 85 ms without packets.
    log.delivered.clear();
    (4..8).for_each(|n| link.offer(ms(101), packet(1500, n), &mut log));
    link.run_to(ms(200), &mut log);
    assert_eq!(log.delivered, [(108, 4), (113, 5), (113, 6), (118, 7)]);
}

#[test]
fn the_terminal_is_shown_available_and_used_capacity() {
    let down = Params { trace: trace(&[2, 2, 5]), queue: LinkKind::Infinite, delay: Span::from_millis(3), shown: true };
    let up = Params { shown: false, ..down.clone() };
    let (mut link, mut log) = (Link::new(CENTRE, Node(1), &down, &up, Seed(1), "test"), Log::default());
    (0..3).for_each(|n| link.offer(ms(0), packet(1500, n), &mut log));
    link.offer(ms(1), packet(373, 3), &mut log);
    while let Some(at) = link.next_event().filter(|at| *at <= ms(10)) {
        link.run_to(at, &mut log);
    }
    // An opportunity is sixteen PRBs: two at 2 ms, one at 5 ms, and the lap begins again at 5 ms. 377 octets are five PRBs of 94.
    let want = [
        (3, 0, 0, 0),
        (4, 1, 0, 0),
        (5, 2, 32, 32),
        (6, 3, 0, 0),
        (7, 4, 0, 0),
        (8, 5, 16, 16),
        (9, 6, 0, 0),
        (10, 7, 32, 5),
    ];
    assert_eq!(log.shown, want);
    assert_eq!(log.delivered, [(5, 0), (5, 1), (8, 2), (10, 3)]);
}

#[test]
fn packets_share_opportunities_to_the_byte_like_mahimahi() {
    // What mm-link does with packets of 700 bytes: 704 each, so that two leave at every opportunity and 96 bytes of a third do,
    // until they add up to one more.
    let (mut link, mut log) = (link(&[300], LinkKind::Infinite, Span::ZERO), Log::default());
    (0..32).for_each(|n| link.offer(Time::ZERO, packet(700, n), &mut log));
    link.run_to(ms(300 * 15), &mut log);
    let at = |n: u64| log.delivered.iter().filter(|(at, _)| *at == 300 * n).count();
    let expected = |n: u64| (1504 * n / 704 - 1504 * (n - 1) / 704) as usize;
    assert!((1..=14).all(|n| at(n) == expected(n)), "{:?}", log.delivered);
    assert_eq!(at(8), 3, "1504 * 8 / 704 = 17.09");
    // One that is longer than an opportunity takes several.
    link.offer(ms(300 * 20), packet(3004, 99), &mut log);
    link.run_to(ms(300 * 30), &mut log);
    assert_eq!(log.delivered.last(), Some(&(300 * 22, 99)));
}

#[test]
fn the_directions_share_nothing() {
    let (mut link, mut log) = (link(&[50], LinkKind::Infinite, Span::ZERO), Log::default());
    link.offer(Time::ZERO, packet(1500, 1), &mut log);
    link.offer(Time::ZERO, Packet { src: Node(1), dst: Dest::Node(CENTRE), ..packet(1500, 2) }, &mut log);
    link.offer(Time::ZERO, Packet { dst: Dest::Node(Node(7)), ..packet(1500, 3) }, &mut log);
    assert_eq!(link.next_event(), Some(ms(1)));
    link.run_to(ms(60), &mut log);
    assert_eq!((log.delivered, log.dropped), (vec![(50, 1), (1, 2)], vec![(3, Drop::Unreachable)]));
}

#[test]
fn limits_do_not_count_the_packet_in_service() {
    let full = |queue| {
        let (mut link, mut log) = (link(&[10], queue, Span::ZERO), Log::default());
        // 2 × 1504 = 3008; at 10 ms one is served, and 700 bytes of the next would fit no more in a part of one.
        (0..2).for_each(|n| link.offer(Time::ZERO, packet(2000, n), &mut log));
        link.run_to(ms(10), &mut log);
        assert_eq!(link.backlog(CENTRE), (2, Bytes::new(4000)), "one in service, one waits");
        (2..9).for_each(|n| link.offer(ms(11), packet(2000, n), &mut log));
        assert!(log.dropped.iter().all(|(_, why)| *why == Drop::QueueFull));
        7 - log.dropped.len()
    };
    assert_eq!(full(LinkKind::DropTail(Limit::Packets(4))), 3);
    assert_eq!(full(LinkKind::DropTail(Limit::Bytes(Bytes::new(4 * 2004)))), 3);
    assert_eq!(full(LinkKind::DropTail(Limit::Bytes(Bytes::new(4 * 2004 - 1)))), 2);
    assert_eq!(full(LinkKind::Infinite), 7);
}

/// A source that sends one packet a millisecond over a link that carries one every two: the delay of the last packets, drops and
/// marks.
fn overload(queue: LinkKind, ecn: Ecn) -> (f64, Vec<Drop>, usize) {
    let (mut link, mut log) = (link(&[2], queue, Span::ZERO), Log::default());
    for n in 0..20_000 {
        link.offer(ms(u64::from(n)), Packet { ecn, ..packet(1500, n) }, &mut log);
    }
    let last = &log.delivered[log.delivered.len() - 1000..];
    let mean = last.iter().map(|(at, n)| (at - u64::from(*n)) as f64).sum::<f64>() / 1000.0;
    (mean, log.dropped.iter().map(|(_, why)| *why).collect(), log.marked)
}

#[test]
fn each_discipline_keeps_the_queue_that_it_is_for() {
    // 250 packets at 2 ms each.
    let (delay, dropped, _) = overload(LinkKind::DropTail(Limit::Packets(250)), Ecn::NotEct);
    assert!((delay - 501.0).abs() < 2.0 && dropped.iter().all(|why| *why == Drop::QueueFull), "{delay} ms");
    let (delay, dropped, _) = overload(LinkKind::Infinite, Ecn::NotEct);
    assert!(delay > 9_000.0 && dropped.is_empty(), "{delay} ms");
    // PIE steers a source that does not give way to its target of 15 ms: half of the packets must go.
    let (delay, dropped, _) = overload(LinkKind::Pie(PieParams::default()), Ecn::NotEct);
    assert!((5.0..30.0).contains(&delay), "PIE: {delay} ms");
    assert!((9_000..11_000).contains(&dropped.len()) && dropped.contains(&Drop::QueueManagement));
    // CoDel's drops grow with the square root of time; in 20 s it is still far above its target.
    let codel =
        |ecn| LinkKind::Codel { target: Span::from_millis(5), interval: Span::from_millis(100), packets: 1000, ecn };
    let (_, dropped, marked) = overload(codel(false), Ecn::Ect0);
    assert!(dropped.contains(&Drop::QueueManagement) && marked == 0);
    let (_, dropped, marked) = overload(codel(true), Ecn::Ect0);
    assert!(!dropped.contains(&Drop::QueueManagement) && marked > 0);
}

#[test]
fn a_star_of_traces_reports_what_its_links_are_capable_of() {
    let down = Params { trace: trace(&[1]), queue: LinkKind::Infinite, delay: Span::ZERO, shown: false };
    let (mut star, mut log) = (Link::<u32>::star(2, &down, &down, Seed(1)), Log::default());
    Hop::enqueue(&mut star, ms(1), packet(1500, 1), &mut log);
    Hop::advance(&mut star, ms(400), &mut log);
    assert_eq!((log.delivered, log.reports), (vec![(2, 1)], 100));
    let mut link = link(&[1], LinkKind::Infinite, Span::ZERO);
    assert_eq!(link.rate(ms(400), CENTRE), Rate::from_bps(1504 * 8 * 1000));
}
