//! Moments and spans by small numbers, as tests write them.

use crate::{Span, Time};

/// The moment `ms` milliseconds after time zero.
pub const fn at(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

/// `n` milliseconds.
pub const fn ms(n: u64) -> Span {
    Span::from_millis(n)
}
