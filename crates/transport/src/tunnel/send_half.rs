//! The sending half of a stream: what was written and has not been acknowledged from its beginning.

use crate::ranges::Ranges;
use lasthop_units::{Span, Time};
use std::collections::VecDeque;
use std::ops::Range;

/// Data on its way out.
#[derive(Clone, Debug)]
pub(super) struct SendHalf {
    /// Octets from `base` on.
    buffer: VecDeque<u8>,
    base: u64,
    /// First offset that has never been sent.
    next: u64,
    /// What must be sent again.
    lost: Ranges,
    /// What has been acknowledged beyond `base`.
    acked: Ranges,
    /// First offset that the other side does not take yet.
    limit: u64,
    /// Where data ends that came into being at one moment, in order.
    origins: VecDeque<(u64, Time)>,
    end: End,
}

/// How far the end of the stream has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Open,
    /// To be told.
    Due,
    /// Told, not acknowledged.
    Sent,
    Acked,
}

impl SendHalf {
    pub(super) fn new(limit: u64) -> SendHalf {
        SendHalf {
            buffer: VecDeque::new(),
            base: 0,
            next: 0,
            lost: Ranges::default(),
            acked: Ranges::default(),
            limit,
            origins: VecDeque::new(),
            end: End::Open,
        }
    }

    /// Adds data that came into being at `origin`.
    pub(super) fn write(&mut self, bytes: &[u8], origin: Time) {
        debug_assert!(self.end == End::Open, "written behind the end");
        self.buffer.extend(bytes);
        self.origins.push_back((self.written(), origin));
    }

    /// Nothing more will be written.
    pub(super) fn finish(&mut self) {
        if self.end == End::Open {
            self.end = End::Due;
        }
    }

