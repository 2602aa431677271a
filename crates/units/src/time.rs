//! Points in time and the spans between them, in whole nanoseconds.

use crate::amount::amount;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign, Div, Sub};

/// Nanoseconds since the world began. A simulated world begins at its first event; a lab or an agent
/// begins at a moment that it chooses on `CLOCK_MONOTONIC`. Range: 584 years.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Time(u64);

/// A length of time in nanoseconds, never negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Span(u64);

impl Time {
    /// The moment the world began.
    pub const ZERO: Time = Time(0);
    /// Later than every event: "never".
    pub const MAX: Time = Time(u64::MAX);

    /// The moment `ns` nanoseconds after the world began.
    pub const fn from_nanos(ns: u64) -> Time {
        Time(ns)
    }

    /// Nanoseconds since the world began.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the world began, for plots and logs.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The span from `earlier` to `self`; zero if `earlier` is in fact later.
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// `self` moved back by `span`, not past the world's beginning.
    pub const fn saturating_sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

amount!(Span);

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// Longer than any run.
    pub const MAX: Span = Span(u64::MAX);

    /// A span of `ns` nanoseconds.
    pub const fn from_nanos(ns: u64) -> Span {
        Span(ns)
    }

    /// A span of `us` microseconds.
    pub const fn from_micros(us: u64) -> Span {
        Span(us * 1_000)
    }

    /// A span of `ms` milliseconds.
    pub const fn from_millis(ms: u64) -> Span {
        Span(ms * 1_000_000)
    }

    /// A span of `s` seconds.
    pub const fn from_secs(s: u64) -> Span {
        Span(s * 1_000_000_000)
    }

    /// The nearest nanosecond to `s` seconds; negative and NaN give zero, too long gives [`Span::MAX`].
    pub fn from_secs_f64(s: f64) -> Span {
        // A float-to-integer `as` saturates and maps NaN to 0, which is the documented contract.
        Span((s * 1e9).round() as u64)
    }

    /// Nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Milliseconds with their fraction.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Seconds with their fraction.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// `self` scaled by a dimensionless gain, rounded to the nearest nanosecond; negative and NaN give zero.
    pub fn scale(self, gain: f64) -> Span {
        Span((self.0 as f64 * gain).round() as u64)
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub for Time {
    type Output = Span;
    /// Panics in debug builds if `earlier` is later than `self`; use [`Time::since`] where that may happen.
    fn sub(self, earlier: Time) -> Span {
        debug_assert!(self >= earlier, "time ran backwards: {self:?} - {earlier:?}");
        self.since(earlier)
    }
}

impl Div<u64> for Span {
    type Output = Span;
    /// Rounds down. Panics if `parts` is zero.
    fn div(self, parts: u64) -> Span {
        Span(self.0 / parts)
    }
}

impl From<std::time::Duration> for Span {
    fn from(d: std::time::Duration) -> Span {
        Span(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Span> for std::time::Duration {
    fn from(s: Span) -> std::time::Duration {
        std::time::Duration::from_nanos(s.0)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t={}", Span(self.0))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0;
        let (value, unit) = match ns {
            0..1_000 => (ns as f64, "ns"),
            1_000..1_000_000 => (ns as f64 / 1e3, "us"),
            1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
            _ => (ns as f64 / 1e9, "s"),
        };
        match f.precision() {
            Some(digits) => write!(f, "{value:.digits$} {unit}"),
            None => write!(f, "{value} {unit}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_print_in_the_unit_a_person_would_choose() {
        assert_eq!(Span::from_micros(1_500).to_string(), "1.5 ms");
        assert_eq!(Span::from_nanos(12).to_string(), "12 ns");
        assert_eq!(Span::from_secs(3).to_string(), "3 s");
        assert_eq!(format!("{:.1}", Span::from_nanos(12_345_678)), "12.3 ms");
    }

    #[test]
    fn since_never_goes_negative() {
        let early = Time::from_nanos(5);
        let late = Time::from_nanos(9);
        assert_eq!(late.since(early), Span::from_nanos(4));
        assert_eq!(early.since(late), Span::ZERO);
    }

    #[test]
    fn nonsense_seconds_become_zero() {
        assert_eq!(Span::from_secs_f64(-1.0), Span::ZERO);
        assert_eq!(Span::from_secs_f64(f64::NAN), Span::ZERO);
        assert_eq!(Span::from_secs_f64(f64::INFINITY), Span::MAX);
    }
}
