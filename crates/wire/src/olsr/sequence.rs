//! Numbers that wrap around: of packets, of messages, and of what a node advertises (RFC 3626, section 19).

use std::fmt;

/// A number of 16 bits after 65535 of which comes 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Sequence(pub u16);

impl Sequence {
    /// The one after it.
    #[must_use]
    pub const fn next(self) -> Sequence {
        Sequence(self.0.wrapping_add(1))
    }

    /// True if it came after `other`, on the shorter way around: at most 32767 steps.
    /// Of two that are 32768 apart the RFC takes the greater one to be older; so neither order is ever said of both.
    pub const fn is_newer_than(self, other: Sequence) -> bool {
        let (a, b) = (self.0, other.0);
        a > b && a - b <= u16::MAX / 2 || b > a && b - a > u16::MAX / 2
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_is_told_across_the_wrap() {
        let newer = |a: u16, b: u16| Sequence(a).is_newer_than(Sequence(b));
        assert!(newer(1, 0) && !newer(0, 1) && !newer(7, 7));
        assert!(newer(0, 65_535) && !newer(65_535, 0));
        assert!(newer(32_767, 0) && !newer(0, 32_767));
        assert!(newer(0, 32_768) && !newer(32_768, 0), "half way around, the smaller is the newer");
        assert_eq!(Sequence(65_535).next(), Sequence(0));
    }
}
