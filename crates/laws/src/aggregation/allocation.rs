//! The best rates of a hop with rounds of at most T̄ and frames of at most N̄ packets.
//! Source:     \[aggregation\], problem P' and the rule of equations (25) to (27); its correction is own.
//! Equations:  max sum log x_i   s.t.   w'x <= 1 - c/T̄,   c x_i + N̄_i w'x <= N̄_i
//!             Omega(a) = c + sum_i min{a, N̄_i w_i},   mu_i = min{a/w_i, N̄_i},   x = mu / Omega
//!             exact:  a = min{ root of Omega(a) = T̄,  root of Omega(a) = n a }
//!             paper:  a = min{ root of Omega(a) = T̄,  N̄_1 w_1 },   station 1 being the slowest
//! Symbols:    a -> `share` (s of every round for a station below its cap), N̄_i -> `Link::most`, T̄ -> `target`,
//!             c -> `Hop::overhead`, w -> `Link::airtime`, mu -> `levels`, x -> `rates`, Omega -> `round`
//! Deviations: caps are a station's own (the longest frame). Where even frames of one packet make a round longer than T̄
//!             the target is out of reach: every station then has frames of one packet at least (a >= w_1), as published; and
//!             so where `exact` would have less in a slow station's frames because caps are dear.
//!             The paper bisects; here the root of a piecewise linear function is computed, in O(n log n).
//! Validity:   c > 0, w_i > 0, N̄_i >= 1.
//! Checked by: tests::*, tests/integration/allocation_optimum.rs (a convex solver)
//!
//! # Why `exact` is the optimum
//!
//! The objective is strictly concave and the constraints are linear, so the Karush-Kuhn-Tucker conditions decide. With
//! multipliers λ for the round and κ_i for the caps, stationarity reads
//!
//! ```text
//! 1/x_i = w_i Θ + κ_i c,      Θ = λ + Σ_j κ_j N̄_j
//! ```
//!
//! Write Ω = c/(1 - w'x) and μ_i = x_i Ω, the levels of F. The cap constraint is μ_i <= N̄_i. Where it is slack, κ_i = 0
//! and μ_i = Ω/(Θ w_i) = a/w_i with a = Ω/Θ. Where it binds, μ_i = N̄_i, and κ_i >= 0 says N̄_i <= a/w_i. Together
//! μ_i = min{a/w_i, N̄_i}, hence Ω = c + Σ min{a, N̄_i w_i} = Ω(a). Which a it is follows from λ:
//!
//! * λ > 0: the round is as long as it may be, Ω(a) = T̄.
//! * λ = 0: then Θ = Σ κ_j N̄_j over the capped stations, where κ_j c = 1/x_j - w_j Θ = Ω (1/N̄_j - w_j/a). Multiplying
//!   out, c/a = Σ_capped (1 - N̄_j w_j/a), or c + Σ_capped N̄_j w_j = (number of capped) a. Adding a for each of the
//!   others gives Ω(a) = n a.
//!
//! Ω(a) - n a falls in a and λ >= 0 means Ω(a) >= n a; Ω(a) rises in a and feasibility means Ω(a) <= T̄. Both hold exactly
//! at the smaller of the two roots. The second root is the price of the caps: a capped station gains nothing from a longer
//! round, it only waits longer for its next full frame. The published rule ignores it and lengthens the round to T̄ (or
//! until the slowest is capped as well); where no station is capped, or all have equal w and N̄, the two agree.

use super::model::Hop;

/// Rates, and what follows from them.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Packets a second of every station (x).
    pub rates: Vec<f64>,
    /// Packets a frame of every station (μ).
    pub levels: Vec<f64>,
    /// Time of a round in seconds: the interval between a station's frames (Ω).
    pub round: f64,
    /// False if the target is out of reach: frames of one packet already make a longer round.
    pub feasible: bool,
}

/// The optimum. `hop.links[i].most` is the cap N̄_i; `target` is T̄ in seconds.
pub fn exact(hop: &Hop, target: f64) -> Plan {
    plan(hop, target, exact_share(hop, target))
}

/// The published rule.
pub fn paper(hop: &Hop, target: f64) -> Plan {
    plan(hop, target, paper_share(hop, target))
}

