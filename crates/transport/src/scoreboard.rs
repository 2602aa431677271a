//! What is in the network: every segment sent and not yet cumulatively acknowledged.
//! Source:     RFC 6675 sections 2 to 4 (pipe, the order of retransmission); losses are marked by RFC 8985, with
//!             deadlines that the caller supplies, by RFC 6675's IsLost, or one by one as the caller says.
//! Equations:  pipe = payload in state `Sent` or `Resent`, less what duplicate acknowledgements have told of without naming it
//! Deviations: none.     Validity: segments are never split once sent; a cumulative ACK may end inside one.
//! Checked by: tests::*, tests/integration/props.rs
//!
//! Cost: everything is amortised constant time per segment sent. First transmissions leave in sequence order, so those
//! that RACK has not judged yet begin at a cursor that only moves on; retransmissions wait in a queue of their own,
//! in order of departure.

use crate::delivery_rate::Snapshot;
use crate::rack::Rack;
use crate::ranges::Ranges;
use lasthop_units::{Span, Time};
use std::collections::VecDeque;
use std::ops::Range;

/// As many reports of what was sent later make a loss (RFC 5681, section 3.2; RFC 6675, section 3).
pub(crate) const DUPLICATES: u64 = 3;

/// One segment. Offsets are those of [`crate::sequence`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// Its first offset.
    pub(crate) start: u64,
    /// Sequence space: payload, and one for FIN.
    pub(crate) len: u32,
    /// True if it ends with FIN.
    pub(crate) fin: bool,
    /// True if it was sent more than once.
    pub(crate) resent: bool,
    /// When its latest copy left.
    pub(crate) sent_at: Time,
    /// Delivery-rate state at that moment.
    pub(crate) snapshot: Snapshot,
    state: State,
}

impl Segment {
    /// The offset after its last.
    pub(crate) fn end(&self) -> u64 {
        self.start + u64::from(self.len)
    }
}

/// Where a segment is thought to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// In the network, for the first time.
    Sent,
    /// Reported by SACK.
    Sacked,
    /// Out of the network, to be sent again.
    Lost,
    /// In the network again.
    Resent,
}

/// The ring of segments between the cumulative acknowledgement and the next new offset.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    segments: VecDeque<Segment>,
    una: u64,
    nxt: u64,
    sacked: Ranges,
    sacked_segments: usize,
    lost_segments: usize,
    in_flight: u64,
    /// Payload that has arrived, nobody knows which: a duplicate acknowledgement without SACK tells of one segment.
    departed: u64,
    /// No segment that begins below this is lost.
    first_lost: u64,
    /// Every first transmission below this has been judged: SACKed, lost or retransmitted.
    judged: u64,
    /// Retransmissions by departure: first offset and departure. Entries go stale; the segment itself tells.
    resent: VecDeque<(u64, Time)>,
}

impl Scoreboard {
    /// An empty scoreboard. Its first segment will begin at `start`.
    pub(crate) fn new(start: u64) -> Scoreboard {
        Scoreboard { una: start, nxt: start, first_lost: start, judged: start, ..Scoreboard::default() }
    }

    /// First offset not cumulatively acknowledged (SND.UNA).
    pub(crate) fn una(&self) -> u64 {
        self.una
    }

    /// Next new offset (SND.NXT).
    pub(crate) fn nxt(&self) -> u64 {
        self.nxt
    }

