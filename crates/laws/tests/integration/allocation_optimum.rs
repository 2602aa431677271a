//! The `exact` allocation against a convex solver that knows nothing of its derivation.
//!
//! max sum log x_i becomes, with y_i <= log x_i, a program over exponential cones: (y_i, 1, x_i) in K_exp.

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettingsBuilder, DefaultSolver, IPSolver, SolverStatus, SupportedConeT};
use lasthop_laws::aggregation::allocation::{exact, paper};
use lasthop_laws::aggregation::model::{Hop, Link};
use proptest::prelude::*;

/// The rates of the optimum in packets a millisecond (the unit keeps the solver's numbers near 1).
fn solve(hop: &Hop, target: f64) -> Option<Vec<f64>> {
    let (n, scale) = (hop.links.len(), 1e-3);
    let (c, t) = (hop.overhead / scale, target / scale);
    let w: Vec<f64> = hop.links.iter().map(|link| link.airtime / scale).collect();
    // Variables x_1..x_n, y_1..y_n. Rows: the round, the caps, then three a cone. A z + s = b with s in the cones.
    let (mut entries, mut b): (Vec<(usize, usize, f64)>, Vec<f64>) = (Vec::new(), Vec::new());
    (0..n).for_each(|i| entries.push((0, i, w[i])));
    b.push(1.0 - c / t);
    for (i, link) in hop.links.iter().enumerate() {
        for (j, w) in w.iter().enumerate() {
            let own = if i == j { c } else { 0.0 };
            entries.push((1 + i, j, own + link.most * w));
        }
        b.push(link.most);
    }
    for i in 0..n {
        let row = 1 + n + 3 * i;
        entries.push((row, n + i, -1.0));
        entries.push((row + 2, i, -1.0));
        b.extend([0.0, 1.0, 0.0]);
    }
    let rows = b.len();
    let (i, j, v): (Vec<usize>, Vec<usize>, Vec<f64>) =
        entries.into_iter().fold(Default::default(), |(mut i, mut j, mut v), entry| {
            i.push(entry.0);
            j.push(entry.1);
            v.push(entry.2);
            (i, j, v)
        });
    let a = CscMatrix::new_from_triplets(rows, 2 * n, i, j, v);
    let p = CscMatrix::zeros((2 * n, 2 * n));
    let q: Vec<f64> = (0..2 * n).map(|k| if k < n { 0.0 } else { -1.0 }).collect();
    let mut cones = vec![SupportedConeT::NonnegativeConeT(1 + n)];
    cones.extend((0..n).map(|_| SupportedConeT::ExponentialConeT()));
    let settings = DefaultSettingsBuilder::default().verbose(false).build().ok()?;
    let mut solver = DefaultSolver::new(&p, &q, &a, &b, &cones, settings).ok()?;
    solver.solve();
    // Almost: within its looser tolerances. What it found is held to ours all the same.
    matches!(solver.solution.status, SolverStatus::Solved | SolverStatus::AlmostSolved)
        .then(|| solver.solution.x[..n].iter().map(|x| x / scale).collect())
}

fn logs(rates: &[f64]) -> f64 {
    rates.iter().map(|rate| rate.ln()).sum()
}

fn hop() -> impl Strategy<Value = (Hop, f64)> {
    let link =
        (29.25..1300.0f64, 8.0..64.0f64).prop_map(|(mbit, most)| Link { airtime: 1548.0 * 8.0 / (mbit * 1e6), most });
    let links = prop::collection::vec(link, 1..9);
    (links, 100e-6..400e-6f64, 0.1..1.0f64).prop_map(|(links, access, room)| {
        let hop = Hop { overhead: access * links.len() as f64, links };
        // From where frames of one packet fit to where every frame is at its cap.
        let slowest = hop.links.iter().map(|link| link.airtime).fold(0.0, f64::max);
        let least = hop.overhead + hop.links.iter().map(|link| slowest.min(link.most * link.airtime)).sum::<f64>();
        let most = hop.overhead + hop.links.iter().map(|link| link.most * link.airtime).sum::<f64>();
        let target = least * 1.02 + room * room * (most * 1.2 - least);
        (hop, target)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn exact_is_what_the_solver_finds((hop, target) in hop()) {
        let ours = exact(&hop, target);
        prop_assert!(ours.feasible && ours.round <= target * (1.0 + 1e-9));
        for (level, link) in ours.levels.iter().zip(&hop.links) {
            prop_assert!(*level <= link.most * (1.0 + 1e-12) && *level >= 1.0 - 1e-12);
        }
        let theirs = solve(&hop, target);
        prop_assert!(theirs.is_some(), "the solver fails");
        let theirs = theirs.expect("just checked");
        // Where caps are so dear that the optimum has less than a packet in a slow station's frames, ours has one.
        let used: f64 = theirs.iter().zip(&hop.links).map(|(rate, link)| rate * link.airtime).sum();
        let round = hop.overhead / (1.0 - used);
        prop_assume!(theirs.iter().all(|rate| rate * round > 1.0 - 1e-3));
        let (mine, optimum) = (logs(&ours.rates), logs(&theirs));
        prop_assert!((mine - optimum).abs() < 1e-5 * hop.links.len() as f64, "{mine} against {optimum}");
        for (a, b) in ours.rates.iter().zip(&theirs) {
            prop_assert!((a / b - 1.0).abs() < 1e-3, "{:?} against {theirs:?}", ours.rates);
        }
        prop_assert!(logs(&paper(&hop, target).rates) <= mine + 1e-9, "the published rule cannot be better");
    }
}
