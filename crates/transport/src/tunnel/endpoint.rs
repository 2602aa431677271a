//! One end of a session.

use super::arrivals::{AckRule, Arrivals};
use super::cell::Cells;
use super::clock::{Clock, ClockOffset};
use super::control::{Control, LawControl, News, RoundTrips};
use super::credit::{Credit, Overdrawn};
use super::frames::{Content, Item};
use super::pacer::Pacer;
use super::recv_half::Refused;
use super::sent_packets::SentPackets;
use super::stream::Stream;
use crate::ranges::Ranges;
use crate::rtt::RttEstimator;
use lasthop_laws::SenderLaw;
use lasthop_signals::{CellCapacity, Signal, StationFeedback};
use lasthop_units::{Bytes, Rate, Span, Time};
use lasthop_wire::tunnel::{
    AckRange, Data, Frame, OpenResult, PACKET_HEADER, PacketSize, PathData, data_header, open_packet,
};
use std::collections::{BTreeMap, VecDeque};

/// What the two ends of a session do differently, and limits.
#[derive(Clone, Debug)]
pub struct Config {
    /// Number of the first stream that this end opens: 1 at the station, 2 at the proxy.
    pub first_stream: u32,
    /// Octets of a stream that the other end may send ahead of the reader.
    pub window: u64,
    /// Octets of all streams together that the other end may send ahead of the readers. What it can make this end hold is
    /// bounded by it, whatever it sends: by 9/4 of it (data, what tells where they lie, and buffers grown by doubling), 4 MiB
    /// of buffers that have become too large, and 4 KiB a stream.
    pub budget: u64,
    /// Streams that the other end may have open at once.
    pub max_streams: usize,
    /// When this end acknowledges what has arrived.
    pub acks: AckRule,
    /// When the other end does: an end that has heard nothing for less need not ask.
    pub peer_acks: AckRule,
    /// Packets due within this time leave with the one that is due: what a system call saves against evenness.
    pub horizon: Span,
}

impl Config {
    /// The station's end.
    pub fn station() -> Config {
        Config {
            first_stream: 1,
            window: 8 << 20,
            budget: 32 << 20,
            max_streams: 4096,
            acks: AckRule::RARE,
            peer_acks: AckRule::PROMPT,
            horizon: Span::from_micros(8),
        }
    }

    /// The proxy's end.
    pub fn proxy() -> Config {
        Config {
            first_stream: 2,
            window: 1 << 20,
            budget: 4 << 20,
            acks: AckRule::PROMPT,
            peer_acks: AckRule::RARE,
            ..Config::station()
        }
    }

    /// An end of the tunnel between two gateways of a mesh, the one that calls or the other: what both may hold is alike. Acknowledgements are
    /// by [`Endpoint::with_path_pace`].
    pub fn gateway(calls: bool) -> Config {
        Config {
            first_stream: if calls { 1 } else { 2 },
            window: 4 << 20,
            budget: 16 << 20,
            horizon: Span::from_micros(50),
            ..Config::station()
        }
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The other end wants a stream to a host. To be answered with [`Endpoint::opened`].
    Open {
        /// Its number.
        stream: u32,
        /// Name or address of the host.
        host: String,
        /// TCP port.
        port: u16,
    },
    /// The other end has answered.
    Opened {
        /// Which stream.
        stream: u32,
        /// How it went.
        result: OpenResult,
    },
    /// There is something to read, or the stream has ended.
    Readable(u32),
    /// The other end has given the stream up.
    Reset(u32),
    /// A station's account of a slot.
    Feedback(StationFeedback),
    /// The other end tells of its cell, for the first time. Later news go to the law of [`Endpoint::follow_cell`] alone.
    Cell(CellCapacity),
    /// The other end has closed the session.
    Closed,
}

/// The other end, which holds the keys, does what it must not. The session cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// A packet that cannot be understood.
    #[error("a packet that cannot be understood: {0}")]
    Packet(#[from] lasthop_wire::Error),
    /// Data beyond the window or behind the end of a stream, an end before what had come, or a second one.
    #[error("stream {0}: data beyond its window or its end, or an end that cannot be")]
    Data(u32),
    /// A stream with a number that is not the other end's to give.
    #[error("stream {0}: not a number that the other end may give")]
    Number(u32),
    /// More data than all streams together may have under way.
    #[error("more data than all streams together may send")]
    Budget,
    /// More streams are opened, or given up, than anybody needs.
    #[error("too many streams were opened and given up, or with too many numbers left out")]
    Streams,
    /// Hardly anything is acknowledged of what it makes this end send.
    #[error("too many packets that were sent have no acknowledgement")]
    Unanswered,
    /// One packet acknowledges and acknowledges.
    #[error("more than one acknowledgement in a packet")]
    Acks,
}

/// Octets of streams that are held here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Never sent.
    pub unsent: Bytes,
    /// Sent, and perhaps to be sent again.
    pub unacknowledged: Bytes,
}

