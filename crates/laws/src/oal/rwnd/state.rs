//! What is known of one flow, and what of it is told.

use super::halves::{BINS, EPOCH_SHIFT, Half};
use super::ways::WAYS;
use crate::ebpf::Shared;
use lasthop_signals::{FlowId, FlowReport, Node};
use lasthop_units::{Bytes, Span, Time};
use lasthop_wire::tcp::{Flags, TcpHeader};

/// One flow's state. The layout is that of `struct rwnd_flow` in `bpf/rwnd.h`: an agent reads the eBPF program's map
/// into this type. Zero means "none" throughout: of the default nothing has been seen. Every bit pattern is a valid
/// value.
///
/// The two directions of a flow may be processed on two processors at once, each direction on one. What a segment needs
/// comes first: with the 40 octets of key that the program's table has before it, it lies in two cache lines of the four
/// that an entry fills.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Flow {
    // Read for every segment, written seldom.
    /// When the ACK with `ack_val` was forwarded; 0 = no sample is being taken. Set in the uplink direction, cleared in
    /// the downlink direction.
    pub(super) ack_at: u64,
    /// Window wanted by the law, octets; 0 = none. Written by the law's side only.
    pub(super) target: u32,
    /// What was seen in the downlink direction: bits of [`seen`].
    pub(super) down_seen: u16,
    /// What was seen in the uplink direction: bits of [`seen`].
    pub(super) up_seen: u16,
    /// The TSval that the answer will echo.
    pub(super) ack_val: u32,
    /// Windows lowered, modulo `2^32`; a connection that takes another's place goes on counting.
    pub(super) rewritten: u32,

    // Written for every segment.
    /// Payload acknowledged by the station.
    pub(super) acked: u64,
    /// Payload forwarded to the station.
    pub(super) forwarded: u64,
    /// When payload was last forwarded, to the agent's interval.
    pub(super) last_data: u64,
    /// When the data that `sent_end` ends was forwarded; 0 = no sample is being taken. Cleared in the uplink direction.
    pub(super) sent_at: u64,
    /// R: the highest right edge forwarded.
    pub(super) edge: u32,
    /// The highest acknowledgement forwarded.
    pub(super) highest_ack: u32,
    /// Highest sequence number forwarded to the station.
    pub(super) max_end: u32,
    /// An ACK from here on ends the sample.
    pub(super) sent_end: u32,
    /// W, octets: follows `target`, at once downwards and in steps upwards; 0 = no limit.
    pub(super) window: u32,
    /// Upper limit of the window field for ACKs with number `highest_ack`, unless the edge needs more; 0 = none.
    pub(super) limit: u32,
    /// The newest TSval forwarded.
    pub(super) last_val: u32,
    /// Window field of the station's newest ACK, as it sent it.
    pub(super) last_window: u16,
    /// s: the shift of the station's window field (rule 1).
    pub(super) shift: u8,
    pub(super) _pad: u8,

    // Seldom needed.
    /// When the first SYN passed: tells apart connections that use the same addresses and ports.
    pub(super) born: u64,
    /// Sequence number of the SYN towards the station.
    pub(super) down_isn: u32,
    /// Sequence number of the station's SYN.
    pub(super) up_isn: u32,
    /// MSS option of the SYN towards the station; 0 = none.
    pub(super) down_mss: u16,
    /// MSS option of the station's SYN; 0 = none.
    pub(super) up_mss: u16,
    /// Window field of the station's SYN.
    pub(super) syn_window: u16,
    /// Window scale option of the SYN towards the station.
    pub(super) down_scale: u8,
    /// Window scale option of the station's SYN.
    pub(super) up_scale: u8,
    /// Forwarding data to its ACK.
    pub(super) wireless: Half,
    /// Forwarding an ACK to the first data sent in answer to it.
    pub(super) wired: Half,
    /// When the station's SYN was forwarded; 0 = answered, or repeated, so that the answer would say nothing (Karn).
    pub(super) asked_at: u64,
    /// From the station's SYN to its answer, nanoseconds; 0 = not known.
    pub(super) handshake: u32,
    /// Hardware address that the station's SYN came from; zeros on links without.
    pub(super) hardware: [u8; 6],
    pub(super) _spare: [u8; 6],
}

impl Flow {
    /// Offset of the target, for whoever shares a flow's memory with a program that uses it.
    pub const TARGET_AT: usize = std::mem::offset_of!(Flow, target);
    /// Offset of the time of birth.
    pub const BORN_AT: usize = std::mem::offset_of!(Flow, born);

    /// Windows lowered so far, modulo `2^32`.
    pub const fn rewritten(&self) -> u32 {
        self.rewritten
    }

