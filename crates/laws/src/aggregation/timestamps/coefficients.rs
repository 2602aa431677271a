//! Written by `cargo run --release -p lasthop-sim --example train_timestamps`: do not edit.
//!
//! Trained with 352000 packets: 800 each of the simulated traces of seeds 1 to 400; 24000 of the first half
//! of `wifi_minstrel_blues_set/carambola2/carambola2-1-1-d10-10M-1.pcap`;
//! 8000 of `wifi_ns3/vht_nss1_mcs4_n1_sta0.pcap` behind simulated hosts.

use super::{Coefficients, FEATURES};

/// What training found.
pub const TRAINED: Coefficients = Coefficients { intercept: INTERCEPT, weights: WEIGHTS };

const INTERCEPT: f64 = -18.973749475;
#[rustfmt::skip]
const WEIGHTS: [f64; FEATURES] = [
    -0.097933174,
    -0.550613795,
    0.011478960,
    0.445070385,
    0.175471373,
    -1.552150565,
    2.121720498,
    0.487459434,
    2.638332085,
    1.059762760,
    2.103857360,
    0.531683275,
    -0.929443813,
    -0.310634093,
    -0.641123599,
    0.483708148,
    -0.123490829,
    0.265761087,
    -0.433694701,
    2.014934980,
];