impl Backlog {
    /// Both.
    pub fn total(self) -> Bytes {
        self.unsent + self.unacknowledged
    }
}

/// A delay, by the difference of the receiver's and the sender's clock, of which what is known of their offset has been taken
/// away ([`Endpoint::clock_offset`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delay {
    /// A packet's, from being sealed to being opened.
    Hop(Span),
    /// A piece of data's, from the moment it came into being to being handed on.
    Data(Span),
}

/// One end of a session.
#[derive(Clone)]
pub struct Endpoint {
    pub(super) config: Config,
    /// Of packets that are sent.
    pub(super) size: PacketSize,
    pub(super) streams: BTreeMap<u32, Stream>,
    /// Numbers, halved, of streams that are over.
    pub(super) over: [Ranges; 2],
    /// Streams that are over here, of which the other end has still to say how much it had sent; and how much that was at least.
    pub(super) closing: BTreeMap<u32, u64>,
    /// Resets that have not been acknowledged.
    pub(super) resets: usize,
    pub(super) credit: Credit,
    /// Streams that could send if all together might send more, in turn.
    pub(super) blocked: VecDeque<u32>,
    /// Memory of streams that holds nothing.
    pub(super) spare: u64,
    pub(super) next_stream: u32,
    pub(super) control: Control,
    pub(super) pacer: Pacer,
    pub(super) sent_packets: SentPackets,
    pub(super) arrivals: Arrivals,
    pub(super) rtt: RttEstimator,
    clock: Clock,
    /// Streams with something to send, in turn.
    pub(super) ready: VecDeque<u32>,
    /// Things to send that do not wait for the pacer.
    pub(super) items: VecDeque<Item>,
    /// Accounts to send, once.
    pub(super) feedback: VecDeque<StationFeedback>,
    pub(super) cells: Cells,
    /// Answers to path challenges, to send once: whoever hears none asks again.
    pub(super) path_answers: VecDeque<PathData>,
    /// The last path answer that has come.
    path_answered: Option<PathData>,
    pub(super) close: bool,
    /// Probes that may leave whatever else holds packets back.
    pub(super) probes: u32,
    /// When nothing was left to send after the last packet; `None` if there was.
    pub(super) starved: Option<Time>,
    pub(super) events: VecDeque<Event>,
    delays: Vec<Delay>,
    pub(super) held: Bytes,
    pub(super) unsent: Bytes,
    pub(super) lost_packets: u64,
    /// What the other end has done that it must not.
    violation: Option<Violation>,
}

impl Endpoint {
    /// An end that sends nothing until it is told how fast.
    pub fn new(config: Config) -> Endpoint {
        Endpoint {
            next_stream: config.first_stream,
            closing: BTreeMap::new(),
            resets: 0,
            credit: Credit::new(config.budget),
            blocked: VecDeque::new(),
            spare: 0,
            config,
            size: PacketSize::default(),
            streams: BTreeMap::new(),
            over: Default::default(),
            control: Control::Set { rate: Rate::MAX, budget: Bytes::MAX },
            pacer: Pacer::default(),
            sent_packets: SentPackets::default(),
            arrivals: Arrivals::default(),
            rtt: RttEstimator::new(Span::from_millis(20), Span::from_secs(3), Span::from_millis(300)),
            clock: Clock::default(),
            ready: VecDeque::new(),
            items: VecDeque::from([Item::Budget]),
            feedback: VecDeque::new(),
            cells: Cells::default(),
            path_answers: VecDeque::new(),
            path_answered: None,
            close: false,
            probes: 0,
            starved: Some(Time::ZERO),
            events: VecDeque::new(),
            delays: Vec::new(),
            held: Bytes::ZERO,
            unsent: Bytes::ZERO,
            lost_packets: 0,
            violation: None,
        }
    }

