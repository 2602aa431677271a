//! The receiving end: what has come, and what its law tells of the path.
//! Source:     Zhang, Buck, Zappala 2011.
//! Deviations: 64 packets in a row with serial numbers below the highest show that the highest was forged: it is forgotten, and the highest of
//!             those counts. A network that reorders that deep makes the echo go back for a moment, which its sender passes over.
//!             A transfer that has come whole is reported at once, and again for each packet that comes after that.
//! Validity:   the window is what the application has room for; where it reads more slowly than packets come, what it takes for one is told in
//!             place of a shorter D.     Checked by: src/atp/tests.rs, tests/integration/hostile.rs

use super::Packet;
use super::reports::Reports;
use crate::ranges::Ranges;
use lasthop_laws::ReceiverLaw;
use lasthop_laws::atp::SHORTEST_EPOCH;
use lasthop_signals::{Feedback, PathDelay, Signal};
use lasthop_units::{Bytes, Span, Time};
use lasthop_wire::atp::{BLOCKS, Blocks, Header, Kind, NOT_TOLD};
use std::collections::BTreeMap;

/// Packets that a receiver has room for if nobody says otherwise.
const ROOM: u16 = 4096;
/// Packets in a row, all with lower serial numbers than the highest, after which that one is not believed: as many as no network reorders,
/// and a part of what a sender may have under way.
const BEHIND: u32 = 64;
/// A window that has opened by this part of all room is told at once.
const OPENED: u16 = 4;

/// The receiver of a connection.
#[derive(Clone)]
pub struct Receiver {
    connection: u32,
    law: Box<dyn ReceiverLaw>,
    /// Packets below this have come; beyond it, these.
    next: u64,
    beyond: Ranges,
    /// Payload of what came early, by packet.
    early: BTreeMap<u64, u16>,
    /// Payload in order.
    received: u64,
    /// The last packet, if it is known.
    last: Option<u64>,
    /// The highest serial number that has come; how many packets came since with lower ones, and the highest of those.
    serial: u32,
    behind: u32,
    highest_behind: u32,
    /// What is to be sent now: an answer to a probe, a report.
    answer: Option<PathDelay>,
    report: Option<PathDelay>,
    revisit: Option<Time>,
    /// When a probe was answered last, until what followed it has come.
    answered: Option<Time>,
    /// What was told last.
    told: PathDelay,
    /// Packets that there is room for, those among them that the application has not read, and the window that was told last.
    room: u16,
    unread: u16,
    window: u16,
    /// How long the application takes for a packet.
    drain: Span,
    /// When what has come is reported, if that is not with what the law tells.
    apart: Option<Reports>,
}

impl Receiver {
    /// The other end of a connection.
    pub fn new(connection: u32, law: Box<dyn ReceiverLaw>) -> Receiver {
        Receiver {
            connection,
            law,
            next: 0,
            beyond: Ranges::default(),
            early: BTreeMap::new(),
            received: 0,
            last: None,
            serial: 0,
            behind: 0,
            highest_behind: 0,
            answer: None,
            report: None,
            revisit: None,
            answered: None,
            told: PathDelay { average: Span::ZERO, epoch: Span::ZERO },
            room: ROOM,
            unread: 0,
            window: ROOM,
            drain: Span::ZERO,
            apart: None,
        }
    }

    /// The same that reports what has come apart from what its law tells of the path, if `apart`.
    pub fn with_reports_apart(self, apart: bool) -> Receiver {
        Receiver { apart: apart.then(Reports::default), ..self }
    }

    /// The same with room for so many packets, one at least.
    pub fn with_room(self, packets: u16) -> Receiver {
        let room = packets.max(1);
        Receiver { room, window: room, ..self }
    }

    /// The application has not read so many packets of those that have come in order, and takes `drain` for each: what is told is no
    /// shorter. To be followed by `poll_transmit`.
    pub fn set_unread(&mut self, packets: usize, drain: Span) {
        self.unread = u16::try_from(packets).unwrap_or(u16::MAX).min(self.room);
        self.drain = drain;
        let opened = (self.room - self.unread).saturating_sub(self.window);
        if opened >= (self.room / OPENED).max(1) && self.received > 0 {
            self.report = Some(self.told);
        }
    }

    /// Packets below this number have come.
    pub fn next(&self) -> u32 {
        self.next as u32
    }

    /// True if a packet of this number has not come yet and there is room for it.
    pub fn wants(&self, number: u32) -> bool {
        let ahead = number.wrapping_sub(self.next as u32);
        ahead < u32::from(self.room - self.unread) && !self.beyond.contains(self.next + u64::from(ahead))
    }

    /// The average delay of the slowest hop that was told last.
    pub fn told(&self) -> Span {
        self.told.average.max(self.drain)
    }

    /// Payload that has come in order.
    pub fn received(&self) -> Bytes {
        Bytes::new(self.received)
    }

    /// True once everything has come.
    pub fn is_done(&self) -> bool {
        self.last.is_some_and(|last| self.next > last)
    }

