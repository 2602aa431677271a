//! One end of a connection: handshake, headers, and the two halves behind them.
//! Source:     RFC 9293 sections 3.5 (establishment), 3.6 (closing), 3.10.7 (arriving segments); RFC 7323 sections
//!             4.3 (which timestamp to echo) and 5.3 (PAWS).
//! Deviations: no simultaneous open, no half-open detection; TIME-WAIT is left to the world: a closed end still answers
//!             retransmissions for as long as it is kept.     Validity: any sequence of segments.
//! Checked by: tests/integration/props.rs, tests/integration/endpoint.rs

use crate::config::Config;
use crate::options::{self, Agreed};
use crate::receiver::Receiver;
use crate::sender::{Acknowledgement, Outgoing, Sender};
use crate::sequence::{Numbering, timestamp_before};
use crate::signal_option::SignalOption;
use crate::small_queue::SmallQueue;
use crate::stats::Stats;
use lasthop_laws::{Bounds, Decision, SenderLaw};
use lasthop_units::{Bytes, Rate, Span, Time};
use lasthop_wire::tcp::{Flags, SackBlock, SackBlocks, TcpHeader, TcpOptions, Timestamps};
use std::any::Any;

/// One end of a TCP connection. See the crate's documentation for the loop that drives it.
#[derive(Clone)]
pub struct Connection {
    config: Config,
    phase: Phase,
    ours: Numbering,
    theirs: Numbering,
    agreed: Agreed,
    peer_options: TcpOptions,
    handshake: Handshake,
    /// The peer's newest timestamp that we echo (TS.Recent).
    recent_timestamp: u32,
    /// The last echo seen, so that each is measured once.
    last_echo: Option<u32>,
    sender: Sender,
    receiver: Receiver,
    /// What the ends signal to each other beside the stream, if anything.
    signal_option: Option<Box<dyn SignalOption>>,
    acks_sent: u64,
    aborted: bool,
    /// The latest `now` given, for figures that are running.
    now: Time,
}

/// Where in its life the connection is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Listen,
    SynSent,
    SynReceived,
    Established,
    /// Given up, or reset by the peer.
    Dead,
}

/// The retransmission of our SYN.
#[derive(Clone, Copy, Debug)]
struct Handshake {
    /// A SYN (or SYN-ACK) is to be sent now.
    due: bool,
    /// When it will be due again.
    again: Option<Time>,
    tries: u32,
    sent_at: Time,
}

/// SACK blocks that fit beside timestamps.
const SACK_BLOCKS: usize = 3;
/// Octets of options in a segment, and what of them takes the timestamps option, and SACK beside its blocks, padding included.
const OPTION_SPACE: usize = 40;
const TIMESTAMPS_LEN: usize = 12;
const SACK_LEN: usize = 4;
/// Headers of IPv4 and TCP.
const HEADERS: u64 = 40;

impl Connection {
    /// An active end: its SYN leaves with the first `poll_transmit`.
    pub fn connect(now: Time, config: Config, law: Box<dyn SenderLaw>) -> Connection {
        let mut connection = Connection::new(now, config, law, Phase::SynSent);
        connection.handshake.due = true;
        connection
    }

    /// A passive end: it waits for a SYN.
    pub fn accept(now: Time, config: Config, law: Box<dyn SenderLaw>) -> Connection {
        Connection::new(now, config, law, Phase::Listen)
    }

    fn new(now: Time, config: Config, law: Box<dyn SenderLaw>, phase: Phase) -> Connection {
        Connection {
            phase,
            ours: Numbering::new(config.initial_seq),
            theirs: Numbering::new(0),
            agreed: Agreed { mss: u32::from(config.mss), peer_scale: None, sack: false, timestamps: false },
            peer_options: TcpOptions::default(),
            handshake: Handshake { due: false, again: None, tries: 0, sent_at: now },
            recent_timestamp: 0,
            last_echo: None,
            sender: Sender::new(now, &config, law),
            receiver: Receiver::new(&config),
            signal_option: None,
            acks_sent: 0,
            aborted: false,
            config,
            now,
        }
    }

