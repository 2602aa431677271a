//! Frames from the arrival times of packets: for stations that cannot see radiotap headers.
//! Source:     \[aggregation\], estimation on handsets without root access: a classifier over recent inter-arrival times of
//!             paced packets labels the borders of frames. Logistic regression; the features are of this project.
//! Equations:  P(packet j begins a frame) = 1 / (1 + exp(-(b + w . f_j)));   frames = sum of P;   μ = packets / frames
//!             doubt = sum of min(P, 1 - P) / frames
//! Symbols:    b -> `Coefficients::intercept`, w -> `Coefficients::weights`, f_j -> [`features`], gap g_j -> time from
//!             packet j - 1 to packet j
//! Deviations: * The source gives no features. Here: ln of the gaps g_{j-2} to g_{j+2} in microseconds; how far ln g_j lies above that
//!               of the slot's shorter kind of gaps (two means), where that kind lies, how far the longer kind lies above it, ln of the
//!               mean gap; all products of these four, since how long a gap must be to be a border depends on what the others are
//!               like; and whether both kinds are one.
//!             * The number of frames is the sum of probabilities, which errs less than counting those above a half where borders are
//!               seen only in part.
//!             * Rates are not seen, but what a packet takes on the air is told from when the packets were sent ([`pace`]).
//!             * A slot that the classifier does not know is one of single packets if its packets all took equally long
//!               from their sender on.
//! Validity:   packets that leave their sender paced, arrive in order, and are stamped by the kernel when its driver hands
//!             them up. Frames that one poll of the driver hands up together count as one: no gap shows them, so that no
//!             doubt arises (docs/reference/timestamp-estimator.md says what comes of it).
//! Checked by: tests::*, crates/sim/tests/integration/timestamps.rs (error on simulated traces of other seeds, and on captures)

pub mod pace;

mod coefficients;

pub use coefficients::TRAINED;
pub use lasthop_signals::Arrival;

use super::model::PACKET_OVERHEAD;
use lasthop_signals::{FrameSource, Node, StationFeedback};
use lasthop_units::{Bytes, Span, Time};
use pace::{Pace, Whole};
use std::ops::Range;

/// Gaps on each side of a packet's own that are looked at.
const REACH: usize = 2;
/// Gaps that are looked at.
pub const GAPS: usize = 2 * REACH + 1;
/// Inputs of the classifier.
pub const FEATURES: usize = GAPS + KINDS + KINDS * (KINDS + 1) / 2 + 1;
/// Of them those that say what kind of gap it is.
const KINDS: usize = 4;

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

/// What the gaps of a slot are like as a whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usual {
    /// Their mean, which for a stream that is paced and not lost is its pacing interval.
    pub mean: Span,
    /// Mean logarithm of the shorter of two kinds of gaps.
    pub short: f64,
    /// Of the longer. Where all are alike, that of all.
    pub long: f64,
}

impl Usual {
    /// Of some gaps; `None` of none. The two kinds are the two means that their logarithms lie nearest to, as a few rounds
    /// find them from the quantiles of 5 and 95 %.
    pub fn of(gaps: &[Span]) -> Option<Usual> {
        let count = u64::try_from(gaps.len()).ok().filter(|count| *count > 0)?;
        let mean = gaps.iter().copied().sum::<Span>() / count;
        let mut logarithms: Vec<f64> = gaps.iter().map(|gap| ln(*gap)).collect();
        logarithms.sort_unstable_by(f64::total_cmp);
        let last = logarithms.len() - 1;
        let (mut short, mut long) = (logarithms[last / 20], logarithms[last - last / 20]);
        for _ in 0..ROUNDS {
            let place = logarithms.partition_point(|gap| *gap <= f64::midpoint(short, long));
            let (below, above) = logarithms.split_at(place);
            if below.is_empty() || above.is_empty() {
                break;
            }
            let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
            (short, long) = (mean(below), mean(above));
        }
        Some(Usual { mean, short, long })
    }
}

