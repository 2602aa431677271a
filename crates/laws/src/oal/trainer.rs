//! Trains a tree: binary splits of least weighted Gini impurity, over histograms.
//! Source:     Breiman, Friedman, Olshen, Stone 1984, chapter 4 (Gini); leaf size and class weights are own.
//! Equations:  w_c = clamp(n / (k n_c), 1 / b, b)
//!             split = argmax sum_c (w_c l_c)^2 / sum_c w_c l_c + sum_c (w_c r_c)^2 / sum_c w_c r_c,  if more than unsplit
//!             class of a leaf = argmax_c w_c n_c
//! Symbols:    n_c -> items of class c, of k classes that occur; b -> `weight_max`; l, r -> items left and right of a threshold
//! Deviations: thresholds lie between the 255-quantiles of a feature, not between any two of its values. Of a feature that a node has
//!             values and misses of, the misses go with the larger side. Splits are taken back if their leaves all say
//!             the same.
//! Validity:   any items; the same items in the same order give the same tree.
//! Checked by: tests::*, crates/sim/tests/long/oal_learning.rs (beside scikit-learn's tree), the benchmark `law.oal.train_10000x16_ms`

use super::features::{DROPS, FEATURES, Vector};
use super::predictor::LossClass;
use super::tree::{DEPTH_MAX, Node, Tree};
use std::ops::Range;

const WIDTH: usize = FEATURES.len();
const CLASSES: usize = LossClass::ALL.len();
/// Bins of a feature; the code behind the last one stands for a missing value.
const BINS: usize = 255;
const MISSING: u8 = BINS as u8;

/// How trees are grown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// Splits on the longest way, at most [`DEPTH_MAX`].
    pub depth: u32,
    /// Fewest items of a leaf.
    pub leaf: usize,
    /// A class weighs at most so many times what it would if all were equally frequent, and at least its inverse.
    pub weight_max: f64,
    /// Whether they may look at what queues dropped ([`DROPS`]).
    pub drops: bool,
}

impl Default for Growth {
    fn default() -> Growth {
        // Chosen among leaves of 10 to 50 and weights up to 2 to 5, by macro-F on later items and on another run's: seeds 1 and 2 of the
        // worlds of crates/sim/tests/long/oal_learning.rs. The depth changes little there.
        Growth { depth: 16, leaf: 20, weight_max: 2.0, drops: true }
    }
}

/// Trains trees, and keeps its memory from one to the next.
#[derive(Clone, Debug)]
pub struct Trainer {
    growth: Growth,
    classes: Vec<u8>,
    /// For each feature, each item's bin.
    bins: Vec<Vec<u8>>,
    /// For each feature, the upper bounds of its bins but the last.
    bounds: Vec<Vec<f32>>,
    order: Vec<u32>,
    aside: Vec<u32>,
    keys: Vec<u64>,
    /// Of one node and one feature; empty between two uses.
    histogram: Vec<[u32; CLASSES]>,
}

/// The best split of a node.
#[derive(Clone, Copy, Debug)]
struct Split {
    score: f64,
    feature: usize,
    /// Up to this it goes left.
    bin: u8,
    missing_left: bool,
}

/// A node that may be split.
struct Open {
    node: usize,
    items: Range<usize>,
    depth: u32,
}

impl Trainer {
    /// A trainer of trees that grow so.
    pub fn new(growth: Growth) -> Trainer {
        let growth = Growth { depth: growth.depth.min(DEPTH_MAX), leaf: growth.leaf.max(1), ..growth };
        Trainer {
            growth,
            classes: Vec::new(),
            bins: vec![Vec::new(); WIDTH],
            bounds: vec![Vec::new(); WIDTH],
            order: Vec::new(),
            aside: Vec::new(),
            keys: Vec::new(),
            histogram: vec![[0; CLASSES]; BINS],
        }
    }

