//! What an access and a packet take, told from rounds of different lengths: for stations that know no data rates.
//! Source:     own; least squares with forgetting.
//! Equations:  r = a + w l in every slot,   r = (1 - known) / F,   l = Y / F
//!             w = cov(l, r) / var(l),   e² = (var(r) - w cov(l, r)) / ((k - 2) var(l)),   w - 3 e <= w <= w + 3 e
//!             a = mean(r) - w mean(l),   likely of w within w -+ e
//! Symbols:    F -> frames a second of all stations, Y -> packets a second of those without rates, known -> share of the time that
//!             packets of the others take, a -> seconds an access, w -> seconds a packet, k -> `count`, l -> `level`, r -> `spent`
//! Deviations: * One slot tells the sum of both only: where a neighbour makes accesses ten times as long, packets seem to take ten times
//!               as long, and a law that believes so sends single packets, which show nothing else. Two levels tell them apart.
//!             * Nothing is said of fewer than five slots, and little where levels were alike: the bounds are then wide.
//!             * A slot that lies off the line by a quarter, and by three standard errors, is left out; if the next one does too, to the
//!               same side, the hop is another, and what was before says nothing.
//! Validity:   slots in which rounds follow one another, of stations that keep their proportions.
//! Checked by: tests::*, crates/sim/tests/long/out_of_reach.rs

use super::model::LEAST_AIRTIME;

/// The slots that have been seen, the older the less.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoundRegression {
    /// Slots, and sums over them of l, r, l², l r, r².
    count: f64,
    sums: [f64; 5],
    /// The last slot if it was off the line.
    strange: Option<Slot>,
}

/// What one slot says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slot {
    /// Packets without a known rate for each frame.
    pub level: f64,
    /// Seconds for each frame that known packets leave.
    pub spent: f64,
}

/// What all of them say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Least and most that a packet takes, seconds.
    pub packet: (f64, f64),
    /// And within a standard error, seconds.
    likely: (f64, f64),
    /// Means of the slots.
    mean: Slot,
}

/// What a slot leaves of those before it.
const KEPT: f64 = 0.98;
/// Fewer slots say nothing.
const LEAST: f64 = 5.0;
/// Standard errors on either side.
const ERRORS: f64 = 3.0;
/// A slot that is off by this factor is of another hop.
const OFF: f64 = 1.25;
/// Slots are not the same by this share at the least.
const NOISE: f64 = 0.02;
/// Bounds that are within this factor of one another are as good as one value.
const SURE: f64 = 1.5;

impl RoundRegression {
    /// Folds one slot in.
    pub fn add(&mut self, slot: Slot) {
        if let Some(off) = self.off(&slot) {
            let again = self.strange.replace(slot);
            match again.filter(|before| self.off(before).is_some_and(|other| (other > 1.0) == (off > 1.0))) {
                None => return,
                Some(before) => {
                    *self = RoundRegression::default();
                    self.fold(before);
                }
            }
        }
        self.strange = None;
        self.fold(slot);
    }

    /// By which factor a slot is off the line, if it is by more than others are.
    fn off(&self, slot: &Slot) -> Option<f64> {
        let line = self.line()?;
        let ratio = slot.spent / line.at(slot.level);
        let expected = line.spread.hypot(line.error * (slot.level - line.mean.level));
        let unlike =
            !(1.0 / OFF..=OFF).contains(&ratio) && (slot.spent - line.at(slot.level)).abs() > ERRORS * expected;
        unlike.then_some(ratio)
    }

    fn fold(&mut self, Slot { level, spent }: Slot) {
        self.count = KEPT * self.count + 1.0;
        let of_slot = [level, spent, level * level, level * spent, spent * spent];
        for (sum, new) in self.sums.iter_mut().zip(of_slot) {
            *sum = KEPT * *sum + new;
        }
    }

    fn line(&self) -> Option<Line> {
        if self.count < LEAST {
            return None;
        }
        let [level, spent, square, product, square_spent] = self.sums.map(|sum| sum / self.count);
        let noise = (NOISE * spent).powi(2);
        let (varies, follows) = ((square - level * level).max(0.0), product - level * spent);
        let slope = if varies > 0.0 { follows / varies } else { 0.0 };
        let left = (square_spent - spent * spent - slope * follows).max(0.0) * self.count / (self.count - 2.0);
        let spread = left.max(noise).sqrt();
        let error = if varies > 0.0 { spread / (self.count * varies).sqrt() } else { f64::INFINITY };
        Some(Line { slope, error, spread, mean: Slot { level, spent } })
    }

