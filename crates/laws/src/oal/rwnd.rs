//! The receive-window rewriter of the access point: what it knows of a flow, and what it writes into passing ACKs.
//! Source:     systems/oal.md A.6 and A.7 (rules 1 to 13); [rfc9293] section 3.8.6 (windows do not shrink), [rfc7323]
//!             section 2 (window scale), [rfc5681] section 2 (duplicate ACKs).
//! Equations:  f' = min(f, max(ceil(W / 2^s), ceil((R - ack) / 2^s), floor)),  floor = ceil(2 MSS / 2^s),
//!             R' = max(R, ack + f' 2^s);  sequence numbers compare modulo 2^32.
//! Symbols:    f -> the header's window, f' -> the answer, W -> `window`, s -> `shift()`, R -> `edge`,
//!             max(ceil(W / 2^s), floor) -> `limit`.
//! Deviations: a release step is 1 MSS an ACK, or half of what the ACK acknowledges where that is more, so that a
//!             window grows by half or more a round trip however seldom the receiver acknowledges; "10 s" is 8.6 to
//!             10.7 s (five bins of 2^31 ns); what rule 5 reuses is `limit`, so that a window update after
//!             a zero window is not held at zero; an old ACK passes under the limit of the newest.
//! Validity:   flows whose two SYNs passed here. Any segment history is safe: the answer never raises a window, never
//!             creates a zero window, never takes back an edge that it let pass.
//! Checked by: `rwnd/tests.rs` (vectors of A.7, each rule), `tests/rwnd_props.rs` (any history), and the eBPF program
//!             `bpf/rwnd.bpf.c`, which mirrors this file line by line, by the parity test of the agents' crate.
//!
//! The station is the end behind the wireless hop; *downlink* is towards it. Whichever side opened the connection, the
//! window that is limited is the station's, in its uplink ACKs.

mod halves;
mod handshake;
mod table;
#[cfg(test)]
mod tests;

pub use halves::{BINS, Bin, Half};
pub use table::Rewriter;

use lasthop_signals::{FlowId, FlowReport, Node};
use lasthop_units::{Bytes, Time};
use lasthop_wire::tcp::{Flags, TcpHeader};

/// One flow's state. The layout is that of `struct rwnd_flow` in `bpf/rwnd.h`: an agent reads the eBPF program's map
/// into this type. Zero means "none" throughout; every bit pattern is a valid value.
///
/// The two directions of a flow may be processed on two processors at once, each direction on one. What a segment needs
/// comes first: with the map's own 88 octets before it (header and key) it lies in two cache lines, and an element is a
/// whole number of lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Flow {
    // Written seldom, read for every segment.
    /// When the first SYN passed: tells apart connections that use the same addresses and ports.
    born: u64,
    /// When the ACK with `ack_val` was forwarded; 0 = no sample is being taken. Set in the uplink direction, cleared in
    /// the downlink direction.
    ack_at: u64,
    /// Window wanted by the law, octets; 0 = none. Written by the law's side only.
    target: u32,
    /// What was seen in the downlink direction: bits of [`seen`].
    down_seen: u32,
    /// What was seen in the uplink direction: bits of [`seen`].
    up_seen: u32,
    /// The TSval that the answer will echo.
    ack_val: u32,
    /// MSS option of the SYN towards the station; 0 = none.
    down_mss: u16,
    /// MSS option of the station's SYN; 0 = none.
    up_mss: u16,
    /// Window field of the station's SYN.
    syn_window: u16,
    /// Window scale option of the SYN towards the station.
    down_scale: u8,
    /// Window scale option of the station's SYN.
    up_scale: u8,

    // Written for every segment in the uplink direction.
    /// Payload acknowledged by the station.
    acked: u64,
    /// R: the highest right edge forwarded.
    edge: u32,
    /// The highest acknowledgement forwarded.
    highest_ack: u32,
    /// W, octets: follows `target`, at once downwards and in steps upwards; 0 = no limit.
    window: u32,
    /// Upper limit of the window field for ACKs with number `highest_ack`, unless the edge needs more; 0 = none.
    limit: u32,
    /// The newest TSval forwarded.
    last_val: u32,
    /// Window field of the station's newest ACK, as it sent it.
    last_window: u16,
    _pad: u16,

    // Written for every segment in the downlink direction.
    /// When the data that `sent_end` ends was forwarded; 0 = no sample is being taken. Cleared in the uplink direction.
    sent_at: u64,
    /// Highest sequence number forwarded to the station.
    max_end: u32,
    /// An ACK from here on ends the sample.
    sent_end: u32,
    /// Payload forwarded to the station.
    forwarded: u64,
    /// When payload was last forwarded, to the tick.
    last_data: u64,

    // Seldom needed.
    /// Sequence number of the SYN towards the station.
    down_isn: u32,
    /// Sequence number of the station's SYN.
    up_isn: u32,
    /// Forwarding data to its ACK.
    wireless: Half,
    /// Forwarding an ACK to the first data sent in answer to it.
    wired: Half,
    _spare: [u32; 10],
}