/// Seconds on the air that a station below its cap has in every round of [`exact`] (a), a packet of the slowest at least.
pub fn exact_share(hop: &Hop, target: f64) -> f64 {
    let caps = caps(hop);
    let share = share_for(hop, &caps, |_| target).min(share_for(hop, &caps, |share| caps.len() as f64 * share));
    share.max(least(hop))
}

/// The same of [`paper`].
pub fn paper_share(hop: &Hop, target: f64) -> f64 {
    let slowest = hop.links.iter().max_by(|a, b| a.airtime.total_cmp(&b.airtime));
    let cap = slowest.map_or(f64::INFINITY, |link| link.most * link.airtime);
    share_for(hop, &caps(hop), |_| target).min(cap).max(least(hop))
}

fn plan(hop: &Hop, target: f64, share: f64) -> Plan {
    let levels: Vec<f64> = hop.links.iter().map(|link| (share / link.airtime).min(link.most)).collect();
    let round = hop.round(&levels);
    // A tolerance for rounding in the root, not for missing the target.
    Plan { rates: hop.rates(&levels), levels, round, feasible: round <= target * (1.0 + 1e-9) }
}

fn least(hop: &Hop) -> f64 {
    hop.links.iter().map(|link| link.airtime).fold(0.0, f64::max)
}

/// The stations' caps as shares, rising.
fn caps(hop: &Hop) -> Vec<f64> {
    let mut caps: Vec<f64> = hop.links.iter().map(|link| link.most * link.airtime).collect();
    caps.sort_unstable_by(f64::total_cmp);
    caps
}

