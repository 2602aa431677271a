//! The Reno family as its RFCs have it: the window is halved at once, and a transport without RACK repairs what was lost.
//! Source:     RFC 5681 section 3 (Reno), RFC 6582 section 3.2 (NewReno), RFC 6675 section 5 (SACK).
//! Equations:  on loss: ssthresh = cwnd = max(FlightSize / 2, 2 MSS);   NewReno at the end: cwnd = min(ssthresh, max(FlightSize, MSS) + MSS)
//! Symbols:    cwnd, ssthresh -> `window`; FlightSize at a loss -> `Loss::prior_in_flight`
//! Deviations: cwnd is not inflated by duplicate acknowledgements; the transport takes what they tell of out of the flight, which comes to the
//!             same. Growth counts octets, up to one MSS an acknowledgement (RFC 5681, equation 2; RFC 3465).
//! Validity:   for the loss recovery of the same name.     Checked by: tests::*, tests/integration/conformance, transport's tests/integration/newreno.rs

use super::Setup;
use super::window::Window;
use crate::{Decision, Entry, LossRecovery, SenderLaw, Transport};
use lasthop_signals::{Ack, Signal};
use lasthop_units::Time;

/// Reno without SACK.
pub const CLASSIC_RENO: Entry = entry(
    "classic-reno",
    "Reno without SACK and RACK (RFC 5681): recovery ends at the first acknowledgement of new data.",
    LossRecovery::Reno,
    |_, setup| Ok(Box::new(NewReno::new(&setup, false))),
);
/// NewReno without SACK.
pub const NEWRENO: Entry = entry(
    "newreno",
    "NewReno without SACK and RACK (RFC 6582): a hole is repaired each round trip.",
    LossRecovery::NewReno,
    |_, setup| Ok(Box::new(NewReno::new(&setup, true))),
);
/// Reno with SACK alone.
pub const SACK_RENO: Entry =
    entry("sack-reno", "Reno with SACK and without RACK (RFC 6675).", LossRecovery::Sack, |_, setup| {
        Ok(Box::new(NewReno::new(&setup, false)))
    });

const fn entry(
    name: &'static str,
    doc: &'static str,
    loss_recovery: LossRecovery,
    build: crate::entry::BuildSender,
) -> Entry {
    Entry::sender(name, doc, &[], build).over(Transport::Tcp(loss_recovery))
}

/// The window of one flow.
#[derive(Clone, Debug)]
pub struct NewReno {
    window: Window,
    /// Whether the window is brought down to the flight when recovery ends, so that no burst leaves.
    deflates: bool,
    /// Recovery has just ended.
    ended: bool,
}

impl NewReno {
    /// A flow about to start. `deflates`: no burst leaves at the end of a recovery (RFC 6582, option 1).
    pub fn new(setup: &Setup, deflates: bool) -> NewReno {
        NewReno { window: Window::new(setup), deflates, ended: false }
    }

    fn on_ack(&mut self, ack: &Ack) {
        if std::mem::take(&mut self.ended) && self.deflates {
            self.window.deflate(ack.in_flight.max(ack.mss) + ack.mss);
        }
        let one = Ack { newly_delivered: ack.newly_delivered.min(ack.mss), ..*ack };
        self.window.climb(&one);
    }
}

impl SenderLaw for NewReno {
    fn sense(&mut self, now: Time, signal: &Signal) {
        match signal {
            Signal::Ack(ack) => self.on_ack(ack),
            Signal::Loss(loss) => self.window.on_halving(loss, loss.prior_in_flight.scale(0.5)),
            Signal::Timeout(loss) => self.window.on_timeout(loss, loss.prior_in_flight.scale(0.5)),
            other => {
                self.ended = matches!(other, Signal::Recovered) && self.window.in_recovery();
                self.window.follow(now, other);
            }
        }
    }

    fn decide(&self, _now: Time) -> Decision {
        self.window.decide()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Why;
    use crate::tcp::test_signals::{MSS, ack, cwnd, loss, setup};
    use lasthop_signals::Loss;

    fn flow(deflates: bool) -> NewReno {
        let mut law = NewReno::new(&setup(), deflates);
        (0..30).for_each(|_| law.sense(Time::ZERO, &Signal::Ack(ack(1, 40))));
        assert_eq!(cwnd(&law), MSS * 40);
        law
    }

    #[test]
    fn a_loss_halves_the_flight_and_stops_growth_until_recovery() {
        let mut law = flow(true);
        law.sense(Time::ZERO, &Signal::Loss(Loss { prior_in_flight: MSS * 30, ..loss(29) }));
        (0..50).for_each(|_| law.sense(Time::ZERO, &Signal::Ack(ack(1, 20))));
        assert_eq!((cwnd(&law), law.decide(Time::ZERO).why), (MSS * 15, Why::Recovery));
    }

    #[test]
    fn no_burst_leaves_at_the_end_of_a_recovery() {
        for (deflates, segments) in [(true, 4), (false, 15)] {
            let mut law = flow(deflates);
            law.sense(Time::ZERO, &Signal::Loss(Loss { prior_in_flight: MSS * 30, ..loss(29) }));
            law.sense(Time::ZERO, &Signal::Recovered);
            // Three are in flight: with one more, and the acknowledgement's own growth in slow start.
            law.sense(Time::ZERO, &Signal::Ack(Ack { cwnd_limited: false, ..ack(0, 3) }));
            assert_eq!(cwnd(&law), MSS * segments, "{deflates}");
        }
    }

    #[test]
    fn an_acknowledgement_of_many_is_worth_one_segment() {
        let mut law = NewReno::new(&setup(), true);
        law.sense(Time::ZERO, &Signal::Ack(ack(8, 10)));
        assert_eq!(cwnd(&law), MSS * 11);
    }
}