    /// A tree from these items; `None` without any.
    pub fn train<'v>(
        &mut self,
        version: u64,
        items: impl ExactSizeIterator<Item = (&'v Vector, LossClass)> + Clone,
    ) -> Option<Tree> {
        let total = self.take_in(items);
        if self.classes.is_empty() {
            return None;
        }
        let weights = weights(&total, self.growth.weight_max);
        let mut nodes = vec![leaf(&total, &weights)];
        let mut open = vec![Open { node: 0, items: 0..self.order.len(), depth: 0 }];
        while let Some(Open { node, items, depth }) = open.pop() {
            let whole = items.len() >= 2 * self.growth.leaf && depth < self.growth.depth;
            // Two more nodes must have numbers.
            let split = (whole && nodes.len() + 2 <= usize::from(u16::MAX)).then(|| self.split(&items, &weights));
            let Some(split) = split.flatten() else { continue };
            let (left, right) = self.part(&items, split);
            let first = nodes.len() as u16;
            nodes[node] = Node::Split {
                feature: split.feature as u8,
                threshold: self.bounds[split.feature][usize::from(split.bin)],
                left: first,
                right: first + 1,
                missing_left: split.missing_left,
            };
            for items in [left, right] {
                nodes.push(leaf(&self.count(&items), &weights));
                open.push(Open { node: nodes.len() - 1, items, depth: depth + 1 });
            }
        }
        let trained = (0..CLASSES).filter(|class| total[*class] > 0).fold(0, |bits, class| bits | 1 << class);
        Some(Tree::new(version, trained, pruned(&nodes)).expect("grown downwards, within all bounds"))
    }

    /// Takes the items over, binned. Returns how many there are of each class.
    fn take_in<'v>(&mut self, items: impl ExactSizeIterator<Item = (&'v Vector, LossClass)> + Clone) -> [u32; CLASSES] {
        self.classes.clear();
        self.classes.extend(items.clone().map(|(_, class)| class as u8));
        let count = self.classes.len();
        self.order.clear();
        self.order.extend(0..count as u32);
        for feature in 0..WIDTH {
            self.keys.clear();
            let values = items.clone().map(|(vector, _)| vector[feature]).enumerate();
            let finite = values.filter(|(_, value)| value.is_finite());
            self.keys.extend(finite.map(|(at, value)| u64::from(sortable(value)) << 32 | at as u64));
            self.keys.sort_unstable();
            self.bin(feature);
        }
        let mut total = [0; CLASSES];
        self.classes.iter().for_each(|class| total[usize::from(*class)] += 1);
        total
    }

    /// Cuts a feature's sorted values into bins of about the same size, equal values into the same.
    fn bin(&mut self, feature: usize) {
        let (keys, bounds, bins) = (&self.keys, &mut self.bounds[feature], &mut self.bins[feature]);
        bounds.clear();
        bins.clear();
        bins.resize(self.classes.len(), MISSING);
        let value = |key: u64| unsortable((key >> 32) as u32);
        let mut begin = 0;
        let distinct = keys.windows(2).filter(|pair| pair[0] >> 32 != pair[1] >> 32).count() + 1;
        // Where there are few values each has its bin.
        let all = distinct <= BINS;
        for at in 0..keys.len() {
            let full = all || (at - begin) * (BINS - bounds.len()) >= keys.len() - begin;
            if at > begin && full && keys[at] >> 32 != keys[at - 1] >> 32 && bounds.len() < BINS - 1 {
                bounds.push(between(value(keys[at - 1]), value(keys[at])));
                begin = at;
            }
            bins[keys[at] as u32 as usize] = bounds.len() as u8;
        }
    }

    fn count(&self, items: &Range<usize>) -> [u32; CLASSES] {
        let mut count = [0; CLASSES];
        self.order[items.clone()].iter().for_each(|at| count[usize::from(self.classes[*at as usize])] += 1);
        count
    }

    /// The split of these items that is best; `None` if none is better than no split.
    fn split(&mut self, items: &Range<usize>, weights: &[f64; CLASSES]) -> Option<Split> {
        let whole = self.count(items);
        if whole.iter().filter(|count| **count > 0).count() < 2 {
            return None;
        }
        let unsplit = score(&whole, weights);
        let mut best: Option<Split> = None;
        for feature in 0..WIDTH {
            let Some(split) = self.split_by(feature, items, &whole, weights) else { continue };
            // A little more than rounding yields.
            if split.score > best.map_or(unsplit * (1.0 + 1e-12), |best| best.score) {
                best = Some(split);
            }
        }
        best
    }

    fn split_by(
        &mut self,
        feature: usize,
        items: &Range<usize>,
        whole: &[u32; CLASSES],
        weights: &[f64; CLASSES],
    ) -> Option<Split> {
        let unseen = !self.growth.drops && DROPS.iter().any(|id| *id as usize == feature);
        if unseen || self.bounds[feature].is_empty() {
            return None;
        }
        let bins = &self.bins[feature];
        let (mut seen, mut missing) = ([0u64; 4], [0; CLASSES]);
        for at in &self.order[items.clone()] {
            let (bin, class) = (bins[*at as usize], usize::from(self.classes[*at as usize]));
            if bin == MISSING {
                missing[class] += 1;
            } else {
                self.histogram[usize::from(bin)][class] += 1;
                seen[usize::from(bin / 64)] |= 1 << (bin % 64);
            }
        }
        let known = minus(whole, &missing);
        let missing_too = sum(&missing);
        let (mut left, mut best) = ([0; CLASSES], None::<Split>);
        let occupied = seen.iter().enumerate().flat_map(|(word, bits)| ones(*bits).map(move |bit| 64 * word + bit));
        for bin in occupied {
            left = plus(&left, &std::mem::take(&mut self.histogram[bin]));
            let right = minus(&known, &left);
            let (mut sizes, missing_left) = ((sum(&left), sum(&right)), sum(&left) >= sum(&right));
            if sizes.1 == 0 {
                // The last one: all have been taken out again.
                break;
            }
            if missing_left {
                sizes.0 += missing_too
            } else {
                sizes.1 += missing_too
            }
            if (sizes.0.min(sizes.1) as usize) < self.growth.leaf {
                continue;
            }
            let (all_left, all_right) = match missing_left {
                true => (plus(&left, &missing), right),
                false => (left, plus(&right, &missing)),
            };
            let score = score(&all_left, weights) + score(&all_right, weights);
            if best.is_none_or(|best| score > best.score) {
                best = Some(Split { score, feature, bin: bin as u8, missing_left });
            }
        }
        best
    }

    /// Puts the items that go left before the others, each side in its order.
    fn part(&mut self, items: &Range<usize>, split: Split) -> (Range<usize>, Range<usize>) {
        self.aside.clear();
        let mut next = items.start;
        for at in items.clone() {
            let item = self.order[at];
            let bin = self.bins[split.feature][item as usize];
            if if bin == MISSING { split.missing_left } else { bin <= split.bin } {
                self.order[next] = item;
                next += 1;
            } else {
                self.aside.push(item);
            }
        }
        self.order[next..items.end].copy_from_slice(&self.aside);
        (items.start..next, next..items.end)
    }
}

