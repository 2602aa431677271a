//! The overhead of a round, learned from the frames of one station.
//! Source:     aggregation.md C.3: ĉ' = (1 - β) ĉ + β (μ_1/x_1) (1 - w'x), and its guards.
//! Equations:  sample = T_1 (1 - sum_j w_j y_j),   T_1 = slot / frames_1,   y_j = packets_j / slot_j
//! Symbols:    ĉ -> `round`, μ_1/x_1 = T_1 -> `interval`, w'x = sum w_j y_j -> `load`, β -> the `weight` argument
//! Deviations: rates are those that *arrived*, not those that were sent: μ_1/x_1 is then the interval between frames, as
//!             measured, and the sample holds while a queue grows. Two guards make the sample a bound. Full frames: where
//!             the hop could have sent more in one frame, the sample is too low; it may raise ĉ, not lower it (the
//!             specification skips it; but a hop that a neighbour has slowed down would then be overrun for longer).
//!             Single packets: frames then follow the packets, not the rounds, and the sample is too high; it may lower ĉ,
//!             not raise it. With [`OverheadRule::Access`] what is averaged is c/n, so that c is known at once when
//!             stations come and go.
//! Validity:   at least one active station.
//! Checked by: tests::*, controller::tests

use super::params::OverheadRule;

/// The estimator.
#[derive(Clone, Debug, PartialEq)]
pub struct Overhead {
    /// Seconds: of one access or of the round, as `rule` says.
    estimate: f64,
    rule: OverheadRule,
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
}

/// Frames of fewer packets than this follow the packets.
const SINGLE: f64 = 1.05;
/// Share of the most that a frame holds, from which on it counts as full.
const FULL: f64 = 0.95;
/// Bounds of the overhead of one access, seconds: SIFS, preamble and acknowledgement alone take 70 us, and beyond 100 ms the
/// hop is not usable.
const BOUNDS: (f64, f64) = (20e-6, 0.1);

impl Overhead {
    /// An estimate of `first` seconds an access.
    pub fn new(first: f64, rule: OverheadRule) -> Overhead {
        Overhead { estimate: first, rule }
    }

    /// Overhead of a round with `stations` active stations, seconds.
    pub fn round(&self, stations: usize) -> f64 {
        let stations = stations.max(1) as f64;
        match self.rule {
            OverheadRule::Access => self.estimate * stations,
            OverheadRule::Round => self.estimate,
        }
    }

    /// Folds one slot in, in which `stations` were active.
    pub fn update(&mut self, weight: f64, stations: usize, sample: &Sample) {
        let stations = stations.max(1) as f64;
        let measured = sample.interval * (1.0 - sample.load);
        if !measured.is_finite() || !sample.level.is_finite() {
            return;
        }
        let per = if self.rule == OverheadRule::Access { stations } else { 1.0 };
        // In either form the bounds are those of one access, times the accesses that the estimate stands for.
        let most = BOUNDS.1 * stations / per;
        let value = (1.0 - weight) * self.estimate + weight * measured / per;
        let value = value.clamp(BOUNDS.0, most);
        let full = sample.level >= FULL * sample.most && sample.level >= SINGLE;
        if full && value < self.estimate || sample.level < SINGLE && value > self.estimate {
            return;
        }
        self.estimate = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a hop with overhead `c`, airtime `w` a packet and `n` stations shows at `level` packets a frame.
    fn shown(c: f64, w: f64, n: f64, level: f64) -> Sample {
        let round = c + n * w * level;
        Sample { interval: round, load: n * w * level / round, level, most: 64.0 }
    }

    #[test]
    fn the_overhead_is_found_from_any_level() {
        for rule in [OverheadRule::Access, OverheadRule::Round] {
            let mut overhead = Overhead::new(2e-3, rule);
            (0..200).for_each(|_| overhead.update(0.05, 3, &shown(600e-6, 30e-6, 3.0, 10.0)));
            assert!((overhead.round(3) - 600e-6).abs() < 1e-6, "{overhead:?}");
        }
    }

    #[test]
    fn the_access_rule_knows_a_round_of_more_stations_at_once() {
        let mut overhead = Overhead::new(200e-6, OverheadRule::Access);
        overhead.update(0.05, 1, &shown(200e-6, 30e-6, 1.0, 10.0));
        assert!((overhead.round(11) - 2.2e-3).abs() < 1e-9);
        let overhead = Overhead::new(200e-6, OverheadRule::Round);
        assert!((overhead.round(11) - 200e-6).abs() < 1e-12);
    }

    #[test]
    fn full_frames_only_raise_and_single_packets_only_lower_it() {
        let mut overhead = Overhead::new(200e-6, OverheadRule::Round);
        overhead.update(0.5, 1, &shown(100e-6, 30e-6, 1.0, 63.0));
        assert_eq!(overhead.round(1), 200e-6);
        overhead.update(0.5, 1, &shown(400e-6, 30e-6, 1.0, 63.0));
        assert!((overhead.round(1) - 300e-6).abs() < 1e-9);
        overhead.update(0.5, 1, &Sample { interval: 0.1, load: 0.0, level: 1.0, most: 64.0 });
        assert!((overhead.round(1) - 300e-6).abs() < 1e-9);
        overhead.update(0.5, 1, &Sample { interval: 150e-6, load: 0.2, level: 1.0, most: 64.0 });
        assert!(overhead.round(1) < 300e-6);
    }

    #[test]
    fn nonsense_changes_nothing_or_stays_within_bounds() {
        let mut overhead = Overhead::new(200e-6, OverheadRule::Access);
        for value in [f64::NAN, f64::INFINITY, -1e9, 0.0, 1e9] {
            overhead.update(1.0, 2, &Sample { interval: value, load: 0.5, level: 10.0, most: 64.0 });
            assert!((40e-6..=0.2).contains(&overhead.round(2)), "{overhead:?}");
        }
    }
}
