//! What an access point hands to a learner in another process, as bytes, and what is kept of it to train with.
//! Source:     \[oal\]: sampling on the access point, training beside it, with the newest 10 000 items.
//! Deviations: the paper sends samples to a controller, which labels them. Here the label is made where the segments pass, and the learner
//!             gets features and class: some octets an item and station each 50 ms, and nothing of the traffic.
//! Validity:   bytes of another list of features, or of values that cannot be, are refused.
//! Checked by: tests::*, the fuzz target `lesson`

use super::features::{FEATURES, SCHEMA, Vector};
use super::label::Item;
use super::predictor::LossClass;
use super::trainer::Trainer;
use super::tree::Tree;
use lasthop_units::Time;
use std::collections::VecDeque;

/// Items that are trained with: the newest.
pub const ITEMS: usize = 10_000;

/// An item as far as training needs it.
#[derive(Clone, Copy, Debug)]
pub struct Lesson {
    /// The end of its horizon, by the access point's clock.
    pub until: Time,
    /// Nothing was allowed to be tight then.
    pub abstained: bool,
    /// Its class.
    pub class: LossClass,
    /// What was known at its moment.
    pub features: Vector,
}

/// Why bytes are no lesson.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LessonError {
    /// Too short or too long.
    #[error("{0} octets are no lesson, which has {LESSON_LEN}")]
    Length(usize),
    /// It begins like nothing that is known.
    #[error("not a lesson of format 1")]
    Format,
    /// It is of other features.
    #[error("features {0:#018x}, not {SCHEMA:#018x}")]
    Schema(u64),
    /// A class that there is not.
    #[error("there is no class {0}")]
    Class(u8),
}

/// "OLi", and the number of the format.
const MAGIC: [u8; 4] = *b"OLi\x01";
/// Octets of a lesson: magic and format, [`SCHEMA`], end of the horizon (ns), whether it abstained, class; then the features, as 32-bit
/// floats; all big-endian.
pub const LESSON_LEN: usize = 4 + 8 + 8 + 1 + 1 + 4 * FEATURES.len();

impl Lesson {
    /// What is to be learned from an item.
    pub fn of(item: &Item, abstained: bool) -> Lesson {
        Lesson { until: item.until, abstained, class: item.class(), features: item.features }
    }

    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(LESSON_LEN);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&SCHEMA.to_be_bytes());
        out.extend_from_slice(&self.until.as_nanos().to_be_bytes());
        out.extend_from_slice(&[u8::from(self.abstained), self.class as u8]);
        self.features.iter().for_each(|value| out.extend_from_slice(&value.to_be_bytes()));
        out
    }

    /// The lesson that these bytes are.
    ///
    /// # Errors
    /// See [`LessonError`].
    pub fn decode(bytes: &[u8]) -> Result<Lesson, LessonError> {
        let length = || LessonError::Length(bytes.len());
        let (magic, rest) = bytes.split_first_chunk::<4>().ok_or_else(length)?;
        if *magic != MAGIC {
            return Err(LessonError::Format);
        }
        let (schema, rest) = rest.split_first_chunk().ok_or_else(length)?;
        let schema = u64::from_be_bytes(*schema);
        if schema != SCHEMA {
            return Err(LessonError::Schema(schema));
        }
        let (until, rest) = rest.split_first_chunk().ok_or_else(length)?;
        let ([abstained, class], rest) = rest.split_first_chunk().ok_or_else(length)?;
        let (values, behind) = rest.as_chunks::<4>();
        if !behind.is_empty() || values.len() != FEATURES.len() {
            return Err(length());
        }
        let until = Time::from_nanos(u64::from_be_bytes(*until));
        if *abstained > 1 {
            return Err(LessonError::Format);
        }
        let class = *LossClass::ALL.get(usize::from(*class)).ok_or(LessonError::Class(*class))?;
        let mut features = [f32::NAN; FEATURES.len()];
        features.iter_mut().zip(values).for_each(|(feature, value)| *feature = f32::from_be_bytes(*value));
        Ok(Lesson { until, abstained: *abstained != 0, class, features })
    }
}

/// The newest items, of which half are of time in which nothing was allowed to be tight, if there are so many.
#[derive(Clone, Debug)]
pub struct Store<T> {
    pub(super) explored: VecDeque<T>,
    pub(super) calm: VecDeque<T>,
}

impl<T> Default for Store<T> {
    fn default() -> Store<T> {
        Store { explored: VecDeque::new(), calm: VecDeque::new() }
    }
}

impl<T> Store<T> {
    /// Keeps an item, and lets the oldest go if there are more than [`ITEMS`].
    pub fn push(&mut self, item: T, abstained: bool) {
        let Store { explored, calm } = self;
        if abstained { &mut *explored } else { &mut *calm }.push_back(item);
        if explored.len() + calm.len() > ITEMS {
            let fuller = if explored.len() > ITEMS / 2 { explored } else { calm };
            fuller.pop_front();
        }
    }