    /// Lets a sender law decide.
    pub fn with_law(mut self, law: Box<dyn SenderLaw>) -> Endpoint {
        self.control = Control::Law(LawControl::new(law));
        self
    }

    /// Sets how fast IP packets leave, and how many octets of streams may be held here, sent or not.
    pub fn set_pacing(&mut self, now: Time, rate: Rate, budget: Bytes) {
        self.pacer.change(now, self.rate(now), rate);
        self.control = Control::Set { rate, budget };
    }

    /// Sets how long packets may be from now on. What was sent and lost is sent again in packets of the new length.
    pub fn set_packet_size(&mut self, size: PacketSize) {
        self.size = size;
    }

    /// Opens a stream to a host.
    pub fn open(&mut self, host: &str, port: u16) -> u32 {
        let number = self.next_stream;
        self.next_stream += 2;
        let stream = Stream { target: Some((host.to_owned(), port)), known: true, ..Stream::new() };
        self.streams.insert(number, stream);
        self.items.extend([Item::Open(number), Item::Window(number)]);
        number
    }

    /// Answers the other end's opening. If it did not go well, the stream is over.
    pub fn opened(&mut self, number: u32, result: OpenResult) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        stream.result = Some(result);
        self.items.extend([Item::Opened(number), Item::Window(number)]);
        if result != OpenResult::Connected {
            stream.send.finish();
        }
    }

    /// Octets that [`Endpoint::write`] should be given now: as much as can soon be sent, and no more. What other streams have written
    /// counts, since it is sent first or in turn: whoever has many to read from reads from them in turn.
    pub fn wants(&self, now: Time, number: u32) -> usize {
        let Some(stream) = self.streams.get(&number) else { return 0 };
        let wanted = stream.send.room().min(self.wants_of_all(now));
        // Less would leave in short packets, and the hop's cost is by the packet.
        if wanted < self.full() { 0 } else { usize::try_from(wanted).unwrap_or(usize::MAX) }
    }

    /// Octets that all streams together should be given now.
    pub fn wants_in_all(&self, now: Time) -> usize {
        let wanted = self.wants_of_all(now);
        if wanted < self.full() { 0 } else { usize::try_from(wanted).unwrap_or(usize::MAX) }
    }

    fn wants_of_all(&self, now: Time) -> u64 {
        let least_ahead = LEAST_AHEAD * self.full();
        let (rate, budget) = match &self.control {
            Control::Set { rate, budget } => (*rate, budget.saturating_sub(self.held)),
            Control::Law(law) => (law.rate(now), law.window(now).saturating_sub(self.held)),
            Control::Path(path) => (path.rate(), Bytes::MAX),
        };
        // No stream is given more than it may send, so that all that is unsent here can leave.
        let ahead = rate.bytes_in(READ_AHEAD).get().clamp(least_ahead, MOST_AHEAD).saturating_sub(self.unsent.get());
        let least = Bytes::new(least_ahead).saturating_sub(self.held);
        let room = self.credit.room().saturating_sub(self.unsent.get());
        room.min(ahead).min(budget.max(least).get())
    }

    /// Payload of a full packet with one part of a stream and nothing else.
    fn full(&self) -> u64 {
        (self.size.packet() - PACKET_HEADER - data_header()) as u64
    }

    /// Adds data to a stream, which came into being at `origin` by this end's clock.
    pub fn write(&mut self, number: u32, bytes: &[u8], origin: Time) {
        if let Some(stream) = self.streams.get_mut(&number)
            && !bytes.is_empty()
        {
            stream.send.write(bytes, origin);
            let len = Bytes::new(bytes.len() as u64);
            self.held += len;
            self.unsent += len;
            self.enqueue(number);
        }
    }

    /// What has been written since the last packet left at `now` was to be had at that moment, and was only not read before the
    /// packet: the turn of those that follow is not lost.
    pub fn fed(&mut self, now: Time) {
        if self.starved == Some(now) && !self.ready.is_empty() {
            self.starved = None;
        }
    }

    /// Nothing more will be written.
    pub fn finish(&mut self, number: u32) {
        if let Some(stream) = self.streams.get_mut(&number) {
            stream.send.finish();
            self.enqueue(number);
        }
    }

    /// Gives a stream up in both directions.
    pub fn reset(&mut self, number: u32) {
        if let Some(stream) = self.streams.get(&number) {
            let sent = stream.send.sent();
            self.forget(number);
            self.push_reset(number, sent);
        }
    }

    /// What can be read of a stream now; more may follow once this has been consumed.
    pub fn readable(&self, number: u32) -> &[u8] {
        self.streams.get(&number).map_or(&[], |stream| stream.recv.readable())
    }

    /// Forgets octets that have been handed on.
    pub fn consume(&mut self, now: Time, number: u32, count: usize) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        stream.told = false;
        let before = (stream.recv.unread(), stream.recv.spare());
        stream.recv.consume(self.clock.there(now), count, |age| self.delays.push(Delay::Data(age)));
        self.spare = self.spare - before.1 + stream.recv.spare();
        if self.spare > MOST_SPARE {
            self.spare -= stream.recv.spare();
            stream.recv.shrink();
            self.spare += stream.recv.spare();
        }
        self.credit.on_read(before.0 - stream.recv.unread());
        let window = self.credit.share(self.config.window);
        if stream.recv.window_due(window) && !self.items.contains(&Item::Window(number)) {
            self.items.push_back(Item::Window(number));
        }
        self.tell_budget();
    }

    /// True if the stream has ended and everything has been read: the reader takes note of it by asking.
    pub fn take_end(&mut self, number: u32) -> bool {
        let Some(stream) = self.streams.get_mut(&number) else { return false };
        stream.recv.end_read();
        let ended = stream.recv.is_done();
        self.tidy(number);
        ended
    }

    /// True if the stream is still there.
    pub fn has(&self, number: u32) -> bool {
        self.streams.contains_key(&number)
    }

    /// Sends an account of a slot with the next packet. It is not repeated if it is lost.
    pub fn tell(&mut self, feedback: StationFeedback) {
        self.feedback.push_back(feedback);
    }

    /// Asks the other end for a sign of life.
    pub fn ping(&mut self) {
        if !self.items.contains(&Item::Ping) {
            self.items.push_back(Item::Ping);
        }
    }

    /// The path answer that the last packet held, if it held one.
    pub fn take_path_answer(&mut self) -> Option<PathData> {
        self.path_answered.take()
    }

    /// Tells the other end that the session ends.
    pub fn close(&mut self) {
        self.close = true;
    }

    /// A packet has arrived for the first time, with this number (of those that [`lasthop_wire::tunnel::Datagram::parse`] lets pass).
    /// Returns when it left, by the other end's clock.
    ///
    /// # Errors
    /// [`Violation`]: the session cannot go on. Whatever comes after it is refused for the same reason.
    pub fn on_packet(&mut self, now: Time, number: u64, packet: &[u8]) -> Result<Time, Violation> {
        self.on_stamped_packet(now, number, packet, Span::ZERO)
    }

    /// The same of a packet that has brought this D of the way here.
    ///
    /// # Errors
    /// As [`Endpoint::on_packet`].
    pub fn on_stamped_packet(&mut self, now: Time, number: u64, packet: &[u8], delay: Span) -> Result<Time, Violation> {
        if let Some(violation) = &self.violation {
            return Err(violation.clone());
        }
        let taken = self.take_packet(now, number, packet, delay);
        // Half of the packet has been taken in, perhaps. What the other end builds on it cannot be made sense of.
        self.violation = taken.as_ref().err().cloned();
        taken
    }

    fn take_packet(&mut self, now: Time, number: u64, packet: &[u8], delay: Span) -> Result<Time, Violation> {
        let (sent_at, frames) = open_packet(packet)?;
        self.path_answered = None;
        let (mut wants_ack, mut acks, mut whole) = (false, 0, true);
        let (mut data, mut probe) = (false, false);
        for frame in frames {
            let frame = frame?;
            wants_ack |= !is_told_once(&frame);
            data |= matches!(frame, Frame::Data(_));
            probe |= frame == Frame::Probe;
            // Each is looked up in all that is under way.
            acks += usize::from(matches!(frame, Frame::Ack { .. }));
            if acks > 1 {
                return Err(Violation::Acks);
            }
            if let Frame::Cell(told) = frame {
                self.on_cell(now, number, told);
            }
            whole &= self.on_frame(now, sent_at, frame)?;
        }
        let most = self.config.max_streams;
        if self.closing.len() > 2 * most || self.resets > 4 * most {
            return Err(Violation::Streams);
        }
        // Data stops in time by itself; these are answers to what the other end goes on asking.
        if self.sent_packets.len() > MOST_SENT + 4 * most {
            return Err(Violation::Unanswered);
        }
        if !whole {
            // As if it had been lost: what was taken in of it does no harm a second time.
            return Ok(sent_at);
        }
        self.arrivals.on_packet(now, number, wants_ack);
        if data || probe {
            self.on_stamp(now, delay, probe);
        }
        self.on_life(now);
        self.delays.push(Delay::Hop(self.clock.there(now).since(sent_at)));
        Ok(sent_at)
    }

    /// Takes a frame in; false if there is no room for it now.
    fn on_frame(&mut self, now: Time, sent_at: Time, frame: Frame<'_>) -> Result<bool, Violation> {
        match frame {
            Frame::Ping | Frame::Probe | Frame::Cell(_) => {}
            Frame::PathDelay { average, epoch } => self.on_path_delay(now, average, epoch),
            Frame::Ack { delay, ranges } => self.on_ack(now, sent_at, delay, &ranges),
            Frame::Data(data) => return self.on_data(&data, sent_at),
            Frame::Open { stream: number, host, port } => {
                if let Some(stream) = self.theirs(number)?
                    && !std::mem::replace(&mut stream.known, true)
                {
                    self.events.push_back(Event::Open { stream: number, host: host.to_owned(), port });
                }
            }
            Frame::Opened { stream: number, result } => {
                if self.streams.contains_key(&number) {
                    self.events.push_back(Event::Opened { stream: number, result });
                }
            }
            Frame::Window { stream: number, limit } => {
                if let Some(stream) = self.any(number)? {
                    stream.send.on_window(limit);
                    self.enqueue(number);
                }
            }
            Frame::Reset { stream, sent } => self.on_reset(stream, sent)?,
            Frame::Budget { limit } => {
                self.credit.on_limit(limit);
                for number in std::mem::take(&mut self.blocked) {
                    self.streams.get_mut(&number).into_iter().for_each(|stream| stream.blocked = false);
                    self.enqueue(number);
                }
            }
            Frame::PathChallenge(data) => {
                // Of more at once the last are of now.
                if self.path_answers.len() >= MOST_PATH_ANSWERS {
                    self.path_answers.pop_front();
                }
                self.path_answers.push_back(data);
            }
            Frame::PathAnswer(data) => self.path_answered = Some(data),
            Frame::Feedback(feedback) => self.events.push_back(Event::Feedback(feedback)),
            Frame::Close => self.events.push_back(Event::Closed),
        }
        Ok(true)
    }

    fn on_data(&mut self, data: &Data<'_>, sent_at: Time) -> Result<bool, Violation> {
        let number = data.stream;
        if let Some(highest) = self.closing.get(&number).copied() {
            let end = data.offset + data.bytes.len() as u64;
            if data.end && end < highest {
                return Err(Violation::Data(number));
            }
            self.settle(number, highest, end.max(highest), data.end)?;
            return Ok(true);
        }
        let Some(stream) = self.any(number)? else { return Ok(true) };
        let growth = stream.recv.growth(data);
        // Before anything is held that would be in nobody's accounts.
        self.credit.allows(growth)?;
        let Some(stream) = self.streams.get_mut(&number) else { return Ok(true) };
        let spare = stream.recv.spare();
        match stream.recv.on_data(data, sent_at) {
            Ok(()) => {}
            Err(Refused::Scattered) => return Ok(false),
            Err(Refused::Violation) => return Err(Violation::Data(number)),
        }
        let spare = stream.recv.spare() as i64 - spare as i64;
        self.spare = self.spare.saturating_add_signed(spare);
        self.credit.on_arrived(growth)?;
        let news = !stream.recv.readable().is_empty() || stream.recv.is_at_end();
        if news && stream.known && !std::mem::replace(&mut stream.told, true) {
            self.events.push_back(Event::Readable(number));
        }
        Ok(true)
    }

    fn on_ack(&mut self, now: Time, sent_at: Time, delay: Span, ranges: &[AckRange]) {
        let before = self.sent_packets.in_flight();
        let outcome = self.sent_packets.on_ack(now, delay, ranges, self.control.delivery());
        if outcome.delivered.is_empty() {
            return;
        }
        if let Some(left) = outcome.largest_sent {
            self.clock.sample(left, sent_at.saturating_sub(delay), sent_at, now);
        }
        if let Some(rtt) = outcome.rtt {
            self.rtt.observe_min(rtt);
            self.rtt.sample(rtt, outcome.round_over);
        }
        // What was asked has an answer, whether that tells how long the way is or not (RFC 9002, section 6.2.1).
        self.rtt.answered();
        self.probes = 0;
        for content in outcome.delivered {
            content.into_items().for_each(|item| self.on_delivered(item));
        }
        let lost = self.collect_lost(now);
        let after = self.sent_packets.in_flight();
        let largest = ranges.first().map_or(0, |range| range.last);
        let (rtt, round_over, next) = (outcome.rtt, outcome.round_over, self.sent_packets.next_number());
        let news = News { delivered: outcome.delivered_len, lost, before, after, rtt, round_over, largest, next };
        let rtt = RoundTrips { least: self.rtt.min_rtt(), smoothed: self.rtt.srtt() };
        self.law_senses(now, |law| law.on_ack(now, &news, rtt));
    }

    /// What [`Endpoint::next_timeout`] announced has come.
    pub fn on_timeout(&mut self, now: Time) {
        self.collect_lost(now);
        match &mut self.control {
            Control::Path(path) => path.on_timeout(now),
            Control::Law(law) if law.timer().is_some_and(|at| at <= now) => {
                self.law_senses(now, |law| law.sense(now, &Signal::Wakeup));
            }
            Control::Law(_) | Control::Set { .. } => {}
        }
        if self.probe_time().is_none_or(|at| at > now) {
            return;
        }
        let before = self.sent_packets.in_flight();
        self.rtt.back_off();
        self.probe();
        let (after, next) = (self.sent_packets.in_flight(), self.sent_packets.next_number());
        let lost = before.saturating_sub(after);
        let news = News { delivered: Bytes::ZERO, lost, before, after, rtt: None, round_over: false, largest: 0, next };
        self.law_senses(now, |law| law.on_timeout(now, &news));
    }

    /// The other end speaks. If it has been asked in vain, the next question may be seconds away, and it is there now.
    fn on_life(&mut self, now: Time) {
        let answer_by = |since: Time| since + self.rtt.base_rto() + self.config.peer_acks.delay;
        let asked = self.sent_packets.waiting_since().filter(|_| self.rtt.backoff() > 0);
        if asked.is_some_and(|since| answer_by(since) <= now) {
            self.probe();
        }
    }

    /// Sends the oldest of what has had no answer again, whatever holds packets back.
    fn probe(&mut self) {
        self.probes = 1;
        match self.sent_packets.take_oldest() {
            Some(content) => self.on_lost(content),
            None => self.ping(),
        }
    }

    /// When [`Endpoint::on_timeout`] or [`Endpoint::poll_transmit`] must be called next.
    pub fn next_timeout(&self, now: Time) -> Option<Time> {
        self.next_timer().into_iter().chain(self.next_departure(now)).min()
    }

    /// The part of [`Endpoint::next_timeout`] that may be late by tens of microseconds: acknowledgements, probes, losses.
    pub fn next_timer(&self) -> Option<Time> {
        let laws = match &self.control {
            Control::Path(path) => path.timer().into_iter().chain(self.asks_at()).min(),
            Control::Law(law) => law.timer(),
            Control::Set { .. } => None,
        };
        let timers =
            [self.sent_packets.loss_time(&self.rtt), self.probe_time(), self.arrivals.due(&self.ack_rule()), laws];
        timers.into_iter().flatten().min()
    }

    /// The next thing that happened.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Delays since this was asked last.
    pub fn delays(&mut self) -> std::vec::Drain<'_, Delay> {
        self.delays.drain(..)
    }

    /// Octets of streams held here.
    pub fn backlog(&self) -> Backlog {
        Backlog { unsent: self.unsent, unacknowledged: self.held.saturating_sub(self.unsent) }
    }

    /// The least round trip of the session, the other end's waiting included.
    pub fn min_rtt(&self) -> Option<Span> {
        self.sent_packets.min_rtt()
    }

    /// By how much the other end's clock is ahead, as it is taken into account in delays; `None` while nothing is known.
    pub fn clock_offset(&self, now: Time) -> Option<ClockOffset> {
        self.clock.offset(now)
    }

    /// The smoothed round trip.
    pub fn srtt(&self) -> Option<Span> {
        self.rtt.srtt()
    }

    /// Packets that have arrived, and the highest number among them.
    pub fn arrived(&self) -> (u64, Option<u64>) {
        (self.arrivals.count(), self.arrivals.largest())
    }

    /// Packet numbers that have been given out here.
    pub fn numbers(&self) -> u64 {
        self.sent_packets.next_number()
    }

    /// Packets that were sent and found lost.
    pub fn lost_packets(&self) -> u64 {
        self.lost_packets
    }

    /// Octets of all streams together that may be sent before the other end has read some.
    pub fn room(&self) -> u64 {
        self.credit.room()
    }

    /// Streams that are open.
    pub fn stream_count(&self) -> usize {
        self.streams.len()
    }

    pub(super) fn probe_time(&self) -> Option<Time> {
        // An end that paces by the path asks by `asks_at`, and holds nothing back for it.
        if matches!(self.control, Control::Path(_)) {
            return None;
        }
        Some(self.sent_packets.waiting_since()? + self.rtt.rto() + self.config.peer_acks.delay)
    }

    fn collect_lost(&mut self, now: Time) -> Bytes {
        let mut lost = Vec::new();
        let len = self.sent_packets.take_lost(now, &self.rtt, &mut lost);
        self.lost_packets += lost.len() as u64;
        lost.into_iter().for_each(|content| self.on_lost(content));
        len
    }

    fn on_delivered(&mut self, item: Item) {
        match item {
            Item::Data(part) => {
                if let Some(stream) = self.streams.get_mut(&part.stream) {
                    let held = stream.send.held();
                    stream.send.on_acked(part.range, part.end);
                    self.held = self.held.saturating_sub(Bytes::new(held - stream.send.held()));
                    self.tidy(part.stream);
                }
            }
            Item::Open(number) => {
                if let Some(stream) = self.streams.get_mut(&number) {
                    stream.target = None;
                }
            }
            Item::Opened(number) => self.tidy(number),
            Item::Reset { .. } => self.resets = self.resets.saturating_sub(1),
            Item::Window(_) | Item::Budget | Item::Ping => {}
        }
    }

    fn on_lost(&mut self, content: Content) {
        for item in content.into_items() {
            match item {
                Item::Data(part) => {
                    if let Some(stream) = self.streams.get_mut(&part.stream) {
                        stream.send.on_lost(part.range, part.end);
                        self.enqueue(part.stream);
                    }
                }
                // An end that probes asks for a sign of life anyway.
                Item::Ping => {}
                item => self.items.push_back(item),
            }
        }
    }
}

/// True for what is neither acknowledged nor sent again.
fn is_told_once(frame: &Frame<'_>) -> bool {
    matches!(
        frame,
        Frame::Ack { .. }
            | Frame::Feedback(_)
            | Frame::Cell(_)
            | Frame::PathChallenge(_)
            | Frame::PathAnswer(_)
            | Frame::Probe
            | Frame::PathDelay { .. }
            | Frame::Close
    )
}

/// Path challenges that wait for an answer: it leaves with the next packet.
const MOST_PATH_ANSWERS: usize = 4;
/// How far ahead of their departure octets are read.
const READ_AHEAD: Span = Span::from_micros(250);
/// Full packets: one that leaves and one that waits.
const LEAST_AHEAD: u64 = 2;
const MOST_AHEAD: u64 = 256 << 10;
/// Packets without an acknowledgement beyond which no data is sent: more than fill the largest budget, if they are full.
pub(super) const MOST_SENT: usize = 32 << 10;
/// Memory of streams that holds nothing: what is read of a stream soon fills again.
const MOST_SPARE: u64 = 4 << 20;

impl From<Overdrawn> for Violation {
    fn from(_: Overdrawn) -> Violation {
        Violation::Budget
    }
}
