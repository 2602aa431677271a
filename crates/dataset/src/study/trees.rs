//! What trees are worth that learn from a data set: on held-out time, access points and seeds, beside what does not learn.
//! Source:     \[oal\], Table 4; the paper's scores are of its training set.
//! Equations:  macro-F = mean of F over the classes that occur;  F = 2 both / (said + are)
//! Symbols:    both, said, are -> `Score`
//! Deviations: the paper's table is of the items that its trees were trained with: it is printed beside, and compares nothing.
//! Validity:   items of moments when windows were tight are left out. Of more than [`LEARN_MAX`] items every so manieth is learned from.
//! Checked by: crates/dataset/tests/integration/study.rs

use crate::row::Row;
use crate::split::{self, By, Fold};
use crate::{Meta, Pseudonym};
use lasthop_laws::oal::features::FeatureId;
use lasthop_laws::oal::predictor::{BacklogThreshold, LossClass, Predictor, StationState};
use lasthop_laws::oal::trainer::{Growth, Trainer};
use lasthop_report::{Estimate, Figure};
use lasthop_signals::Node;
use lasthop_units::{Span, Time};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// Items that one tree learns from at most.
pub const LEARN_MAX: usize = 200_000;

const CLASSES: usize = LossClass::ALL.len();

/// The predictor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Who {
    /// A tree.
    Tree,
    /// A tree that knows nothing of drops.
    TreeWithoutDrops,
    /// The last class of the station of which is known what was lost.
    Persistence,
    /// A limit of the time in which the backlog drains, the best on what was learned from.
    Threshold,
    /// The most frequent class of what was learned from.
    Majority,
}

impl Who {
    /// Everyone.
    pub const ALL: [Who; 5] = [Who::Tree, Who::TreeWithoutDrops, Who::Persistence, Who::Threshold, Who::Majority];
}

/// Mean over folds, and the 95 % interval of the mean where there are several.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// The ends of its interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
}

impl fmt::Display for Mean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ci95 {
            Some([low, high]) => write!(f, "{:.3} ± {:.3}", self.mean, (high - low) / 2.0),
            None => write!(f, "{:.3}", self.mean),
        }
    }
}

/// What a split gave.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Split {
    /// What was held out.
    pub by: &'static str,
    /// How often something was.
    pub folds: usize,
    /// Items that were asked for.
    pub items: usize,
    /// Macro-F, by predictor.
    pub macro_f: BTreeMap<Who, Mean>,
    /// By how much the tree is above the best of the three that do not learn, fold by fold.
    pub margin: Mean,
    /// The same of the tree without drops.
    pub margin_without_drops: Mean,
    /// Precision, recall and F of the tree for each class, over all folds.
    pub tree: [[f64; 3]; CLASSES],
}

/// How often a class was said, is, and both.
#[derive(Clone, Copy, Default)]
struct Score {
    said: u64,
    are: u64,
    both: u64,
}

impl Score {
    fn measures(&self) -> [f64; 3] {
        let share = |part: u64, of: u64| part as f64 / of.max(1) as f64;
        [share(self.both, self.said), share(self.both, self.are), share(2 * self.both, self.said + self.are)]
    }
}

type Scores = [Score; CLASSES];

fn score<'r>(rows: impl Iterator<Item = (&'r Row, LossClass)>) -> Scores {
    let mut scores = Scores::default();
    for (row, says) in rows {
        let is = row.class();
        scores[says as usize].said += 1;
        scores[is as usize].are += 1;
        scores[is as usize].both += u64::from(says == is);
    }
    scores
}

fn macro_f(scores: &Scores) -> f64 {
    let present: Vec<f64> = scores.iter().filter(|score| score.are > 0).map(|score| score.measures()[2]).collect();
    present.iter().sum::<f64>() / present.len().max(1) as f64
}

/// Every split of these items, none of which is of a moment when windows were tight. Those that leave one side empty are left out.
pub fn splits(meta: &Meta, rows: &[Row]) -> Vec<Split> {
    let known = persistence(meta, rows);
    By::ALL.into_iter().filter_map(|by| split(rows, &known, by, &split::folds(meta, rows, by))).collect()
}

