//! From the values of several seeds to a mean and the interval it lies in.
//! Source:     Student (1908); any text on statistics, e.g. NIST/SEMATECH e-Handbook, section 1.3.5.2.
//! Equations:  mean ± t(0.975, n - 1) · sd / √n, with sd the sample standard deviation (n - 1)
//! Symbols:    t -> `StudentsT::inverse_cdf`, sd -> `sd`, n -> `n`
//! Deviations: none.     Validity: runs under different seeds are independent draws of a nearly normal quantity; skewed
//!             ones, such as p99 of few seeds, get an interval that is only approximate. The interval is not cut off
//!             at 0.
//! Checked by: tests::a_hand_worked_interval, tests::quantiles_match_published_tables

use crate::Figure;
use lasthop_units::stats::Moments;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// One figure of one law over all its seeds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Estimate {
    /// The unit of everything here.
    pub unit: String,
    /// The mean over the seeds that have a value; `None` if none has.
    pub mean: Option<f64>,
    /// The sample standard deviation; `None` with fewer than two values.
    pub sd: Option<f64>,
    /// The 95 % confidence interval of the mean, lower and upper end; `None` with fewer than two values.
    pub ci95: Option<[f64; 2]>,
    /// How many seeds have a value.
    pub n: usize,
    /// The values by seed, in ascending order of seeds; `None` where a seed has none.
    pub values: Vec<Option<f64>>,
    /// True if any value is only a lower bound, and hence the mean too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// Why some or all seeds have no value; each reason once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<String>,
}

impl Estimate {
    /// The estimate from each seed's figure.
    pub fn of<'a>(unit: &str, figures: impl IntoIterator<Item = &'a Figure>) -> Estimate {
        let (mut values, mut at_least, mut absent) = (Vec::new(), false, Vec::new());
        for figure in figures {
            // The variants are public, so a value may have come past the checks of the constructors.
            let finite = figure.value().filter(|value| value.is_finite());
            values.push(finite);
            at_least |= matches!(figure, Figure::AtLeast(_)) && finite.is_some();
            let why = match (figure, finite) {
                (_, Some(_)) => continue,
                (Figure::Absent(why), None) => why.clone(),
                (Figure::Exact(value) | Figure::AtLeast(value), None) => format!("came out as {value}"),
            };
            if !absent.contains(&why) {
                absent.push(why);
            }
        }
        let moments: Moments = values.iter().flatten().copied().collect();
        // Sums of numbers near the largest f64 overflow: better no figure than an infinite one.
        let mean = moments.mean().filter(|mean| mean.is_finite());
        let sd = moments.sd().filter(|sd| sd.is_finite() && mean.is_some());
        let n = moments.count() as usize;
        let ci95 = mean.zip(sd).map(|(mean, sd)| {
            let half = t975(n - 1) * sd / (n as f64).sqrt();
            [mean - half, mean + half]
        });
        let ci95 = ci95.filter(|ends| ends.iter().all(|end| end.is_finite()));
        Estimate { unit: unit.to_string(), mean, sd, ci95, n, values, at_least, absent }
    }

    /// Half the width of the confidence interval.
    pub fn half_ci(&self) -> Option<f64> {
        self.ci95.map(|[low, high]| (high - low) / 2.0)
    }

    /// True if `other`'s mean lies within the confidence interval of this one, or equals its mean.
    pub fn covers(&self, other: &Estimate) -> bool {
        let within = |[low, high]: [f64; 2]| other.mean.is_some_and(|mean| low <= mean && mean <= high);
        self.mean == other.mean || self.ci95.is_some_and(within)
    }
}

/// The 0.975 quantile of Student's t with `freedom` > 0 degrees of freedom.
fn t975(freedom: usize) -> f64 {
    StudentsT::new(0.0, 1.0, freedom as f64).expect("positive degrees of freedom").inverse_cdf(0.975)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[f64]) -> Estimate {
        let figures: Vec<Figure> = values.iter().map(|v| Figure::Exact(*v)).collect();
        Estimate::of("ms", &figures)
    }

    #[test]
    fn quantiles_match_published_tables() {
        // NIST/SEMATECH e-Handbook, table 1.3.6.7.2, and more digits from R's qt().
        for (freedom, t) in
            [(1, 12.706_204_736), (2, 4.302_652_730), (4, 2.776_445_105), (9, 2.262_157_163), (100, 1.983_971_519)]
        {
            assert!((t975(freedom) - t).abs() < 1e-6, "{freedom}: {}", t975(freedom));
        }
    }

    #[test]
    fn a_hand_worked_interval() {
        // Mean 3, sd sqrt(2.5), half = 2.776445105 * 1.58113883 / 2.236067977 = 1.963243161.
        let e = of(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!((e.mean, e.n), (Some(3.0), 5));
        assert!((e.sd.expect("five") - 2.5f64.sqrt()).abs() < 1e-12);
        assert!((e.half_ci().expect("five") - 1.963_243_161).abs() < 1e-6);
    }

    #[test]
    fn one_seed_has_a_mean_and_no_interval() {
        let e = of(&[7.0]);
        assert_eq!((e.mean, e.sd, e.ci95, e.n), (Some(7.0), None, None, 1));
    }

    #[test]
    fn equal_seeds_have_an_interval_of_no_width() {
        assert_eq!(of(&[2.0, 2.0, 2.0]).ci95, Some([2.0, 2.0]));
    }

    #[test]
    fn a_seed_without_a_value_is_left_out_and_explained_once() {
        let e = Estimate::of("ms", &[Figure::absent("no probes"), Figure::AtLeast(5.0), Figure::absent("no probes")]);
        assert_eq!((e.mean, e.n, e.at_least), (Some(5.0), 1, true));
        assert_eq!(e.values, vec![None, Some(5.0), None]);
        assert_eq!(e.absent, vec!["no probes".to_string()]);
    }

    proptest! {
        #[test]
        fn any_number_survives_json(values in prop::collection::vec(any::<f64>(), 0..6)) {
            let e = of(&values);
            let json = serde_json::to_string(&e).expect("serialises");
            prop_assert_eq!(serde_json::from_str::<Estimate>(&json).expect("parses"), e);
        }

        #[test]
        fn the_interval_surrounds_the_mean(values in prop::collection::vec(-1e9..1e9f64, 2..8)) {
            let e = of(&values);
            let ([low, high], mean) = (e.ci95.expect("two or more"), e.mean.expect("two or more"));
            prop_assert!(low <= mean && mean <= high);
        }
    }
}