    /// From now on the law's window stays between these bounds; `None`: it is the law's alone. To be followed by `poll_transmit`.
    pub fn bound(&mut self, now: Time, bounds: Option<Bounds<Bytes>>) {
        self.now = now;
        self.sender.bound(now, bounds);
    }

    /// This end signals something to the peer in an option, or wants to be signalled to, if the
    /// peer has the same option. To be called before the first segment.
    pub fn carry(&mut self, option: Box<dyn SignalOption>) {
        if option.is_in_each_segment() {
            self.receiver.shorten_segments(u64::from(option.octets()));
        }
        self.signal_option = Some(option);
    }

    /// The option of this end, if it is one of this type. None is left where the peer does not
    /// have it.
    pub fn carried<T: SignalOption>(&self) -> Option<&T> {
        (&**self.signal_option.as_ref()? as &dyn Any).downcast_ref()
    }

    /// The same to be changed.
    pub fn carried_mut<T: SignalOption>(&mut self) -> Option<&mut T> {
        (&mut **self.signal_option.as_mut()? as &mut dyn Any).downcast_mut()
    }

    /// The application writes `len` octets. Ignored after `close`, as a socket would refuse it.
    pub fn write(&mut self, len: Bytes) {
        self.sender.write(len.get());
    }

    /// The application writes without end: a bulk transfer. Ignored after `close`.
    pub fn write_forever(&mut self) {
        self.sender.write_forever();
    }

    /// The application will write no more. What it has written is sent, then FIN; receiving goes on.
    pub fn close(&mut self) {
        self.sender.close();
    }

    /// The application ends: what has not been sent yet of what it has written is not sent, and FIN follows the rest.
    pub fn stop(&mut self) {
        self.sender.stop();
    }

    /// From now on the application reads at this rate; `None`: whatever arrives, at once.
    pub fn set_read_rate(&mut self, now: Time, rate: Option<Rate>) {
        self.receiver.set_read_rate(now, rate);
    }

    /// The application reads up to `len` octets of what waits, now and whatever its read rate: for one that reads when it
    /// can pass on what it reads, at a read rate of zero. Returns how many there were. To be followed by `poll_transmit`.
    pub fn read(&mut self, now: Time, len: Bytes) -> Bytes {
        Bytes::new(self.receiver.read_now(now, len.get()))
    }

    /// Payload that has arrived in order and waits to be read.
    pub fn unread(&self) -> Bytes {
        Bytes::new(self.receiver.unread())
    }

    /// From now on the peer is allowed at most `len` octets beyond what the application has read; two segments at least.
    /// A window that was advertised before is not taken back.
    pub fn limit_window(&mut self, len: Bytes) {
        self.receiver.window().set_limit(len.get());
    }

    /// From now on at most so much of this connection waits in its own host; `None`, as at first: whatever the law lets go.
    /// The host then says what it holds, by [`Connection::on_queued`] and [`Connection::on_taken`].
    pub fn set_small_queue(&mut self, limit: Option<SmallQueue>) {
        self.sender.host().limit = limit;
    }

    /// The limit on what waits in the host, if there is one.
    pub fn small_queue(&self) -> Option<SmallQueue> {
        self.sender.small_queue()
    }

    /// The host has put a packet of this connection, of `len` octets, into a queue of its own.
    pub fn on_queued(&mut self, len: Bytes) {
        self.sender.host().on_queued(len);
    }

    /// The host holds `len` octets of this connection no more: they have been sent, or dropped before. To be followed by
    /// `poll_transmit`.
    pub fn on_taken(&mut self, len: Bytes) {
        self.sender.host().on_taken(len);
    }

