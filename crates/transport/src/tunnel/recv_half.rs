//! The receiving half of a stream: puts parts back into order.

use crate::ranges::Ranges;
use lasthop_units::{Span, Time};
use lasthop_wire::tunnel::Data;
use std::collections::VecDeque;
use std::ops::Range;

/// Data on its way in.
#[derive(Clone, Debug, Default)]
pub(super) struct RecvHalf {
    /// Octets from `base` on; parts that have not come yet are zero.
    buffer: VecDeque<u8>,
    base: u64,
    /// Where what was sent ends, as far as has been seen.
    highest: u64,
    /// What has come at or beyond `base`.
    present: Ranges,
    /// Where the stream ends, once that is known.
    end: Option<u64>,
    /// First offset that the other side may not send.
    limit: u64,
    /// Where parts end, and when (by the sender's clock) their data came into being, in order.
    origins: VecDeque<(u64, Time)>,
    end_read: bool,
}

/// Why a part was not taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The other side may not send this.
    Violation,
    /// There are too many pieces with gaps between them. It may be sent again when some have been filled.
    Scattered,
}

impl RecvHalf {
    pub(super) fn new(limit: u64) -> RecvHalf {
        RecvHalf { limit, ..RecvHalf::default() }
    }

    /// By how much a part would move the end of what was sent.
    pub(super) fn growth(&self, data: &Data<'_>) -> u64 {
        (data.offset + data.bytes.len() as u64).saturating_sub(self.highest)
    }

    /// Where what was sent ends, as far as has been seen.
    pub(super) fn highest(&self) -> u64 {
        self.highest
    }

    /// Where the stream ends, if that is known.
    pub(super) fn end(&self) -> Option<u64> {
        self.end
    }

    /// Octets that were not handed on, with gaps between them.
    pub(super) fn unread(&self) -> u64 {
        self.highest - self.base
    }

    /// True if the sender may stop behind `sent` octets.
    pub(super) fn may_stop_at(&self, sent: u64) -> bool {
        sent >= self.highest && sent <= self.limit && self.end.is_none_or(|end| end == sent)
    }

    /// Takes a part in.
    ///
    /// # Errors
    /// [`Refused`]; nothing has changed then.
    pub(super) fn on_data(&mut self, data: &Data<'_>, sent_at: Time) -> Result<(), Refused> {
        let end = data.offset + data.bytes.len() as u64;
        let contradicts = self.end.is_some_and(|known| end > known || (data.end && end != known));
        // RFC 9000, section 4.5. `present` would not do: what has been read is not in it any more.
        let early = data.end && end < self.highest;
        if end > self.limit || contradicts || early {
            return Err(Refused::Violation);
        }
        let start = data.offset.max(self.base);
        let most = pieces(self.highest.max(end) - self.base);
        if start < end && self.present.len() >= most && self.present.is_apart(&(start..end)) {
            return Err(Refused::Scattered);
        }
        self.highest = self.highest.max(end);
        if data.end {
            self.end = Some(end);
        }
        if start >= end {
            return Ok(());
        }
        let bytes = &data.bytes[(start - data.offset) as usize..];
        let (mut fresh, at) = (false, (start - self.base) as usize);
        self.present.insert(start..end, |_| fresh = true);
        if !fresh {
            return Ok(());
        }
        if at == self.buffer.len() {
            self.buffer.extend(bytes);
        } else {
            let needed = at + bytes.len();
            if needed > self.buffer.len() {
                self.buffer.resize(needed, 0);
            }
            let (front, back) = self.buffer.as_mut_slices();
            let split = front.len().saturating_sub(at).min(bytes.len());
            if split > 0 {
                front[at..at + split].copy_from_slice(&bytes[..split]);
            }
            let behind = (at + split).saturating_sub(front.len());
            back[behind..behind + bytes.len() - split].copy_from_slice(&bytes[split..]);
        }
        // Of very short parts some go without.
        if self.origins.len() < most {
            let place = self.origins.partition_point(|(other, _)| *other < end);
            self.origins.insert(place, (end, sent_at.saturating_sub(data.age)));
        }
        Ok(())
    }

    /// Octets of memory that hold nothing.
    pub(super) fn spare(&self) -> u64 {
        let free = |capacity: usize, len: usize, each: usize| ((capacity - len) * each) as u64;
        free(self.buffer.capacity(), self.buffer.len(), 1)
            + free(self.present.capacity(), self.present.len(), size_of::<Range<u64>>())
            + free(self.origins.capacity(), self.origins.len(), size_of::<(u64, Time)>())
    }

    /// Gives memory back that holds nothing.
    pub(super) fn shrink(&mut self) {
        self.buffer.shrink_to_fit();
        self.present.shrink();
        self.origins.shrink_to_fit();
    }

    /// Octets that can be read now, as far as they lie in one piece.
    pub(super) fn readable(&self) -> &[u8] {
        let ready = self.ready();
        let front = self.buffer.as_slices().0;
        &front[..ready.min(front.len())]
    }

    /// Forgets `count` octets that have been handed on at `now` by the sender's clock; tells for each part that is done how old it
    /// was.
    pub(super) fn consume(&mut self, now: Time, count: usize, mut age: impl FnMut(Span)) {
        let count = count.min(self.ready());
        self.buffer.drain(..count);
        self.base += count as u64;
        self.present.remove_below(self.base);
        while let Some((_, origin)) = self.origins.front().filter(|(end, _)| *end <= self.base) {
            age(now.since(*origin));
            self.origins.pop_front();
        }
    }

    /// True if everything up to the stream's end has been read.
    pub(super) fn is_at_end(&self) -> bool {
        self.end == Some(self.base)
    }

    /// The reader knows that the stream has ended.
    pub(super) fn end_read(&mut self) {
        self.end_read |= self.is_at_end();
    }

