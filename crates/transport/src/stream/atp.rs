//! A stream over ATP.
//! Source:     Zhang, Buck, Zappala 2011, flow control.
//! Equations:  drain' = 0.85 drain + 0.15 t, for each packet that was read;   told: max(D_avg, drain)
//! Symbols:    t -> `Drain::on_read`; drain -> `Drain::average`
//! Deviations: the source does not say how the time is measured. Here t is the time since the application read last, divided by the packets that it
//!             has read now; zero if it has read everything, for then it waits for the network and not the other way round. While something
//!             waits, the time since it read last counts, divided by what it read then.
//! Validity:   streams shorter than 2^64 octets.     Checked by: tests/integration/hostile.rs

use super::content::Content;
use super::{Figures, Party, StreamReceiver, StreamSender};
use crate::atp::{Packet, Receiver, Sender};
use lasthop_laws::{ReceiverLaw, SenderLaw};
use lasthop_units::{Bytes, Span, Time};
use lasthop_wire::atp::{Header, Kind};
use lasthop_wire::datagram::Datagram;
use std::collections::{BTreeMap, VecDeque};

/// Octets that a sender keeps: those in the network, and those that the application is ahead.
const SEND_BUFFER: usize = 16 << 20;
/// Packets that a receiver keeps, and by that the most that can be in the network: what a fast path carries in a second, the longest time
/// between two reports.
const ROOM: u16 = 16_384;
/// What may leave late leaves together with what is due: the sleep of an ordinary host takes so much longer than it should.
const LATENESS: Span = Span::from_millis(1);

/// The end that sends.
pub struct AtpSender {
    sender: Sender,
    content: Content,
    closed: bool,
    told: Option<Span>,
}

impl AtpSender {
    /// The sender of a connection with datagrams of at most `datagram` octets.
    pub fn new(now: Time, connection: u32, law: Box<dyn SenderLaw>, datagram: usize) -> AtpSender {
        let payload = datagram.saturating_sub(lasthop_wire::atp::HEADER_LEN);
        let payload = u16::try_from(payload).unwrap_or(u16::MAX);
        let sender = Sender::new(now, connection, law).with_payload(payload).with_lateness(LATENESS);
        AtpSender { sender, content: Content::default(), closed: false, told: None }
    }
}

impl Party for AtpSender {
    fn on_datagram(&mut self, now: Time, datagram: &Datagram<'_>) {
        let Datagram::Atp { header, .. } = datagram else { return };
        self.sender.on_packet(now, &Packet { header: *header, payload: 0 });
        self.content.forget(self.sender.settled());
        if matches!(header.kind, Kind::Ack | Kind::Answer) {
            self.told = Some(header.average);
        }
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> bool {
        let Some(packet) = self.sender.poll_transmit(now) else { return false };
        packet.header.encode(out);
        if let Some(at) = self.sender.position(packet.header.number).filter(|_| packet.payload > 0) {
            self.content.copy(at, usize::from(packet.payload), out);
        }
        true
    }

    fn next_timeout(&self) -> Option<Time> {
        self.sender.next_timeout()
    }

    fn on_timeout(&mut self, now: Time) {
        self.sender.on_timeout(now);
    }

    fn figures(&self) -> Figures {
        let (counters, gap, round_trip) = (self.sender.counters(), self.sender.gap(), self.sender.round_trip());
        Figures {
            delivered: self.sender.acked(),
            packets: counters.packets,
            resent: counters.resent,
            delay: self.told,
            rate: (gap != Span::MAX && !gap.is_zero()).then(|| 1.0 / gap.as_secs_f64()),
            round_trip: (!round_trip.is_zero()).then_some(round_trip),
        }
    }
}

impl StreamSender for AtpSender {
    fn write(&mut self, bytes: &[u8]) -> usize {
        let count = SEND_BUFFER.saturating_sub(self.content.len()).min(bytes.len());
        if self.closed || count == 0 {
            return 0;
        }
        self.content.push(&bytes[..count]);
        self.sender.write(Bytes::new(count as u64));
        count
    }

    fn close(&mut self) {
        self.closed = true;
        self.sender.close();
    }

    fn is_done(&self) -> bool {
        self.sender.is_done()
    }

    fn unsent(&self) -> u64 {
        self.sender.unsent()
    }

    fn contradicted(&self) -> Option<Time> {
        self.sender.contradicted()
    }

    fn set_own_delay(&mut self, delay: Span) {
        self.sender.set_own_delay(delay);
    }

