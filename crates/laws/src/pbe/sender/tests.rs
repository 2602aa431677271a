use super::*;
use crate::tcp::test_signals::{MSS, ack, setup};
use lasthop_signals::{DeliverySample, Loss};
use lasthop_units::brief::at;
use std::collections::VecDeque;

const RTT: Span = Span::from_millis(40);
const RTT_MS: u64 = 40;

fn mbit(mbit: u64) -> Rate {
    Rate::from_mbit(mbit)
}

/// As published: what fills the path is in flight, and no more.
fn published() -> Params {
    Params { headroom: Span::ZERO, keep_probing: false, ..Params::default() }
}

fn published_but_for_probes() -> Params {
    Params { keep_probing: true, ..published() }
}

fn told(available: Rate, fair: Rate) -> CellCapacity {
    CellCapacity { available, fair, elsewhere: false, restart: false, coarse: false }
}

/// A path of 40 ms and some rate, with a queue before it. What the law lets go leaves each millisecond, and is
/// acknowledged 40 ms after it has passed the queue.
struct Path {
    law: Pbe,
    ms: u64,
    queue: u64,
    /// What is on its way, and what was acknowledged, in each of the last milliseconds.
    passed: VecDeque<u64>,
    acked: VecDeque<u64>,
    in_flight: u64,
    delivered: u64,
    most_queued: u64,
}

impl Path {
    fn new() -> Path {
        Path::of(published())
    }

    fn of(params: Params) -> Path {
        let mut law = Pbe::new(params, setup());
        law.sense(at(0), &Signal::Cell(told(Rate::ZERO, Rate::ZERO)));
        let mut path = Path {
            law,
            ms: 0,
            queue: 0,
            passed: VecDeque::from(vec![0; RTT_MS as usize - 1]),
            acked: VecDeque::from(vec![0; RTT_MS as usize]),
            in_flight: 0,
            delivered: 0,
            most_queued: 0,
        };
        path.acknowledge(0, 0);
        path
    }

    fn acknowledge(&mut self, bytes: u64, waited: u64) {
        self.acked.pop_front();
        self.acked.push_back(bytes);
        let lately: u64 = self.acked.iter().sum();
        self.delivered += bytes;
        let prior = self.delivered - lately;
        self.in_flight -= bytes;
        let mut signal = ack(0, 0);
        (signal.newly_delivered, signal.newly_acked) = (Bytes::new(bytes), Bytes::new(bytes));
        (signal.delivered, signal.in_flight) = (Bytes::new(self.delivered), Bytes::new(self.in_flight));
        signal.prior_in_flight = Bytes::new(self.in_flight + bytes);
        signal.rtt = Some(RTT + Span::from_millis(waited));
        signal.delivery = Rate::of(Bytes::new(lately), RTT).filter(|_| bytes > 0).map(|rate| DeliverySample {
            rate,
            interval: RTT,
            prior_delivered: Bytes::new(prior),
            sent_at: at(self.ms.saturating_sub(RTT_MS)),
            app_limited: false,
        });
        self.law.sense(at(self.ms), &Signal::Ack(signal));
    }

    /// A millisecond on a path of that rate; the receiver tells `cell` of it, if anything.
    fn step(&mut self, rate: Rate, cell: Option<CellCapacity>) -> Decision {
        let decision = self.law.decide(at(self.ms));
        let (pacing, cwnd) = (decision.pacing.expect("paces"), decision.cwnd.expect("has a window").upper.get());
        let sent = pacing.bytes_in(Span::from_millis(1)).get().min(cwnd.saturating_sub(self.in_flight));
        let per_ms = rate.bytes_in(Span::from_millis(1)).get();
        if sent > 0 {
            let (len, in_flight) = (Bytes::new(sent), Bytes::new(self.in_flight + sent));
            let from_idle = self.in_flight == 0;
            self.law.sense(at(self.ms), &Signal::Sent(Sent { len, in_flight, retransmission: false, from_idle }));
        }
        self.in_flight += sent;
        self.queue += sent;
        let passes = self.queue.min(per_ms);
        self.queue -= passes;
        self.most_queued = self.most_queued.max(self.queue);
        self.ms += 1;
        let bytes = self.passed.pop_front().expect("as many as there are milliseconds");
        self.passed.push_back(passes);
        if let Some(cell) = cell {
            self.law.sense(at(self.ms), &Signal::Cell(cell));
        }
        self.acknowledge(bytes, self.queue / per_ms.max(1));
        self.law.decide(at(self.ms))
    }
}

