//! The sending end: probes, pacing, and what is sent again.
//! Source:     Zhang, Buck, Zappala 2011 and ATP (Sundaresan et al. 2005), the latter not checked against the original.
//! Deviations: a packet is lost when one that left after it has come, by the serial number that the receiver echoes: a network that reorders
//!             would have packets sent twice. The last packets, after which none comes, are sent again when two reports in a row show nothing new
//!             and they left an epoch and a round trip ago.
//! Validity:   fewer than 2^31 packets in flight.     Checked by: src/atp/tests.rs

mod report;

use super::{PAYLOAD, Packet};
use lasthop_laws::SenderLaw;
use lasthop_signals::Signal;
use lasthop_units::{Bytes, Span, Time};
use lasthop_wire::atp::{Blocks, Header, Kind};
use std::collections::VecDeque;

/// Between two probes that nobody answers, before an epoch is known.
const PROBE_AGAIN: Span = Span::from_secs(1);
/// Most packets that wait for their acknowledgement: what the receiver's window cannot exceed.
const MOST: u32 = u16::MAX as u32;

/// What a sender has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets with payload, those sent again included.
    pub packets: u64,
    /// Those among them that were sent again.
    pub resent: u64,
    /// Probes.
    pub probes: u64,
    /// Reports of the receiver that came.
    pub reports: u64,
}

/// One packet that is not acknowledged.
#[derive(Clone, Copy, Debug)]
struct Flying {
    /// Where its payload begins in the stream.
    from: u64,
    payload: u16,
    /// Of its last transmission; `None` while it waits for one.
    serial: Option<u32>,
    acked: bool,
    last: bool,
}

/// The sender of a connection.
#[derive(Clone)]
pub struct Sender {
    connection: u32,
    law: Box<dyn SenderLaw>,
    /// Octets written and not yet in a packet; `None` for no end.
    unsent: Option<u64>,
    closed: bool,
    /// The last packet has been made.
    finished: bool,
    /// Packets from `una` on.
    flying: VecDeque<Flying>,
    una: u32,
    /// Places in `flying` that wait to be sent again are below this.
    lost: usize,
    serial: u32,
    /// Packets from `una` on that the receiver takes.
    window: u32,
    /// When the next packet may leave.
    departs: Time,
    gap: Span,
    /// When the next probe leaves; `None` while the path is known.
    probe: Option<Time>,
    epoch: Span,
    /// When the law wants to be woken.
    revisit: Option<Time>,
    /// The serial number that was echoed last.
    echoed: u32,
    /// Since when answers ask for packets that were acknowledged.
    contradicted: Option<Time>,
    /// When a packet or probe left last, and how long the last probe's answer took.
    left: Time,
    round_trip: Span,
    counters: Counters,
    acked: u64,
    /// Octets of the stream that are in packets.
    made: u64,
    /// Payload of a full packet.
    full: u16,
    /// D of the sender's own interface, if it is known.
    own_delay: Span,
    /// The first answer tells at least this D.
    first_delay: Span,
    /// Packets that were due no longer ago than this leave together.
    lateness: Span,
}

impl Sender {
    /// A connection that has a number of its own, and a law that sets gaps between packets.
    pub fn new(now: Time, connection: u32, law: Box<dyn SenderLaw>) -> Sender {
        Sender {
            connection,
            law,
            unsent: Some(0),
            closed: false,
            finished: false,
            flying: VecDeque::new(),
            una: 0,
            lost: 0,
            serial: 0,
            window: MOST,
            departs: now,
            gap: Span::MAX,
            probe: Some(now),
            epoch: PROBE_AGAIN,
            revisit: None,
            echoed: 0,
            contradicted: None,
            left: now,
            round_trip: Span::ZERO,
            counters: Counters::default(),
            acked: 0,
            made: 0,
            full: PAYLOAD,
            own_delay: Span::ZERO,
            first_delay: Span::ZERO,
            lateness: Span::ZERO,
        }
    }

    /// The same with full packets that have `payload` octets, one at least, in place of [`PAYLOAD`].
    pub fn with_payload(self, payload: u16) -> Sender {
        Sender { full: payload.max(1), ..self }
    }

    /// The same for a host that wakes late: what could have left up to `lateness` ago leaves now, beside what is due. At most so much time's
    /// packets leave at once.
    pub fn with_lateness(self, lateness: Span) -> Sender {
        Sender { lateness, ..self }
    }

    /// D of the sender's own interface from now on: packets leave with it, no faster than it allows, and no report of a lower one is
    /// believed. Zero: not known.
    pub fn set_own_delay(&mut self, delay: Span) {
        self.own_delay = delay;
    }

    /// D that packets met before the first probe: those that open a connection. A node that was idle then is not any more, and they are short.
    pub fn set_first_delay(&mut self, delay: Span) {
        self.first_delay = delay;
    }

    /// Where the payload of that packet begins in the stream, in octets; `None` unless it waits for its acknowledgement.
    pub fn position(&self, number: u32) -> Option<u64> {
        self.flying.get(number.wrapping_sub(self.una) as usize).map(|flying| flying.from)
    }

    /// Octets at the beginning of the stream that will not be sent again.
    pub fn settled(&self) -> u64 {
        self.flying.front().map_or(self.made, |flying| flying.from)
    }

    /// How long the last probe's answer took; zero before the first.
    pub fn round_trip(&self) -> Span {
        self.round_trip
    }

    /// Octets that were written and are not yet in a packet; the most there are for a stream without end.
    pub fn unsent(&self) -> u64 {
        self.unsent.unwrap_or(u64::MAX)
    }