    pub(super) fn on_window(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    /// Octets that could be sent now, had they been written: what the other side would take, less what waits.
    pub(super) fn room(&self) -> u64 {
        if self.end == End::Open { self.limit.saturating_sub(self.written()) } else { 0 }
    }

    /// Octets written that have never been sent.
    pub(super) fn unsent(&self) -> u64 {
        self.written() - self.next
    }

    /// Octets held, for whatever reason.
    pub(super) fn held(&self) -> u64 {
        self.buffer.len() as u64
    }

    /// True if there is something that may be sent if `fresh` octets may be that never were.
    pub(super) fn is_ready(&self, fresh: u64) -> bool {
        let ends = self.end == End::Due && self.next == self.written();
        !self.lost.is_empty() || ends || fresh > 0 && self.has_fresh()
    }

    /// True if there is something within the window that was never sent.
    pub(super) fn has_fresh(&self) -> bool {
        self.next < self.written().min(self.limit)
    }

    /// Octets that were sent, and those before them.
    pub(super) fn sent(&self) -> u64 {
        self.next
    }

    /// The next part of at most `most` octets, of which `fresh` may never have been sent, and whether the stream ends with it;
    /// counts as sent.
    pub(super) fn take(&mut self, most: u64, fresh: u64) -> Option<(Range<u64>, bool)> {
        let again = (most > 0).then(|| self.lost.take_lowest(most)).flatten();
        let range = again.unwrap_or_else(|| {
            let end = self.written().min(self.limit).min(self.next + most.min(fresh));
            let range = self.next..end.max(self.next);
            self.next = range.end;
            range
        });
        let tells_end = matches!(self.end, End::Due | End::Sent) && range.end == self.written();
        if range.is_empty() && !(tells_end && self.end == End::Due) {
            return None;
        }
        if tells_end {
            self.end = End::Sent;
        }
        Some((range, tells_end))
    }

    /// Appends the octets of a part to `out`.
    pub(super) fn copy(&self, range: &Range<u64>, out: &mut Vec<u8>) {
        // Parts are only ever taken from what is held.
        let index = |offset: u64| (offset - self.base) as usize;
        let (from, to) = (index(range.start), index(range.end));
        let (front, back) = self.buffer.as_slices();
        out.extend_from_slice(&front[from.min(front.len())..to.min(front.len())]);
        let behind = |at: usize| at.saturating_sub(front.len());
        out.extend_from_slice(&back[behind(from)..behind(to)]);
    }

    /// How old the octet at `offset` is.
    pub(super) fn age(&self, now: Time, offset: u64) -> Span {
        let index = self.origins.partition_point(|(end, _)| *end <= offset);
        self.origins.get(index).map_or(Span::ZERO, |(_, origin)| now.since(*origin))
    }

    pub(super) fn on_acked(&mut self, range: Range<u64>, end: bool) {
        if end {
            self.end = End::Acked;
        }
        if range.end > self.base && !range.is_empty() {
            self.acked.insert(range.start.max(self.base)..range.end, |_| {});
        }
        if let Some(whole) = self.acked.take_front_at(self.base) {
            let gone = (whole.end - self.base) as usize;
            self.buffer.drain(..gone.min(self.buffer.len()));
            self.base = whole.end;
            self.lost.remove_below(self.base);
            while self.origins.front().is_some_and(|(end, _)| *end <= self.base) {
                self.origins.pop_front();
            }
        }
    }

    pub(super) fn on_lost(&mut self, range: Range<u64>, end: bool) {
        if end && self.end == End::Sent {
            self.end = End::Due;
        }
        // Parts of it may have arrived with an earlier copy.
        let mut at = range.start.max(self.base);
        let holes: Vec<Range<u64>> = {
            let mut holes = Vec::new();
            for acked in self.acked.iter() {
                if acked.start >= range.end {
                    break;
                }
                if acked.start > at {
                    holes.push(at..acked.start);
                }
                at = at.max(acked.end);
            }
            if at < range.end {
                holes.push(at..range.end);
            }
            holes
        };
        for hole in holes {
            self.lost.insert(hole, |_| {});
        }
    }

    /// True if everything, the end too, has been acknowledged.
    pub(super) fn is_done(&self) -> bool {
        self.end == End::Acked && self.buffer.is_empty()
    }

    fn written(&self) -> u64 {
        self.base + self.buffer.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As if there were no other streams.
    const MANY: u64 = 1 << 40;

    fn half() -> SendHalf {
        let mut half = SendHalf::new(100);
        half.write(&(0..80).collect::<Vec<u8>>(), Time::from_nanos(5_000));
        half
    }

    fn octets(half: &SendHalf, range: Range<u64>) -> Vec<u8> {
        let mut out = Vec::new();
        half.copy(&range, &mut out);
        out
    }

    #[test]
    fn lost_parts_go_first_and_acknowledged_ones_never_again() {
        let mut half = half();
        assert_eq!(half.take(30, MANY), Some((0..30, false)));
        assert_eq!(half.take(30, MANY), Some((30..60, false)));
        half.on_acked(10..20, false);
        half.on_lost(0..30, false);
        assert_eq!(half.take(30, MANY), Some((0..10, false)));
        assert_eq!(octets(&half, 5..10), [5, 6, 7, 8, 9]);
        assert_eq!(half.take(30, MANY), Some((20..30, false)));
        assert_eq!(half.take(30, MANY), Some((60..80, false)));
        assert_eq!(half.take(30, MANY), None);
        half.on_acked(0..10, false);
        assert_eq!((half.held(), half.age(Time::from_nanos(7_000), 25)), (60, Span::from_micros(2)));
        assert_eq!(octets(&half, 20..22), [20, 21]);
    }

    #[test]
    fn nothing_leaves_beyond_the_window() {
        let mut half = SendHalf::new(10);
        half.write(&[1; 25], Time::ZERO);
        assert_eq!(
            (half.take(100, MANY), half.take(100, MANY), half.is_ready(MANY)),
            (Some((0..10, false)), None, false)
        );
        half.on_window(20);
        half.on_window(15);
        assert_eq!((half.take(100, MANY), half.room()), (Some((10..20, false)), 0));
    }

    #[test]
    fn no_more_leaves_for_the_first_time_than_all_streams_may_send() {
        let mut half = half();
        assert_eq!(half.take(30, 10), Some((0..10, false)));
        half.finish();
        assert_eq!((half.take(30, 0), half.is_ready(0), half.has_fresh()), (None, false, true));
        half.on_lost(0..10, false);
        assert!(half.is_ready(0), "what was sent before may be sent again");
        assert_eq!(half.take(30, 0), Some((0..10, false)));
        assert_eq!((half.take(100, 70), half.sent()), (Some((10..80, true)), 80));
    }

    #[test]
    fn the_end_is_told_until_it_is_acknowledged() {
        let mut half = half();
        half.finish();
        assert_eq!(half.take(80, MANY), Some((0..80, true)));
        assert!(!half.is_ready(MANY));
        half.on_lost(0..80, true);
        half.on_acked(0..80, false);
        assert_eq!(half.take(10, MANY), Some((80..80, true)), "the end by itself");
        half.on_acked(80..80, true);
        assert!(half.is_done());
    }
}
