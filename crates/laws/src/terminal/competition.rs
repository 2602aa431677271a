//! Whether others fill the hop: senders that nothing bounds. Asked where the terminal is set to compete.
//! Source:     the purpose is that of mode switching in Copa (Arun, Balakrishnan 2018) and Nimbus (Goyal et al. 2022). Both ask by how the
//!             queue moves; ours asks by the drains that terminals make anyway (see `drain`).
//! Equations:  a drain of a round trip at least fails if packets wait longer than 4 t after it, than four segments take at the rate that the
//!             terminal gets (a drain leaves two of each terminal), and than 3/4 of what they waited before.
//!             Two that fail one after the other: others fill the hop. They do so until packets wait less than t. A drain to half of the window
//!             that does not fail is followed by one to an eighth; if that leaves a quarter or less, they do no more.
//!             A terminal that gets less than 4/5 of what it got before, two steps one after the other, stops for 60 s.
//! Symbols:    t -> `standing`
//! Deviations: none.
//! Validity:   round trips up to the longest drain; after longer ones nothing is concluded.
//! Checked by: tests::*, crates/sim/tests/integration/terminal.rs, `lasthop reproduce terminal`

use lasthop_units::{Span, Time};

/// Drains that must fail one after the other.
const FAILURES: u32 = 2;
/// To get less than this part of what was got before is a loss.
const LOSS: f64 = 0.8;
/// Steps with a loss, one after the other, that end it, and for how long.
const LOSSES: u32 = 2;
const REST: Span = Span::from_secs(60);

/// What a terminal has found.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Competition {
    /// How long packets waited when the present drain began.
    before: Option<Span>,
    failed: u32,
    /// A drain in which windows were halved has left less.
    doubts: bool,
    /// What was delivered in a second before it began, and steps since that brought less.
    got: Option<f64>,
    lost: u32,
    /// It does not begin again before this.
    rest: Option<Time>,
}

impl Competition {
    /// True while others fill the hop.
    pub(super) fn is_on(&self) -> bool {
        self.failed >= FAILURES
    }

    /// True if a drain should come soon, because packets wait so long: it may find that others fill the hop, or that they do no more.
    pub(super) fn asks(&self, now: Time, waits: Span, much: Span) -> bool {
        self.doubts || !self.is_on() && !self.rests(now) && waits > much
    }

    fn rests(&self, now: Time) -> bool {
        self.rest.is_some_and(|rest| now < rest)
    }

    /// Packets wait so long at a look outside of drains.
    pub(super) fn look(&mut self, waits: Span, standing: Span) {
        if waits < standing {
            (self.failed, self.doubts) = (0, false);
        }
    }

    /// A drain begins, and packets wait so long. `None`: it will not last a round trip.
    pub(super) fn drains(&mut self, waits: Option<Span>) {
        self.before = waits;
        self.doubts &= waits.is_some();
    }

    /// It is over, and packets wait so long, where more than `much` cannot be the terminals' own. So much was delivered in a second before it.
    pub(super) fn drained(&mut self, now: Time, (waits, much): (Span, Span), rate: Option<f64>) {
        let Some(before) = self.before.take().filter(|_| !self.rests(now)) else { return };
        let stays = waits > much && waits > before / 4 * 3;
        if !self.is_on() {
            self.failed = if stays { self.failed + 1 } else { 0 };
            (self.got, self.lost) = (rate, 0);
        } else if self.doubts {
            self.doubts = false;
            if waits < much.max(before / 4) {
                self.failed = 0;
            }
        } else {
            self.doubts = !stays;
        }
    }

    /// True if the next drain must show whether what waits is the terminals' own: the last one has left less.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.doubts
    }

    /// It ends for a while: it does not pay, or nothing shows any more whether it must be.
    pub(super) fn rest(&mut self, now: Time) {
        let rest = if self.is_on() { Some(now + REST) } else { self.rest };
        *self = Competition { rest, ..Competition::default() };
    }

    /// A step of the terminal beside others brought so much in a second.
    pub(super) fn stepped(&mut self, now: Time, rate: f64) {
        let loses = self.got.is_some_and(|got| rate < LOSS * got);
        self.lost = if loses { self.lost + 1 } else { 0 };
        if self.lost >= LOSSES {
            self.rest(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::brief::ms;

    const T: Span = Span::from_millis(12);

    fn drain(competition: &mut Competition, before: u64, after: u64) -> bool {
        competition.drains(Some(ms(before)));
        competition.drained(Time::ZERO, (ms(after), T * 4), Some(100.0));
        competition.is_on()
    }

    #[test]
    fn two_drains_that_change_nothing_show_it() {
        let mut competition = Competition::default();
        assert!(!drain(&mut competition, 400, 380) && competition.failed == 1);
        assert!(drain(&mut competition, 380, 500));
        competition.look(ms(400), T);
        assert!(competition.is_on());
        assert!(
            drain(&mut competition, 500, 250) && competition.is_in_doubt(),
            "half of the windows, half of the queue"
        );
        assert!(!drain(&mut competition, 500, 60), "it was the terminals' own");
    }

    #[test]
    fn a_drain_that_empties_the_hop_shows_nothing() {
        let mut competition = Competition::default();
        drain(&mut competition, 400, 300);
        assert!(!drain(&mut competition, 300, 20));
        assert!(!drain(&mut competition, 30, 25), "less than four times t is nobody's queue");
    }

    #[test]
    fn it_ends_when_the_hop_is_free() {
        let mut competition = Competition::default();
        drain(&mut competition, 400, 400);
        drain(&mut competition, 400, 400);
        competition.look(ms(11), T);
        assert!(!competition.is_on());
    }

    #[test]
    fn a_drain_that_is_shorter_than_a_round_trip_says_nothing() {
        let mut competition = Competition::default();
        drain(&mut competition, 400, 400);
        competition.drains(None);
        competition.drained(Time::ZERO, (ms(5000), T * 4), None);
        assert!(!competition.is_on() && competition.failed == 1);
    }
}
