//! Which part of a frame outlives those that it overlaps with.
//! Source:     ns-3 3.37: `InterferenceHelper` (success by stretches of constant interference), `ThresholdPreambleDetectionModel`
//!             (4 dB over 4 us) and, under its profile, `TableBasedErrorRateModel`, with its tables for BPSK 1/2 copied
//!             here; the error model of [`super::snr`] otherwise.
//! Equations:  a receiver takes up a frame if S / (1 + I) is 4 dB or more at its first symbol and 4 us later;
//!             ln P = sum over stretches of bits (ln p(S / (1 + I)) - ln p(S)), to which noise alone adds what it takes anyway
//! Symbols:    S -> power of the frame, I -> that of all others, both over the noise's; p -> success of a bit at a ratio
//! Deviations: powers are those at a frame's begin; the frame that is taken up stays so, however strong the one that comes after
//!             4 us; whoever overhears a data frame needs all of it to know what it reserves; bits of the PHY header are spread
//!             over the preamble's time. A frame of unknown strength loses every bit that it overlaps with, and takes every bit.
//! Validity:   noise-like interference: OFDM.     Checked by: tests::*, tests/integration/links.rs, tests/integration/multihop.rs

use super::snr;
use lasthop_signals::phy::{Format, TxVector};
use lasthop_units::{Seed, Span, Stream, Time};
use rand::Rng;

/// The receivers of all nodes.
#[derive(Clone, Debug)]
pub(super) struct Capture {
    receivers: Vec<Receiver>,
    /// How PHY headers are sent.
    header: TxVector,
    ns3: bool,
}

/// What reaches a node.
#[derive(Clone, Debug)]
struct Receiver {
    /// Power by transmitter, over the noise's; infinite where nothing is known.
    powers: Vec<f64>,
    /// PPDUs on the air that reach it, with their power.
    heard: Vec<(u16, f64)>,
    /// From when on interference with the frame that it receives has been what it is now.
    since: Time,
    /// Stretches of that frame with interference.
    stretches: Vec<Stretch>,
    stream: Stream,
}

/// A time of constant interference.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    from: Time,
    until: Time,
    /// Of the frame to interference and noise.
    ratio: f64,
    /// Of the frame to noise.
    clear: f64,
}

/// Power ratio that a preamble needs: 4 dB.
const DETECTION: f64 = 2.511_886_431_509_58;
/// For how long it needs it.
pub(super) const DETECTION_TIME: Span = Span::from_micros(4);
/// Bits of an L-SIG field.
const HEADER_BITS: f64 = 24.0;

impl Capture {
    pub fn new(nodes: usize, header: TxVector, ns3: bool, seed: Seed) -> Capture {
        let receiver = |node: usize| Receiver {
            powers: vec![f64::INFINITY; nodes],
            heard: Vec::new(),
            since: Time::ZERO,
            stretches: Vec::new(),
            stream: seed.stream(&format!("wifi/node{node}/capture")),
        };
        Capture { receivers: (0..nodes).map(receiver).collect(), header, ns3 }
    }

    /// Says how strong frames of a node are at another from now on, over the noise's power.
    pub fn set_power(&mut self, from: usize, to: usize, power: f64) {
        self.receivers[to].powers[from] = power;
    }

    /// A PPDU begins to reach a node.
    pub fn begins(&mut self, node: usize, from: usize, flight: u16) {
        let receiver = &mut self.receivers[node];
        receiver.heard.push((flight, receiver.powers[from]));
    }

    /// A PPDU ends at a node.
    pub fn ends(&mut self, node: usize, flight: u16) {
        self.receivers[node].heard.retain(|heard| heard.0 != flight);
    }

    /// True if the node's receiver can take a PPDU up.
    pub fn detects(&self, node: usize, flight: u16) -> bool {
        self.receivers[node].ratio(flight).0 >= DETECTION
    }

