//! ATP in the tunnel: the delay D of the path's slowest hop sets the time between packets, each way.
//! Source:     Zhang, Buck, Zappala 2011 and ATP (Sundaresan et al. 2005), by the laws of [`lasthop_laws::atp`];
//!             reliability and rate are apart.
//! Equations:  a packet with data every max(gap of the law, D of the own interface);   probe: the path is unknown and data waits, or something
//!             has had no answer for epoch + timeout; never sooner than an epoch after the last
//! Symbols:    gap -> `gap`, the longest time while the path is unknown; epoch -> `peer_epoch`; timeout -> that of RFC 6298, which cuts nothing here
//! States:     unknown (probes, each with one packet's data) -> known (a gap), by a path delay; known -> unknown, by three epochs without one
//! Deviations: losses are found by packet number (`sent_packets`), not by the serial number of a transmission: numbers never repeat. Acknowledgements
//!             leave with path delays, that is once an epoch, but within 400 ms: an end that pings twice a second is to
//!             hear of it. Besides, what is missing is told at once if nothing was told for 40 ms, or if it is the 16th
//!             time. The last packets, after which none comes, are found lost by the probe behind them. An
//!             acknowledgement never changes the rate, nor does a loss. What carries neither data nor a probe (windows,
//!             answers) is not paced, and brings no D: it is a packet in hundreds.
//! Validity:   packets carry D where relays can raise it.     Checked by: tests/integration/path_pace.rs

use super::arrivals::AckRule;
use lasthop_laws::atp::{HOLES, LONGEST_DELAY, SHORTEST_EPOCH, believed_epoch};
use lasthop_laws::{ReceiverLaw, SenderLaw, Why};
use lasthop_signals::{Feedback, PathDelay, Signal};
use lasthop_units::{Bytes, Rate, Span, Time};
use lasthop_wire::tunnel::Frame;

/// Between two probes that nobody answers, before an epoch is known.
const PROBE_AGAIN: Span = Span::from_secs(1);
/// Packets that are acknowledged whatever the epoch: an eighth of those that may wait for it.
const PACKETS: u32 = 4096;
/// How long an acknowledgement waits at most, whatever the epoch.
const LATEST: Span = Span::from_millis(400);
/// A full packet, where a rate of packets is wanted as one of octets.
const FULL: Bytes = Bytes::new(1500);

/// Both directions of one end.
#[derive(Clone)]
pub(super) struct PathPace {
    sender: Box<dyn SenderLaw>,
    gap: Span,
    why: Why,
    /// When the sender's law wants to be woken.
    wakes: Option<Time>,
    /// How often the other end tells; `None` before it has.
    peer_epoch: Option<Span>,
    /// What it told last, and at most.
    heard: Option<Span>,
    most: Option<Span>,
    /// When a probe left last.
    asked: Option<Time>,
    own_delay: Span,
    receiver: Box<dyn ReceiverLaw>,
    /// When the receiver's law wants to be woken; `None` while no packets come.
    tells: Option<Time>,
    /// What was told last.
    told: Option<Span>,
    epoch: Span,
    /// To be told with the next packet, which leaves at once.
    report: Option<PathDelay>,
}

/// What is known of the paths of one end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathFigures {
    /// Time between two packets that leave here; `None` while the path is unknown.
    pub gap: Option<Span>,
    /// Why.
    pub why: Why,
    /// D of the way there, as the other end averages it; `None` before it has told.
    pub heard: Option<Span>,
    /// The most that it has told.
    pub most: Option<Span>,
    /// D of the way here, as it was told last; `None` before it was.
    pub told: Option<Span>,
}

impl PathPace {
    pub(super) fn new(sender: Box<dyn SenderLaw>, receiver: Box<dyn ReceiverLaw>) -> PathPace {
        PathPace {
            sender,
            gap: Span::MAX,
            why: Why::Probing,
            wakes: None,
            peer_epoch: None,
            heard: None,
            most: None,
            asked: None,
            own_delay: Span::ZERO,
            receiver,
            tells: None,
            told: None,
            epoch: SHORTEST_EPOCH,
            report: None,
        }
    }

    /// True while nothing but probes may leave.
    pub(super) fn is_unknown(&self) -> bool {
        self.gap == Span::MAX
    }

    /// Time between two packets; the longest while nothing but probes may leave.
    pub(super) fn gap(&self) -> Span {
        self.gap.max(self.own_delay)
    }

    /// The same as a rate of full packets.
    pub(super) fn rate(&self) -> Rate {
        if self.is_unknown() { Rate::ZERO } else { Rate::of(FULL, self.gap()).unwrap_or(Rate::MAX) }
    }

