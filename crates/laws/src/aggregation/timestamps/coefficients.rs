//! Written by `cargo run --release -p lasthop-sim --example train_timestamps`: do not edit.

use super::{Coefficients, FEATURES};

/// What training on simulated traces found (seeds 1 to 400).
pub const TRAINED: Coefficients = Coefficients { intercept: INTERCEPT, weights: WEIGHTS };

const INTERCEPT: f64 = -13.252938;
#[rustfmt::skip]
const WEIGHTS: [f64; FEATURES] = [
    -0.102578,
    -0.478465,
    6.692443,
    0.196416,
    0.259956,
    0.038361,
    0.021225,
    -0.291343,
    -0.162019,
    -0.071456,
    -4.137730,
];