    /// A node's receiver takes a PPDU up.
    pub fn take_up(&mut self, node: usize, now: Time) {
        let receiver = &mut self.receivers[node];
        receiver.since = now;
        receiver.stretches.clear();
    }

    /// What interferes with the PPDU that a node receives is about to change, or the PPDU has ended.
    pub fn note(&mut self, node: usize, flight: u16, now: Time) {
        let receiver = &mut self.receivers[node];
        let (ratio, clear) = receiver.ratio(flight);
        if receiver.heard.len() > 1 && now > receiver.since {
            receiver.stretches.push(Stretch { from: receiver.since, until: now, ratio, clear });
        }
        receiver.since = now;
    }

    /// Draws whether what is sent from `from` to `until` as `vector`, with `bits` bits, outlives the interference.
    pub fn survives(&mut self, node: usize, vector: &TxVector, (from, until): (Time, Time), bits: f64) -> bool {
        let receiver = &self.receivers[node];
        if receiver.stretches.is_empty() {
            return true;
        }
        let whole = until.since(from).as_nanos() as f64;
        let mut ln = 0.0;
        for stretch in &receiver.stretches {
            let (begin, end) = (stretch.from.max(from), stretch.until.min(until));
            if begin < end {
                let hit = bits * end.since(begin).as_nanos() as f64 / whole;
                ln += self.ln_success(vector, stretch.ratio, hit) - self.ln_success(vector, stretch.clear, hit);
            }
        }
        // Nothing is left of nothing: where noise alone loses all, so does interference.
        let success = if ln.is_nan() { 0.0 } else { ln.exp() };
        success >= 1.0 || f64::from(self.receivers[node].stream.next_u32()) < success * 4_294_967_296.0
    }

    /// Draws whether the PHY header of a PPDU with so long a preamble outlives the interference.
    pub fn header_survives(&mut self, node: usize, start: Time, preamble: Span) -> bool {
        let header = self.header;
        self.survives(node, &header, (start + DETECTION_TIME.min(preamble), start + preamble), HEADER_BITS)
    }

    fn ln_success(&self, vector: &TxVector, ratio: f64, bits: f64) -> f64 {
        if self.ns3 && vector.format == Format::NonHt && vector.mcs == 0 {
            return ln_bpsk_half(ratio, bits);
        }
        snr::ln_bit_success(vector, ratio) * bits
    }
}

impl Receiver {
    /// The power of a PPDU over that of all else, and over the noise alone.
    fn ratio(&self, flight: u16) -> (f64, f64) {
        let of =
            |own: bool| self.heard.iter().filter(|heard| (heard.0 == flight) == own).map(|heard| heard.1).sum::<f64>();
        let (signal, others) = (of(true), of(false));
        if others > 0.0 && (signal.is_infinite() || others.is_infinite()) {
            return (0.0, signal);
        }
        (signal / (1.0 + others), signal)
    }
}

/// A curve of ns-3's: frames of `octets` octets that are lost, by the ratio in dB.
struct Curve {
    octets: f64,
    lost: &'static [(f64, f64)],
}

/// BPSK 1/2, for what is shorter than [`LONG`] octets and what is not.
const CURVES: [Curve; 2] = [
    Curve {
        octets: 32.0,
        lost: &[
            (-3.5, 1.0),
            (-3.0, 0.995),
            (-2.5, 0.940_8),
            (-2.0, 0.825_9),
            (-1.5, 0.589_5),
            (-1.0, 0.308_3),
            (-0.5, 0.125_4),
            (0.0, 0.034_4),
            (0.5, 0.008_5),
            (1.0, 0.001_5),
            (1.5, 0.000_24),
            (2.0, 0.000_09),
            (2.5, 0.0),
        ],
    },
    Curve {
        octets: 1_458.0,
        lost: &[
            (-1.0, 1.0),
            (-0.5, 0.994),
            (0.0, 0.818_5),
            (0.5, 0.290_8),
            (1.0, 0.066_3),
            (1.5, 0.011_2),
            (2.0, 0.001_5),
            (2.5, 0.000_15),
            (3.0, 0.000_01),
            (3.5, 0.0),
        ],
    },
];
const LONG: f64 = 400.0;

