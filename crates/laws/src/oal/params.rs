//! What an operator may set of the access-point law.

use crate::param::from_to;
use crate::{params, words};
use lasthop_units::Span;

const MS: Span = Span::from_millis(1);

params! {
    /// Parameters of [`super::AccessPoint`]. The defaults are what Lasthop recommends; the `Paper` variants are the
    /// published rules, kept so that the worth of each change can be measured.
    pub struct Params {
        /// What is shared equally.
        weights: Weights = "airtime";
        /// How the capacity of the hop is estimated.
        capacity: CapacityRule = "airtime";
        /// How a window follows from a rate.
        window: WindowRule = "unloaded";
        /// Room for the frames of one service round beyond the unloaded round trip (q in the law's equations): the
        /// least value used. A longer measured service round takes its place.
        slack: Span = "5 ms", |p| !p.slack.is_zero() => "longer than zero, or the hop idles between frames";
        /// Most room that a measured service round may claim.
        slack_max: Span = "20 ms", |p| p.slack_max >= p.slack => "at least slack";
        /// Backlog, as the time to drain it at the present capacity, from which on the hop counts as about to lose.
        trigger: Span = "2.5 ms", |p| p.trigger < p.slack => "below slack, or a tight window releases itself";
        /// Decisions without need that must follow each other before windows are released.
        release_after: u32 = "3", |p| (1..=10_000).contains(&p.release_after) => "from 1 to 10000";
        /// Standing ceiling as a multiple of what one flow could use alone: 1 to 64.
        ceiling_gain: f64 = "1.25", |p| (1.0..=64.0).contains(&p.ceiling_gain) => "from 1 to 64";
        /// How the law knows that the hop is about to lose.
        predictor: Prediction = "threshold";
        /// `learned`: how far a prediction looks ahead at least; the wired round trip of a station's flows, where that is longer.
        horizon: Span = "50 ms", |p| from_to(p.horizon, MS, Span::from_millis(500)) => "from 1 ms to 500 ms";
        /// `learned`: how long after that a loss may be repaired and still count.
        repair: Span = "1.5 s", |p| from_to(p.repair, MS * 100, Span::from_secs(60)) => "from 100 ms to 60 s";
        /// `learned`: splits on the longest way through a tree.
        depth: u32 = "16", |p| from_to(p.depth, 1, 32) => "from 1 to 32";
        /// `learned`: share of time in which windows are not tight, so that what is lost then can be learned from.
        explore: f64 = "0.05", |p| from_to(p.explore, 0.0, 1.0) => "from 0 to 1";
        /// `learned`: the number from which follows when that is, with the first sequence number that passes.
        explore_seed: u64 = "0";
        /// `learned`: a tree is not believed if its newest item is older than this; `trigger` decides instead.
        tree_age_limit: Span = "60 s", |p| !p.tree_age_limit.is_zero() => "longer than zero";
    }
}

words! {
    /// What is shared equally.
    pub enum Weights {
        /// Every backlogged flow gets the same rate.
        Flow = "flow",
        /// Every station with a backlogged flow gets the same rate.
        Station = "station",
        /// Every station with a backlogged flow gets the same airtime.
        Airtime = "airtime",
        /// Rates in proportion to the square root of what each flow's link carries: minimum potential delay, the utility
        /// -1/x that the published law maximises (equation 1.2 as reconstructed), on a hop with links that share
        /// airtime.
        PotentialDelay = "potential-delay",
    }
}

words! {
    /// How the capacity of the hop is estimated.
    pub enum CapacityRule {
        /// What each link carries a second of airtime now, times the airtime that this BSS can have now.
        Airtime = "airtime",
        /// The paper's rule: aggregate goodput of the nearest uncongested slot, which is stale while the channel moves.
        Paper = "paper",
    }
}

words! {
    /// How the law knows that the hop is about to lose.
    pub enum Prediction {
        /// From how long the backlog takes to drain (`trigger`), and from drops.
        Threshold = "threshold",
        /// From a decision tree that is trained anew every second on what the access point has seen: the paper's way. `trigger` decides
        /// while there is none. It needs to know of all segments that pass.
        Learned = "learned",
    }
}

words! {
    /// How a window follows from a rate.
    pub enum WindowRule {
        /// Rate times the unloaded round trip plus slack, under a standing ceiling.
        Unloaded = "unloaded",
        /// The paper's rule: rate times the round trip as it is, queue included, and no ceiling while the hop is well (the
        /// nearest computable reading of the paper's historical map from cwnd to rate).
        Paper = "paper",
        /// From a map of each flow's own past windows and rates, and no ceiling while the hop is well: what the paper names without a
        /// formula. `paper` while there is none.
        Learned = "learned",
    }
}
