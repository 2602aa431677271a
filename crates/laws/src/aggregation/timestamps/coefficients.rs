//! Written by `cargo run --release -p lasthop-sim --example train_timestamps`: do not edit.
//!
//! Trained with 352000 packets: 800 each of the simulated traces of seeds 1 to 400; 24000 of the first half
//! of `wifi_minstrel_blues_set/carambola2/carambola2-1-1-d10-10M-1.pcap`;
//! 8000 of `wifi_ns3/vht_nss1_mcs4_n1_sta0.pcap` behind simulated hosts.

use super::{Coefficients, FEATURES};

/// What training found.
pub const TRAINED: Coefficients = Coefficients { intercept: INTERCEPT, weights: WEIGHTS };

const INTERCEPT: f64 = -19.193107811;
#[rustfmt::skip]
const WEIGHTS: [f64; FEATURES] = [
    -0.086908683,
    -0.578981092,
    -0.062623732,
    0.464695501,
    0.187274301,
    -1.508821371,
    1.938493317,
    0.513849102,
    2.932523269,
    1.095174404,
    2.089164262,
    0.487044573,
    -0.902330925,
    -0.308654111,
    -0.645947309,
    0.525145747,
    -0.070932382,
    0.184342581,
    -0.461252883,
];
