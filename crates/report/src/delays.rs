//! The distribution of delays in bounded memory.
//! Source:     log-linear buckets, the idea behind HdrHistogram (G. Tene).
//! Equations:  a delay of d ns with 2^e <= d < 2^(e+1) falls into one of 2^11 equal buckets of that octave
//! Symbols:    d -> `ns`, e -> `octave`, 11 -> `SUB_BITS`
//! Deviations: quantiles interpolate inside a bucket; the mean, least and largest are exact.
//! Validity:   any delay; below 2^11 ns buckets are 1 ns wide, above it a quantile is off by at most 1/2048 of itself.
//! Checked by: tests::quantiles_stay_within_a_bucket_of_the_exact_ones (property), tests::*

use lasthop_units::Span;

/// How delays are distributed: any number of them in at most 870 kB (in practice, delays below 10 s: 190 kB).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delays {
    /// Grown to the largest bucket seen, so that short delays cost little.
    buckets: Vec<u64>,
    count: u64,
    sum_ns: u128,
    least: Option<Span>,
    largest: Span,
}

impl Delays {
    /// Folds one delay in.
    pub fn add(&mut self, delay: Span) {
        let bucket = bucket_of(delay.as_nanos());
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
        self.count += 1;
        self.sum_ns += u128::from(delay.as_nanos());
        self.least = Some(self.least.map_or(delay, |least| least.min(delay)));
        self.largest = self.largest.max(delay);
    }

    /// Folds all of `other` in.
    pub fn merge(&mut self, other: &Delays) {
        if other.buckets.len() > self.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(mine, theirs)| *mine += theirs);
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.least = self.least.into_iter().chain(other.least).min();
        self.largest = self.largest.max(other.largest);
    }

    /// How many delays there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The mean in milliseconds; `None` without delays.
    pub fn mean_ms(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64 / 1e6)
    }

    /// The `q`-quantile (0 to 1) in milliseconds; `None` without delays or for `q` outside 0 to 1.
    pub fn quantile_ms(&self, q: f64) -> Option<f64> {
        if !(0.0..=1.0).contains(&q) {
            return None;
        }
        let (least, largest) = (self.least?.as_nanos() as f64, self.largest.as_nanos() as f64);
        // The ranks 0 and count - 1 are known exactly; those between are spread evenly over their bucket.
        let place = q * (self.count - 1) as f64;
        let mut below = 0u64;
        for (bucket, &inside) in self.buckets.iter().enumerate().filter(|(_, inside)| **inside > 0) {
            if place < (below + inside) as f64 {
                let (start, width) = bounds_of(bucket);
                let share = (place - below as f64 + 0.5) / inside as f64;
                let ns = start as f64 + (width - 1) as f64 * share.clamp(0.0, 1.0);
                return Some(ns.clamp(least, largest) / 1e6);
            }
            below += inside;
        }
        Some(largest / 1e6)
    }

    /// The least and the largest delay; `None` without delays.
    pub fn range(&self) -> Option<(Span, Span)> {
        self.least.map(|least| (least, self.largest))
    }

    /// For each of `limits` (ascending) the share of delays above it: one less the cumulative distribution. Kept this
    /// way round because the upper tail is what matters, and shares near 1 could not tell it.
    pub fn shares_above(&self, limits: &[Span]) -> Vec<f64> {
        let mut buckets = self.buckets.iter().enumerate().filter(|(_, inside)| **inside > 0).peekable();
        let mut passed = 0u64;
        let share = |limit: &Span| {
            let ns = limit.as_nanos();
            while let Some((_, inside)) =
                buckets.next_if(|(bucket, _)| bounds_of(*bucket).0 + (bounds_of(*bucket).1 - 1) <= ns)
            {
                passed += inside;
            }
            // The bucket that holds the limit counts by the part of it that lies below.
            let part = buckets.peek().map_or(0.0, |(bucket, inside)| {
                let (start, width) = bounds_of(*bucket);
                if ns < start { 0.0 } else { (ns - start + 1) as f64 / width as f64 * **inside as f64 }
            });
            if *limit >= self.largest { 0.0 } else { 1.0 - (passed as f64 + part) / self.count as f64 }
        };
        limits.iter().map(share).collect()
    }
}

const SUB_BITS: u32 = 11;
const SUBS: u64 = 1 << SUB_BITS;

