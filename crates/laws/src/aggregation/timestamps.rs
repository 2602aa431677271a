//! Frames from the arrival times of packets: for stations that cannot see radiotap headers.
//! Source:     \[aggregation\], estimation on handsets without root access: a classifier over recent inter-arrival times of
//!             paced packets labels the borders of frames. Logistic regression; the features are of this project.
//! Equations:  P(packet j begins a frame) = 1 / (1 + exp(-(b + w . f_j)));   frames = sum of P;   μ = packets / frames
//! Symbols:    b -> `Coefficients::intercept`, w -> `Coefficients::weights`, f_j -> [`features`], gap g_j -> time from
//!             packet j - 1 to packet j
//! Deviations: the source gives no features. Here: ln of the gaps g_{j-2} to g_{j+2} in microseconds, the same gaps over
//!             the mean gap, and ln of the mean gap. The number of frames is the sum of probabilities, which errs less
//!             than counting those above a half where borders are seen only in part. Rates are not seen.
//! Validity:   packets that leave their sender paced, arrive in order, and are stamped by the kernel when its driver hands
//!             them up. Frames that one poll of the driver hands up together count as one.
//! Checked by: tests::*, crates/sim/tests/timestamps.rs (error on simulated traces of other seeds, and on captures)

mod coefficients;

pub use coefficients::TRAINED;

use lasthop_signals::{FrameSource, Node, StationFeedback};
use lasthop_units::{Span, Time};

/// Gaps on each side of a packet's own that are looked at.
const REACH: usize = 2;
/// Gaps that are looked at.
pub const GAPS: usize = 2 * REACH + 1;
/// Inputs of the classifier.
pub const FEATURES: usize = 2 * GAPS + 1;

/// What training found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coefficients {
    /// Log-odds of a border where every feature is 0.
    pub intercept: f64,
    /// Log-odds a unit of each feature.
    pub weights: [f64; FEATURES],
}

impl Coefficients {
    /// Probability that a packet with these features is the first of a frame.
    pub fn probability(&self, features: &[f64; FEATURES]) -> f64 {
        let sum: f64 = self.weights.iter().zip(features).map(|(weight, feature)| weight * feature).sum();
        1.0 / (1.0 + (-(self.intercept + sum)).exp())
    }
}

/// The classifier's inputs: `gaps` around a packet, its own in the middle, and the mean gap.
pub fn features(gaps: &[Span; GAPS], mean: Span) -> [f64; FEATURES] {
    let ln = |span: Span| (1.0 + span.as_nanos() as f64 / 1e3).ln();
    let mean_ns = (mean.as_nanos() as f64).max(1.0);
    let mut features = [0.0; FEATURES];
    for (i, gap) in gaps.iter().enumerate() {
        features[i] = ln(*gap);
        // A pause of the application is no better sign of a border than a gap of some frames.
        features[GAPS + i] = (gap.as_nanos() as f64 / mean_ns).min(RATIO_MAX);
    }
    features[2 * GAPS] = ln(mean);
    features
}

/// Gaps longer than so many mean ones count as this many.
const RATIO_MAX: f64 = 64.0;

/// Arrivals of one station's stream, slot by slot.
#[derive(Clone, Debug)]
pub struct Arrivals {
    coefficients: Coefficients,
    /// Of the slots before: as many as the first packets of this slot look back to.
    before: Vec<Time>,
    slot: Vec<Time>,
}

impl Default for Arrivals {
    fn default() -> Arrivals {
        Arrivals::new(TRAINED)
    }
}

impl Arrivals {
    /// With coefficients of one's own training.
    pub fn new(coefficients: Coefficients) -> Arrivals {
        Arrivals { coefficients, before: Vec::new(), slot: Vec::new() }
    }

    /// A packet of the paced stream has been stamped `at`. Stamps that go back count as equal to the last.
    pub fn arrived(&mut self, at: Time) {
        let last = self.slot.last().or(self.before.last()).copied();
        self.slot.push(last.map_or(at, |last| last.max(at)));
    }

    /// Probability for each packet of the slot so far that it is the first of a frame, in order.
    pub fn probabilities(&self) -> Vec<f64> {
        let times: Vec<Time> = self.before.iter().chain(&self.slot).copied().collect();
        let Some(mean) = mean_gap(&times) else { return vec![1.0; self.slot.len()] };
        let gap = |index: usize| match index {
            0 => mean,
            _ => times.get(index).map_or(mean, |at| at.since(times[index - 1])),
        };
        // What lies outside of the record is taken to be usual.
        let around = |packet: usize| std::array::from_fn(|i| (packet + i).checked_sub(REACH).map_or(mean, gap));
        let first = self.before.len();
        (first..times.len()).map(|packet| self.coefficients.probability(&features(&around(packet), mean))).collect()
    }