/// Rounds in which the two kinds of gaps are found.
const ROUNDS: usize = 12;

/// The classifier's inputs: `gaps` around a packet, its own in the middle, and what is usual in its slot.
pub fn features(gaps: &[Span; GAPS], usual: &Usual) -> [f64; FEATURES] {
    let around = gaps.map(ln);
    let kinds: [f64; KINDS] = [around[REACH] - usual.short, usual.short, usual.long - usual.short, ln(usual.mean)];
    let mut features = [0.0; FEATURES];
    let products = (0..KINDS).flat_map(|i| (i..KINDS).map(move |j| kinds[i] * kinds[j]));
    let alike = (-(kinds[2] / ALIKE).powi(2)).exp();
    for (feature, value) in features.iter_mut().zip(around.into_iter().chain(kinds).chain(products).chain([alike])) {
        *feature = value;
    }
    features
}

/// Two kinds of gaps with logarithms much closer than this are one kind: no frames have borders then, or each packet is
/// one.
const ALIKE: f64 = 0.2;

/// Logarithm of a gap in microseconds; 0 for none.
fn ln(gap: Span) -> f64 {
    (gap.as_nanos() as f64 / 1e3).ln_1p()
}

/// Arrivals of one station's stream, slot by slot.
#[derive(Clone, Debug)]
pub struct Arrivals {
    coefficients: Coefficients,
    /// Of the slots before: as many as the first packets of this slot look back to.
    before: Vec<Arrival>,
    slot: Vec<Arrival>,
    /// The longest packet of this slot, and of the last one that had any.
    longest: [Bytes; 2],
    pace: Pace,
}

impl Default for Arrivals {
    fn default() -> Arrivals {
        Arrivals::new(TRAINED)
    }
}

impl Arrivals {
    /// With coefficients of one's own training.
    pub fn new(coefficients: Coefficients) -> Arrivals {
        let (before, slot) = (Vec::new(), Vec::new());
        Arrivals { coefficients, before, slot, longest: [Bytes::ZERO; 2], pace: Pace::default() }
    }

    /// A packet has arrived. Stamps that go back count as equal to the last. Only full packets are looked at: they alone are paced
    /// as the law wants it, and stand for what the hop gathers into frames. A packet is full if none was longer in this slot and
    /// in the one before.
    pub fn arrived(&mut self, packet: Arrival) {
        self.longest[0] = self.longest[0].max(packet.len);
        if self.longest.iter().any(|longest| packet.len < *longest) {
            return;
        }
        let last = self.slot.last().or(self.before.last()).map(|last| last.at);
        self.slot.push(Arrival { at: last.map_or(packet.at, |last| last.max(packet.at)), ..packet });
    }

    /// Probability for each packet of the slot so far that it is the first of a frame, in order.
    pub fn probabilities(&self) -> Vec<f64> {
        let classified = self.classified();
        // Packets that are far apart, and their gaps all alike, leave the classifier in doubt.
        if !Estimate::of(&classified).is_known() && self.came_alone() { vec![1.0; self.slot.len()] } else { classified }
    }

    /// True if the slot's packets took as long as one another, as far as their hosts let them: none has waited for those after it
    /// or before it, as packets of one frame do. Only those of the slot count: what came before a pause says nothing of them.
    fn came_alone(&self) -> bool {
        let Some(first) = self.slot.first() else { return false };
        let sent: Option<Vec<Time>> = self.slot.iter().map(|packet| packet.sent).collect();
        let Some(sent) = sent else { return false };
        let mut delays: Vec<f64> = self
            .slot
            .iter()
            .zip(&sent)
            .map(|(packet, left)| micros(packet.at, first.at) - micros(*left, sent[0]))
            .collect();
        let mut apart: Vec<f64> = sent.windows(2).map(|pair| micros(pair[1], pair[0])).collect();
        // A pause between two packets does not put the others farther apart. One packet alone is its frame.
        let Some(apart) = median(&mut apart) else { return true };
        let Some(middle) = median(&mut delays) else { return false };
        let differ = delays.iter().map(|delay| (delay - middle).abs()).sum::<f64>() / delays.len() as f64;
        differ <= EVEN_MICROS.max(EVEN * apart) && differ < EVEN_LEAST * apart
    }