    /// True if the reader knows that the stream has ended.
    pub(super) fn is_done(&self) -> bool {
        self.end_read
    }

    /// The window's new end if it is worth telling: a quarter of `window` further than the one told last.
    pub(super) fn window_due(&self, window: u64) -> bool {
        self.end.is_none() && self.base + window >= self.limit + window / 4
    }

    /// Moves the window on; returns its end.
    pub(super) fn open_window(&mut self, window: u64) -> u64 {
        self.limit = self.limit.max(self.base + window);
        self.limit
    }

    fn ready(&self) -> usize {
        let first = self.present.first().filter(|range| range.start <= self.base);
        first.map_or(0, |range| (range.end - self.base) as usize)
    }
}

/// Pieces with gaps between them, and moments at which data came into being, that are kept of so many octets: as many as data in
/// parts of an ordinary length can have, and some.
fn pieces(octets: u64) -> usize {
    32 + usize::try_from(octets / 256).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(offset: u64, bytes: &[u8], end: bool) -> Data<'_> {
        Data { stream: 1, offset, age: Span::from_micros(3), end, bytes }
    }

    #[test]
    fn parts_in_any_order_come_out_in_order() {
        let mut half = RecvHalf::new(100);
        let sent = |us: u64| Time::from_nanos(us * 1000);
        assert_eq!(half.on_data(&part(4, b"efgh", true), sent(20)), Ok(()));
        assert_eq!(half.readable(), b"");
        assert_eq!(half.on_data(&part(0, b"abc", false), sent(10)), Ok(()));
        assert_eq!(half.readable(), b"abc");
        let mut ages = Vec::new();
        half.consume(sent(50), 2, |age| ages.push(age));
        assert_eq!((half.readable(), ages.len()), (b"c".as_slice(), 0));
        assert_eq!(half.on_data(&part(1, b"bcde", false), sent(30)), Ok(()), "a repetition that overlaps");
        assert_eq!(half.readable(), b"cdefgh");
        half.consume(sent(60), 6, |age| ages.push(age));
        assert_eq!(ages, [Span::from_micros(53), Span::from_micros(33), Span::from_micros(43)]);
        assert!(half.is_at_end() && !half.is_done());
    }

    #[test]
    fn what_may_not_be_sent_is_refused() {
        let mut half = RecvHalf::new(8);
        assert_eq!(half.on_data(&part(5, b"abcd", false), Time::ZERO), Err(Refused::Violation), "beyond the window");
        assert_eq!(half.on_data(&part(2, b"cdef", false), Time::ZERO), Ok(()));
        assert_eq!(
            half.on_data(&part(3, b"d", true), Time::ZERO),
            Err(Refused::Violation),
            "an end before what has come"
        );
        assert_eq!(half.on_data(&part(6, b"", true), Time::ZERO), Ok(()));
        assert_eq!(half.on_data(&part(6, b"g", false), Time::ZERO), Err(Refused::Violation), "behind the end");
        assert_eq!(half.on_data(&part(5, b"", true), Time::ZERO), Err(Refused::Violation), "another end");
        assert_eq!(half.on_data(&part(3, b"def", true), Time::ZERO), Ok(()), "the same end once more");
    }

    #[test]
    fn an_end_before_what_has_been_read_is_refused() {
        let mut half = RecvHalf::new(100);
        assert_eq!(half.on_data(&part(0, b"abcdef", false), Time::ZERO), Ok(()));
        half.consume(Time::ZERO, 6, |_| {});
        for (offset, bytes) in [(0, b"".as_slice()), (0, b"abc"), (5, b"")] {
            let early = half.on_data(&part(offset, bytes, true), Time::ZERO);
            assert_eq!(early, Err(Refused::Violation), "{offset} and {bytes:?}");
        }
        assert_eq!((half.end(), half.highest()), (None, 6), "nothing has changed");
        // Read, and waiting behind a gap.
        assert_eq!(half.on_data(&part(8, b"ij", false), Time::ZERO), Ok(()));
        assert_eq!(half.on_data(&part(6, b"g", true), Time::ZERO), Err(Refused::Violation), "before what waits");
        assert_eq!(half.on_data(&part(6, b"ghij", true), Time::ZERO), Ok(()), "the right one");
        half.consume(Time::ZERO, 4, |_| {});
        assert!(half.is_at_end());
        assert_eq!(half.on_data(&part(4, b"ef", true), Time::ZERO), Err(Refused::Violation), "another end, all read");
        assert_eq!(
            half.on_data(&part(10, b"k", false), Time::ZERO),
            Err(Refused::Violation),
            "behind the end, all read"
        );
        assert_eq!(half.on_data(&part(2, b"cdef", false), Time::ZERO), Ok(()), "a late repetition");
    }

    #[test]
    fn scattered_pieces_are_bounded_and_memory_is_returned() {
        let mut half = RecvHalf::new(1 << 20);
        let mut scatter =
            || (0..10_000).filter(|n| half.on_data(&part(3 * n, b"x", false), Time::ZERO).is_ok()).count();
        let (taken, again) = (scatter(), scatter());
        assert!((32..300).contains(&taken) && again < 300, "{taken} pieces, and once more {again}");
        assert_eq!(half.on_data(&part(60_000, b"x", false), Time::ZERO), Ok(()), "further on there is room for some");
        assert_eq!(half.on_data(&part(1, &[0; 30_000], false), Time::ZERO), Ok(()), "gaps may be filled");
        half.consume(Time::ZERO, 30_001, |_| {});
        assert!(half.spare() > 25_000, "{}", half.spare());
        half.shrink();
        assert!(half.spare() < 1000, "{}", half.spare());
        assert_eq!(half.unread(), 30_000);
    }
}
