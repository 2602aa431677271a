//! The receive-window rewriter of the access point: what it knows of a flow, and what it writes into passing ACKs.
//! Source:     \[oal\] lowers the window and gives no rules; those below are own, by RFC 9293 section 3.8.6 (windows do
//!             not shrink), RFC 7323 section 2 (window scale), RFC 5681 section 2 (duplicate ACKs).
//! Equations:  f' = min(f, max(ceil(W / 2^s), ceil((R - ack) / 2^s), floor)),  floor = ceil(2 MSS / 2^s),
//!             R' = max(R, ack + f' 2^s);  sequence numbers compare modulo 2^32.
//! Symbols:    f -> the header's window, f' -> the answer, W -> `window`, s -> `shift()`, R -> `edge`,
//!             max(ceil(W / 2^s), floor) -> `limit`.
//! Deviations: a release step is 1 MSS an ACK, or half of what the ACK acknowledges where that is more, so that a
//!             window grows by half or more a round trip however seldom the receiver acknowledges; "10 s" is 8.6 to
//!             10.7 s (five bins of 2^31 ns); the wired half of a flow without timestamps is that of its handshake, if no SYN was repeated, as long as
//!             the flow lives; what rule 5 reuses is `limit`, so that a window update after
//!             a zero window is not held at zero; an old ACK passes under the limit of the newest.
//! Validity:   flows with both SYNs seen here. Any segment history is safe: the answer never raises a window, never
//!             creates a zero window, never takes back an edge that it let pass.
//! Checked by: `rwnd/tests.rs` (worked values, each rule), `tests/integration/rwnd_props.rs` (any history),
//!             `tests/integration/rwnd_captures.rs` (recorded traffic). The eBPF program's `bpf/rwnd_flow.h` mirrors this module
//!             function by function; the agents' `tests/integration/parity.rs` compares the two, bytes and state.
//!
//! Rules, by the numbers that tests use:
//!
//! 1. The shift s is the station's window scale if both SYNs had the option, and at most 14. Windows of SYNs are not
//!    scaled. A flow that was first seen later is left alone.
//! 2. A window is only lowered.
//! 3. A zero window passes, and none is created: the floor is two segments.
//! 4. A right edge that passed here is not taken back.
//! 5. ACKs of one number get one answer, since a duplicate ACK has an unchanged window.
//! 6. An older ACK passes under the limit in force, and changes nothing.
//! 7. SYNs, resets and segments without ACK pass. A flow with TCP-MD5, TCP-AO or MPTCP is left alone.
//! 8. SACK blocks and timestamps pass unchanged. While a flow repairs losses its window does not fall.
//! 9. The checksum follows the window (RFC 1624, equation 3).
//! 10. A release raises the window in steps.
//! 11. Packets must not pass by: an interface with flow offload or hardware NAT is refused.
//! 12. QUIC and TCP inside a tunnel cannot be managed.
//!
//! The station is the end behind the wireless hop; *downlink* is towards it. Whichever side opened the connection, the
//! window that is limited is the station's, in its uplink ACKs.

mod halves;
mod handshake;
mod state;
mod table;
#[cfg(test)]
mod tests;
pub mod ways;

pub use halves::{BINS, Bin, Half};
pub use state::{Flow, SHARED};
pub use table::Rewriter;

use lasthop_units::Time;
use lasthop_wire::tcp::{Flags, TcpHeader};
use state::seen;

impl Flow {
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
        if header.options.timestamps.is_none() {
            self.end_handshake_sample(now, header);
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
        } else if self.sent_at == 0 && self.last_data != now.as_nanos() {
            // One sample a moment: where clocks are coarse, reading a better one for every packet would be the larger part
            // of what the packet costs.
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
        self.rewritten = self.rewritten.wrapping_add(u32::from(allowed != field));
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
