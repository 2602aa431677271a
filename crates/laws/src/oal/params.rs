//! What an operator may set of the access-point law.

use crate::{params, words};
use lasthop_units::Span;

params! {
    /// Parameters of [`super::AccessPoint`]. The defaults are what Lasthop recommends; the `Paper` variants are the
    /// published rules, kept so that the worth of each change can be measured.
    pub struct Params {
        /// Whose share is equal.
        weights: Weights = "airtime";
        /// How the capacity of the hop is estimated.
        capacity: CapacityRule = "airtime";
        /// How a window follows from a rate.
        window: WindowRule = "unloaded";
        /// Room for the frames of one service round beyond the unloaded round trip (q in A.6): the least value used. A
        /// longer measured service round takes its place.
        slack: Span = "5 ms", |p| !p.slack.is_zero() => "longer than zero, or the hop idles between frames";
        /// Most room that a measured service round may claim.
        slack_max: Span = "20 ms", |p| p.slack_max >= p.slack => "at least slack";
        /// Backlog, as the time to drain it at the present capacity, from which on the hop counts as about to lose.
        trigger: Span = "2.5 ms", |p| p.trigger < p.slack => "below slack, or a tight window releases itself";
        /// Decisions without need that must follow each other before windows are released.
        release_after: u32 = "3", |p| (1..=10_000).contains(&p.release_after) => "from 1 to 10000";
        /// Standing ceiling as a multiple of what one flow could use alone: 1 to 64.
        ceiling_gain: f64 = "1.25", |p| (1.0..=64.0).contains(&p.ceiling_gain) => "from 1 to 64";
    }
}

words! {
    /// Whose share is equal.
    pub enum Weights {
        /// Every backlogged flow gets the same rate.
        Flow = "flow",
        /// Every station with a backlogged flow gets the same rate.
        Station = "station",
        /// Every station with a backlogged flow gets the same airtime.
        Airtime = "airtime",
        /// Rates in proportion to the square root of what each flow's link carries: minimum potential delay, the utility
        /// -1/x that the published law maximises (reconstruction R1 of equation 1.2), on a hop whose links share airtime.
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
    /// How a window follows from a rate.
    pub enum WindowRule {
        /// Rate times the unloaded round trip plus slack, under a standing ceiling.
        Unloaded = "unloaded",
        /// The paper's rule: rate times the round trip as it is, queue included, and no ceiling while the hop is well (the
        /// nearest computable reading of the paper's historical map from cwnd to rate).
        Paper = "paper",
    }
}
