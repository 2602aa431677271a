//! One test for each guard of the controller, on a regulator with stations that report what the test wants.

use super::airtime_state::FEW;
use super::*;
use crate::aggregation::OverheadRule;
use crate::aggregation::model::{airtime, most_packets};
use lasthop_signals::{StationFeedback, StreamReport};
use lasthop_units::{Bytes, Span};

/// A proxy and its stations, slot by slot.
struct Bench {
    law: Regulator,
    slot: u32,
    sent: Vec<f64>,
    /// The stations know data rates, or what they hold for them: so many times too slow.
    rated: bool,
    wrong: f64,
    /// Data waits for everybody when the next slot ends.
    waits: bool,
}

/// What one station does in a slot.
#[derive(Clone, Copy)]
struct Act {
    /// Packets a second that are sent to it; what is allowed, if that is less.
    offered: f64,
    /// Share of them that arrive.
    arrive: f64,
    /// Packets a frame that it reports; 0: it reports none. `None`: what a hop of 200 us an access would make of it.
    level: Option<f64>,
    mbit: f64,
}

const BUSY: Act = Act { offered: f64::INFINITY, arrive: 1.0, level: None, mbit: 390.0 };

impl Bench {
    fn new(stations: usize, params: Params) -> Bench {
        let law = Regulator::new(params).expect("valid");
        let mut bench = Bench { law, slot: 0, sent: vec![0.0; stations], rated: true, wrong: 1.0, waits: false };
        (0..stations).for_each(|place| bench.stream(place, true));
        bench
    }

    fn now(&self) -> Time {
        Time::ZERO + Span::from_millis(u64::from(self.slot) * 500)
    }

    fn stream(&mut self, place: usize, waiting: bool) {
        let (packets, station) = (self.sent[place] as u64, node(place));
        let report = StreamReport { station, packets, bytes: Bytes::new(packets * 1500), waiting };
        self.law.sense(self.now(), &Signal::Stream(report));
    }

    /// One slot; `acts` are the stations', in order. A station to which nothing is offered is not sent to.
    fn slot(&mut self, acts: &[Act]) {
        let rates: Vec<f64> = (0..acts.len()).map(|place| self.rate(place)).collect();
        // Packets of a few a second are a frame each, not one in every round.
        let rare = |act: &Act| act.offered < 20.0;
        let sends = acts.iter().filter(|act| !rare(act)).count() as f64;
        let alone = |act: &Act| if rare(act) { 200e-6 } else { 0.0 };
        let packet = |act: &Act| airtime(12_384.0, act.mbit * 1e6) + alone(act);
        let load: f64 = acts.iter().zip(&rates).map(|(act, rate)| act.offered.min(*rate) * packet(act)).sum();
        let round = if load < 1.0 { 200e-6 * sends / (1.0 - load) } else { f64::INFINITY };
        // What a hop cannot carry in full frames does not arrive.
        let most = |act: &Act| {
            let airtime = airtime(12_384.0, act.mbit * 1e6);
            (most_packets(64.0, airtime), airtime)
        };
        let full = acts.iter().map(|act| most(act).0 * most(act).1).fold(f64::INFINITY, f64::min);
        let carried = (full / (full + 200e-6) / load).min(1.0);
        self.slot += 1;
        for (place, act) in acts.iter().enumerate() {
            let sent = act.offered.min(rates[place]);
            self.sent[place] += sent * 0.5;
            self.stream(place, (self.waits || act.offered >= rates[place]) && act.offered > 0.0);
            let packets = sent * act.arrive * carried * 0.5;
            let level = act.level.unwrap_or((sent * round).clamp(1.0, most(act).0));
            let frames = if level > 0.0 { (packets / level).ceil() } else { 0.0 };
            let report = StationFeedback {
                frames: frames as u32,
                packets: (frames * level) as u64,
                received: packets as u64,
                inverse_rate_sum: if self.rated { self.wrong * frames / (act.mbit * 1e6) } else { 0.0 },
                ..StationFeedback::empty(node(place), self.slot, Time::ZERO, Time::ZERO + Span::from_millis(500))
            };
            self.law.sense(self.now(), &Signal::Station(report));
        }
        self.waits = false;
        // Those that are not waited for have reported as well; the slot is over in any case.
        if self.law.stations.is_due(self.now()) {
            self.law.sense(self.now(), &Signal::Wakeup);
        }
    }

