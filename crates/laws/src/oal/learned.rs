//! The predictor that learns: it watches the hop, trains a tree each second, and predicts with the newest that is valid.
//! Source:     \[oal\] for the tree, and that it is trained anew each second; abstaining is own.
//! Equations:  abstain in slot k = floor(t / `SLOT`)  if hash(seed + salt, k) < `explore` 2^64
//! Symbols:    t -> `now`, explore -> `Learning::explore`, salt -> the first sequence number that passed
//! Deviations: only items of moments without tight windows are learned from, neither within their horizon nor just before it:
//!             acting removes the loss that it acts upon, and a tree that learned from that would let go. So that there are such
//!             items under load, too, the whole access point abstains for a small share of its time, in slots that last: its stations
//!             may share a queue, and one loses less than it would while its neighbours are held back. It also abstains
//!             in its first `COLD`, until it has a tree. Standing ceilings stay; the tree is asked whether to be tight.
//!             Of a station one item a horizon is kept: moments 4 ms apart are copies of each other, and 10 000 of
//!             those are seconds. Half of the store is kept for items of time in which it abstained: calm moments,
//!             which need no abstaining, would crowd them out. A class that the tree predicts holds for its horizon,
//!             for it is of all that enters by then; the worst that holds counts.
//! Validity:   the states are: no tree (the threshold decides) -> tree in force -> tree too old (the threshold decides) -> ...
//!             A tree is replaced between two decisions, whole.
//! Checked by: tests::*, tests/integration/conformance, crates/sim/tests/long/oal_learning.rs

use super::features::Vector;
use super::label::{Collector, Item, Timing};
use super::lesson::{Lesson, Store};
use super::predictor::{BacklogThreshold, LossClass, Predictor, StationState};
use super::trainer::{Growth, Trainer};
use super::tree::{Tree, TreeError};
use crate::{Decider, Model};
use dyn_clone::DynClone;
use lasthop_signals::{Node, Signal, Way};
use lasthop_units::{Span, Time};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Time between two trainings.
pub const RETRAIN: Span = Span::from_secs(1);
/// How long the access point abstains in one go: senders that were held back need tens of round trips to fill a queue.
pub const SLOT: Span = Span::from_secs(2);

/// How long it abstains at first if nothing makes a tree.
pub const COLD: Span = Span::from_secs(10);

/// How it learns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Learning {
    /// How items are made.
    pub timing: Timing,
    /// How trees are grown.
    pub growth: Growth,
    /// Share of time without tight windows, from 0 to 1.
    pub explore: f64,
    /// Which slots those are, with the first sequence number that passes: no two access points abstain together.
    pub seed: u64,
    /// A tree is not believed if its newest item is older than this.
    pub age_limit: Span,
}

impl Default for Learning {
    fn default() -> Learning {
        let (timing, growth) = (Timing::default(), Growth::default());
        Learning { timing, growth, explore: 0.05, seed: 0, age_limit: Span::from_secs(60) }
    }
}

impl Learning {
    /// Whether nothing is tight in the slot of this moment, so that it can be learned from.
    fn explores(&self, salt: u64, now: Time) -> bool {
        let slot = now.as_nanos() / SLOT.as_nanos();
        unit(self.seed.wrapping_add(salt), slot + 1) < self.explore
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
    /// It knows less of what happened last than the one in force.
    #[error("its newest item ended {0} before that of the tree in force")]
    Behind(Span),
    /// Its training has seen fewer than two classes.
    #[error("trained with {0} classes")]
    OneClass(u32),
}

/// Makes items of what is observed, and trees of items.
#[derive(Clone, Debug)]
pub struct Learner {
    learning: Learning,
    collector: Collector,
    trainer: Trainer,
    /// Items of moments at which nothing was tight.
    store: Store<Item>,
    /// `Some`: they are not kept here, but handed to the trainer elsewhere.
    lessons: Option<Vec<Lesson>>,
    /// The end of the horizon of each station's last item.
    kept_until: BTreeMap<Node, Time>,
    /// The latest end of a horizon among all items, and among those of the last training.
    newest: Time,
    /// Items that were kept or handed on so far.
    made: u64,
    trained: Option<Time>,
    next_training: Option<Time>,
    /// The first sequence number that passed.
    salt: Option<u64>,
    /// Until when it abstains at first; `None` before the first driver's report.
    cold_until: Option<Time>,
    version: u64,
}

/// A tree, and the time until which its training knew what had been lost.
#[derive(Clone, Debug)]
pub struct Trained {
    /// The tree.
    pub tree: Tree,
    /// The latest end of a horizon among its items.
    pub newest: Time,
}

impl Learner {
    /// A learner that has seen nothing.
    pub fn new(learning: Learning) -> Learner {
        Learner {
            learning,
            collector: Collector::new(learning.timing),
            trainer: Trainer::new(learning.growth),
            store: Store::default(),
            lessons: None,
            kept_until: BTreeMap::new(),
            newest: Time::ZERO,
            made: 0,
            trained: None,
            next_training: None,
            salt: None,
            cold_until: None,
            version: 0,
        }
    }