/// The share a at which Ω(a) = `goal`(a), infinite if there is none. `goal` is linear, and crosses Ω once from above or
/// from below.
fn share_for(hop: &Hop, caps: &[f64], goal: impl Fn(f64) -> f64) -> f64 {
    // Between two caps Ω is linear: `fixed` from the stations that are capped there, and one a for each of the others.
    let (mut fixed, mut from) = (hop.overhead, 0.0);
    let slope_of_goal = goal(1.0) - goal(0.0);
    for (capped, upto) in caps.iter().copied().chain([f64::INFINITY]).enumerate() {
        let slope = (caps.len() - capped) as f64 - slope_of_goal;
        let root = (goal(0.0) - fixed) / slope;
        if root.is_finite() && (from..=upto).contains(&root) {
            return root;
        }
        if upto.is_finite() {
            fixed += upto;
            from = upto;
        }
    }
    // Either no share makes the rounds that long, or even a share of nothing makes them longer.
    if goal(0.0) < hop.overhead && slope_of_goal == 0.0 { 0.0 } else { f64::INFINITY }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregation::model::{Link, aim_packets, airtime};

    const PACKET_BITS: f64 = 12_000.0;

    /// Overhead of 200 us a station, packets of 1500 B and 48 B around each, as in the values that were checked with a
    /// solver.
    fn hop(mbit: &[f64]) -> Hop {
        let link = |rate: &f64| {
            let airtime = airtime(1548.0 * 8.0, rate * 1e6);
            Link { airtime, most: aim_packets(48.0, airtime) }
        };
        Hop { overhead: 200e-6 * mbit.len() as f64, links: mbit.iter().map(link).collect() }
    }

    /// Caps of 48 whatever the longest frame: what the comparison with the solver used.
    fn hop_48(mbit: &[f64]) -> Hop {
        let mut hop = hop(mbit);
        hop.links.iter_mut().for_each(|link| link.most = 48.0);
        hop
    }

    fn mbit(plan: &Plan) -> f64 {
        plan.rates.iter().sum::<f64>() * PACKET_BITS / 1e6
    }

    fn logs(plan: &Plan) -> f64 {
        plan.rates.iter().map(|rate| rate.ln()).sum()
    }

    #[test]
    fn every_oracle_value_of_equal_stations() {
        // (T ms, n, packets, delay ms, Mbit/s a station) at the equilibrium of [aggregation], computed apart from
        // this code.
        let oracle = [
            (5.0, 1, 48.0, 1.72, 334.1),
            (5.0, 5, 25.2, 5.00, 60.5),
            (5.0, 10, 9.4, 5.00, 22.7),
            (5.0, 15, 4.2, 5.00, 10.1),
            (5.0, 20, 1.6, 5.00, 3.8),
            (5.0, 25, 1.0, 5.79, 2.1),
            (10.0, 5, 48.0, 8.62, 66.8),
            (10.0, 10, 25.2, 10.0, 30.2),
            (10.0, 15, 14.7, 10.0, 17.6),
            (10.0, 20, 9.4, 10.0, 11.3),
            (10.0, 25, 6.3, 10.0, 7.6),
            (20.0, 10, 48.0, 17.24, 33.4),
            (20.0, 15, 35.7, 20.0, 21.4),
            (20.0, 20, 25.2, 20.0, 15.1),
            (20.0, 25, 18.9, 20.0, 11.3),
        ];
        for (target, n, level, delay, rate) in oracle {
            for plan in [exact(&hop(&vec![390.0; n]), target * 1e-3), paper(&hop(&vec![390.0; n]), target * 1e-3)] {
                let here = format!("T = {target} ms, n = {n}: {plan:?}");
                assert!((plan.levels[0] - level).abs() <= 0.051, "{here}");
                assert!((plan.round * 1e3 - delay).abs() <= 0.0051, "{here}");
                assert!((plan.rates[0] * PACKET_BITS / 1e6 - rate).abs() <= 0.051, "{here}");
                assert_eq!(plan.feasible, n != 25 || target > 5.0, "{here}");
            }
        }
    }

    #[test]
    fn every_oracle_value_of_one_station() {
        for (rate, level, delay, payload) in
            [(87.75, 16.3, 2.50, 78.2), (175.5, 32.6, 2.50, 156.5), (390.0, 48.0, 1.72, 334.1)]
        {
            let plan = exact(&hop(&[rate]), 2.5e-3);
            assert!((plan.levels[0] - level).abs() <= 0.051, "{plan:?}");
            assert!((plan.round * 1e3 - delay).abs() <= 0.0051, "{plan:?}");
            assert!((mbit(&plan) - payload).abs() <= 0.051, "{plan:?}");
        }
    }

    #[test]
    fn unequal_stations_at_the_cap_beat_the_published_rule() {
        // PHY Mbit/s, T ms; Mbit/s and round in ms of the published rule, then of the optimum, from a convex solver.
        let check = |rates: &[f64], target: f64, published: (f64, f64), optimal: (f64, f64)| {
            let hop = hop_48(rates);
            let (paper, exact) = (paper(&hop, target * 1e-3), exact(&hop, target * 1e-3));
            assert!((mbit(&paper) - published.0).abs() < 0.1, "{rates:?}: {}", mbit(&paper));
            assert!((paper.round * 1e3 - published.1).abs() < 0.05, "{rates:?}: {}", paper.round);
            assert!((mbit(&exact) - optimal.0).abs() < 0.1, "{rates:?}: {}", mbit(&exact));
            assert!((exact.round * 1e3 - optimal.1).abs() < 0.01, "{rates:?}: {}", exact.round);
            assert!(logs(&exact) > logs(&paper));
        };
        check(&[1170.0, 585.0, 195.0], 10.0, (334.1, 5.17), (424.5, 3.19));
        check(&[1170.0, 87.8], 5.0, (184.8, 5.0), (359.7, 1.82));
        check(&[585.0, 175.5, 87.75], 20.0, (146.7, 11.8), (203.8, 4.85));
        let first = hop_48(&[1170.0, 585.0, 195.0]);
        assert!((logs(&paper(&first, 10e-3)) - 27.407).abs() < 0.001);
        assert!((logs(&exact(&first, 10e-3)) - 27.806).abs() < 0.001);
    }

    /// The equal-airtime levels when no cap binds: μ_i = (T̄ - c) / (n w_i).
    fn uncapped(hop: &Hop, target: f64) -> Vec<f64> {
        let share = (target - hop.overhead) / hop.links.len() as f64;
        hop.links.iter().map(|link| share / link.airtime).collect()
    }

    #[test]
    fn without_caps_both_are_the_closed_form_and_equal_in_airtime() {
        let hop = hop(&[175.5, 117.0, 87.75]);
        for plan in [exact(&hop, 10e-3), paper(&hop, 10e-3)] {
            for (level, want) in plan.levels.iter().zip(uncapped(&hop, 10e-3)) {
                assert!((level - want).abs() < 1e-9, "{plan:?}");
            }
            // The required levels of these three data rates: about 44, 30 and 22 packets.
            let rounded: Vec<f64> = plan.levels.iter().map(|level| level.round()).collect();
            assert_eq!(rounded, [44.0, 30.0, 22.0]);
        }
    }
}
