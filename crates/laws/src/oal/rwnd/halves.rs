//! The smallest of a half round trip's samples of the last ten seconds.
//! Source:     own.
//! Equations:  min over bins b with now / 2^31 ns - epoch(b) < 5.
//! Symbols:    none.
//! Deviations: the window is 8.6 to 10.7 s long, by where in a bin `now` falls. A ring of bins needs no memory of
//!             single samples, and an eBPF program can keep it.
//! Validity:   samples up to 4.29 s; longer ones count as that.
//! Checked by: tests below.

use lasthop_units::{Span, Time};

/// Bins in the ring.
pub const BINS: usize = 5;
/// A bin is `2^31` ns long: an epoch is a shift away from a time.
pub(super) const EPOCH_SHIFT: u32 = 31;

/// Minima of the newest bins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Half {
    bins: [Bin; BINS],
}

/// The smallest sample of one bin.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Bin {
    /// The bin's number since time zero, plus one: 0 means that the bin is empty.
    pub epoch: u32,
    /// The smallest sample, nanoseconds.
    pub min_ns: u32,
}

impl Half {
    /// Folds a sample taken at `now` in.
    pub fn add(&mut self, now: Time, sample: Span) {
        let sample = u32::try_from(sample.as_nanos()).unwrap_or(u32::MAX);
        let epoch = epoch(now);
        let bin = &mut self.bins[epoch as usize % BINS];
        if bin.epoch != epoch || sample < bin.min_ns {
            *bin = Bin { epoch, min_ns: sample };
        }
    }

    /// The smallest sample of the last ten seconds; `None` if there was none.
    pub fn min(&self, now: Time) -> Option<Span> {
        let epoch = epoch(now);
        let recent = |bin: &&Bin| bin.epoch != 0 && (epoch.wrapping_sub(bin.epoch) as usize) < BINS;
        self.bins.iter().filter(recent).map(|bin| Span::from_nanos(u64::from(bin.min_ns))).min()
    }
}

/// The number of the bin that `now` falls into, never 0 in the 292 years after time zero.
fn epoch(now: Time) -> u32 {
    ((now.as_nanos() >> EPOCH_SHIFT) as u32).wrapping_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_recent_sample_wins_and_old_ones_are_forgotten() {
        let mut half = Half::default();
        let at = Time::ZERO + Span::from_secs(100);
        assert_eq!(half.min(at), None);
        half.add(at, Span::from_millis(30));
        half.add(at, Span::from_millis(10));
        half.add(at, Span::from_millis(20));
        assert_eq!(half.min(at), Some(Span::from_millis(10)));
        half.add(at + Span::from_secs(6), Span::from_millis(15));
        assert_eq!(half.min(at + Span::from_secs(6)), Some(Span::from_millis(10)));
        assert_eq!(half.min(at + Span::from_millis(8_500)), Some(Span::from_millis(10)));
        assert_eq!(half.min(at + Span::from_millis(10_800)), Some(Span::from_millis(15)));
        assert_eq!(half.min(at + Span::from_secs(30)), None);
    }

    #[test]
    fn a_sample_too_long_for_its_field_saturates() {
        let mut half = Half::default();
        half.add(Time::ZERO, Span::from_secs(9));
        assert_eq!(half.min(Time::ZERO), Some(Span::from_nanos(u64::from(u32::MAX))));
    }
}