/// The bucket of a delay of `ns`. Below `SUBS` every nanosecond has its own.
fn bucket_of(ns: u64) -> usize {
    if ns < SUBS {
        return ns as usize;
    }
    let octave = ns.ilog2();
    let within = (ns >> (octave - SUB_BITS)) - SUBS;
    (u64::from(octave - SUB_BITS + 1) * SUBS + within) as usize
}

/// The first delay of a bucket and how many nanoseconds it spans.
fn bounds_of(bucket: usize) -> (u64, u64) {
    let bucket = bucket as u64;
    if bucket < SUBS {
        return (bucket, 1);
    }
    let shift = bucket / SUBS - 1;
    ((SUBS + bucket % SUBS) << shift, 1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::stats::Samples;
    use proptest::prelude::*;

    #[test]
    fn every_bucket_begins_where_the_one_before_ends() {
        for bucket in 0..bucket_of(u64::MAX) {
            let (start, width) = bounds_of(bucket);
            assert_eq!(bucket_of(start), bucket);
            assert_eq!(bounds_of(bucket + 1).0, start + width);
        }
    }

    #[test]
    fn one_delay_is_every_quantile() {
        let mut delays = Delays::default();
        delays.add(Span::from_micros(5_300));
        assert_eq!([0.0, 0.5, 1.0].map(|q| delays.quantile_ms(q)), [Some(5.3); 3]);
        assert_eq!(delays.mean_ms(), Some(5.3));
        assert_eq!(delays.quantile_ms(f64::NAN), None);
    }

    #[test]
    fn nothing_has_no_quantile() {
        assert_eq!(Delays::default().quantile_ms(0.5), None);
        assert_eq!(Delays::default().range(), None);
    }

    proptest! {
        #[test]
        fn quantiles_stay_within_a_bucket_of_the_exact_ones(
            ns in prop::collection::vec(0u64..100_000_000_000, 1..300),
            q in 0.0..=1.0f64,
        ) {
            let (mut delays, mut exact) = (Delays::default(), Samples::default());
            for n in &ns {
                delays.add(Span::from_nanos(*n));
                exact.add(*n as f64 / 1e6);
            }
            let ours = delays.quantile_ms(q).expect("not empty");
            // Between two order statistics any value is a fair quantile, so ours must lie between the neighbours.
            let place = q * (ns.len() - 1) as f64;
            let (low, high) = (exact.sorted()[place.floor() as usize], exact.sorted()[place.ceil() as usize]);
            prop_assert!(ours >= low * (1.0 - 1.0 / 2048.0) - 1e-6, "{ours} < {low}");
            prop_assert!(ours <= high * (1.0 + 1.0 / 2048.0) + 1e-6, "{ours} > {high}");
        }

        #[test]
        fn merging_equals_adding_all(a in prop::collection::vec(any::<u64>(), 0..50), b in prop::collection::vec(any::<u64>(), 0..50)) {
            let fold = |ns: &[u64]| ns.iter().fold(Delays::default(), |mut d, n| { d.add(Span::from_nanos(*n)); d });
            let mut merged = fold(&a);
            merged.merge(&fold(&b));
            prop_assert_eq!(merged, fold(&[a, b].concat()));
        }

        #[test]
        fn shares_above_count_what_lies_above(
            ns in prop::collection::vec(0u64..10_000_000_000, 1..200),
            mut limits in prop::collection::vec(0u64..11_000_000_000, 1..50),
        ) {
            limits.sort_unstable();
            let mut delays = Delays::default();
            ns.iter().for_each(|n| delays.add(Span::from_nanos(*n)));
            let spans: Vec<Span> = limits.iter().map(|n| Span::from_nanos(*n)).collect();
            let above = |limit: f64| ns.iter().filter(|n| **n as f64 > limit).count() as f64 / ns.len() as f64;
            for (limit, share) in limits.iter().zip(delays.shares_above(&spans)) {
                // Exact but for what shares a bucket with the limit.
                let limit = *limit as f64;
                prop_assert!(share <= above(limit * (1.0 - 1.0 / 2048.0) - 1.0) + 1e-9, "{} at {}", share, limit);
                prop_assert!(share >= above(limit * (1.0 + 1.0 / 2048.0) + 1.0) - 1e-9, "{} at {}", share, limit);
            }
        }
    }
}
