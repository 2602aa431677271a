//! Counting round trips by what has been delivered.
//! Source:     [draft-cardwell-iccrg-bbr-congestion-control-00] section 4.1.1.3.
//! Equations:  a round ends when a segment sent after it began is acknowledged
//! Symbols:    BBR.next_round_delivered -> `ends_at`, BBR.round_count -> `count`
//! Deviations: none.     Validity: samples in order of arrival.     Checked by: tests::*

use lasthop_units::Bytes;

/// The counter.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rounds {
    count: u64,
    ends_at: Bytes,
}

impl Rounds {
    /// A sample of a segment that was sent when `prior` had been delivered arrives when `delivered` has been. True if
    /// it begins a round.
    pub(crate) fn on_sample(&mut self, prior: Bytes, delivered: Bytes) -> bool {
        let begins = prior >= self.ends_at;
        if begins {
            self.ends_at = delivered;
            self.count += 1;
        }
        begins
    }

    /// A round begins now, uncounted.
    pub(crate) fn restart(&mut self, delivered: Bytes) {
        self.ends_at = delivered;
    }

    /// Rounds begun so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_ends_with_the_first_segment_sent_within_it() {
        let mut rounds = Rounds::default();
        let b = Bytes::new;
        assert!(rounds.on_sample(b(0), b(1000)));
        assert!(!rounds.on_sample(b(0), b(2000)));
        assert!(!rounds.on_sample(b(500), b(3000)));
        assert!(rounds.on_sample(b(1000), b(4000)));
        assert_eq!(rounds.count(), 2);
    }
}
