//! User-perceived latency: probe delays and fetch times, of which some never end within the run.
//! Source:     Kaplan and Meier, JASA 53 (1958); in the form of Efron (1967), who redistributes to the right; RFC 7679
//!             section 5.1 for lost probes.
//! Equations:  each of n waits has mass 1/n; one cut off at c hands its mass in equal parts to those above c;
//!             wait k stands for the shares S_k + 1/2n to S_k + w_k - 1/2n;
//!             a q-quantile lies at the share (q (n - 1) + 1/2) / n
//! Symbols:    c -> `ms` of an open wait, w_k -> `mass`, S_k (the mass below k) -> `below`, that share -> `target`
//! Deviations: none.     Validity: the run's end does not depend on how long the waits that it cuts off would have been.
//! Checked by: tests::*; without open waits this is the type 7 quantile of `lasthop_units::stats`
//!
//! Leaving out what did not end would flatter exactly the laws that hurt most; taking the time so far for all of it
//! would let a fetch that began just before the end pass for a fast one. So an unfinished wait counts as lasting longer
//! than it had, in the proportion in which those longer than that were seen to; a lost probe ranks as infinitely late.
//! Only if a quantile lies where nothing ended any more, the figure says "at least".

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
        if self.open_ms.is_empty() {
            return Figure::exact(self.quantile_of_ended(q));
        }
        // Equal masses put place q (n - 1) of type 7 here.
        let n = self.count() as f64;
        let target = (q * (n - 1.0) + 0.5) / n;
        let mut below = 0.0;
        let mut lower: Option<(f64, Wait)> = None;
        for point in self.points() {
            // A wait that took over the mass of others stands for a stretch of shares, not for the middle of it only.
            let (first, last) = (below + 0.5 / n, below + point.mass - 0.5 / n);
            // The tolerance is for sums of masses, which are not exact.
            if target <= last + 1e-9 {
                return between(lower, (first, point), target, what);
            }
            below += point.mass;
            if point.ms.is_finite() {
                lower = Some((last, point));
            }
        }
        lower.map_or_else(|| never_ended(what), |last| between(None, last, target, what))
    }

    /// The type 7 quantile of the ended waits, of which there must be one: what the masses come to where nothing is cut
    /// off, without sorting what may be a packet each.
    fn quantile_of_ended(&self, q: f64) -> f64 {
        let mut all = self.ended_ms.clone();
        let place = q * (all.len() - 1) as f64;
        let (_, at, above) = all.select_nth_unstable_by(place.floor() as usize, f64::total_cmp);
        let next = above.iter().copied().min_by(f64::total_cmp).unwrap_or(*at);
        *at + (next - *at) * place.fract()
    }

    /// The waits in ascending order with the mass that each stands for. Open ones remain only where no ended one is
    /// longer.
    fn points(&self) -> Vec<Wait> {
        let mass = 1.0 / self.count() as f64;
        let ended = self.ended_ms.iter().map(|ms| Wait { ms: *ms, open: false, mass });
        let mut all: Vec<Wait> =
            ended.chain(self.open_ms.iter().map(|ms| Wait { ms: *ms, open: true, mass })).collect();
        // Of equals, the ended come first: an open one lasts longer.
        all.sort_unstable_by(|a, b| a.ms.total_cmp(&b.ms).then(a.open.cmp(&b.open)));
        let last_ended = all.iter().rposition(|wait| !wait.open);
        let mut handed_on = 0.0;
        let mut points = Vec::with_capacity(all.len());
        for (i, wait) in all.iter().enumerate() {
            let mass = wait.mass + handed_on;
            if wait.open && last_ended.is_some_and(|last| i < last) {
                handed_on += mass / (all.len() - i - 1) as f64;
            } else {
                points.push(Wait { mass, ..*wait });
            }
        }
        points
    }
}

/// One wait.
#[derive(Clone, Copy, Debug)]
struct Wait {
    ms: f64,
    /// Not ended: `ms` is how long it had lasted, or infinite if it never will end.
    open: bool,
    /// What share of all waits it stands for.
    mass: f64,
}

