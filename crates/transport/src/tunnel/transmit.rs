//! Putting packets together.

use super::arrivals::AckRule;
use super::control::Control;
use super::endpoint::{Endpoint, MOST_SENT};
use super::frames::{Content, Item, Part};
use lasthop_units::{Bytes, Rate, Span, Time};
use lasthop_wire::tunnel::{self, Data, Frame, OpenResult, PathData};

/// Less room than this is not worth another part of a stream.
const LEAST_PART: usize = 64;

/// A packet that is to be sealed and sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The packet's number.
    pub number: u64,
    /// When it should leave, by the pacer; `None` for what is not paced.
    pub due: Option<Time>,
}

impl Endpoint {
    /// The next packet that may leave now: `out` is filled with it. `None` if nothing may.
    pub fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Departure> {
        let probing = self.probes > 0;
        let asks = self.asks_at().is_some_and(|at| at <= now);
        // A probe is a packet anyway: it takes data along where no other may.
        let with_probe = asks && self.is_path_unknown();
        let data = !self.ready.is_empty() && (probing || with_probe || self.may_send(now));
        let ack = self.arrivals.due(&self.ack_rule()).is_some_and(|due| due <= now);
        if !(data || ack || probing || asks || self.is_to_tell()) {
            return None;
        }
        out.clear();
        out.extend_from_slice(&tunnel::packet_header(now));
        let acknowledges = self.takes_ack(ack, data);
        if let Some(cell) = self.cell_frame(acknowledges || !data) {
            put(out, &cell);
        }
        if acknowledges {
            self.put_ack(now, out);
        }
        self.put_path(now, asks, out);
        let mut content = Content::default();
        self.put_items(out, &mut content);
        if data {
            self.put_data(now, out, &mut content);
        }
        if probing && content.is_empty() {
            content.more.push(Item::Ping);
            put(out, &Frame::Ping);
        }
        self.probes = self.probes.saturating_sub(1);
        let number = self.sent_packets.next_number();
        let len = Bytes::new(self.size.sealed_ip_len(out.len()) as u64);
        let due = self.account(now, len, asks, (!content.is_empty()).then_some(content));
        Some(Departure { number, due })
    }

    /// When the pacer lets the next packet leave; `None` if there is none, or if something else holds it back.
    pub fn next_departure(&self, now: Time) -> Option<Time> {
        if self.is_to_tell() || self.probes > 0 {
            return Some(now);
        }
        let held_back = self.ready.is_empty() || self.is_full(now) || self.rtt.backoff() > 0;
        (!held_back).then(|| self.pacer.due())
    }

    /// Fills `out` with a packet that asks whether the other end is where it is sent to: alone, so that whoever is there instead gets
    /// nothing else. It is not paced, and not waited for. Returns its number.
    pub fn challenge_path(&mut self, now: Time, data: PathData, out: &mut Vec<u8>) -> u64 {
        out.clear();
        out.extend_from_slice(&tunnel::packet_header(now));
        put(out, &Frame::PathChallenge(data));
        let number = self.sent_packets.next_number();
        let len = Bytes::new(self.size.sealed_ip_len(out.len()) as u64);
        self.sent_packets.on_sent(now, len, None);
        number
    }

    /// True if there is something to send that does not wait for the pacer.
    fn is_to_tell(&self) -> bool {
        let report = matches!(&self.control, Control::Path(path) if path.has_report());
        !(self.items.is_empty() && self.feedback.is_empty() && self.path_answers.is_empty()) || self.close || report
    }

    fn is_path_unknown(&self) -> bool {
        matches!(&self.control, Control::Path(path) if path.is_unknown())
    }

    /// When what has come is acknowledged.
    pub(super) fn ack_rule(&self) -> AckRule {
        match &self.control {
            Control::Path(path) => path.ack_rule(),
            Control::Set { .. } | Control::Law(_) => self.config.acks,
        }
    }

    /// Whether the next packet tells what has come. `due`: it must; `data`: it has better use for its room.
    fn takes_ack(&self, due: bool, data: bool) -> bool {
        match &self.control {
            // An end that tells of the path tells what has come of it, again if need be.
            Control::Path(path) => due || path.has_report() || self.arrivals.is_owed() && !data,
            Control::Set { .. } | Control::Law(_) => self.arrivals.is_owed(),
        }
    }

    fn may_send(&mut self, now: Time) -> bool {
        // Nothing has been heard since the last probe: there may be nobody.
        if self.rtt.backoff() > 0 {
            return false;
        }
        if self.is_full(now) {
            if let Control::Law(law) = &mut self.control {
                law.on_limited();
            }
            return false;
        }
        // An end that had nothing to send when its turn came has no turn to make up for.
        if self.starved.take().is_some() {
            if let Control::Law(law) = &mut self.control
                && self.pacer.due() < now
            {
                law.on_starved(self.sent_packets.in_flight());
            }
            self.pacer.idle(now);
        }
        self.pacer.due() <= now + self.config.horizon
    }