    /// Since when the receiver has answered probes by asking for packets that were acknowledged, and nothing else has come: an
    /// acknowledgement was forged, and the stream cannot be completed. `None` unless it is so.
    pub fn contradicted(&self) -> Option<Time> {
        self.contradicted.filter(|_| self.probe.is_some() && self.has_work())
    }

    /// The application writes `len` octets. Ignored after `close`.
    pub fn write(&mut self, len: Bytes) {
        if !self.closed {
            self.unsent = self.unsent.map(|unsent| unsent.saturating_add(len.get()));
        }
    }

    /// The application writes without end. Ignored after `close`.
    pub fn write_forever(&mut self) {
        if !self.closed {
            self.unsent = None;
        }
    }

    /// The application writes no more. An endless stream ends where it has got to.
    pub fn close(&mut self) {
        self.unsent.get_or_insert(0);
        self.closed = true;
    }

    /// The application ends: what is not yet in a packet is not sent.
    pub fn stop(&mut self) {
        self.unsent = Some(0);
        self.closed = true;
    }

    /// True once everything that was written before `close` is acknowledged.
    pub fn is_done(&self) -> bool {
        self.finished && self.flying.is_empty()
    }

    /// What has been done so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Payload that is acknowledged.
    pub fn acked(&self) -> Bytes {
        Bytes::new(self.acked)
    }

    /// Time between two packets now; the longest while nothing may be sent.
    pub fn gap(&self) -> Span {
        self.gap
    }

    /// When `on_timeout` is to be called if nothing comes before. To be asked again after every call.
    pub fn next_timeout(&self) -> Option<Time> {
        let next = [self.probe.filter(|_| self.has_work()), self.revisit, self.next_departure()];
        next.into_iter().flatten().min()
    }

    /// Acts on what is due. To be followed by `poll_transmit`.
    pub fn on_timeout(&mut self, now: Time) {
        if self.revisit.is_some_and(|at| at <= now) {
            if self.is_done() {
                self.revisit = None;
                return;
            }
            self.tell(now, &Signal::Wakeup);
        }
    }

    /// What may leave now; `None` if nothing.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        if self.probe.is_some_and(|at| at <= now) && self.has_work() {
            self.probe = Some(now + self.epoch);
            self.left = now;
            self.counters.probes += 1;
            return Some(self.packet(Kind::Probe, self.una, self.serial, 0));
        }
        if self.next_departure().is_none_or(|at| at > now) {
            return None;
        }
        let place = match self.next_lost() {
            Some(place) => place,
            None => self.make()?,
        };
        let serial = self.serial;
        self.serial = self.serial.wrapping_add(1);
        self.counters.packets += 1;
        self.left = now;
        let flying = &mut self.flying[place];
        flying.serial = Some(serial);
        let (payload, kind) = (flying.payload, if flying.last { Kind::Last } else { Kind::Data });
        // A sender that was silent does not catch up.
        self.departs = self.departs.max(now.saturating_sub(self.lateness)) + self.gap.max(self.own_delay);
        Some(self.packet(kind, self.una.wrapping_add(place as u32), serial, payload))
    }

    fn packet(&self, kind: Kind, number: u32, serial: u32, payload: u16) -> Packet {
        let header = Header {
            kind,
            window: 0,
            delay: self.own_delay,
            average: Span::ZERO,
            epoch: Span::ZERO,
            connection: self.connection,
            number,
            serial,
            blocks: Blocks::default(),
        };
        Packet { header, payload }
    }

    /// True while there is something that the receiver has not acknowledged, or that it has not got.
    fn has_work(&self) -> bool {
        !self.flying.is_empty() || self.can_make()
    }

    /// True if another packet can be made of what was written.
    fn can_make(&self) -> bool {
        !self.finished && (self.unsent.is_none_or(|unsent| unsent > 0) || self.closed)
    }

    fn next_departure(&self) -> Option<Time> {
        let room = (self.flying.len() as u32) < self.window;
        let waits = self.lost > 0 || room && self.can_make();
        (waits && self.gap != Span::MAX).then_some(self.departs)
    }

    /// The first packet that is to be sent again.
    fn next_lost(&mut self) -> Option<usize> {
        let found = (0..self.lost).find(|place| {
            let flying = &self.flying[*place];
            !flying.acked && flying.serial.is_none()
        });
        match found {
            Some(_) => self.counters.resent += 1,
            None => self.lost = 0,
        }
        found
    }

    /// Makes a packet of what was written.
    fn make(&mut self) -> Option<usize> {
        if (self.flying.len() as u32) >= self.window || !self.can_make() {
            return None;
        }
        let payload = self.unsent.map_or(self.full, |unsent| unsent.min(u64::from(self.full)) as u16);
        self.unsent = self.unsent.map(|unsent| unsent - u64::from(payload));
        let last = self.closed && self.unsent == Some(0);
        self.finished |= last;
        self.flying.push_back(Flying { from: self.made, payload, serial: None, acked: false, last });
        self.made += u64::from(payload);
        Some(self.flying.len() - 1)
    }

    /// Shows the law what happened and asks what follows.
    fn tell(&mut self, now: Time, signal: &Signal) {
        self.law.sense(now, signal);
        let decision = self.law.decide(now);
        (self.gap, self.revisit) = (decision.gap.unwrap_or(Span::ZERO), decision.revisit);
        match (self.gap == Span::MAX, self.probe) {
            (true, None) => self.probe = Some(now),
            (false, _) => self.probe = None,
            (true, Some(_)) => {}
        }
        // What a slower rate would have made wait need not wait any longer.
        if self.gap != Span::MAX {
            self.departs = self.departs.min(now + self.gap);
        }
    }
}