/// The weight of each class.
pub fn weights(total: &[u32; CLASSES], most: f64) -> [f64; CLASSES] {
    let present = total.iter().filter(|count| **count > 0).count() as f64;
    let even = f64::from(sum(total)) / present.max(1.0);
    total
        .map(|count| if count == 0 { 0.0 } else { (even / f64::from(count)).clamp(1.0 / most.max(1.0), most.max(1.0)) })
}

/// What of a node's weight its purest guess is worth: its weight less its Gini impurity times its weight.
fn score(count: &[u32; CLASSES], weights: &[f64; CLASSES]) -> f64 {
    let (mut squares, mut all) = (0.0, 0.0);
    for class in 0..CLASSES {
        let weight = weights[class] * f64::from(count[class]);
        squares += weight * weight;
        all += weight;
    }
    if all > 0.0 { squares / all } else { 0.0 }
}

fn leaf(count: &[u32; CLASSES], weights: &[f64; CLASSES]) -> Node {
    let weight = |class: LossClass| weights[class as usize] * f64::from(count[class as usize]);
    let mut best = LossClass::Good;
    // Of equals the better class: it does not act.
    LossClass::ALL.into_iter().for_each(|class| {
        if weight(class) > weight(best) {
            best = class
        }
    });
    Node::Leaf(best)
}

/// The same tree without splits that lead to one class only.
fn pruned(nodes: &[Node]) -> Vec<Node> {
    let mut simple = nodes.to_vec();
    for at in (0..simple.len()).rev() {
        if let Node::Split { left, right, .. } = simple[at]
            && let (Node::Leaf(one), Node::Leaf(other)) = (simple[usize::from(left)], simple[usize::from(right)])
            && one == other
        {
            simple[at] = Node::Leaf(one);
        }
    }
    // From the root on, so that children stand behind their parents again.
    let mut kept = vec![simple[0]];
    let mut at = 0;
    while at < kept.len() {
        if let Node::Split { left, right, .. } = kept[at] {
            let first = kept.len() as u16;
            kept.extend([simple[usize::from(left)], simple[usize::from(right)]]);
            if let Node::Split { left, right, .. } = &mut kept[at] {
                (*left, *right) = (first, first + 1);
            }
        }
        at += 1;
    }
    kept
}

