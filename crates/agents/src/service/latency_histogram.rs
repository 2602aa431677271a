//! A distribution of short times: how late packets left, how long they took.

use lasthop_units::Span;

/// Counts in classes: of a microsecond below 1 ms, of 16 µs up to 200 ms, and one beyond.
#[derive(Clone, Debug)]
pub struct LatencyHistogram {
    classes: Vec<u32>,
    count: u64,
    sum: Span,
    largest: Span,
}

const FINE: u64 = 1_000;
const STEP: u64 = 16;
const LIMIT: u64 = 200_000;
/// The class beyond the limit.
const BEYOND: u64 = FINE + (LIMIT - FINE) / STEP + 1;

fn class(us: u64) -> usize {
    (match us {
        0..FINE => us,
        FINE..LIMIT => FINE + (us - FINE) / STEP,
        _ => BEYOND,
    }) as usize
}

/// The upper end of a class.
fn upper(class: u64) -> Span {
    match class {
        0..FINE => Span::from_micros(class + 1),
        FINE..BEYOND => Span::from_micros(FINE + (class - FINE + 1) * STEP),
        _ => Span::MAX,
    }
}

impl Default for LatencyHistogram {
    fn default() -> LatencyHistogram {
        LatencyHistogram { classes: vec![0; BEYOND as usize + 1], count: 0, sum: Span::ZERO, largest: Span::ZERO }
    }
}

impl LatencyHistogram {
    /// Adds one.
    pub fn add(&mut self, span: Span) {
        let place = &mut self.classes[class(span.as_micros())];
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
        let mut below = 0;
        let found = (0..).zip(&self.classes).find(|(_, count)| {
            below += u64::from(**count);
            below >= wanted
        });
        found.map(|(class, _)| upper(class).min(self.largest)).or(self.largest())
    }

    /// Adds all of another's.
    pub fn merge(&mut self, other: &LatencyHistogram) {
        self.classes.iter_mut().zip(&other.classes).for_each(|(into, from)| *into = into.saturating_add(*from));
        self.count += other.count;
        self.sum += other.sum;
        self.largest = self.largest.max(other.largest);
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        if self.count > 0 {
            self.classes.fill(0);
            (self.count, self.sum, self.largest) = (0, Span::ZERO, Span::ZERO);
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
