//! Written by `cargo run --release -p lasthop-sim --example train_timestamps`: do not edit.
//!
//! Trained with 352000 packets: 800 each of the simulated traces of seeds 1 to 400; 24000 of the first half
//! of `wifi_minstrel_blues_set/carambola2/carambola2-1-1-d10-10M-1.pcap`;
//! 8000 of `wifi_ns3/vht_nss1_mcs4_n1_sta0.pcap` behind simulated hosts.

use super::{Coefficients, FEATURES};

/// What training found.
pub const TRAINED: Coefficients = Coefficients { intercept: INTERCEPT, weights: WEIGHTS };

const INTERCEPT: f64 = -18.574684395;
#[rustfmt::skip]
const WEIGHTS: [f64; FEATURES] = [
    -0.098223992,
    -0.525721183,
    -0.124150924,
    0.442905848,
    0.171597260,
    -1.516009142,
    1.813518825,
    0.442983205,
    2.906072286,
    1.053979420,
    2.115132740,
    0.528645607,
    -0.925736198,
    -0.301966634,
    -0.614351499,
    0.512453140,
    -0.113814948,
    0.237693783,
    -0.456448745,
    1.946107911,
];
