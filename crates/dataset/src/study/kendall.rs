//! Rank correlation.
//! Source:     Kendall 1945 (tau-b); Knight 1966 (how to count in n log n steps).
//! Equations:  tau_b = (n_0 - n_x - n_y + n_xy - 2 s) / sqrt((n_0 - n_x) (n_0 - n_y))
//! Symbols:    n_0 -> all pairs; n_x, n_y, n_xy -> pairs that are equal in x, in y, in both; s -> exchanges that sort by y what is sorted by
//!             x, and by y where x is equal
//! Deviations: none.     Validity: finite numbers; without two different values on a side there is no tau.
//! Checked by: tests::*

/// tau-b of pairs; `None` where it is not defined.
pub fn tau_b(mut pairs: Vec<(f32, f32)>) -> Option<f64> {
    pairs.sort_unstable_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
    let all = choose_two(pairs.len());
    let (in_x, in_both) = (ties(&pairs, |one, other| one.0 == other.0), ties(&pairs, |one, other| one == other));
    let mut values: Vec<f32> = pairs.iter().map(|pair| pair.1).collect();
    let exchanges = sort(&mut values);
    let in_y = ties(&values, |one, other| one == other);
    let concordant = all as f64 - in_x as f64 - in_y as f64 + in_both as f64 - 2.0 * exchanges as f64;
    let scale = ((all - in_x) as f64 * (all - in_y) as f64).sqrt();
    (scale > 0.0).then(|| concordant / scale)
}

fn choose_two(count: usize) -> u64 {
    let count = count as u64;
    count * count.saturating_sub(1) / 2
}

/// Pairs within runs of what is the same.
fn ties<T>(sorted: &[T], same: impl Fn(&T, &T) -> bool) -> u64 {
    sorted.chunk_by(|one, other| same(one, other)).map(|run| choose_two(run.len())).sum()
}

/// Sorts by merging; how many pairs stood the wrong way round.
fn sort(values: &mut [f32]) -> u64 {
    let (mut other, mut exchanges, mut width) = (values.to_vec(), 0, 1);
    while width < values.len() {
        for begin in (0..values.len()).step_by(2 * width) {
            let (middle, end) = ((begin + width).min(values.len()), (begin + 2 * width).min(values.len()));
            let (mut left, mut right) = (begin, middle);
            for to in &mut other[begin..end] {
                if left < middle && (right == end || values[left] <= values[right]) {
                    *to = values[left];
                    left += 1;
                } else {
                    *to = values[right];
                    right += 1;
                    exchanges += (middle - left) as u64;
                }
            }
        }
        values.copy_from_slice(&other);
        width *= 2;
    }
    exchanges
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// By the definition.
    fn by_pairs(pairs: &[(f32, f32)]) -> Option<f64> {
        let (mut sum, mut x, mut y) = (0.0, 0.0, 0.0);
        for (at, one) in pairs.iter().enumerate() {
            for other in &pairs[..at] {
                let sign = |one: f32, other: f32| f64::from(u8::from(one > other)) - f64::from(u8::from(one < other));
                let (a, b) = (sign(one.0, other.0), sign(one.1, other.1));
                sum += a * b;
                x += a * a;
                y += b * b;
            }
        }
        (x * y > 0.0).then(|| sum / (x * y).sqrt())
    }

    #[test]
    fn hand_worked_pairs() {
        assert_eq!(tau_b(vec![(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]), Some(1.0));
        assert_eq!(tau_b(vec![(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]), Some(-1.0));
        // Of six pairs five are concordant and one is not.
        let tau = tau_b(vec![(1.0, 1.0), (2.0, 3.0), (3.0, 2.0), (4.0, 4.0)]).expect("defined");
        assert!((tau - 4.0 / 6.0).abs() < 1e-12);
        // Three pairs; one is equal in x: 2 / sqrt(2 * 3).
        let tau = tau_b(vec![(1.0, 1.0), (1.0, 2.0), (2.0, 3.0)]).expect("defined");
        assert!((tau - 2.0 / 6f64.sqrt()).abs() < 1e-12);
        assert_eq!(tau_b(vec![(1.0, 1.0), (1.0, 2.0)]), None);
        assert_eq!(tau_b(Vec::new()), None);
    }

    proptest! {
        #[test]
        fn it_is_what_the_definition_says(pairs in proptest::collection::vec((0..9u8, 0..5u8), 0..60)) {
            let pairs: Vec<(f32, f32)> = pairs.into_iter().map(|(x, y)| (f32::from(x), f32::from(y))).collect();
            match (tau_b(pairs.clone()), by_pairs(&pairs)) {
                (Some(one), Some(other)) => prop_assert!((one - other).abs() < 1e-12, "{} and {}", one, other),
                (one, other) => prop_assert_eq!(one, other),
            }
        }
    }
}
