use super::model::Noise;
use super::*;
use crate::{AccessClass, Completion, Dest, Drop, Ecn, Hop, NextEvent, Outbox, Outcome, Packet, RxInfo};
use lasthop_signals::{HopReport, Node, Signal};
use lasthop_units::{Bytes, Rate, Seed, Span, Time};

/// Everything that comes out of a hop.
#[derive(Default)]
struct Log {
    delivered: Vec<(Time, Node, u32, RxInfo)>,
    dropped: Vec<(Time, u32, Drop)>,
    receptions: Vec<Reception>,
    ppdus: Vec<PpduRecord>,
    reports: Vec<(Time, Node, HopReport)>,
}

impl Outbox<u32> for Log {
    fn deliver(&mut self, at: Time, to: Node, packet: Packet<u32>, rx: &RxInfo) {
        self.delivered.push((at, to, packet.payload, *rx));
    }
    fn dropped(&mut self, at: Time, packet: Packet<u32>, why: Drop) {
        self.dropped.push((at, packet.payload, why));
    }
    fn driver(&mut self, at: Time, of: Node, signal: &Signal) {
        if let Signal::Hop(report) = signal {
            self.reports.push((at, of, report.clone()));
        }
    }
}

impl Air<u32> for Log {
    fn received(&mut self, _at: Time, _to: Node, reception: &Reception) {
        self.receptions.push(*reception);
    }
    fn ppdu(&mut self, _at: Time, ppdu: &PpduRecord) {
        self.ppdus.push(ppdu.clone());
    }
}

impl Log {
    fn payloads(&self) -> Vec<u32> {
        self.delivered.iter().map(|entry| entry.2).collect()
    }
    fn data(&self) -> impl Iterator<Item = &PpduRecord> {
        self.ppdus.iter().filter(|ppdu| ppdu.kind == PpduKind::Data)
    }
}

const AP: Node = Node(0);

fn bss(standard: Standard, stations: u16, mcs: Mcs) -> Params {
    let width = if standard == Standard::Dot11ac { Width::Mhz80 } else { Width::Mhz20 };
    let mut nodes = vec![NodeParams::new(Role::Ap, mcs)];
    nodes.extend((0..stations).map(|_| NodeParams::new(Role::Station { ap: AP }, mcs)));
    let mut params = Params::new(standard, width, GuardInterval::Ns800, nodes);
    params.beacons = None;
    params
}

fn peers(standard: Standard, count: u16, mcs: Mcs) -> Params {
    let nodes = (0..count).map(|_| NodeParams::new(Role::Peer, mcs)).collect();
    Params::new(standard, Width::Mhz20, GuardInterval::Ns800, nodes)
}

fn saturated(from: u16, to: u16) -> Background {
    Background {
        from: Node(from),
        to: Node(to),
        class: AccessClass::BestEffort,
        packet: Bytes::new(1500),
        load: Load::Saturated,
        active: Vec::new(),
    }
}

fn hop(params: Params) -> Wifi<u32> {
    Wifi::new(params.validate().expect("legal"), Seed(7))
}

fn packet(src: Node, dst: Dest, payload: u32) -> Packet<u32> {
    Packet { len: Bytes::new(1500), src, dst, class: AccessClass::BestEffort, flow_hash: 0, ecn: Ecn::NotEct, payload }
}

fn us(us: u64) -> Time {
    Time::ZERO + Span::from_micros(us)
}

fn secs(s: u64) -> Time {
    Time::ZERO + Span::from_secs(s)
}

/// Data PPDUs and received MPDUs by transmitter.
fn shares(log: &Log, nodes: usize) -> Vec<(u64, u64)> {
    let mut shares = vec![(0, 0); nodes];
    for ppdu in log.data() {
        shares[ppdu.from.index()].0 += 1;
        shares[ppdu.from.index()].1 += u64::from(ppdu.received);
    }
    shares
}

#[test]
fn a_packet_on_an_idle_channel_leaves_at_a_slot_boundary() {
    let (mut hop, mut log) = (hop(bss(Standard::Dot11ac, 1, Mcs::new(4, 1))), Log::default());
    // Boundaries are at 43 us + k * 9 us; 1000 us lies between those at 997 and 1006.
    hop.enqueue(us(1_000), packet(AP, Dest::Node(Node(1)), 1), &mut log);
    assert_eq!(hop.next_event(), Some(us(1_006)));
    hop.advance(us(2_000), &mut log);
    // 1542 octets at 175.5 Mbit/s: 112 us. Ack at 24 Mbit/s: 28 us, a SIFS later.
    let data = &log.ppdus[0];
    assert_eq!((data.start, data.duration, data.psdu), (us(1_006), Span::from_micros(112), Bytes::new(1_542)));
    let ack = &log.ppdus[1];
    assert_eq!((ack.kind, ack.start, ack.duration), (PpduKind::Ack, us(1_006 + 112 + 16), Span::from_micros(28)));
    assert_eq!(log.delivered[0].0, us(1_118));
    assert_eq!(log.delivered[0].3.queued_at, us(1_000));
}

#[test]
fn a_saturated_sender_reaches_the_closed_form() {
    // T = AIFS + mean backoff + PPDU + SIFS + BlockAck, 64 MPDUs each.
    let mut params = bss(Standard::Dot11ac, 1, Mcs::new(9, 1));
    params.background = vec![saturated(0, 1)];
    let (mut hop, mut log) = (hop(params), Log::default());
    hop.advance(secs(4), &mut log);
    let symbols = ((64 * 1_544 - 2) * 8 + 16 + 6u64).div_ceil(1_560);
    let cycle_us = 43.0 + 67.5 + (40 + 4 * symbols + 16 + 32) as f64;
    let expected = 4e6 / cycle_us * 64.0;
    let got = shares(&log, 2)[0].1 as f64;
    assert!((got / expected - 1.0).abs() < 0.005, "{got} MPDUs, closed form {expected}");
    assert!(log.data().all(|ppdu| ppdu.mpdus == 64));
}

#[test]
fn a_slow_link_is_bounded_by_the_duration_limit() {
    let mut params = bss(Standard::Dot11ac, 1, Mcs::new(0, 1));
    params.background = vec![saturated(0, 1)];
    let (mut hop, mut log) = (hop(params), Log::default());
    hop.advance(secs(1), &mut log);
    // 117 bits a symbol: 12 MPDUs last 5112 us, 13 would last 5536 us.
    assert!(log.data().all(|ppdu| ppdu.mpdus == 12 && ppdu.duration <= Span::from_micros(5_484)));
}

#[test]
fn an_ht_ampdu_is_bounded_by_its_length() {
    let mut params = bss(Standard::Dot11n(Band::Ghz5), 1, Mcs::new(7, 4));
    params.background = vec![saturated(0, 1)];
    let (mut hop, mut log) = (hop(params), Log::default());
    hop.advance(secs(1), &mut log);
    // 65 535 octets hold 42 subframes of 1544.
    assert!(log.data().all(|ppdu| ppdu.mpdus == 42));
}

#[test]
fn equal_stations_share_equally() {
    for standard in [Standard::Dot11g, Standard::Dot11ac] {
        let mut params = bss(standard, 5, Mcs::new(4, 1));
        params.background = (1..=5).map(|station| saturated(station, 0)).collect();
        let (mut hop, mut log) = (hop(params), Log::default());
        hop.advance(secs(if standard == Standard::Dot11g { 40 } else { 200 }), &mut log);
        let shares: Vec<f64> = shares(&log, 6)[1..].iter().map(|share| share.1 as f64).collect();
        let jain = lasthop_units::stats::jain(&shares).expect("five shares");
        assert!(jain > 0.998, "{standard:?}: {shares:?}");
    }
}

#[test]
fn stations_hidden_from_each_other_collide_far_more_often() {
    let lost = |hidden: bool| {
        let mut params = bss(Standard::Dot11a, 2, Mcs::new(4, 1));
        if hidden {
            params.reach.set_both(Node(1), Node(2), Reach::None);
        }
        params.background = vec![saturated(1, 0), saturated(2, 0)];
        let (mut hop, mut log) = (hop(params), Log::default());
        hop.advance(secs(10), &mut log);
        let frames = log.data().count() as f64;
        log.data().filter(|ppdu| ppdu.received == 0).count() as f64 / frames
    };
    let (open, hidden) = (lost(false), lost(true));
    assert!(open > 0.05 && open < 0.15, "{open}");
    assert!(hidden > 0.3, "{hidden}");
}

