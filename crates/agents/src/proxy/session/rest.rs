//! Whether something waits for a station, as the law is told of it.

use lasthop_laws::aggregation::REST;
use lasthop_units::Time;

/// When something last waited for the station or was sent to it, as far as that has been looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rest {
    busy: Time,
    /// Packets that had been sent at the last look.
    packets: u64,
    /// True if the law knows that it is a while ago.
    told: bool,
    /// True if the law knows that something waits.
    waits: bool,
}

/// What has begun since the law was told last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begins {
    /// Something waits for the station; or it has waited and left since the last look, after a rest: of several packets all but the first have.
    Wait,
    /// Nothing has waited for [`REST`].
    Rest,
}

/// So many packets that are sent between two looks did not all leave as they came.
const SEVERAL: u64 = 2;

impl Rest {
    /// Looks whether something is `waiting`, and how many `packets` have been sent since the session began.
    pub(super) fn look(&mut self, now: Time, waiting: bool, packets: u64) -> Option<Begins> {
        let sent = packets - std::mem::replace(&mut self.packets, packets);
        let came = waiting || sent >= SEVERAL && self.told;
        let waited = std::mem::replace(&mut self.waits, waiting);
        self.told &= !came;
        if waiting || sent > 0 {
            self.busy = now;
            return (came && !waited).then_some(Begins::Wait);
        }
        let rests = !self.told && now.since(self.busy) >= REST;
        self.told |= rests;
        rests.then_some(Begins::Rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_nanos(1_000_000_000_000);

    #[test]
    fn packets_that_waited_between_two_looks_are_a_coming_too() {
        let mut rest = Rest::default();
        assert_eq!(rest.look(NOW, false, 0), Some(Begins::Rest), "nothing was ever sent");
        assert_eq!(rest.look(NOW, false, 1), None, "a single packet leaves as it comes");
        assert_eq!(rest.look(NOW, false, 3), Some(Begins::Wait), "of two the second has waited");
        assert_eq!(rest.look(NOW, false, 5), None, "that has been said");
        assert_eq!(rest.look(NOW, false, 5), None);
        assert_eq!(rest.look(NOW + REST, false, 5), Some(Begins::Rest));
        assert_eq!(rest.look(NOW + REST, false, 5), None, "that has been said");
        assert_eq!(rest.look(NOW + REST, false, 7), Some(Begins::Wait));
    }

    #[test]
    fn waiting_is_reported_once_and_is_never_taken_for_rest() {
        let mut rest = Rest::default();
        assert_eq!(rest.look(NOW, true, 0), Some(Begins::Wait));
        assert_eq!(rest.look(NOW + REST, true, 0), None);
        assert_eq!(rest.look(NOW + REST, false, 0), None, "it has waited until now");
        assert_eq!(rest.look(NOW + REST * 2, false, 0), Some(Begins::Rest));
        assert_eq!(rest.look(NOW + REST * 2, true, 0), Some(Begins::Wait));
    }
}
