//! The regulator closed around the model hop: where it settles, and where it is stable.

use lasthop_laws::HopLaw;
use lasthop_laws::aggregation::allocation::exact;
use lasthop_laws::aggregation::model::{Hop, Link, aim_packets, airtime, most_packets};
use lasthop_laws::aggregation::{Allocation, OverheadRule, Params, Regulator};
use lasthop_signals::{Node, Signal, StationFeedback, StreamReport};
use lasthop_units::{Bytes, Span, Time};
use proptest::prelude::*;

const BITS: f64 = 12_000.0;

/// A hop that does what the model says, without noise: true overhead an access, and the stations' rates in Mbit/s.
struct World {
    law: Regulator,
    access: f64,
    mbit: Vec<f64>,
    now: Time,
    slot: u32,
    sent: Vec<f64>,
}

impl World {
    fn new(params: Params, access: f64, mbit: &[f64]) -> World {
        let law = Regulator::new(params).expect("valid");
        World { law, access, mbit: mbit.to_vec(), now: Time::ZERO, slot: 0, sent: vec![0.0; mbit.len()] }
    }

    fn hop(&self) -> Hop {
        let link = |mbit: &f64| {
            let airtime = airtime(1548.0 * 8.0, mbit * 1e6);
            Link { airtime, most: most_packets(64.0, 5.484e-3, airtime) }
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
        // Beyond capacity frames are full and arrive as fast as the hop can.
        let full: Vec<f64> = hop.links.iter().map(|link| link.most).collect();
        let levels = hop.aggregation(&rates).unwrap_or_else(|| full.clone());
        let carried: Vec<f64> = match hop.aggregation(&rates) {
            Some(_) => rates.clone(),
            None => hop.rates(&full),
        };
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
fn it_settles_at_the_oracle_points_whatever_it_believes_of_the_overhead_first() {
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
                hop.links.iter_mut().for_each(|link| link.most = aim_packets(48.0, 5.484e-3, link.airtime));
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

#[test]
fn the_edge_in_k1_is_two() {
    let swing = |k1| World::new(Params { k1, k2: 0.05, beta: 1e-9, ..params(10) }, 200e-6, &[390.0; 10]).swing(600);
    assert!(swing(1.98) < 0.01, "{}", swing(1.98));
    assert!(swing(2.02) > 0.05, "{}", swing(2.02));
}

#[test]
fn the_edge_in_k2_is_where_the_linearised_loop_has_it() {
    // c = 2 ms of T = 10 ms, K1 = 0.5: (4 - 1) / (2 - 0.5 * 0.8) = 1.875; the paper calls 1 the boundary.
    let swing = |k2| World::new(Params { k2, beta: 1e-9, ..params(10) }, 200e-6, &[390.0; 10]).swing(600);
    assert!(swing(1.0) < 0.01);
    assert!(swing(1.85) < 0.01, "{}", swing(1.85));
    assert!(swing(1.90) > 0.05, "{}", swing(1.90));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Stable for 0 < K1 c/ĉ < 2, whatever the hop, and Lemma 2's three cases: within, at the least, at the most.
    #[test]
    fn every_stable_gain_settles_in_one_of_lemma_twos_cases(
        loop_gain in 0.05..1.8f64,
        gamma in 0.25..4.0f64,
        n in 1usize..15,
        mbit in prop::sample::select(vec![87.75, 175.5, 390.0, 1170.0]),
        target in 2u64..25,
    ) {
        // ĉ stays wrong by gamma: the integral action must not care.
        let overhead = Span::from_secs_f64(200e-6 / gamma);
        let k1 = loop_gain / gamma;
        let params = Params { k1, k2: 0.15, beta: 1e-9, overhead, allocation: Allocation::Paper, ..params(target) };
        let mut world = World::new(params, 200e-6, &vec![mbit; n]);
        // Near an infeasible target, and at small gains, the loops are slow; time enough for both.
        let c = 200e-6 * n as f64;
        let slack = (1.0 - c / (target as f64 * 1e-3)).max(0.02);
        let slots = (10.0 / (0.15 * slack) + 40.0 / loop_gain).min(4000.0);
        let level = world.settle(slots as usize)[0];
        let w = airtime(1548.0 * 8.0, mbit * 1e6);
        let cap = aim_packets(48.0, 5.484e-3, w);
        let nu = (target as f64 * 1e-3 - c) / (n as f64 * w);
        let want = nu.clamp(1.0, cap);
        prop_assume!(slack > 0.02 || nu < 0.9);
        // With an overhead that stays overestimated the integral state meets its own limit first: mu = gamma z, z <= N_max.
        prop_assume!(want / gamma < 0.97 * most_packets(64.0, 5.484e-3, w));
        // And with one so large that a round of single packets seems longer than the target, frames never grow past one.
        prop_assume!(want <= 1.0 || c / gamma + n as f64 * w < 0.9 * target as f64 * 1e-3);
        // At the least rate an overhead that is believed too small by gamma lets frames grow by as much.
        let most = want.max(gamma);
        prop_assert!(level > 0.97 * want && level < 1.03 * most, "{level} for {want} (nu* {nu}, cap {cap})");
    }
}
