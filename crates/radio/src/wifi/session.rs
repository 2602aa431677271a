//! The frames between one transmitter and one receiver in one class: numbering, retries, BlockAck window, reordering.
//! Source:     IEEE 802.11-2020: 10.25.6 and 10.25.7 (HT-immediate BlockAck, originator and recipient windows, BlockAckReq
//!             after giving up), 10.3.4.4 (retry limit), 10.13 (A-MPDU).
//! Deviations: agreements exist from the start, without an ADDBA exchange. When BlockAckReqs go unanswered as often as
//!             the retry limit allows, the receiver lets go of what it holds (drivers do so by a timer).
//! Validity:   windows of up to 256 (802.11ax; 64 before).
//! Checked by: tests::*, wifi::tests::*, tests/integration/properties.rs, tests/integration/mpdus.rs

use lasthop_units::Time;
use std::collections::VecDeque;

/// Sequence numbers are modulo this.
const SEQUENCES: u16 = 4_096;

/// MPDUs in sequence from the oldest that is not done with. Both ends are modelled here: what the receiver knows stands
/// beside what the transmitter knows.
#[derive(Clone, Debug, Default)]
pub(super) struct Session {
    pub window: VecDeque<Entry>,
    /// Sequence number of the window's front.
    first: u16,
    /// Entries at the front that the receiver has passed up or skipped.
    pub released: usize,
    /// The transmitter gave frames up and must tell the receiver by BlockAckReq.
    pub request: bool,
    /// BlockAckReqs that failed in a row.
    pub request_failures: u8,
    /// Packets in the window, and their network-layer bytes.
    pub packets: usize,
    pub bytes: u64,
    /// Frames in a row that went unanswered, for a rate control that wants to know.
    pub unanswered: u8,
}

/// One MPDU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Its packet; the first of an A-MSDU, from which the others follow.
    pub id: u32,
    pub packets: u16,
    /// Network-layer length of its packets.
    pub len: u16,
    /// Length on the air.
    pub mpdu: u16,
    /// When contention for the first frame with it began; with a BlockAck agreement, when that frame was built.
    pub head_at: Time,
    /// Failed attempts.
    pub failures: u8,
    /// In the PPDU that is on the air or waits for its answer.
    pub sent: bool,
    /// It was whole in the PPDU that came last.
    pub heard: bool,
    /// The receiver has it.
    pub got: bool,
    pub got_at: Time,
    /// Mode and A-MPDU that it came in.
    pub mode: u16,
    pub ampdu: u32,
    /// The transmitter knows that the receiver has it.
    pub acked: bool,
    /// The transmitter gave it up.
    pub dead: bool,
}

// The window is gone through several times a frame: what grows here slows every hop down.
const _: () = assert!(size_of::<Entry>() <= 40);

impl Entry {
    /// An MPDU of `mpdu` octets with one packet of `len`.
    #[inline]
    pub fn new(id: u32, len: u32, mpdu: u32) -> Entry {
        let (len, mpdu, head_at) = (short(len), short(mpdu), Time::ZERO);
        let (sent, heard, got, acked, dead, got_at) = (false, false, false, false, false, Time::ZERO);
        Entry {
            id,
            packets: 1,
            len,
            mpdu,
            head_at,
            failures: 0,
            sent,
            heard,
            got,
            got_at,
            mode: 0,
            ampdu: 0,
            acked,
            dead,
        }
    }

    /// To be sent, again or for the first time.
    #[inline]
    pub fn is_open(&self) -> bool {
        !self.acked && !self.dead
    }
}

/// Lengths of MPDUs fit: 11 454 octets at most.
#[inline]
pub(super) fn short(len: u32) -> u16 {
    debug_assert!(len <= u32::from(u16::MAX));
    len as u16
}

impl Session {
    /// Numbers an MPDU; `size` is that of the BlockAck window.
    #[inline]
    pub fn push(&mut self, entry: Entry, size: usize) {
        if self.window.capacity() == 0 {
            // Most sessions of a large hop are never used; those that are do not grow again, unless by the one MPDU
            // that an A-MSDU may leave beyond the window.
            self.window.reserve_exact(size);
        }
        self.packets += usize::from(entry.packets);
        self.bytes += u64::from(entry.len);
        self.window.push_back(entry);
    }

    /// Sequence number of the MPDU at a place of the window.
    pub fn sequence(&self, place: usize) -> u16 {
        self.first.wrapping_add(place as u16) % SEQUENCES
    }

    /// The oldest MPDU that has to be sent again or made up for.
    #[inline]
    pub fn pending(&self) -> Option<&Entry> {
        if self.request { self.window.front() } else { self.window.iter().find(|entry| entry.is_open()) }
    }

