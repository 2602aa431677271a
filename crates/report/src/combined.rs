//! Ratios and other figures that are computed from several means, with their interval.
//! Source:     Tukey, "Bias and confidence in not-quite large samples", Annals of Mathematical Statistics 29 (1958), 614.
//! Equations:  pᵢ = n f(m) - (n - 1) f(m₋ᵢ); half the interval is t(0.975, n - 1) · sd(p) / √n
//! Symbols:    m -> means over all seeds, m₋ᵢ -> over all but seed i, n -> seeds, f -> `value`, pᵢ -> `pseudo`
//! Deviations: the interval stands around f(m), not around the mean of pᵢ: what is required is required of f(m).
//! Validity:   f is smooth where the means lie. Of one mean alone it is that mean's own interval.
//! Checked by: tests

use crate::{Estimate, Figure};

/// What `value` makes of the means of `parts`. These belong together seed by seed: what all owe to a seed's luck cancels out of the interval. It
/// is over the seeds that have all of them.
pub fn combined<const N: usize>(parts: [&Estimate; N], value: impl Fn([f64; N]) -> f64) -> Estimate {
    let seeds = parts.iter().map(|part| part.values.len()).min().unwrap_or(0);
    let whole: Vec<usize> = (0..seeds).filter(|seed| parts.iter().all(|part| part.values[*seed].is_some())).collect();
    let without = |left_out: Option<usize>| {
        let kept = || whole.iter().copied().filter(move |seed| Some(*seed) != left_out);
        let mean = |part: &Estimate| kept().filter_map(|seed| part.values[seed]).sum::<f64>() / kept().count() as f64;
        value(parts.map(mean))
    };
    let (n, all) = (whole.len() as f64, without(None));
    let pseudo = whole.iter().map(|seed| Figure::Exact(n * all - (n - 1.0) * without(Some(*seed))));
    let pseudo: Vec<Figure> = if whole.len() > 1 { pseudo.collect() } else { Vec::new() };
    let spread = Estimate::of("1", &pseudo);
    let mean = parts.iter().all(|part| part.mean.is_some());
    let mean = mean.then(|| value(parts.map(|part| part.mean.unwrap_or(f64::NAN))));
    let half = spread.half_ci().filter(|_| spread.n == whole.len());
    Estimate { mean, ci95: mean.zip(half).map(|(mean, half)| [mean - half, mean + half]), ..spread }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> Estimate {
        let figures: Vec<Figure> = values.iter().map(|value| Figure::exact(*value)).collect();
        Estimate::of("1", &figures)
    }

    fn ratio(a: &Estimate, b: &Estimate) -> Estimate {
        combined([a, b], |[a, b]| a / b)
    }

    #[test]
    fn of_one_mean_and_of_differences_it_is_the_usual_interval() {
        let (a, b) = (of(&[3.0, 5.0, 4.0, 6.0]), of(&[1.0, 2.0, 2.0, 1.0]));
        let near = |got: &Estimate, want: &Estimate| {
            assert_eq!(got.mean, want.mean);
            let (got, want) = (got.half_ci().expect("four seeds"), want.half_ci().expect("four seeds"));
            assert!((got / want - 1.0).abs() < 1e-9, "{got} for {want}");
        };
        near(&combined([&a], |[a]| a), &a);
        near(&combined([&a, &b], |[a, b]| a - b), &of(&[2.0, 3.0, 2.0, 5.0]));
    }

    #[test]
    fn a_seeds_luck_that_both_have_cancels_out_of_a_ratio() {
        let (a, b) = (of(&[2.0, 4.0, 8.0]), of(&[1.0, 2.0, 4.0]));
        let together = ratio(&a, &b);
        assert_eq!(together.mean, Some(2.0));
        assert!(together.half_ci().expect("three seeds") < 1e-9);
        assert!(ratio(&a, &of(&[4.0, 2.0, 1.0])).half_ci().expect("three seeds") > 1.0);
    }

    #[test]
    fn a_hand_worked_ratio() {
        // 3/3 over both, 2/1 and 4/5 over one: 2 x 1 - 2 = 0 and 2 x 1 - 0.8 = 1.2; sd 0.848528, times 12.706205 / √2.
        let got = ratio(&of(&[4.0, 2.0]), &of(&[5.0, 1.0]));
        assert_eq!(got.mean, Some(1.0));
        assert!((got.half_ci().expect("two seeds") - 7.623_723).abs() < 1e-6, "{got:?}");
    }

    #[test]
    fn without_two_seeds_or_finite_values_there_is_no_interval() {
        let one = ratio(&of(&[3.0]), &of(&[2.0]));
        assert_eq!((one.mean, one.ci95), (Some(1.5), None));
        // All but one seed without losses: the ratio without that one is nothing.
        let rare = ratio(&of(&[1.0, 1.0, 1.0]), &of(&[0.0, 0.0, 3.0]));
        assert_eq!((rare.mean, rare.ci95), (Some(1.0), None));
        assert!(ratio(&of(&[0.0]), &of(&[0.0])).mean.is_some_and(f64::is_nan));
    }
}
