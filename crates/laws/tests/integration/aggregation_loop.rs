//! The regulator closed around the model hop: where it settles, and where it is stable.

use lasthop_laws::HopLaw;
use lasthop_laws::aggregation::allocation::exact;
use lasthop_laws::aggregation::model::{Hop, Link, aim_packets, airtime, most_packets};
use lasthop_laws::aggregation::{Allocation, OverheadRule, Params, Regulator};
use lasthop_signals::{Node, Signal, StationFeedback, StreamReport};
use lasthop_units::{Bytes, Span, Time};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::{Cell, RefCell};

const BITS: f64 = 12_000.0;

/// A hop that does what the model says, without noise: true overhead an access, the stations' rates in Mbit/s, and the packets
/// that wait for them because the hop was overrun.
struct World {
    law: Regulator,
    access: f64,
    mbit: Vec<f64>,
    now: Time,
    slot: u32,
    sent: Vec<f64>,
    queues: Vec<f64>,
}

/// Length of a slot, seconds.
const SLOT: f64 = 0.5;

impl World {
    fn new(params: Params, access: f64, mbit: &[f64]) -> World {
        let law = Regulator::new(params).expect("valid");
        let none = vec![0.0; mbit.len()];
        World { law, access, mbit: mbit.to_vec(), now: Time::ZERO, slot: 0, sent: none.clone(), queues: none }
    }

    fn hop(&self) -> Hop {
        let link = |mbit: &f64| {
            let airtime = airtime(1548.0 * 8.0, mbit * 1e6);
            Link { airtime, most: most_packets(64.0, airtime) }
        };
        Hop { overhead: self.access * self.mbit.len() as f64, links: self.mbit.iter().map(link).collect() }
    }

    fn rates(&self) -> Vec<f64> {
        let mut rates = vec![0.0; self.mbit.len()];
        self.law.decide(self.now, &mut |flow, decision| {
            rates[flow.0 as usize - 1] = decision.pacing.map_or(0.0, |rate| rate.as_bps() as f64 / BITS);
        });
        rates
    }

    /// One slot; returns the levels in it.
    fn slot(&mut self) -> Vec<f64> {
        let stations: Vec<Node> = (1u16..).take(self.mbit.len()).map(Node).collect();
        let stream = |sent: &[f64]| -> Vec<Signal> {
            let report = |(station, sent): (&Node, &f64)| StreamReport {
                station: *station,
                packets: *sent as u64,
                bytes: Bytes::new(*sent as u64 * 1500),
                waiting: true,
            };
            stations.iter().zip(sent).map(|pair| Signal::Stream(report(pair))).collect()
        };
        if self.slot == 0 {
            stream(&self.sent).iter().for_each(|signal| self.law.sense(self.now, signal));
        }
        let (rates, hop) = (self.rates(), self.hop());
        let start = self.now;
        self.now += Span::from_millis(500);
        self.slot += 1;
        let (levels, carried) = self.serve(&hop, &rates);
        self.sent.iter_mut().zip(&rates).for_each(|(sent, rate)| *sent += rate * 0.5);
        let streams = stream(&self.sent);
        for (place, station) in stations.iter().enumerate() {
            self.law.sense(self.now, &streams[place]);
            let frames = carried[place] * 0.5 / levels[place];
            // Far longer than the slot, so that whole numbers of frames and packets do not disturb the mathematics.
            let (from, to) = (Time::ZERO, Time::ZERO + Span::from_secs(10_000));
            self.law.sense(
                self.now,
                &Signal::Station(StationFeedback {
                    frames: (frames * 20_000.0).round() as u32,
                    packets: (carried[place] * 10_000.0).round() as u64,
                    inverse_rate_sum: (frames * 20_000.0).round() / (self.mbit[place] * 1e6),
                    ..StationFeedback::empty(*station, self.slot, from, to)
                }),
            );
        }
        assert!(self.now > start);
        levels
    }

