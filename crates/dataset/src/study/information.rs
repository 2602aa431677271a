//! Information gain: how much the bin of a metric tells of the class.
//! Source:     Quinlan 1986.
//! Equations:  gain = H(C) - sum_b p_b H(C | b),  H(C) = -sum_c p_c log2 p_c
//! Symbols:    b -> the bins, c -> the classes
//! Deviations: the paper says neither the base nor the bins. Here: bits; [`BINS`] bins of about the same number of items, equal values in the
//!             same.     Validity: finite numbers.
//! Checked by: tests::*

/// Bins of a metric.
pub const BINS: usize = 10;
/// Classes.
const CLASSES: usize = 4;

/// The gain in bits that a metric's bin brings, of values and the place of the class of each.
pub fn gain(mut values: Vec<(f32, usize)>) -> f64 {
    values.sort_unstable_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    let total = values.len();
    if total == 0 {
        return 0.0;
    }
    let count = |items: &[(f32, usize)]| {
        let mut counts = [0_u64; CLASSES];
        items.iter().for_each(|(_, class)| counts[*class] += 1);
        counts
    };
    let (mut after, mut begin, mut bins) = (0.0, 0, 0);
    for at in 1..=total {
        let full = (at - begin) * (BINS - bins) >= total - begin && bins + 1 < BINS;
        if at == total || full && values[at].0 != values[at - 1].0 {
            after += (at - begin) as f64 / total as f64 * entropy(&count(&values[begin..at]));
            (begin, bins) = (at, bins + 1);
        }
    }
    (entropy(&count(&values)) - after).max(0.0)
}

/// Bits of a distribution.
pub fn entropy(counts: &[u64; CLASSES]) -> f64 {
    let total = counts.iter().sum::<u64>() as f64;
    let shares = counts.iter().filter(|count| **count > 0).map(|count| *count as f64 / total);
    -shares.map(|share| share * share.log2()).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_that_is_the_class_tells_all_of_it() {
        let values = |of: fn(usize) -> (f32, usize)| (0..1000).map(of).collect::<Vec<_>>();
        assert!((gain(values(|n| ((n % 4) as f32, n % 4))) - 2.0).abs() < 1e-12);
        assert!((gain(values(|n| (n as f32, usize::from(n >= 500)))) - 1.0).abs() < 1e-12);
        assert_eq!(gain(values(|n| (7.0, n % 4))), 0.0, "one value tells nothing");
        assert!(
            gain(values(|n| ((n / 4) as f32, n % 4))) < 1e-3,
            "what has nothing to do with it tells next to nothing"
        );
        assert_eq!(gain(Vec::new()), 0.0);
    }

    #[test]
    fn hand_worked() {
        // 8 items of two classes, as many each: 1 bit. One value holds four of the first class, the other the rest: 3/4 of it is known.
        let mut values = vec![(0.0, 0); 3];
        values.extend([(0.0, 1), (1.0, 0), (1.0, 1), (1.0, 1), (1.0, 1)]);
        let after = -(0.75 * 0.75f64.log2() + 0.25 * 0.25f64.log2());
        assert!((gain(values) - (1.0 - after)).abs() < 1e-12);
        assert_eq!(entropy(&[1, 1, 1, 1]), 2.0);
    }
}