impl Path {
    /// As many steps.
    fn run(&mut self, steps: u64, rate: Rate, cell: Option<CellCapacity>) {
        for _ in 0..steps {
            self.step(rate, cell);
        }
    }
}

#[test]
fn the_start_reaches_the_fair_share_in_three_rtts() {
    let mut path = Path::new();
    let mut seen = Vec::new();
    for _ in 0..200 {
        let decision = path.step(mbit(60), Some(told(mbit(60), mbit(60))));
        seen.push((decision.why, decision.pacing.expect("paces").as_mbit_f64()));
    }
    // From ten segments of 1000 octets in 40 ms, which are 2 Mbit/s, by 58 Mbit/s in 120 ms.
    for (ms, want) in [(1, 2.0), (41, 21.33), (61, 31.0), (81, 40.67)] {
        let got = seen[ms - 1].1;
        assert!((got - want).abs() < 0.2, "{got} at {ms} ms");
    }
    let reached = seen.iter().position(|(_, rate)| *rate >= 59.9).expect("it does");
    assert!((119..=122).contains(&reached), "{reached}");
    assert_eq!((seen[100].0, seen[121].0), (Why::PbeStart, Why::PbeWireless));
    assert_eq!(path.most_queued, 0);
}

#[test]
fn states_follow_what_is_told() {
    let mut path = Path::new();
    let mut events: Vec<(u64, Why)> = Vec::new();
    for ms in 1..=900 {
        let (elsewhere, restart) = ((300..600).contains(&ms), (700..740).contains(&ms));
        let fair = if ms >= 700 { mbit(80) } else { mbit(40) };
        let cell = CellCapacity { elsewhere, restart, ..told(fair, fair) };
        let rate = if elsewhere { mbit(20) } else { fair };
        let why = path.step(rate, Some(cell)).why;
        if events.last().is_none_or(|(_, last)| *last != why) {
            events.push((ms, why));
        }
    }
    let want = [
        (1, Why::PbeStart),
        (121, Why::PbeWireless),
        (300, Why::PbeDrain),
        (340, Why::PbeInternet),
        (600, Why::PbeWireless),
        (700, Why::PbeStart),
        (820, Why::PbeWireless),
    ];
    assert_eq!(events, want);
}

#[test]
fn elsewhere_it_probes_up_to_the_fair_share() {
    let mut path = Path::new();
    path.run(300, mbit(40), Some(told(mbit(40), mbit(40))));
    // Another link of the path has 20 Mbit/s from here on; the cell has 22 for the flow.
    let cell = CellCapacity { elsewhere: true, ..told(mbit(22), mbit(22)) };
    let rates: Vec<f64> =
        (0..2000).map(|_| path.step(mbit(20), Some(cell)).pacing.expect("paces").as_mbit_f64()).collect();
    // Half of what was delivered before.
    assert!((rates[20] - 20.0).abs() < 0.5, "{}", rates[20]);
    let settled = &rates[600..];
    let (least, most) =
        settled.iter().fold((f64::MAX, 0.0_f64), |(least, most), rate| (least.min(*rate), most.max(*rate)));
    assert!((most - 22.0).abs() < 0.01, "{most}");
    assert!((least - 18.0).abs() < 0.3, "what the probe added goes: {least}");
    // Eight phases of 40 ms: a probe every 320 ms.
    let probing = settled.iter().filter(|rate| **rate > 21.0).count();
    assert!((150..=210).contains(&probing), "{probing} of 1400 ms");
}

/// The other place is gone: how long until the rate is nine tenths of what the cell has.
fn back_after(params: Params) -> usize {
    let mut path = Path::of(params);
    let elsewhere = CellCapacity { elsewhere: true, ..told(mbit(40), mbit(40)) };
    path.run(300, mbit(40), Some(told(mbit(40), mbit(40))));
    path.run(1000, mbit(10), Some(elsewhere));
    assert_eq!(path.law.decide(at(path.ms)).why, Why::PbeInternet);
    let back = (0..5000).position(|_| path.step(mbit(40), Some(elsewhere)).pacing >= Some(mbit(36)));
    back.expect("it comes back")
}

