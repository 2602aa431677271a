//! How far the rate moves along the gradient of the utility.
//! Source:     Dong et al. 2018 section 4.2.
//! Equations:  d = m(tau) theta0 gamma, at most (omega0 + k delta) r either way;   m = 1, 2, 3, 5, 7, 9, ...
//! Symbols:    gamma, utility a Mbit/s -> `gradient`; r -> `rate`; tau, how many decisions before this one had its
//!             direction -> `repeats`; k -> `beyond`
//! Deviations: m is no quotation. The paper asks for m(0) = 1 and an m that never falls; this one rises by one a decision, and by
//!             two from the fourth on. A gradient of zero moves nothing and changes no state.
//! Validity:   any finite gradient.
//! Checked by: tests::* (worked by hand)

/// theta0: Mbit/s for a gradient of one.
const CONVERSION: f64 = 1.0;
/// omega0: the first bound on a change, as a share of the rate.
const FIRST_BOUND: f64 = 0.05;
/// delta: by how much the bound grows with each decision that exceeded it.
const BOUND_STEP: f64 = 0.1;

/// Confidence amplifier and dynamic change boundary.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Step {
    /// Whether the last decision raised the rate.
    rising: Option<bool>,
    repeats: u32,
    beyond: u32,
}

impl Step {
    /// By how many Mbit/s the rate of `rate` Mbit/s is to change.
    pub(super) fn change(&mut self, gradient: f64, rate: f64) -> f64 {
        if gradient == 0.0 || !gradient.is_finite() {
            return 0.0;
        }
        let rising = gradient > 0.0;
        if self.rising == Some(rising) {
            self.repeats = self.repeats.saturating_add(1);
        } else {
            *self = Step { rising: Some(rising), repeats: 0, beyond: 0 };
        }
        let wanted = amplifier(self.repeats) * CONVERSION * gradient;
        let most = bound(self.beyond) * rate;
        if wanted.abs() > most {
            self.beyond = self.beyond.saturating_add(1);
            return most.copysign(wanted);
        }
        // The least k with a bound that the change respects.
        let excess = (wanted.abs() / rate - FIRST_BOUND) / BOUND_STEP;
        self.beyond = self.beyond.min(excess.ceil().max(0.0) as u32);
        wanted
    }
}

/// m(tau).
fn amplifier(repeats: u32) -> f64 {
    let repeats = f64::from(repeats);
    (1.0 + repeats).max(2.0 * repeats - 1.0)
}

fn bound(beyond: u32) -> f64 {
    FIRST_BOUND + BOUND_STEP * f64::from(beyond)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: f64, want: f64) {
        assert!((got - want).abs() < 1e-9 * want.abs().max(1.0), "{got} for {want}");
    }

    #[test]
    fn the_amplifier_rises_and_rises_faster() {
        assert_eq!([0, 1, 2, 3, 4, 5].map(amplifier), [1.0, 2.0, 3.0, 5.0, 7.0, 9.0]);
    }

    #[test]
    fn repeated_directions_are_amplified_and_a_turn_resets() {
        let mut step = Step::default();
        // The bound is 5 of 100 Mbit/s.
        for want in [0.6, 1.2, 1.8, 3.0, 4.2] {
            near(step.change(0.6, 100.0), want);
        }
        near(step.change(-0.6, 100.0), -0.6);
        near(step.change(-0.6, 100.0), -1.2);
        near(step.change(0.6, 100.0), 0.6);
        assert_eq!(step.change(0.0, 100.0), 0.0);
        near(step.change(0.6, 100.0), 1.2);
    }

    #[test]
    fn the_bound_widens_by_a_tenth_with_each_decision_beyond_it() {
        let mut step = Step::default();
        // 5, 15, 25 and 35 % of 10 Mbit/s; a turn takes it back to 5 %.
        for want in [-0.5, -1.5, -2.5, -3.5] {
            near(step.change(-400.0, 10.0), want);
        }
        near(step.change(400.0, 10.0), 0.5);
        near(step.change(400.0, 10.0), 1.5);
    }

    #[test]
    fn a_change_within_the_bound_narrows_the_bound() {
        let mut step = Step::default();
        for want in [0.5, 1.5, 2.5] {
            near(step.change(100.0, 10.0), want);
        }
        // The bound is 35 %; five times 0.24 are 12 %, which 15 % hold: k = 1.
        near(step.change(0.24, 10.0), 1.2);
        near(step.change(100.0, 10.0), 1.5);
    }

    #[test]
    fn a_bound_never_widens_where_it_was_not_exceeded() {
        let mut step = Step::default();
        near(step.change(0.5, 10.0), 0.5);
        near(step.change(1.0, 10.0), 0.5);
        near(step.change(0.3, 10.0), 0.9);
        near(step.change(0.02, 10.0), 0.1);
        near(step.change(1.0, 10.0), 0.5);
    }
}
