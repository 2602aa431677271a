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
        /// How the hop's capacity is estimated.
        capacity: CapacityRule = "airtime";
        /// How a window follows from a rate.
        window: WindowRule = "unloaded";
        /// Least time for a service round's frames beyond the unloaded round trip (q); a
        /// longer measured round replaces it.
        slack: Span = "5 ms", |p| !p.slack.is_zero() => "longer than zero, or the hop idles between frames";
        /// Most that a measured service round may claim.
        slack_max: Span = "20 ms", |p| p.slack_max >= p.slack => "at least slack";
        /// Backlog, as time to drain it, from which the hop counts as about to lose.
        trigger: Span = "2.5 ms", |p| p.trigger < p.slack => "below slack, or a tight window releases itself";
        /// Consecutive decisions without need before windows are released.
        release_after: u32 = "3", |p| (1..=10_000).contains(&p.release_after) => "from 1 to 10000";
        /// Standing ceiling as a multiple of what one flow could use alone: 1 to 64.
        ceiling_gain: f64 = "1.25", |p| (1.0..=64.0).contains(&p.ceiling_gain) => "from 1 to 64";
        /// How the law knows that the hop is about to lose.
        predictor: Prediction = "threshold";
        /// `learned`: least look-ahead of a prediction; a longer wired round trip replaces it.
        horizon: Span = "50 ms", |p| from_to(p.horizon, MS, Span::from_millis(500)) => "from 1 ms to 500 ms";
        /// `learned`: how long after the horizon a loss may be repaired and still count.
        repair: Span = "1.5 s", |p| from_to(p.repair, MS * 100, Span::from_secs(60)) => "from 100 ms to 60 s";
        /// `learned`: most splits on a way through a tree.
        depth: u32 = "16", |p| from_to(p.depth, 1, 32) => "from 1 to 32";
        /// `learned`: share of time without tight windows, to learn from.
        explore: f64 = "0.05", |p| from_to(p.explore, 0.0, 1.0) => "from 0 to 1";
        /// `learned`: seed of those times, with the first sequence number.
        explore_seed: u64 = "0";
        /// `learned`: age of a tree's newest item beyond which `trigger` decides.
        tree_age_limit: Span = "60 s", |p| !p.tree_age_limit.is_zero() => "longer than zero";
    }
}

words! {
    /// What is shared equally.
    pub enum Weights {
        /// Equal rates of backlogged flows.
        Flow = "flow",
        /// Equal rates of stations with a backlogged flow.
        Station = "station",
        /// Equal airtime of stations with a backlogged flow.
        Airtime = "airtime",
        /// Minimum potential delay, the published law's utility -1/x (R1 of equation 1.2): rates
        /// in proportion to the square root of what a flow's link carries.
        PotentialDelay = "potential-delay",
    }
}

words! {
    /// How the hop's capacity is estimated.
    pub enum CapacityRule {
        /// What each link now carries per airtime, times the airtime available to the BSS.
        Airtime = "airtime",
        /// The paper's: goodput of the nearest uncongested slot.
        Paper = "paper",
    }
}

words! {
    /// How the law knows that the hop is about to lose.
    pub enum Prediction {
        /// From the time to drain the backlog (`trigger`), and from drops.
        Threshold = "threshold",
        /// The paper's: a decision tree trained each second on what the access point saw;
        /// `trigger` until there is one. Needs all segments that pass.
        Learned = "learned",
    }
}

words! {
    /// How a window follows from a rate.
    pub enum WindowRule {
        /// Rate times unloaded round trip plus slack, under a standing ceiling.
        Unloaded = "unloaded",
        /// The paper's: rate times present round trip, no ceiling while the hop is well.
        Paper = "paper",
        /// From each flow's past windows and rates, no ceiling while the hop is well; `paper`
        /// until known.
        Learned = "learned",
    }
}
