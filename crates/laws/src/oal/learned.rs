//! The predictor that learns: it watches the hop, trains a tree each second, and predicts with the newest that is valid.
//! Source:     oal.md A.4; second-reading/oal.md, part 8 and its first trap.
//! Equations:  abstain in slot k = floor(t / `SLOT`)  if hash(seed, k) < `explore` 2^64
//! Symbols:    t -> `now`, explore -> `Learning::explore`
//! Deviations: only items of moments without tight windows are learned from, neither within their horizon nor just before it:
//!             acting removes the loss that it acts upon, and a tree that learned from that would let go. So that there are such
//!             items under load, too, the whole access point abstains for a small share of its time, in slots that last: its stations
//!             may share a queue, and one whose neighbours are held back loses less than it would. Standing ceilings stay; the tree
//!             is asked whether to be tight.
//! Validity:   the states are: no tree (the threshold decides) -> tree in force -> tree too old (the threshold decides) -> ...
//!             A tree is replaced between two decisions, whole.
//! Checked by: tests::*, tests/conformance, crates/sim/tests/oal_labels.rs

use super::label::{Collector, Item, Timing};
use super::predictor::{BacklogThreshold, LossClass, Predictor, StationState};
use super::trainer::{Growth, Trainer};
use super::tree::{Tree, TreeError};
use lasthop_signals::Signal;
use lasthop_units::{Span, Time};
use std::collections::VecDeque;
use std::sync::Arc;

/// Items that are trained with: the newest.
pub const ITEMS: usize = 10_000;
/// Time between two trainings.
pub const RETRAIN: Span = Span::from_secs(1);
/// How long the access point abstains in one go: senders that were held back need tens of round trips to fill a queue.
pub const SLOT: Span = Span::from_secs(2);

/// How it learns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Learning {
    /// How items are made.
    pub timing: Timing,
    /// How trees are grown.
    pub growth: Growth,
    /// Share of time without tight windows, from 0 to 1.
    pub explore: f64,
    /// Which slots those are.
    pub seed: u64,
    /// A tree that was not replaced for so long is not believed.
    pub age_limit: Span,
}

impl Default for Learning {
    fn default() -> Learning {
        let (timing, growth) = (Timing::default(), Growth::default());
        Learning { timing, growth, explore: 0.05, seed: 0, age_limit: Span::from_secs(60) }
    }
}

/// Why a tree is not taken.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// Its bytes are no tree, or one of other features.
    #[error(transparent)]
    Invalid(#[from] TreeError),
    /// It is not newer than the one in force.
    #[error("version {got} is not above {in_force}, which is in force")]
    Old {
        /// The version that came.
        got: u64,
        /// The version that stays.
        in_force: u64,
    },
    /// Its training has seen fewer than two classes.
    #[error("trained with {0} classes")]
    OneClass(u32),
}

/// Makes items of what is observed, and trees of items.
#[derive(Clone, Debug)]
pub struct Learner {
    collector: Collector,
    trainer: Trainer,
    /// The newest items of moments at which nothing was tight.
    items: VecDeque<Item>,
    next_training: Option<Time>,
    version: u64,
}

impl Learner {
    /// A learner that has seen nothing.
    pub fn new(timing: Timing, growth: Growth) -> Learner {
        Learner {
            collector: Collector::new(timing),
            trainer: Trainer::new(growth),
            items: VecDeque::new(),
            next_training: None,
            version: 0,
        }
    }

    /// Folds one observation in.
    pub fn sense(&mut self, now: Time, signal: &Signal) {
        self.collector.sense(now, signal);
        if !matches!(signal, Signal::Hop(_)) {
            return;
        }
        let items = &mut self.items;
        self.collector.take(|item| {
            if !item.acted {
                items.push_back(item);
            }
        });
        let surplus = self.items.len().saturating_sub(ITEMS);
        self.items.drain(..surplus);
    }

    /// A tree of the newest items, if it is time for one and there are any.
    pub fn train(&mut self, now: Time) -> Option<Tree> {
        let due = *self.next_training.get_or_insert(now + RETRAIN);
        if now < due {
            return None;
        }
        self.next_training = Some(now + RETRAIN);
        self.version += 1;
        self.trainer.train(self.version, self.items.iter().map(|item| (&item.features, item.class())))
    }