    fn slots(&mut self, count: usize, acts: &[Act]) {
        (0..count).for_each(|_| self.slot(acts));
    }

    fn state(&self, place: usize) -> &Loop {
        &self.law.stations.get(node(place)).expect("known").state
    }

    fn limited(&self, place: usize) -> bool {
        self.law.stations.get(node(place)).expect("known").activity.is_limited()
    }

    fn rate(&self, place: usize) -> f64 {
        self.state(place).rate.per_second
    }

    fn why(&self, place: usize) -> Why {
        self.law.stations.get(node(place)).expect("known").why(self.law.feasible_target.is_out())
    }
}

fn node(place: usize) -> Node {
    Node(u16::try_from(place).expect("few") + 1)
}

fn bench(stations: usize) -> Bench {
    Bench::new(stations, Params::default())
}

#[test]
fn the_reference_is_the_slowest_with_a_tenth_of_hysteresis() {
    let of = |mbit| Act { mbit, ..BUSY };
    let mut bench = bench(2);
    bench.slots(20, &[of(390.0), of(400.0)]);
    assert_eq!(bench.law.reference, Some(node(0)), "the slowest");
    bench.slots(5, &[of(390.0), of(360.0)]);
    assert_eq!(bench.law.reference, Some(node(0)), "8 % slower is not enough");
    let (before, share) = (bench.law.set_point(), bench.law.share().expect("a reference"));
    bench.slot(&[of(390.0), of(195.0)]);
    assert_eq!(bench.law.reference, Some(node(1)), "twice as slow is");
    // The levels are those of the new order: μ_1 w_1/w_i.
    let nu = bench.law.set_point();
    assert!((bench.law.share().expect("a reference") / share - 1.0).abs() < 1e-9, "{share} {:?}", bench.law.share());
    assert!((nu / (0.5 * before) - 1.0).abs() < 1e-9, "{before} {nu}");
    assert!((bench.state(1).target_level - nu).abs() < 1e-9);
    assert!((bench.state(0).target_level - (2.0 * nu).min(48.0)).abs() < 1e-9);
}

#[test]
fn an_application_limited_stream_freezes_at_1_5_times_its_use() {
    let mut bench = bench(2);
    bench.slots(60, &[BUSY, BUSY]);
    let z = bench.state(1).z;
    let little = Act { offered: 5_000.0, level: Some(1.0), ..BUSY };
    for _ in 0..20 {
        bench.slot(&[BUSY, little]);
        assert_eq!(bench.state(1).z, z, "frames of single packets are the application's");
    }
    assert_eq!(bench.why(1), Why::ApplicationLimited);
    assert!((bench.rate(1) / 7_500.0 - 1.0).abs() < 0.01, "{}", bench.rate(1));
    let more = Act { offered: 0.9 * bench.rate(1), ..little };
    bench.slot(&[BUSY, more]);
    assert_eq!(bench.state(1).z, z, "nine tenths of the rate are less than 0.95 of it");
    assert_eq!(bench.law.reference, Some(node(0)), "and it never leads");
}

