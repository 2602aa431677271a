//! Messages that have come before.
//! Source:     RFC 3626, sections 3.4 (duplicate set) and 3.4.1 (default forwarding).
//! Deviations: with one interface the set's list of interfaces has that one from the first copy on, so D_retransmitted decides nothing, and
//!             is not kept. Where the set is full, a message counts as new but is not forwarded: what cannot be remembered must not go around.

use lasthop_units::Time;
use lasthop_wire::olsr::Sequence;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Messages that are remembered: by the RFC's times 270 nodes with a TC in each 2 s.
pub const MOST_DUPLICATES: usize = 4096;

/// What a message is beside those that have come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Seen {
    /// It has not come.
    New,
    /// It has.
    Before,
    /// It has not, as far as is known, and cannot be remembered.
    Unknown,
}

/// Originators and numbers of messages, and until when each is remembered.
#[derive(Clone, Debug, Default)]
pub(super) struct Duplicates {
    until: BTreeMap<(Ipv4Addr, Sequence), Time>,
    /// No message is forgotten before.
    soonest: Time,
}

impl Duplicates {
    /// Remembers a message `until` then.
    pub(super) fn see(&mut self, now: Time, message: (Ipv4Addr, Sequence), until: Time) -> Seen {
        let remembered = self.until.get(&message).is_some_and(|until| *until > now);
        if self.until.len() >= MOST_DUPLICATES && self.soonest <= now {
            self.expire(now);
        }
        if self.until.len() >= MOST_DUPLICATES && !self.until.contains_key(&message) {
            return Seen::Unknown;
        }
        self.soonest = if self.until.is_empty() { until } else { self.soonest.min(until) };
        // Anew from the last copy on, as the RFC has it.
        self.until.insert(message, until);
        if remembered { Seen::Before } else { Seen::New }
    }

    /// Forgets what is too old.
    pub(super) fn expire(&mut self, now: Time) {
        self.until.retain(|_, until| *until > now);
        self.soonest = self.until.values().copied().min().unwrap_or(Time::MAX);
    }

    /// When the next may be too old.
    pub(super) fn next(&self) -> Option<Time> {
        (!self.until.is_empty()).then_some(self.soonest)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.until.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::Span;

    fn at(s: u64) -> Time {
        Time::ZERO + Span::from_secs(s)
    }

    #[test]
    fn a_message_is_new_once_until_it_is_forgotten() {
        let mut duplicates = Duplicates::default();
        let message = |n: u16| (Ipv4Addr::new(10, 0, 0, 1), Sequence(n));
        assert_eq!(duplicates.see(at(0), message(1), at(30)), Seen::New);
        assert_eq!(duplicates.see(at(1), message(1), at(31)), Seen::Before);
        assert_eq!(duplicates.see(at(1), message(2), at(31)), Seen::New);
        assert_eq!(duplicates.see(at(31), message(1), at(61)), Seen::New);
        duplicates.expire(at(31));
        assert_eq!(duplicates.len(), 1);
    }

    #[test]
    fn a_flood_fills_it_and_no_more_and_is_over_when_it_is_over() {
        let mut duplicates = Duplicates::default();
        let forged = |n: u32| (Ipv4Addr::from(n), Sequence(0));
        let new = (0..10_000).filter(|n| duplicates.see(at(0), forged(*n), at(30)) == Seen::New).count();
        assert_eq!((new, duplicates.len()), (MOST_DUPLICATES, MOST_DUPLICATES));
        assert_eq!(duplicates.see(at(29), forged(1), at(59)), Seen::Before);
        assert_eq!(duplicates.see(at(29), forged(10_001), at(59)), Seen::Unknown);
        assert_eq!(duplicates.see(at(30), forged(10_001), at(60)), Seen::New);
        assert_eq!(duplicates.len(), 2);
    }
}
