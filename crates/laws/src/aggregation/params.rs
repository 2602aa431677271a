//! What an operator may set of the regulator.

use super::model::{aim_packets, most_packets};
use crate::params::{ParamError, refuse, within};
use lasthop_units::{Bytes, Span};

/// The slot of proxies and stations that are told no other: both must have the same, and are started apart from each other.
pub const SLOT: Span = Span::from_millis(500);

/// Parameters of [`super::Regulator`]. The defaults are the specification's where it gives one.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// Which aggregation levels are aimed at.
    pub allocation: Allocation,
    /// The interval between a station's frames that the regulator holds (T̄).
    pub target: Span,
    /// Gain of the inner loop, from aggregation error to rate (K₁).
    pub k1: f64,
    /// Gain of the outer loop, from interval error to aggregation target (K₂).
    pub k2: f64,
    /// Weight of a new sample in the estimate of the access overhead (β).
    pub beta: f64,
    /// Control interval, equal to the stations' slot (Δ).
    pub interval: Span,
    /// Most packets that the hop puts into one frame (N_max).
    pub max_packets: u32,
    /// Most packets a frame that are aimed at (N̄), below `max_packets` so that a full frame stays a sign of a queue.
    pub aim_packets: u32,
    /// Packet size before any was seen (l).
    pub packet: Bytes,
    /// Access overhead a frame before any was measured (μ_Toh).
    pub overhead: Span,
    /// What is kept when stations come and go.
    pub overhead_rule: OverheadRule,
}

/// Aggregation levels of a hop whose stations have unlike rates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allocation {
    /// The optimum of the published problem.
    Exact,
    /// The published rule, which is the optimum only if no station, or every one, is at its cap.
    Paper,
}

/// What the estimator of the access overhead holds to be constant when the number of active stations changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OverheadRule {
    /// The overhead of one access: the round's is known at once for any number of stations. When the hop itself changes, two
    /// slots that agree are believed at once.
    Access,
    /// The overhead of the whole round, as published: it is learned anew, by β, whatever the hop does, no target is given up or made
    /// longer, and ν is the outer loop's alone. The guards of any implementation hold here too:
    ///
    /// * frames of single packets lower ĉ, since it could not leave a value with which only they are asked for;
    /// * what stands in the hop's queue is drained;
    /// * frames are not asked to hold more than they were found to;
    /// * packets that are sent again count;
    /// * streams that are limited, or lack packets on the path before the hop, claim no more than they use.
    Round,
}

impl Default for Params {
    fn default() -> Params {
        Params {
            allocation: Allocation::Exact,
            target: Span::from_millis(10),
            k1: 0.5,
            k2: 0.2,
            beta: 0.05,
            interval: SLOT,
            max_packets: 64,
            aim_packets: 48,
            packet: Bytes::new(1500),
            overhead: Span::from_micros(200),
            overhead_rule: OverheadRule::Access,
        }
    }
}

impl Params {
    /// Checks that the parameters make a law. Gains outside the stable range are legal: sweeps need them.
    ///
    /// # Errors
    /// The first parameter that is out of bounds.
    pub fn validate(&self) -> Result<(), ParamError> {
        within("k1", self.k1, (0.0, 10.0), "above 0 and at most 10; the loop is stable below 2 times c_est / c")?;
        within("k2", self.k2, (0.0, 10.0), "above 0 and at most 10; the loop is stable below about 1.9 at k1 = 0.5")?;
        within("beta", self.beta, (0.0, 1.0), "above 0 and at most 1")?;
        let fits = |span: Span, least: Span, most: Span| (least..=most).contains(&span);
        if !fits(self.target, Span::from_micros(100), Span::from_secs(10)) {
            return refuse("target", self.target, "from 100 us to 10 s");
        }
        if !fits(self.interval, Span::from_millis(10), Span::from_secs(60)) {
            return refuse("interval", self.interval, "from 10 ms to 60 s");
        }
        if !(2..=1024).contains(&self.max_packets) {
            return refuse("max_packets", self.max_packets, "from 2 to 1024");
        }
        if !(1..=self.max_packets).contains(&self.aim_packets) {
            return refuse("aim_packets", self.aim_packets, "from 1 to max-packets");
        }
        if !(Bytes::new(40)..=Bytes::new(65_535)).contains(&self.packet) {
            return refuse("packet", self.packet, "from 40 B to 65535 B");
        }
        if !fits(self.overhead, Span::from_micros(10), Span::from_millis(100)) {
            return refuse("overhead", self.overhead, "from 10 us to 100 ms");
        }
        Ok(())
    }

    /// Most packets that a frame can hold, of which each takes `airtime` seconds.
    pub(super) fn most(&self, airtime: f64) -> f64 {
        most_packets(f64::from(self.max_packets), airtime)
    }

    /// Most packets a frame that are asked for (N̄_i).
    pub(super) fn cap(&self, airtime: f64) -> f64 {
        aim_packets(f64::from(self.aim_packets), airtime)
    }

    /// True if levels follow who is there by the model. The published law leaves that to its loops.
    pub(super) fn foresees(&self) -> bool {
        self.overhead_rule == OverheadRule::Access
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
