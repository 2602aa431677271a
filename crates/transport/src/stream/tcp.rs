//! A stream over TCP as [`Connection`] has it, one way.

use super::content::Content;
use super::{Figures, Party, StreamReceiver, StreamSender};
use crate::{Config, Connection};
use lasthop_laws::{LossRecovery, SenderLaw};
use lasthop_units::{Bytes, Rate, Span, Time};
use lasthop_wire::datagram::{Datagram, SEGMENT_PREFIX};
use lasthop_wire::tcp::{Flags, TcpHeader};

/// Octets of a TCP header with timestamps, which full segments carry.
const HEADER: usize = 32;
/// Octets that a sender keeps, and a receiver at most.
const BUFFER: usize = 16 << 20;

fn config(initial_seq: u32, datagram: usize, loss_recovery: LossRecovery) -> Config {
    let mss = datagram.saturating_sub(SEGMENT_PREFIX + HEADER).max(1);
    Config {
        initial_seq,
        loss_recovery,
        mss: u16::try_from(mss).unwrap_or(u16::MAX),
        rmem_max: Bytes::new(BUFFER as u64),
        // The application says what it has read.
        read_rate: Some(Rate::from_bps(0)),
        // A peer that is there shows it in this time, also while its window is closed.
        max_rto: Span::from_secs(4),
        ..Config::default()
    }
}

fn encode(connection: u32, delay: Span, header: TcpHeader, payload: &[u8], out: &mut Vec<u8>) -> bool {
    Datagram::Segment { connection, delay, header, payload }.encode(out).is_ok()
}

/// The offset in a stream with these lowest 32 bits, nearest to `near`.
fn nearest(low: u32, near: u64) -> Option<u64> {
    near.checked_add_signed(i64::from(low.wrapping_sub(near as u32) as i32))
}

/// The end that sends.
pub struct TcpSender {
    number: u32,
    connection: Connection,
    first: u32,
    content: Content,
    closed: bool,
    own_delay: Span,
    scratch: Vec<u8>,
}

impl TcpSender {
    /// The sender of a connection with datagrams of at most `datagram` octets. `repair` finds its losses. Its sequence
    /// numbers begin at `initial_seq`.
    pub fn new(
        now: Time,
        number: u32,
        initial_seq: u32,
        law: Box<dyn SenderLaw>,
        loss_recovery: LossRecovery,
        datagram: usize,
    ) -> TcpSender {
        TcpSender {
            number,
            connection: Connection::connect(now, config(initial_seq, datagram, loss_recovery), law),
            first: initial_seq.wrapping_add(1),
            content: Content::default(),
            closed: false,
            own_delay: Span::ZERO,
            scratch: Vec::new(),
        }
    }

    /// Payload of a full segment in datagrams of at most so many octets.
    pub fn mss(datagram: usize) -> Bytes {
        Bytes::new(u64::from(config(0, datagram, LossRecovery::Rack).mss))
    }
}

impl Party for TcpSender {
    fn on_datagram(&mut self, now: Time, datagram: &Datagram<'_>) {
        let Datagram::Segment { header, .. } = datagram else { return };
        self.connection.on_segment(now, header);
        self.content.forget(self.connection.acked().get());
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> bool {
        let Some(header) = self.connection.poll_transmit(now) else { return false };
        self.scratch.clear();
        if let Some(at) = nearest(header.seq.wrapping_sub(self.first), self.content.base()) {
            self.content.copy(at, header.payload_len as usize, &mut self.scratch);
        }
        encode(self.number, self.own_delay, header, &self.scratch, out)
    }

    fn next_timeout(&self) -> Option<Time> {
        self.connection.next_timeout()
    }

    fn on_timeout(&mut self, now: Time) {
        self.connection.on_timeout(now);
    }

    fn figures(&self) -> Figures {
        let stats = self.connection.stats();
        let per_packet = |rate: Rate| rate.as_bps() as f64 / (stats.mss.get() * 8).max(1) as f64;
        Figures {
            delivered: self.connection.acked(),
            packets: stats.segments_sent,
            resent: stats.segments_retransmitted,
            delay: None,
            rate: self.connection.decision().pacing.map(per_packet),
            round_trip: stats.srtt,
        }
    }
}

impl StreamSender for TcpSender {
    fn write(&mut self, bytes: &[u8]) -> usize {
        let count = BUFFER.saturating_sub(self.content.len()).min(bytes.len());
        if self.closed || count == 0 {
            return 0;
        }
        self.content.push(&bytes[..count]);
        self.connection.write(Bytes::new(count as u64));
        count
    }