    /// The next MPDU that the receiver passes up, in sequence. A hole stops it unless `skip` says that the frames the
    /// transmitter gave up will not come any more.
    #[inline]
    pub fn release(&mut self, skip: bool) -> Option<Entry> {
        while let Some(entry) = self.window.get(self.released) {
            if entry.got {
                self.released += 1;
                return Some(*entry);
            }
            if !(entry.dead && skip) {
                return None;
            }
            self.released += 1;
        }
        None
    }

    /// The transmitter has had its answer, or none: settles every MPDU of the PPDU and hands those that are done with,
    /// acknowledged or given up, to `done`. With `request_on_loss` a loss has to be reported to the receiver.
    pub fn settle(&mut self, answered: bool, limit: u8, request_on_loss: bool, mut done: impl FnMut(&Entry)) {
        for entry in self.window.iter_mut().filter(|entry| entry.sent) {
            entry.sent = false;
            if answered && entry.got {
                entry.acked = true;
                done(entry);
                continue;
            }
            entry.failures += 1;
            if entry.failures >= limit {
                entry.dead = true;
                self.request |= request_on_loss;
                done(entry);
            }
        }
    }

    /// The PPDU has not gone out: its MPDUs wait on.
    pub fn call_off(&mut self) {
        self.window.iter_mut().for_each(|entry| entry.sent = false);
    }

    /// Takes MPDUs off the front that both ends are done with.
    #[inline]
    pub fn retire(&mut self) -> Option<Entry> {
        let front = self.window.front()?;
        // Without a BlockAck agreement the receiver waits for nothing: a frame given up leaves no hole.
        let done = front.acked && self.released > 0 || front.dead && !self.request;
        if !done {
            return None;
        }
        self.released = self.released.saturating_sub(1);
        let entry = self.window.pop_front()?;
        self.packets -= usize::from(entry.packets);
        self.first = self.first.wrapping_add(1);
        self.bytes -= u64::from(entry.len);
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(count: u32) -> Session {
        let mut session = Session::default();
        for id in 0..count {
            session.push(Entry::new(id, 100, 138), count as usize);
        }
        session
    }

    fn send(session: &mut Session, got: &[u32], answered: bool, limit: u8) -> Vec<u32> {
        for entry in &mut session.window {
            entry.sent = entry.is_open();
            entry.got |= entry.sent && got.contains(&entry.id);
        }
        let released: Vec<u32> = std::iter::from_fn(|| session.release(false)).map(|entry| entry.id).collect();
        session.settle(answered, limit, true, |_| ());
        while session.retire().is_some() {}
        released
    }

    #[test]
    fn a_hole_holds_back_what_follows_until_it_is_filled() {
        let mut session = session(4);
        assert_eq!(send(&mut session, &[0, 2, 3], true, 7), [0]);
        assert_eq!(session.pending().map(|entry| entry.id), Some(1));
        assert_eq!(send(&mut session, &[1], true, 7), [1, 2, 3]);
        assert!(session.window.is_empty() && session.bytes == 0);
    }

    #[test]
    fn a_lost_block_ack_repeats_frames_that_are_passed_up_once() {
        let mut session = session(2);
        assert_eq!(send(&mut session, &[0, 1], false, 7), [0, 1]);
        assert_eq!(session.pending().map(|entry| entry.id), Some(0));
        assert!(send(&mut session, &[0, 1], true, 7).is_empty());
        assert!(session.window.is_empty());
    }

    #[test]
    fn the_largest_window_waits_for_its_first_frame_across_wraps() {
        let mut session = Session { first: 4_000, ..session(256) };
        assert_eq!((session.sequence(95), session.sequence(96), session.sequence(255)), (4_095, 0, 159));
        let all_but_two: Vec<u32> = (1..256).filter(|id| *id != 200).collect();
        assert!(send(&mut session, &all_but_two, true, 7).is_empty());
        assert_eq!(session.window.iter().filter(|entry| entry.is_open()).count(), 2);
        let until_the_second: Vec<u32> = (0..200).collect();
        assert_eq!(send(&mut session, &[0], true, 7), until_the_second);
        assert_eq!((session.sequence(0), session.window.len(), session.packets), (104, 56, 56));
        let rest: Vec<u32> = (200..256).collect();
        assert_eq!(send(&mut session, &[200], true, 7), rest);
        assert!(session.window.is_empty() && session.sequence(0) == 160 && session.bytes == 0);
    }

    #[test]
    fn a_hole_that_was_given_up_is_skipped_after_a_request() {
        let mut session = session(3);
        assert!(send(&mut session, &[1, 2], true, 1).is_empty());
        assert!(session.request && session.window.len() == 3);
        // The request has arrived and was answered.
        let released: Vec<u32> = std::iter::from_fn(|| session.release(true)).map(|entry| entry.id).collect();
        assert_eq!(released, [1, 2]);
        session.request = false;
        while session.retire().is_some() {}
        assert!(session.window.is_empty() && session.released == 0);
    }
}