    /// When `on_timeout` is to be called if nothing comes before.
    pub fn next_timeout(&self) -> Option<Time> {
        [self.revisit, self.apart.and_then(|apart| apart.due())].into_iter().flatten().min()
    }

    /// Acts on what is due. To be followed by `poll_transmit`.
    pub fn on_timeout(&mut self, now: Time) {
        if self.revisit.is_some_and(|at| at <= now) {
            self.tell(now, &Signal::Wakeup);
        }
    }

    /// A packet of the sender has come.
    pub fn on_packet(&mut self, now: Time, packet: &Packet) {
        let Header { kind, connection, number, serial, delay, .. } = packet.header;
        if connection != self.connection {
            return;
        }
        match kind {
            Kind::Probe => {
                self.tell(now, &Signal::Stamp(delay));
                self.told = PathDelay { average: delay, epoch: self.epoch(now) };
                self.answer = Some(self.told);
                self.answered = Some(now);
            }
            Kind::Data | Kind::Last => {
                if let Some(answered) = self.answered.take() {
                    let round_trip = now.since(answered);
                    self.tell(now, &Signal::RoundTrip(round_trip));
                    if let Some(apart) = &mut self.apart {
                        apart.on_round_trip(round_trip);
                    }
                }
                self.tell(now, &Signal::Stamp(delay));
                self.on_serial(serial);
                let was_done = self.is_done();
                self.take(number, packet.payload, kind == Kind::Last);
                let holes = self.beyond.iter().count();
                if let Some(apart) = &mut self.apart {
                    apart.on_packet(now, holes);
                }
                if holes > 0 {
                    self.tell(now, &Signal::Holes(holes));
                }
                if was_done || self.is_done() {
                    self.report = Some(self.told);
                }
            }
            Kind::Answer | Kind::Ack => {}
        }
    }

    /// What leaves now; `None` if nothing.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        if let Some(told) = self.answer.take() {
            return Some(self.packet(Kind::Answer, self.slower(told), told.epoch));
        }
        if let Some(told) = self.report.take() {
            self.has_reported(now);
            return Some(self.packet(Kind::Ack, self.slower(told), told.epoch));
        }
        let apart = self.apart.filter(|apart| apart.due().is_some_and(|due| due <= now))?;
        self.has_reported(now);
        Some(self.packet(Kind::Ack, NOT_TOLD, apart.wait()))
    }

    /// What a packet takes the path, or the application if that takes longer.
    fn slower(&self, told: PathDelay) -> Span {
        told.average.max(self.drain).min(NOT_TOLD - Span::from_micros(1))
    }

    fn has_reported(&mut self, now: Time) {
        let holes = self.beyond.iter().count();
        if let Some(apart) = &mut self.apart {
            apart.on_report(now, holes);
        }
    }

    /// How long it is to the next report, as its law has it.
    fn epoch(&self, now: Time) -> Span {
        self.revisit.map_or(Span::ZERO, |at| at.since(now)).max(SHORTEST_EPOCH)
    }

    fn packet(&mut self, kind: Kind, average: Span, epoch: Span) -> Packet {
        self.window = self.room - self.unread;
        let blocks = self.beyond.iter().take(BLOCKS).map(|range| (range.start as u32, range.end as u32));
        let header = Header {
            kind,
            window: self.window,
            delay: Span::ZERO,
            average,
            epoch,
            connection: self.connection,
            number: self.next as u32,
            serial: self.serial,
            blocks: Blocks::of(blocks),
        };
        Packet { header, payload: 0 }
    }

    /// A packet has come. Its transmission has that number.
    fn on_serial(&mut self, serial: u32) {
        let ahead = |of: u32| serial.wrapping_sub(of) as i32;
        if ahead(self.serial) > 0 {
            (self.serial, self.behind) = (serial, 0);
        } else if ahead(self.serial) < 0 {
            if self.behind == 0 || ahead(self.highest_behind) > 0 {
                self.highest_behind = serial;
            }
            self.behind += 1;
            if self.behind >= BEHIND {
                (self.serial, self.behind) = (self.highest_behind, 0);
            }
        }
    }

    /// Takes in the packet of that number.
    fn take(&mut self, number: u32, payload: u16, last: bool) {
        let ahead = number.wrapping_sub(self.next as u32);
        if !self.wants(number) {
            // It has come before, or there is no room for it.
            return;
        }
        let number = self.next + u64::from(ahead);
        if last {
            self.last = Some(number);
        }
        self.beyond.insert(number..number + 1, |_| {});
        self.early.insert(number, payload);
        if let Some(whole) = self.beyond.take_front_at(self.next) {
            for number in whole.clone() {
                self.received += self.early.remove(&number).map_or(0, u64::from);
            }
            self.next = whole.end;
        }
    }

    /// Shows the law what happened and asks what follows.
    fn tell(&mut self, now: Time, signal: &Signal) {
        self.law.sense(now, signal);
        let decision = self.law.decide(now);
        self.revisit = decision.revisit;
        if let Some(Feedback::Path(told)) = decision.feedback {
            self.told = told;
            self.report = Some(told);
        }
    }
}
