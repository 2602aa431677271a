//! Written by `cargo run --release -p lasthop-sim --example train_timestamps`: do not edit.
//!
//! Trained with 352000 packets: 800 each of the simulated traces of seeds 1 to 400; 24000 of the first half
//! of `wifi_minstrel_blues_set/carambola2/carambola2-1-1-d10-10M-1.pcap`;
//! 8000 of `wifi_ns3/vht_nss1_mcs4_n1_sta0.pcap` behind simulated hosts.

use super::{Coefficients, FEATURES};

/// What training found.
pub const TRAINED: Coefficients = Coefficients { intercept: INTERCEPT, weights: WEIGHTS };

const INTERCEPT: f64 = -19.169887806;
#[rustfmt::skip]
const WEIGHTS: [f64; FEATURES] = [
    -0.087303962,
    -0.579509236,
    -0.062030279,
    0.465294486,
    0.188204151,
    -1.506948213,
    1.936491132,
    0.505128813,
    2.927583181,
    1.095049588,
    2.089997134,
    0.487838057,
    -0.903554720,
    -0.308612258,
    -0.646785884,
    0.525452040,
    -0.071265431,
    0.186439786,
    -0.461250745,
];
