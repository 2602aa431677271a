//! Connections to servers.

use super::window::{self, MSS, Window};
use crate::tunnel::outgoing::{Addresses, Attempt};
use crate::tunnel::pipe::Pipe;
use lasthop_laws::ReceiveWindow;
use lasthop_units::{Bytes, Span, Time};
use lasthop_wire::tunnel::OpenResult;
use std::net::TcpStream;

/// A connection that is one end of a stream, in some state of being made.
pub(super) struct Server {
    pub(super) state: State,
    pub(super) window: Window,
    pub(super) receive_window: ReceiveWindow,
    /// What its share of the rate asks for beyond what has arrived.
    pub(super) open: Bytes,
    /// Octets in the kernel, when last looked at.
    pub(super) queued: u64,
    min_rtt: Option<Span>,
    /// Until when it counts as one that sends, after something has waited or half of what might come within a round trip has, or half of what
    /// one begins with.
    pub(super) busy_until: Time,
    /// Until when one that has been made and has brought nothing yet is expected to; none before it was first looked at.
    expected_until: Option<Time>,
    /// The first octet that its sender must not send yet; by what we have set, since the kernel does not tell.
    edge: u64,
    /// Octets that had come, and of those that had been read, when last looked at.
    arrived: u64,
    taken: u64,
    /// Something has come since the window was last set.
    pub(super) news: bool,
    /// A while ago: when, what had come, and what more might.
    before: (Time, u64, u64),
}

pub(super) enum State {
    /// Its addresses are being asked for.
    Resolving,
    /// It is being made, and must stand by `until`; further addresses are left, the next one last.
    Connecting { socket: TcpStream, until: Time, left: Addresses },
    /// It stands.
    Up(Pipe),
}

/// A server that has sent nothing for two round trips, and for no less than this, may have nothing to send.
const LULL: Span = Span::from_millis(100);
/// What a server may send that has sent nothing of late: ten segments (RFC 6928).
pub(super) const INITIAL_WINDOW: u64 = 10 * MSS as u64;

impl Server {
    /// One that is not connected yet.
    pub(super) fn resolving() -> Server {
        Server::new(State::Resolving, 0)
    }

    /// One that may bring `first` octets before it is heard of.
    pub(super) fn new(state: State, first: u64) -> Server {
        Server {
            state,
            window: Window::new(),
            receive_window: ReceiveWindow::new(Bytes::new(u64::from(MSS))),
            open: Bytes::ZERO,
            queued: 0,
            min_rtt: None,
            busy_until: Time::ZERO,
            expected_until: None,
            edge: first,
            arrived: 0,
            taken: 0,
            news: false,
            before: (Time::ZERO, 0, first),
        }
    }

    /// One so far away, as if its socket had said so.
    #[cfg(test)]
    pub(super) fn at(self, round_trip: Span) -> Server {
        Server { min_rtt: Some(round_trip), ..self }
    }

    /// One that has brought so much, which has been read.
    #[cfg(test)]
    pub(super) fn having_brought(self, octets: u64) -> Server {
        Server { arrived: octets, taken: octets, edge: self.edge + octets, ..self }
    }

    /// Begins to connect to the first of the addresses that can be tried. `window`: the first window, in octets.
    pub(super) fn connect(now: Time, addresses: Addresses, window: u64) -> Result<State, OpenResult> {
        let attempt = addresses.connect(now, |socket| window::prepare(socket, window))?;
        let Attempt { socket, until, left } = attempt;
        Ok(State::Connecting { socket, until, left })
    }

    /// True if a server has not answered in time at the address that is being tried.
    pub(super) fn is_late(&self, now: Time) -> bool {
        matches!(&self.state, State::Connecting { until, .. } if now > *until)
    }

    /// True if it sends, or has just done so: then it has a share of the station's rate.
    pub(super) fn is_busy(&self, now: Time) -> bool {
        matches!(self.state, State::Up(_)) && now < self.busy_until
    }