    /// The largest window that the station may be seen to advertise from now on; `None` opens it in steps until the
    /// station's own window is smaller, and leaves the flow untouched from then on.
    pub fn set_target(&mut self, target: Option<Bytes>) {
        // A window of 0 octets cannot be asked for: the floor of two segments rules it out anyway.
        self.target = target.map_or(0, |bytes| bytes.get().clamp(1, MAX_WINDOW) as u32);
    }

    /// The target as it was set, within what TCP can express.
    pub fn target(&self) -> Option<Bytes> {
        (self.target != 0).then(|| Bytes::new(u64::from(self.target)))
    }

    /// True if the flow's windows can be rewritten: both SYNs passed here, nothing forbids it, it was not reset.
    pub const fn is_manageable(&self) -> bool {
        self.down_seen & self.up_seen & seen::SYN != 0
            && (self.down_seen | self.up_seen) & (seen::HANDS_OFF | seen::RST) == 0
    }

    /// True if the connection is over: reset, or closed from both ends.
    pub const fn is_over(&self) -> bool {
        (self.down_seen | self.up_seen) & seen::RST != 0 || self.down_seen & self.up_seen & seen::FIN != 0
    }

    /// True once the station has acknowledged something after the handshake.
    pub const fn is_started(&self) -> bool {
        self.up_seen & seen::STARTED != 0
    }

    /// Where the station's SYN came from; `None` before it, and on links without addresses.
    pub fn hardware(&self) -> Option<[u8; 6]> {
        (self.hardware != [0; 6]).then_some(self.hardware)
    }

    /// Takes over the source of the frame that an uplink segment came in. Only that of the SYN which the flow has recorded counts:
    /// another's, of a retransmission or of a forger, changes nothing.
    pub fn note_hardware(&mut self, header: &TcpHeader, source: [u8; 6]) {
        let recorded = self.up_seen & seen::SYN != 0 && self.up_isn == header.seq;
        if header.flags.contains(Flags::SYN) && recorded && self.hardware == [0; 6] {
            self.hardware = source;
        }
    }

    /// True if both ends use timestamps.
    pub const fn has_timestamps(&self) -> bool {
        self.down_seen & self.up_seen & seen::TIMESTAMPS != 0
    }

    /// When its first SYN passed.
    pub const fn born(&self) -> Time {
        Time::from_nanos(self.born)
    }

    /// The limit in force now: follows the target, in steps when it rises.
    pub fn window(&self) -> Option<Bytes> {
        (self.window != 0).then(|| Bytes::new(u64::from(self.window)))
    }

    /// What the law may know of the flow.
    pub fn report(&self, now: Time, flow: FlowId, station: Node) -> FlowReport {
        let in_flight = self.max_end.wrapping_sub(self.highest_ack);
        FlowReport {
            flow,
            station,
            forwarded: Bytes::new(self.forwarded),
            acked: Bytes::new(self.acked),
            in_flight: Bytes::new(if in_flight as i32 > 0 { u64::from(in_flight) } else { 0 }),
            wired_rtt: self.wired_half(now),
            wireless_rtt: self.wireless.min(now),
            mss: Bytes::new(u64::from(self.mss())),
            advertised: Bytes::new(u64::from(self.last_window) << self.shift()),
            last_data: Time::from_nanos(self.last_data),
            recovering: self.up_seen & seen::RECOVERING != 0,
        }
    }

    /// Without timestamps there are no samples but that of the handshake, which then holds for good.
    fn wired_half(&self, now: Time) -> Option<Span> {
        let handshake =
            (self.handshake != 0 && !self.has_timestamps()).then(|| Span::from_nanos(self.handshake.into()));
        self.wired.min(now).or(handshake)
    }

    /// Sequence number of the first octet towards the station; `None` before the SYN that says so.
    pub fn first_octet(&self) -> Option<u32> {
        (self.down_seen & seen::SYN != 0).then(|| self.down_isn.wrapping_add(1))
    }

    /// Highest sequence number forwarded to the station, and highest acknowledgement forwarded from it. SYN and FIN take numbers, too.
    pub const fn progress(&self) -> (u32, u32) {
        (self.max_end, self.highest_ack)
    }

    /// s: the shift of the station's window field (rule 1).
    pub(super) fn shift(&self) -> u32 {
        u32::from(self.shift)
    }

    pub(super) fn learn_shift(&mut self) {
        let both = self.down_seen & self.up_seen & seen::SCALE != 0;
        self.shift = if both { self.up_scale.min(MAX_SHIFT) } else { 0 };
    }