    /// Levels and packets a second of one slot in which packets arrive at `rates` beside those that wait. Stations that have
    /// more than a frame holds send full frames in every round; the others send what has come since the last.
    fn serve(&mut self, hop: &Hop, rates: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let offered: Vec<f64> = rates.iter().zip(&self.queues).map(|(rate, queue)| rate + queue / SLOT).collect();
        let mut full = vec![false; offered.len()];
        let round = loop {
            let (mut busy, mut load) = (hop.overhead, 0.0);
            for ((link, offered), full) in hop.links.iter().zip(&offered).zip(&full) {
                match full {
                    true => busy += link.airtime * link.most,
                    false => load += link.airtime * offered,
                }
            }
            let round = if load < 1.0 { busy / (1.0 - load) } else { f64::INFINITY };
            let over = |place: &usize| !full[*place] && offered[*place] * round > hop.links[*place].most;
            match (0..full.len()).filter(over).max_by(|a, b| {
                let share = |place: &usize| offered[*place] / hop.links[*place].most;
                share(a).total_cmp(&share(b))
            }) {
                Some(place) => full[place] = true,
                None => break round,
            }
        };
        let levels: Vec<f64> =
            offered.iter().zip(&hop.links).map(|(offered, link)| (offered * round).clamp(1.0, link.most)).collect();
        let carried: Vec<f64> = offered
            .iter()
            .zip(&hop.links)
            .map(|(offered, link)| if offered * round > link.most { link.most / round } else { *offered })
            .collect();
        for ((queue, offered), carried) in self.queues.iter_mut().zip(&offered).zip(&carried) {
            *queue = ((offered - carried) * SLOT).max(0.0);
        }
        (levels, carried)
    }

    fn settle(&mut self, slots: usize) -> Vec<f64> {
        (0..slots).map(|_| self.slot()).last().expect("some slots")
    }

    /// Largest departure of the first station's level from its mean over the last of `slots`, as a share of the mean.
    fn swing(&mut self, slots: usize) -> f64 {
        self.settle(slots);
        let levels: Vec<f64> = (0..40).map(|_| self.slot()[0]).collect();
        let mean = levels.iter().sum::<f64>() / levels.len() as f64;
        levels.iter().map(|level| (level / mean - 1.0).abs()).fold(0.0, f64::max)
    }
}

fn params(target_ms: u64) -> Params {
    Params { target: Span::from_millis(target_ms), ..Params::default() }
}

#[test]
fn it_settles_at_the_oracle_from_any_first_overhead() {
    for (target, mbit) in [
        (5, vec![390.0; 5]),
        (10, vec![390.0; 10]),
        (20, vec![390.0; 11]),
        (10, vec![175.5, 117.0, 87.75]),
        (10, vec![1170.0, 585.0, 175.5]),
        (10, vec![390.0]),
    ] {
        for factor in [0.1, 0.5, 1.0, 2.0] {
            for rule in [OverheadRule::Access, OverheadRule::Round] {
                let overhead = Span::from_secs_f64(200e-6 * factor);
                let params = Params { overhead, overhead_rule: rule, ..params(target) };
                let mut world = World::new(params, 200e-6, &mbit);
                let levels = world.settle(240);
                let mut hop = world.hop();
                hop.links.iter_mut().for_each(|link| link.most = aim_packets(48.0, link.airtime));
                let oracle = exact(&hop, target as f64 * 1e-3);
                for (level, want) in levels.iter().zip(&oracle.levels) {
                    assert!(
                        (level / want - 1.0).abs() < 0.01,
                        "T {target} {mbit:?} x{factor} {rule:?}: {levels:?} {oracle:?}"
                    );
                }
            }
        }
    }
}

/// A round of single packets seems as long as the target or longer, at first or because a neighbour was there: the law asks for single
/// packets, and their interval is just what it believes.
#[test]
fn an_overhead_estimate_beyond_the_target_does_not_lock_it() {
    for (target, mbit) in
        [(3, vec![390.0; 3]), (5, vec![390.0; 5]), (10, vec![390.0; 8]), (10, vec![175.5, 87.75]), (10, vec![390.0])]
    {
        for rule in [OverheadRule::Access, OverheadRule::Round] {
            for first_ms in [8, 20, 50, 100] {
                let params = Params { overhead: Span::from_millis(first_ms), overhead_rule: rule, ..params(target) };
                let mut world = World::new(params.clone(), 200e-6, &mbit);
                let mut hop = world.hop();
                hop.links.iter_mut().for_each(|link| link.most = aim_packets(48.0, link.airtime));
                let oracle = exact(&hop, target as f64 * 1e-3);
                let near = |levels: &[f64]| {
                    levels.iter().zip(&oracle.levels).all(|(level, want)| (level / want - 1.0).abs() < 0.05)
                };
                let begun = (1..=300).find(|_| near(&world.slot()));
                assert!(
                    begun.is_some_and(|slots| slots <= 120),
                    "T {target} {mbit:?} {rule:?} from {first_ms} ms: {begun:?}"
                );
                // A neighbour makes each access take as long as the target, and goes.
                world.access = target as f64 * 1e-3;
                world.settle(240);
                world.access = 200e-6;
                let again = (1..=300).find(|_| near(&world.slot()));
                assert!(again.is_some_and(|slots| slots <= 120), "T {target} {mbit:?} {rule:?} again: {again:?}");
            }
        }
    }
}