/// As of a stream for which the proxy has just nothing to send when a slot ends: beside a fast one with frames that
/// would hold more packets than are allowed if they were as long as its own.
#[test]
fn one_slot_of_slightly_less_from_the_slowest_changes_little() {
    for mbit in [702.0, 2400.0] {
        let [fast, slow] = [mbit, 87.75].map(|mbit| Act { mbit, ..BUSY });
        let mut bench = Bench::new(2, Params { target: Span::from_millis(5), ..Params::default() });
        bench.slots(80, &[fast, slow]);
        assert_eq!(bench.law.reference, Some(node(1)));
        let before = [0, 1].map(|place| (bench.state(place).target_level, bench.rate(place)));
        let like_before = |bench: &Bench, place: usize| {
            let ratios = [bench.state(place).target_level / before[place].0, bench.rate(place) / before[place].1];
            assert!(
                ratios.iter().all(|ratio| (0.8..1.25).contains(ratio)),
                "{mbit}, station {place}: {ratios:?} of what it had"
            );
        };
        bench.slot(&[fast, Act { offered: 0.93 * bench.rate(1), ..slow }]);
        assert_eq!((bench.why(1), bench.law.reference), (Why::ApplicationLimited, Some(node(0))));
        like_before(&bench, 0);
        for _ in 0..5 {
            bench.slot(&[fast, slow]);
            [0, 1].into_iter().for_each(|place| like_before(&bench, place));
        }
    }
}

#[test]
fn shares_are_kept_over_a_slot_in_which_nobody_leads() {
    let [fast, slow] = [702.0, 87.75].map(|mbit| Act { mbit, ..BUSY });
    let mut bench = Bench::new(2, Params { target: Span::from_millis(5), ..Params::default() });
    bench.slots(80, &[fast, slow]);
    let before = bench.state(0).target_level;
    // As after a slot in which the slow one was limited and the fast one lacked packets.
    bench.law.reference = None;
    bench.slot(&[fast, Act { offered: 0.93 * bench.rate(1), ..slow }]);
    assert_eq!(bench.law.reference, Some(node(0)));
    let now = bench.state(0).target_level;
    assert!((0.95..1.05).contains(&(now / before)), "{now} packets a frame, {before} before");
}

#[test]
fn as_published_packets_per_frame_are_kept_not_shares() {
    let of = |mbit| Act { mbit, ..BUSY };
    let mut bench = Bench::new(2, Params { overhead_rule: OverheadRule::Round, ..Params::default() });
    bench.slots(40, &[of(390.0), of(400.0)]);
    let before = bench.law.set_point();
    bench.slot(&[of(390.0), of(195.0)]);
    assert_eq!(bench.law.reference, Some(node(1)));
    let ratio = bench.law.set_point() / before;
    assert!((0.8..1.25).contains(&ratio), "{ratio}: half of it would be the same share");
}

#[test]
fn what_a_limited_stream_leaves_is_the_others() {
    let both = {
        let mut bench = bench(2);
        bench.slots(60, &[BUSY, BUSY]);
        bench.rate(0)
    };
    let mut bench = bench(2);
    bench.slots(60, &[BUSY, BUSY]);
    bench.slots(15, &[BUSY, Act { offered: 5_000.0, level: Some(1.0), ..BUSY }]);
    assert!(bench.rate(0) > 1.2 * both, "{} and {both} while both send", bench.rate(0));
}

#[test]
fn a_drain_keeps_a_tenth_of_a_single_packet_round() {
    let mut bench = bench(2);
    bench.slots(40, &[BUSY, BUSY]);
    // One uses half of the time; the other's packets have ceased to arrive.
    let little = Act { offered: 15_000.0, ..BUSY };
    bench.slots(20, &[BUSY, little]);
    for _ in 0..6 {
        bench.slot(&[Act { arrive: 0.02, level: Some(64.0), ..BUSY }, little]);
    }
    let rounds = bench.law.rounds(bench.law.ahead());
    assert!(bench.limited(1) && rounds.shortest > 1.5 * rounds.singles, "{rounds:?}");
    let rate = bench.rate(0);
    assert!((rate * rounds.singles / TRICKLE - 1.0).abs() < 1e-9, "{rate} packets/s drain, {rounds:?}");
}