    /// What the classifier says of them.
    fn classified(&self) -> Vec<f64> {
        let times: Vec<Time> = self.before.iter().chain(&self.slot).map(|packet| packet.at).collect();
        let gaps: Vec<Span> = times.windows(2).map(|pair| pair[1].since(pair[0])).collect();
        let Some(usual) = Usual::of(&gaps) else { return vec![1.0; self.slot.len()] };
        let gap = |index: usize| match index {
            0 => usual.mean,
            _ => times.get(index).map_or(usual.mean, |at| at.since(times[index - 1])),
        };
        // What lies outside of the record is taken to be usual.
        let around = |packet: usize| std::array::from_fn(|i| (packet + i).checked_sub(REACH).map_or(usual.mean, gap));
        let first = self.before.len();
        (first..times.len()).map(|packet| self.coefficients.probability(&features(&around(packet), &usual))).collect()
    }

    /// Ends the slot, and says what its arrivals were.
    pub fn end_slot(&mut self) -> Estimate {
        let probabilities = self.probabilities();
        self.close(&probabilities)
    }

    /// Ends the slot: what a station reports of it. What the packets themselves say (sequence numbers, losses, delays) is left
    /// empty, and `inverse_rate_sum` is 0 while the data rate is not known ([`Arrivals::inverse_rate`]). Of a slot in
    /// which frames cannot be told apart ([`Estimate::is_known`]) it reports no frames, which the regulator takes for
    /// silence: it keeps what it knew.
    pub fn feedback(&mut self, station: Node, slot: u32, start: Time, end: Time) -> StationFeedback {
        let probabilities = self.probabilities();
        let estimate = self.close(&probabilities);
        let source = FrameSource::Timestamps;
        let received = estimate.packets;
        let mut feedback = StationFeedback { received, source, ..StationFeedback::empty(station, slot, start, end) };
        if !estimate.is_known() {
            return feedback;
        }
        feedback.frames = u32::try_from(estimate.whole_frames()).unwrap_or(u32::MAX);
        feedback.packets = estimate.packets;
        feedback.inverse_rate_sum = f64::from(feedback.frames) * self.inverse_rate().unwrap_or(0.0);
        feedback.min_packets = u16::MAX;
        for frame in frames(&probabilities) {
            let size = frame.len() as u64;
            let narrow = u16::try_from(size).unwrap_or(u16::MAX);
            feedback.packets_squared += size * size;
            feedback.min_packets = feedback.min_packets.min(narrow);
            feedback.max_packets = feedback.max_packets.max(narrow);
        }
        feedback
    }

    /// What a bit takes on the air, seconds, as the slots that have ended tell: the inverse of the data rate. `None` while they do
    /// not.
    pub fn inverse_rate(&self) -> Option<f64> {
        let bits = (self.longest[1] + PACKET_OVERHEAD).bits() as f64;
        self.pace.estimate().map(|packet| packet.micros * 1e-6 / bits)
    }

    /// Begins a new slot, and keeps as much of the old one as its first packets look back to.
    fn close(&mut self, probabilities: &[f64]) -> Estimate {
        let estimate = Estimate::of(probabilities);
        if estimate.is_known() {
            self.pace.add(whole_frames(&self.slot, probabilities));
        }
        self.before.append(&mut self.slot);
        let spare = self.before.len().saturating_sub(REACH + 1);
        self.before.drain(..spare);
        if !self.longest[0].is_zero() {
            self.longest = [Bytes::ZERO, self.longest[0]];
        }
        estimate
    }
}