/// A round of single packets is longer than the target: the shortest interval in which packets have half of the time is held, from
/// whatever is believed of the overhead first, and the target again when the hop has become another.
#[test]
fn an_infeasible_target_gives_packets_half_of_the_time() {
    for (target, access, mbit) in [
        (5, 400e-6, vec![390.0; 25]),
        (5, 200e-6, vec![390.0; 26]),
        (3, 1e-3, vec![390.0, 175.5, 1170.0, 585.0]),
        (5, 2e-3, vec![1170.0; 3]),
    ] {
        for first_us in [50, 200, 2_000, 20_000] {
            let here = format!("T {target} access {access} {mbit:?} from {first_us} us");
            let params = Params { overhead: Span::from_micros(first_us), ..params(target) };
            let mut world = World::new(params, access, &mbit);
            let mut hop = world.hop();
            hop.links.iter_mut().for_each(|link| link.most = aim_packets(48.0, link.airtime));
            let oracle = exact(&hop, 2.0 * hop.overhead);
            assert!(hop.round(&vec![1.0; mbit.len()]) > 1.05 * target as f64 * 1e-3, "{here} is out of reach");
            let levels = world.settle(120);
            for (level, want) in levels.iter().zip(&oracle.levels) {
                assert!((level / want - 1.0).abs() < 0.03, "{here}: {levels:?} {oracle:?}");
            }
            assert!(
                world.law.views().all(|view| (view.target_interval / (2.0 * hop.overhead) - 1.0).abs() < 0.03),
                "{here}"
            );
            // A tenth of the overhead is within reach.
            world.access = access / 10.0;
            let mut hop = world.hop();
            hop.links.iter_mut().for_each(|link| link.most = aim_packets(48.0, link.airtime));
            let (levels, oracle) = (world.settle(60), exact(&hop, target as f64 * 1e-3));
            for (level, want) in levels.iter().zip(&oracle.levels) {
                assert!((level / want - 1.0).abs() < 0.05, "{here}, again: {levels:?} {oracle:?}");
            }
            assert!(world.law.views().all(|view| view.target_interval == target as f64 * 1e-3), "{here}");
        }
    }
}

#[test]
fn the_edge_in_k1_is_two() {
    let swing = |k1| World::new(Params { k1, k2: 0.05, beta: 1e-9, ..params(10) }, 200e-6, &[390.0; 10]).swing(600);
    assert!(swing(1.98) < 0.01, "{}", swing(1.98));
    assert!(swing(2.02) > 0.05, "{}", swing(2.02));
}

#[test]
fn the_stability_edge_of_k1_follows_the_overhead_error() {
    // K1 c/ĉ = 2: with an overhead that stays twice or half what is believed, at half or twice the gain.
    for gamma in [0.5, 2.0, 3.0] {
        let overhead = Span::from_secs_f64(200e-6 * 10.0 / gamma);
        let swing = |loop_gain: f64| {
            let rule = OverheadRule::Round;
            let k1 = loop_gain / gamma;
            let params = Params { k1, k2: 0.05, beta: 1e-9, overhead, overhead_rule: rule, ..params(10) };
            World::new(params, 200e-6, &[390.0; 10]).swing(600)
        };
        assert!(swing(1.95) < 0.01, "{gamma}: {}", swing(1.95));
        assert!(swing(2.05) > 0.05, "{gamma}: {}", swing(2.05));
    }
}