    /// All that are kept: those of time in which nothing was allowed to be tight, then the others.
    pub fn iter(&self) -> impl Iterator<Item = &T> + Clone {
        self.explored.iter().chain(&self.calm)
    }
}

/// Trains trees with the lessons of an access point.
#[derive(Clone, Debug)]
pub struct School {
    trainer: Trainer,
    store: Store<Lesson>,
    newest: Time,
    trained: Option<Time>,
}

impl School {
    /// One that has had no lesson.
    pub fn new(trainer: Trainer) -> School {
        School { trainer, store: Store::default(), newest: Time::ZERO, trained: None }
    }

    /// Takes a lesson in.
    pub fn hear(&mut self, lesson: Lesson) {
        self.newest = self.newest.max(lesson.until);
        self.store.push(lesson, lesson.abstained);
    }

    /// A tree of the newest lessons, and the latest end of a horizon among them; `None` if there was no lesson since the last one, or if
    /// they make no tree.
    pub fn train(&mut self, version: u64) -> Option<(Time, Tree)> {
        if self.trained.is_some_and(|trained| trained >= self.newest) {
            return None;
        }
        let lessons: Vec<(&Vector, LossClass)> =
            self.store.iter().map(|lesson| (&lesson.features, lesson.class)).collect();
        let tree = self.trainer.train(version, lessons.into_iter())?;
        self.trained = Some(self.newest);
        Some((self.newest, tree))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oal::trainer::Growth;
    use proptest::prelude::*;

    fn lesson(n: u64, class: LossClass, backlog: f32) -> Lesson {
        let mut features = [f32::NAN; FEATURES.len()];
        features[0] = backlog;
        Lesson { until: Time::from_nanos(n * 50_000_000), abstained: n.is_multiple_of(3), class, features }
    }

    #[test]
    fn what_is_written_is_read() {
        let written = lesson(7, LossClass::Poor, 40.5);
        let bytes = written.encode();
        assert_eq!(bytes.len(), LESSON_LEN);
        let read = Lesson::decode(&bytes).expect("a lesson");
        assert_eq!((read.until, read.abstained, read.class), (written.until, written.abstained, written.class));
        assert_eq!(read.features.map(f32::to_bits), written.features.map(f32::to_bits));
        assert_eq!(Lesson::decode(&bytes[..30]).err(), Some(LessonError::Length(30)));
        let changed = |at: usize| {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x40;
            Lesson::decode(&bytes).err()
        };
        assert_eq!((changed(0), changed(21)), (Some(LessonError::Format), Some(LessonError::Class(0x42))));
        assert!(matches!(changed(4), Some(LessonError::Schema(_))));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_lesson_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200), valid in any::<bool>()) {
            let mut bytes = bytes;
            if valid {
                let head = lesson(1, LossClass::Good, 0.0).encode();
                let len = bytes.len().min(12);
                bytes[..len].copy_from_slice(&head[..len]);
                bytes.resize(LESSON_LEN, 1);
            }
            if let Ok(lesson) = Lesson::decode(&bytes) {
                prop_assert_eq!(lesson.encode(), bytes);
            }
        }
    }

    #[test]
    fn half_of_the_store_is_kept_for_explored_items() {
        let mut store = Store::default();
        (0..ITEMS).for_each(|n| store.push(n, true));
        (0..3 * ITEMS).for_each(|n| store.push(n, false));
        assert_eq!(store.iter().count(), ITEMS);
        assert_eq!(store.explored.len(), ITEMS / 2);
        assert_eq!(store.calm.back(), Some(&(3 * ITEMS - 1)));
    }

    #[test]
    fn a_school_trains_with_what_is_new_and_only_then() {
        let mut school = School::new(Trainer::new(Growth::default()));
        assert!(school.train(1).is_none());
        for n in 0..400 {
            let long = n % 2 == 0;
            let class = if long { LossClass::Bad } else { LossClass::Good };
            school.hear(lesson(n, class, if long { 100.0 } else { 1.0 }));
        }
        let (newest, tree) = school.train(5).expect("two classes");
        assert_eq!((newest, tree.version()), (Time::from_nanos(399 * 50_000_000), 5));
        let says = |backlog| tree.classify(&lesson(0, LossClass::Good, backlog).features);
        assert_eq!((says(90.0), says(2.0)), (LossClass::Bad, LossClass::Good));
        assert!(school.train(6).is_none(), "nothing is new");
        school.hear(lesson(400, LossClass::Good, 1.0));
        assert!(school.train(6).is_some());
    }
}
