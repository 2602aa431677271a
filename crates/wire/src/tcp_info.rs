//! What Linux tells about a TCP connection: `struct tcp_info` of linux/tcp.h, read by its length.
//!
//! Source:     linux/tcp.h as of Linux 6.18. The kernel only ever appends fields.
//! Deviations: none. Fields that are not read have no place here.
//! Checked by: the tests below; `lasthop-agents` reads its own connections over loopback.
//!
//! A record ends where the kernel's struct ended when it was built. [`TcpInfo::parse`] needs the fields that all kernels since 2.6.17
//! have (104 octets). Each later field is `None` if the record ends before it.

use crate::{Error, take};
use lasthop_units::{Bytes, Rate, Span, named};

named! {
    /// State of a connection (RFC 9293, and two states of Linux's own): in the order of the kernel's numbers, which begin at 1, and
    /// with the names that `ss` has in filters.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
    pub enum TcpState {
        /// Data may flow in both directions.
        Established = "established",
        /// The own SYN is not answered yet.
        SynSent = "syn-sent",
        /// A SYN has been answered.
        SynReceived = "syn-recv",
        /// The own FIN is not acknowledged yet.
        FinWait1 = "fin-wait-1",
        /// The own FIN is acknowledged; the peer's is still to come.
        FinWait2 = "fin-wait-2",
        /// Over; the port stays taken for a while.
        TimeWait = "time-wait",
        /// No connection.
        #[default]
        Closed = "closed",
        /// The peer has closed, this side has not.
        CloseWait = "close-wait",
        /// Both have closed; the own FIN is not acknowledged yet.
        LastAck = "last-ack",
        /// Waits for connections.
        Listen = "listening",
        /// Both have closed at once.
        Closing = "closing",
        /// A SYN has been answered, and there is no full socket yet.
        NewSynReceived = "new-syn-recv",
        /// Bound to a port, without a connection.
        BoundInactive = "bound-inactive",
    }
}

impl TcpState {
    /// The state of a number of the kernel's.
    ///
    /// # Errors
    /// [`Error::Unknown`].
    pub fn of(number: u8) -> Result<TcpState, Error> {
        let state = usize::from(number).checked_sub(1).and_then(|index| TcpState::ALL.get(index));
        state.copied().ok_or(Error::Unknown { what: "TCP state", value: number.into() })
    }

    /// The kernel's number.
    pub const fn number(self) -> u8 {
        self as u8 + 1
    }
}

named! {
    /// State of congestion control, as Linux's TCP has it: in the order of the kernel's numbers, which begin at 0.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
    pub enum CaState {
        /// Nothing is suspicious.
        #[default]
        Open = "open",
        /// Duplicate acknowledgements or SACKs have come; nothing counts as lost yet.
        Disorder = "disorder",
        /// The window is being reduced, because of ECN or a full queue of this host.
        Cwr = "cwr",
        /// Fast recovery: what was lost is sent again.
        Recovery = "recovery",
        /// The retransmission timer has expired.
        Loss = "loss",
    }
}

impl CaState {
    /// The state of a number of the kernel's.
    ///
    /// # Errors
    /// [`Error::Unknown`].
    pub fn of(number: u8) -> Result<CaState, Error> {
        let state = CaState::ALL.get(usize::from(number)).copied();
        state.ok_or(Error::Unknown { what: "congestion state", value: number.into() })
    }

    /// The kernel's number.
    pub const fn number(self) -> u8 {
        self as u8
    }
}

/// State of one connection. A field is `None` if the kernel does not have it, or if it has no value yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpInfo {
    /// State of the connection.
    pub state: TcpState,
    /// State of congestion control.
    pub ca_state: CaState,
    /// How often the retransmission timer has expired since something was last acknowledged.
    pub timeouts: u8,
    /// The latest delivery rate was that of the application, not of the network.
    pub app_limited: bool,
    /// Retransmission timeout.
    pub rto: Span,
    /// Largest payload of a segment sent.
    pub mss: Bytes,
    /// Segments sent and not acknowledged cumulatively.
    pub unacked: u32,
    /// Of them: acknowledged selectively.
    pub sacked: u32,
    /// Of them: taken to be lost.
    pub lost: u32,
    /// Segments sent again and not acknowledged yet.
    pub retrans: u32,
    /// Smoothed round-trip time; `None` before the first sample.
    pub rtt: Option<Span>,
    /// Mean deviation of the round-trip time.
    pub rttvar: Span,
    /// Slow-start threshold, in segments; `None` while it is infinite.
    pub ssthresh: Option<u32>,
    /// Congestion window, in segments.
    pub cwnd: u32,
    /// Segments sent again since the connection began.
    pub total_retrans: u32,
    /// Pacing rate; `None` too if nothing limits it.
    pub pacing_rate: Option<Rate>,
    /// Payload acknowledged; where this side has called, its SYN counts as an octet.
    pub bytes_acked: Option<Bytes>,
    /// Payload received in order.
    pub bytes_received: Option<Bytes>,
    /// Segments sent, acknowledgements included.
    pub segs_out: Option<u32>,
    /// Payload that waits in the socket and has never been sent.
    pub notsent: Option<Bytes>,
    /// Smallest round-trip time within the kernel's window (300 s if nobody has changed it); `None` too before the first sample.
    pub min_rtt: Option<Span>,
    /// Segments with payload sent, retransmissions included.
    pub data_segs_out: Option<u32>,
    /// Rate of the latest delivery sample.
    pub delivery_rate: Option<Rate>,
    /// Time during which there was something to send or to be acknowledged.
    pub busy_time: Option<Span>,
    /// Of it: held back by the receiver's window.
    pub rwnd_limited: Option<Span>,
    /// Of it: held back by the send buffer.
    pub sndbuf_limited: Option<Span>,
    /// Segments delivered, those acknowledged selectively included.
    pub delivered: Option<u32>,
    /// Payload sent, retransmissions included.
    pub bytes_sent: Option<Bytes>,
    /// Payload sent again.
    pub bytes_retrans: Option<Bytes>,
    /// Window that the peer advertised last.
    pub snd_wnd: Option<Bytes>,
    /// Window that this side advertised last (Linux 6.2).
    pub rcv_wnd: Option<Bytes>,
}