    /// Octets of this connection that the host holds.
    pub fn queued(&self) -> Bytes {
        self.sender.queued()
    }

    /// Payload that has arrived in order, and so been made available to the application.
    pub fn received(&self) -> Bytes {
        Bytes::new(self.receiver.received())
    }

    /// Payload of ours that the peer has acknowledged.
    pub fn acked(&self) -> Bytes {
        Bytes::new(self.sender.acked())
    }

    /// Payload that was written and has not been sent yet; the most there is for one that writes without end.
    pub fn unsent(&self) -> Bytes {
        Bytes::new(self.sender.unsent())
    }

    /// True once the handshake is complete, until the connection dies.
    pub fn is_established(&self) -> bool {
        self.phase == Phase::Established
    }

    /// True once the peer has said, and we have received, everything it wanted to say.
    pub fn peer_closed(&self) -> bool {
        self.receiver.is_finished()
    }

    /// True once both directions are finished and acknowledged, or the connection is dead. A world that keeps a closed
    /// end for a while lets it answer a peer that missed the last acknowledgement.
    pub fn is_closed(&self) -> bool {
        self.phase == Phase::Dead || self.receiver.is_finished() && self.sender.is_finished()
    }

    /// True if the connection was reset by the peer or given up after too many timeouts.
    pub fn is_aborted(&self) -> bool {
        self.aborted
    }

    /// What the law decided last: for plots and tests.
    pub fn decision(&self) -> &Decision {
        self.sender.decision()
    }

    /// Counters and gauges, as of the latest call that told the time.
    pub fn stats(&self) -> Stats {
        let counters = self.sender.counters(self.now);
        let rtt = self.sender.rtt();
        let (round_trips, round_trip_sum, deviation_sum) = rtt.total();
        Stats {
            segments_sent: counters.segments,
            segments_retransmitted: counters.resent_segments,
            bytes_sent: Bytes::new(counters.bytes),
            bytes_retransmitted: Bytes::new(counters.resent_bytes),
            acks_sent: self.acks_sent,
            timeouts: counters.timeouts,
            undone_timeouts: counters.undone,
            recoveries: counters.recoveries,
            ca_state: self.sender.ca_state(),
            tail_probes: counters.tail_probes,
            window_probes: counters.window_probes,
            duplicates_received: self.receiver.duplicates(),
            cwnd: self.sender.decision().cwnd.map_or(Bytes::MAX, |bounds| bounds.upper),
            mss: Bytes::new(self.sender.mss()),
            delivered: Bytes::new(self.sender.delivered()),
            in_flight: Bytes::new(self.sender.in_flight()),
            srtt: rtt.srtt(),
            rttvar: rtt.deviation(),
            min_rtt: rtt.min_rtt(),
            round_trips,
            round_trip_sum,
            deviation_sum,
            rto: rtt.rto(),
            peer_window: Bytes::new(self.sender.peer_window()),
            rwnd_limited: counters.rwnd_limited,
        }
    }

    /// When the connection wants `on_timeout` called if nothing arrives before. To be asked again after every call.
    pub fn next_timeout(&self) -> Option<Time> {
        match self.phase {
            Phase::Listen | Phase::Dead => None,
            Phase::SynSent | Phase::SynReceived => self.handshake.again,
            Phase::Established => {
                let option = self.signal_option.as_ref().map_or(Time::MAX, |option| option.next_timeout());
                let next = self.sender.next_timeout().min(self.receiver.next_timeout()).min(option);
                (next != Time::MAX).then_some(next)
            }
        }
    }

    /// Acts on every timer that is due by `now`. To be followed by `poll_transmit`.
    pub fn on_timeout(&mut self, now: Time) {
        self.now = now;
        match self.phase {
            Phase::Listen | Phase::Dead => {}
            Phase::SynSent | Phase::SynReceived => {
                if self.handshake.again.is_some_and(|at| at <= now) {
                    self.handshake.again = None;
                    self.handshake.due = true;
                    if self.handshake.tries > self.config.max_retries {
                        self.abort();
                    }
                }
            }
            Phase::Established => {
                self.receiver.on_timeout(now);
                if let Some(option) = &mut self.signal_option {
                    option.on_timeout(now);
                }
                if !self.sender.on_timeout(now) {
                    self.abort();
                }
            }
        }
    }

