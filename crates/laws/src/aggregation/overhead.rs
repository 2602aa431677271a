//! The overhead of a round, learned from the frames of one station.
//! Source:     \[aggregation\]: ĉ' = (1 - β) ĉ + β (μ_1/x_1) (1 - w'x); its guards are own.
//! Equations:  sample = T_1 (1 - sum_j w_j y_j),   T_1 = slot / frames_1,   y_j = packets_j / slot_j
//!             ĉ' = (1 - b) ĉ + b sample;   b = 1 where the hop has changed, max{β, 1/(k + 1)} k slots later, β before any change
//!             ĉ' = (1 - min{(k - 1) β, 0.3}) ĉ   in the k-th slot in a row of single packets (`doubt`)
//! Symbols:    ĉ -> `round`, μ_1/x_1 = T_1 -> `interval`, w'x = sum w_j y_j -> `load`, β -> the `weight` argument
//! Deviations: why: decisions 8 and 9. Those marked * are not of [`OverheadRule::Round`], which is the published estimator.
//!
//! ```text
//! Arrivals    y is what arrived, not what was sent: the sample holds while a queue grows.
//! One side    frames of the reference are                         the sample is   and may
//!             full: 0.95 of what one can hold                     too low         only raise ĉ, if there are 5 in the slot
//!             of fewer than 4 packets, fewer than 5 in the slot,
//!             or of a station that was not sent what it may be    too high        only lower ĉ
//!             others                                              right           do both
//!             At the least rate 1.1 packets do for 4 (`Round`: 1.5): no lower rate would tell more.
//! Accesses*   c/n is averaged, n being the frames in a round (`controller::rounds`), so that c is known when stations come and go.
//! Changes*    Two samples in a row that are off by 1.25, to one side, are a change: the second is the new ĉ. Both must be of frames
//!             that show rounds, or show less; be off by more than one frame of each station would make; and come while the mix of
//!             frames is steady, within a tenth or a frame: a station that has just joined has no frame in some rounds,
//!             which then cost less.
//! Doubt       Single packets confirm any ĉ that is too high: where a round of them seems longer than the target, the law asks for
//!             them, and their interval is what it believes. So ĉ falls while frames are single, if data rates are known or no more
//!             is asked for. Not where packets wait all the same, nor where a frame holds only one.
//! Old rates*  Unless every w is of this slot, a sample is not believed that a w longer by 1.25 would explain, or that leaves less
//!             than an access; two in a row say that w has changed (`Change::Airtimes`). With ĉ too large by what w'mu is too small
//!             the inner loop's gain is K1 ĉ/c, and beyond 2 levels swing.
//! No rates    ĉ is what rounds of different lengths have told (`told`*), or leans to it (`lean`*). One that is longer than two rounds
//!             in a row is half of the second from then on (`bound`).
//! ```
//! Validity:   at least one active station.
//! Checked by: tests::*, controller::tests

use super::params::OverheadRule;

/// The estimator.
#[derive(Clone, Debug, PartialEq)]
pub struct Overhead {
    /// Seconds: of one access or of the round, as `rule` says.
    estimate: f64,
    rule: OverheadRule,
    /// What the last sample was of the estimate, if it may be the first after a change of the hop.
    suspect: Option<f64>,
    /// Frames of all stations for each of the reference's, in the last sample.
    mix: f64,
    /// Samples since such a change; `None` before there was one.
    since: Option<u32>,
    /// Slots in a row of single packets that were doubted.
    singles: u32,
    /// The last sample may have shown that packets take longer (true) or less long than was told.
    stretched: Option<bool>,
    /// The last round was shorter than the estimate.
    refuted: bool,
}

/// What one slot says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Mean time between the reference station's frames, seconds.
    pub interval: f64,
    /// Share of the time that packets of all stations took on the air.
    pub load: f64,
    /// Mean packets in the reference station's frames.
    pub level: f64,
    /// Most packets that they hold.
    pub most: f64,
    /// How far the load may be off because whole frames are counted in a slot: one of each station, as a share of the time.
    pub grain: f64,
    /// Frames of all active stations for each of the reference's.
    pub mix: f64,
    /// Frames of the reference station in the slot.
    pub frames: f64,
    /// True if the reference station was sent what it may be, all slot long.
    pub paced: bool,
    /// True if that is the least that the law sends: one packet in a round of single packets, as it believes these to be.
    pub least: bool,
    /// True if all stations have told in this slot what their packets take; otherwise some of the load is what they told before.
    pub told: bool,
}