#[test]
fn the_edge_in_k2_is_where_the_linearised_loop_has_it() {
    // c = 2 ms of T = 10 ms, K1 = 0.5: (4 - 1) / (2 - 0.5 * 0.8) = 1.875; the paper calls 1 the boundary.
    let swing = |k2| World::new(Params { k2, beta: 1e-9, ..params(10) }, 200e-6, &[390.0; 10]).swing(600);
    assert!(swing(1.0) < 0.01);
    assert!(swing(1.85) < 0.01, "{}", swing(1.85));
    assert!(swing(1.90) > 0.05, "{}", swing(1.90));
}

/// Where the loops settle while ĉ stays wrong by gamma.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Settled {
    /// Lemma 2's three cases: at the target, with single packets, at the most that is aimed at.
    Within,
    Least,
    Most,
    /// The least rate is a packet in a round of single packets as the law believes it to be, and frames grow by gamma in
    /// rounds that last longer.
    LeastBelieved,
    /// The integral state meets its limit, for z = mu / gamma is at most what a frame holds.
    Limit,
    /// A round of single packets seems longer than the target, and frames never grow past one.
    OutOfReachBelieved,
}

/// Where like stations settle: `nu` is the level at which the interval is the target, `cap` the most that is aimed at, `most`
/// what a frame holds, `reach` the target over what a round of single packets is believed to last.
fn settled(nu: f64, cap: f64, most: f64, gamma: f64, reach: f64) -> (Settled, f64) {
    let least = gamma.max(1.0);
    if nu > 1.0 && reach < 1.0 {
        (Settled::OutOfReachBelieved, 1.0)
    } else if nu < least {
        (if gamma > 1.0 { Settled::LeastBelieved } else { Settled::Least }, least)
    } else if nu.min(cap) > gamma * most {
        (Settled::Limit, gamma * most)
    } else if nu > cap {
        (Settled::Most, cap)
    } else {
        (Settled::Within, nu)
    }
}