#[test]
fn a_probe_that_found_more_is_followed_by_the_next() {
    let published = back_after(published());
    let ours = back_after(published_but_for_probes());
    // The sixth probe goes at 38 Mbit/s: five steps of a quarter lie before it, of two round trips of 40 ms each. The first begins within
    // eight.
    assert!((5 * 80..5 * 80 + 400).contains(&ours), "{ours} ms");
    assert!(published > 2 * ours, "{published} ms");
}

#[test]
fn a_capacity_is_believed_as_far_as_deliveries_show_it() {
    let mut path = Path::new();
    let forged = told(Rate::MAX, Rate::MAX);
    let mut most = Rate::ZERO;
    for ms in 0..400 {
        let rate = path.step(mbit(10), Some(forged)).pacing.expect("paces");
        if ms < 120 {
            // In the start no more than half of the most that a cell can have, and twice what has come.
            assert!(rate <= mbit(1000 + 20 + 3), "{rate}");
        } else {
            most = most.max(rate);
        }
    }
    assert!(most > mbit(19) && most <= mbit(22), "twice 10, and ten segments in an RTT: {most}");
    let tiny = path.step(mbit(10), Some(told(Rate::from_bps(1), Rate::from_bps(1)))).pacing.expect("paces");
    assert_eq!(tiny, Rate::of(MSS * 2, RTT).expect("not zero"));
}

#[test]
fn a_peer_that_changes_its_mind_with_every_ack_gains_one_rise() {
    let huge = told(Rate::MAX, Rate::MAX);
    let little = told(mbit(1), mbit(1));
    let again = CellCapacity { restart: true, ..huge };
    let elsewhere = |told| CellCapacity { elsewhere: true, ..told };
    let patterns: [&[CellCapacity]; 5] = [
        &[huge, again],
        &[little, again],
        &[little, elsewhere(little), again],
        &[elsewhere(huge), huge, little, again, elsewhere(again)],
        &[again, elsewhere(again)],
    ];
    for pattern in patterns {
        let (mut path, mut over) = (Path::new(), 0);
        for ms in 0..3000 {
            let cell = pattern[ms % pattern.len()];
            let pacing = path.step(mbit(10), Some(cell)).pacing.expect("paces");
            // Twice what the path has, and ten segments in a round trip.
            over += u64::from(pacing > mbit(22));
        }
        assert!(over <= RTT_MS * RISE + 1, "{pattern:?}: for {over} ms");
    }
}

#[test]
fn a_new_carrier_counts_after_the_rise_and_if_it_adds_rate() {
    let why = |path: &mut Path, cell| path.step(mbit(80), Some(cell)).why;
    let again = |fair| CellCapacity { restart: true, ..told(fair, fair) };
    let mut path = Path::new();
    path.run(60, mbit(80), Some(told(mbit(20), mbit(20))));
    path.run(80, mbit(80), Some(again(mbit(40))));
    assert_eq!(why(&mut path, told(mbit(40), mbit(40))), Why::PbeWireless, "the rise goes on, and to the new end");
    assert_eq!(why(&mut path, again(mbit(40))), Why::PbeWireless, "no more than before");
    path.run(40, mbit(80), Some(told(mbit(40), mbit(40))));
    assert_eq!(why(&mut path, again(mbit(80))), Why::PbeStart);
    let risen: Vec<f64> =
        (0..120).map(|_| path.step(mbit(80), Some(again(mbit(80)))).pacing.expect("paces").as_mbit_f64()).collect();
    // From 40 to 80 in three round trips: never more than twice what was delivered.
    for (ms, want) in [(39, 53.3), (79, 66.7), (119, 80.0)] {
        assert!((risen[ms] - want).abs() < 0.5, "{} at {ms} ms", risen[ms]);
    }
}