#[test]
fn two_silent_slots_freeze_a_station_and_ten_remove_it() {
    let silent = Act { arrive: 0.0, level: Some(0.0), ..BUSY };
    let mut bench = bench(2);
    bench.slots(60, &[BUSY, BUSY]);
    let (z, two) = (bench.state(1).z, bench.law.overhead());
    for slot in 1..=9 {
        bench.slot(&[BUSY, silent]);
        assert_eq!(bench.state(1).z, z, "slot {slot}: no frames, no error");
        assert_eq!(bench.why(1) == Why::Silent, slot >= 2, "slot {slot}");
        assert!(bench.law.views().all(|view| view.active), "slot {slot}");
    }
    bench.slot(&[BUSY, silent]);
    assert_eq!(bench.law.views().filter(|view| view.active).count(), 1);
    assert!(bench.law.overhead() < 0.8 * two, "c counts who is active: {} of {two}", bench.law.overhead());
}

#[test]
fn the_round_is_made_of_those_that_are_active() {
    let mut bench = bench(3);
    bench.slots(60, &[BUSY, BUSY, BUSY]);
    let (three, before) = (bench.law.overhead(), bench.rate(0));
    let none = Act { offered: 0.0, ..BUSY };
    bench.slots(2, &[BUSY, none, none]);
    assert!((bench.law.overhead() / three - 1.0 / 3.0).abs() < 0.1, "{three} {}", bench.law.overhead());
    assert!(bench.rate(0) > 1.5 * before, "the airtime of two others is free: {} after {before}", bench.rate(0));
    // They wait for their turn with one packet in a round of everybody, themselves included.
    let state = bench.state(0);
    let round = bench.law.overhead.round(2.0) + 2.0 * state.air.time;
    assert!((bench.rate(1) * round - 1.0).abs() < 0.05, "{}", bench.rate(1));
}

#[test]
fn no_rate_is_less_than_a_packet_a_round_of_single_packets() {
    // Frames that are always too large: the state falls as far as it may. Frames that no rate makes smaller are another hop to the
    // estimator that knows changes, which begins with the model's state there.
    let large = Act { level: Some(30.0), ..BUSY };
    for overhead_rule in [OverheadRule::Round, OverheadRule::Access] {
        let params = Params { target: Span::from_millis(1), overhead_rule, ..Params::default() };
        let mut bench = Bench::new(4, params);
        bench.slots(40, &[large; 4]);
        let singles = bench.law.overhead() + 4.0 * bench.state(0).air.time;
        for place in 0..4 {
            let rounds = bench.rate(place) * singles;
            if overhead_rule == OverheadRule::Round {
                assert_eq!(bench.state(place).z, LEAST_Z, "the state is held where it can come back from");
                assert!((rounds - 1.0).abs() < 1e-9, "{} in rounds of {singles}", bench.rate(place));
            }
            assert!(rounds > 1.0 - 1e-9, "{} in rounds of {singles}", bench.rate(place));
        }
    }
}

#[test]
fn the_state_stays_within_what_a_frame_holds() {
    // At 29.25 Mbit/s a frame of 5.484 ms holds 12 packets, and 9 are aimed at; single packets ask for ever more.
    let small = Act { level: Some(1.5), mbit: 29.25, ..BUSY };
    let mut bench = bench(1);
    bench.slots(200, &[small]);
    assert_eq!(bench.state(0).z, 12.0);
    assert!(bench.state(0).target_level <= 9.0, "{}", bench.state(0).target_level);
}