#[test]
fn an_unsensed_interferer_destroys_and_a_sensed_one_defers() {
    // 2 sends to 3, out of reach of 0 and 1 but for what 2 does to 1.
    let delivered = |reach: Reach| {
        let mut params = peers(Standard::Dot11a, 4, Mcs::new(4, 1));
        for (a, b) in [(0, 2), (0, 3), (1, 2), (1, 3)] {
            params.reach.set_both(Node(a), Node(b), Reach::None);
        }
        params.reach.set(Node(2), Node(1), reach);
        if reach == Reach::Senses {
            params.reach.set_both(Node(2), Node(0), Reach::Senses);
        }
        params.background = vec![saturated(0, 1), saturated(2, 3)];
        let (mut hop, mut log) = (hop(params), Log::default());
        hop.advance(secs(5), &mut log);
        shares(&log, 4)[0].1
    };
    let (alone, spoilt, sensed) = (delivered(Reach::None), delivered(Reach::Interferes), delivered(Reach::Senses));
    assert!(spoilt < alone / 10, "{alone} {spoilt}");
    assert!(sensed > alone / 3 && sensed < alone * 2 / 3, "{alone} {sensed}");
}

#[test]
fn a_frozen_backoff_goes_on_where_it_stopped() {
    let mut params = bss(Standard::Dot11a, 3, Mcs::new(7, 1));
    params.background = (1..=3).map(|station| saturated(station, 0)).collect();
    let (mut hop, mut log) = (hop(params), Log::default());
    hop.advance(secs(20), &mut log);
    // Idle slots that each station has counted since its last success: over however many idle periods they are spread,
    // they add up to its one draw from 0 to 15. A collision starts anew, as windows double.
    let mut counted: [Option<u64>; 4] = [None; 4];
    let (mut draws, mut idle_from) = (Vec::new(), Time::ZERO);
    for ppdu in &log.ppdus {
        let end = ppdu.start + ppdu.duration;
        if ppdu.kind == PpduKind::Data && ppdu.received == 0 {
            counted = [None; 4];
        } else if ppdu.kind == PpduKind::Data {
            let idle = ppdu.start.since(idle_from).saturating_sub(Span::from_micros(34));
            for slots in counted.iter_mut().flatten() {
                assert_eq!(idle.as_nanos() % 9_000, 0);
                *slots += idle.as_micros() / 9;
            }
            draws.extend(counted[ppdu.from.index()]);
            counted[ppdu.from.index()] = Some(0);
        }
        idle_from = end;
    }
    assert!(draws.len() > 5_000, "{}", draws.len());
    assert_eq!(draws.iter().max(), Some(&15));
    assert_eq!(draws.iter().min(), Some(&0));
}

#[test]
fn noise_is_repaired_in_order_and_counted() {
    let mut params = bss(Standard::Dot11ac, 1, Mcs::new(9, 2));
    params.nodes[1].mpdu_error = 0.3;
    let (mut hop, mut log) = (hop(params), Log::default());
    for n in 0..500 {
        hop.enqueue(us(10), packet(AP, Dest::Node(Node(1)), n), &mut log);
    }
    hop.advance(secs(1), &mut log);
    assert_eq!(log.payloads(), (0..500).collect::<Vec<_>>());
    assert!(log.dropped.is_empty());
    let (_, _, report) = log.reports.last().expect("250 a second");
    let station = report.stations[0];
    assert_eq!((station.tx_packets, station.tx_failed, station.backlog_packets), (500, Some(0), 0));
    let [retries, attempts] = [station.tx_retries, station.tx_attempts].map(|count| count.expect("counted") as f64);
    let ratio = retries / attempts;
    assert!((ratio - 0.3).abs() < 0.05, "{ratio}");
    assert!(log.receptions.iter().any(|reception| reception.retries > 0));
}

#[test]
fn frames_given_up_leave_no_hole_that_blocks_those_behind() {
    let mut params = bss(Standard::Dot11ac, 1, Mcs::new(9, 2));
    params.nodes[1].mpdu_error = 0.5;
    params.retry_limit = 2;
    let (mut hop, mut log) = (hop(params), Log::default());
    for n in 0..1_000 {
        hop.enqueue(us(10), packet(AP, Dest::Node(Node(1)), n), &mut log);
    }
    hop.advance(secs(2), &mut log);
    assert_eq!(log.delivered.len() + log.dropped.len(), 1_000);
    assert!(log.dropped.iter().all(|entry| entry.2 == Drop::RetryLimit));
    let share = log.dropped.len() as f64 / 1_000.0;
    assert!((share - 0.25).abs() < 0.05, "{share}");
    assert!(log.payloads().is_sorted());
    assert!(log.ppdus.iter().any(|ppdu| ppdu.kind == PpduKind::BlockAckReq));
    assert_eq!(hop.backlog(AP, Node(1)), 0);
}

#[test]
fn a_dead_link_drops_everything_after_the_retry_limit() {
    for standard in [Standard::Dot11a, Standard::Dot11ac] {
        let mut params = bss(standard, 1, Mcs::new(4, 1));
        params.nodes[1].mpdu_error = 1.0;
        let (mut hop, mut log) = (hop(params), Log::default());
        for n in 0..100 {
            hop.enqueue(us(10), packet(AP, Dest::Node(Node(1)), n), &mut log);
        }
        hop.advance(secs(5), &mut log);
        assert_eq!((log.delivered.len(), log.dropped.len()), (0, 100), "{standard:?}");
        assert_eq!(log.reports.last().expect("reports").2.stations[0].tx_attempts, Some(700));
    }
}

#[test]
fn a_group_packet_reaches_every_member_once_at_the_lowest_rate() {
    let (mut hop, mut log) = (hop(bss(Standard::Dot11ac, 3, Mcs::new(9, 1))), Log::default());
    hop.enqueue(us(100), packet(AP, Dest::Group, 5), &mut log);
    hop.enqueue(us(5_000), packet(Node(2), Dest::Group, 6), &mut log);
    hop.advance(us(20_000), &mut log);
    let receivers: Vec<(u16, u32)> = log.delivered.iter().map(|entry| (entry.1.0, entry.2)).collect();
    // A station's group packet goes to its access point, which sends it out again to the others.
    assert_eq!(receivers, [(1, 5), (2, 5), (3, 5), (0, 6), (1, 6), (3, 6)]);
    let group = log.data().find(|ppdu| ppdu.to.is_none()).expect("one group frame");
    assert_eq!(group.rate, Rate::from_mbit(6));
}

#[test]
fn packets_to_strangers_are_unreachable() {
    let (mut hop, mut log) = (hop(bss(Standard::Dot11ac, 2, Mcs::new(9, 1))), Log::default());
    hop.enqueue(us(1), packet(Node(1), Dest::Node(Node(2)), 1), &mut log);
    hop.enqueue(us(1), packet(AP, Dest::Node(Node(9)), 2), &mut log);
    hop.enqueue(us(1), packet(Node(9), Dest::Node(AP), 3), &mut log);
    hop.enqueue(us(1), Packet { len: Bytes::new(3_000), ..packet(AP, Dest::Node(Node(1)), 4) }, &mut log);
    assert!(log.dropped.iter().all(|entry| entry.2 == Drop::Unreachable));
    assert_eq!(log.dropped.len(), 4);
}

#[test]
fn the_rate_follows_its_trace() {
    let mut params = bss(Standard::Dot11ac, 1, Mcs::new(9, 1));
    let steps = vec![(Time::ZERO, Mcs::new(9, 1)), (secs(1), Mcs::new(0, 1)), (secs(2), Mcs::new(4, 1))];
    params.nodes[1].rate = RateChoice::Trace(steps);
    params.background = vec![saturated(0, 1)];
    let (mut hop, mut log) = (hop(params), Log::default());
    hop.advance(secs(3), &mut log);
    for ppdu in log.data() {
        let expected = [3_900, 292, 1_755][ppdu.start.as_nanos() as usize / 1_000_000_000];
        assert_eq!(ppdu.rate.as_bps() / 100_000, expected);
    }
}