    fn abort(&mut self) {
        self.phase = Phase::Dead;
        self.aborted = true;
    }

    /// The next segment to put on the wire, or `None` until something happens.
    pub fn poll_transmit(&mut self, now: Time) -> Option<TcpHeader> {
        self.now = now;
        match self.phase {
            Phase::Listen | Phase::Dead => None,
            Phase::SynSent | Phase::SynReceived => self.handshake.due.then(|| self.syn(now)),
            Phase::Established => match self.sender.poll(now) {
                Some(Outgoing::Segment { start, payload, fin, push }) => {
                    let mut flags = Flags::ACK;
                    if push {
                        flags = flags | Flags::PSH;
                    }
                    if fin {
                        flags = flags | Flags::FIN;
                    }
                    Some(self.header(now, start, flags, payload))
                }
                Some(Outgoing::WindowProbe { start }) => Some(self.header(now, start, Flags::ACK, 0)),
                None if self.receiver.wants_ack() => {
                    self.acks_sent += 1;
                    Some(self.header(now, self.sender.nxt(), Flags::ACK, 0))
                }
                None => None,
            },
        }
    }

    /// A segment arrived. Ports are not checked: the world has found the connection by them.
    pub fn on_segment(&mut self, now: Time, segment: &TcpHeader) {
        self.now = now;
        if segment.flags.contains(Flags::RST) {
            if self.phase != Phase::Listen {
                self.abort();
            }
            return;
        }
        let syn = segment.flags.contains(Flags::SYN);
        let ack = segment.flags.contains(Flags::ACK);
        match self.phase {
            Phase::Dead => {}
            Phase::Listen => {
                if syn && !ack {
                    self.on_syn(segment);
                    self.phase = Phase::SynReceived;
                    self.handshake.due = true;
                }
            }
            Phase::SynSent => {
                if syn && ack && segment.ack == self.ours.wire(1) {
                    self.on_syn(segment);
                    self.establish(now, segment);
                    self.receiver.acknowledge_now();
                }
            }
            Phase::SynReceived => {
                if syn {
                    // Our SYN-ACK was lost, or will cross this repetition.
                    self.handshake.due = true;
                } else if ack && self.acceptable_ack(segment).is_some_and(|upto| upto >= 1) {
                    self.establish(now, segment);
                    self.on_established(now, segment);
                }
            }
            Phase::Established => {
                if syn {
                    // The last acknowledgement of the handshake was lost.
                    self.receiver.acknowledge_now();
                } else {
                    self.on_established(now, segment);
                }
            }
        }
    }

    fn on_syn(&mut self, segment: &TcpHeader) {
        self.theirs = Numbering::new(segment.seq);
        self.config.remote_port = segment.source_port;
        self.peer_options = segment.options;
        self.signal_option = self.signal_option.take().filter(|option| option.is_offered(&segment.options));
        let further = match &self.signal_option {
            Some(option) if option.is_in_each_segment() => option.octets(),
            Some(option) => {
                // The peer's segments have it then.
                self.receiver.shorten_segments(u64::from(option.octets()));
                0
            }
            None => 0,
        };
        self.agreed = Agreed::with(&self.config, further, &segment.options);
        if self.agreed.peer_scale.is_none() {
            self.receiver.window().disable_scaling();
        }
        if let Some(timestamps) = segment.options.timestamps {
            self.recent_timestamp = timestamps.val;
        }
        self.receiver.on_syn();
    }