/// Bits of a float, so that they sort as it does.
fn sortable(value: f32) -> u32 {
    // Both zeros are one value.
    let bits = (value + 0.0).to_bits();
    if bits >> 31 == 0 { bits | 1 << 31 } else { !bits }
}

fn unsortable(key: u32) -> f32 {
    f32::from_bits(if key >> 31 == 1 { key & !(1 << 31) } else { !key })
}

/// A threshold between two neighbours: the lower goes left, the higher right.
fn between(low: f32, high: f32) -> f32 {
    let middle = low / 2.0 + high / 2.0;
    if low <= middle && middle < high { middle } else { low }
}

/// The places of the ones in a word.
fn ones(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let at = bits.trailing_zeros() as usize;
        (bits != 0).then(|| {
            bits &= bits - 1;
            at
        })
    })
}

fn sum(count: &[u32; CLASSES]) -> u32 {
    count.iter().sum()
}

fn plus(one: &[u32; CLASSES], other: &[u32; CLASSES]) -> [u32; CLASSES] {
    std::array::from_fn(|class| one[class] + other[class])
}

fn minus(one: &[u32; CLASSES], other: &[u32; CLASSES]) -> [u32; CLASSES] {
    std::array::from_fn(|class| one[class] - other[class])
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::Seed;
    use rand::Rng;

    /// Vectors of small whole numbers.
    fn vectors(count: usize, seed: u64) -> Vec<Vector> {
        let mut random = Seed(seed).stream("trainer");
        (0..count).map(|_| std::array::from_fn(|_| (random.next_u32() % 100) as f32)).collect()
    }

    fn train(growth: Growth, vectors: &[Vector], class: impl Fn(&Vector) -> LossClass + Clone) -> Tree {
        let items = vectors.iter().map(|vector| (vector, class(vector)));
        Trainer::new(growth).train(1, items.collect::<Vec<_>>().into_iter()).expect("there are items")
    }

    fn right(tree: &Tree, vectors: &[Vector], class: impl Fn(&Vector) -> LossClass) -> f64 {
        vectors.iter().filter(|vector| tree.classify(vector) == class(vector)).count() as f64 / vectors.len() as f64
    }

    /// Two thresholds in one feature, one in another.
    fn rule(vector: &Vector) -> LossClass {
        match (vector[3], vector[7]) {
            (low, _) if low <= 30.0 => LossClass::Good,
            (middle, _) if middle <= 60.0 => LossClass::Poor,
            (_, other) if other <= 50.0 => LossClass::Acceptable,
            _ => LossClass::Bad,
        }
    }

    #[test]
    fn a_rule_of_thresholds_is_found() {
        let tree = train(Growth::default(), &vectors(10_000, 1), rule);
        assert_eq!(right(&tree, &vectors(5_000, 2), rule), 1.0);
        assert_eq!((tree.nodes().len(), tree.classes()), (7, 4));
    }

    #[test]
    fn one_split_is_where_gini_says() {
        // By hand: values 1 to 8, good x 3, bad, good, bad x 3. Sums of squares over sizes: between 3 and 4, 9/3 + (16 + 1)/5 = 6.4;
        // between 5 and 6 the same; between 4 and 5, 2 * (9 + 1)/4 = 5.
        let of = |value: f32| if [1.0, 2.0, 3.0, 5.0].contains(&value) { LossClass::Good } else { LossClass::Bad };
        let vectors: Vec<Vector> = (1..=8u8)
            .map(|value| {
                let mut vector = [0.0; WIDTH];
                vector[2] = f32::from(value);
                vector
            })
            .collect();
        let tree =
            train(Growth { depth: 1, leaf: 1, weight_max: 1.0, ..Growth::default() }, &vectors, |vector| of(vector[2]));
        let Node::Split { feature, threshold, .. } = tree.nodes()[0] else { panic!("it splits") };
        assert_eq!((feature, threshold), (2, 3.5), "the first of equals");
    }

    #[test]
    fn no_leaf_is_smaller_than_allowed_and_no_way_longer() {
        // Noise: every split is welcome.
        let items = vectors(3000, 3);
        let class = |vector: &Vector| LossClass::ALL[(vector[0] * 7.0 + vector[1] * 3.0) as usize % 4];
        let growth = Growth { depth: 6, leaf: 40, weight_max: 10.0, ..Growth::default() };
        let tree = train(growth, &items, class);
        let mut reached = vec![0; tree.nodes().len()];
        for vector in &items {
            let (mut at, mut depth) = (0, 0);
            while let Node::Split { feature, threshold, left, right, .. } = tree.nodes()[at] {
                at = usize::from(if vector[usize::from(feature)] <= threshold { left } else { right });
                depth += 1;
            }
            reached[at] += 1;
            assert!(depth <= 6);
        }
        let leaves = tree.nodes().iter().zip(&reached).filter(|(node, _)| matches!(node, Node::Leaf(_)));
        assert!(leaves.clone().count() > 10 && leaves.clone().all(|(_, reached)| *reached >= 40));
    }

    #[test]
    fn a_rare_class_is_not_drowned() {
        // One in 50 is bad where the first feature is high, and one in two good ones is there, too.
        let class = |vector: &Vector| match vector[0] {
            high if high >= 50.0 && vector[1] < 4.0 => LossClass::Bad,
            _ => LossClass::Good,
        };
        let items: Vec<Vector> = vectors(10_000, 4)
            .into_iter()
            .map(|vector| {
                [vector[0], vector[1], 0.0, 0.0]
                    .into_iter()
                    .chain([0.0; WIDTH - 4])
                    .collect::<Vec<_>>()
                    .try_into()
                    .expect("as many")
            })
            .collect();
        // What decides is hidden: only the high half is known.
        let hidden: Vec<(Vector, LossClass)> = items
            .iter()
            .map(|vector| {
                let mut known = *vector;
                known[1] = 0.0;
                (known, class(vector))
            })
            .collect();
        let of = |weight_max| {
            let growth = Growth { weight_max, ..Growth::default() };
            let items = hidden.iter().map(|(vector, class)| (vector, *class));
            let tree = Trainer::new(growth).train(1, items).expect("there are items");
            hidden.iter().filter(|(vector, class)| *class == LossClass::Bad && tree.classify(vector) == *class).count()
        };
        assert_eq!(of(1.0), 0);
        assert!(of(100.0) > 100, "{}", of(100.0));
    }

    #[test]
    fn missing_values_go_with_most() {
        let mut items = vectors(4000, 5);
        items.iter_mut().step_by(4).for_each(|vector| vector[3] = f32::NAN);
        let class = |vector: &Vector| if vector[3] <= 30.0 { LossClass::Good } else { LossClass::Bad };
        let tree = train(Growth { depth: 1, ..Growth::default() }, &items, class);
        let Node::Split { feature: 3, threshold, missing_left: false, .. } = tree.nodes()[0] else {
            panic!("{:?}", tree.nodes()[0])
        };
        assert_eq!(threshold, 30.5);
        assert_eq!(right(&tree, &items, class), 1.0);
    }

    #[test]
    fn the_same_items_give_the_same_tree_and_an_old_trainer_too() {
        let (one, other) = (vectors(2000, 6), vectors(500, 7));
        let mut trainer = Trainer::new(Growth::default());
        let mut tree = |vectors: &[Vector]| {
            let items: Vec<_> = vectors.iter().map(|vector| (vector, rule(vector))).collect();
            trainer.train(1, items.into_iter())
        };
        let first = tree(&one);
        tree(&other);
        assert_eq!(tree(&one), first);
        assert_eq!(tree(&[]), None);
    }

    #[test]
    fn floats_sort_by_their_keys() {
        let values = [f32::MIN, -1.5, -f32::MIN_POSITIVE, 0.0, f32::MIN_POSITIVE, 2.0, f32::MAX];
        assert!(values.windows(2).all(|pair| sortable(pair[0]) < sortable(pair[1])));
        assert!(values.iter().all(|value| unsortable(sortable(*value)) == *value));
        assert_eq!(sortable(-0.0), sortable(0.0));
        for pair in values.windows(2) {
            let threshold = between(pair[0], pair[1]);
            assert!(pair[0] <= threshold && threshold < pair[1] && threshold.is_finite());
        }
    }

    #[test]
    fn a_tree_without_drop_features_never_splits_on_drops() {
        let vectors = vectors(400, 5);
        for id in DROPS {
            let class = |vector: &Vector| if vector[id as usize] > 50.0 { LossClass::Bad } else { LossClass::Good };
            assert!(train(Growth::default(), &vectors, class).nodes().len() > 1);
            let blind = train(Growth { drops: false, ..Growth::default() }, &vectors, class);
            let looks = |node: &Node| matches!(node, Node::Split { feature, .. } if DROPS.iter().any(|id| *id as u8 == *feature));
            assert!(!blind.nodes().iter().any(looks), "{id:?}");
        }
    }
}