#[test]
fn a_receiver_that_does_not_tell_is_met_with_plain_bbr() {
    let (mut law, mut plain) = (Pbe::new(Params::default(), setup()), Bbr::new(setup()));
    for n in 0..2000 {
        let mut signal = ack(1, 10);
        signal.delivered = MSS * n;
        (signal.rtt, signal.srtt) = (Some(RTT), Some(RTT));
        signal.delivery = Some(DeliverySample {
            rate: mbit(2 + n % 7),
            interval: RTT,
            prior_delivered: MSS * n.saturating_sub(10),
            sent_at: at(n),
            app_limited: n % 50 == 3,
        });
        let sent = Sent { len: MSS, in_flight: MSS * 10, retransmission: false, from_idle: n % 100 == 0 };
        for signal in [Signal::Sent(sent), Signal::Ack(signal)] {
            law.sense(at(10 * n), &signal);
            plain.sense(at(10 * n), &signal);
            assert_eq!(law.decide(at(10 * n)), plain.decide(at(10 * n)));
        }
    }
    // One that promises to tell, and does not, is waited for during two round trips.
    let mut path = Path::new();
    let whys: Vec<Why> = (0..100).map(|_| path.step(mbit(10), None).why).collect();
    assert_eq!(whys.iter().position(|why| *why != Why::PbeStart), Some(79));
    assert_eq!(whys[79], Why::BbrStartup);
    // It tells after all.
    assert_eq!(path.step(mbit(10), Some(told(mbit(10), mbit(10)))).why, Why::PbeStart);
}

#[test]
fn a_cell_that_is_not_known_any_more_is_left_to_bbr() {
    let mut path = Path::new();
    path.run(200, mbit(16), Some(told(mbit(16), mbit(16))));
    path.step(mbit(16), Some(CellCapacity::UNKNOWN));
    assert_eq!(path.law.decide(at(path.ms)), path.law.bbr.decide(at(path.ms)));
    path.run(50, mbit(16), None);
    assert_eq!(path.law.decide(at(path.ms)), path.law.bbr.decide(at(path.ms)));
    assert_eq!(path.step(mbit(16), Some(told(mbit(16), mbit(16)))).why, Why::PbeStart);
}

#[test]
fn silence_halves_the_rate_and_recovery_does_not_count() {
    let mut path = Path::new();
    let cell = told(mbit(16), mbit(16));
    path.run(200, mbit(16), Some(cell));
    let seen: Vec<(u64, Why)> = (0..300)
        .map(|_| path.step(mbit(16), None))
        .map(|decision| (decision.pacing.expect("paces").as_bps() / 1000, decision.why))
        .collect();
    assert_eq!([seen[0].0, seen[118].0, seen[120].0, seen[161].0, seen[201].0], [16_000, 16_000, 8000, 4000, 2000]);
    assert_eq!((seen[238].1, seen[241].1 == Why::PbeWireless), (Why::PbeWireless, false));
    // The same silence in a recovery.
    let mut law = path.law;
    law.sense(at(1000), &Signal::Cell(cell));
    for ms in 1000..2000 {
        let mut signal = ack(1, 10);
        (signal.in_recovery, signal.rtt) = (true, Some(RTT));
        law.sense(at(ms), &Signal::Ack(signal));
    }
    assert_eq!(law.decide(at(2000)).why, Why::PbeWireless);
}

#[test]
fn after_a_timeout_the_window_grows_by_what_is_delivered() {
    let mut path = Path::new();
    path.run(200, mbit(16), Some(told(mbit(16), mbit(16))));
    assert_eq!(path.law.decide(at(200)).cwnd.expect("has one").upper, MSS * 80);
    let (in_flight, lost) = (Bytes::ZERO, MSS * 80);
    let loss = Loss { prior_in_flight: lost, in_flight, lost, delivered: Bytes::ZERO, mss: MSS };
    path.law.sense(at(200), &Signal::Timeout(loss));
    assert_eq!(path.law.decide(at(200)).cwnd.expect("has one").upper, MSS);
    let mut windows = Vec::new();
    for ms in 201..300 {
        path.law.sense(at(ms), &Signal::Ack(ack(1, 2)));
        windows.push(path.law.decide(at(ms)).cwnd.expect("has one").upper);
    }
    assert_eq!((windows[0], windows[49], windows[98]), (MSS * 2, MSS * 51, MSS * 80));
}

#[test]
fn a_flow_that_was_idle_rises_again() {
    let mut path = Path::new();
    path.law.sense(at(0), &Signal::Cell(told(mbit(60), mbit(60))));
    path.law.sense(at(500), &Signal::Wakeup);
    assert_eq!(path.law.decide(at(500)).why, Why::PbeWireless, "the rise had nothing to send");
    let sent = Sent { len: MSS, in_flight: MSS, retransmission: false, from_idle: true };
    path.law.sense(at(600), &Signal::Sent(sent));
    let decision = path.law.decide(at(600));
    assert_eq!((decision.why, decision.pacing), (Why::PbeStart, Some(mbit(2))));
}