/// Stable for 0 < K1 c/ĉ < 2, whatever the hop, and Lemma 2's three cases: within, at the least, at the most. So that
/// nothing but the integral action makes good for a wrong ĉ, it stays wrong by gamma: where that leads away from Lemma 2, the
/// level is what the loops' equations give.
#[test]
fn every_stable_gain_settles_in_one_of_lemma_twos_cases() {
    const CASES: u32 = 512;
    // Half of the targets are short, so that the least case is not rare.
    let target = prop_oneof![2u64..25, 2u64..4];
    let strategy =
        (0.05..1.8f64, 0.25..4.0f64, 1usize..15, prop::sample::select(vec![87.75, 175.5, 390.0, 1170.0]), target);
    let (seen, too_near) = (RefCell::new(Vec::new()), Cell::new(0));
    let mut runner = TestRunner::new(ProptestConfig { cases: CASES, ..ProptestConfig::with_source_file(file!()) });
    let result = runner.run(&strategy, |(loop_gain, gamma, n, mbit, target)| {
        let (c, k1, rule) = (200e-6 * n as f64, loop_gain / gamma, OverheadRule::Round);
        let overhead = Span::from_secs_f64(c / gamma);
        let allocation = Allocation::Paper;
        let params = Params { k1, k2: 0.15, beta: 1e-9, overhead, overhead_rule: rule, allocation, ..params(target) };
        let mut world = World::new(params, 200e-6, &vec![mbit; n]);
        let w = airtime(1548.0 * 8.0, mbit * 1e6);
        let seconds = target as f64 * 1e-3;
        let nu = (seconds - c) / (n as f64 * w);
        let reach = seconds / (c / gamma + n as f64 * w);
        // From there the loops need ever longer to leave single packets.
        if nu > 1.0 && (0.98..1.02).contains(&reach) {
            too_near.set(too_near.get() + 1);
            return Ok(());
        }
        // Near an infeasible target, and at small gains, the loops are slow; time enough for both.
        let slack = (1.0 - c / seconds).max(0.02).min((reach - 1.0).abs());
        let slots = (10.0 / (0.15 * slack) + 40.0 / loop_gain).min(4_000.0);
        let level = world.settle(slots as usize)[0];
        let (cap, most) = (aim_packets(48.0, w), most_packets(64.0, w));
        let (case, want) = settled(nu, cap, most, gamma, reach);
        seen.borrow_mut().push(case);
        prop_assert!(
            (level / want - 1.0).abs() < 0.03,
            "{level} for {want}: {case:?} (nu* {nu}, cap {cap}, reach {reach})"
        );
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    let of = |case: Settled| seen.borrow().iter().filter(|seen| **seen == case).count();
    use Settled::{Least, LeastBelieved, Limit, Most, OutOfReachBelieved, Within};
    let counts = [Within, Least, Most, LeastBelieved, Limit, OutOfReachBelieved].map(|case| (case, of(case)));
    println!("{counts:?}, {} of {CASES} too near the edge of reach to tell", too_near.get());
    assert!(counts.iter().all(|(_, count)| *count > 0), "{counts:?}");
    assert!(too_near.get() < CASES / 20, "{}", too_near.get());
}

/// The same for the optimum, and stations of unlike rates: they settle where the oracle has them, capped or not. Not counted are
/// the exceptions of the test above, where one station's limit changes what the others find.
#[test]
fn every_stable_gain_settles_at_the_optimum_of_unlike_stations() {
    const CASES: u32 = 192;
    let mbit = prop::collection::vec(prop::sample::select(vec![87.75, 175.5, 390.0, 585.0, 1170.0]), 2..8);
    let (tried, told) = (Cell::new(0), Cell::new(0));
    let mut runner = TestRunner::new(ProptestConfig { cases: CASES, ..ProptestConfig::with_source_file(file!()) });
    let result = runner.run(&(0.05..1.8f64, 0.4..2.5f64, mbit, 3u64..25), |(loop_gain, gamma, mbit, target)| {
        tried.set(tried.get() + 1);
        let c = 200e-6 * mbit.len() as f64;
        let overhead = Span::from_secs_f64(c / gamma);
        let (k1, rule) = (loop_gain / gamma, OverheadRule::Round);
        let params = Params { k1, k2: 0.15, beta: 1e-9, overhead, overhead_rule: rule, ..params(target) };
        let mut world = World::new(params, 200e-6, &mbit);
        let mut hop = world.hop();
        let most: Vec<f64> = hop.links.iter().map(|link| link.most).collect();
        hop.links.iter_mut().for_each(|link| link.most = aim_packets(48.0, link.airtime));
        let oracle = exact(&hop, target as f64 * 1e-3);
        let singles: f64 = hop.links.iter().map(|link| link.airtime).sum();
        // An integral state at its limit, the least rate, and a target that seems out of reach or nearly so.
        let free = oracle.rates.iter().all(|rate| *rate > 1.05 / (c / gamma + singles))
            && oracle.levels.iter().zip(&most).all(|(level, most)| level / gamma < 0.97 * most)
            && c / gamma + singles < 0.9 * target as f64 * 1e-3;
        if !free {
            return Ok(());
        }
        told.set(told.get() + 1);
        let slack = (1.0 - c / oracle.round).max(0.02);
        // At large gains what begins at single packets swings between them and full frames first, for a hundred slots and more.
        let slots = (10.0 / (0.15 * slack) + 40.0 / loop_gain + 400.0).min(4000.0);
        let levels = world.settle(slots as usize);
        for (level, want) in levels.iter().zip(&oracle.levels) {
            prop_assert!((level / want - 1.0).abs() < 0.03, "{levels:?} for {oracle:?}");
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    println!("{} of {} are within all limits", told.get(), tried.get());
    assert!(2 * told.get() > tried.get(), "{} of {}", told.get(), tried.get());
}

/// What the two tests of the law as it ships have drawn, and what they can tell of it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shipped {
    /// At the target, with what it claims of others' air; or at the most that is aimed at.
    Target,
    Most,
    /// Out of reach (decision 9): packets have half of the time. In frames of fewer than 4 packets, about that.
    Half,
    AboutHalf,
    /// Not told: what is asked for is below the least rate, which is a packet of each in a round of single ones.
    Least,
    /// Not told: single packets take the target within a few per cent, and what is believed of them decides. It need not be right: up to 1.05 of the
    /// target it is not given up, and frames of fewer than 1.1 packets do not raise it.
    Edge,
    /// Not told: in short frames the overhead may stay too small, and K1 c/ĉ is then about 2 or more.
    Unstable,
}

/// Frames of fewer packets do not raise what is believed of the overhead (decision 8), and single ones lower it: it stays too small, by up to
/// `UNSEEN` where accesses take more than half of a round.
const SHOW: f64 = 4.0;
const UNSEEN: f64 = 1.6;

/// The interval that is held where `aim` is aimed at, if accesses are said to take `own` seconds of a round. What they take beyond that counts
/// as others' air, and while that is more than the packets', rounds are longer by up to 0.3 (`controller::rounds`).
fn claimed(hop: &Hop, aim: f64, own: f64) -> f64 {
    (0..100).fold(aim, |interval, _| {
        let round = exact(hop, interval).round;
        let packets = 1.0 - hop.overhead / round;
        let others = (hop.overhead - own) / round;
        let crowded = round >= 0.75 * aim && others > packets;
        let claim = if crowded { 0.3 * (others - packets) / (others + packets) } else { 0.0 };
        0.5 * (interval + aim * (1.0 + claim))
    })
}

/// The law with nothing set but its target, its gain, and a first belief of the overhead that is too small by `gamma`: it settles at the optimum,
/// and rests there.
fn shipped(k1: f64, gamma: f64, mbit: &[f64], target: u64) -> Result<Shipped, TestCaseError> {
    let (access, seconds) = (200e-6, target as f64 * 1e-3);
    let overhead = Span::from_secs_f64(access / gamma);
    let mut world = World::new(Params { k1, overhead, ..params(target) }, access, mbit);
    let mut hop = world.hop();
    hop.links.iter_mut().for_each(|link| link.most = aim_packets(48.0, link.airtime));
    let singles = hop.round(&vec![1.0; mbit.len()]);
    if (0.95..1.16).contains(&(singles / seconds)) {
        return Ok(Shipped::Edge);
    }
    let out = singles > seconds;
    let aim = if out { singles.max(2.0 * hop.overhead) } else { seconds };
    let oracle = exact(&hop, claimed(&hop, aim, hop.overhead / gamma));
    let level = oracle.levels.iter().copied().fold(f64::INFINITY, f64::min);
    let most = oracle.levels.iter().zip(&hop.links).all(|(level, link)| *level >= link.most);
    let short = level < SHOW && !most;
    // In short frames the overhead may stay too small, and the least rate is then that of shorter rounds.
    let believed = singles - hop.overhead + hop.overhead / if short { UNSEEN } else { 1.0 };
    let case = match () {
        () if oracle.rates.iter().any(|rate| *rate < 1.05 / believed) => return Ok(Shipped::Least),
        () if short && k1 * UNSEEN > 1.9 => return Ok(Shipped::Unstable),
        () if out && short => Shipped::AboutHalf,
        () if out => Shipped::Half,
        () if most => Shipped::Most,
        () => Shipped::Target,
    };
    // At small gains, and near what is out of reach, the loops are slow.
    let slack = (1.0 - hop.overhead / oracle.round).max(0.02);
    world.settle((10.0 / (0.2 * slack) + 40.0 / k1 + 200.0) as usize);
    let rounds = |world: &World| world.law.views().map(|view| view.interval).collect::<Vec<f64>>();
    let (last, intervals) = (world.slot(), rounds(&world));
    let here = format!("{case:?}: K1 {k1} gamma {gamma} T {target} {mbit:?}: {last:?}, {intervals:?} for {oracle:?}");
    for _ in 0..40 {
        let levels = world.slot();
        let rests = levels.iter().zip(&last).all(|(level, last)| (level / last - 1.0).abs() < 0.005);
        prop_assert!(rests, "{here} and then {levels:?}");
    }
    let within = |got: &[f64], want: &[f64], least: f64, most: f64| {
        got.iter().zip(want).all(|(got, want)| (least..=most).contains(&(got / want)))
    };
    let (least, most) = match case {
        // An overhead that is believed too small stays so, but for what makes the target seem within reach: two thirds of the rate at the worst.
        Shipped::AboutHalf => (if gamma > 1.0 { 0.7 } else { 0.85 }, 1.01),
        _ => (0.99, 1.01),
    };
    prop_assert!(within(&intervals, &vec![oracle.round; mbit.len()], least, most), "{here}");
    // What a tenth less of a round leaves to few packets is a fifth less of them.
    let least = if case == Shipped::AboutHalf { 2.0 * least - 1.0 } else { least };
    prop_assert!(within(&last, &oracle.levels, least, most), "{here}");
    Ok(case)
}

/// Draws gains and hops for the law as it ships; each case of `told` must come, and more than this share of all be one of them.
fn every_shipped(strategy: impl Strategy<Value = (f64, f64, Vec<f64>, u64)>, told: &[Shipped], share: f64) {
    const CASES: u32 = 1024;
    let seen = RefCell::new(Vec::new());
    let mut runner = TestRunner::new(ProptestConfig { cases: CASES, ..ProptestConfig::with_source_file(file!()) });
    let result = runner.run(&strategy, |(k1, gamma, mbit, target)| {
        seen.borrow_mut().push(shipped(k1, gamma, &mbit, target)?);
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    let of = |case: Shipped| seen.borrow().iter().filter(|seen| **seen == case).count();
    use Shipped::{AboutHalf, Edge, Half, Least, Most, Target, Unstable};
    let counts = [Target, Most, Half, AboutHalf, Least, Edge, Unstable].map(|case| (case, of(case)));
    println!("{counts:?}");
    assert!(told.iter().all(|case| of(*case) > 0), "{counts:?}");
    let all: usize = told.iter().map(|case| of(*case)).sum();
    assert!(all as f64 > share * f64::from(CASES), "{counts:?}");
}

/// The law as it ships, on hops of like stations as above. K1 alone is below 2, not K1 gamma: what frames show corrects what is believed first.
#[test]
fn the_shipped_law_settles_at_every_stable_gain() {
    let target = prop_oneof![2u64..25, 2u64..4];
    let mbit = prop::sample::select(vec![87.75, 175.5, 390.0, 1170.0]);
    let like = (0.05..1.8f64, 0.25..4.0f64, (1usize..15, mbit).prop_map(|(n, mbit)| vec![mbit; n]), target);
    use Shipped::{AboutHalf, Half, Most, Target};
    every_shipped(like, &[Target, Most, Half, AboutHalf], 0.7);
}

/// And of unlike ones.
#[test]
fn the_shipped_law_settles_at_the_optimum_of_unlike_stations() {
    let mbit = prop::collection::vec(prop::sample::select(vec![87.75, 175.5, 390.0, 585.0, 1170.0]), 2..8);
    every_shipped((0.05..1.8f64, 0.4..2.5f64, mbit, 1u64..25), &[Shipped::Target, Shipped::Most], 0.8);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// A hop that carries a quarter from one slot to the next, because its data rates fall or because others take the
    /// channel: what was sent meanwhile stands in the queue, no more than that, and has gone two seconds later.
    #[test]
    fn a_hop_falling_to_a_quarter_queues_one_slot_and_drains(
        n in 1usize..12,
        mbit in prop::sample::select(vec![390.0, 585.0, 1170.0]),
        taken in prop::bool::ANY,
        target in 8u64..25,
    ) {
        let mut world = World::new(params(target), 200e-6, &vec![mbit; n]);
        world.settle(240);
        let before: f64 = world.rates().iter().sum();
        let capacity = |world: &World| -> f64 {
            let hop = world.hop();
            hop.rates(&hop.links.iter().map(|link| link.most).collect::<Vec<f64>>()).iter().sum()
        };
        let was = capacity(&world);
        match taken {
            true => world.access += 3.0 * (world.access + 64.0 * airtime(1548.0 * 8.0, mbit * 1e6)),
            false => world.mbit.iter_mut().for_each(|mbit| *mbit /= 4.0),
        }
        let is = capacity(&world);
        prop_assert!(is < 0.5 * was, "{was} {is}");
        let bound = (before - is) * SLOT + 64.0 * n as f64;
        let waiting: Vec<f64> = (0..40).map(|_| { world.slot(); world.queues.iter().sum() }).collect();
        prop_assert!(waiting.iter().all(|queue| *queue <= bound), "{waiting:?} above {bound}");
        prop_assert!(waiting[4..].iter().all(|queue| *queue <= 64.0 * n as f64), "{waiting:?}");
        // And the levels become the optimum's, unless the outer loop is slow to find it: its pole is 1 - K2 (1 - c/T).
        let mut hop = world.hop();
        hop.links.iter_mut().for_each(|link| link.most = aim_packets(48.0, link.airtime));
        let (levels, oracle) = (world.settle(60), exact(&hop, target as f64 * 1e-3));
        let feasible = hop.overhead < 0.7 * target as f64 * 1e-3;
        for (level, want) in levels.iter().zip(&oracle.levels).filter(|_| feasible) {
            prop_assert!((level / want - 1.0).abs() < 0.05, "{levels:?} for {oracle:?}");
        }
    }
}