/// Room for the struct of today's kernels and what they may append; `getsockopt` fills what there is.
pub const ROOM: usize = 384;

/// Octets that every record has.
const LEAST: usize = 104;
/// What the kernel says for a threshold that was never set (`TCP_INFINITE_SSTHRESH`).
const INFINITE: u32 = 0x7fff_ffff;

impl TcpInfo {
    /// Reads a record in the byte order of this host, of whatever length.
    ///
    /// # Errors
    /// [`Error::Truncated`] for fewer than 104 octets, [`Error::Unknown`] for a state without a name.
    pub fn parse(bytes: &[u8]) -> Result<TcpInfo, Error> {
        let fixed: &[u8; LEAST] = bytes.first_chunk().ok_or(Error::Truncated { needed: LEAST, got: bytes.len() })?;
        let word = |at: usize| u32::from_ne_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
        let u32_at = |at| take(bytes, at).map(u32::from_ne_bytes);
        let u64_at = |at| take(bytes, at).map(u64::from_ne_bytes);
        let octets = |at| u64_at(at).map(Bytes::new);
        let short_octets = |at| u32_at(at).map(|value| Bytes::new(value.into()));
        let micros = |at| u64_at(at).map(micros);
        // Rates come in octets a second.
        let rate = |at| u64_at(at).map(|value| Rate::from_bps(value.saturating_mul(8)));
        // The lowest bit field of its octet: bits are numbered as octets are.
        let app_limited = if cfg!(target_endian = "big") { 0x80 } else { 0x01 };
        Ok(TcpInfo {
            state: TcpState::of(fixed[0])?,
            ca_state: CaState::of(fixed[1])?,
            timeouts: fixed[2],
            app_limited: fixed[7] & app_limited != 0,
            rto: Span::from_micros(word(8).into()),
            mss: Bytes::new(word(16).into()),
            unacked: word(24),
            sacked: word(28),
            lost: word(32),
            retrans: word(36),
            rtt: Some(word(68)).filter(|us| *us != 0).map(|us| Span::from_micros(us.into())),
            rttvar: Span::from_micros(word(72).into()),
            ssthresh: Some(word(76)).filter(|segments| *segments < INFINITE),
            cwnd: word(80),
            total_retrans: word(100),
            pacing_rate: u64_at(104).filter(|rate| *rate != u64::MAX).and_then(|_| rate(104)),
            bytes_acked: octets(120),
            bytes_received: octets(128),
            segs_out: u32_at(136),
            notsent: short_octets(144),
            min_rtt: u32_at(148).filter(|us| *us != u32::MAX).map(|us| Span::from_micros(us.into())),
            data_segs_out: u32_at(156),
            delivery_rate: rate(160),
            busy_time: micros(168),
            rwnd_limited: micros(176),
            sndbuf_limited: micros(184),
            delivered: u32_at(192),
            bytes_sent: octets(200),
            bytes_retrans: octets(208),
            snd_wnd: short_octets(228),
            rcv_wnd: short_octets(232),
        })
    }

    /// Segments that are in the network: sent, neither acknowledged nor taken to be lost, and those sent again.
    pub fn in_flight(&self) -> u32 {
        self.unacked.saturating_sub(self.sacked).saturating_sub(self.lost).saturating_add(self.retrans)
    }
}