#[test]
fn beacons_come_at_their_interval() {
    let mut params = bss(Standard::Dot11ac, 1, Mcs::new(9, 1));
    params.beacons = Some(Beacons::default());
    let (mut hop, mut log) = (hop(params), Log::default());
    hop.advance(secs(10), &mut log);
    let beacons: Vec<&PpduRecord> = log.ppdus.iter().filter(|ppdu| ppdu.kind == PpduKind::Beacon).collect();
    assert!((97..=98).contains(&beacons.len()), "{}", beacons.len());
    assert!(beacons.iter().all(|beacon| beacon.duration == Span::from_micros(20 + 4 * 85)));
}

#[test]
fn an_active_neighbour_takes_its_share_undelivered() {
    let mut params = bss(Standard::Dot11ac, 1, Mcs::new(9, 1));
    params.nodes.extend([Role::Neighbour; 2].map(|role| NodeParams::new(role, Mcs::new(9, 1))));
    params.reach = ReachMatrix::all_hear_all(4);
    params.background = vec![
        saturated(0, 1),
        Background {
            load: Load::Offered(Rate::from_mbit(50)),
            active: vec![(secs(1), secs(2)), (secs(3), secs(4))],
            ..saturated(2, 3)
        },
    ];
    let (mut hop, mut log) = (hop(params), Log::default());
    hop.advance(secs(5), &mut log);
    assert!(log.delivered.is_empty() && log.dropped.is_empty());
    let mut received = [0u64; 5];
    for ppdu in log.data().filter(|ppdu| ppdu.from == Node(2)) {
        received[ppdu.start.as_nanos() as usize / 1_000_000_000] += u64::from(ppdu.received);
    }
    for (second, count) in received.into_iter().enumerate() {
        let mbit = count as f64 * 12_000.0 / 1e6;
        let expected = if second % 2 == 1 { 50.0 } else { 0.0 };
        assert!((mbit - expected).abs() < 3.0, "second {second}: {mbit} Mbit/s");
    }
    // Its airtime is busy time to the access point, but neither rx nor tx.
    let channel = log.reports.last().expect("reports").2.channel;
    let [busy, rx, tx] = [channel.busy, channel.rx, channel.tx].map(|time| time.expect("counted"));
    assert!(busy > tx + rx && channel.active >= busy);
}

#[test]
fn driver_reports_come_on_time_and_add_up() {
    let (mut hop, mut log) = (hop(bss(Standard::Dot11ac, 2, Mcs::new(9, 1))), Log::default());
    for n in 0..200 {
        hop.enqueue(us(10), packet(AP, Dest::Node(Node(1)), n), &mut log);
    }
    for n in 0..200 {
        hop.enqueue(us(20_000), packet(Node(2), Dest::Node(AP), n), &mut log);
    }
    hop.advance(us(100_000), &mut log);
    assert_eq!(log.reports.len(), 25);
    let (at, of, last) = log.reports.last().expect("reports");
    assert_eq!((*at, *of), (us(100_000), AP));
    let [first, second] = [last.stations[0], last.stations[1]];
    assert_eq!((first.tx_packets, first.tx_bytes, first.rx_packets), (200, Bytes::new(300_000), 0));
    assert_eq!((second.tx_packets, second.rx_packets, second.rx_bytes), (0, 200, Bytes::new(300_000)));
    let sent: Span = log.ppdus.iter().filter(|ppdu| ppdu.from == AP).map(|ppdu| ppdu.duration).sum();
    assert_eq!(last.channel.tx, Some(sent));
    // While there was a queue it shrank from report to report, and its head waited since the beginning.
    let early = log.reports[0].2.stations[0];
    assert!(early.backlog_packets > 0 && early.backlog_packets < 200);
    assert_eq!(early.head_wait, Some(Span::from_micros(4_000 - 10)));
}

#[test]
fn voice_goes_before_best_effort() {
    let mut params = bss(Standard::Dot11ac, 2, Mcs::new(9, 1));
    params.background = vec![saturated(1, 0), Background { class: AccessClass::Voice, ..saturated(2, 0) }];
    let (mut hop, mut log) = (hop(params), Log::default());
    hop.advance(secs(2), &mut log);
    let shares = shares(&log, 3);
    assert!(shares[2].1 > 4 * shares[1].1, "{shares:?}");
}

#[test]
fn a_damaged_frame_makes_bystanders_wait_longer() {
    // 1 and 2 do not hear each other and collide at the access point; 3 hears both and waits for EIFS after that.
    let mut params = bss(Standard::Dot11a, 3, Mcs::new(0, 1));
    params.reach.set_both(Node(1), Node(2), Reach::None);
    let (mut hop, mut log) = (hop(params), Log::default());
    for (at, src) in [(100, 1), (200, 2), (300, 3)] {
        hop.enqueue(us(at), packet(Node(src), Dest::Node(AP), u32::from(src)), &mut log);
    }
    hop.advance(us(20_000), &mut log);
    let [first, second] = [&log.ppdus[0], &log.ppdus[1]];
    assert_eq!((first.from, first.received, second.from, second.received), (Node(1), 0, Node(2), 0));
    let busy_until = second.start + second.duration;
    let bystander = log.data().find(|ppdu| ppdu.from == Node(3)).expect("3 sends too");
    let gap = bystander.start.since(busy_until);
    // The damaged reception of 1's frame ended before 2's frame did: EIFS from there, DIFS after the medium is idle.
    let damaged_until = first.start + first.duration + Span::from_micros(16 + 44);
    let base = busy_until.max(damaged_until) + Span::from_micros(34);
    assert!(bystander.start >= base, "{gap:?}");
    assert_eq!(bystander.start.since(base).as_nanos() % 9_000, 0);
    // Frames of 2 ms against windows of at most some hundred slots: the hidden pair may collide to the very end.
    hop.advance(secs(1), &mut log);
    assert_eq!(log.delivered.len() + log.dropped.len(), 3);
}

#[test]
fn airtime_fairness_frees_a_fast_station_from_a_slow_one() {
    let throughput = |queue: crate::queue::Kind| {
        let mut params = bss(Standard::Dot11ac, 2, Mcs::new(9, 1));
        params.nodes[2].rate = RateChoice::Fixed(Mcs::new(0, 1));
        params.ap_queue = queue;
        let (mut hop, mut log) = (hop(params), Log::default());
        // Both are offered more than there is room for.
        for n in 0..40_000u32 {
            let at = us(10 + 50 * u64::from(n));
            hop.enqueue(at, packet(AP, Dest::Node(Node(1)), n), &mut log);
            hop.enqueue(at, packet(AP, Dest::Node(Node(2)), n), &mut log);
        }
        let fast = log.delivered.iter().filter(|entry| entry.1 == Node(1)).count() as f64 * 12_000.0 / 2e6;
        let slow = log.delivered.iter().filter(|entry| entry.1 == Node(2)).count() as f64 * 12_000.0 / 2e6;
        let report = &log.reports.last().expect("reports").2;
        let airtime = |i: usize| report.stations[i].tx_airtime.expect("counted").as_secs_f64();
        (fast, slow, airtime(0) / airtime(1))
    };
    let (fifo_fast, _, _) = throughput(crate::queue::Kind::Fifo { packets: 1_000 });
    let (fair_fast, fair_slow, ratio) =
        throughput(crate::queue::Kind::FqCodelAirtime(crate::queue::FqCodelParams::default()));
    assert!(fair_fast > 3.0 * fifo_fast, "{fair_fast} {fifo_fast}");
    assert!((ratio - 1.0).abs() < 0.1, "airtime {ratio}; {fair_fast} {fair_slow} Mbit/s");
}

#[test]
fn rts_precedes_long_frames_and_cts_lets_them_through() {
    let mut params = bss(Standard::Dot11a, 1, Mcs::new(4, 1));
    params.nodes[0].rts_threshold = Some(Bytes::new(1_000));
    let (mut hop, mut log) = (hop(params), Log::default());
    hop.enqueue(us(1_000), Packet { len: Bytes::new(100), ..packet(AP, Dest::Node(Node(1)), 0) }, &mut log);
    hop.enqueue(us(2_000), packet(AP, Dest::Node(Node(1)), 1), &mut log);
    hop.advance(us(9_000), &mut log);
    let kinds: Vec<PpduKind> = log.ppdus.iter().map(|ppdu| ppdu.kind).collect();
    use PpduKind::{Ack, Cts, Data, Rts};
    assert_eq!(kinds, [Data, Ack, Rts, Cts, Data, Ack]);
    // RTS of 20 and CTS of 14 octets at 24 Mbit/s: 28 us each, a SIFS apart.
    let frames: Vec<(u64, u64)> = log.ppdus[2..5]
        .iter()
        .map(|p| (p.start.since(log.ppdus[2].start).as_micros(), p.duration.as_micros()))
        .collect();
    assert_eq!(frames, [(0, 28), (44, 28), (88, 20 + 4 * 129)]);
    assert_eq!(log.payloads(), [0, 1]);
    let station = log.reports.last().expect("reports").2.stations[0];
    let data = |i: usize| log.ppdus[i].duration + Span::from_micros(16) + log.ppdus[i + 1].duration;
    assert_eq!(station.tx_airtime, Some(data(0) + Span::from_micros(88) + data(4)));
}