/// Packets came one by one if their delays differ by less than this in the mean, or by less than this share of the time
/// between them (the median). Those of one frame differ by a quarter of an access at least, 50 us.
const EVEN_MICROS: f64 = 25.0;
const EVEN: f64 = 0.02;
/// And by no more than this share in any case.
const EVEN_LEAST: f64 = 0.1;

/// Microseconds from `origin` to `time`, negative if it was before.
fn micros(time: Time, origin: Time) -> f64 {
    let (ahead, behind) = (time.since(origin).as_nanos() as f64, origin.since(time).as_nanos() as f64);
    (ahead - behind) / 1e3
}

/// The middle one of some values, which it may reorder; `None` of none.
fn median(values: &mut [f64]) -> Option<f64> {
    let middle = values.len() / 2;
    (!values.is_empty()).then(|| *values.select_nth_unstable_by(middle, f64::total_cmp).1)
}

/// A border or a packet within a frame is plain if it is what it is taken for with this probability.
const PLAIN: f64 = 0.8;

/// The packets of each frame. The first and the last may have further ones outside of the slot.
fn frames(probabilities: &[f64]) -> impl Iterator<Item = Range<usize>> + '_ {
    let begins = (1..probabilities.len()).filter(|packet| probabilities[*packet] > 0.5);
    let ends = begins.chain((!probabilities.is_empty()).then_some(probabilities.len()));
    ends.scan(0, |first, end| Some(std::mem::replace(first, end)..end))
}

/// The frames with certain borders and nothing else that is certain in them, as far as it is known when their packets
/// were sent.
fn whole_frames<'a>(packets: &'a [Arrival], probabilities: &'a [f64]) -> impl Iterator<Item = Whole> + 'a {
    let origin = packets.first().map(|first| (first.at, first.sent.unwrap_or(first.at)));
    // Packets and first stamp of the frame before, if it was plain.
    let mut last_frame = None;
    frames(probabilities).filter_map(move |frame| {
        let before = last_frame.take();
        let begins = |packet: usize| probabilities.get(packet).is_some_and(|p| *p >= PLAIN);
        let goes_on = frame.clone().skip(1).all(|packet| probabilities[packet] <= 1.0 - PLAIN);
        let (at, sent) = origin.filter(|_| begins(frame.start) && begins(frame.end) && goes_on)?;
        let (first, last, next) = (packets[frame.start], packets[frame.end - 1], packets[frame.end]);
        let left = |packet: Arrival| packet.sent.map(|time| micros(time, sent));
        let (size, first_at) = (frame.len() as f64, micros(first.at, at));
        last_frame = Some((size, first_at));
        let bounds = (first_at - left(next)?, first_at - left(last)?);
        let before = before.map(|(size, before_at)| (size, first_at - before_at));
        // What is sent again may come in another order.
        let in_order = bounds.0 <= bounds.1;
        in_order.then_some(Whole { packets: size, bounds, spread: micros(last.at, first.at), before })
    })
}

/// What the arrivals of a slot say of its frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Packets that arrived.
    pub packets: u64,
    /// Frames that they are expected to have come in: the sum of the probabilities.
    pub frames: f64,
    /// Packets that are expected to be taken for what they are not, over the frames: 0 if every gap is plain. On traces of
    /// training the error of a slot is about as large.
    pub doubt: f64,
}

impl Estimate {
    fn of(probabilities: &[f64]) -> Estimate {
        let frames: f64 = probabilities.iter().sum();
        let mistaken: f64 = probabilities.iter().map(|p| p.min(1.0 - p)).sum();
        let doubt = if probabilities.is_empty() { 0.0 } else { mistaken / frames.max(f64::MIN_POSITIVE) };
        Estimate { packets: probabilities.len() as u64, frames, doubt }
    }