    /// Ends the slot: what a station reports of it. Rates are unknown (`inverse_rate_sum` is 0), and what the packets
    /// themselves say (sequence numbers, losses, delays) is left empty.
    pub fn feedback(&mut self, station: Node, slot: u32, start: Time, end: Time) -> StationFeedback {
        let probabilities = self.probabilities();
        let packets = probabilities.len() as u64;
        let expected: f64 = probabilities.iter().sum();
        // A frame has a packet, and packets came in some frame.
        let frames = (expected.round() as u64).clamp(u64::from(packets > 0), packets);
        let (mut squares, mut smallest, mut largest) = (0u64, u64::MAX, 0u64);
        let mut size = 0u64;
        let mut close = |size: u64| {
            if size > 0 {
                squares += size * size;
                (smallest, largest) = (smallest.min(size), largest.max(size));
            }
        };
        for probability in &probabilities {
            if *probability > 0.5 {
                close(std::mem::take(&mut size));
            }
            size += 1;
        }
        close(size);
        let narrow = |size: u64| u16::try_from(size).unwrap_or(u16::MAX);
        self.before.append(&mut self.slot);
        let spare = self.before.len().saturating_sub(REACH + 1);
        self.before.drain(..spare);
        StationFeedback {
            frames: u32::try_from(frames).unwrap_or(u32::MAX),
            packets,
            packets_squared: squares,
            min_packets: if packets == 0 { 0 } else { narrow(smallest) },
            max_packets: narrow(largest),
            received: packets,
            source: FrameSource::Timestamps,
            ..StationFeedback::empty(station, slot, start, end)
        }
    }
}

/// Mean time between packets, which for a stream that is paced and not lost is its pacing interval. `None` for fewer than
/// two packets.
fn mean_gap(times: &[Time]) -> Option<Span> {
    let (first, last) = (times.first()?, times.last()?);
    let gaps = u64::try_from(times.len() - 1).ok().filter(|gaps| *gaps > 0)?;
    Some(last.since(*first) / gaps)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATION: Node = Node(3);

    /// Frames of `size` packets each `interval_us`, the packets of one stamped 2 us apart; one slot.
    fn slot(arrivals: &mut Arrivals, first_us: u64, frames: u64, size: u64, interval_us: u64) -> StationFeedback {
        for frame in 0..frames {
            for packet in 0..size {
                arrivals.arrived(Time::ZERO + Span::from_micros(first_us + frame * interval_us + 2 * packet));
            }
        }
        arrivals.feedback(STATION, 1, Time::ZERO, Time::ZERO)
    }

    #[test]
    fn bursts_are_frames() {
        for size in [2, 5, 20, 48, 64] {
            let feedback = slot(&mut Arrivals::default(), 1_000, 200, size, 2_000);
            let mean = feedback.mean_packets().expect("frames");
            assert!((mean / size as f64 - 1.0).abs() < 0.05, "{size}: {mean}");
            assert_eq!((u64::from(feedback.max_packets), feedback.packets), (size, 200 * size));
            assert_eq!((feedback.source, feedback.inverse_rate_sum), (FrameSource::Timestamps, 0.0));
        }
    }

    #[test]
    fn packets_at_the_pace_of_their_sender_came_alone() {
        let feedback = slot(&mut Arrivals::default(), 1_000, 500, 1, 1_000);
        assert!(feedback.mean_packets().expect("frames") < 1.1, "{feedback:?}");
    }

    #[test]
    fn slots_join_without_a_border_of_their_own() {
        let whole = slot(&mut Arrivals::default(), 1_000, 200, 10, 2_000);
        let mut arrivals = Arrivals::default();
        let first = slot(&mut arrivals, 1_000, 100, 10, 2_000);
        let second = slot(&mut arrivals, 201_000, 100, 10, 2_000);
        assert!(whole.frames.abs_diff(first.frames + second.frames) <= 1, "{whole:?} {first:?} {second:?}");
    }

    #[test]
    fn empty_slots_single_packets_and_clocks_that_go_back_are_borne() {
        let mut arrivals = Arrivals::default();
        let empty = arrivals.feedback(STATION, 0, Time::ZERO, Time::ZERO);
        assert_eq!((empty.frames, empty.packets, empty.min_packets, empty.max_packets), (0, 0, 0, 0));
        arrivals.arrived(Time::from_nanos(5_000));
        let single = arrivals.feedback(STATION, 1, Time::ZERO, Time::ZERO);
        assert_eq!((single.frames, single.packets, single.min_packets), (1, 1, 1));
        arrivals.arrived(Time::from_nanos(4_000));
        arrivals.arrived(Time::from_nanos(3_000));
        let back = arrivals.feedback(STATION, 2, Time::ZERO, Time::ZERO);
        assert!(back.packets == 2 && (1..=2).contains(&back.frames), "{back:?}");
    }

    #[test]
    fn the_probability_is_the_logistic_function() {
        let mut weights = [0.0; FEATURES];
        weights[2] = 2.0;
        let coefficients = Coefficients { intercept: -1.0, weights };
        let mut features = [0.0; FEATURES];
        assert!((coefficients.probability(&features) - 0.268_941_421_369_995_1).abs() < 1e-15);
        features[2] = 0.5;
        assert!((coefficients.probability(&features) - 0.5).abs() < 1e-15);
    }
}
