//! The base station's queue for one terminal, how packets fill blocks, and how the terminal puts them together in order.
//! Source:     3GPP TS 36.322 section 5.1.2 (unacknowledged mode) and 6.2.1.3 (header), 36.323 section 6.2 (PDCP header), 36.321
//!             section 6.1.2 (MAC).
//! Equations:  octets of a block = 1 + 2 + ceil(3 (n - 1) / 2) + the octets of its n parts of packets
//! Symbols:    n - 1 length indicators of 12 bits; 1: the MAC subheader; 2: the RLC header with a sequence number of 10 bits;
//!             each packet has 2 more, PDCP's
//! Deviations: the terminal passes over a lost block when its last repeat has failed, where a real one waits for a timer
//!             (t-Reordering). At a handover it forwards whole packets, as the mode with acknowledgements does. Sequence numbers do not wrap. No header compression, no segmentation status, no mode with
//!             acknowledgements.
//! Validity:   a block that ends with padding has room for the padding's subheaders, which are not counted; packets up to 2047 octets.
//! Checked by: tests::*, tests/integration/cell.rs (order and losses; the share of headers in reference data S7)

use crate::Packet;
use lasthop_units::Time;
use std::collections::VecDeque;

/// PDCP's header with a sequence number of 12 bits.
pub(super) const PDCP: u64 = 2;
/// MAC's subheader without a length, and RLC's fixed part.
pub(super) const FIXED: u64 = 3;

/// What waits, what is on the air, and what waits at the terminal for what is missing.
#[derive(Clone, Debug)]
pub(super) struct Rlc<P> {
    /// In the order of their coming: all that has not been handed up.
    sdus: VecDeque<Sdu<P>>,
    /// The number of the first of them.
    base: u64,
    /// The number of the first that has not been sent whole.
    cursor: u64,
    /// Octets that have not been sent.
    waiting: u64,
    /// Blocks that have not been handed up.
    window: VecDeque<Pdu>,
    /// The sequence number of the first of them.
    first: u64,
    /// Octets that were decoded, in order or not.
    decoded: u64,
}

/// One packet, or a burst that is nobody's.
#[derive(Clone, Debug)]
struct Sdu<P> {
    /// `None` if it is nobody's, or a part of it was lost.
    packet: Option<Packet<P>>,
    queued_at: Time,
    /// When its first part was taken.
    head_at: Option<Time>,
    /// Octets, PDCP's header included.
    octets: u64,
    /// Octets that have not been sent.
    unsent: u64,
}

/// One block's content: parts of packets `first..=last`, of which those before `complete` end in it.
#[derive(Clone, Copy, Debug)]
struct Pdu {
    first: u64,
    last: u64,
    complete: u64,
    /// Octets of those parts.
    octets: u64,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    OnAir,
    /// With so many bits.
    Decoded(u32),
    Lost,
}

/// A packet that leaves: with the bits of the block that brought its end, or lost.
#[derive(Debug)]
pub(super) struct HandedUp<P> {
    pub packet: Packet<P>,
    pub queued_at: Time,
    pub head_at: Time,
    pub bits: Option<u32>,
}

impl<P> Rlc<P> {
    pub fn new() -> Rlc<P> {
        Rlc { sdus: VecDeque::new(), base: 0, cursor: 0, waiting: 0, window: VecDeque::new(), first: 0, decoded: 0 }
    }

    /// Takes a packet in, unless more than `limit` octets would wait then.
    pub fn push(&mut self, now: Time, packet: Packet<P>, limit: u64) -> Result<(), Packet<P>> {
        let octets = packet.len.get() + PDCP;
        if self.waiting + octets > limit {
            return Err(packet);
        }
        self.add(now, Some(packet), octets);
        Ok(())
    }

    /// Takes octets in that are nobody's.
    pub fn push_octets(&mut self, now: Time, octets: u64) {
        self.add(now, None, octets + PDCP);
    }

    fn add(&mut self, now: Time, packet: Option<Packet<P>>, octets: u64) {
        self.waiting += octets;
        self.sdus.push_back(Sdu { packet, queued_at: now, head_at: None, octets, unsent: octets });
    }

    /// Octets that wait, PDCP's headers included.
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Packets that wait, the one that is half sent included.
    pub fn packets(&self) -> usize {
        self.sdus.len() - (self.cursor - self.base) as usize
    }

    /// Octets that the terminal has decoded, PDCP's headers included, whether what came before them has come or not.
    pub fn decoded(&self) -> u64 {
        self.decoded
    }