/// What a slot has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing, or the estimate by a little.
    None,
    /// The overhead has become another, and the estimate with it.
    Overhead,
    /// Rounds have become others, and it may be what packets take that has: not all stations have told that they take what they took.
    Airtimes,
}

/// Frames of fewer packets than this follow the packets.
const SINGLE: f64 = 1.05;
/// Share of the most that a frame holds, from which on it counts as full.
const FULL: f64 = 0.95;
/// Two samples in a row that differ from the estimate by this factor, to the same side, are a change of the hop.
const CHANGE: f64 = 1.25;
/// Frames of fewer packets than this, or fewer frames than that in a slot, may have waited for packets.
const SURE: f64 = 4.0;
const FEW: f64 = 5.0;
/// Where the law sends the least that it may, packets that meet in frames of so many have been waited for: rounds are longer than is believed.
const MET: f64 = 1.1;
/// And by the published rule, which never gives a target up: where ĉ is found to be larger, it would send even less.
const MET_BY_ROUND: f64 = 1.5;
/// Share by which single packets lower the estimate at the most, in a slot.
const FALL: f64 = 0.3;
/// Frames do not say so of which the stations have other shares than in the slot before, by more than this part and more than one frame.
const STEADY: f64 = 0.1;
/// No access takes less, seconds: SIFS, preamble and acknowledgement alone.
const LEAST_ACCESS: f64 = 70e-6;
/// Bounds of the estimate of one access, seconds. The lower one is below any access, for too low an estimate does no harm; beyond the upper
/// one the hop is not usable.
const BOUNDS: (f64, f64) = (20e-6, 0.1);

impl Overhead {
    /// An estimate of `first` seconds an access.
    pub fn new(first: f64, rule: OverheadRule) -> Overhead {
        Overhead {
            estimate: first,
            rule,
            suspect: None,
            mix: 0.0,
            since: None,
            singles: 0,
            stretched: None,
            refuted: false,
        }
    }

    /// Overhead of a round with so many `frames`, one of each station that is in every round, seconds.
    pub fn round(&self, frames: f64) -> f64 {
        match self.rule {
            OverheadRule::Access => self.estimate * frames.max(1.0),
            OverheadRule::Round => self.estimate,
        }
    }

    /// Folds one slot in. Its rounds had so many `frames`.
    pub fn update(&mut self, weight: f64, frames: f64, sample: &Sample) -> Change {
        let frames = frames.max(1.0);
        let per = if self.rule == OverheadRule::Access { frames } else { 1.0 };
        let measured = sample.interval * (1.0 - sample.load) / per;
        if !measured.is_finite() || !sample.level.is_finite() {
            return Change::None;
        }
        let full = sample.is_full();
        // By how much longer packets would take if it is they; and whether they leave less time than an access takes.
        let stretch = (sample.interval - self.estimate * per) / (sample.interval * sample.load);
        let longer = stretch > CHANGE && self.shows_rounds(sample);
        let shorter = measured < LEAST_ACCESS && sample.frames >= FEW;
        let doubtful = self.rule == OverheadRule::Access && !sample.told;
        if doubtful && (longer || shorter) {
            let again = self.stretched.replace(longer) == Some(longer);
            self.stretched = self.stretched.filter(|_| !again);
            return if again { Change::Airtimes } else { Change::None };
        }
        self.stretched = None;
        if full && measured < self.estimate || !self.shows_rounds(sample) && measured > self.estimate {
            return Change::None;
        }
        let changed = match doubtful {
            true => {
                (self.mix, self.suspect) = (sample.mix, None);
                false
            }
            false => self.has_changed(measured, sample, sample.interval * sample.grain / per),
        };
        let weight = match self.since {
            _ if changed => 1.0,
            Some(samples) => weight.max(1.0 / f64::from(samples.saturating_add(1))),
            None => weight,
        };
        self.since = if changed { Some(1) } else { self.since.map(|samples| samples.saturating_add(1)) };
        // In either form the bounds are those of one access, times the accesses that the estimate stands for.
        let most = BOUNDS.1 * frames / per;
        self.estimate = ((1.0 - weight) * self.estimate + weight * measured).clamp(BOUNDS.0, most);
        if changed { Change::Overhead } else { Change::None }
    }