    fn establish(&mut self, now: Time, segment: &TcpHeader) {
        self.phase = Phase::Established;
        self.handshake.again = None;
        self.handshake.due = false;
        // Karn's rule holds for SYNs too.
        let rtt = (self.handshake.tries == 1).then(|| now.since(self.handshake.sent_at));
        if let (Some(option), Some(rtt)) = (&mut self.signal_option, rtt) {
            option.on_round_trip(now, rtt);
        }
        let agreed = self.signal_option.as_ref().and_then(|option| option.agreed());
        agreed.iter().for_each(|signal| self.sender.tell(now, signal));
        // The window of a SYN is never scaled (RFC 7323, section 2.2).
        let shift = if segment.flags.contains(Flags::SYN) { 0 } else { self.agreed.peer_scale.unwrap_or(0) };
        let window = u64::from(segment.window) << shift;
        let seq = self.theirs.offset(segment.seq, self.receiver.next()).unwrap_or(0);
        self.sender.establish(now, u64::from(self.agreed.mss), window, seq, rtt);
        let signal = self.signal_option.as_mut().and_then(|option| option.read_syn(&self.peer_options));
        signal.iter().for_each(|signal| self.sender.tell(now, signal));
    }

    fn acceptable_ack(&self, segment: &TcpHeader) -> Option<u64> {
        let upto = self.ours.offset(segment.ack, self.sender.una())?;
        (upto <= self.sender.nxt()).then_some(upto)
    }

    fn on_established(&mut self, now: Time, segment: &TcpHeader) {
        let next = self.receiver.next();
        let Some(start) = self.theirs.offset(segment.seq, next) else { return };
        let end = start + u64::from(segment.sequence_len());
        if self.agreed.timestamps {
            let Some(timestamps) = segment.options.timestamps else { return };
            if timestamp_before(timestamps.val, self.recent_timestamp) && end > start {
                // An old duplicate (PAWS); the answer helps a peer that has lost its bearings.
                self.receiver.acknowledge_now();
                return;
            }
            if start <= next && !timestamp_before(timestamps.val, self.recent_timestamp) {
                self.recent_timestamp = timestamps.val;
            }
        }
        if segment.flags.contains(Flags::ACK) {
            match self.acceptable_ack(segment) {
                Some(upto) => self.on_ack(now, segment, upto, start),
                // It acknowledges what was never sent.
                None => self.receiver.acknowledge_now(),
            }
        }
        if end > start {
            self.measure_receive_rtt(now, segment);
            if let Some(option) = &mut self.signal_option {
                let options = if self.agreed.timestamps { TIMESTAMPS_LEN as u64 } else { 0 };
                let len = Bytes::new(HEADERS + options + u64::from(segment.payload_len));
                option.on_packet(now, segment.options.timestamps.map(|stamps| stamps.val), len);
            }
        }
        self.receiver.on_segment(now, start, end, segment.flags.contains(Flags::FIN));
    }

    fn on_ack(&mut self, now: Time, segment: &TcpHeader, upto: u64, seq: u64) {
        let shift = self.agreed.peer_scale.unwrap_or(0);
        let mut sack = <[Option<std::ops::Range<u64>>; 4]>::default();
        if self.agreed.sack {
            for (slot, block) in sack.iter_mut().zip(segment.options.sack.as_slice()) {
                let range = self.ours.offset(block.left, upto).zip(self.ours.offset(block.right, upto));
                *slot = range.filter(|(left, right)| left < right).map(|(left, right)| left..right);
            }
        }
        let ack = Acknowledgement {
            upto,
            window: u64::from(segment.window) << shift,
            seq,
            sack,
            echoed_rtt: self.echo_age(now, segment).map(Span::from_millis),
            bare: segment.payload_len == 0 && !segment.flags.contains(Flags::FIN),
        };
        let signal = self.signal_option.as_mut().and_then(|option| option.read(&segment.options));
        signal.iter().for_each(|signal| self.sender.tell(now, signal));
        self.sender.on_ack(now, &ack);
    }

