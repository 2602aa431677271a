//! How late the emulator did what its models asked for, by what it was.

use crate::histogram::{Histogram, Summary};
use lasthop_units::{Span, named};

named! {
    /// What can be late.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub enum Kind {
        /// A packet handed to its receiver, against the moment at which the model delivered it.
        Delivery = "delivery",
        /// A driver's report sent to whoever reads it, against the moment at which its counters were read.
        DriverReport = "driver_report",
        /// A model woken, against the moment that it had asked for. Where one wake-up serves several events of a model, this is
        /// the lateness of the first, and so that of none of them is greater.
        ModelEvent = "model_event",
    }
}

impl Kind {
    /// Several of them, in a sentence.
    pub const fn plural(self) -> &'static str {
        match self {
            Kind::Delivery => "packets",
            Kind::DriverReport => "driver reports",
            Kind::ModelEvent => "model events",
        }
    }
}

/// A histogram for each kind.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    of: [Histogram; Kind::ALL.len()],
}

impl Lateness {
    /// Counts one event that was `late`.
    pub fn add(&mut self, kind: Kind, late: Span) {
        self.of[kind as usize].add(late);
    }

    /// Count and quantiles of one kind.
    pub fn summary(&self, kind: Kind) -> Summary {
        self.of[kind as usize].summary()
    }

    /// Count and quantiles of every kind that occurred.
    pub fn summaries(&self) -> Vec<(Kind, Summary)> {
        let all = Kind::ALL.into_iter().map(|kind| (kind, self.summary(kind)));
        all.filter(|(_, summary)| summary.count > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_counted_apart_and_empty_kinds_left_out() {
        let mut lateness = Lateness::default();
        (1..=100).for_each(|us| lateness.add(Kind::ModelEvent, Span::from_micros(us)));
        lateness.add(Kind::Delivery, Span::from_millis(7));
        let [(first, delivery), (second, event)] = lateness.summaries()[..] else { panic!("two kinds occurred") };
        assert_eq!((first, delivery.count, delivery.max), (Kind::Delivery, 1, Span::from_millis(7)));
        assert_eq!((second, event.count, event.max), (Kind::ModelEvent, 100, Span::from_micros(100)));
    }
}