    /// Frames of single packets confirm whatever has made the law send so few. `level`: mean packets in the reference station's frames.
    /// `sure`: what packets take is known, or single ones are asked for, so that it is the estimate that makes them single.
    pub fn doubt(&mut self, weight: f64, level: f64, sure: bool) {
        self.singles = if sure && level < SINGLE { self.singles.saturating_add(1) } else { 0 };
        // The law begins with a slot of them.
        let slots = f64::from(self.singles.saturating_sub(1));
        self.estimate = (self.estimate * (1.0 - (weight * slots).min(FALL))).max(BOUNDS.0);
    }

    /// Where data rates are not known, but rounds of different lengths have told that an access takes `access` seconds. True if that is another
    /// hop than was believed; never by the published rule.
    pub fn told(&mut self, access: f64) -> bool {
        let ratio = access.clamp(LEAST_ACCESS, BOUNDS.1) / self.estimate;
        if self.rule == OverheadRule::Round {
            return false;
        }
        self.estimate *= ratio;
        !(1.0 / CHANGE..=CHANGE).contains(&ratio)
    }

    /// And if they only tell that it most likely does: then the estimate leans that way; never by the published rule.
    pub fn lean(&mut self, weight: f64, access: f64) {
        if self.rule == OverheadRule::Access {
            self.estimate += weight * (access.clamp(LEAST_ACCESS, BOUNDS.1) - self.estimate);
        }
    }

    /// Where data rates are not known: true if rounds have been shorter than their overhead in two slots in a row. The estimate is then half
    /// of them: what is left is what packets take, and too low an estimate does no harm. `round`: frames in one; `interval`: mean time
    /// between the reference station's frames, seconds; `frames`: as many in the slot.
    pub fn bound(&mut self, round: f64, interval: f64, frames: f64) -> bool {
        let refuted = frames >= FEW && interval < self.round(round);
        let again = std::mem::replace(&mut self.refuted, refuted) && refuted;
        if again {
            (self.estimate, self.refuted) = ((self.estimate * interval / self.round(round) / 2.0).max(BOUNDS.0), false);
        }
        again
    }

    /// Each frame began when the one before had ended, so that the time between them is the round's.
    fn shows_rounds(&self, sample: &Sample) -> bool {
        let several = match self.rule {
            _ if !sample.least => SURE,
            OverheadRule::Access => MET,
            OverheadRule::Round => MET_BY_ROUND,
        };
        sample.frames >= FEW && (sample.level >= several && sample.paced || sample.is_full())
    }

    /// True if `measured` is the second sample in a row that the estimate does not explain; never by the published rule.
    fn has_changed(&mut self, measured: f64, sample: &Sample, error: f64) -> bool {
        // Of few frames, one more or less is a larger part.
        let steady = STEADY.max(1.0 / sample.frames);
        let steady = (sample.mix / std::mem::replace(&mut self.mix, sample.mix) - 1.0).abs() <= steady;
        let (ratio, off) = (measured / self.estimate, (measured - self.estimate).abs());
        let unexplained = !(1.0 / CHANGE..=CHANGE).contains(&ratio) && off > error;
        // Frames that follow the packets show too much: what they show to be less is.
        let shown = self.shows_rounds(sample) || sample.frames >= FEW && ratio < 1.0;
        let strange = self.rule == OverheadRule::Access && steady && shown && unexplained;
        let before = std::mem::replace(&mut self.suspect, strange.then_some(ratio));
        let same_side = |before: f64| (before > 1.0) == (ratio > 1.0);
        if !strange || !before.is_some_and(same_side) {
            return false;
        }
        self.suspect = None;
        true
    }
}