    /// Another connection with the same addresses and ports.
    pub(super) fn restart(&mut self) {
        *self = Flow { rewritten: self.rewritten, ..Flow::default() };
    }

    /// Largest payload of a segment towards the station, octets: the smaller MSS option, as the other end's path may be
    /// narrower, less what timestamps take from every segment.
    pub fn mss(&self) -> u32 {
        let option = |mss: u16| u32::from(if mss == 0 { DEFAULT_MSS } else { mss });
        let payload = option(self.down_mss).min(option(self.up_mss));
        payload.saturating_sub(if self.has_timestamps() { TIMESTAMPS_LEN } else { 0 }).max(MIN_MSS)
    }
}

/// Bits of `down_seen` and `up_seen`.
pub(super) mod seen {
    /// A SYN in this direction.
    pub const SYN: u16 = 1;
    /// It had a window scale option.
    pub const SCALE: u16 = 1 << 1;
    /// It had a timestamps option.
    pub const TIMESTAMPS: u16 = 1 << 2;
    /// A segment had an option that forbids touching the flow.
    pub const HANDS_OFF: u16 = 1 << 3;
    /// A FIN in this direction.
    pub const FIN: u16 = 1 << 4;
    /// An RST in this direction.
    pub const RST: u16 = 1 << 5;
    /// Uplink: an ACK after the handshake.
    pub const STARTED: u16 = 1 << 6;
    /// Uplink: SACK blocks or duplicate ACKs.
    pub const RECOVERING: u16 = 1 << 7;
    /// Uplink: a timestamp, in `last_val`.
    pub const VAL: u16 = 1 << 8;
}

/// The largest window that TCP can express: 65535 << 14 (RFC 7323, section 2.3).
const MAX_WINDOW: u64 = 65535 << 14;
/// Largest shift (RFC 7323, section 2.3).
const MAX_SHIFT: u8 = 14;
/// Segment size assumed when a SYN has no MSS option (RFC 9293, section 3.7.1).
const DEFAULT_MSS: u16 = 536;
/// No honest stack announces less (Linux, `TCP_MIN_MSS`).
const MIN_MSS: u32 = 88;
/// Octets of every segment that timestamps take, with padding (RFC 7323, appendix A).
const TIMESTAMPS_LEN: u32 = 12;

/// What the eBPF program shares with the rewriter.
pub const SHARED: Shared = Shared {
    name: "rwnd",
    table: &[],
    keys: &[],
    constants: &[
        ("RWND_BINS", BINS as u64),
        ("EPOCH_SHIFT", EPOCH_SHIFT as u64),
        ("RWND_WAYS", WAYS as u64),
        ("MAX_SHIFT", MAX_SHIFT as u64),
        ("DEFAULT_MSS", DEFAULT_MSS as u64),
        ("MIN_MSS", MIN_MSS as u64),
        ("TIMESTAMPS_LEN", TIMESTAMPS_LEN as u64),
    ],
};

const _: () = {
    use std::mem::{offset_of, size_of};
    assert!(size_of::<Flow>() == 216 && size_of::<Half>() == 40);
    assert!(offset_of!(Flow, target) == 8 && offset_of!(Flow, down_seen) == 12);
    assert!(offset_of!(Flow, up_seen) == 14 && offset_of!(Flow, ack_val) == 16);
    assert!(offset_of!(Flow, rewritten) == 20 && offset_of!(Flow, acked) == 24);
    assert!(offset_of!(Flow, forwarded) == 32 && offset_of!(Flow, last_data) == 40);
    assert!(offset_of!(Flow, sent_at) == 48 && offset_of!(Flow, edge) == 56);
    assert!(offset_of!(Flow, highest_ack) == 60 && offset_of!(Flow, max_end) == 64);
    assert!(offset_of!(Flow, sent_end) == 68 && offset_of!(Flow, window) == 72);
    assert!(offset_of!(Flow, limit) == 76 && offset_of!(Flow, last_val) == 80);
    assert!(offset_of!(Flow, last_window) == 84 && offset_of!(Flow, shift) == 86);
    assert!(offset_of!(Flow, born) == 88 && offset_of!(Flow, down_isn) == 96);
    assert!(offset_of!(Flow, up_isn) == 100 && offset_of!(Flow, down_mss) == 104);
    assert!(offset_of!(Flow, up_mss) == 106 && offset_of!(Flow, syn_window) == 108);
    assert!(offset_of!(Flow, down_scale) == 110 && offset_of!(Flow, up_scale) == 111);
    assert!(offset_of!(Flow, wireless) == 112 && offset_of!(Flow, wired) == 152);
};
