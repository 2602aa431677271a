//! What an operator may set of the access-point law.

use crate::params::{ParamError, refuse};
use lasthop_units::Span;

/// Parameters of [`super::AccessPoint`]. The defaults are what Lasthop recommends; the `Paper` variants are the
/// published rules, kept so that the worth of each change can be measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// What equal treatment means.
    pub weights: Weights,
    /// How the capacity of the hop is estimated.
    pub capacity: CapacityRule,
    /// How a rate becomes a window.
    pub window: WindowRule,
    /// Room for the frames of one service round beyond the unloaded round trip (q in A.6): the least value used; a
    /// longer measured service round takes its place.
    pub slack: Span,
    /// Most room that a measured service round may claim.
    pub slack_max: Span,
    /// Backlog, as time to drain it at the present capacity, from which on the hop counts as about to lose.
    pub trigger: Span,
    /// Decisions without need that must follow each other before windows are released.
    pub release_after: u32,
    /// Standing ceiling as a multiple of what one flow could use alone; 1 or more.
    pub ceiling_gain: f64,
}

/// Whose share is equal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Weights {
    /// Every backlogged flow the same rate.
    Flow,
    /// Every station with a backlogged flow the same rate.
    Station,
    /// Every station with a backlogged flow the same airtime.
    Airtime,
    /// Rates in proportion to the square root of what each flow's link carries: minimum potential delay, the utility
    /// -1/x that the published law maximises (reconstruction R1 of equation 1.2), on a hop whose links share airtime.
    PotentialDelay,
}

/// How C(t) is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CapacityRule {
    /// What each link carries a second of airtime now, times the airtime that this BSS can have now.
    Airtime,
    /// Aggregate goodput of the nearest uncongested slot (the paper's rule: stale while the channel moves).
    Paper,
}

/// How a window follows from a rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WindowRule {
    /// Unloaded round trip plus slack, under a standing ceiling.
    Unloaded,
    /// The round trip as it is, queue included, and no ceiling while the hop is well (the nearest computable reading of
    /// the paper's historical map from cwnd to rate).
    Paper,
}

impl Default for Params {
    fn default() -> Params {
        Params {
            weights: Weights::Airtime,
            capacity: CapacityRule::Airtime,
            window: WindowRule::Unloaded,
            slack: Span::from_millis(5),
            slack_max: Span::from_millis(20),
            trigger: Span::from_micros(2_500),
            release_after: 3,
            ceiling_gain: 1.25,
        }
    }
}

impl Params {
    /// Checks that the parameters make a law.
    ///
    /// # Errors
    /// The first parameter that is out of bounds.
    pub fn validate(&self) -> Result<(), ParamError> {
        if self.slack.is_zero() {
            return refuse("slack", self.slack, "longer than zero, or the hop idles between frames");
        }
        if self.slack_max < self.slack {
            return refuse("slack_max", self.slack_max, "at least slack");
        }
        if self.trigger >= self.slack {
            return refuse("trigger", self.trigger, "below slack, or a tight window releases itself");
        }
        if !(1.0..=64.0).contains(&self.ceiling_gain) {
            return refuse("ceiling_gain", self.ceiling_gain, "from 1 to 64");
        }
        if self.release_after == 0 {
            return refuse("release_after", self.release_after, "at least 1");
        }
        Ok(())
    }
}