    /// What they say of packets and accesses; `None` of too few.
    pub fn estimate(&self) -> Option<Estimate> {
        let Line { slope, error, mean, .. } = self.line()?;
        Some(Estimate {
            packet: (slope - ERRORS * error, slope + ERRORS * error),
            likely: (slope - error, slope + error),
            mean,
        })
    }
}

/// The line that lies nearest.
struct Line {
    slope: f64,
    error: f64,
    /// Standard deviation of slots from it.
    spread: f64,
    mean: Slot,
}

impl Line {
    fn at(&self, level: f64) -> f64 {
        (self.mean.spent + self.slope * (level - self.mean.level)).max(f64::MIN_POSITIVE)
    }
}

impl Estimate {
    /// What an access takes if a packet takes `packet`, seconds.
    pub fn access(&self, packet: f64) -> f64 {
        self.mean.spent - packet * self.mean.level
    }

    /// The most that a packet takes, seconds.
    pub fn most(&self) -> f64 {
        self.packet.1.max(LEAST_AIRTIME)
    }

    /// The time of a packet within the bounds that is nearest to `packet`, seconds.
    pub fn bound(&self, packet: f64) -> f64 {
        packet.min(self.most()).max(self.packet.0)
    }

    /// What an access most likely takes if it was believed to take `access`, seconds; if the bounds say what a packet does.
    pub fn likely_access(&self, access: f64) -> Option<f64> {
        let (least, most) = (self.access(self.likely.1), self.access(self.likely.0));
        self.is_sure().then(|| access.max(least).min(most))
    }

    /// True if the bounds say what a packet takes.
    pub fn is_sure(&self) -> bool {
        self.packet.0 > 0.0 && self.packet.1 < SURE * self.packet.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slots of a hop with accesses of `a` and packets of `w` seconds, which are off by up to 4 %.
    fn hop(a: f64, w: f64, levels: impl Iterator<Item = f64>) -> RoundRegression {
        let mut round_regression = RoundRegression::default();
        for (number, level) in levels.enumerate() {
            let off = 1.0 + 0.04 * ((number * 7 % 11) as f64 / 5.0 - 1.0);
            round_regression.add(Slot { level, spent: off * (a + w * level) });
        }
        round_regression
    }

    #[test]
    fn two_levels_tell_accesses_and_packets_apart() {
        for (a, w) in [(200e-6, 1.9e-3), (2.4e-3, 32e-6), (200e-6, 32e-6)] {
            let told = hop(a, w, (0..40).map(|slot| 2.0 + f64::from(slot % 20))).estimate().expect("enough");
            assert!((told.packet.0..=told.packet.1).contains(&w), "{a} {w}: {told:?}");
            assert!(told.packet.1 < 1.5 * w.max(a / 25.0), "{a} {w}: {told:?}");
            assert!((told.access(w) / a - 1.0).abs() < 0.4, "{a} {w}: {}", told.access(w));
        }
    }

    #[test]
    fn one_level_and_few_slots_say_nothing() {
        let (least, most) = hop(200e-6, 1.9e-3, std::iter::repeat_n(2.0, 40)).estimate().expect("enough").packet;
        assert!(least < 0.0 && most > 0.1, "{least} {most}");
        assert_eq!(hop(200e-6, 1.9e-3, [1.0, 2.0, 3.0, 4.0].into_iter()).estimate(), None);
    }

    #[test]
    fn another_hop_is_believed_when_two_slots_have_said_so() {
        let mut round_regression = hop(200e-6, 32e-6, (0..40).map(|slot| 2.0 + f64::from(slot % 20)));
        let before = round_regression.clone();
        round_regression.add(Slot { level: 10.0, spent: 5e-3 });
        assert_eq!(round_regression.sums, before.sums, "one may be an accident");
        round_regression.add(Slot { level: 10.0, spent: 520e-6 });
        assert!(round_regression.estimate().is_some() && round_regression.strange.is_none());
        (0..2).for_each(|_| round_regression.add(Slot { level: 10.0, spent: 5e-3 }));
        assert_eq!((round_regression.estimate(), round_regression.count), (None, 1.0 + KEPT));
    }
}