    /// Folds one observation in.
    pub fn sense(&mut self, now: Time, signal: &Signal) {
        self.collector.sense(now, signal);
        match signal {
            Signal::Segment(segment) if segment.way == Way::Down => {
                self.salt.get_or_insert(u64::from(segment.seq));
            }
            Signal::Hop(_) => {
                let cold = if self.learning.explore > 0.0 { COLD } else { Span::ZERO };
                self.cold_until.get_or_insert(now + cold);
                self.keep();
            }
            _ => {}
        }
    }

    /// Keeps what has become final, if it says something new.
    fn keep(&mut self) {
        let (learning, salt, cold) = (self.learning, self.salt.unwrap_or(0), self.cold_until);
        let Learner { store, lessons, kept_until, newest, made, .. } = self;
        self.collector.take_each(|at, station, item| {
            if kept_until.get(&station).is_some_and(|until| at < *until) {
                return;
            }
            let Some(item) = item().filter(|item| !item.acted) else { return };
            kept_until.insert(item.station, item.until);
            *newest = item.until.max(*newest);
            *made += 1;
            let abstained = learning.explores(salt, item.at) || cold.is_none_or(|cold| item.at < cold);
            match lessons {
                Some(lessons) => lessons.push(Lesson::of(&item, abstained)),
                None => store.push(item, abstained),
            }
        });
    }

    /// There is a tree: what it abstains for at first is over.
    fn warm(&mut self, now: Time) {
        self.cold_until = self.cold_until.map(|cold| cold.min(now));
    }

    /// Whether nothing may be tight now. It is cold until there is a tree, and for [`COLD`] at most.
    fn abstains(&self, now: Time) -> bool {
        let cold = self.cold_until.is_none_or(|cold| now < cold);
        self.learning.explore > 0.0 && (cold || self.learning.explores(self.salt.unwrap_or(0), now))
    }

    /// A tree of the newest items, if it is time for one and there are new ones.
    pub fn train(&mut self, now: Time) -> Option<Trained> {
        let due = *self.next_training.get_or_insert(now + RETRAIN);
        if now < due {
            return None;
        }
        self.next_training = Some(now + RETRAIN);
        if self.trained.is_some_and(|trained| trained >= self.newest) {
            return None;
        }
        let Learner { store, trainer, .. } = self;
        let items: Vec<(&Vector, LossClass)> = store.iter().map(|item| (&item.features, item.class())).collect();
        let tree = trainer.train(self.version + 1, items.into_iter())?;
        self.version += 1;
        self.trained = Some(self.newest);
        Some(Trained { tree, newest: self.newest })
    }

    /// The items that the next tree is trained with.
    pub fn items(&self) -> impl Iterator<Item = &Item> {
        self.store.iter()
    }

    /// What makes them.
    pub fn collector(&mut self) -> &mut Collector {
        &mut self.collector
    }
}

/// Trains somewhere else, in its own time. Nothing that it is asked waits.
pub trait Elsewhere: DynClone + Send {
    /// Takes a lesson there.
    fn hand(&mut self, lesson: &Lesson);
    /// The next tree that has come from there, as bytes, with the latest end of a horizon among its lessons as it says.
    fn tree(&mut self, now: Time) -> Option<(Time, Vec<u8>)>;
    /// The last one was not taken.
    fn refused(&mut self, now: Time, why: &Refused);
    /// From now on its trees decide, or do not since the newest is older than `age_limit`.
    fn decides(&mut self, now: Time, does: bool, age_limit: Span);
}

dyn_clone::clone_trait_object!(Elsewhere);

/// Predicts with the newest tree, and with a threshold as long as there is none.
#[derive(Clone)]
pub struct Learned {
    learning: Learning,
    fallback: BacklogThreshold,
    /// Decides in place of the threshold, if there is one.
    fixed: Option<Arc<Tree>>,
    learner: Learner,
    /// Whether it trains, or waits for trees from elsewhere.
    trains: bool,
    /// The trainer elsewhere that gets its items.
    elsewhere: Option<Box<dyn Elsewhere>>,
    in_force: Option<InForce>,
    /// At the last driver's report a tree was in force, and not too old.
    decided: bool,
    /// For each station and class, until when it is predicted.
    standing: BTreeMap<Node, [Time; LossClass::ALL.len()]>,
}

#[derive(Clone, Debug)]
struct InForce {
    tree: Arc<Tree>,
    /// Its newest item.
    newest: Time,
}

impl Learned {
    /// A predictor that trains its own trees. `fallback` decides while it has none.
    pub fn new(learning: Learning, fallback: BacklogThreshold) -> Learned {
        Learned {
            learning,
            fallback,
            fixed: None,
            learner: Learner::new(learning),
            trains: true,
            elsewhere: None,
            in_force: None,
            decided: false,
            standing: BTreeMap::new(),
        }
    }

    /// A predictor with trees that come from elsewhere, by [`Learned::adopt`].
    pub fn taught(learning: Learning, fallback: BacklogThreshold) -> Learned {
        Learned { trains: false, ..Learned::new(learning, fallback) }
    }

