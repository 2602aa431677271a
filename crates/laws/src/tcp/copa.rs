//! Copa: as much as keeps a target of packets queued, told from round-trip times; it empties the queue again and again.
//! Source:     Arun, Balakrishnan, "Copa: practical delay-based congestion control for the Internet", NSDI 2018.
//! Equations:  lambda_t = 1 / (delta d_q),  d_q = RTT_standing - RTT_min;   lambda = cwnd / RTT_standing
//!             an acknowledged packet: lambda <= lambda_t: cwnd' = cwnd + v / (delta cwnd);   otherwise cwnd' = cwnd - v / (delta cwnd)
//!             slow start: cwnd doubles a round trip until lambda > lambda_t;   pacing: 2 cwnd / RTT_standing
//! Symbols:    RTT_min, the least of ten seconds -> `least`; RTT_standing, the least of srtt / 2 -> `standing`; v -> `Velocity`;
//!             delta -> `mode::Mode`; cwnd in packets
//! Deviations: lambda is taken by the window with which the round trip began, which is what the delay of the packets acknowledged now shows: by the
//!             present one the flow comes to rest where one acknowledgement raises the window and the next lowers it, the queue is never
//!             nearly empty, and the flow takes itself for somebody else. v is at most what doubles the window in a round trip, as in the authors' sender for UDP. Losses set no window in either mode; after a
//!             timeout the flow starts again from two packets, which the paper leaves open.
//! Validity:   RTT_min must be seen: a queue that never empties for ten seconds is taken for the path.
//! Checked by: tests::*, extremes::tests, mode::tests, tests/integration/conformance, transport's tests/integration/copa.rs (queue at a bottleneck, two flows, beside Reno)

mod extremes;
mod mode;

use super::Setup;
use crate::{Bounds, Decision, Entry, ParamError, Parameters, SenderLaw, Why, params};
use extremes::{End, Extremes};
use lasthop_signals::{Ack, Signal};
use lasthop_units::{Bytes, Rate, Span, Time};
use mode::Mode;

/// The name of the law.
pub const NAME: &str = "copa";

/// Its entry in the registry.
pub const LAW: Entry = Entry::sender(
    NAME,
    "Copa (Arun, Balakrishnan, NSDI 2018): a target of packets in the queue, which is emptied again and again.",
    Params::TABLE,
    |settings, setup| Ok(Box::new(Copa::new(&setup, Params::with(settings)?)?)),
);

params! {
    /// What may be set of a sender.
    pub struct Params {
        /// What delay is worth against throughput: a flow alone keeps about 1/delta packets
        /// queued.
        delta: f64 = "0.5", |p| crate::param::within(p.delta, 0.0, 10.0) => "above 0 and at most 10";
        /// delta falls while others fill the queue (competitive mode).
        switching: bool = "true";
    }
}

/// The least round trip is that of so long.
const PATH_MEMORY: Span = Span::from_secs(10);
/// Round trips over which the greatest is looked for.
const SWING: u64 = 4;
/// Packets of the smallest window.
const LEAST_WINDOW: f64 = 2.0;
/// Pacing over what the window carries in a standing round trip: no burst, and no limit either.
const PACING_GAIN: f64 = 2.0;

/// Copa for one flow.
#[derive(Clone, Debug)]
pub struct Copa {
    /// Packets.
    cwnd: f64,
    mss: Bytes,
    starting: bool,
    mode: Mode,
    velocity: Velocity,
    least: Extremes,
    greatest: Extremes,
    standing: Extremes,
    /// The standing round trip; `None` before the first sample.
    rtt: Option<Span>,
    /// Where the window ends if something beside the law bounds it.
    ceiling: Bytes,
}

impl Copa {
    /// A flow about to start.
    ///
    /// # Errors
    /// Those of [`Params::validate`].
    pub fn new(setup: &Setup, params: Params) -> Result<Copa, ParamError> {
        params.validate()?;
        Ok(Copa {
            cwnd: f64::from(setup.initial_segments),
            mss: setup.mss,
            starting: true,
            mode: Mode::new(params.delta, params.switching),
            velocity: Velocity::default(),
            least: Extremes::new(End::Least),
            greatest: Extremes::new(End::Greatest),
            standing: Extremes::new(End::Least),
            rtt: None,
            ceiling: Bytes::MAX,
        })
    }