/// Logarithm of the probability that so many bits of BPSK 1/2 arrive, as ns-3's tables have it.
fn ln_bpsk_half(ratio: f64, bits: f64) -> f64 {
    let (db, octets) = (10.0 * ratio.log10(), (bits / 8.0).max(1.0));
    let curve = &CURVES[usize::from(octets >= LONG)];
    let next = curve.lost.partition_point(|point| point.0 <= db);
    let lost = match (next.checked_sub(1).map(|before| curve.lost[before]), curve.lost.get(next)) {
        (Some((left, high)), Some((right, low))) => high + (low - high) * (db - left) / (right - left),
        (None, _) => 1.0,
        (_, None) => 0.0,
    };
    (-lost).ln_1p() * octets / curve.octets
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_signals::phy::{GuardInterval, Width};

    const SLOWEST: TxVector =
        TxVector { format: Format::NonHt, mcs: 0, nss: 1, width: Width::Mhz20, guard_interval: GuardInterval::Ns800 };

    #[test]
    fn stretches_of_bpsk_survive_as_in_ns3() {
        // What ns-3 3.37 itself answers (`TableBasedErrorRateModel::GetChunkSuccessRate`, OfdmRate6Mbps).
        for (db, bits, published) in [
            (0.0, 24.0, 0.996_724),
            (0.0, 112.0, 0.984_802),
            (0.0, 160.0, 0.978_359),
            (0.0, 12_288.0, 0.165_664),
            (0.2, 12_288.0, 0.373_426),
            (-0.2, 1_000.0, 0.750_631),
        ] {
            let ours = ln_bpsk_half(10f64.powf(db / 10.0), bits).exp();
            assert!((ours - published).abs() < 2e-6, "{bits} bits at {db} dB: {ours}, {published}");
        }
    }

    fn heard(powers: &[f64]) -> Capture {
        let mut capture = Capture::new(3, SLOWEST, false, Seed(1));
        for (from, power) in powers.iter().enumerate() {
            capture.set_power(from, 2, *power);
            capture.begins(2, from, from as u16);
        }
        capture
    }

    #[test]
    fn a_preamble_needs_four_db_over_all_else() {
        // 100 over 1 + 38 is 4.09 dB, over 1 + 40 3.87 dB.
        assert!(heard(&[100.0, 38.0]).detects(2, 0) && !heard(&[100.0, 40.0]).detects(2, 0));
        assert!(!heard(&[100.0, f64::INFINITY]).detects(2, 0) && !heard(&[f64::INFINITY, 1.0]).detects(2, 0));
        assert!(heard(&[f64::INFINITY]).detects(2, 0));
    }

    #[test]
    fn what_overlaps_survives_as_often_as_the_error_model_says() {
        let at = |us: u64| Time::ZERO + Span::from_micros(us);
        // At 1 dB 240 bits arrive with 0.64 or so: half of the 480 are hit.
        let mut capture = heard(&[10f64.powf(3.0), 0.0]);
        let ratio = 10f64.powf(0.25);
        capture.set_power(1, 2, 1_000.0 / ratio - 1.0);
        let expected = (240.0 * snr::ln_bit_success(&SLOWEST, ratio)).exp();
        assert!((0.2..0.8).contains(&expected), "{expected}");
        let mut survived = 0;
        for _ in 0..20_000 {
            capture.ends(2, 1);
            capture.take_up(2, at(0));
            capture.note(2, 0, at(60));
            capture.begins(2, 1, 1);
            capture.note(2, 0, at(100));
            survived += u32::from(capture.survives(2, &SLOWEST, (at(20), at(100)), 480.0));
        }
        let share = f64::from(survived) / 20_000.0;
        assert!((share - expected).abs() < 0.015, "{share}, {expected}");
    }
}
