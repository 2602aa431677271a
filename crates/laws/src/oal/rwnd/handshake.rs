//! What the two SYNs of a connection say: scale, segment size, timestamps, and where sequence numbers begin.

use super::{Flow, before, seen};
use lasthop_units::Time;
use lasthop_wire::tcp::{Flags, TcpHeader};

/// What to do with a SYN.
enum Syn {
    /// Learn it.
    Record,
    /// The same as one already learned: options may have been left out in the repetition.
    Repeat,
    /// Another connection with the same addresses and ports.
    Restart,
    /// It belongs to no connection that is known here.
    Ignore,
}

impl Flow {
    pub(super) fn on_downlink_syn(&mut self, now: Time, header: &TcpHeader) {
        let started = self.up_seen & seen::STARTED != 0;
        match classify(header, (self.down_seen, self.down_isn), (self.up_seen, self.up_isn), started) {
            Syn::Ignore => return,
            Syn::Restart => self.restart(),
            Syn::Repeat => {
                // Karn's rule, as for data.
                self.sent_at = 0;
                if !started {
                    self.learn_downlink(header);
                }
                return;
            }
            Syn::Record => {}
        }
        self.born = if self.born == 0 { now.as_nanos() } else { self.born };
        self.down_isn = header.seq;
        self.max_end = header.end_seq();
        (self.sent_end, self.sent_at) = (self.max_end, now.as_nanos());
        self.learn_downlink(header);
        self.end_handshake_sample(now, header);
        if let Some(timestamps) = header.options.timestamps.filter(|_| header.flags.contains(Flags::ACK)) {
            self.end_wired_sample(now, timestamps.ecr);
        }
        self.complete();
    }

    pub(super) fn on_uplink_syn(&mut self, now: Time, header: &TcpHeader) {
        let started = self.up_seen & seen::STARTED != 0;
        match classify(header, (self.up_seen, self.up_isn), (self.down_seen, self.down_isn), started) {
            Syn::Ignore => return,
            Syn::Restart => self.restart(),
            Syn::Repeat => {
                self.asked_at = 0;
                if !started {
                    self.learn_uplink(now, header);
                }
                return;
            }
            Syn::Record => {}
        }
        self.born = if self.born == 0 { now.as_nanos() } else { self.born };
        self.up_isn = header.seq;
        self.asked_at = now.as_nanos();
        self.learn_uplink(now, header);
        if header.flags.contains(Flags::ACK) {
            self.end_wireless_sample(now, header.ack);
        }
        self.complete();
    }

    /// The answer to the station's SYN has come: the wired half as it was then, the other end's part in it included.
    pub(super) fn end_handshake_sample(&mut self, now: Time, header: &TcpHeader) {
        let answers = header.flags.contains(Flags::ACK) && header.ack == self.up_isn.wrapping_add(1);
        if self.asked_at != 0 && answers {
            let took = now.as_nanos().saturating_sub(self.asked_at);
            self.handshake = u32::try_from(took).unwrap_or(u32::MAX).max(1);
            self.asked_at = 0;
        }
    }

    fn learn_downlink(&mut self, header: &TcpHeader) {
        self.down_seen = options_seen(self.down_seen, header);
        self.down_scale = header.options.window_scale.unwrap_or(0);
        self.down_mss = header.options.mss.unwrap_or(0);
        self.learn_shift();
    }

    fn learn_uplink(&mut self, now: Time, header: &TcpHeader) {
        self.up_seen = options_seen(self.up_seen, header);
        self.up_scale = header.options.window_scale.unwrap_or(0);
        self.up_mss = header.options.mss.unwrap_or(0);
        self.syn_window = header.window;
        self.learn_shift();
        if let Some(timestamps) = header.options.timestamps {
            self.begin_wired_sample(now, timestamps.val);
        }
        if self.down_seen & seen::SYN != 0 {
            self.note_syn_edge();
        }
    }

    /// Once both SYNs are known, so is the first right edge: windows of SYNs are never scaled (rule 1).
    fn complete(&mut self) {
        if self.down_seen & self.up_seen & seen::SYN != 0 {
            self.highest_ack = self.down_isn.wrapping_add(1);
            self.edge = self.highest_ack;
            self.note_syn_edge();
        }
    }

    fn note_syn_edge(&mut self) {
        let edge = self.down_isn.wrapping_add(1).wrapping_add(u32::from(self.syn_window));
        if before(self.edge, edge) {
            self.edge = edge;
        }
    }
}

/// Decides on a SYN in one direction, given what was seen there (`own`) and in the other direction (`other`).
fn classify(header: &TcpHeader, own: (u16, u32), other: (u16, u32), started: bool) -> Syn {
    let (own_syn, other_syn) = (own.0 & seen::SYN != 0, other.0 & seen::SYN != 0);
    if own_syn && own.1 == header.seq {
        return Syn::Repeat;
    }
    if header.flags.contains(Flags::ACK) {
        let answers = other_syn && header.ack == other.1.wrapping_add(1);
        return if answers && !started { Syn::Record } else { Syn::Ignore };
    }
    // The second SYN of a simultaneous open (RFC 9293, section 3.5) has no ACK either.
    if own_syn || started { Syn::Restart } else { Syn::Record }
}

fn options_seen(seen: u16, header: &TcpHeader) -> u16 {
    let bit = |on: bool, bit| if on { bit } else { 0 };
    let options = &header.options;
    (seen & !(seen::SCALE | seen::TIMESTAMPS))
        | seen::SYN
        | bit(options.window_scale.is_some(), seen::SCALE)
        | bit(options.timestamps.is_some(), seen::TIMESTAMPS)
        | bit(options.hands_off, seen::HANDS_OFF)
}
