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

    /// The cumulative distribution as at most `points` pairs of delay in milliseconds and share of packets that had at
    /// most that delay, ascending. The upper tail, which is what matters, is drawn as finely as the body.
    pub fn cdf(&self, points: usize) -> Vec<(f64, f64)> {
        if self.count == 0 || points < 2 {
            return Vec::new();
        }
        // Half of the points are spread over the share, half over the logarithm of what is left above.
        let body = points / 2;
        let mut shares: Vec<f64> = (0..body).map(|i| i as f64 / body as f64).collect();
        let decades = (self.count as f64).log10().max(1.0);
        let tail = points - body - 1;
        shares.extend((1..=tail).map(|i| 1.0 - 10f64.powf(-decades * i as f64 / tail as f64)));
        shares.push(1.0);
        shares.sort_unstable_by(f64::total_cmp);
        shares.dedup();
        shares.into_iter().filter_map(|share| Some((self.quantile_ms(share)?, share))).collect()
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
        assert!(Delays::default().cdf(100).is_empty());
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
        fn a_cdf_rises_to_one(ns in prop::collection::vec(0u64..10_000_000_000, 1..200)) {
            let mut delays = Delays::default();
            ns.iter().for_each(|n| delays.add(Span::from_nanos(*n)));
            let cdf = delays.cdf(200);
            prop_assert!(cdf.len() <= 200);
            prop_assert!(cdf.windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 < w[1].1));
            prop_assert_eq!(cdf.last().map(|p| p.1), Some(1.0));
        }
    }
}