#[test]
fn with_rts_hidden_stations_lose_announcements_instead_of_data() {
    let run = |threshold: Option<Bytes>| {
        let mut params = bss(Standard::Dot11a, 2, Mcs::new(4, 1));
        params.reach.set_both(Node(1), Node(2), Reach::None);
        params.nodes.iter_mut().for_each(|node| node.rts_threshold = threshold);
        params.background = vec![saturated(1, 0), saturated(2, 0)];
        let (mut hop, mut log) = (hop(params), Log::default());
        hop.advance(secs(10), &mut log);
        let lost = log.data().filter(|ppdu| ppdu.received == 0).count() as f64 / log.data().count() as f64;
        (lost, log.data().map(|ppdu| u64::from(ppdu.received)).sum::<u64>())
    };
    let (plain_lost, plain) = run(None);
    let (rts_lost, rts) = run(Some(Bytes::new(500)));
    assert!(plain_lost > 0.3, "{plain_lost}");
    // Not none: an RTS that begins in the SIFS before the CTS deafens its sender to that CTS.
    assert!(rts_lost < 0.03, "{rts_lost}");
    assert!(rts as f64 > 1.3 * plain as f64, "{rts} frames with RTS, {plain} without");
}

#[test]
fn hidden_stations_overlap_as_often_as_their_windows_say() {
    // Two hidden stations, frames so short that each sends once: a frame survives if the other begins none from a
    // frame's duration before it to its end. Poisson offers of G frames a frame time give exp(-2 G) (pure ALOHA, which
    // stations that never hear each other are while their queues are empty).
    let mut params = bss(Standard::Dot11a, 2, Mcs::new(7, 1));
    params.reach.set_both(Node(1), Node(2), Reach::None);
    params.retry_limit = 1;
    let offered = Background { load: Load::Offered(Rate::from_mbit(2)), packet: Bytes::new(1_000), ..saturated(1, 0) };
    params.background = vec![offered.clone(), Background { from: Node(2), ..offered }];
    let (mut hop, mut log) = (hop(params), Log::default());
    hop.advance(secs(60), &mut log);
    let lost = log.data().filter(|ppdu| ppdu.received == 0).count() as f64 / log.data().count() as f64;
    let frame = log.data().next().expect("frames").duration.as_secs_f64();
    // The other sends 250 frames a second. It defers while it hears the Ack, which shortens nothing here.
    let aloha = 1.0 - (-2.0 * 250.0 * frame).exp();
    assert!((lost / aloha - 1.0).abs() < 0.1, "{lost} lost, {aloha} by ALOHA");
}

#[test]
fn a_reservation_that_comes_to_nothing_is_given_up() {
    // 1 announces to 0, which is deaf to it for 2 is on the air; 3 decodes the RTS and would wait for 1's whole exchange.
    let mut params = peers(Standard::Dot11a, 5, Mcs::new(0, 1));
    for node in [2, 4] {
        params.reach.set_both(Node(1), Node(node), Reach::None);
        params.reach.set_both(Node(3), Node(node), Reach::None);
    }
    params.reach.set_both(Node(0), Node(3), Reach::None);
    params.nodes[1].rts_threshold = Some(Bytes::ZERO);
    params.retry_limit = 1;
    let (mut hop, mut log) = (hop(params), Log::default());
    hop.enqueue(us(100), packet(Node(2), Dest::Node(Node(4)), 1), &mut log);
    hop.enqueue(us(500), packet(Node(1), Dest::Node(Node(0)), 2), &mut log);
    hop.enqueue(us(600), packet(Node(3), Dest::Node(Node(1)), 3), &mut log);
    hop.advance(us(20_000), &mut log);
    let rts = log.ppdus.iter().find(|ppdu| ppdu.kind == PpduKind::Rts).expect("one RTS");
    assert!(!log.ppdus.iter().any(|ppdu| ppdu.kind == PpduKind::Cts));
    let third = log.data().find(|ppdu| ppdu.from == Node(3)).expect("3 sends");
    let waited = third.start.since(rts.start + rts.duration);
    // Reserved: CTS, data of 2 ms and Ack. Given up after 2 SIFS + CTS + PHY start delay + 2 slots, then a backoff.
    let given_up = Span::from_micros(32 + 44 + 20 + 18);
    assert!(waited >= given_up && waited < given_up + Span::from_micros(34 + 16 * 9), "{waited}");
}

#[test]
fn a_voice_txop_carries_frames_a_sifs_apart_and_ends_in_time() {
    let mut params = bss(Standard::Dot11ac, 1, Mcs::new(0, 1));
    params.max_ampdu_mpdus = 1;
    let (mut hop, mut log) = (hop(params), Log::default());
    for n in 0..8 {
        let voice = Packet { len: Bytes::new(500), class: AccessClass::Voice, ..packet(AP, Dest::Node(Node(1)), n) };
        hop.enqueue(us(1_000), voice, &mut log);
    }
    hop.advance(us(20_000), &mut log);
    assert_eq!(log.payloads(), (0..8).collect::<Vec<_>>());
    // 542 octets at 29.25 Mbit/s: 38 symbols after 40 us; Ack 44 us at 6 Mbit/s. Five exchanges of 252 us and four SIFS
    // between them fit into 1504 us, six do not.
    let starts: Vec<u64> = log.data().map(|ppdu| ppdu.start.since(Time::ZERO).as_micros()).collect();
    let gaps: Vec<u64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps[..4], [192 + 16 + 44 + 16; 4]);
    assert!(gaps[4] >= 192 + 16 + 44 + 34, "{gaps:?}");
    assert_eq!(gaps[5..], [192 + 16 + 44 + 16; 2]);
}

#[test]
fn an_aggregate_stays_within_the_transmission_opportunity() {
    let mut params = bss(Standard::Dot11ac, 1, Mcs::new(4, 1));
    params.background = vec![Background { class: AccessClass::Video, ..saturated(0, 1) }];
    let (mut hop, mut log) = (hop(params), Log::default());
    hop.advance(secs(1), &mut log);
    // 3008 us less SIFS and BlockAck hold 40 us and 730 symbols of 702 bits: 41 MPDUs of 1544 octets.
    assert!(log.data().all(|ppdu| ppdu.mpdus <= 41));
    assert!(log.data().filter(|ppdu| ppdu.mpdus == 41).count() > 100);
}

#[test]
fn a_legacy_neighbour_decodes_responses_but_not_newer_frames() {
    // An 802.11a pair beside an 802.11ac BSS: both are saturated, all hear each other.
    let mut params = bss(Standard::Dot11ac, 1, Mcs::new(9, 1));
    let legacy = Phy { standard: Standard::Dot11a, width: Width::Mhz20, guard_interval: GuardInterval::Ns800 };
    for _ in 0..2 {
        params.nodes.push(NodeParams { phy: Some(legacy), ..NodeParams::new(Role::Neighbour, Mcs::new(2, 1)) });
    }
    params.reach = ReachMatrix::all_hear_all(4);
    params.background = vec![saturated(0, 1), saturated(2, 3)];
    let (mut hop, mut log) = (hop(params), Log::default());
    hop.advance(secs(20), &mut log);
    let shares = shares(&log, 4);
    // AIFS of best effort is a slot longer than DIFS, the windows are the same: nearly equal turns.
    let turns = shares[0].0 as f64 / shares[2].0 as f64;
    assert!((0.6..1.0).contains(&turns), "{turns}");
    assert!(
        log.data().filter(|ppdu| ppdu.from == Node(2)).all(|ppdu| ppdu.mpdus == 1 && ppdu.rate == Rate::from_mbit(12))
    );
    assert!(log.data().filter(|ppdu| ppdu.from == Node(0)).any(|ppdu| ppdu.mpdus == 64));
}

