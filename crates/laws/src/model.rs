//! What a law that learns decides by, for an operator to see.

use lasthop_units::{Span, named};

named! {
    /// What decides.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Decider {
        /// The newest model that was learned, and is not too old.
        Learned = "learned",
        /// A model that was given, and does not age.
        Given = "given",
        /// The rule that stands in while there is no model.
        Rule = "rule",
    }
}

/// The model of a law at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Model {
    /// What decides now.
    pub decider: Decider,
    /// The version of the newest one that was learned and taken; `None` before the first.
    pub version: Option<u64>,
    /// How long ago the newest of the items ended that it was trained with.
    pub age: Option<Span>,
    /// From which age on it is not believed.
    pub age_limit: Span,
    /// Items to learn from that were made so far.
    pub items: u64,
}