    fn on_ack(&mut self, now: Time, ack: &Ack) {
        self.mss = ack.mss;
        let Some(rtt) = ack.rtt else { return };
        let srtt = ack.srtt.unwrap_or(rtt);
        let least = self.least.add(now, rtt, PATH_MEMORY.max(srtt * SWING));
        let greatest = self.greatest.add(now, rtt, srtt * SWING);
        let standing = self.standing.add(now, rtt, srtt / 2);
        self.rtt = Some(standing);
        let queueing = standing.saturating_sub(least);
        self.mode.on_round_trip(now, queueing, greatest.saturating_sub(least), srtt);
        let packets = ack.newly_delivered.get() as f64 / self.mss.get().max(1) as f64;
        // lambda against lambda_t, both times d_q and RTT_standing: an empty queue allows any rate.
        let sent_with = if self.starting { self.cwnd } else { self.velocity.cwnd };
        let may_grow = sent_with * queueing.as_secs_f64() <= self.mode.worth() * standing.as_secs_f64();
        if self.starting {
            if may_grow {
                self.cwnd += if ack.cwnd_limited { packets } else { 0.0 };
                return;
            }
            self.starting = false;
            self.velocity = Velocity::begun(now, self.cwnd);
        }
        self.velocity.on_ack(now, srtt, self.cwnd);
        let step = self.velocity.value.min(self.cwnd / self.mode.worth()) * self.mode.worth() * packets / self.cwnd;
        if !may_grow {
            self.velocity.towards(Way::Down);
            self.cwnd = (self.cwnd - step).max(LEAST_WINDOW);
        } else if ack.cwnd_limited {
            self.velocity.towards(Way::Up);
            self.cwnd += step;
        }
    }
}

/// Where the window goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Up,
    Down,
}

/// How fast the window moves: faster the longer it has moved one way.
#[derive(Clone, Copy, Debug)]
struct Velocity {
    value: f64,
    way: Option<Way>,
    /// The way of the last acknowledgement.
    now: Option<Way>,
    /// Round trips that it has gone that way.
    rounds: u32,
    /// When the present one began, and the window then.
    since: Time,
    cwnd: f64,
}

impl Default for Velocity {
    fn default() -> Velocity {
        Velocity::begun(Time::ZERO, 0.0)
    }
}

/// Round trips one way before it goes faster.
const STEADY: u32 = 3;

impl Velocity {
    fn begun(now: Time, cwnd: f64) -> Velocity {
        Velocity { value: 1.0, way: None, now: None, rounds: 0, since: now, cwnd }
    }

    /// Once a round trip it is looked where the window has gone.
    fn on_ack(&mut self, now: Time, srtt: Span, cwnd: f64) {
        if now.since(self.since) < srtt {
            return;
        }
        let way = if cwnd > self.cwnd { Way::Up } else { Way::Down };
        if self.way == Some(way) {
            self.rounds += 1;
            if self.rounds >= STEADY {
                self.value *= 2.0;
            }
        } else {
            (self.value, self.rounds) = (1.0, 0);
        }
        (self.way, self.since, self.cwnd) = (Some(way), now, cwnd);
    }

    /// The window turns: what was gained on the way here does not hold for the way back.
    fn towards(&mut self, way: Way) {
        if self.now.is_some_and(|now| now != way) {
            (self.value, self.rounds) = (1.0, 0);
        }
        self.now = Some(way);
    }
}

impl SenderLaw for Copa {
    fn sense(&mut self, now: Time, signal: &Signal) {
        match signal {
            Signal::Ack(ack) => self.on_ack(now, ack),
            Signal::Loss(loss) => {
                self.mss = loss.mss;
                self.mode.on_loss();
            }
            Signal::Timeout(loss) => {
                self.mss = loss.mss;
                self.mode.on_loss();
                (self.cwnd, self.starting) = (LEAST_WINDOW, true);
            }
            Signal::Bounds(bounds) => self.ceiling = bounds.map_or(Bytes::MAX, |bounds| bounds.upper),
            _ => {}
        }
    }

    fn decide(&self, _now: Time) -> Decision {
        let window = self.mss.scale(self.cwnd).min(self.ceiling).max(self.mss);
        Decision {
            cwnd: Some(Bounds { lower: self.mss, upper: window }),
            pacing: self.rtt.and_then(|rtt| Rate::of(window.scale(PACING_GAIN), rtt)),
            ..Decision::unlimited(match (self.starting, self.mode.is_competitive()) {
                (true, _) => Why::SlowStart,
                (false, false) => Why::CongestionAvoidance,
                (false, true) => Why::Competing,
            })
        }
    }
}

#[cfg(test)]
mod tests;