    /// True if no more may be in the network.
    fn is_full(&self, now: Time) -> bool {
        // However short they are, packets take memory until they are acknowledged.
        let many = self.sent_packets.len() >= MOST_SENT;
        match &self.control {
            Control::Set { .. } => many,
            Control::Law(law) => many || self.sent_packets.in_flight() >= law.window(now),
            Control::Path(path) => many || path.is_unknown(),
        }
    }

    pub(super) fn rate(&self, now: Time) -> Rate {
        match &self.control {
            Control::Set { rate, .. } => *rate,
            Control::Law(law) => law.rate(now),
            Control::Path(path) => path.rate(),
        }
    }

    /// Enters the packet into the books; returns when it was due if it asked for an acknowledgement.
    fn account(&mut self, now: Time, len: Bytes, asks: bool, content: Option<Content>) -> Option<Time> {
        let has_data = content.as_ref().is_some_and(|content| content.data.is_some());
        let due = self.pace(now, len, asks, content.as_ref());
        self.starved = self.ready.is_empty().then_some(now);
        let waits = content.is_some();
        self.sent_packets.on_sent(now, len, content);
        if waits {
            let (in_flight, mut snapshot) = (self.sent_packets.in_flight(), None);
            self.law_senses(now, |law| snapshot = Some(law.on_sent(now, len, in_flight)));
            snapshot.into_iter().for_each(|snapshot| self.sent_packets.keep(snapshot));
        }
        has_data.then_some(due)
    }

    fn put_ack(&mut self, now: Time, out: &mut Vec<u8>) {
        if let Some(ack) = self.arrivals.acknowledge(now) {
            put(out, &ack);
        }
    }

    fn put_items(&mut self, out: &mut Vec<u8>, content: &mut Content) {
        self.path_answers.drain(..).for_each(|data| put(out, &Frame::PathAnswer(data)));
        while let Some(feedback) = self.feedback.pop_front() {
            put(out, &Frame::Feedback(feedback));
            if out.len() + 1 + tunnel::FEEDBACK_LEN > self.size.packet() {
                break;
            }
        }
        // An opening is the longest: a name of 255 octets.
        while out.len() + 300 <= self.size.packet()
            && let Some(item) = self.items.pop_front()
        {
            if self.put_item(out, &item) {
                content.more.push(item);
            }
        }
        if std::mem::take(&mut self.close) {
            put(out, &Frame::Close);
        }
    }

    /// False if the item has become pointless.
    fn put_item(&mut self, out: &mut Vec<u8>, item: &Item) -> bool {
        match item {
            Item::Ping => put(out, &Frame::Ping),
            Item::Reset { stream, sent } => put(out, &Frame::Reset { stream: *stream, sent: *sent }),
            Item::Budget => put(out, &Frame::Budget { limit: self.credit.open() }),
            Item::Open(number) => {
                let Some(stream) = self.streams.get(number) else { return false };
                let Some((host, port)) = &stream.target else { return false };
                put(out, &Frame::Open { stream: *number, host, port: *port });
            }
            Item::Opened(number) => {
                let Some(stream) = self.streams.get(number) else { return false };
                put(out, &Frame::Opened { stream: *number, result: stream.result.unwrap_or(OpenResult::Failed) });
            }
            Item::Window(number) => {
                let window = self.credit.share(self.config.window);
                let Some(stream) = self.streams.get_mut(number) else { return false };
                put(out, &Frame::Window { stream: *number, limit: stream.recv.open_window(window) });
            }
            Item::Data(_) => return false,
        }
        true
    }

    fn put_data(&mut self, now: Time, out: &mut Vec<u8>, content: &mut Content) {
        let header = tunnel::data_header();
        let mut left = self.ready.len();
        while left > 0
            && out.len() + header + LEAST_PART <= self.size.packet()
            && let Some(number) = self.ready.pop_front()
        {
            left -= 1;
            let Some(stream) = self.streams.get_mut(&number) else { continue };
            stream.queued = false;
            let most = self.size.packet() - out.len() - header;
            let unsent = stream.send.unsent();
            if let Some((range, end)) = stream.send.take(most as u64, self.credit.room()) {
                let fresh = unsent - stream.send.unsent();
                self.unsent = self.unsent.saturating_sub(Bytes::new(fresh));
                self.credit.on_sent(fresh);
                let age = if range.is_empty() { Span::ZERO } else { stream.send.age(now, range.start) };
                let data = Data { stream: number, offset: range.start, age, end, bytes: &[] };
                let len = u16::try_from(range.end - range.start).expect("shorter than a packet");
                tunnel::put_data_header(out, &data, len);
                stream.send.copy(&range, out);
                content.add_data(Part { stream: number, range, end });
            }
            self.enqueue(number);
        }
        if self.credit.room() == 0 {
            self.block();
        }
    }
}

/// All frames that are made here fit their fields.
fn put(out: &mut Vec<u8>, frame: &Frame<'_>) {
    frame.encode(out).expect("made to fit");
}
