//! A distribution of short times: how late packets left, how long they took.

use lasthop_units::Span;

/// Counts by microsecond up to 100 ms, and beyond.
#[derive(Clone, Debug)]
pub struct LatencyHistogram {
    /// Below 1 ms by the microsecond, then by 16 µs.
    fine: Vec<u32>,
    coarse: Vec<u32>,
    beyond: u32,
    count: u64,
    sum: Span,
    largest: Span,
}

const FINE: u64 = 1_000;
const STEP: u64 = 16;
const LIMIT: u64 = 200_000;

impl Default for LatencyHistogram {
    fn default() -> LatencyHistogram {
        LatencyHistogram {
            fine: vec![0; FINE as usize],
            coarse: vec![0; ((LIMIT - FINE) / STEP) as usize + 1],
            beyond: 0,
            count: 0,
            sum: Span::ZERO,
            largest: Span::ZERO,
        }
    }
}

impl LatencyHistogram {
    /// Adds one.
    pub fn add(&mut self, span: Span) {
        let place = match span.as_micros() {
            us @ 0..FINE => &mut self.fine[us as usize],
            us @ FINE..LIMIT => &mut self.coarse[((us - FINE) / STEP) as usize],
            _ => &mut self.beyond,
        };
        *place = place.saturating_add(1);
        self.count += 1;
        self.sum += span;
        self.largest = self.largest.max(span);
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their mean; `None` if there are none.
    pub fn mean(&self) -> Option<Span> {
        (self.count > 0).then(|| self.sum / self.count.max(1))
    }

    /// The largest; `None` if there are none.
    pub fn largest(&self) -> Option<Span> {
        (self.count > 0).then_some(self.largest)
    }

    /// The upper end of the class in which the `q`-quantile lies; `None` if there are none.
    pub fn quantile(&self, q: f64) -> Option<Span> {
        let wanted = (q * self.count as f64).ceil().max(1.0) as u64;
        let fine = self.fine.iter().zip((1..).map(Span::from_micros));
        let coarse = self.coarse.iter().zip((1..).map(|n| Span::from_micros(FINE + n * STEP)));
        let mut below = 0;
        for (count, upper) in fine.chain(coarse) {
            below += u64::from(*count);
            if below >= wanted {
                return Some(upper.min(self.largest));
            }
        }
        self.largest()
    }

    /// Adds all of another's.
    pub fn merge(&mut self, other: &LatencyHistogram) {
        let add = |into: &mut Vec<u32>, from: &[u32]| {
            into.iter_mut().zip(from).for_each(|(into, from)| *into = into.saturating_add(*from));
        };
        add(&mut self.fine, &other.fine);
        add(&mut self.coarse, &other.coarse);
        self.beyond = self.beyond.saturating_add(other.beyond);
        self.count += other.count;
        self.sum += other.sum;
        self.largest = self.largest.max(other.largest);
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        if self.count > 0 {
            self.fine.fill(0);
            self.coarse.fill(0);
            (self.beyond, self.count, self.sum, self.largest) = (0, 0, Span::ZERO, Span::ZERO);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_samples_to_a_class() {
        let mut histogram = LatencyHistogram::default();
        assert_eq!((histogram.quantile(0.5), histogram.mean(), histogram.largest()), (None, None, None));
        (1..=2000).for_each(|us| histogram.add(Span::from_micros(us)));
        assert_eq!(histogram.quantile(0.25), Some(Span::from_micros(501)));
        let p99 = histogram.quantile(0.99).expect("samples").as_micros();
        assert!((1980..=1996).contains(&p99), "{p99}");
        assert_eq!(histogram.largest(), Some(Span::from_millis(2)));
        histogram.add(Span::from_secs(5));
        assert_eq!(histogram.quantile(1.0), Some(Span::from_secs(5)));
        histogram.clear();
        assert_eq!(histogram.quantile(0.5), None);
    }
}