    /// When what has come is acknowledged.
    pub(super) fn ack_rule(&self) -> AckRule {
        AckRule { delay: self.epoch.min(LATEST), packets: PACKETS, between_gaps: SHORTEST_EPOCH, gaps: HOLES as u32 }
    }

    /// When the laws want to be woken next.
    pub(super) fn timer(&self) -> Option<Time> {
        [self.wakes, self.tells].into_iter().flatten().min()
    }

    /// Wakes the laws that want to be.
    pub(super) fn on_timeout(&mut self, now: Time) {
        if self.wakes.is_some_and(|at| at <= now) {
            self.tell_sender(now, &Signal::Wakeup);
        }
        if self.tells.is_some_and(|at| at <= now) {
            self.tell_receiver(now, &Signal::Wakeup);
        }
    }

    /// When the next probe is due. `data`: some waits; `waiting_since`: something else waits for its acknowledgement since then; `timeout`: for
    /// as long as a round trip may take.
    pub(super) fn asks_at(&self, data: bool, waiting_since: Option<Time>, timeout: Span) -> Option<Time> {
        let again = self.asked.map_or(Time::ZERO, |asked| asked + self.peer_epoch.unwrap_or(PROBE_AGAIN));
        if data && self.is_unknown() {
            return Some(again);
        }
        // The other end has an epoch for it.
        let answer = self.peer_epoch.unwrap_or(SHORTEST_EPOCH) + timeout;
        waiting_since.map(|since| (since + answer).max(again))
    }

    pub(super) fn on_asked(&mut self, now: Time) {
        self.asked = Some(now);
    }

    /// What is to be told now.
    pub(super) fn take_report(&mut self) -> Option<Frame<'static>> {
        let PathDelay { average, epoch } = self.report.take()?;
        Some(Frame::PathDelay { average, epoch })
    }

    pub(super) fn has_report(&self) -> bool {
        self.report.is_some()
    }

    /// The other end has told of the way there.
    pub(super) fn on_told(&mut self, now: Time, average: Span, epoch: Span) {
        let average = average.min(LONGEST_DELAY);
        let epoch = believed_epoch(epoch);
        (self.peer_epoch, self.heard, self.most) = (Some(epoch), Some(average), self.most.max(Some(average)));
        // Nobody makes this end faster than its own interface.
        self.tell_sender(now, &Signal::PathDelay(PathDelay { average: average.max(self.own_delay), epoch }));
    }

    /// A packet has come with data, or with a `probe`, and this D; there are so many holes in what has come of which nobody has told.
    pub(super) fn on_stamp(&mut self, now: Time, delay: Span, probe: bool, holes: usize, round_trip: Option<Span>) {
        let (silent, delay) = (self.tells.is_none(), delay.min(LONGEST_DELAY));
        if let Some(round_trip) = round_trip {
            self.tell_receiver(now, &Signal::RoundTrip(round_trip));
        }
        self.tell_receiver(now, &Signal::Stamp(delay));
        if holes > 0 {
            self.tell_receiver(now, &Signal::Holes(holes));
        }
        if probe {
            // After a silence the average is of another time: what the probe met is what the path has.
            let average = self.told.filter(|_| !silent).unwrap_or(delay);
            let epoch = self.tells.map_or(Span::ZERO, |at| at.since(now)).max(SHORTEST_EPOCH);
            self.note_report(PathDelay { average, epoch });
        }
    }

    fn tell_sender(&mut self, now: Time, signal: &Signal) {
        self.sender.sense(now, signal);
        let decision = self.sender.decide(now);
        (self.gap, self.why, self.wakes) = (decision.gap.unwrap_or(Span::ZERO), decision.why, decision.revisit);
    }

    fn tell_receiver(&mut self, now: Time, signal: &Signal) {
        self.receiver.sense(now, signal);
        let decision = self.receiver.decide(now);
        self.tells = decision.revisit;
        if let Some(Feedback::Path(told)) = decision.feedback {
            self.note_report(told);
        }
    }

    pub(super) fn set_own_delay(&mut self, delay: Span) {
        self.own_delay = delay.min(LONGEST_DELAY);
    }

    pub(super) fn figures(&self) -> PathFigures {
        let gap = (!self.is_unknown()).then(|| self.gap());
        PathFigures { gap, why: self.why, heard: self.heard, most: self.most, told: self.told }
    }

    fn note_report(&mut self, told: PathDelay) {
        (self.told, self.epoch, self.report) = (Some(told.average), told.epoch, Some(told));
    }
}
