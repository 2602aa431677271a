//! The account of each slot, for the proxy's law: the frames that were received in it.

use super::config::Config;
use super::error::Error;
use super::frames::Frames;
use super::session::Session;
use lasthop_laws::aggregation::station::Station as Law;
use lasthop_laws::{ReceiverLaw, ReceiverSetup};
use lasthop_signals::{Arrival, Feedback, Node, Received, Signal, StationFeedback};
use lasthop_units::{Span, Time};

/// What is known of frames, and when it is told.
pub(super) struct Slots {
    frames: Frames,
    law: Law,
    slot: (Time, Time),
    length: Span,
    /// The last slot's account, to be sent a second time.
    again: Option<(Time, StationFeedback)>,
}

impl Slots {
    /// Begins in the slot in which `now` lies.
    pub(super) fn open(config: &Config, frames: Frames, node: Node, now: Time) -> Slots {
        let first = first_slot(node, now, config.slot);
        let law = Law::new(frames.source(), first);
        Slots { frames, law, slot: (first.start, first.end), length: config.slot, again: None }
    }

    /// Shows the law something that came through the tunnel.
    pub(super) fn sense(&mut self, now: Time, signal: &Signal) {
        self.law.sense(now, signal);
    }

    /// A full packet has arrived.
    pub(super) fn on_arrival(&mut self, now: Time, arrival: Arrival) {
        self.law.sense(now, &Signal::Arrival(arrival));
    }

    /// There is a new session, which counts anew.
    pub(super) fn begin(&mut self, now: Time) {
        self.law.sense(now, &Signal::Received(Received::default()));
        self.again = None;
    }

    /// Looks at frames, and tells again what is to be told again.
    pub(super) fn look(&mut self, now: Time, session: Option<&mut Session>) -> Result<(), Error> {
        self.frames.look(now, &mut |signal| self.law.sense(now, signal))?;
        let again = |(at, _): &mut (Time, StationFeedback)| *at <= now;
        if let Some(session) = session
            && let Some((_, account)) = self.again.take_if(again)
        {
            session.endpoint.tell(account);
        }
        Ok(())
    }

    /// True if the slot is over.
    pub(super) fn is_over(&self, now: Time) -> bool {
        self.slot.1 <= now
    }

    /// Tells the proxy what the law has to tell of the slot that is over, and begins the next. Returns what was told, and when the slot ended.
    pub(super) fn end(
        &mut self,
        now: Time,
        mut session: Option<&mut Session>,
    ) -> Result<Option<(Time, StationFeedback)>, Error> {
        let (start, end) = self.slot;
        self.frames.end_slot(now, (start, end), &mut |signal| self.law.sense(now, signal))?;
        if let Some(session) = &mut session {
            let (packets, highest) = session.endpoint.arrived();
            let given = highest.map_or(0, |highest| highest + 1);
            self.law.sense(now, &Signal::Received(Received { packets, given }));
        }
        self.law.sense(now, &Signal::Wakeup);
        let decision = self.law.decide(now);
        self.slot = (end, decision.revisit.unwrap_or(Time::MAX));
        self.again = None;
        let (Some(session), Some(Feedback::Station(account))) = (session, decision.feedback) else { return Ok(None) };
        session.endpoint.tell(account);
        // Datagrams are lost in bursts: the second copy takes its time.
        self.again = Some((end + self.length / 20, account));
        Ok(Some((end, account)))
    }

    /// Frames that a monitor interface has shown faster than they were read; `None` without one.
    pub(super) fn missed(&self) -> Option<u64> {
        self.frames.missed()
    }

    /// When it must be looked at next.
    pub(super) fn next(&self, now: Time) -> Time {
        let again = self.again.as_ref().map_or(Time::MAX, |(at, _)| *at);
        let frames = if self.frames.has_more() { now } else { Time::MAX };
        self.slot.1.min(again).min(frames)
    }
}

/// The slot in which `now` lies. Slots are numbered by the clock, so that a station that was started again goes on.
fn first_slot(node: Node, now: Time, interval: Span) -> ReceiverSetup {
    let number = now.as_nanos() / interval.as_nanos();
    let start = Time::from_nanos(number * interval.as_nanos());
    ReceiverSetup { node, slot: number as u32, start, end: start + interval, interval, idle_slots: None }
}
