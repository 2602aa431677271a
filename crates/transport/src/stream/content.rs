//! The octets of a stream that an end must keep: those that may have to be sent again, and those that have come and were not read.

use std::collections::VecDeque;

/// Octets of a stream from `base` on.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    base: u64,
    octets: VecDeque<u8>,
}

impl Content {
    /// Where the first octet stands that is kept.
    pub(super) fn base(&self) -> u64 {
        self.base
    }

    /// How many octets are kept.
    pub(super) fn len(&self) -> usize {
        self.octets.len()
    }

    /// Adds octets at the end.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.octets.extend(bytes);
    }

    /// Puts octets where they stand in the stream. What lies before `from` is left as it is, and what lies in between and has not come is zero.
    pub(super) fn put(&mut self, from: u64, at: u64, bytes: &[u8]) {
        let from = from.max(self.base);
        let skipped = usize::try_from(from.saturating_sub(at)).unwrap_or(usize::MAX).min(bytes.len());
        let (at, bytes) = (at + skipped as u64, &bytes[skipped..]);
        let Some(start) = at.checked_sub(self.base).and_then(|start| usize::try_from(start).ok()) else { return };
        if bytes.is_empty() {
            return;
        }
        let end = start + bytes.len();
        if self.octets.len() < end {
            self.octets.resize(end, 0);
        }
        self.octets.range_mut(start..end).zip(bytes).for_each(|(place, octet)| *place = *octet);
    }

    /// Appends `len` octets from `at` on to `out`; those that are not kept are left out.
    pub(super) fn copy(&self, at: u64, len: usize, out: &mut Vec<u8>) {
        let start = usize::try_from(at.saturating_sub(self.base)).unwrap_or(usize::MAX).min(self.octets.len());
        let end = start.saturating_add(len).min(self.octets.len());
        let (first, second) = self.octets.as_slices();
        let behind = |place: usize| place.saturating_sub(first.len());
        out.extend_from_slice(&first[start.min(first.len())..end.min(first.len())]);
        out.extend_from_slice(&second[behind(start)..behind(end)]);
    }

    /// Forgets everything before `at`.
    pub(super) fn forget(&mut self, at: u64) {
        let count = usize::try_from(at.saturating_sub(self.base)).unwrap_or(usize::MAX).min(self.octets.len());
        self.octets.drain(..count);
        self.base += count as u64;
    }

    /// Moves octets before `upto` into `out`, up to its length, and says how many.
    pub(super) fn take(&mut self, upto: u64, out: &mut [u8]) -> usize {
        let there = usize::try_from(upto.saturating_sub(self.base)).unwrap_or(usize::MAX);
        let count = there.min(self.octets.len()).min(out.len());
        out.iter_mut().zip(self.octets.drain(..count)).for_each(|(place, octet)| *place = octet);
        self.base += count as u64;
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_stay_where_they_stand_in_the_stream() {
        let mut content = Content::default();
        content.put(0, 3, b"def");
        content.put(0, 0, b"abc");
        let mut out = [0; 4];
        assert_eq!((content.take(6, &mut out), &out), (4, b"abcd"));
        // What was read is not written again, nor what is below the mark.
        content.put(5, 2, b"----g");
        let mut seen = Vec::new();
        content.copy(4, 9, &mut seen);
        assert_eq!((seen.as_slice(), content.base(), content.len()), (&b"e-g"[..], 4, 3));
        content.forget(6);
        assert_eq!((content.base(), content.len()), (6, 1));
        content.forget(100);
        assert_eq!((content.base(), content.len()), (7, 0));
    }

    #[test]
    fn copies_run_over_the_seam_of_the_ring() {
        let mut content = Content::default();
        for round in 0..50u8 {
            content.push(&[round; 7]);
            let mut seen = Vec::new();
            content.copy(content.base(), content.len(), &mut seen);
            assert_eq!(seen.len(), content.len());
            assert_eq!(seen.last(), Some(&round));
            content.forget(u64::from(round) * 7 - u64::from(round.min(3)) * 2);
        }
    }
}