    /// A predictor that hands its items to a trainer elsewhere, and gets its trees from there.
    pub fn trained_elsewhere(learning: Learning, fallback: BacklogThreshold, who: Box<dyn Elsewhere>) -> Learned {
        let mut learned = Learned { elsewhere: Some(who), ..Learned::taught(learning, fallback) };
        learned.learner.lessons = Some(Vec::new());
        learned
    }

    /// The same predictor with a tree that decides in place of the threshold. It has no age.
    pub fn with_fixed(self, tree: Arc<Tree>) -> Learned {
        Learned { fixed: Some(tree), ..self }
    }

    /// Hands on what was learned, and takes what has come. What is said of a tree's newest item is believed only of the past.
    fn attend(&mut self, now: Time) {
        let lessons = self.learner.lessons.as_mut().map(std::mem::take).unwrap_or_default();
        let Some(mut who) = self.elsewhere.take() else { return };
        lessons.iter().for_each(|lesson| who.hand(lesson));
        // One an interval: a trainer that never pauses shall not keep the access point busy.
        if let Some((newest, bytes)) = who.tree(now) {
            match self.adopt_bytes(newest.min(self.learner.newest), &bytes) {
                Ok(()) if self.tree(now).is_some() => self.learner.warm(now),
                Ok(()) => {}
                Err(why) => who.refused(now, &why),
            }
        }
        let decides = self.tree(now).is_some();
        if std::mem::replace(&mut self.decided, decides) != decides {
            who.decides(now, decides, self.learning.age_limit);
        }
        self.elsewhere = Some(who);
    }

    /// Whether it learns, here or elsewhere.
    fn learns(&self) -> bool {
        self.trains || self.elsewhere.is_some()
    }

    /// Puts a tree in force. Its newest item ended at `newest`.
    ///
    /// # Errors
    /// See [`Refused`]; the tree that was in force stays.
    pub fn adopt(&mut self, newest: Time, tree: Arc<Tree>) -> Result<(), Refused> {
        if let Some(InForce { tree: old, newest: last }) = &self.in_force {
            if newest < *last {
                return Err(Refused::Behind(last.since(newest)));
            }
            if tree.version() <= old.version() && newest.since(*last) <= self.learning.age_limit {
                return Err(Refused::Old { got: tree.version(), in_force: old.version() });
            }
        }
        if tree.classes() < 2 {
            return Err(Refused::OneClass(tree.classes()));
        }
        self.in_force = Some(InForce { tree, newest });
        Ok(())
    }

    /// Puts a tree in force that came as bytes; its newest item ended at `newest`.
    ///
    /// # Errors
    /// See [`Refused`]; the tree that was in force stays.
    pub fn adopt_bytes(&mut self, newest: Time, bytes: &[u8]) -> Result<(), Refused> {
        self.adopt(newest, Arc::new(Tree::decode(bytes)?))
    }

    /// The tree that decides; `None` while the threshold does.
    pub fn tree(&self, now: Time) -> Option<&Arc<Tree>> {
        let fresh = |in_force: &&InForce| now.since(in_force.newest) <= self.learning.age_limit;
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
        if !matches!(signal, Signal::Hop(_)) {
            return;
        }
        self.attend(now);
        if self.trains
            && let Some(Trained { tree, newest }) = self.learner.train(now)
        {
            // Where all was well there is nothing to tell apart, and what was learned before stays.
            if self.adopt(newest, Arc::new(tree)).is_ok() {
                self.learner.warm(now);
            }
        }
    }

    fn wants_segments(&self) -> bool {
        self.learns()
    }

    fn predict(&mut self, state: &StationState) -> LossClass {
        let vector = self.learner.collector.sampler().vector(state.station);
        let Some((tree, vector)) = self.tree(state.now).or(self.fixed.as_ref()).zip(vector) else {
            return self.fallback.predict(state);
        };
        let class = tree.classify(vector);
        // What is predicted is predicted of a whole horizon.
        let until = state.now + self.learner.collector.horizon(state.station);
        let holds = self.standing.entry(state.station).or_default();
        holds[class as usize] = until;
        LossClass::ALL.into_iter().rev().find(|class| state.now < holds[*class as usize]).unwrap_or(class)
    }

    fn abstains(&self, now: Time) -> bool {
        self.learns() && self.learner.abstains(now)
    }

    fn acted(&mut self, tight: bool) {
        self.learner.collector.acted(tight);
    }

    fn model(&self, now: Time) -> Option<Model> {
        let decider = match (self.tree(now), &self.fixed) {
            (Some(_), _) => Decider::Learned,
            (None, Some(_)) => Decider::Given,
            (None, None) => Decider::Rule,
        };
        Some(Model {
            decider,
            version: self.in_force.as_ref().map(|in_force| in_force.tree.version()),
            age: self.in_force.as_ref().map(|in_force| now.since(in_force.newest)),
            age_limit: self.learning.age_limit,
            items: self.learner.made,
        })
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