    fn close(&mut self) {
        self.closed = true;
        self.connection.close();
    }

    fn is_done(&self) -> bool {
        self.connection.is_closed() && !self.connection.is_aborted()
    }

    fn unsent(&self) -> u64 {
        self.connection.unsent().get()
    }

    fn contradicted(&self) -> Option<Time> {
        // Its retransmission timer gives up, and the other end is silent then.
        None
    }

    fn set_own_delay(&mut self, delay: Span) {
        self.own_delay = delay;
    }

    fn set_first_delay(&mut self, _delay: Span) {
        // TCP starts by its window.
    }
}

/// The end that receives.
pub struct TcpReceiver {
    number: u32,
    connection: Connection,
    /// The sequence number of the first octet, once the SYN has come.
    first: Option<u32>,
    content: Content,
    delay: Option<Span>,
    packets: u64,
}

impl TcpReceiver {
    /// The receiver of a connection with datagrams of at most `datagram` octets. `law` is that of its sending half,
    /// which sends nothing but its FIN.
    pub fn new(now: Time, number: u32, initial_seq: u32, law: Box<dyn SenderLaw>, datagram: usize) -> TcpReceiver {
        TcpReceiver {
            number,
            connection: Connection::accept(now, config(initial_seq, datagram, LossRecovery::Rack), law),
            first: None,
            content: Content::default(),
            delay: None,
            packets: 0,
        }
    }
}

impl Party for TcpReceiver {
    fn on_datagram(&mut self, now: Time, datagram: &Datagram<'_>) {
        let Datagram::Segment { header, payload, delay, .. } = datagram else { return };
        if header.flags.contains(Flags::SYN) && !header.flags.contains(Flags::ACK) {
            self.first.get_or_insert(header.seq.wrapping_add(1));
        }
        self.delay = Some(*delay);
        self.packets += u64::from(!payload.is_empty());
        let received = self.connection.received().get();
        let at = self.first.and_then(|first| nearest(header.seq.wrapping_sub(first), received));
        // The connection takes less than that, and says how much of it is in order.
        let most = self.content.base() + 2 * BUFFER as u64;
        if let Some(at) = at.filter(|at| at + payload.len() as u64 <= most) {
            self.content.put(received, at, payload);
            self.connection.on_segment(now, header);
        } else if self.first.is_none() || payload.is_empty() {
            self.connection.on_segment(now, header);
        }
        if self.connection.peer_closed() {
            self.connection.close();
        }
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> bool {
        let Some(header) = self.connection.poll_transmit(now) else { return false };
        encode(self.number, Span::ZERO, header, &[], out)
    }

    fn next_timeout(&self) -> Option<Time> {
        self.connection.next_timeout()
    }

    fn on_timeout(&mut self, now: Time) {
        self.connection.on_timeout(now);
    }

    fn figures(&self) -> Figures {
        Figures {
            delivered: self.connection.received(),
            packets: self.packets,
            delay: self.delay.filter(|delay| !delay.is_zero()),
            ..Figures::default()
        }
    }
}

impl StreamReceiver for TcpReceiver {
    fn read(&mut self, now: Time, out: &mut [u8]) -> usize {
        let count = self.content.take(self.connection.received().get(), out);
        self.connection.read(now, Bytes::new(count as u64));
        count
    }

    fn is_done(&self) -> bool {
        self.connection.peer_closed() && self.content.base() == self.connection.received().get()
    }
}