#[test]
fn a_backhaul_bounds_the_rate_without_integral_windup() {
    let starved = Act { arrive: 0.6, level: Some(2.0), ..BUSY };
    // So short a target that the state is far from its own limit.
    let mut bench = Bench::new(2, Params { target: Span::from_micros(1_500), ..Params::default() });
    bench.slots(60, &[BUSY, BUSY]);
    // Its frames are far shorter than the target.
    assert!(bench.state(1).target_level > 4.0);
    bench.slots(2, &[starved, starved]);
    let z = bench.state(1).z;
    bench.slot(&[starved, starved]);
    assert!(bench.state(1).z > z, "the slot that gives it away was not bounded yet: {z}");
    let clamp = bench.law.backhaul.clamp().expect("three slots of missing packets");
    assert_eq!((bench.rate(0), bench.rate(1)), (clamp / 2.0, clamp / 2.0));
    assert_eq!(bench.why(1), Why::Backhaul);
    let z = bench.state(1).z;
    let whole = Act { level: Some(2.0), ..BUSY };
    for _ in 0..30 {
        bench.slot(&[whole, whole]);
        // Also in the slot that ends it: its frames are of the bounded rate.
        assert_eq!(bench.state(1).z, z, "{:?}", bench.law.backhaul);
        let Some(clamp) = bench.law.backhaul.clamp() else { break };
        assert!(bench.rate(0) + bench.rate(1) <= clamp * (1.0 + 1e-9));
        assert_eq!(bench.law.reference, None, "such stations never lead");
    }
}

#[test]
fn one_station_missing_packets_is_no_shared_backhaul() {
    let starved = Act { arrive: 0.6, level: Some(2.0), ..BUSY };
    let mut bench = bench(12);
    bench.slots(60, &[BUSY; 12]);
    let mut acts = [BUSY; 12];
    acts[1] = starved;
    bench.slots(10, &acts);
    assert_eq!(bench.law.backhaul.clamp(), None);
    assert_eq!((bench.why(1), bench.why(2)), (Why::Backhaul, Why::Regulated));
}

#[test]
fn a_new_station_gets_one_packet_a_round_and_others_yield() {
    let mut bench = bench(1);
    bench.slots(30, &[BUSY]);
    let alone = bench.law.overhead();
    bench.sent.push(0.0);
    bench.stream(1, true);
    assert_eq!((bench.state(1).z, bench.why(1)), (1.0, Why::Entering));
    assert!((bench.law.overhead() / alone - 2.0).abs() < 1e-9, "it counts before the slot is over");
    assert!(bench.rate(1) > 0.0 && bench.rate(1) < bench.rate(0));
}

#[test]
fn stations_without_known_rates_are_regulated_alike() {
    for (stations, mbit) in [(1, 87.75), (1, 390.0), (1, 1_170.0), (3, 175.5)] {
        let acts = vec![Act { mbit, ..BUSY }; stations];
        let mut rated = Bench::new(stations, Params::default());
        rated.slots(80, &acts);
        let mut unrated = Bench { rated: false, ..Bench::new(stations, Params::default()) };
        unrated.slots(80, &acts);
        for place in 0..stations {
            let ratio = unrated.rate(place) / rated.rate(place);
            assert!((ratio - 1.0).abs() < 0.05, "{stations} at {mbit} Mbit/s: {ratio}");
            assert!((unrated.state(place).air.time / rated.state(place).air.time - 1.0).abs() < 0.1, "{mbit}");
        }
        assert_eq!(unrated.law.overhead.round(1.0), 200e-6, "what airtimes are guessed from is not learned from them");
    }
}

#[test]
fn a_data_rate_that_becomes_known_takes_the_place_of_the_guess() {
    let act = Act { mbit: 390.0, ..BUSY };
    let mut bench =
        Bench { rated: false, ..Bench::new(1, Params { overhead: Span::from_micros(40), ..Params::default() }) };
    // Before rounds of different lengths have told what it is.
    bench.slots(5, &[act]);
    assert!(bench.state(0).air.time > 1.05 * airtime(12_384.0, 390e6), "guessed from an overhead that is too small");
    bench.rated = true;
    bench.slots(1, &[act]);
    assert!((bench.state(0).air.time / airtime(12_384.0, 390e6) - 1.0).abs() < 1e-3);
    bench.rated = false;
    bench.slots(5, &[act]);
    assert!((bench.state(0).air.time / airtime(12_384.0, 390e6) - 1.0).abs() < 1e-3, "what was known is kept");
}