#[test]
fn an_unanswered_frame_makes_legacy_bystanders_wait_eifs() {
    let first = |answered: bool| {
        let mut params = bss(Standard::Dot11ac, 1, Mcs::new(9, 1));
        let legacy = Phy { standard: Standard::Dot11a, width: Width::Mhz20, guard_interval: GuardInterval::Ns800 };
        for _ in 0..2 {
            params.nodes.push(NodeParams { phy: Some(legacy), ..NodeParams::new(Role::Neighbour, Mcs::new(2, 1)) });
        }
        params.reach = ReachMatrix::all_hear_all(4);
        params.nodes[1].mpdu_error = if answered { 0.0 } else { 1.0 };
        // Nothing is sent again, not even a BlockAckReq.
        (params.retry_limit, params.max_ampdu_mpdus) = (1, 1);
        let (mut hop, mut log) = (hop(params), Log::default());
        hop.enqueue(us(1_000), packet(AP, Dest::Node(Node(1)), 0), &mut log);
        // It comes while the frame is on the air, and counts down from the end of what is heard.
        hop.enqueue(us(1_050), packet(Node(2), Dest::Node(Node(3)), 1), &mut log);
        hop.advance(us(5_000), &mut log);
        let end = log.ppdus[if answered { 1 } else { 0 }].start + log.ppdus[if answered { 1 } else { 0 }].duration;
        let legacy = log.data().find(|ppdu| ppdu.from == Node(2)).expect("it sends");
        legacy.start.since(end).as_micros()
    };
    // DIFS after the Ack, which everybody decodes; EIFS after the frame that it could not decode, plus the same backoff.
    let (after_ack, after_nothing) = (first(true), first(false));
    assert_eq!((after_ack - 34) % 9, 0);
    assert_eq!(after_nothing - after_ack, 16 + 44);
}

#[test]
fn he_aggregates_hold_256_mpdus_with_larger_block_acks() {
    let mut params = bss(Standard::Dot11ax(Band::Ghz5), 1, Mcs::new(11, 2));
    params.width = Width::Mhz160;
    params.max_ampdu_mpdus = 256;
    params.background = vec![saturated(0, 1)];
    let (mut hop, mut log) = (hop(params), Log::default());
    hop.advance(secs(1), &mut log);
    assert!(log.data().filter(|ppdu| ppdu.mpdus == 256).count() > 100);
    let answers: Vec<&PpduRecord> = log.ppdus.iter().filter(|ppdu| ppdu.kind == PpduKind::BlockAck).collect();
    // 56 octets at 24 Mbit/s: 5 symbols.
    assert!(answers.iter().all(|ppdu| ppdu.psdu == Bytes::new(56) && ppdu.duration == Span::from_micros(40)));
}

