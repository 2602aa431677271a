//! Written by `cargo run --release -p lasthop-sim --example train_timestamps`: do not edit.
//!
//! Trained with 352000 packets: 800 each of the simulated traces of seeds 1 to 400; 24000 of the first half
//! of `wifi_minstrel_blues_set/carambola2/carambola2-1-1-d10-10M-1.pcap`;
//! 8000 of `wifi_ns3/vht_nss1_mcs4_n1_sta0.pcap` behind simulated hosts.

use super::{Coefficients, FEATURES};

/// What training found.
pub const TRAINED: Coefficients = Coefficients { intercept: INTERCEPT, weights: WEIGHTS };

const INTERCEPT: f64 = -18.821120421;
#[rustfmt::skip]
const WEIGHTS: [f64; FEATURES] = [
    -0.088231070,
    -0.568135293,
    -0.117260252,
    0.465330920,
    0.187880784,
    -1.565382329,
    1.913965019,
    0.404793046,
    2.912107791,
    1.099645073,
    2.104629492,
    0.495665491,
    -0.896768380,
    -0.301776071,
    -0.587575375,
    0.520232836,
    -0.088688369,
    0.216628216,
    -0.475597962,
    1.826026816,
];