#[test]
fn a_rate_that_was_told_wrong_does_not_stay_for_ever() {
    let mut bench = bench(2);
    bench.slots(40, &[BUSY, BUSY]);
    let right = bench.rate(0);
    // Believed from the beginning to be so slow that one packet a frame is too much, no frame shows the rate again.
    let mut bench = Bench { wrong: 200.0, ..Bench::new(2, Params::default()) };
    bench.slots(3, &[BUSY, BUSY]);
    assert!(bench.state(0).last_slot.level < FEW, "{}", bench.state(0).last_slot.level);
    bench.rated = false;
    bench.slots(80, &[BUSY, BUSY]);
    assert!((bench.rate(0) / right - 1.0).abs() < 0.1, "{} of {right}", bench.rate(0));
}

#[test]
fn a_rate_that_needs_more_than_all_airtime_is_not_believed() {
    let mut bench = bench(2);
    bench.slots(40, &[BUSY, BUSY]);
    let right = bench.rate(0);
    bench.wrong = 200.0;
    for slot in 0..20 {
        bench.slot(&[BUSY, BUSY]);
        assert!((bench.rate(0) / right - 1.0).abs() < 0.3, "slot {slot}: {} of {right}", bench.rate(0));
    }
}

#[test]
fn without_rates_an_overhead_beyond_a_round_is_dropped() {
    let act = Act { mbit: 390.0, ..BUSY };
    let right = {
        let mut bench = bench(1);
        bench.slots(60, &[act]);
        bench.rate(0)
    };
    for overhead in [1, 3, 10] {
        let params = Params { overhead: Span::from_millis(overhead), ..Params::default() };
        let mut bench = Bench { rated: false, ..Bench::new(1, params) };
        bench.slots(120, &[act]);
        assert!((bench.rate(0) / right - 1.0).abs() < 0.1, "{overhead} ms: {} of {right}", bench.rate(0));
    }
}

#[test]
fn without_rates_longer_accesses_are_not_taken_for_packets() {
    // Accesses of the bench take 200 us; the law believes in a fifth of that, and in as much as five times.
    for micros in [40, 1_000] {
        let params = Params { overhead: Span::from_micros(micros), ..Params::default() };
        let mut bench = Bench { rated: false, ..Bench::new(3, params) };
        bench.slots(80, &[BUSY; 3]);
        let (airtime, right) = (bench.state(0).air.time, airtime(12_384.0, 390e6));
        assert!((airtime / right - 1.0).abs() < 0.1, "{micros} us: {airtime} s a packet of {right}");
        assert!((bench.law.overhead() / 600e-6 - 1.0).abs() < 0.2, "{micros} us: {}", bench.law.overhead());
    }
}

#[test]
fn a_station_that_never_aggregates_does_not_set_the_overhead() {
    for others in [0, 1, 3] {
        let mut bench = bench(1 + others);
        let (packet, fast) = (airtime(12_384.0, 54e6), airtime(12_384.0, 390e6));
        for slot in 0..80 {
            let believed = bench.law.overhead();
            // Everybody has a frame in every round.
            let load: f64 = (1..=others).map(|place| bench.rate(place) * fast).sum();
            let round = (200e-6 * (1 + others) as f64 + packet) / (1.0 - load).max(0.1);
            let arrive = (1.0 / (round * bench.rate(0))).min(1.0);
            let mut acts = vec![Act { arrive, level: Some(1.0), mbit: 54.0, ..BUSY }];
            acts.extend(
                (1..=others).map(|place| Act { level: Some((bench.rate(place) * round).clamp(1.0, 64.0)), ..BUSY }),
            );
            bench.slot(&acts);
            let all = bench.law.overhead();
            assert!(arrive > 0.97 || all >= 0.99 * believed, "{others} others, slot {slot}: {believed} to {all}");
        }
        assert!(bench.law.overhead.round(1.0) > 100e-6, "{others} others: {}", bench.law.overhead.round(1.0));
    }
}

