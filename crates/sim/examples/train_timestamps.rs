//! Trains the timestamp estimator and writes its coefficients:
//! `cargo run --release -p lasthop-sim --example train_timestamps`.
//!
//! Logistic regression (smartcore's, L-BFGS with a small ridge) on packets drawn evenly from simulated traces.

#[path = "../tests/arrivals/mod.rs"]
mod arrivals;

use arrivals::Case;
use lasthop_laws::aggregation::timestamps::{FEATURES, GAPS, features};
use lasthop_units::{Seed, Span};
use rand::Rng;
use smartcore::linalg::basic::arrays::Array;
use smartcore::linalg::basic::matrix::DenseMatrix;
use smartcore::linear::logistic_regression::{LogisticRegression, LogisticRegressionParameters};
use std::fmt::Write;

/// Seeds of the traces for training; those that judge begin elsewhere.
const SEEDS: std::ops::Range<u64> = 1..401;
/// Packets of each trace.
const PACKETS: u32 = 800;
/// Ridge: small, for half a million packets leave little to chance; it keeps weights of equal features apart.
const RIDGE: f64 = 1.0;
const FILE: &str = "../laws/src/aggregation/timestamps/coefficients.rs";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut rows, mut labels) = (Vec::new(), Vec::new());
    for seed in SEEDS {
        let trace = Case::draw(seed).trace();
        let mut dice = Seed(seed).stream("arrivals/draw");
        let count = trace.stamps.len();
        if count < 100 {
            continue;
        }
        let first = trace.stamps[0];
        let mean = trace.stamps[count - 1].since(first) / (count as u64 - 1);
        let margin = GAPS;
        for _ in 0..PACKETS {
            let packet = margin + dice.next_u32() as usize % (count - 2 * margin);
            let gap = |index: usize| trace.stamps[index].since(trace.stamps[index - 1]);
            let gaps: [Span; GAPS] = std::array::from_fn(|i| gap(packet + i - GAPS / 2));
            rows.push(features(&gaps, mean).to_vec());
            labels.push(i32::from(trace.begins[packet]));
        }
    }
    let borders = labels.iter().filter(|label| **label == 1).count();
    println!("{} packets of {} traces, {borders} begin a frame", rows.len(), SEEDS.count());
    let parameters = LogisticRegressionParameters::default().with_alpha(RIDGE);
    let model = LogisticRegression::fit(&DenseMatrix::from_2d_vec(&rows)?, &labels, parameters)?;
    let weights: Vec<f64> = (0..FEATURES).map(|i| *model.coefficients().get((0, i))).collect();
    let intercept = *model.intercept().get((0, 0));
    let mut text = String::from(
        "//! Written by `cargo run --release -p lasthop-sim --example train_timestamps`: do not edit.\n\n\
         use super::{Coefficients, FEATURES};\n\n\
         /// What training on simulated traces found (seeds 1 to 400).\n\
         pub const TRAINED: Coefficients = Coefficients { intercept: INTERCEPT, weights: WEIGHTS };\n\n",
    );
    writeln!(text, "const INTERCEPT: f64 = {intercept:.6};")?;
    writeln!(text, "#[rustfmt::skip]\nconst WEIGHTS: [f64; FEATURES] = [")?;
    for weight in &weights {
        writeln!(text, "    {weight:.6},")?;
    }
    text.push_str("];\n");
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    std::fs::write(&path, text)?;
    println!("intercept {intercept:.3}, weights {weights:.3?}\nwritten: {}", path.display());
    Ok(())
}
