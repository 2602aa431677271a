//! The regulator's predecessor: a linear controller around one operating point, as a baseline.
//! Source:     aggregation.md C.4: x <- x + K (N_eps - mu_N) on the rate of the reference station, others in proportion to
//!             their data rate, once a second, about 32 packets a frame; constants not published (low confidence).
//! Equations:  x_1' = x_1 + K_I (N - mu_1) + K_P (mu_1 - mu_1'),   x_i = x_1 w_1 / w_i
//! Symbols:    K_I -> `integral`, K_P -> `proportional`, N -> `aim_packets`, mu_1' -> mu_1 of this slot, mu_1 -> of the last
//! Deviations: gains by default such that the loop gain is 0.5 at 32 packets, 390 Mbit/s and an overhead of 200 us, where
//!             d mu/d x = (c + w mu)^2 / c = 7.4e-3 packets for a packet a second; the predecessor's own are not known.
//! Validity:   near that point. Elsewhere the loop gain is another, which is why it was replaced: with eleven stations, or
//!             at a tenth of the data rate, it is many times as large.
//! Checked by: tests::*, tests/aggregation_conformance.rs

use super::flow_of;
use super::ledger::{Ledger, Slot};
use super::model::airtime;
use crate::params::{refuse, within};
use crate::{Decision, HopLaw, ParamError, Why};
use lasthop_signals::{FlowId, Signal};
use lasthop_units::{Bytes, Rate, Span, Time};

/// Parameters of [`LinearPi`].
#[derive(Clone, Debug, PartialEq)]
pub struct PiParams {
    /// Packets a frame that are aimed at.
    pub aim_packets: u32,
    /// Integral gain, packets a second for a packet a frame.
    pub integral: f64,
    /// Proportional gain, packets a second for a packet a frame; 0 for the integral controller.
    pub proportional: f64,
    /// Control interval.
    pub interval: Span,
    /// Packet size before any was seen.
    pub packet: Bytes,
}

impl Default for PiParams {
    fn default() -> PiParams {
        PiParams {
            aim_packets: 32,
            integral: 68.0,
            proportional: 0.0,
            interval: Span::from_secs(1),
            packet: Bytes::new(1500),
        }
    }
}

impl PiParams {
    /// Checks that the parameters make a law.
    ///
    /// # Errors
    /// The first parameter that is out of bounds.
    pub fn validate(&self) -> Result<(), ParamError> {
        if !(1..=1024).contains(&self.aim_packets) {
            return refuse("aim_packets", self.aim_packets, "from 1 to 1024");
        }
        within("integral", self.integral, (0.0, 1e6), "above 0 and at most 1e6 packets a second")?;
        within("proportional", self.proportional, (-f64::MIN_POSITIVE, 1e6), "from 0 to 1e6 packets a second")?;
        if !(Span::from_millis(10)..=Span::from_secs(60)).contains(&self.interval) {
            return refuse("interval", self.interval, "from 10 ms to 60 s");
        }
        if !(Bytes::new(40)..=Bytes::new(65_535)).contains(&self.packet) {
            return refuse("packet", self.packet, "from 40 B to 65535 B");
        }
        Ok(())
    }
}

/// The predecessor's controller.
#[derive(Clone, Debug)]
pub struct LinearPi {
    params: PiParams,
    ledger: Ledger<Station>,
    /// Rate of the slowest station, packets a second.
    rate: f64,
    /// Packets a frame of the slowest station in the slot before.
    before: Option<f64>,
}

#[derive(Clone, Debug, Default)]
struct Station {
    airtime: Option<f64>,
    level: Option<f64>,
    rate: f64,
}

/// Packets a second: the first rate, and the least.
const FIRST: f64 = 1000.0;
const LEAST: f64 = 10.0;
const MOST: f64 = 1e7;

impl LinearPi {
    /// A controller that has seen nothing.
    ///
    /// # Errors
    /// Those of [`PiParams::validate`].
    pub fn new(params: PiParams) -> Result<LinearPi, ParamError> {
        params.validate()?;
        Ok(LinearPi { ledger: Ledger::new(params.interval, false), rate: FIRST, before: None, params })
    }