#[test]
fn an_unreported_slot_keeps_the_path_estimate() {
    let starved = Act { arrive: 0.6, level: Some(2.0), ..BUSY };
    let mut bench = Bench::new(2, Params { target: Span::from_micros(1_500), ..Params::default() });
    bench.slots(60, &[BUSY, BUSY]);
    bench.slots(2, &[starved, starved]);
    let before = bench.law.backhaul.clone();
    assert_eq!(before.clamp(), None, "a third slot would be needed");
    bench.slot(&[Act { arrive: 0.0, level: Some(0.0), ..BUSY }; 2]);
    assert_eq!(bench.law.backhaul, before);
}

/// What a station that is sent a packet or two a slot does: its frames are far apart.
fn few(packets: f64) -> Act {
    Act { offered: packets / 0.5, level: Some(1.0), ..BUSY }
}

#[test]
fn stations_with_little_traffic_are_not_in_every_round() {
    for (target, each, mbit) in [(5, 1.0, 390.0), (5, 2.0, 390.0), (10, 1.0, 390.0), (10, 3.0, 390.0), (10, 1.0, 130.0)]
    {
        let params = Params { target: Span::from_millis(target), ..Params::default() };
        let mut alone = Bench::new(2, params.clone());
        let busy = Act { mbit, ..BUSY };
        alone.slots(80, &[busy; 2]);
        let mut bench = Bench::new(62, params);
        let mut acts = vec![busy; 2];
        acts.extend(vec![few(each); 60]);
        bench.slots(80, &acts);
        let here = format!("T {target}, {each} a slot beside {mbit} Mbit/s");
        assert!(!bench.law.feasible_target.is_out(), "{here}");
        let load = 60.0 * few(each).offered * (airtime(12_384.0, 390e6) + 200e-6);
        let ratio = bench.rate(0) / alone.rate(0);
        assert!((ratio / (1.0 - load) - 1.0).abs() < 0.05, "{here}: {ratio} of what it gets alone, they take {load}");
        // Of long frames one more or less in a slot is a third of what is left.
        let (access, near) = (bench.law.overhead.round(1.0), if mbit < 390.0 { 0.5 } else { 0.1 });
        assert!((access / 200e-6 - 1.0).abs() < near, "{here}: {access}");
        // And each of them may begin with a packet a round.
        assert!(bench.rate(5) * bench.state(0).last_slot.interval > 0.5, "{here}: {}", bench.rate(5));
    }
}

#[test]
fn where_all_are_limited_none_may_take_the_hop_for_itself() {
    let mut bench = bench(25);
    bench.slots(20, &[few(40.0); 25]);
    for station in 0..25 {
        // Half again what it used, or a packet in a round of single ones.
        let (rate, sent) = (bench.rate(station), bench.state(station).last_slot.sent);
        assert!(bench.limited(station) && rate < 4.0 * sent, "{rate}, {sent} were sent");
    }
    let all: f64 = (0..25).map(|station| bench.rate(station) * bench.state(station).air.time).sum();
    assert!(all < 1.0, "{all} of the time");
}

#[test]
fn a_backlog_at_slot_end_keeps_a_small_stream_limited() {
    let mut bench = bench(2);
    bench.slots(60, &[BUSY, BUSY]);
    bench.slots(3, &[BUSY, few(4.0)]);
    assert!(bench.limited(1));
    let z = bench.state(1).z;
    for _ in 0..10 {
        bench.waits = true;
        bench.slot(&[BUSY, few(4.0)]);
        assert!(bench.limited(1) && bench.state(1).z == z, "{:?}", bench.state(1));
    }
    // It is no longer when it uses what it gets.
    bench.slots(2, &[BUSY, BUSY]);
    assert!(!bench.limited(1));
}

