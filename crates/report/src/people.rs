//! What people feel: probe delays and fetch times, of which some never end within the run.
//!
//! Leaving out what did not end would flatter exactly the laws that hurt most, so it stays in the order statistics:
//! a lost probe ranks as infinitely late ([rfc7679] section 5.1), an unfinished fetch ranks at the time that it has
//! taken so far. If a quantile rests on such a value, the figure says "at least".

use crate::Figure;
use lasthop_units::Span;

/// Waiting times, ended and not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits {
    ended_ms: Vec<f64>,
    /// Lower bounds of those that had not ended; infinite if they never will.
    open_ms: Vec<f64>,
}

impl Waits {
    /// One that ended after `span`.
    pub(crate) fn ended(&mut self, span: Span) {
        self.ended_ms.push(span.as_millis_f64());
    }

    /// One that had lasted `span` and not ended.
    pub(crate) fn still_open(&mut self, span: Span) {
        self.open_ms.push(span.as_millis_f64());
    }

    /// One that will never end.
    pub(crate) fn never(&mut self) {
        self.open_ms.push(f64::INFINITY);
    }

    /// All of `other`'s too.
    pub(crate) fn merge(&mut self, other: &Waits) {
        self.ended_ms.extend_from_slice(&other.ended_ms);
        self.open_ms.extend_from_slice(&other.open_ms);
    }

    /// How many there were, ended or not.
    pub(crate) fn count(&self) -> usize {
        self.ended_ms.len() + self.open_ms.len()
    }

    /// The share of those that had not ended; `None` if there were none at all.
    pub(crate) fn open_share(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.open_ms.len() as f64 / self.count() as f64)
    }

    /// The `q`-quantile in milliseconds (type 7, as in `lasthop_units::stats`), of `what` (plural, for the reason).
    pub(crate) fn quantile(&self, q: f64, what: &str) -> Figure {
        if self.count() == 0 {
            return Figure::absent(format!("there were no {what} in the measuring window"));
        }
        let mut all: Vec<f64> = self.ended_ms.iter().chain(&self.open_ms).copied().collect();
        all.sort_unstable_by(f64::total_cmp);
        let place = q * (all.len() - 1) as f64;
        let (low, high) = (all[place.floor() as usize], all[place.ceil() as usize]);
        if high.is_infinite() {
            let largest = all.iter().rev().find(|ms| ms.is_finite());
            return match largest {
                Some(ms) => Figure::at_least(*ms),
                None => Figure::absent(format!("none of the {} {what} ended", all.len())),
            };
        }
        let value = low + (high - low) * (place - place.floor());
        // An open wait that ranks above both neighbours stays above them however long it lasts.
        if self.open_ms.iter().any(|ms| *ms <= high) { Figure::at_least(value) } else { Figure::exact(value) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(ended_ms: &[f64], open_ms: &[f64]) -> Waits {
        Waits { ended_ms: ended_ms.to_vec(), open_ms: open_ms.to_vec() }
    }

    #[test]
    fn a_lost_probe_ranks_last_and_does_not_vanish() {
        // Without the loss the median would be 2.
        let some_lost = waits(&[1.0, 2.0, 3.0], &[f64::INFINITY, f64::INFINITY]);
        assert_eq!(some_lost.quantile(0.5, "probes"), Figure::Exact(3.0));
        assert_eq!(some_lost.quantile(0.95, "probes"), Figure::AtLeast(3.0));
        assert_eq!(some_lost.open_share(), Some(0.4));
    }

    #[test]
    fn an_unfinished_fetch_makes_only_the_quantiles_above_it_uncertain() {
        let fetches = waits(&[100.0, 200.0, 300.0, 400.0], &[350.0]);
        assert_eq!(fetches.quantile(0.5, "fetches"), Figure::Exact(300.0));
        assert_eq!(fetches.quantile(0.75, "fetches"), Figure::AtLeast(350.0));
        assert_eq!(fetches.quantile(1.0, "fetches"), Figure::AtLeast(400.0));
    }

    #[test]
    fn nothing_measured_says_so() {
        assert_eq!(
            waits(&[], &[]).quantile(0.5, "fetches"),
            Figure::absent("there were no fetches in the measuring window")
        );
        assert_eq!(waits(&[], &[f64::INFINITY]).quantile(0.5, "probes"), Figure::absent("none of the 1 probes ended"));
    }
}