    /// When the oldest of them came.
    pub fn oldest(&self) -> Option<Time> {
        self.sdus.get((self.cursor - self.base) as usize).map(|sdu| sdu.queued_at)
    }

    /// Octets of a block, or of two together, that take up all that waits.
    pub fn needs(&self, blocks: u64) -> u64 {
        self.waiting + blocks * FIXED + indicators(self.packets() as u64)
    }

    /// Fills a block of `octets` and returns its sequence number; `None` if nothing waits or fits.
    pub fn fill(&mut self, now: Time, octets: u64) -> Option<u64> {
        let (first, mut used, mut parts) = (self.cursor, 0, 0);
        while let Some(sdu) = self.sdus.get_mut((self.cursor - self.base) as usize) {
            let room = octets.saturating_sub(FIXED + indicators(parts) + used);
            let part = room.min(sdu.unsent);
            if part == 0 {
                break;
            }
            sdu.head_at.get_or_insert(now);
            (used, parts) = (used + part, parts + 1);
            sdu.unsent -= part;
            if sdu.unsent > 0 {
                break;
            }
            self.cursor += 1;
        }
        if parts == 0 {
            return None;
        }
        self.waiting -= used;
        let pdu = Pdu { first, last: first + parts - 1, complete: self.cursor, octets: used, state: State::OnAir };
        self.window.push_back(pdu);
        Some(self.first + self.window.len() as u64 - 1)
    }

    /// The terminal goes to another cell, and no block of before counts: all that has not been handed up waits again, whole and in its
    /// order. What has lost a part before is lost.
    pub fn forward(&mut self) {
        self.first += self.window.len() as u64;
        self.window.clear();
        self.sdus.retain(|sdu| sdu.packet.is_some());
        self.sdus.iter_mut().for_each(|sdu| sdu.unsent = sdu.octets);
        self.waiting = self.sdus.iter().map(|sdu| sdu.octets).sum();
        self.cursor = self.base;
    }

    /// Block `sequence` has been decoded and had `bits`, or is given up. Hands up what is complete in order then.
    pub fn settle(&mut self, sequence: u64, bits: Option<u32>, mut hand_up: impl FnMut(HandedUp<P>)) {
        let place = (sequence - self.first) as usize;
        self.window[place].state = bits.map_or(State::Lost, State::Decoded);
        self.decoded += bits.map_or(0, |_| self.window[place].octets);
        while let Some(pdu) = self.window.front().filter(|pdu| !matches!(pdu.state, State::OnAir)).copied() {
            self.window.pop_front();
            self.first += 1;
            let bits = match pdu.state {
                State::Decoded(bits) => Some(bits),
                State::OnAir | State::Lost => None,
            };
            debug_assert_eq!(pdu.first, self.base);
            while self.base < pdu.complete {
                let mut sdu = self.sdus.pop_front().expect("what is on the air is kept");
                self.base += 1;
                sdu.leave(bits, &mut hand_up);
            }
            // What goes on in the next block has lost a part in this one.
            if bits.is_none()
                && pdu.last >= pdu.complete
                && let Some(sdu) = self.sdus.front_mut()
            {
                sdu.leave(None, &mut hand_up);
            }
        }
    }
}

impl<P> Sdu<P> {
    /// Hands its packet up, if it has one.
    fn leave(&mut self, bits: Option<u32>, hand_up: &mut impl FnMut(HandedUp<P>)) {
        let (queued_at, head_at) = (self.queued_at, self.head_at.unwrap_or(self.queued_at));
        if let Some(packet) = self.packet.take() {
            hand_up(HandedUp { packet, queued_at, head_at, bits });
        }
    }
}