    /// Milliseconds since the timestamp that the segment echoes was sent.
    fn echo_age(&self, now: Time, segment: &TcpHeader) -> Option<u64> {
        let echo = segment.options.timestamps.filter(|_| self.agreed.timestamps)?.ecr;
        let age = options::timestamp(&self.config, now).wrapping_sub(echo);
        // Older than a day is no echo of ours.
        (age < 86_400_000).then_some(u64::from(age).max(1))
    }

    /// A receiver without data of its own learns the RTT from the first echo of each of its timestamps.
    fn measure_receive_rtt(&mut self, now: Time, segment: &TcpHeader) {
        let Some(timestamps) = segment.options.timestamps else { return };
        if self.last_echo == Some(timestamps.ecr) {
            return;
        }
        self.last_echo = Some(timestamps.ecr);
        if let Some(age) = self.echo_age(now, segment) {
            let rtt = Span::from_millis(age);
            self.receiver.window().on_rtt(rtt);
            if let Some(option) = &mut self.signal_option {
                option.on_round_trip(now, rtt);
            }
        }
    }

    fn syn(&mut self, now: Time) -> TcpHeader {
        let answering = self.phase == Phase::SynReceived;
        let handshake = &mut self.handshake;
        handshake.due = false;
        let wait = (self.config.initial_rto * (1 << handshake.tries.min(20))).min(self.config.max_rto);
        handshake.again = Some(now + wait);
        handshake.tries += 1;
        handshake.sent_at = now;
        let timestamps = Timestamps {
            val: options::timestamp(&self.config, now),
            ecr: if answering { self.recent_timestamp } else { 0 },
        };
        let next = self.receiver.next();
        let window = self.receiver.window();
        // A SYN leaves before the peer's numbers are known; the window then begins after the peer's SYN.
        let field = window.syn_field(next.max(1));
        let scale = window.offered_scale();
        let peer = answering.then_some(&self.peer_options);
        let mut options = options::syn(&self.config, scale, timestamps, peer);
        if let Some(option) = &mut self.signal_option {
            option.offer(&mut options);
        }
        TcpHeader {
            source_port: self.config.local_port,
            destination_port: self.config.remote_port,
            seq: self.ours.wire(0),
            ack: if answering { self.theirs.wire(next) } else { 0 },
            flags: if answering { Flags::SYN | Flags::ACK } else { Flags::SYN },
            window: field,
            options,
            payload_len: 0,
        }
    }

    fn header(&mut self, now: Time, start: u64, flags: Flags, payload_len: u32) -> TcpHeader {
        let mut sack = SackBlocks::default();
        let room = if self.agreed.sack { SACK_BLOCKS } else { 0 };
        let theirs = self.theirs;
        let window = self.receiver.acknowledge(room, |block| {
            sack.push(SackBlock { left: theirs.wire(block.start), right: theirs.wire(block.end) });
        });
        let timestamps = self
            .agreed
            .timestamps
            .then(|| Timestamps { val: options::timestamp(&self.config, now), ecr: self.recent_timestamp });
        let stamps = if timestamps.is_some() { TIMESTAMPS_LEN } else { 0 };
        let blocks = sack.as_slice().len() * size_of::<[u32; 2]>();
        let taken = stamps + if blocks > 0 { SACK_LEN + blocks } else { 0 };
        let mut options = TcpOptions { timestamps, sack, ..TcpOptions::default() };
        if let Some(option) =
            self.signal_option.as_mut().filter(|option| taken + usize::from(option.octets()) <= OPTION_SPACE)
        {
            option.write(&mut options);
        }
        TcpHeader {
            source_port: self.config.local_port,
            destination_port: self.config.remote_port,
            seq: self.ours.wire(start),
            ack: self.theirs.wire(self.receiver.next()),
            flags,
            window,
            options,
            payload_len,
        }
    }
}