    /// Sequence space in the network.
    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight.saturating_sub(self.departed)
    }

    /// `len` more has arrived, nobody knows which.
    pub(crate) fn depart(&mut self, len: u64) {
        self.departed = (self.departed + len).min(self.in_flight);
    }

    /// So much of what had arrived unnamed is acknowledged now.
    pub(crate) fn name_departures(&mut self, len: u64) {
        self.departed = self.departed.saturating_sub(len).min(self.in_flight);
    }

    /// Everything that had arrived unnamed is acknowledged, or counts no more.
    pub(crate) fn forget_departures(&mut self) {
        self.departed = 0;
    }

    /// Segments reported by SACK above the cumulative acknowledgement.
    pub(crate) fn sacked_segments(&self) -> usize {
        self.sacked_segments
    }

    /// Segments not yet cumulatively acknowledged.
    pub(crate) fn len(&self) -> usize {
        self.segments.len()
    }

    /// True if everything sent has been acknowledged.
    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// True if something waits to be sent again.
    pub(crate) fn has_lost(&self) -> bool {
        self.lost_segments > 0
    }

    /// A new segment of `len` leaves.
    pub(crate) fn push(&mut self, now: Time, len: u32, fin: bool, snapshot: Snapshot) -> Segment {
        let segment = Segment { start: self.nxt, len, fin, resent: false, sent_at: now, snapshot, state: State::Sent };
        self.segments.push_back(segment);
        self.nxt = segment.end();
        self.in_flight += u64::from(len);
        segment
    }

    /// The lost segment to be sent next: the lowest.
    pub(crate) fn next_lost(&mut self) -> Option<usize> {
        if self.lost_segments == 0 {
            return None;
        }
        let from = self.index_of(self.first_lost);
        let index = (from..self.segments.len()).find(|i| self.segments[*i].state == State::Lost)?;
        self.first_lost = self.segments[index].start;
        Some(index)
    }

    /// When the latest copy of the first segment that is not acknowledged left; `None` if there is no such segment.
    pub(crate) fn first_sent_at(&self) -> Option<Time> {
        self.segments.front().map(|segment| segment.sent_at)
    }

    /// The segment at `index`.
    pub(crate) fn get(&self, index: usize) -> &Segment {
        &self.segments[index]
    }

    /// The segment at `index` leaves again.
    pub(crate) fn resend(&mut self, now: Time, index: usize, snapshot: Snapshot) -> Segment {
        let segment = &mut self.segments[index];
        match segment.state {
            State::Lost => {
                self.lost_segments -= 1;
                self.in_flight += u64::from(segment.len);
            }
            State::Sent | State::Resent => {}
            State::Sacked => unreachable!("a segment that has arrived is never sent again"),
        }
        segment.state = State::Resent;
        segment.resent = true;
        segment.sent_at = now;
        segment.snapshot = snapshot;
        self.resent.push_back((segment.start, now));
        *segment
    }

    /// The last segment, if it has not been SACKed: what a tail loss probe repeats.
    pub(crate) fn last_outstanding(&self) -> Option<usize> {
        let last = self.segments.len().checked_sub(1)?;
        (self.segments[last].state != State::Sacked).then_some(last)
    }

    /// Everything below `upto` is acknowledged. Calls `delivered` with each segment of which something is reported for
    /// the first time, and how much. Returns by how much the acknowledgement advanced.
    pub(crate) fn acknowledge(&mut self, upto: u64, mut delivered: impl FnMut(&Segment, u64)) -> u64 {
        if upto <= self.una {
            return 0;
        }
        while let Some(&first) = self.segments.front() {
            if first.start >= upto {
                break;
            }
            let covered = upto.min(first.end()) - first.start;
            match first.state {
                State::Sent | State::Resent => self.in_flight -= covered,
                State::Sacked | State::Lost => {}
            }
            if first.state != State::Sacked {
                delivered(&first, covered);
            }
            if covered < u64::from(first.len) {
                let rest = self.segments.front_mut().expect("just seen");
                // A part of a segment can be acknowledged when a middle box or an odd receiver splits it.
                rest.start = upto;
                rest.len -= u32::try_from(covered).expect("shorter than the segment");
                break;
            }
            match first.state {
                State::Sacked => self.sacked_segments -= 1,
                State::Lost => self.lost_segments -= 1,
                State::Sent | State::Resent => {}
            }
            self.segments.pop_front();
        }
        let advanced = upto - self.una;
        self.una = upto;
        self.sacked.remove_below(upto);
        self.first_lost = self.first_lost.max(upto);
        self.judged = self.judged.max(upto);
        while self.resent.front().is_some_and(|(start, _)| *start < upto) {
            self.resent.pop_front();
        }
        advanced
    }

    /// A SACK block reports `block`. Calls `delivered` with each segment that is newly reported whole.
    pub(crate) fn sack(&mut self, block: Range<u64>, mut delivered: impl FnMut(&Segment, u64)) {
        let block = block.start.max(self.una)..block.end.min(self.nxt);
        if block.is_empty() {
            return;
        }
        let mut fresh: [Option<Range<u64>>; 4] = Default::default();
        let mut count = 0;
        let mut sacked = std::mem::take(&mut self.sacked);
        let whole = sacked.insert(block, |part| {
            // More than four holes filled by one block is rare: the last entry then spans the rest, and segments in
            // it that were SACKed before are recognised by their state.
            match fresh.get_mut(count) {
                Some(slot) => {
                    *slot = Some(part);
                    count += 1;
                }
                None => fresh[3].as_mut().expect("four were stored").end = part.end,
            }
        });
        self.sacked = sacked;
        for part in fresh.into_iter().flatten() {
            let mut index = self.index_of(part.start);
            while let Some(segment) = self.segments.get_mut(index).filter(|s| s.start < part.end) {
                index += 1;
                if segment.start < whole.start || segment.end() > whole.end || segment.state == State::Sacked {
                    continue;
                }
                match segment.state {
                    State::Sent | State::Resent => self.in_flight -= u64::from(segment.len),
                    State::Lost => self.lost_segments -= 1,
                    State::Sacked => unreachable!("skipped above"),
                }
                segment.state = State::Sacked;
                self.sacked_segments += 1;
                delivered(segment, u64::from(segment.len));
            }
        }
    }

    /// Marks lost what `rack` says is lost by `now`, and calls `marked` with each such segment. Returns how much was
    /// marked, and when to look again.
    pub(crate) fn detect_losses(
        &mut self,
        now: Time,
        rack: &Rack,
        reorder_window: Span,
        mut marked: impl FnMut(&Segment),
    ) -> (u64, Option<Time>) {
        let (mut lost, mut again) = (0, None::<Time>);
        let mut index = self.index_of(self.judged);
        while let Some(segment) = self.segments.get(index) {
            if segment.state == State::Sent {
                match rack.lost_at(segment.sent_at, segment.end(), reorder_window) {
                    Some(at) if at <= now => lost += self.mark_lost(index, &mut marked),
                    Some(at) => {
                        again = Some(at);
                        break;
                    }
                    None => break,
                }
            }
            self.judged = self.segments[index].end();
            index += 1;
        }
        while let Some(&(start, sent_at)) = self.resent.front() {
            let index = self.index_of(start);
            let current = self.segments.get(index).filter(|s| {
                // Anything else: arrived, lost again, or sent once more and queued anew.
                s.start == start && s.sent_at == sent_at && s.state == State::Resent
            });
            if let Some(segment) = current {
                match rack.lost_at(segment.sent_at, segment.end(), reorder_window) {
                    Some(at) if at <= now => lost += self.mark_lost(index, &mut marked),
                    Some(at) => {
                        again = Some(again.map_or(at, |earlier| earlier.min(at)));
                        break;
                    }
                    None => break,
                }
            }
            self.resent.pop_front();
        }
        (lost, again)
    }

    /// Marks lost what RFC 6675's IsLost says of first transmissions: three parts above it, or more than two segments of `mss`, are reported.
    /// Calls `marked` with each such segment. Returns how much was marked.
    pub(crate) fn count_losses(&mut self, mss: u64, mut marked: impl FnMut(&Segment)) -> u64 {
        let (mut parts, mut above) = (0, 0);
        let enough = self.sacked.iter().rev().find(|range| {
            parts += 1;
            above += range.end - range.start;
            parts >= DUPLICATES || above > mss * (DUPLICATES - 1)
        });
        let Some(limit) = enough.map(|range| range.start) else { return 0 };
        let mut lost = 0;
        let mut index = self.index_of(self.judged);
        while let Some(segment) = self.segments.get(index).filter(|segment| segment.end() <= limit) {
            let (state, end) = (segment.state, segment.end());
            if state == State::Sent {
                lost += self.mark_lost(index, &mut marked);
            }
            self.judged = end;
            index += 1;
        }
        lost
    }

    /// Marks the first segment lost, unless it waits already to be sent again. Calls `marked` with it. Returns how much was marked.
    pub(crate) fn lose_first(&mut self, mut marked: impl FnMut(&Segment)) -> u64 {
        let outstanding = self.segments.front().is_some_and(|head| matches!(head.state, State::Sent | State::Resent));
        if outstanding { self.mark_lost(0, &mut marked) } else { 0 }
    }

    /// The retransmission timer expired: marks lost the head and everything else sent longer than `patience` ago. If
    /// the head counts as SACKed the receiver has reneged, and all reports are forgotten (RFC 2018, section 8). Calls
    /// `marked` with each segment that was in the network.
    pub(crate) fn time_out(&mut self, now: Time, patience: Span, mut marked: impl FnMut(&Segment)) -> u64 {
        if self.segments.front().is_some_and(|head| head.state == State::Sacked) {
            self.sacked.clear();
            self.sacked_segments = 0;
            for segment in self.segments.iter_mut().filter(|s| s.state == State::Sacked) {
                // Out of the network as far as anyone knows; `Lost` keeps the pipe's sum right.
                segment.state = State::Lost;
                self.lost_segments += 1;
            }
        }
        let mut lost = 0;
        for index in 0..self.segments.len() {
            let segment = &self.segments[index];
            let outstanding = matches!(segment.state, State::Sent | State::Resent);
            if outstanding && (index == 0 || segment.sent_at + patience <= now) {
                lost += self.mark_lost(index, &mut marked);
            }
        }
        self.first_lost = self.una;
        lost
    }

    /// Nothing of what counts as lost is: all of it is in the network.
    pub(crate) fn restore_lost(&mut self) {
        for segment in self.segments.iter_mut().filter(|segment| segment.state == State::Lost) {
            segment.state = if segment.resent { State::Resent } else { State::Sent };
            self.in_flight += u64::from(segment.len);
        }
        self.lost_segments = 0;
        self.first_lost = self.nxt;
    }

    fn mark_lost(&mut self, index: usize, marked: &mut impl FnMut(&Segment)) -> u64 {
        let segment = &mut self.segments[index];
        debug_assert!(matches!(segment.state, State::Sent | State::Resent), "{segment:?} is not in the network");
        segment.state = State::Lost;
        self.in_flight -= u64::from(segment.len);
        self.lost_segments += 1;
        self.first_lost = self.first_lost.min(segment.start);
        marked(segment);
        u64::from(segment.len)
    }

    /// The index of the segment that holds `offset`, or of the first one after it.
    fn index_of(&self, offset: u64) -> usize {
        if offset <= self.una {
            return 0;
        }
        self.segments.partition_point(|s| s.end() <= offset)
    }

    /// True if the sums agree with the segments: what every test asserts after every step.
    #[cfg(test)]
    pub(crate) fn is_consistent(&self) -> bool {
        let count = |state| self.segments.iter().filter(|s| s.state == state).count();
        let pipe: u64 = self
            .segments
            .iter()
            .filter(|s| matches!(s.state, State::Sent | State::Resent))
            .map(|s| u64::from(s.len))
            .sum();
        let gapless =
            self.segments.iter().try_fold(self.una, |at, s| (s.start == at).then(|| s.end())) == Some(self.nxt);
        let lowest_lost = self.segments.iter().find(|s| s.state == State::Lost).map(|s| s.start);
        gapless
            && pipe == self.in_flight
            && count(State::Sacked) == self.sacked_segments
            && count(State::Lost) == self.lost_segments
            && lowest_lost.is_none_or(|start| start >= self.first_lost)
    }
}

#[cfg(test)]
mod tests;
