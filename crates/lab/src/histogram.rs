//! Quantiles of spans in constant memory, for threads that may not allocate.
//! Source:     the log-linear layout of HdrHistogram (Tene), with 5 bits of mantissa.
//! Equations:  bucket(x) = x for x < 32;   else 32 (e - 4) + (x >> (e - 5)) - 32,   e = floor(log2 x)
//! Symbols:    x -> nanoseconds
//! Deviations: none.     Validity: relative error of a quantile below 1/32.
//! Checked by: tests::*

use lasthop_units::Span;

/// Counts spans by size.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    max: Span,
}

/// What a histogram of spans says in four numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// How many spans there were.
    pub count: u64,
    /// Median.
    pub p50: Span,
    /// 99th percentile.
    pub p99: Span,
    /// The longest.
    pub max: Span,
}

const MANTISSA_BITS: u32 = 5;
const LINEAR: u64 = 1 << MANTISSA_BITS;

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: vec![0; bucket(u64::MAX) + 1], total: 0, max: Span::ZERO }
    }
}

impl Histogram {
    /// Counts one span.
    pub fn add(&mut self, span: Span) {
        self.counts[bucket(span.as_nanos())] += 1;
        self.total += 1;
        self.max = self.max.max(span);
    }

    /// The smallest span that at least a fraction `q` of all spans do not exceed, to within 1/32 above; zero without
    /// spans.
    pub fn quantile(&self, q: f64) -> Span {
        let rank = (q * self.total as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Span::from_nanos(upper(index)).min(self.max);
            }
        }
        self.max
    }

    /// Count, median, 99th percentile and maximum.
    pub fn summary(&self) -> Summary {
        Summary { count: self.total, p50: self.quantile(0.5), p99: self.quantile(0.99), max: self.max }
    }
}

fn bucket(ns: u64) -> usize {
    if ns < LINEAR {
        return ns as usize;
    }
    let shift = ns.ilog2() - MANTISSA_BITS;
    (u64::from(shift + 1) * LINEAR + (ns >> shift) - LINEAR) as usize
}

/// The largest value that falls into bucket `index`.
fn upper(index: usize) -> u64 {
    let index = index as u64;
    if index < LINEAR {
        return index;
    }
    let (shift, mantissa) = (index / LINEAR - 1, index % LINEAR + LINEAR);
    // In the topmost bucket the sum is exactly 2^64 - 1.
    (mantissa << shift) + ((1u64 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_end_at_most_a_thirty_second_above_their_values() {
        for exponent in 0..64 {
            for value in [1u64 << exponent, (1u64 << exponent) + (1u64 << exponent) / 3, u64::MAX >> exponent] {
                let end = upper(bucket(value));
                assert!(end >= value && end - value <= value / 32, "{value} -> {end}");
            }
        }
    }

    #[test]
    fn quantiles_of_one_to_a_thousand_microseconds() {
        let mut histogram = Histogram::default();
        (1..=1000).for_each(|us| histogram.add(Span::from_micros(us)));
        let near = |span: Span, us: f64| (span.as_nanos() as f64 / 1e3 / us - 1.0).abs() < 1.0 / 32.0;
        let summary = histogram.summary();
        assert!(near(summary.p50, 500.0) && near(summary.p99, 990.0), "{summary:?}");
        assert_eq!(summary.max, Span::from_millis(1));
    }
}
