//! How much of the hop each flow gets.
//! Source:     \[oal\], equations 1.2 to 1.4, reconstructed: the optimum is a share by weights. Which flows share is
//!             own.
//! Equations:  x_i = C w_i / sum_j w_j,   C = A sum_j w_j / sum_j (w_j / g_j)
//! Symbols:    w -> `weight`, g -> `link` (goodput a second of own airtime), A -> `airtime` (fraction of time that this
//!             BSS can have), demand -> `demand`
//! Deviations: the paper has one C for all; links of unequal speed share airtime, so C follows from the mix of rates
//!             that the weights ask for. With equal links it is A g, the paper's C. A flow that wants less than its share
//!             keeps the right to it and lends it out (water-filling): it may come back at any time.
//! Validity:   g > 0; flows with g = 0 get nothing.
//! Checked by: tests::*

use lasthop_units::Rate;

/// One claim to the hop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    /// Relative rate that this flow shall have; positive.
    pub weight: f64,
    /// What its link carries a second of airtime, in bits.
    pub link: f64,
    /// The most that it will use, in bits per second; infinite for a flow that takes what it gets.
    pub demand: f64,
}

/// The rate of each claim when they share the fraction `airtime` of the channel, in the order of `claims`.
pub fn by_airtime(claims: &[Claim], airtime: f64) -> Vec<Rate> {
    fill(claims, airtime, |claim| 1.0 / claim.link)
}

/// The rate of each claim when they share `capacity`, whatever their links.
pub fn by_capacity(claims: &[Claim], capacity: Rate) -> Vec<Rate> {
    fill(claims, capacity.as_bps() as f64, |_| 1.0)
}

/// Water-filling of one resource: each bit per second of a claim costs `cost` of the `budget`.
fn fill(claims: &[Claim], budget: f64, cost: impl Fn(&Claim) -> f64) -> Vec<Rate> {
    let usable = |claim: &Claim| claim.weight > 0.0 && claim.link > 0.0;
    // The level is the common x / weight of those that take all they get. It only rises as modest claims are settled.
    let level_with = |settled: &[bool]| {
        let (mut left, mut price) = (budget, 0.0);
        for (claim, settled) in claims.iter().zip(settled).filter(|(claim, _)| usable(claim)) {
            match settled {
                true => left -= claim.demand * cost(claim),
                false => price += claim.weight * cost(claim),
            }
        }
        if price > 0.0 { Some(left.max(0.0) / price) } else { None }
    };
    let mut settled = vec![false; claims.len()];
    let fair = level_with(&settled).unwrap_or(0.0);
    let mut level = fair;
    loop {
        let newly: Vec<usize> = (0..claims.len())
            .filter(|i| !settled[*i] && usable(&claims[*i]) && claims[*i].demand < level * claims[*i].weight)
            .collect();
        newly.iter().for_each(|i| settled[*i] = true);
        match level_with(&settled) {
            Some(higher) if !newly.is_empty() => level = higher,
            _ => break,
        }
    }
    let rate = |(claim, settled): (&Claim, &bool)| match (usable(claim), settled) {
        (false, _) => Rate::ZERO,
        // A modest flow may have its fair share even if it wants less now: it may want more the next moment.
        (true, true) => Rate::from_bps((fair * claim.weight).max(claim.demand) as u64),
        (true, false) => Rate::from_bps((level * claim.weight) as u64),
    };
    claims.iter().zip(&settled).map(rate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GREEDY: f64 = f64::INFINITY;

    fn claim(weight: f64, link_mbit: f64, demand: f64) -> Claim {
        Claim { weight, link: link_mbit * 1e6, demand }
    }

    fn mbit(rates: &[Rate]) -> Vec<f64> {
        rates.iter().map(|r| (r.as_mbit_f64() * 100.0).round() / 100.0).collect()
    }

    #[test]
    fn equal_links_share_as_the_paper_says() {
        // x_i = C w_i / sum w, with C = A g = 0.8 * 100.
        let claims = [claim(1.0, 100.0, GREEDY), claim(3.0, 100.0, GREEDY)];
        assert_eq!(mbit(&by_airtime(&claims, 0.8)), vec![20.0, 60.0]);
    }

    #[test]
    fn equal_rates_over_unequal_links_cost_what_the_slow_one_costs() {
        // 100 and 50 Mbit/s links: equal x fills the channel when x/100 + x/50 = 1.
        let claims = [claim(1.0, 100.0, GREEDY), claim(1.0, 50.0, GREEDY)];
        assert_eq!(mbit(&by_airtime(&claims, 1.0)), vec![33.33, 33.33]);
    }

    #[test]
    fn airtime_weights_give_each_link_half_of_its_own_speed() {
        let claims = [claim(100.0, 100.0, GREEDY), claim(50.0, 50.0, GREEDY)];
        assert_eq!(mbit(&by_airtime(&claims, 1.0)), vec![50.0, 25.0]);
    }

    #[test]
    fn the_unused_share_of_a_modest_flow_goes_to_the_others() {
        let claims = [claim(1.0, 90.0, 10e6), claim(1.0, 90.0, GREEDY), claim(1.0, 90.0, GREEDY)];
        assert_eq!(mbit(&by_airtime(&claims, 1.0)), vec![30.0, 40.0, 40.0]);
        assert_eq!(mbit(&by_capacity(&claims, Rate::from_mbit(90))), vec![30.0, 40.0, 40.0]);
    }

    proptest! {
        #[test]
        fn greedy_flows_and_settled_demands_fill_the_hop_exactly(
            parts in proptest::collection::vec((0.1f64..10.0, 1f64..500.0, prop_oneof![Just(GREEDY), 0.0f64..2e8]), 1..12),
            airtime in 0.05f64..1.0,
        ) {
            let claims: Vec<Claim> = parts.iter().map(|&(w, g, d)| claim(w, g, d)).collect();
            let rates = by_airtime(&claims, airtime);
            let used: f64 = claims.iter().zip(&rates).map(|(c, r)| (r.as_bps() as f64).min(c.demand) / c.link).sum();
            prop_assert!(used <= airtime * (1.0 + 1e-6), "{used} of {airtime}");
            if claims.iter().any(|c| c.demand == GREEDY) {
                prop_assert!(used >= airtime * (1.0 - 1e-3) - 1e-6, "{used} of {airtime}");
            }
        }
    }
}