#[test]
fn mpdus_are_handed_up_as_each_ends_where_the_receiver_does_so() {
    let run = |mpdu_by_mpdu: bool, error: f64| {
        let mut params = bss(Standard::Dot11ac, 1, Mcs::new(4, 1));
        (params.nodes[1].mpdu_by_mpdu, params.nodes[1].mpdu_error) = (mpdu_by_mpdu, error);
        let (mut hop, mut log) = (hop(params), Log::default());
        for payload in 0..2_000 {
            hop.enqueue(us(100 * u64::from(payload)), packet(AP, Dest::Node(Node(1)), payload), &mut log);
        }
        hop.advance(secs(1), &mut log);
        log
    };
    for error in [0.0, 0.2] {
        let (whole, each) = (run(false, error), run(true, error));
        // The air is the same, and the order.
        assert_eq!(whole.ppdus, each.ppdus);
        assert_eq!(whole.payloads(), each.payloads());
        assert!(each.delivered.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        let (mut first_of, mut earlier) = (None, 0);
        for (end, own) in whole.delivered.iter().zip(&each.delivered) {
            let frame = whole.data().find(|ppdu| ppdu.start + ppdu.duration == end.0).expect("it came in a frame");
            assert!(own.0 <= end.0 && (error > 0.0 || own.0 > frame.start));
            let subframes = u64::from(frame.mpdus);
            if error == 0.0 && first_of != Some(frame.start) && subframes > 1 {
                // All MPDUs are alike, but for the last one's padding: the first ends after one part of the data, in 40 us of
                // preamble and the data's symbols.
                let data = frame.duration.as_micros() - 40;
                let after = own.0.since(frame.start).as_micros();
                assert!(after.abs_diff(40 + data / subframes) <= 1, "{after} us of 40 + {data} with {subframes} MPDUs");
            }
            first_of = Some(frame.start);
            earlier += u32::from(own.0 < end.0);
        }
        assert!(earlier > 200, "{earlier}");
    }
}

fn at_snr(db: f64) -> Option<Link> {
    Some(Link { snr: Snr::Trace(vec![(Time::ZERO, Db(db))]), fading: None })
}

/// Packets a second of a saturated access point to one 802.11ac station with this link and rate control.
fn carried(link: Option<Link>, rate: RateChoice, from_s: u64, to_s: u64) -> f64 {
    let mut params = bss(Standard::Dot11ac, 1, Mcs::new(0, 1));
    (params.nodes[1].link, params.nodes[1].rate) = (link, rate);
    params.background = vec![saturated(0, 1)];
    let (mut hop, mut log) = (hop(params), Log::default());
    hop.advance(secs(to_s), &mut log);
    let received: u64 = log.data().filter(|ppdu| ppdu.start >= secs(from_s)).map(|ppdu| u64::from(ppdu.received)).sum();
    received as f64 / (to_s - from_s) as f64
}

#[test]
fn losses_on_a_link_are_those_of_its_signal_to_noise_ratio() {
    for (db, mcs) in [(17.0, 4), (17.5, 4), (24.0, 6)] {
        let mut params = bss(Standard::Dot11ac, 1, Mcs::new(mcs, 1));
        params.nodes[1].link = at_snr(db);
        params.background = vec![saturated(0, 1)];
        let (mut hop, mut log) = (hop(params), Log::default());
        hop.advance(secs(3), &mut log);
        let sent: u64 = log.data().map(|ppdu| u64::from(ppdu.mpdus)).sum();
        let received: u64 = log.data().map(|ppdu| u64::from(ppdu.received)).sum();
        let vector = hop.plan().modes()[usize::from(hop.plan().trace(1)[0].1)].phy.vector();
        let expected = super::snr::success(super::snr::ln_bit_success(&vector, Db(db).linear()), 1_538);
        let got = received as f64 / sent as f64;
        println!("{db} dB, MCS {mcs}: {got:.4} arrive, {expected:.4} by the formula");
        assert!((got - expected).abs() < 0.01, "{db} dB: {got} against {expected}");
    }
}

#[test]
fn the_ideal_rate_control_is_no_worse_than_the_best_fixed_rate() {
    for db in [8.0, 15.0, 22.0, 29.0] {
        let ideal = carried(at_snr(db), RateChoice::Ideal { nss: 2 }, 0, 2);
        let all = (1..=2).flat_map(|nss| (0..10).map(move |mcs| Mcs::new(mcs, nss)));
        let fixed = all.map(|mcs| carried(at_snr(db), RateChoice::Fixed(mcs), 0, 2));
        let best = fixed.fold(0.0, f64::max);
        assert!(ideal > 0.97 * best, "{db} dB: {ideal} packets/s, best fixed {best}");
    }
}

#[test]
fn the_sampler_comes_near_to_the_ideal_at_a_constant_ratio() {
    for db in [8.0, 15.0, 22.0, 29.0, 40.0] {
        let ideal = carried(at_snr(db), RateChoice::Ideal { nss: 2 }, 3, 8);
        let sampled = carried(at_snr(db), RateChoice::Minstrel { nss: 2 }, 3, 8);
        println!("{db} dB: sampler {sampled:.0} packets/s, ideal {ideal:.0}");
        assert!(sampled > 0.95 * ideal, "{db} dB: {sampled} packets/s, ideal {ideal}");
    }
}

#[test]
fn fading_costs_the_sampler_more_than_the_ideal() {
    let faded = |control| {
        let fading = Some(Fading { coherence: Span::from_millis(100), k: 0.0 });
        let link = Some(Link { fading, ..at_snr(22.0).expect("a link") });
        carried(link, control, 3, 13)
    };
    let (ideal, sampled) = (faded(RateChoice::Ideal { nss: 1 }), faded(RateChoice::Minstrel { nss: 1 }));
    let fixed = faded(RateChoice::Fixed(Mcs::new(5, 1)));
    println!("faded: ideal {ideal:.0}, sampler {sampled:.0}, MCS 5 {fixed:.0} packets/s");
    assert!(sampled < ideal && sampled > 0.5 * ideal, "{sampled} of {ideal}");
    assert!(ideal > 1.1 * fixed);
}

#[test]
fn somebody_who_walks_away_gets_slower() {
    let walk = vec![(Time::ZERO, 2.0), (secs(4), 40.0)];
    let link = |walk: &[(Time, f64)]| {
        let loss = PathLoss { exponent: 3.5, ..PathLoss::default() };
        Some(Link { snr: Snr::Distance { loss, walk: walk.to_vec() }, fading: None })
    };
    let seconds: Vec<f64> = (0..4).map(|s| carried(link(&walk), RateChoice::Ideal { nss: 2 }, s, s + 1)).collect();
    assert!(seconds.windows(2).all(|pair| pair[1] < pair[0]), "{seconds:?}");
}

#[test]
fn two_packets_share_an_mpdu_and_a_frame_holds_128() {
    let mut params = bss(Standard::Dot11ac, 1, Mcs::new(9, 3));
    params.amsdu = Some(Amsdu { octets: 3_839, packets: 2 });
    let (mut hop, mut log) = (hop(params), Log::default());
    for n in 0..1_000 {
        hop.enqueue(us(10), packet(AP, Dest::Node(Node(1)), n), &mut log);
    }
    hop.advance(us(60_000), &mut log);
    assert_eq!(log.payloads(), (0..1_000).collect::<Vec<_>>());
    let fullest = log.data().max_by_key(|ppdu| ppdu.packets).expect("frames");
    assert_eq!((fullest.mpdus, fullest.packets), (64, 128));
    // 64 subframes of 4 + 30 + 3046 octets, all but the last padded.
    assert_eq!(fullest.psdu, Bytes::new(64 * 3_080));
    assert!(log.receptions.iter().skip(200).take(500).all(|reception| reception.msdus == 2));
    let station = log.reports.last().expect("reports").2.stations[0];
    assert_eq!((station.tx_packets, station.tx_bytes), (1_000, Bytes::new(1_500_000)));
    assert!(station.tx_attempts < Some(600));
    assert_eq!(hop.backlog(AP, Node(1)), 0);
}

#[test]
fn an_a_msdu_fills_its_limit_and_is_lost_as_a_whole() {
    for (octets, packets, expected) in [(3_839, 128, 2), (7_935, 128, 5), (11_454, 128, 7), (11_454, 4, 4)] {
        let mut params = bss(Standard::Dot11ac, 1, Mcs::new(9, 3));
        params.amsdu = Some(Amsdu { octets, packets });
        params.background = vec![saturated(0, 1)];
        params.nodes[1].mpdu_error = 0.2;
        let (mut hop, mut log) = (hop(params), Log::default());
        hop.advance(us(300_000), &mut log);
        let most = log.data().map(|ppdu| ppdu.packets.div_ceil(ppdu.mpdus)).max();
        assert_eq!(most, Some(expected), "{octets}");
    }
    // Of packets that share an MPDU either all are lost or none.
    let mut params = bss(Standard::Dot11ac, 1, Mcs::new(9, 3));
    params.amsdu = Some(Amsdu { octets: 3_839, packets: 2 });
    (params.retry_limit, params.nodes[1].mpdu_error) = (1, 0.3);
    let (mut hop, mut log) = (hop(params), Log::default());
    for n in 0..1_000 {
        hop.enqueue(us(10), packet(AP, Dest::Node(Node(1)), n), &mut log);
    }
    hop.advance(secs(1), &mut log);
    let lost: Vec<u32> = log.dropped.iter().map(|entry| entry.1).collect();
    assert_eq!(lost.len() + log.delivered.len(), 1_000);
    assert!((lost.len() as f64 / 1_000.0 - 0.3).abs() < 0.06, "{}", lost.len());
    let apart = lost.iter().filter(|&&n| !lost.contains(&(n ^ 1))).count();
    assert_eq!(apart, 0, "of {}", lost.len());
}

/// The completions of one node, by their order.
#[derive(Default)]
struct Completions(Vec<(Time, Completion)>);

impl Outbox<u32> for Completions {
    fn deliver(&mut self, _at: Time, _to: Node, _packet: Packet<u32>, _rx: &RxInfo) {}
    fn wants_completions(&self) -> bool {
        true
    }
    fn completed(&mut self, at: Time, completion: &Completion) {
        self.0.push((at, *completion));
    }
}

impl Air<u32> for Completions {}

#[test]
fn a_lone_saturated_link_serves_a_packet_in_the_closed_form() {
    // DIFS 34 us, mean backoff 67.5 us, 1536 octets, SIFS 16 us, Ack. At 6 Mbit/s: 2072 and 44 us; at 24: 536 and 28 us.
    for (mcs, us) in [(0, 34.0 + 67.5 + 2_072.0 + 16.0 + 44.0), (4, 34.0 + 67.5 + 536.0 + 16.0 + 28.0)] {
        let mut params = peers(Standard::Dot11a, 2, Mcs::new(mcs, 1));
        params.background = vec![saturated(0, 1)];
        let (mut hop, mut log) = (hop(params), Completions::default());
        hop.advance(secs(10), &mut log);
        let served: Vec<f64> =
            log.0.iter().map(|(at, packet)| at.since(packet.head_at).as_millis_f64() * 1e3).collect();
        let mean = served.iter().sum::<f64>() / served.len() as f64;
        assert!((mean / us - 1.0).abs() < 0.01, "{mean} us, closed form {us} us");
        // A packet comes to the head of the line when the one before leaves it.
        assert!(log.0.windows(2).all(|pair| pair[1].1.head_at == pair[0].0));
        assert!(log.0.iter().all(|(_, packet)| packet.outcome == Outcome::Acknowledged));
    }
}

#[test]
fn a_packet_in_an_empty_queue_is_at_the_head_at_once() {
    let (mut hop, mut log) = (hop(bss(Standard::Dot11g, 1, Mcs::new(7, 1))), Completions::default());
    hop.enqueue(us(1_000), packet(Node(1), Dest::Node(AP), 1), &mut log);
    hop.enqueue(us(1_050), packet(Node(1), Dest::Node(AP), 2), &mut log);
    hop.advance(us(5_000), &mut log);
    let [(first, one), (_, two)] = log.0[..] else { panic!("{:?}", log.0) };
    assert_eq!((one.queued_at, one.head_at, one.from, one.dst), (us(1_000), us(1_000), Node(1), Dest::Node(AP)));
    assert_eq!((two.queued_at, two.head_at), (us(1_050), first));
}

#[test]
fn retries_and_losses_count_from_the_first_attempt() {
    let mut params = bss(Standard::Dot11a, 1, Mcs::new(7, 1));
    params.nodes[1].mpdu_error = 1.0;
    let (mut hop, mut log) = (hop(params), Completions::default());
    (0..2).for_each(|n| hop.enqueue(us(10), packet(AP, Dest::Node(Node(1)), n), &mut log));
    hop.advance(secs(1), &mut log);
    let [(first, one), (_, two)] = log.0[..] else { panic!("{:?}", log.0) };
    assert_eq!((one.head_at, one.outcome, two.head_at), (us(10), Outcome::GivenUp, first));
}

#[test]
fn packets_of_an_ampdu_come_to_the_head_when_it_is_built() {
    let mut params = bss(Standard::Dot11ac, 1, Mcs::new(9, 1));
    params.nodes[1].mpdu_error = 0.2;
    let (mut hop, mut log) = (hop(params), Both::default());
    for n in 0..500 {
        hop.enqueue(us(10), packet(AP, Dest::Node(Node(1)), n), &mut log);
    }
    hop.advance(secs(1), &mut log);
    let starts: Vec<Time> =
        log.1.ppdus.iter().filter(|ppdu| ppdu.kind == PpduKind::Data).map(|ppdu| ppdu.start).collect();
    assert_eq!(log.0.0.len(), 500);
    for (at, packet) in &log.0.0 {
        assert!(starts.contains(&packet.head_at) && packet.head_at < *at);
    }
    // Nothing is sent again in the first frame: all of its packets are built into it.
    assert!(log.0.0.iter().filter(|(_, packet)| packet.head_at == starts[0]).count() == 64);
}

/// Completions beside everything else.
#[derive(Default)]
struct Both(Completions, Log);

impl Outbox<u32> for Both {
    fn deliver(&mut self, at: Time, to: Node, packet: Packet<u32>, rx: &RxInfo) {
        self.1.deliver(at, to, packet, rx);
    }
    fn wants_completions(&self) -> bool {
        true
    }
    fn completed(&mut self, at: Time, completion: &Completion) {
        self.0.completed(at, completion);
    }
}

impl Air<u32> for Both {
    fn ppdu(&mut self, at: Time, ppdu: &PpduRecord) {
        self.1.ppdu(at, ppdu);
    }
}

#[test]
fn a_stations_group_frame_is_acknowledged_and_sent_out_again() {
    for isolation in [false, true] {
        let mut params = bss(Standard::Dot11g, 2, Mcs::new(7, 1));
        params.client_isolation = isolation;
        let (mut hop, mut log) = (hop(params), Both::default());
        hop.enqueue(us(1_000), packet(Node(1), Dest::Group, 6), &mut log);
        hop.advance(us(20_000), &mut log);
        let frames: Vec<_> = log.1.ppdus.iter().map(|ppdu| (ppdu.kind, ppdu.from, ppdu.to, ppdu.rate)).collect();
        let (fast, slow) = (Rate::from_mbit(54), Rate::from_mbit(6));
        let up = [(PpduKind::Data, Node(1), Some(AP), fast), (PpduKind::Ack, AP, Some(Node(1)), Rate::from_mbit(24))];
        assert_eq!(frames[..2], up);
        let arrived: Vec<(Node, Time)> = log.1.delivered.iter().map(|entry| (entry.1, entry.3.queued_at)).collect();
        let received = log.1.delivered[0].0;
        if isolation {
            assert_eq!((frames.len(), arrived), (2, vec![(AP, us(1_000))]));
            continue;
        }
        assert_eq!(frames[2..], [(PpduKind::Data, AP, None, slow)]);
        assert_eq!(arrived, [(AP, us(1_000)), (Node(2), received)]);
        let outcomes: Vec<_> = log.0.0.iter().map(|(_, packet)| (packet.from, packet.dst, packet.outcome)).collect();
        let expected = [(Node(1), Outcome::Acknowledged), (AP, Outcome::Sent)].map(|(n, o)| (n, Dest::Group, o));
        assert_eq!(outcomes, expected);
    }
}

#[test]
fn a_lone_stations_group_frame_misses_nobody() {
    let (mut hop, mut log) = (hop(bss(Standard::Dot11g, 1, Mcs::new(7, 1))), Log::default());
    hop.enqueue(us(1_000), packet(Node(1), Dest::Group, 6), &mut log);
    hop.advance(us(20_000), &mut log);
    assert_eq!((log.payloads(), log.dropped.len(), log.data().count()), (vec![6], 0, 2));
}

#[test]
fn any_nodes_driver_reports_if_it_is_asked_to() {
    let mut params = bss(Standard::Dot11ac, 3, Mcs::new(9, 1));
    params.nodes[2].reports = true;
    let (mut hop, mut log) = (hop(params), Log::default());
    for n in 0..300 {
        hop.enqueue(us(10), packet(Node(2), Dest::Node(AP), n), &mut log);
    }
    hop.advance(us(4_000), &mut log);
    let of: Vec<Node> = log.reports.iter().map(|(_, of, _)| *of).collect();
    assert_eq!(of, [AP, Node(2)]);
    let [to_ap] = log.reports[1].2.stations[..] else { panic!("one entry: its access point's") };
    assert_eq!((to_ap.station, to_ap.head_wait), (AP, Some(Span::from_micros(3_990))));
    let waiting = 300 - u32::try_from(log.delivered.len()).expect("few");
    assert!(to_ap.backlog_packets >= waiting && to_ap.tx_packets > 0, "{to_ap:?}, {waiting} wait");
    // What the access point counts as received is what the station counts as sent.
    let of_station = log.reports[0].2.stations[1];
    assert_eq!((of_station.rx_airtime, of_station.station), (to_ap.tx_airtime, Node(2)));
    // Without any access point as well.
    let mut params = peers(Standard::Dot11a, 3, Mcs::new(4, 1));
    params.nodes[1].reports = true;
    let (mut hop, mut log) = (self::hop(params), Log::default());
    hop.advance(us(4_000), &mut log);
    let [(_, Node(1), report)] = &log.reports[..] else { panic!("{:?}", log.reports) };
    assert_eq!(report.stations.iter().map(|entry| entry.station).collect::<Vec<_>>(), [Node(0), Node(2)]);
}

#[test]
fn stations_queue_as_they_are_told() {
    use crate::queue::{FqCodelParams, Kind};
    // One flow keeps 400 packets waiting; a packet of another comes late. 1500 octets at 24 Mbit/s: 0.7 ms each.
    let wait = |all: Kind, own: Option<Kind>| {
        let mut params = bss(Standard::Dot11g, 1, Mcs::new(4, 1));
        params.station_queue = all;
        params.nodes[1].queue = own;
        let (mut hop, mut log) = (hop(params), Log::default());
        for n in 0..400 {
            hop.enqueue(us(10), packet(Node(1), Dest::Node(AP), n), &mut log);
        }
        let other = Packet { flow_hash: 77, ..packet(Node(1), Dest::Node(AP), 1_000) };
        hop.enqueue(us(11_000), other, &mut log);
        hop.advance(secs(1), &mut log);
        let arrived = log.delivered.iter().find(|entry| entry.2 == 1_000).expect("nothing is lost to it");
        arrived.0.since(us(11_000)).as_millis_f64()
    };
    let (fifo, fq) = (Kind::Fifo { packets: 500 }, Kind::FqCodelAirtime(FqCodelParams::default()));
    let ours = [wait(fifo, None), wait(fq, None), wait(fifo, Some(fq)), wait(fq, Some(fifo))];
    assert!(ours[0] > 200.0 && ours[3] > 200.0, "{ours:?}");
    assert!(ours[1] < 20.0 && ours[1] == ours[2], "{ours:?}");
}

#[test]
fn an_exchange_of_802_11g_has_the_published_times() {
    // ERP-OFDM with the short slot: DIFS 28 us, 1536 octets at 54 Mbit/s 254 us, SIFS 10 us, Ack at 24 Mbit/s 34 us, with 6 us
    // of signal extension in both frames.
    let (mut hop, mut log) = (hop(bss(Standard::Dot11g, 1, Mcs::new(7, 1))), Log::default());
    hop.enqueue(Time::ZERO, packet(Node(1), Dest::Node(AP), 1), &mut log);
    hop.enqueue(Time::ZERO, packet(Node(1), Dest::Node(AP), 2), &mut log);
    hop.advance(us(2_000), &mut log);
    let times: Vec<_> = log.ppdus.iter().map(|ppdu| (ppdu.start.since(Time::ZERO), ppdu.duration)).collect();
    let us = Span::from_micros;
    assert_eq!(times[..2], [(us(28), us(254)), (us(28 + 254 + 10), us(34))]);
    // A backoff from 0 to 15 slots of 9 us.
    let backoff = times[2].0 - us(28 + 254 + 10 + 34 + 28);
    assert!(backoff.as_nanos().is_multiple_of(9_000) && backoff <= us(15 * 9), "{backoff:?}");
}

#[test]
fn a_dsss_exchange_has_the_published_times() {
    // 802.11g at 1 Mbit/s with the short slot: DIFS 28 us, 192 us and 1536 octets, SIFS, 192 us and 14 octets.
    let (mut hop, mut log) = (hop(bss(Standard::Dot11gErp, 1, Mcs::new(8, 1))), Log::default());
    hop.enqueue(Time::ZERO, packet(Node(1), Dest::Node(AP), 1), &mut log);
    hop.advance(us(14_000), &mut log);
    let times: Vec<_> = log.ppdus.iter().map(|ppdu| (ppdu.start.since(Time::ZERO), ppdu.duration, ppdu.rate)).collect();
    let (us, slow) = (Span::from_micros, Rate::from_mbit(1));
    assert_eq!(times, [(us(28), us(12_480), slow), (us(28 + 12_480 + 10), us(304), slow)]);
    assert_eq!(log.payloads(), [1]);
}

#[test]
fn a_missing_answer_is_noticed_after_its_preamble() {
    // Nothing arrives. Frames follow each other by the timeout, DIFS and a backoff of whole slots: SIFS 10, slot 9, and the
    // answer's preamble, 192 us with DSSS and 20 us with OFDM.
    for (index, timeout) in [(8, 10 + 9 + 192), (0, 10 + 9 + 20)] {
        let mut params = bss(Standard::Dot11gErp, 1, Mcs::new(index, 1));
        params.nodes[1].mpdu_error = 1.0;
        let (mut hop, mut log) = (hop(params), Log::default());
        hop.enqueue(Time::ZERO, packet(Node(1), Dest::Node(AP), 1), &mut log);
        hop.advance(us(200_000), &mut log);
        assert_eq!(log.data().count(), 7);
        let frames: Vec<_> = log.data().map(|ppdu| (ppdu.start, ppdu.start + ppdu.duration)).collect();
        for pair in frames.windows(2) {
            // The medium has been idle since the frame's end: the next one is on a slot boundary of DIFS after it.
            let gap = pair[1].0.since(pair[0].1);
            let slots = gap.saturating_sub(Span::from_micros(28));
            assert!(slots.as_nanos().is_multiple_of(9_000) && gap >= Span::from_micros(timeout), "{gap:?}");
        }
    }
}

#[test]
fn with_dsss_rates_a_damaged_frame_costs_an_eifs_at_1_mbit() {
    // SIFS, an Ack at the lowest mandatory rate, DIFS (10.3.2.3.7): 6 Mbit/s of OFDM, or 1 Mbit/s of DSSS.
    let wait = |standard| hop(bss(standard, 1, Mcs::new(7, 1))).medium.timing.eifs_extra;
    assert_eq!(wait(Standard::Dot11g), Span::from_micros(10 + 50));
    assert_eq!(wait(Standard::Dot11gErp), Span::from_micros(10 + 304));
}

#[test]
fn with_dsss_rates_arf_climbs_twelve_steps_in_rate_order() {
    let mut params = bss(Standard::Dot11gErp, 1, Mcs::new(0, 1));
    params.nodes[1].rate = RateChoice::Arf;
    params.background = vec![saturated(1, 0)];
    let (mut hop, mut log) = (hop(params), Log::default());
    hop.advance(secs(1), &mut log);
    let rates: Vec<u64> = log.data().map(|ppdu| ppdu.rate.as_bps() / 500_000).collect();
    let steps = [2, 4, 11, 12, 18, 22, 24, 36, 48, 72, 96];
    let expected = steps.into_iter().flat_map(|rate| std::iter::repeat_n(rate, 10));
    assert!(rates.iter().copied().take(110).eq(expected), "{:?}", &rates[..110]);
    assert!(rates[110..].iter().all(|rate| *rate == 108));
}

#[test]
fn minstrel_leaves_the_dsss_rates_on_a_clean_link() {
    let carried = |standard| {
        let mut params = bss(standard, 1, Mcs::new(0, 1));
        params.nodes[1].rate = RateChoice::Minstrel { nss: 1 };
        params.background = vec![saturated(1, 0)];
        let (mut hop, mut log) = (hop(params), Log::default());
        hop.advance(secs(5), &mut log);
        log.data().map(|ppdu| u64::from(ppdu.received)).sum::<u64>() as f64
    };
    let (all, ofdm) = (carried(Standard::Dot11gErp), carried(Standard::Dot11g));
    assert!(all > 0.9 * ofdm, "{all} frames with DSSS rates, {ofdm} without");
}

#[test]
fn a_weak_link_works_at_one_megabit_where_ofdm_carries_nothing() {
    // At -3 dB a bit at 1 Mbit/s stands 10 dB above the noise: 20 MHz for 1 Mbit/s.
    let carried = |standard, index| {
        let mut params = bss(standard, 1, Mcs::new(index, 1));
        params.nodes[1].link = at_snr(-3.0);
        params.background = vec![saturated(1, 0)];
        let (mut hop, mut log) = (hop(params), Log::default());
        hop.advance(secs(1), &mut log);
        log.data().map(|ppdu| u64::from(ppdu.received)).sum::<u64>()
    };
    assert!(carried(Standard::Dot11gErp, 8) > 50 && carried(Standard::Dot11gErp, 0) == 0);
}

#[test]
fn arf_and_aarf_climb_to_the_top_of_a_clean_link() {
    for rate in [RateChoice::Arf, RateChoice::Aarf] {
        let mut params = bss(Standard::Dot11g, 1, Mcs::new(0, 1));
        params.nodes[1].rate = rate;
        params.background = vec![saturated(1, 0)];
        let (mut hop, mut log) = (hop(params), Log::default());
        hop.advance(secs(1), &mut log);
        // Ten frames at each of seven rates, then 54 Mbit/s for good.
        let rates: Vec<u64> = log.data().map(|ppdu| ppdu.rate.as_bps() / 1_000_000).collect();
        let expected = [6, 9, 12, 18, 24, 36, 48].into_iter().flat_map(|rate| std::iter::repeat_n(rate, 10));
        assert!(rates.iter().copied().take(70).eq(expected), "{:?}", &rates[..70]);
        assert!(rates[70..].iter().all(|rate| *rate == 54));
    }
}

#[test]
fn each_attempt_of_a_frame_asks_the_rate_control() {
    let mut params = bss(Standard::Dot11g, 1, Mcs::new(0, 1));
    params.nodes[1].rate = RateChoice::Arf;
    let (mut hop, mut log) = (hop(params), Log::default());
    (0..40).for_each(|n| hop.enqueue(us(10), packet(Node(1), Dest::Node(AP), n), &mut log));
    hop.advance(us(100_000), &mut log);
    // From here on nothing arrives: 24 Mbit/s has just been reached, so the first failure is a failed recovery.
    assert_eq!(log.data().last().map(|ppdu| ppdu.rate), Some(Rate::from_mbit(18)));
    hop.errors[1] = Noise { threshold: 1 << 32, stream: Seed(1).stream("dead") };
    (40..42).for_each(|n| hop.enqueue(us(100_000), packet(Node(1), Dest::Node(AP), n), &mut log));
    hop.advance(us(200_000), &mut log);
    let rates: Vec<u64> = log.data().skip(40).map(|ppdu| ppdu.rate.as_bps() / 1_000_000).collect();
    // The recovery's fall to 18 holds until a frame arrives, which none does.
    assert_eq!(rates, [24, 18, 18, 18, 18, 18, 18, 18, 18, 18, 18, 18, 18, 18]);
}

#[test]
fn colliding_uplinks_lose_rate_with_arf_but_not_minstrel() {
    let carried = |stations: u16, rate: RateChoice| {
        let mut params = bss(Standard::Dot11g, stations, Mcs::new(7, 1));
        params.nodes.iter_mut().for_each(|node| node.rate = rate.clone());
        params.background = (1..=stations).map(|station| saturated(station, 0)).collect();
        let (mut hop, mut log) = (hop(params), Log::default());
        hop.advance(secs(10), &mut log);
        log.data().map(|ppdu| u64::from(ppdu.received)).sum::<u64>() as f64 * 12_000.0 / 10e6
    };
    let (alone, ten) = (carried(1, RateChoice::Arf), carried(10, RateChoice::Arf));
    let (aarf, minstrel) = (carried(10, RateChoice::Aarf), carried(10, RateChoice::Minstrel { nss: 1 }));
    let fixed = carried(10, RateChoice::Fixed(Mcs::new(7, 1)));
    println!(
        "Mbit/s: ARF alone {alone:.1}, ten {ten:.1}; ten with AARF {aarf:.1}, minstrel {minstrel:.1}, 54 {fixed:.1}"
    );
    assert!(ten < alone / 3.0 && minstrel > 0.7 * fixed, "{alone} {ten} {minstrel} {fixed}");
}

#[test]
fn arf_is_refused_where_frames_are_aggregated() {
    let mut params = bss(Standard::Dot11ac, 1, Mcs::new(0, 1));
    params.nodes[1].rate = RateChoice::Aarf;
    let refused = params.validate().expect_err("802.11ac").to_string();
    let known = "nodes[1].rate: AARF goes by frames of one MPDU and is for 802.11a and g, not for 802.11ac";
    assert_eq!(refused, known);
}