/// Bits of `down_seen` and `up_seen`.
pub(crate) mod seen {
    /// A SYN in this direction.
    pub const SYN: u32 = 1;
    /// It had a window scale option.
    pub const SCALE: u32 = 1 << 1;
    /// It had a timestamps option.
    pub const TIMESTAMPS: u32 = 1 << 2;
    /// A segment had an option that forbids touching the flow.
    pub const HANDS_OFF: u32 = 1 << 3;
    /// A FIN in this direction.
    pub const FIN: u32 = 1 << 4;
    /// An RST in this direction.
    pub const RST: u32 = 1 << 5;
    /// Uplink: an ACK after the handshake.
    pub const STARTED: u32 = 1 << 6;
    /// Uplink: SACK blocks or duplicate ACKs.
    pub const RECOVERING: u32 = 1 << 7;
    /// Uplink: a timestamp, in `last_val`.
    pub const VAL: u32 = 1 << 8;
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

impl Flow {
    /// A flow of which nothing has been seen.
    pub const fn new() -> Flow {
        Flow {
            born: 0,
            ack_at: 0,
            target: 0,
            down_seen: 0,
            up_seen: 0,
            ack_val: 0,
            down_mss: 0,
            up_mss: 0,
            syn_window: 0,
            down_scale: 0,
            up_scale: 0,
            acked: 0,
            edge: 0,
            highest_ack: 0,
            window: 0,
            limit: 0,
            last_val: 0,
            last_window: 0,
            _pad: 0,
            sent_at: 0,
            max_end: 0,
            sent_end: 0,
            forwarded: 0,
            last_data: 0,
            down_isn: 0,
            up_isn: 0,
            wireless: Half::EMPTY,
            wired: Half::EMPTY,
            _spare: [0; 10],
        }
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

    /// A segment towards the station passes.
    pub fn on_downlink(&mut self, now: Time, header: &TcpHeader) {
        if header.flags.contains(Flags::RST) {
            self.down_seen |= seen::RST;
            return;
        }
        if header.flags.contains(Flags::SYN) {
            return self.on_downlink_syn(now, header);
        }
        if header.options.hands_off {
            self.down_seen |= seen::HANDS_OFF;
        }
        if !self.is_manageable() {
            return;
        }
        if header.flags.contains(Flags::FIN) {
            self.down_seen |= seen::FIN;
        }
        if header.sequence_len() > 0 {
            self.note_data(now, header);
        }
        // Of a segment without data too: its sender has sent everything before it.
        if before(self.max_end, header.end_seq()) {
            self.max_end = header.end_seq();
        }
    }

    fn note_data(&mut self, now: Time, header: &TcpHeader) {
        if before(header.seq, self.max_end) {
            // A retransmission: the ACK that comes may answer either copy (Karn's rule).
            self.sent_at = 0;
        } else if self.sent_at == 0 {
            (self.sent_end, self.sent_at) = (header.end_seq(), now.as_nanos());
        }
        self.forwarded = self.forwarded.wrapping_add(u64::from(header.payload_len));
        if header.payload_len > 0 {
            self.last_data = now.as_nanos();
        }
        if let Some(timestamps) = header.options.timestamps {
            self.end_wired_sample(now, timestamps.ecr);
        }
    }

    /// A segment from the station passes: the window field to write into it, if it must change.
    #[must_use = "the segment must be rewritten, or the flow's state is wrong about what the sender has seen"]
    pub fn on_uplink(&mut self, now: Time, header: &TcpHeader) -> Option<u16> {
        self.uplink(now, header, true)
    }

    /// A segment from the station passes while nobody decides (the law's heartbeat is missing): it stays as it is, and
    /// so will all others until [`Flow::on_uplink`] is called again.
    pub fn pass_uplink(&mut self, now: Time, header: &TcpHeader) {
        let rewritten = self.uplink(now, header, false);
        debug_assert_eq!(rewritten, None);
    }

    fn uplink(&mut self, now: Time, header: &TcpHeader, enforce: bool) -> Option<u16> {
        if header.flags.contains(Flags::RST) {
            self.up_seen |= seen::RST;
            return None;
        }
        if header.flags.contains(Flags::SYN) {
            self.on_uplink_syn(now, header);
            return None;
        }
        if header.options.hands_off {
            self.up_seen |= seen::HANDS_OFF;
        }
        if !header.flags.contains(Flags::ACK) || !self.is_manageable() {
            return None;
        }
        if header.flags.contains(Flags::FIN) {
            self.up_seen |= seen::FIN;
        }
        if !enforce {
            (self.window, self.limit) = (0, 0);
        }
        let (ack, field) = (header.ack, header.window);
        if before(self.max_end, ack) {
            // Acknowledges what did not pass here: the sender will not accept it, or this box does not see all. In case
            // of the latter the sender has seen this edge.
            self.note_edge(ack, field);
            return None;
        }
        if before(ack, self.highest_ack) {
            return self.forward(ack, field);
        }
        let is_new = ack != self.highest_ack || self.up_seen & seen::STARTED == 0;
        self.note_recovery(header, is_new);
        if is_new {
            self.on_new_ack(now, ack, field, enforce);
        }
        self.last_window = field;
        if let Some(timestamps) = header.options.timestamps {
            self.begin_wired_sample(now, timestamps.val);
        }
        self.forward(ack, field)
    }

    /// Rule 8: recovery shows in SACK blocks and in duplicate ACKs, and is over when an ACK advances without any.
    fn note_recovery(&mut self, header: &TcpHeader, is_new: bool) {
        // RFC 5681, section 2: nothing new acknowledged, no data, the same window, and data outstanding.
        let duplicate = !is_new
            && header.sequence_len() == 0
            && header.window == self.last_window
            && self.max_end != self.highest_ack;
        if !header.options.sack.is_empty() || duplicate {
            self.up_seen |= seen::RECOVERING;
        } else if is_new {
            self.up_seen &= !seen::RECOVERING;
        }
    }

    fn on_new_ack(&mut self, now: Time, ack: u32, field: u16, enforce: bool) {
        let newly_acked = ack.wrapping_sub(self.highest_ack);
        self.acked = self.acked.wrapping_add(u64::from(newly_acked));
        self.highest_ack = ack;
        self.up_seen |= seen::STARTED;
        self.end_wireless_sample(now, ack);
        if !enforce {
            return;
        }
        self.step_window(newly_acked, u32::from(field) << self.shift());
        // Data beyond every edge that passed here: the sender has seen a wider window than this box let pass, and how
        // wide is not known. One octet beyond may be a zero-window probe.
        let beyond = ack.wrapping_sub(self.edge) as i32;
        let unknown_edge = beyond > self.mss() as i32;
        self.limit = if self.window == 0 || unknown_edge { 0 } else { self.in_units(self.window.max(2 * self.mss())) };
    }

    /// Rules 8 and 10: down at once, unless losses are being repaired; up in steps.
    fn step_window(&mut self, newly_acked: u32, own: u32) {
        if self.window == 0 && self.target == 0 {
            return;
        }
        let frozen = self.up_seen & seen::RECOVERING != 0;
        let goal = if self.target == 0 { own } else { self.target };
        if goal == 0 {
            // Released while the station has no room: what it opens next must not be a burst either.
            return;
        }
        if self.window == 0 {
            self.window = if frozen { 0 } else { goal };
        } else if goal > self.window {
            let step = self.mss().max(newly_acked / 2);
            self.window = goal.min(self.window.saturating_add(step));
        } else if self.target == 0 {
            // The station's own window is no larger: the limit has no effect any more.
            self.window = 0;
        } else if !frozen {
            self.window = goal;
        }
    }

    /// Lets an ACK pass under `limit`, or under what it takes to keep the edge (rule 4), and remembers the edge that it
    /// shows. For equal acknowledgement numbers the answer is the same, whatever happened to W between them (rule 5).
    fn forward(&mut self, ack: u32, field: u16) -> Option<u16> {
        let held = self.edge.wrapping_sub(ack);
        let held = if held as i32 > 0 { self.in_units(held) } else { 0 };
        let allowed = if self.limit == 0 { field } else { self.limit.max(held).min(u32::from(field)) as u16 };
        self.note_edge(ack, allowed);
        (allowed != field).then_some(allowed)
    }

    fn note_edge(&mut self, ack: u32, field: u16) {
        let edge = ack.wrapping_add(u32::from(field) << self.shift());
        if before(self.edge, edge) {
            self.edge = edge;
        }
    }

    /// `octets` as a window field, rounded up: never 0 for anything but 0.
    fn in_units(&self, octets: u32) -> u32 {
        let shift = self.shift();
        (octets + ((1 << shift) - 1)) >> shift
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
            wired_rtt: self.wired.min(now),
            wireless_rtt: self.wireless.min(now),
            mss: Bytes::new(u64::from(self.mss())),
            advertised: Bytes::new(u64::from(self.last_window) << self.shift()),
            last_data: Time::from_nanos(self.last_data),
            recovering: self.up_seen & seen::RECOVERING != 0,
        }
    }