    fn tick(&mut self, now: Time) {
        let bits = (self.params.packet.bits() + 48 * 8) as f64;
        self.ledger.close(now, |account, slot: &Slot| {
            account.state.level = slot.frames.map(|frames| frames.level);
            if let Some(inverse) = slot.frames.and_then(|frames| frames.inverse_rate) {
                account.state.airtime = Some(airtime(bits, 1.0 / inverse));
            }
        });
        // Those whose rates nobody knows are all alike.
        let known = self.ledger.active().filter_map(|a| Some((a.state.airtime.unwrap_or(0.0), a.state.level?)));
        if let Some((_, level)) = known.max_by(|(a, _), (b, _)| a.total_cmp(b)) {
            let error = f64::from(self.params.aim_packets) - level;
            let change = self.before.map_or(0.0, |before| before - level);
            self.rate += self.params.integral * error + self.params.proportional * change;
            self.rate = self.rate.clamp(LEAST, MOST);
            self.before = Some(level);
        }
        self.spread();
    }

    fn spread(&mut self) {
        let slowest = self.ledger.active().filter_map(|account| account.state.airtime).fold(0.0, f64::max);
        for (_, account) in self.ledger.iter_mut() {
            let state = &mut account.state;
            state.rate = self.rate * state.airtime.map_or(1.0, |own| (slowest / own).max(1.0));
        }
    }
}

impl HopLaw for LinearPi {
    fn sense(&mut self, now: Time, signal: &Signal) {
        let entered = match signal {
            Signal::Stream(report) => self.ledger.stream(now, report),
            Signal::Station(report) => self.ledger.feedback(now, report),
            Signal::Wakeup => false,
            _ => return,
        };
        if entered {
            self.spread();
        }
        if !matches!(signal, Signal::Stream(_)) && self.ledger.is_due(now) {
            self.tick(now);
        }
    }

    fn decide(&self, _now: Time, each: &mut dyn FnMut(FlowId, Decision)) {
        let bits = self.params.packet.bits() as f64;
        let revisit = self.ledger.deadline();
        for (station, account) in self.ledger.iter() {
            let why = if account.state.level.is_some() { Why::Regulated } else { Why::Entering };
            let pacing = Rate::from_bps((account.state.rate.clamp(LEAST, MOST) * bits) as u64);
            each(flow_of(station), Decision { pacing: Some(pacing), revisit, ..Decision::unlimited(why) });
        }
    }

    fn name(&self) -> &'static str {
        "linear-pi"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_signals::{Node, StationFeedback};

    /// Runs the controller against a hop of one station, whose frames hold what the model says.
    fn run(params: PiParams, overhead: f64, mbit: f64, slots: u32) -> f64 {
        let w = airtime(1548.0 * 8.0, mbit * 1e6);
        let mut law = LinearPi::new(params).expect("valid");
        let (mut now, mut level) = (Time::ZERO, 1.0);
        for slot in 0..slots {
            let mut rate = 1000.0;
            law.decide(now, &mut |_, decision| {
                rate = decision.pacing.expect("paces").as_bps() as f64 / 12_000.0;
            });
            let idle = 1.0 - w * rate;
            level = if idle > 0.0 { (overhead * rate / idle).clamp(1.0, 64.0) } else { 64.0 };
            let frames = (rate / level).round();
            let start = now;
            now += Span::from_secs(1);
            law.sense(
                now,
                &Signal::Station(StationFeedback {
                    frames: frames as u32,
                    packets: (frames * level) as u64,
                    inverse_rate_sum: frames / (mbit * 1e6),
                    received: rate as u64,
                    ..StationFeedback::empty(Node(1), slot + 1, start, now)
                }),
            );
        }
        level
    }

    #[test]
    fn it_holds_its_level_at_the_point_it_was_made_for() {
        let level = run(PiParams::default(), 200e-6, 390.0, 400);
        assert!((level - 32.0).abs() < 1.0, "{level}");
    }

    #[test]
    fn and_not_elsewhere_which_is_why_it_was_replaced() {
        // At 29 Mbit/s the loop gain is over thirty times as large.
        let params = PiParams { aim_packets: 10, ..PiParams::default() };
        let levels: Vec<f64> = (300..310).map(|slots| run(params.clone(), 200e-6, 29.25, slots)).collect();
        let spread = levels.iter().fold(0.0f64, |most, level| most.max((level - 10.0).abs()));
        assert!(spread > 3.0, "{levels:?}");
    }

    #[test]
    fn parameters_are_checked() {
        assert!(PiParams { proportional: 0.0, ..PiParams::default() }.validate().is_ok());
        assert!(PiParams { integral: f64::NAN, ..PiParams::default() }.validate().is_err());
        assert!(PiParams { proportional: -1.0, ..PiParams::default() }.validate().is_err());
    }
}