impl Sample {
    /// The hop could have sent more in one frame.
    fn is_full(&self) -> bool {
        self.level >= FULL * self.most && self.level >= SINGLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a hop with overhead `c`, airtime `w` a packet and `n` stations shows at `level` packets a frame.
    fn shown(c: f64, w: f64, n: f64, level: f64) -> Sample {
        let round = c + n * w * level;
        Sample {
            interval: round,
            load: n * w * level / round,
            level,
            most: 64.0,
            grain: 0.0,
            mix: n,
            frames: 50.0,
            paced: true,
            least: false,
            told: true,
        }
    }

    #[test]
    fn the_overhead_is_found_from_any_level() {
        for rule in [OverheadRule::Access, OverheadRule::Round] {
            let mut overhead = Overhead::new(2e-3, rule);
            for _ in 0..200 {
                overhead.update(0.05, 3.0, &shown(600e-6, 30e-6, 3.0, 10.0));
            }
            assert!((overhead.round(3.0) - 600e-6).abs() < 1e-6, "{overhead:?}");
        }
    }

    #[test]
    fn the_access_rule_knows_a_round_of_more_stations_at_once() {
        let mut overhead = Overhead::new(200e-6, OverheadRule::Access);
        overhead.update(0.05, 1.0, &shown(200e-6, 30e-6, 1.0, 10.0));
        assert!((overhead.round(11.0) - 2.2e-3).abs() < 1e-9);
        let overhead = Overhead::new(200e-6, OverheadRule::Round);
        assert!((overhead.round(11.0) - 200e-6).abs() < 1e-12);
    }

    #[test]
    fn full_frames_only_raise_and_single_packets_only_lower_it() {
        let mut overhead = Overhead::new(200e-6, OverheadRule::Round);
        overhead.update(0.5, 1.0, &shown(100e-6, 30e-6, 1.0, 63.0));
        assert_eq!(overhead.round(1.0), 200e-6);
        overhead.update(0.5, 1.0, &shown(400e-6, 30e-6, 1.0, 63.0));
        assert!((overhead.round(1.0) - 300e-6).abs() < 1e-9);
        overhead.update(0.5, 1.0, &Sample { interval: 0.1, load: 0.0, ..shown(200e-6, 30e-6, 1.0, 1.0) });
        assert!((overhead.round(1.0) - 300e-6).abs() < 1e-9);
        overhead.update(0.5, 1.0, &Sample { interval: 150e-6, load: 0.2, ..shown(200e-6, 30e-6, 1.0, 1.0) });
        assert!(overhead.round(1.0) < 300e-6);
    }

    #[test]
    fn a_changed_hop_is_known_after_two_slots_then_averaged() {
        let mut overhead = Overhead::new(200e-6, OverheadRule::Access);
        overhead.update(0.05, 3.0, &shown(600e-6, 30e-6, 3.0, 10.0));
        for (c, level) in [(2.4e-3, 64.0), (600e-6, 15.0), (2.4e-3, 30.0)] {
            let sample = shown(c, 30e-6, 3.0, level);
            assert_eq!(overhead.update(0.05, 3.0, &sample), Change::None, "one sample is not believed");
            assert_eq!(overhead.update(0.05, 3.0, &sample), Change::Overhead, "two are");
            assert!((overhead.round(3.0) / c - 1.0).abs() < 1e-9, "{overhead:?}");
            // Noise of a tenth afterwards averages out as if the estimate began here.
            for noise in [1.1, 0.9, 1.1, 0.9] {
                assert_eq!(overhead.update(0.05, 3.0, &shown(c * noise, 30e-6, 3.0, level.min(40.0))), Change::None);
            }
            assert!((overhead.round(3.0) / c - 1.0).abs() < 0.03, "{overhead:?}");
        }
    }

    #[test]
    fn single_or_opposed_outliers_and_short_frames_are_no_change() {
        let mut overhead = Overhead::new(200e-6, OverheadRule::Access);
        for c in [400e-6, 200e-6, 400e-6, 100e-6, 400e-6, 100e-6] {
            assert_eq!(overhead.update(0.05, 1.0, &shown(c, 30e-6, 1.0, 20.0)), Change::None, "{c}");
        }
        for _ in 0..5 {
            assert_eq!(overhead.update(0.05, 1.0, &shown(2e-3, 30e-6, 1.0, 3.0)), Change::None);
        }
        assert!(overhead.round(1.0) < 800e-6, "{overhead:?}");
        // A fifth of a millisecond more, where a frame more or less of each station makes a third.
        let coarse = Sample { grain: 0.05, ..shown(400e-6, 110e-6, 1.0, 60.0) };
        let mut overhead = Overhead::new(200e-6, OverheadRule::Access);
        (0..5).for_each(|_| assert_eq!(overhead.update(0.05, 1.0, &coarse), Change::None));
        // A station that joins: the sample is another thing while the mix of frames changes.
        let mut overhead = Overhead::new(200e-6, OverheadRule::Access);
        for mix in [1.0, 2.0, 4.0, 8.0, 11.0] {
            assert_eq!(
                overhead.update(0.05, 11.0, &Sample { mix, ..shown(1e-3, 30e-6, 1.0, 20.0) }),
                Change::None,
                "{mix}"
            );
        }
        let mut published = Overhead::new(200e-6, OverheadRule::Round);
        for _ in 0..5 {
            assert_eq!(
                published.update(0.05, 1.0, &shown(2e-3, 30e-6, 1.0, 20.0)),
                Change::None,
                "as published, it never is"
            );
        }
    }

    #[test]
    fn a_slot_with_pauses_or_few_frames_raises_nothing() {
        let pauses = Sample { paced: false, ..shown(20e-3, 30e-6, 1.0, 20.0) };
        let few = Sample { frames: 4.0, ..shown(20e-3, 30e-6, 1.0, 50.0) };
        let short = shown(20e-3, 30e-6, 1.0, 3.9);
        for sample in [pauses, few, short] {
            let mut overhead = Overhead::new(200e-6, OverheadRule::Access);
            (0..10).for_each(|_| assert_eq!(overhead.update(0.05, 1.0, &sample), Change::None));
            assert_eq!(overhead.round(1.0), 200e-6, "{sample:?}");
        }
        // Unless it is the least rate, at which packets would not meet if rounds were not longer than that.
        let mut overhead = Overhead::new(200e-6, OverheadRule::Access);
        let least = Sample { least: true, ..shown(20e-3, 30e-6, 1.0, 2.5) };
        overhead.update(0.05, 1.0, &shown(200e-6, 30e-6, 1.0, 2.5));
        assert_eq!(overhead.update(0.05, 1.0, &least), Change::None);
        assert_eq!(overhead.update(0.05, 1.0, &least), Change::Overhead);
        assert!((overhead.round(1.0) / 20e-3 - 1.0).abs() < 1e-9, "{overhead:?}");
        // A hop that is overrun holds back what may be under way: the station is sent less than it may, in full frames.
        let mut overhead = Overhead::new(200e-6, OverheadRule::Access);
        overhead.update(0.05, 1.0, &Sample { paced: false, ..shown(20e-3, 30e-6, 1.0, 64.0) });
        assert!(overhead.round(1.0) > 1e-3);
    }

    #[test]
    fn longer_rounds_with_stale_rates_do_not_set_the_overhead() {
        let mut overhead = Overhead::new(200e-6, OverheadRule::Access);
        // Packets take 70 us, and were said to take 32.
        let shown = shown(600e-6, 70e-6, 3.0, 50.0);
        let old = Sample { told: false, load: shown.load * 32.0 / 70.0, ..shown };
        assert_eq!(overhead.update(0.05, 3.0, &old), Change::None);
        assert_eq!(overhead.update(0.05, 3.0, &old), Change::Airtimes);
        // And the other way round.
        let old = Sample { told: false, load: shown.load * 70.0 / 50.0, ..shown };
        assert_eq!(overhead.update(0.05, 3.0, &old), Change::None);
        assert_eq!(overhead.update(0.05, 3.0, &old), Change::Airtimes);
        assert!((overhead.round(3.0) - 600e-6).abs() < 1e-12, "{overhead:?}");
        // What a rate may be wrong by is learned as ever, and so is what rates of the same slot leave.
        let off = Sample { told: false, load: shown.load / 1.1, ..shown };
        assert_eq!(overhead.update(0.05, 3.0, &off), Change::None);
        assert!(overhead.round(3.0) > 605e-6, "{overhead:?}");
        let told = Sample { load: shown.load * 32.0 / 70.0, ..shown };
        assert_eq!(overhead.update(0.05, 3.0, &told), Change::None);
        assert_eq!(overhead.update(0.05, 3.0, &told), Change::Overhead);
        // Too short for what packets take is a round of frames of any length.
        let mut overhead = Overhead::new(200e-6, OverheadRule::Access);
        let short = Sample { told: false, level: 1.5, load: 0.9, ..shown };
        let short = Sample { interval: 0.7e-3, ..short };
        assert_eq!(overhead.update(0.05, 3.0, &short), Change::None);
        assert_eq!(overhead.update(0.05, 3.0, &short), Change::Airtimes);
        let mut published = Overhead::new(600e-6, OverheadRule::Round);
        published.update(0.05, 3.0, &Sample { told: false, ..told });
        assert!(published.round(3.0) > 700e-6, "{published:?}");
    }

    #[test]
    fn single_packets_are_doubted_more_and_more() {
        let mut overhead = Overhead::new(10e-3, OverheadRule::Access);
        let mut shares = Vec::new();
        for _ in 0..8 {
            let before = overhead.round(1.0);
            overhead.doubt(0.05, 1.0, true);
            let sample = shown(before, 30e-6, 1.0, 1.0);
            assert_eq!(overhead.update(0.05, 1.0, &sample), Change::None, "its own sample does not raise it again");
            shares.push(overhead.round(1.0) / before);
        }
        for (share, want) in shares.iter().zip([1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.7]) {
            assert!((share / want - 1.0).abs() < 1e-9, "{shares:?}");
        }
        // Two packets in a frame end that, and single packets that have another reason are none for it.
        let held = overhead.round(1.0);
        overhead.doubt(0.05, 1.1, true);
        overhead.doubt(0.05, 1.0, false);
        assert_eq!(overhead.round(1.0), held);
        (0..2).for_each(|_| overhead.doubt(0.05, 1.0, true));
        assert!((overhead.round(1.0) / held - 0.95).abs() < 1e-9, "from the beginning");
    }

    #[test]
    fn a_lower_overhead_from_small_frames_is_believed_at_once() {
        let as_before = || {
            let mut overhead = Overhead::new(8e-3, OverheadRule::Access);
            overhead.update(0.05, 1.0, &shown(8e-3, 30e-6, 1.0, 2.0));
            overhead
        };
        let (mut overhead, sample) = (as_before(), shown(400e-6, 30e-6, 1.0, 2.0));
        assert_eq!(overhead.update(0.05, 1.0, &sample), Change::None, "one sample is not believed");
        assert_eq!(overhead.update(0.05, 1.0, &sample), Change::Overhead);
        assert!((overhead.round(1.0) - 400e-6).abs() < 1e-9, "{overhead:?}");
        // A few frames may be few by accident.
        let (mut overhead, few) = (as_before(), Sample { frames: 4.0, ..sample });
        (0..5).for_each(|_| assert_eq!(overhead.update(0.05, 1.0, &few), Change::None));
    }

    #[test]
    fn nonsense_changes_nothing_or_stays_within_bounds() {
        let mut overhead = Overhead::new(200e-6, OverheadRule::Access);
        for value in [f64::NAN, f64::INFINITY, -1e9, 0.0, 1e9] {
            overhead.update(1.0, 2.0, &Sample { interval: value, load: 0.5, ..shown(200e-6, 30e-6, 1.0, 10.0) });
            assert!((40e-6..=0.2).contains(&overhead.round(2.0)), "{overhead:?}");
        }
    }
}