    /// s: the shift of the station's window field (rule 1).
    fn shift(&self) -> u32 {
        let both = self.down_seen & self.up_seen & seen::SCALE != 0;
        if both { u32::from(self.up_scale.min(MAX_SHIFT)) } else { 0 }
    }

    /// Largest payload of a segment towards the station: the smaller MSS option, as the other end's path may be
    /// narrower, less what timestamps take from every segment.
    fn mss(&self) -> u32 {
        let option = |mss: u16| u32::from(if mss == 0 { DEFAULT_MSS } else { mss });
        let timestamps = self.down_seen & self.up_seen & seen::TIMESTAMPS != 0;
        let payload = option(self.down_mss).min(option(self.up_mss));
        payload.saturating_sub(if timestamps { TIMESTAMPS_LEN } else { 0 }).max(MIN_MSS)
    }

    fn begin_wired_sample(&mut self, now: Time, val: u32) {
        let newer = self.up_seen & seen::VAL == 0 || before(self.last_val, val);
        if !newer {
            // Not the first ACK with this TSval: data that echoes it may answer an earlier one.
            return;
        }
        self.up_seen |= seen::VAL;
        self.last_val = val;
        if self.ack_at == 0 {
            (self.ack_val, self.ack_at) = (val, now.as_nanos());
        }
    }