/// A count of the kernel's; more than 584 years are cut to that.
fn micros(us: u64) -> Span {
    Span::from_nanos(us.saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A record in which each field holds what tells it from the others.
    fn record() -> [u8; 248] {
        let mut bytes = [0; 248];
        let mut word = |at: usize, value: u32| bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        word(8, 204_000);
        word(16, 1448);
        word(24, 20);
        word(28, 3);
        word(32, 2);
        word(36, 1);
        word(68, 40_000);
        word(72, 5_000);
        word(76, 25);
        word(80, 30);
        word(100, 7);
        word(136, 900);
        word(144, 4_096);
        word(148, 38_000);
        word(156, 800);
        word(192, 790);
        word(228, 65_536);
        word(232, 131_072);
        let mut long = |at: usize, value: u64| bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        long(104, 1_250_000);
        long(120, 1_000_001);
        long(128, 1_000_002);
        long(160, 125_000);
        long(168, 9_000_000);
        long(176, 1_000_000);
        long(184, 2_000_000);
        long(200, 1_010_137);
        long(208, 10_136);
        bytes[..3].copy_from_slice(&[1, 3, 2]);
        bytes[7] = if cfg!(target_endian = "big") { 0x80 } else { 1 };
        bytes
    }

    #[test]
    fn fields_stand_where_the_kernel_writes_them() {
        let wanted = TcpInfo {
            state: TcpState::Established,
            ca_state: CaState::Recovery,
            timeouts: 2,
            app_limited: true,
            rto: Span::from_millis(204),
            mss: Bytes::new(1448),
            unacked: 20,
            sacked: 3,
            lost: 2,
            retrans: 1,
            rtt: Some(Span::from_millis(40)),
            rttvar: Span::from_millis(5),
            ssthresh: Some(25),
            cwnd: 30,
            total_retrans: 7,
            pacing_rate: Some(Rate::from_mbit(10)),
            bytes_acked: Some(Bytes::new(1_000_001)),
            bytes_received: Some(Bytes::new(1_000_002)),
            segs_out: Some(900),
            notsent: Some(Bytes::new(4_096)),
            min_rtt: Some(Span::from_millis(38)),
            data_segs_out: Some(800),
            delivery_rate: Some(Rate::from_mbit(1)),
            busy_time: Some(Span::from_secs(9)),
            rwnd_limited: Some(Span::from_secs(1)),
            sndbuf_limited: Some(Span::from_secs(2)),
            delivered: Some(790),
            bytes_sent: Some(Bytes::new(1_010_137)),
            bytes_retrans: Some(Bytes::new(10_136)),
            snd_wnd: Some(Bytes::new(65_536)),
            rcv_wnd: Some(Bytes::new(131_072)),
        };
        assert_eq!(TcpInfo::parse(&record()), Ok(wanted));
        assert_eq!(wanted.in_flight(), 16);
    }

    #[test]
    fn a_short_record_of_an_old_kernel_has_what_it_holds() {
        let (whole, bytes) = (TcpInfo::parse(&record()).expect("a record"), record());
        // Linux 3.2 had 104 octets, 4.9 had 168, 4.18 to 5.4 had 224.
        let old = TcpInfo::parse(&bytes[..104]).expect("long enough");
        assert_eq!((old.cwnd, old.total_retrans, old.pacing_rate), (30, 7, None));
        let old = TcpInfo::parse(&bytes[..168]).expect("long enough");
        assert_eq!((old.delivery_rate, old.busy_time), (whole.delivery_rate, None));
        let old = TcpInfo::parse(&bytes[..224]).expect("long enough");
        assert_eq!((old.bytes_retrans, old.snd_wnd), (whole.bytes_retrans, None));
        assert_eq!(TcpInfo::parse(&bytes[..103]), Err(Error::Truncated { needed: 104, got: 103 }));
    }

    #[test]
    fn what_has_no_value_yet_is_none() {
        let mut bytes = record();
        bytes[68..72].fill(0);
        bytes[76..80].copy_from_slice(&0x7fff_ffff_u32.to_ne_bytes());
        bytes[104..112].fill(0xff);
        bytes[148..152].fill(0xff);
        let info = TcpInfo::parse(&bytes).expect("a record");
        assert_eq!((info.rtt, info.ssthresh, info.pacing_rate, info.min_rtt), (None, None, None, None));
    }

    #[test]
    fn numbers_and_states_are_each_others() {
        for state in TcpState::ALL {
            assert_eq!(TcpState::of(state.number()), Ok(state));
        }
        for state in CaState::ALL {
            assert_eq!(CaState::of(state.number()), Ok(state));
        }
        assert_eq!((TcpState::of(1), TcpState::of(10)), (Ok(TcpState::Established), Ok(TcpState::Listen)));
        assert!(TcpState::of(0).is_err() && TcpState::of(14).is_err() && CaState::of(5).is_err());
    }

    proptest! {
        #[test]
        fn any_octets_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400), state in 1..14_u8, ca in 0..5_u8) {
            let _ = TcpInfo::parse(&bytes);
            let mut bytes = bytes;
            if bytes.len() >= LEAST {
                (bytes[0], bytes[1]) = (state, ca);
                let info = TcpInfo::parse(&bytes).expect("long enough, and its states have names");
                prop_assert!(info.in_flight() <= info.unacked.saturating_add(info.retrans));
                prop_assert_eq!(info.rcv_wnd.is_some(), bytes.len() >= 236);
            }
        }
    }
}