#[test]
fn fading_is_no_new_hop_but_a_lasting_rate_change_is() {
    let of = |mbit| Act { mbit, ..BUSY };
    let params = Params { target: Span::from_millis(3), ..Params::default() };
    // About a third more and a third less than before, slot after slot.
    let mut bench = Bench::new(2, params.clone());
    for slot in 0..80 {
        let (mbit, before) = (if slot % 2 == 0 { 200.0 } else { 320.0 }, bench.law.set_point());
        bench.slot(&[of(mbit), of(mbit)]);
        assert!(!bench.state(0).air.shifted, "slot {slot}");
        let step = (bench.law.set_point() - before).abs();
        assert!(slot < 60 || step < 5.0, "slot {slot}: the outer loop makes no steps of {step} packets");
    }
    // Half as fast for two slots: ν is what the model has for that.
    let settled = |bench: &Bench| {
        let share = bench.law.set_point() * bench.state(0).air.time;
        let want = (3e-3 - bench.law.overhead()) / 2.0;
        assert!((share / want - 1.0).abs() < 0.01, "{share} of {want}");
    };
    bench.slot(&[of(100.0), of(100.0)]);
    assert!(!bench.state(0).air.shifted, "where all slots differ one is not believed");
    bench.slot(&[of(100.0), of(100.0)]);
    assert!(bench.state(0).air.shifted);
    settled(&bench);
    // Where none did, one is; and if the change was in the middle of it, so is the next.
    bench.slots(20, &[of(100.0), of(100.0)]);
    for mbit in [150.0, 260.0] {
        bench.slot(&[of(mbit), of(mbit)]);
        assert!(bench.state(0).air.shifted, "{mbit}");
        settled(&bench);
    }
    bench.slot(&[of(260.0), of(260.0)]);
    assert!(!bench.state(0).air.shifted);
    // The published law's outer loop goes there by itself.
    let mut published = Bench::new(2, Params { overhead_rule: OverheadRule::Round, ..params });
    published.slots(80, &[of(260.0), of(260.0)]);
    for _ in 0..6 {
        let before = published.law.set_point();
        published.slot(&[of(130.0), of(130.0)]);
        let step = (published.law.set_point() - before).abs();
        assert!(step < 6.0, "{step} of {before}");
    }
}

#[test]
fn stations_that_join_together_begin_with_equal_shares() {
    let idle = |places: std::ops::Range<usize>| places.map(|place| Signal::Idle(node(place))).collect::<Vec<_>>();
    let mut bench = bench(15);
    bench.slots(60, &[BUSY; 15]);
    let whole = bench.state(0).z;
    let late = bench.now() + Span::from_millis(100);
    bench.law.sense_all(late, &idle(3..15));
    assert!((bench.law.overhead() / bench.law.overhead.round(3.0) - 1.0).abs() < 1e-12, "they rest");
    let mut acts = [BUSY; 15];
    acts[3..].fill(Act { offered: 0.0, ..BUSY });
    bench.slots(3, &acts);
    let comes = |place: usize| {
        let packets = bench.sent[place] as u64;
        Signal::Stream(StreamReport { station: node(place), packets, bytes: Bytes::new(packets * 1500), waiting: true })
    };
    let signals: Vec<Signal> = idle(2..3).into_iter().chain((3..15).map(comes)).collect();
    let now = bench.now() + Span::from_millis(10);
    let [mut together, mut singly] = [bench.law.clone(), bench.law];
    together.sense_all(now, &signals);
    signals.iter().for_each(|signal| singly.sense(now, signal));
    let z = |law: &Regulator, place: usize| law.stations.get(node(place)).expect("known").state.z;
    assert!((3..15).all(|place| z(&together, place) == z(&together, 3)), "they are alike");
    assert!(z(&together, 3) < 2.0 * whole && !together.stations.get(node(2)).expect("known").is_present());
    // One by one, those that come first do not know of the others, and the last knows of all.
    assert_eq!(z(&together, 3), z(&singly, 14));
    assert!(z(&together, 3) < 0.6 * z(&singly, 3), "{} {}", z(&together, 3), z(&singly, 3));
}
