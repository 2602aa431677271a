//! Laws set against one of them.

use crate::table::{folded_grid, plain};
use crate::{Estimate, Key, Summary};
use std::iter::once;

impl Summary {
    /// A table of each law's means as multiples of those of `base`: one line a figure, one column a law, and as many
    /// tables as stay within `width` columns of text. Figures that `base` or all the others lack are left out, as are those
    /// that are 0 for `base`.
    pub fn ratio_table(&self, base: &str, others: &[String], keys: &[Key], width: usize) -> String {
        let line = |key: &Key| {
            let of = self.estimate(base, *key)?;
            let cells: Vec<Option<String>> = others.iter().map(|law| ratio(self.estimate(law, *key)?, of)).collect();
            let any = cells.iter().any(Option::is_some);
            let texts = cells.into_iter().map(|cell| cell.unwrap_or_else(|| "–".to_owned()));
            any.then(|| once(key.label().to_string()).chain(texts).collect())
        };
        let header: Vec<String> = once(String::new()).chain(others.iter().map(|law| plain(law))).collect();
        folded_grid(&header, &keys.iter().filter_map(line).collect::<Vec<_>>(), width)
    }
}

/// One mean over another. A lower bound above or below the line makes the ratio a bound; on both sides, nothing.
fn ratio(own: &Estimate, of: &Estimate) -> Option<String> {
    let (own_mean, of_mean) = (own.mean?, of.mean.filter(|mean| *mean != 0.0)?);
    let sign = match (own.at_least, of.at_least) {
        (false, false) => "",
        (true, false) => "≥ ",
        (false, true) => "≤ ",
        (true, true) => return None,
    };
    Some(format!("{sign}{:.3}", own_mean / of_mean))
}

#[cfg(test)]
mod tests {
    use crate::{Figure, Key, Recorder, Run, Summary, Window, World};
    use lasthop_units::Time;

    #[test]
    fn bounds_stay_bounds_and_what_cannot_be_divided_is_left_out() {
        let run = |law: &str, delay: Figure, jitter: f64| {
            let second = Window { warm_up: Time::ZERO, end: Time::from_nanos(1_000_000_000) };
            let mut record = Recorder::new(second, []).finish();
            record.figures.insert(Key::HopDelayMean, delay);
            record.figures.insert(Key::Jitter, Figure::Exact(jitter));
            Run { law: law.into(), seed: 1, record }
        };
        let runs = [
            run("base", Figure::Exact(40.0), 0.0),
            run("half", Figure::Exact(20.0), 1.0),
            run("more", Figure::AtLeast(80.0), 1.0),
        ];
        let summary = Summary::of(World::Sim, "s", &[], &runs);
        let table = summary.ratio_table("base", &["half".into(), "more".into()], &[Key::HopDelayMean, Key::Jitter], 80);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 3, "{table}");
        assert!(lines[2].contains("0.500") && lines[2].contains("≥ 2.000"), "{table}");
        assert!(!table.contains(Key::Jitter.label()), "nothing is a multiple of 0: {table}");
        let against = summary.ratio_table("more", &["half".into()], &[Key::HopDelayMean], 80);
        assert!(against.contains("≤ 0.250"), "{against}");
    }
}