    /// False if the gaps do not tell frames apart.
    pub fn is_known(&self) -> bool {
        self.packets > 0 && self.doubt <= MOST_DOUBT
    }

    /// Packets a frame; 0 without packets.
    pub fn mean_packets(&self) -> f64 {
        self.packets as f64 / self.whole_frames().max(1) as f64
    }

    /// A frame has a packet, and packets came in some frame.
    fn whole_frames(&self) -> u64 {
        (self.frames.round() as u64).clamp(u64::from(self.packets > 0), self.packets)
    }
}

/// An estimate with more doubt is none. Training slots above are off by a half on average.
const MOST_DOUBT: f64 = 0.4;

#[cfg(test)]
mod tests {
    use super::*;

    const STATION: Node = Node(3);

    /// A full packet that came so late; nobody knows when it was sent.
    fn stamped(us: u64) -> Arrival {
        Arrival { at: Time::ZERO + Span::from_micros(us), sent: None, len: Bytes::new(1500) }
    }

    /// Frames of `size` packets each `interval_us`, the packets of one stamped 2 us apart; one slot.
    fn slot(arrivals: &mut Arrivals, first_us: u64, frames: u64, size: u64, interval_us: u64) -> StationFeedback {
        for frame in 0..frames {
            for packet in 0..size {
                arrivals.arrived(stamped(first_us + frame * interval_us + 2 * packet));
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
        for (interval_us, most) in [(1_000, 1.1), (3_000, 1.1), (10_000, 1.1)] {
            let feedback = slot(&mut Arrivals::default(), 1_000, 500, 1, interval_us);
            assert!(feedback.mean_packets().expect("frames") < most, "{interval_us} us: {feedback:?}");
        }
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
    fn empty_slots_single_packets_and_backward_clocks_are_handled() {
        let mut arrivals = Arrivals::default();
        let empty = arrivals.feedback(STATION, 0, Time::ZERO, Time::ZERO);
        assert_eq!((empty.frames, empty.packets, empty.min_packets, empty.max_packets), (0, 0, 0, 0));
        arrivals.arrived(stamped(5));
        let single = arrivals.feedback(STATION, 1, Time::ZERO, Time::ZERO);
        assert_eq!((single.frames, single.packets, single.min_packets), (1, 1, 1));
        arrivals.arrived(stamped(4));
        arrivals.arrived(stamped(3));
        let back = arrivals.feedback(STATION, 2, Time::ZERO, Time::ZERO);
        assert!(back.received == 2 && back.frames <= 2, "{back:?}");
    }

    #[test]
    fn stamps_that_tell_nothing_make_no_frames() {
        // All of one moment, and packets every 30 us in between what a pause of the sender and a frame's end would be.
        let mut arrivals = Arrivals::default();
        (0..200).for_each(|_| arrivals.arrived(stamped(1)));
        let doubtful = Coefficients { intercept: -0.5, weights: [0.0; FEATURES] };
        let mut even = Arrivals::new(doubtful);
        (0..200).for_each(|packet| even.arrived(stamped(30 * packet)));
        for arrivals in [&mut arrivals, &mut even] {
            let estimate = Estimate::of(&arrivals.probabilities());
            assert!(!estimate.is_known(), "{estimate:?}");
            let feedback = arrivals.feedback(STATION, 1, Time::ZERO, Time::ZERO);
            assert_eq!((feedback.frames, feedback.packets, feedback.received), (0, 0, 200));
            assert_eq!((feedback.min_packets, feedback.max_packets, feedback.packets_squared), (0, 0, 0));
        }
    }

    /// Packets that left `every_us` apart from `from_us` on and were stamped `late_us(packet)` later, by a classifier that knows nothing.
    fn doubted(arrivals: &mut Arrivals, packets: u64, from_us: u64, every_us: u64, late_us: impl Fn(u64) -> u64) {
        for packet in 0..packets {
            let sent = Time::ZERO + Span::from_micros(from_us + packet * every_us);
            let at = sent + Span::from_micros(late_us(packet));
            arrivals.arrived(Arrival { at, sent: Some(sent), len: Bytes::new(1500) });
        }
    }

    #[test]
    fn equally_long_packets_came_alone_whatever_preceded_them() {
        const UNSURE: Coefficients = Coefficients { intercept: -0.5, weights: [0.0; FEATURES] };
        // A queue stood before the pause: other delays.
        for before in [0, 1, 20] {
            let mut arrivals = Arrivals::new(UNSURE);
            doubted(&mut arrivals, before, 0, 3_000, |packet| 40_000 + 9_000 * packet);
            arrivals.end_slot();
            doubted(&mut arrivals, 20, 400_000, 3_000, |packet| 5_000 + packet % 3);
            assert_eq!(arrivals.feedback(STATION, 1, Time::ZERO, Time::ZERO).frames, 20, "{before} before");
        }
        let mut lonely = Arrivals::new(UNSURE);
        doubted(&mut lonely, 3, 0, 600_000, |packet| 5_000 * packet);
        lonely.end_slot();
        doubted(&mut lonely, 1, 2_000_000, 0, |_| 90_000);
        assert_eq!(lonely.feedback(STATION, 1, Time::ZERO, Time::ZERO).frames, 1, "one packet is one frame");
    }

    #[test]
    fn a_pause_does_not_make_packets_of_one_frame_come_alone() {
        const UNSURE: Coefficients = Coefficients { intercept: -0.5, weights: [0.0; FEATURES] };
        // Twenty packets that left 50 us apart and were handed up at once: they differ by 250 us in the mean, which is less than
        // 2 % of the time between packets if ten seconds without any count as such.
        let burst = |packet: u64| 1_000 - 50 * packet;
        let mut after = Arrivals::new(UNSURE);
        doubted(&mut after, 20, 0, 50, burst);
        after.end_slot();
        doubted(&mut after, 20, 10_000_000, 50, burst);
        // The same pause within the slot.
        let mut within = Arrivals::new(UNSURE);
        doubted(&mut within, 10, 0, 50, burst);
        doubted(&mut within, 10, 10_000_000, 50, burst);
        for arrivals in [&mut after, &mut within] {
            let feedback = arrivals.feedback(STATION, 1, Time::ZERO, Time::ZERO);
            assert_eq!((feedback.frames, feedback.received), (0, 20));
        }
    }

    #[test]
    fn doubt_is_the_share_of_packets_that_may_be_mistaken() {
        // 1 + 0.1 + 0.9 + 0 = 2 frames of 4 packets; 0.1 + 0.1 of them mistaken.
        let estimate = Estimate::of(&[1.0, 0.1, 0.9, 0.0]);
        assert!((estimate.frames - 2.0).abs() < 1e-12 && (estimate.doubt - 0.1).abs() < 1e-12, "{estimate:?}");
        assert!(estimate.is_known() && (estimate.mean_packets() - 2.0).abs() < 1e-12);
        assert!(!Estimate::of(&[]).is_known());
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

    proptest::proptest! {
        #[test]
        fn no_account_of_ours_is_doubted(gaps in proptest::collection::vec(0u64..4_000, 0..300), slots in 1u32..4) {
            let (mut arrivals, mut now) = (Arrivals::default(), Time::ZERO);
            for slot in 0..slots {
                let start = now;
                for gap in &gaps {
                    // Mostly of a burst, now and then of a pause.
                    now += Span::from_micros(if gap % 3 > 0 { gap % 7 } else { *gap });
                    arrivals.arrived(Arrival { at: now, sent: Some(now), len: Bytes::new(1500) });
                }
                now = start + Span::from_millis(1_000);
                let account = arrivals.feedback(STATION, slot, start, now);
                proptest::prop_assert_eq!(account.doubt(u64::MAX), None, "{:?}", account);
            }
        }
    }
}