    /// The items that the next tree is trained with.
    pub fn items(&self) -> impl ExactSizeIterator<Item = &Item> {
        self.items.iter()
    }

    /// What makes them.
    pub fn collector(&mut self) -> &mut Collector {
        &mut self.collector
    }
}

/// Predicts with the newest tree, and with a threshold as long as there is none.
#[derive(Clone, Debug)]
pub struct Learned {
    learning: Learning,
    fallback: BacklogThreshold,
    learner: Learner,
    /// Whether it trains, or waits for trees from elsewhere.
    trains: bool,
    in_force: Option<InForce>,
}

#[derive(Clone, Debug)]
struct InForce {
    tree: Arc<Tree>,
    since: Time,
}

impl Learned {
    /// A predictor that trains its own trees. `fallback` decides while it has none.
    pub fn new(learning: Learning, fallback: BacklogThreshold) -> Learned {
        let learner = Learner::new(learning.timing, learning.growth);
        Learned { learning, fallback, learner, trains: true, in_force: None }
    }

    /// A predictor whose trees come from elsewhere, by [`Learned::adopt`].
    pub fn taught(learning: Learning, fallback: BacklogThreshold) -> Learned {
        Learned { trains: false, ..Learned::new(learning, fallback) }
    }

    /// Puts a tree in force.
    ///
    /// # Errors
    /// See [`Refused`]; the tree that was in force stays.
    pub fn adopt(&mut self, now: Time, tree: Arc<Tree>) -> Result<(), Refused> {
        if let Some(InForce { tree: old, .. }) = &self.in_force
            && tree.version() <= old.version()
        {
            return Err(Refused::Old { got: tree.version(), in_force: old.version() });
        }
        if tree.classes() < 2 {
            return Err(Refused::OneClass(tree.classes()));
        }
        self.in_force = Some(InForce { tree, since: now });
        Ok(())
    }

    /// Puts a tree in force that came as bytes.
    ///
    /// # Errors
    /// See [`Refused`]; the tree that was in force stays.
    pub fn adopt_bytes(&mut self, now: Time, bytes: &[u8]) -> Result<(), Refused> {
        self.adopt(now, Arc::new(Tree::decode(bytes)?))
    }

    /// The tree that decides; `None` while the threshold does.
    pub fn tree(&self, now: Time) -> Option<&Arc<Tree>> {
        let fresh = |in_force: &&InForce| now.since(in_force.since) <= self.learning.age_limit;
        self.in_force.as_ref().filter(fresh).map(|in_force| &in_force.tree)
    }

    /// What it learns from.
    pub fn learner(&mut self) -> &mut Learner {
        &mut self.learner
    }
}

impl Predictor for Learned {
    fn sense(&mut self, now: Time, signal: &Signal) {
        self.learner.sense(now, signal);
        if self.trains
            && matches!(signal, Signal::Hop(_))
            && let Some(tree) = self.learner.train(now)
        {
            // Where all was well there is nothing to tell apart, and what was learned before stays.
            let _one_class = self.adopt(now, Arc::new(tree));
        }
    }

    fn wants_segments(&self) -> bool {
        self.trains
    }

    fn predict(&mut self, state: &StationState) -> LossClass {
        let vector = self.learner.collector.sampler().vector(state.station);
        match self.tree(state.now).zip(vector) {
            Some((tree, vector)) => tree.classify(vector),
            None => self.fallback.predict(state),
        }
    }

    fn abstains(&self, now: Time) -> bool {
        let slot = now.as_nanos() / SLOT.as_nanos();
        self.trains && unit(self.learning.seed, slot) < self.learning.explore
    }

    fn acted(&mut self, tight: bool) {
        self.learner.collector.acted(tight);
    }
}

/// A number from 0 to 1 that looks drawn at random: the finaliser of SplitMix64 (Steele, Lea, Flood 2014) of a slot and a seed.
fn unit(seed: u64, slot: u64) -> f64 {
    let mut x = seed.wrapping_add(slot.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ x >> 31) as f64 / 2f64.powi(64)
}

#[cfg(test)]
mod tests;