    /// True if it was made a moment ago, has brought nothing yet and is about to: what it has been given is on its way, or soon will be.
    pub(super) fn is_coming(&self, now: Time) -> bool {
        self.arrived == 0 && self.expected_until.is_some_and(|until| now < until)
    }

    /// The least round trip to it; none before it is known.
    pub(super) fn round_trip(&self) -> Span {
        self.min_rtt.unwrap_or(Span::ZERO)
    }

    pub(super) fn pipe(&mut self) -> Option<&mut Pipe> {
        match &mut self.state {
            State::Up(pipe) => Some(pipe),
            _ => None,
        }
    }

    /// Octets that it may bring at once when it begins to send, if it does not: what it has been given, but no more than a sender
    /// begins with that has been quiet (RFC 5681, section 4.1), whatever it was given before.
    pub(super) fn may_begin_with(&self, now: Time) -> u64 {
        self.may_bring(now, INITIAL_WINDOW)
    }

    /// True if it does not send, and has been given more than ten segments when it did. Senders that pace (BBR) keep what they had, and
    /// bring all of it at once.
    pub(super) fn keeps_much(&self, now: Time) -> bool {
        !self.is_busy(now) && self.out().get() > INITIAL_WINDOW
    }

    /// Octets for which there is room when it begins to send, if it does not: what it has been given, but no more than its `part`, or ten
    /// segments. What comes beyond that the kernel drops, and takes the window back.
    pub(super) fn may_bring(&self, now: Time, part: u64) -> u64 {
        if self.is_busy(now) { 0 } else { self.out().get().min(part.max(INITIAL_WINDOW)) }
    }

    /// Octets beyond what has arrived that are under way, or may still be sent.
    pub(super) fn out(&self) -> Bytes {
        Bytes::new(self.edge.saturating_sub(self.arrived))
    }

    /// Octets that have come since it was made.
    pub(super) fn brought(&self) -> Bytes {
        Bytes::new(self.arrived)
    }

    /// By how much [`Server::out`] grows if `open` octets may come beyond what has arrived.
    pub(super) fn more(&self, open: Bytes) -> Bytes {
        Bytes::new((self.arrived + open.get()).saturating_sub(self.edge))
    }

    /// How many octets may come beyond what has arrived, where [`Server::out`] may grow by `more`: no more than were asked for, since what
    /// arrives moves the edge with it until this is said again.
    pub(super) fn opened(&self, more: Bytes) -> u64 {
        (self.out() + more).min(self.open).get()
    }

    /// Looks at what waits in the kernel and how far away the server is.
    pub(super) fn look(&mut self, now: Time) {
        if let State::Up(pipe) = &mut self.state {
            // Its server has heard of the window of one that is quiet.
            if pipe.has_parted() {
                self.edge = self.edge.min(self.arrived + self.window.open());
            }
            self.queued = pipe.queued();
            let (arrived, taken) = (pipe.taken() + self.queued, pipe.taken());
            if (arrived, taken) != (self.arrived, self.taken) {
                // Acknowledgements have left, or news of room.
                self.edge = self.edge.max(arrived + self.window.open());
                self.news |= arrived > self.arrived;
                (self.arrived, self.taken) = (arrived, taken);
            }
            // Data of a server that a small window holds back may never be seen to wait, nor may a server's first
            // segments.
            let (since, had, allowed) = self.before;
            let limited = arrived - had >= (allowed.min(INITIAL_WINDOW) / 2).max(1);
            if self.queued > 0 || limited {
                self.busy_until = now + (self.min_rtt.unwrap_or(Span::ZERO) * 2).max(LULL);
            }
            if limited || now.since(since) >= self.min_rtt.unwrap_or(Span::ZERO) {
                self.before = (now, arrived, self.edge - arrived);
            }
            if let Some(rtt) = window::min_rtt(pipe.socket()) {
                self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
            }
            let lull = (self.min_rtt.unwrap_or(Span::ZERO) * 2).max(LULL);
            self.expected_until.get_or_insert(now + lull);
        }
    }
}