/// Octets of so many length indicators.
fn indicators(count: u64) -> u64 {
    (3 * count).div_ceil(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AccessClass, Dest, Ecn};
    use lasthop_signals::Node;
    use lasthop_units::Bytes;

    fn packet(payload: u32, len: u64) -> Packet<u32> {
        let (src, dst, class) = (Node(0), Dest::Node(Node(1)), AccessClass::BestEffort);
        Packet { len: Bytes::new(len), src, dst, class, flow_hash: 0, ecn: Ecn::NotEct, payload }
    }

    fn queue(lens: &[u64]) -> Rlc<u32> {
        let mut rlc = Rlc::new();
        for (n, len) in lens.iter().enumerate() {
            rlc.push(Time::ZERO, packet(n as u32, *len), 1_000_000).expect("room");
        }
        rlc
    }

    fn settle(rlc: &mut Rlc<u32>, sequence: u64, bits: Option<u32>) -> Vec<(u32, bool)> {
        let mut left = Vec::new();
        rlc.settle(sequence, bits, |up| left.push((up.packet.payload, up.bits.is_some())));
        left
    }

    #[test]
    fn a_block_holds_what_its_headers_leave() {
        // 98 + 2 octets each. A block of 250: 3 of headers, then 100, 1 indicator (2) and 100, 2 indicators (3) and 44.
        let mut rlc = queue(&[98; 5]);
        assert_eq!((rlc.needs(1), rlc.fill(Time::ZERO, 250), rlc.waiting()), (500 + 3 + 8, Some(0), 256));
        // What is left fits exactly: 3, 56, 2 and 100, 1 and 100.
        assert_eq!((rlc.fill(Time::ZERO, 262), rlc.waiting(), rlc.fill(Time::ZERO, 1000)), (Some(1), 0, None));
        assert_eq!(settle(&mut rlc, 0, Some(8)), [(0, true), (1, true)]);
        assert_eq!(settle(&mut rlc, 1, Some(8)), [(2, true), (3, true), (4, true)]);
    }

    #[test]
    fn blocks_wait_for_those_before_them() {
        let mut rlc = queue(&[98; 4]);
        let all: Vec<_> = (0..4).map(|_| rlc.fill(Time::ZERO, 103)).collect();
        assert_eq!(all, [Some(0), Some(1), Some(2), Some(3)]);
        assert_eq!(settle(&mut rlc, 1, Some(8)), []);
        assert_eq!(settle(&mut rlc, 2, Some(8)), []);
        assert_eq!(settle(&mut rlc, 0, Some(8)), [(0, true), (1, true), (2, true)]);
        assert_eq!(settle(&mut rlc, 3, Some(8)), [(3, true)]);
    }

    #[test]
    fn a_lost_block_takes_every_packet_that_it_had_a_part_of() {
        // Packet 1 lies in blocks 0, 1 and 2.
        let mut rlc = queue(&[48, 198, 48]);
        for octets in [103, 103, 150] {
            rlc.fill(Time::ZERO, octets).expect("something waits");
        }
        assert_eq!(rlc.waiting(), 0);
        assert_eq!(settle(&mut rlc, 0, Some(8)), [(0, true)]);
        assert_eq!(settle(&mut rlc, 1, None), [(1, false)]);
        assert_eq!(settle(&mut rlc, 2, Some(8)), [(2, true)]);
        assert_eq!((rlc.sdus.len(), rlc.window.len()), (0, 0));
    }

    #[test]
    fn what_is_still_to_be_sent_of_a_lost_packet_is_sent_in_vain() {
        let mut rlc = queue(&[198, 48]);
        rlc.fill(Time::ZERO, 103).expect("something waits");
        assert_eq!(settle(&mut rlc, 0, None), [(0, false)]);
        assert_eq!((rlc.waiting(), rlc.packets()), (150, 2));
        rlc.fill(Time::ZERO, 200).expect("something waits");
        assert_eq!(settle(&mut rlc, 1, Some(8)), [(1, true)]);
    }

    #[test]
    fn what_is_forwarded_is_sent_again_whole_and_in_order() {
        // Packet 0 has arrived, 1 has lost a part, 2 has come but waits for 1's end, 3 is half sent.
        let mut rlc = queue(&[98, 198, 48, 148]);
        let all: Vec<_> = [103, 103, 155, 80].into_iter().map(|octets| rlc.fill(Time::ZERO, octets)).collect();
        assert_eq!(all, [0, 1, 2, 3].map(Some));
        assert_eq!(settle(&mut rlc, 0, Some(8)), [(0, true)]);
        assert_eq!(settle(&mut rlc, 1, None), [(1, false)]);
        assert_eq!(settle(&mut rlc, 3, Some(8)), []);
        rlc.forward();
        assert_eq!((rlc.waiting(), rlc.packets()), (50 + 150, 2));
        assert_eq!((rlc.fill(Time::ZERO, 1000), rlc.waiting()), (Some(4), 0));
        assert_eq!(settle(&mut rlc, 4, Some(8)), [(2, true), (3, true)]);
        assert_eq!((rlc.sdus.len(), rlc.window.len()), (0, 0));
    }

    #[test]
    fn a_full_queue_refuses_the_newest() {
        let mut rlc = queue(&[98; 2]);
        assert!(rlc.push(Time::ZERO, packet(9, 98), 299).is_err());
        assert!(rlc.push(Time::ZERO, packet(9, 98), 300).is_ok());
    }
}