/// The figure at `target`, which lies between the shares of two neighbours or, without a `lower`, at the edge.
fn between(lower: Option<(f64, Wait)>, upper: (f64, Wait), target: f64, what: &str) -> Figure {
    let (share, wait) = upper;
    let (value, open) = match lower {
        None if wait.ms.is_infinite() => return never_ended(what),
        None => (wait.ms, wait.open),
        Some((_, shorter)) if wait.ms.is_infinite() => (shorter.ms, true),
        Some((before, shorter)) => {
            let part = ((target - before) / (share - before)).clamp(0.0, 1.0);
            (shorter.ms + (wait.ms - shorter.ms) * part, wait.open || shorter.open)
        }
    };
    if open { Figure::at_least(value) } else { Figure::exact(value) }
}

fn never_ended(what: &str) -> Figure {
    Figure::absent(format!("none of the {what} ended"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::stats::Samples;
    use proptest::prelude::*;

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
    fn an_unfinished_fetch_hands_its_mass_to_longer_ones() {
        // 350 hands its fifth to 400: shares 0.1, 0.3, 0.5, and 0.7 to 0.9.
        let fetches = waits(&[100.0, 200.0, 300.0, 400.0], &[350.0]);
        assert_eq!(fetches.quantile(0.5, "fetches"), Figure::Exact(300.0));
        let value = fetches.quantile(0.625, "fetches").value().expect("a value");
        assert!((value - 350.0).abs() < 1e-9, "{value}");
        assert_eq!(fetches.quantile(0.8, "fetches"), Figure::Exact(400.0));
        assert_eq!(fetches.quantile(1.0, "fetches"), Figure::Exact(400.0));
    }

    #[test]
    fn a_fetch_cut_off_at_once_tells_nothing() {
        let with = waits(&[100.0, 200.0, 300.0], &[1.0]);
        assert_eq!(with.quantile(0.5, "fetches"), Figure::Exact(200.0));
    }

    #[test]
    fn where_nothing_ended_any_more_the_figure_is_a_lower_bound() {
        // Shares 1/6, 1/2, 5/6; the target 0.8 lies nine tenths of the way from 200 to 5000.
        let stuck = waits(&[100.0, 200.0], &[5000.0]);
        let Figure::AtLeast(value) = stuck.quantile(0.95, "fetches") else { panic!("a lower bound") };
        assert!((value - 4520.0).abs() < 1e-9, "{value}");
        assert_eq!(stuck.quantile(0.5, "fetches"), Figure::Exact(200.0));
        assert_eq!(waits(&[], &[70.0]).quantile(0.5, "fetches"), Figure::AtLeast(70.0));
    }

    proptest! {
        #[test]
        fn without_open_waits_it_is_the_common_quantile(
            ms in prop::collection::vec(0.0..1e4f64, 1..60),
            q in 0.0..=1.0f64,
        ) {
            let mut samples = Samples::default();
            ms.iter().for_each(|x| samples.add(*x));
            let ours = waits(&ms, &[]).quantile(q, "fetches").value().expect("all ended");
            prop_assert!((ours - samples.quantile(q).expect("not empty")).abs() < 1e-6);
        }

        #[test]
        fn an_open_wait_never_lowers_a_quantile(
            ms in prop::collection::vec(0.0..1e4f64, 1..40),
            open in prop::collection::vec(0.0..1e4f64, 0..20),
            q in 0.0..=1.0f64,
        ) {
            // Had the open ones ended where they were cut off, the quantile would be no larger.
            let censored = waits(&ms, &open).quantile(q, "fetches").value().expect("some ended");
            let ended = waits(&[ms, open].concat(), &[]).quantile(q, "fetches").value().expect("all ended");
            prop_assert!(censored >= ended - 1e-6, "{} < {}", censored, ended);
        }
    }

    #[test]
    fn nothing_measured_says_so() {
        assert_eq!(
            waits(&[], &[]).quantile(0.5, "fetches"),
            Figure::absent("there were no fetches in the measuring window")
        );
        assert_eq!(waits(&[], &[f64::INFINITY]).quantile(0.5, "probes"), Figure::absent("none of the probes ended"));
    }
}