    fn end_wired_sample(&mut self, now: Time, ecr: u32) {
        if self.ack_at == 0 || before(ecr, self.ack_val) {
            return;
        }
        if ecr == self.ack_val {
            self.wired.add(now, now.since(Time::from_nanos(self.ack_at)));
        }
        self.ack_at = 0;
    }

    fn end_wireless_sample(&mut self, now: Time, ack: u32) {
        if self.sent_at != 0 && !before(ack, self.sent_end) {
            self.wireless.add(now, now.since(Time::from_nanos(self.sent_at)));
            self.sent_at = 0;
        }
    }
}

/// True if sequence number `a` is before `b` (RFC 9293, section 3.4: modulo 2^32).
const fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

const _: () = {
    use std::mem::{offset_of, size_of};
    assert!(size_of::<Flow>() == 232 && size_of::<Half>() == 40);
    assert!(offset_of!(Flow, ack_at) == 8 && offset_of!(Flow, target) == 16);
    assert!(offset_of!(Flow, down_seen) == 20 && offset_of!(Flow, up_seen) == 24);
    assert!(offset_of!(Flow, ack_val) == 28 && offset_of!(Flow, down_mss) == 32);
    assert!(offset_of!(Flow, up_mss) == 34 && offset_of!(Flow, syn_window) == 36);
    assert!(offset_of!(Flow, down_scale) == 38 && offset_of!(Flow, up_scale) == 39);
    assert!(offset_of!(Flow, acked) == 40 && offset_of!(Flow, edge) == 48);
    assert!(offset_of!(Flow, highest_ack) == 52 && offset_of!(Flow, window) == 56);
    assert!(offset_of!(Flow, limit) == 60 && offset_of!(Flow, last_val) == 64);
    assert!(offset_of!(Flow, last_window) == 68 && offset_of!(Flow, sent_at) == 72);
    assert!(offset_of!(Flow, max_end) == 80 && offset_of!(Flow, sent_end) == 84);
    assert!(offset_of!(Flow, forwarded) == 88 && offset_of!(Flow, last_data) == 96);
    assert!(offset_of!(Flow, down_isn) == 104 && offset_of!(Flow, up_isn) == 108);
    assert!(offset_of!(Flow, wireless) == 112 && offset_of!(Flow, wired) == 152);
};
