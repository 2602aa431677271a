//! What one station is allowed, what bounds that, and how much it came to.
//! Source:     own.
//! Equations:  A = integral of x over the time in which the station was present, since the last slot
//! Symbols:    x -> `rate`, A -> `allowed`
//! Deviations: none.
//! Validity:   any.
//! Checked by: controller::tests

use lasthop_units::Time;

/// For one station.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Grant {
    /// Packets a second allowed (x).
    pub rate: f64,
    /// True if that is the least rate.
    pub least: bool,
    /// True if it is what the path before the hop carries that bounds it.
    pub held: bool,
    /// True if it is bound because nothing shows what packets take.
    pub rises: bool,
    /// Packets that it was allowed in this slot, until `passed`: not the presence's, for rates change while it is present.
    pub allowed: f64,
    pub passed: Time,
}

impl Grant {
    /// Of one that begins at this moment.
    pub fn from(now: Time) -> Grant {
        Grant { passed: now, ..Grant::default() }
    }

    /// Counts what was allowed until now, if it was `present`.
    pub fn pass(&mut self, now: Time, present: bool) {
        if present {
            self.allowed += self.rate * now.since(self.passed).as_secs_f64();
        }
        self.passed = now;
    }
}

impl Default for Grant {
    fn default() -> Grant {
        Grant { rate: 1.0, least: false, held: false, rises: false, allowed: 0.0, passed: Time::ZERO }
    }
}