    fn set_first_delay(&mut self, delay: Span) {
        self.sender.set_first_delay(delay);
    }
}

/// The end that receives.
pub struct AtpReceiver {
    receiver: Receiver,
    /// What has come before something that has not.
    early: BTreeMap<u32, Vec<u8>>,
    /// What has come in order.
    ready: VecDeque<Vec<u8>>,
    /// Octets of the first of these that were read.
    read: usize,
    drain: Drain,
    delay: Option<Span>,
    packets: u64,
}

/// How long the application takes for a packet.
#[derive(Clone, Copy, Debug, Default)]
struct Drain {
    average: Span,
    /// Since when something has waited for it, or when it read last, and how many packets that were.
    last: Time,
    packets: u64,
}

/// What is kept of the average at a packet.
const KEPT: f64 = 0.85;

impl Drain {
    /// It has read so many packets, and left some if `more`.
    fn on_read(&mut self, now: Time, packets: u64, more: bool) {
        if packets == 0 {
            return;
        }
        let took = if more { now.since(self.last) / packets } else { Span::ZERO };
        let kept = KEPT.powf(packets as f64);
        *self = Drain { average: self.average.scale(kept) + took.scale(1.0 - kept), last: now, packets };
    }

    /// How long a packet takes it now, if one waits.
    fn now(&self, now: Time, waits: bool) -> Span {
        let waited = if waits { now.since(self.last) / self.packets.max(1) } else { Span::ZERO };
        self.average.max(waited)
    }
}

impl AtpReceiver {
    /// The receiver of a connection, which reports what has come apart from what its law tells of the path if `apart`.
    pub fn new(connection: u32, law: Box<dyn ReceiverLaw>, apart: bool) -> AtpReceiver {
        AtpReceiver {
            receiver: Receiver::new(connection, law).with_room(ROOM).with_reports_apart(apart),
            early: BTreeMap::new(),
            ready: VecDeque::new(),
            read: 0,
            drain: Drain::default(),
            delay: None,
            packets: 0,
        }
    }

    /// How long the application takes for a packet, as of now.
    fn account(&mut self, now: Time) {
        self.receiver.set_unread(self.ready.len(), self.drain.now(now, !self.ready.is_empty()));
    }
}

impl Party for AtpReceiver {
    fn on_datagram(&mut self, now: Time, datagram: &Datagram<'_>) {
        let Datagram::Atp { header, payload } = datagram else { return };
        let Ok(len) = u16::try_from(payload.len()) else { return };
        self.account(now);
        let Header { kind, number, delay, .. } = *header;
        let is_data = matches!(kind, Kind::Data | Kind::Last);
        if is_data || kind == Kind::Probe {
            self.delay = Some(delay);
        }
        if is_data && self.receiver.wants(number) {
            self.early.insert(number, payload.to_vec());
        }
        let before = self.receiver.next();
        self.receiver.on_packet(now, &Packet { header: *header, payload: len });
        let mut next = before;
        while next != self.receiver.next() {
            let octets = self.early.remove(&next).unwrap_or_default();
            self.packets += 1;
            if !octets.is_empty() {
                if self.ready.is_empty() {
                    self.drain.last = now;
                }
                self.ready.push_back(octets);
            }
            next = next.wrapping_add(1);
        }
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> bool {
        let Some(packet) = self.receiver.poll_transmit(now) else { return false };
        packet.header.encode(out);
        true
    }

    fn next_timeout(&self) -> Option<Time> {
        self.receiver.next_timeout()
    }

    fn on_timeout(&mut self, now: Time) {
        self.account(now);
        self.receiver.on_timeout(now);
    }

    fn figures(&self) -> Figures {
        Figures {
            delivered: self.receiver.received(),
            packets: self.packets,
            delay: self.delay.map(|delay| delay.max(self.receiver.told())),
            ..Figures::default()
        }
    }
}

impl StreamReceiver for AtpReceiver {
    fn read(&mut self, now: Time, out: &mut [u8]) -> usize {
        let (mut filled, mut packets) = (0, 0);
        while let Some(octets) = self.ready.front() {
            let rest = octets.get(self.read..).unwrap_or_default();
            let count = rest.len().min(out.len() - filled);
            out[filled..filled + count].copy_from_slice(&rest[..count]);
            (filled, self.read) = (filled + count, self.read + count);
            if self.read < octets.len() {
                break;
            }
            (self.read, packets) = (0, packets + 1);
            self.ready.pop_front();
        }
        self.drain.on_read(now, packets, !self.ready.is_empty());
        self.account(now);
        filled
    }

    fn is_done(&self) -> bool {
        self.receiver.is_done() && self.ready.is_empty()
    }
}
