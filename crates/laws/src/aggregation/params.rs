//! What an operator may set of the regulator.
//!
//! With [`OverheadRule::Round`] the guards of any implementation hold, too:
//!
//! * frames of single packets lower ĉ, since it could not leave a value with which only they are asked for;
//! * what stands in the hop's queue is drained;
//! * frames are not asked to hold more than they were found to;
//! * packets that are sent again count;
//! * streams that are limited, or lack packets on the path before the hop, claim no more than they use.

use super::model::{aim_packets, most_packets};
use crate::param::{from_to, within};
use crate::{params, words};
use lasthop_units::{Bytes, Span};

/// The slot of proxies and stations that are told no other: both must have the same, and are started apart from each other.
pub const SLOT: Span = Span::from_millis(500);

params! {
    /// Parameters of [`super::Regulator`]. The defaults are the paper's where it gives one. Gains outside the stable
    /// range are legal: sweeps need them.
    pub struct Params {
        /// Aggregation levels aimed at where stations' rates differ.
        allocation: Allocation = "exact";
        /// Longest interval between a station's frames to aim at (T̄); shorter where frames reach
        /// `aim-packets` first.
        target: Span = "10 ms", |p| from_to(p.target, Span::from_micros(100), Span::from_secs(10)) => "from 100 us to 10 s";
        /// Gain of the inner loop, from aggregation error to rate (K₁).
        k1: f64 = "0.5", |p| within(p.k1, 0.0, 10.0)
            => "above 0 and at most 10; the loop is stable below 2 times c_est / c";
        /// Gain of the outer loop, from interval error to aggregation target (K₂).
        k2: f64 = "0.2", |p| within(p.k2, 0.0, 10.0)
            => "above 0 and at most 10; the loop is stable below about 1.9 at k1 = 0.5";
        /// Weight of a new sample of the access overhead (β).
        beta: f64 = "0.05", |p| within(p.beta, 0.0, 1.0) => "above 0 and at most 1";
        /// Control interval, and the stations' slot (Δ).
        interval: Span = "500 ms", |p| from_to(p.interval, Span::from_millis(10), Span::from_secs(60))
            => "from 10 ms to 60 s";
        /// Most packets that the access point puts into a frame (N_max).
        max_packets: u32 = "64", |p| from_to(p.max_packets, 2, 1024) => "from 2 to 1024";
        /// Most packets a frame to aim at (N̄); below `max-packets` a full frame still means a
        /// queue.
        aim_packets: u32 = "48", |p| from_to(p.aim_packets, 1, p.max_packets) => "from 1 to max-packets";
        /// Packet size before any was seen (l).
        packet: Bytes = "1500 B", |p| from_to(p.packet, Bytes::new(40), Bytes::new(65_535)) => "from 40 B to 65535 B";
        /// Access overhead of a frame before any was measured (μ_Toh).
        overhead: Span = "200 us", |p| from_to(p.overhead, Span::from_micros(10), Span::from_millis(100))
            => "from 10 us to 100 ms";
        /// What is kept of the overhead when stations come and go.
        overhead_rule: OverheadRule = "access";
    }
}

words! {
    /// Aggregation levels where stations' rates differ.
    pub enum Allocation {
        /// The optimum of the published problem.
        Exact = "exact",
        /// The published rule: optimal only if no station, or every one, is at its cap.
        Paper = "paper",
    }
}

words! {
    /// What is kept of the overhead when stations come and go.
    pub enum OverheadRule {
        /// The overhead of one access, valid for any number of stations. If the hop changes, two
        /// agreeing slots count at once.
        Access = "access",
        /// As published: the overhead of the whole round, learned anew by β; targets stay, and ν
        /// is the outer loop's alone.
        Round = "round",
    }
}

impl Params {
    /// Most packets that a frame can hold, of which each takes `airtime` seconds.
    pub(super) fn most(&self, airtime: f64) -> f64 {
        most_packets(f64::from(self.max_packets), airtime)
    }

    /// Most packets a frame that are asked for (N̄_i).
    pub(super) fn cap(&self, airtime: f64) -> f64 {
        aim_packets(f64::from(self.aim_packets), airtime)
    }

    /// True if levels follow the active stations by the model. The published law leaves that to its loops.
    pub(super) fn foresees(&self) -> bool {
        self.overhead_rule == OverheadRule::Access
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slot_of_who_is_told_no_other_is_the_default() {
        assert_eq!(Params::default().interval, SLOT);
    }

    #[test]
    fn the_defaults_make_a_law_and_nonsense_does_not() {
        assert_eq!(Params::default().validate(), Ok(()));
        let broken = [
            Params { k1: 0.0, ..Params::default() },
            Params { k2: f64::NAN, ..Params::default() },
            Params { beta: 1.5, ..Params::default() },
            Params { target: Span::ZERO, ..Params::default() },
            Params { interval: Span::ZERO, ..Params::default() },
            Params { aim_packets: 65, ..Params::default() },
            Params { packet: Bytes::ZERO, ..Params::default() },
            Params { overhead: Span::ZERO, ..Params::default() },
        ];
        for params in broken {
            assert!(params.validate().is_err(), "{params:?}");
        }
    }
}
