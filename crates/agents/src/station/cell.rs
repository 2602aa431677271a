//! What the station can have of its cell: the law of PBE-CC's receiver, shown what decoders write and what comes through the tunnel.
//!
//! It fails open. Where logs end, stand still or are none, the law tells within 200 ms that it does not know, and the proxy goes on as BBR.

use super::error::Error;
use super::session::Session;
use crate::pbe::{Carriers, Logs};
use crate::service::Say;
use crate::service::poll::Poll;
use lasthop_laws::aggregation::SLOT;
use lasthop_laws::{Choice, Place, ReceiverSetup, pbe};
use lasthop_signals::{Arrival, CellCapacity, Node, Signal};
use lasthop_transport::ReceiverFeedback;
use lasthop_units::{Span, Time};

/// How often a file is looked at that grows.
const LOOK: Span = Span::from_millis(2);
/// Between two lines of the log.
const LINES: Span = SLOT;

/// What is known of the cell, and told.
pub(super) struct Cell {
    /// `None` once they cannot be read any more.
    carriers: Option<Carriers>,
    /// Subframes and rows without sense, of carriers that are not there any more.
    counted: (u64, u64),
    choice: Choice,
    receiver_feedback: ReceiverFeedback,
    /// The last round trip that the law was shown.
    round_trip: Option<Span>,
    /// When the last line of the log was due.
    line: Time,
    say: Say,
}

impl Cell {
    /// Opens the logs. `poll` wakes up with `token` when there is something in a pipe.
    pub(super) fn open(logs: &Logs, now: Time, poll: &Poll, token: u64, say: Say) -> Result<Cell, Error> {
        let carriers = Carriers::open(logs, poll, token, say)?;
        let choice = Choice::named(Place::Receiver, pbe::NAME).ok_or(crate::pbe::Error::NoLaw)?;
        let receiver_feedback = ReceiverFeedback::new(choice.receiver(setup(now))?);
        Ok(Cell {
            carriers: Some(carriers),
            counted: (0, 0),
            choice,
            receiver_feedback,
            round_trip: None,
            line: now,
            say,
        })
    }

    /// A packet has arrived.
    pub(super) fn on_arrival(&mut self, arrival: Arrival) {
        self.receiver_feedback.sense(arrival.at, &Signal::Arrival(arrival));
    }

    /// There is a new session. Its other end may have another clock, and be elsewhere.
    pub(super) fn begin(&mut self, now: Time) -> Result<(), Error> {
        self.receiver_feedback = ReceiverFeedback::new(self.choice.receiver(setup(now))?);
        self.round_trip = None;
        Ok(())
    }

    /// Reads what there is, and has the session tell what follows.
    pub(super) fn look(&mut self, now: Time, poll: &Poll, session: Option<&mut Session>) {
        let receiver_feedback = &mut self.receiver_feedback;
        if let Some(carriers) = &mut self.carriers
            && let Err(error) = carriers.read(now, poll, &mut |subframe| {
                receiver_feedback.sense(now, &Signal::Subframe(subframe.clone()));
            })
        {
            (self.say)(&format!("the cell is not known any more: {error}"));
            self.counted = (carriers.subframes(), carriers.unread());
            self.carriers.take().into_iter().for_each(|carriers| carriers.close(poll));
        }
        receiver_feedback.on_timeout(now);
        let Some(session) = session else { return };
        let round_trip = session.endpoint.latest_round_trip();
        if let Some(round_trip) = round_trip.filter(|new| self.round_trip.replace(*new) != Some(*new)) {
            receiver_feedback.sense(now, &Signal::RoundTrip(round_trip));
        }
        session.endpoint.tell_cell(receiver_feedback.latest().unwrap_or(CellCapacity::UNKNOWN));
    }

    /// What is told now.
    pub(super) fn told(&self) -> CellCapacity {
        self.receiver_feedback.latest().unwrap_or(CellCapacity::UNKNOWN)
    }

    /// Subframes of all carriers, and rows that make no sense, so far.
    pub(super) fn counts(&self) -> (u64, u64) {
        self.carriers.as_ref().map_or(self.counted, |carriers| (carriers.subframes(), carriers.unread()))
    }

    /// True if a line of the log is due, which counts as written.
    pub(super) fn takes_line(&mut self, now: Time) -> bool {
        let due = now.since(self.line) >= LINES;
        if due {
            self.line = now;
        }
        due
    }

    /// When it must be looked at next.
    pub(super) fn next(&self, now: Time) -> Time {
        let grows = self.carriers.as_ref().is_some_and(Carriers::grows);
        let look = if grows { now + LOOK } else { Time::MAX };
        look.min(self.receiver_feedback.next_timeout()).min(self.line + LINES)
    }
}

/// The law has no slots.
fn setup(start: Time) -> ReceiverSetup {
    ReceiverSetup { node: Node(0), slot: 0, start, end: Time::MAX, interval: Span::MAX, idle_slots: None }
}