fn split(rows: &[Row], known: &[LossClass], by: By, folds: &[Fold]) -> Option<Split> {
    if folds.is_empty() {
        return None;
    }
    let mut all = Scores::default();
    let mut of_fold: Vec<[f64; Who::ALL.len()]> = Vec::new();
    for fold in folds {
        let scores = scores(rows, known, fold);
        for (all, score) in all.iter_mut().zip(&scores[0]) {
            (all.said, all.are, all.both) = (all.said + score.said, all.are + score.are, all.both + score.both);
        }
        of_fold.push(scores.map(|scores| macro_f(&scores)));
    }
    let mean = |of: &dyn Fn(&[f64; Who::ALL.len()]) -> f64| {
        let figures: Vec<Figure> = of_fold.iter().map(|fold| Figure::Exact(of(fold))).collect();
        let estimate = Estimate::of("1", &figures);
        Mean { mean: estimate.mean.unwrap_or(f64::NAN), ci95: estimate.ci95 }
    };
    let rival = |fold: &[f64; Who::ALL.len()]| fold[2..].iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some(Split {
        by: by.name(),
        folds: folds.len(),
        items: folds.iter().map(|fold| fold.ask.len()).sum(),
        macro_f: Who::ALL.into_iter().enumerate().map(|(place, who)| (who, mean(&|fold| fold[place]))).collect(),
        margin: mean(&|fold| fold[0] - rival(fold)),
        margin_without_drops: mean(&|fold| fold[1] - rival(fold)),
        tree: all.map(|score| score.measures()),
    })
}

fn scores(rows: &[Row], known: &[LossClass], fold: &Fold) -> [Scores; Who::ALL.len()] {
    let step = fold.learn.len().div_ceil(LEARN_MAX).max(1);
    let learn: Vec<&Row> = fold.learn.iter().step_by(step).map(|at| &rows[*at]).collect();
    let ask = || fold.ask.iter().map(|at| &rows[*at]);
    let of_tree = |growth| {
        let tree = Trainer::new(growth).train(1, learn.iter().map(|row| (&row.features, row.class())));
        score(ask().map(|row| {
            let says = tree.as_ref().map_or(LossClass::Good, |tree| tree.classify(&row.features));
            (row, says)
        }))
    };
    let worth = |limit: &Span| macro_f(&score(learn.iter().copied().zip(threshold(*limit, learn.iter().copied()))));
    let limits = (0..10).map(|power| Span::from_micros(2500) * (1 << power));
    let limit = limits.max_by(|one, other| worth(one).total_cmp(&worth(other))).unwrap_or(Span::from_millis(5));
    let mut counts = [0_u64; CLASSES];
    learn.iter().for_each(|row| counts[row.class() as usize] += 1);
    let most = LossClass::ALL.into_iter().max_by_key(|class| counts[*class as usize]).unwrap_or(LossClass::Good);
    [
        of_tree(Growth::default()),
        of_tree(Growth { drops: false, ..Growth::default() }),
        score(fold.ask.iter().map(|at| (&rows[*at], known[*at]))),
        score(ask().zip(threshold(limit, ask()))),
        score(ask().map(|row| (row, most))),
    ]
}

fn threshold<'r>(limit: Span, rows: impl Iterator<Item = &'r Row>) -> impl Iterator<Item = LossClass> {
    let mut threshold = BacklogThreshold::new(limit);
    rows.map(move |row| {
        let feature = |id: FeatureId| row.features[id as usize];
        let drain = Some(f64::from(feature(FeatureId::Drain))).filter(|drain| drain.is_finite() && *drain > 0.0);
        let drains_in = drain.map_or(Span::ZERO, |drain| Span::from_secs_f64(drain.min(1e6)));
        let drops = u64::from(feature(FeatureId::HopDrops4) > 0.0);
        threshold.predict(&StationState { now: row.at, station: Node(0), drains_in, drops })
    })
}

/// For each row the class of the station's last item of which was known by then what it had lost.
fn persistence(meta: &Meta, rows: &[Row]) -> Vec<LossClass> {
    let mut of: BTreeMap<(u32, Pseudonym, Pseudonym), Vec<usize>> = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        of.entry((row.recording, row.access_point, row.station)).or_default().push(at);
    }
    let mut known = vec![LossClass::Good; rows.len()];
    for ((recording, ..), mut places) in of {
        let repair = meta.recordings.get(recording as usize).map_or(Span::ZERO, |of| Span::from_micros(of.repair_us));
        places.sort_by_key(|at| rows[*at].at);
        let (mut next, mut last) = (0, None);
        for at in &places {
            let now: Time = rows[*at].at;
            while places.get(next).is_some_and(|before| rows[*before].until() + repair <= now) {
                last = Some(rows[places[next]].class());
                next += 1;
            }
            known[*at] = last.unwrap_or(LossClass::Good);
        }
    }
    known
}
