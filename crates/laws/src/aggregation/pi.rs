//! The regulator's predecessor: a linear controller around one operating point, as a baseline.
//! Source:     the predecessor of \[aggregation\], as far as is known: x <- x + K (N_eps - mu_N) on the rate of the
//!             reference station, others in proportion to their data rate, once a second, about 32 packets a frame;
//!             constants not published (low confidence).
//! Equations:  x_1(k+1) = x_1(k) + K_I (N - mu_1(k)) + K_P (mu_1(k-1) - mu_1(k)),   x_i = x_1 w_1 / w_i
//!             in slots in which the reference station was sent at least 0.95 of its rate, or mu_1(k) > N; x_1 stays as it
//!             is in others. The last term is 0 if the slot before had another reference, or none.
//! Symbols:    K_I -> `integral`, K_P -> `proportional`, N -> `aim_packets`, k -> the slot that has ended, 1 -> the reference,
//!             mu_1(k) -> `level`, mu_1(k-1) -> `before`, w -> `airtime`; `rate` is x of the slowest station
//! Deviations: * The source gives the integral term alone and says elsewhere that it was a PI controller. The other term is what a
//!               PI controller on N - mu adds from one slot to the next, since N is constant; by default K_P = 0.
//!             * Rates are from 10 to 1e7 packets a second.
//!             * Gains by default such that the loop gain is 0.5 at 32 packets, 390 Mbit/s and an overhead of 200 us, where
//!               d mu/d x = (c + w mu)^2 / c = 7.4e-3 packets for a packet a second; the predecessor's own are not known.
//!             * The reference is the slowest station of those that were sent what they may be, or that have frames
//!               with more packets than they shall: frames that an application leaves short ask for more for as long as
//!               it does, and what had been added meanwhile would stand in the hop's queue for minutes afterwards.
//!               Whether the predecessor had such a guard is not known.
//! Validity:   near that point. Elsewhere the loop gain is another, which is why it was replaced: with eleven stations, or
//!             at a tenth of the data rate, it is many times as large. If each slot shows the level of its own rate, the loop
//!             is stable for a / 2 + b < 1, with a = K_I d mu/d x and b = K_P d mu/d x: its poles are those of z^2 - (1 - a - b) z - b.
//! Checked by: tests::*, tests/integration/conformance/aggregation.rs

use super::flow_of;
use super::model::{PACKET_OVERHEAD, airtime};
use super::stations::{Slot, Stations};
use crate::param::{from_to, within};
use crate::{Decision, HopLaw, ParamError, Why, params};
use lasthop_signals::{FlowId, Node, Signal};
use lasthop_units::{Bytes, Rate, Span, Time};

params! {
    /// Parameters of [`LinearPi`].
    pub struct PiParams {
        /// Packets a frame to aim at.
        aim_packets: u32 = "32", |p| from_to(p.aim_packets, 1, 1024) => "from 1 to 1024";
        /// Integral gain, packets a second for each packet a frame.
        integral: f64 = "68", |p| within(p.integral, 0.0, 1e6) => "above 0 and at most 1e6 packets a second";
        /// Proportional gain, packets a second for each packet a frame; 0: integral controller.
        proportional: f64 = "0", |p| from_to(p.proportional, 0.0, 1e6) => "from 0 to 1e6 packets a second";
        /// Control interval, and the stations' slot.
        interval: Span = "1 s", |p| from_to(p.interval, Span::from_millis(10), Span::from_secs(60))
            => "from 10 ms to 60 s";
        /// Packet size before any was seen.
        packet: Bytes = "1500 B", |p| from_to(p.packet, Bytes::new(40), Bytes::new(65_535)) => "from 40 B to 65535 B";
    }
}

/// The predecessor's controller.
#[derive(Clone, Debug)]
pub struct LinearPi {
    params: PiParams,
    stations: Stations<Station>,
    /// Rate of the slowest station, packets a second.
    rate: f64,
    /// The reference station of the slot before, and its packets a frame.
    before: Option<(Node, f64)>,
}

#[derive(Clone, Debug)]
struct Station {
    airtime: Option<f64>,
    level: Option<f64>,
    rate: f64,
    /// The least rate that it had in the slot before, and in this one.
    allowed: [f64; 2],
    /// It was sent less than it may be.
    limited: bool,
}

impl Default for Station {
    fn default() -> Station {
        Station { airtime: None, level: None, rate: 0.0, allowed: [f64::INFINITY; 2], limited: false }
    }
}

/// A stream that sends less than this share of its rate is limited by its application, as with the regulator.
const LIMITED: f64 = 0.95;
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
        Ok(LinearPi { stations: Stations::new(params.interval, false), rate: FIRST, before: None, params })
    }

    fn tick(&mut self, now: Time) {
        let packet = self.params.packet;
        let bits = (packet + PACKET_OVERHEAD).bits() as f64;
        self.stations.close(now, |account, slot: &Slot| {
            let octets = account.packet_bytes.unwrap_or(packet.get() as f64);
            let state = &mut account.state;
            state.level = slot.frames.map(|frames| frames.level);
            if let Some(inverse) = slot.frames.and_then(|frames| frames.inverse_rate) {
                state.airtime = Some(airtime(bits, 1.0 / inverse));
            }
            // Rates are of packets of one size. What was sent is counted from one report of the station to the next,
            // which may begin in the slot before, with the rate of then.
            let allowed = state.allowed[0].min(state.allowed[1]).clamp(LEAST, MOST) * packet.get() as f64;
            state.limited = slot.sent.is_some_and(|sent| sent * octets < LIMITED * allowed);
            state.allowed = [state.allowed[1], f64::INFINITY];
        });
        self.integrate();
        self.spread();
    }

    fn integrate(&mut self) {
        // Stations without a known rate are all alike.
        let airtime = |state: &Station| state.airtime.unwrap_or(0.0);
        let aim = f64::from(self.params.aim_packets);
        let active = self.stations.iter().filter(|(_, account)| account.is_active());
        let known = active.filter_map(|(node, account)| Some((node, &account.state, account.state.level?)));
        // Too long frames are too long whoever limits them: a sender that has lost packets in a full queue sends less, too.
        let telling = known.filter(|(_, state, level)| !state.limited || *level > aim);
        let Some((node, reference, level)) = telling.max_by(|(_, a, _), (_, b, _)| airtime(a).total_cmp(&airtime(b)))
        else {
            self.before = None;
            return;
        };
        let error = aim - level;
        let change = self.before.filter(|(before, _)| *before == node).map_or(0.0, |(_, before)| before - level);
        let change = self.params.integral * error + self.params.proportional * change;
        // The rate is that of the slowest, whoever is the reference.
        let share = reference.airtime.map_or(1.0, |own| own / self.slowest());
        self.rate = (self.rate + change * share).clamp(LEAST, MOST);
        self.before = Some((node, level));
    }

    /// Seconds that a packet of the slowest active station takes.
    fn slowest(&self) -> f64 {
        self.stations.active().filter_map(|account| account.state.airtime).fold(0.0, f64::max)
    }

    fn spread(&mut self) {
        let slowest = self.slowest();
        for (_, account) in self.stations.iter_mut() {
            let state = &mut account.state;
            state.rate = self.rate * state.airtime.map_or(1.0, |own| (slowest / own).max(1.0));
            state.allowed[1] = state.allowed[1].min(state.rate);
        }
    }
}

impl HopLaw for LinearPi {
    fn sense(&mut self, now: Time, signal: &Signal) {
        let entered = match signal {
            Signal::Stream(report) => self.stations.stream(now, report),
            Signal::Station(report) => self.stations.feedback(now, report),
            Signal::Wakeup => false,
            _ => return,
        };
        if entered {
            self.spread();
        }
        if !matches!(signal, Signal::Stream(_)) && self.stations.is_due(now) {
            self.tick(now);
        }
    }

    fn decide(&self, _now: Time, each: &mut dyn FnMut(FlowId, Decision)) {
        let bits = self.params.packet.bits() as f64;
        let revisit = self.stations.deadline();
        for (station, account) in self.stations.iter() {
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
    use lasthop_signals::{StationFeedback, StreamReport};

    /// Runs the controller against a hop of one station with the model's frames.
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

    /// Rates that follow from slots in which the only station's frames hold so many packets. An empty slot has no
    /// frames.
    fn rates_after(params: PiParams, levels: &[Option<u32>]) -> Vec<f64> {
        let mut law = LinearPi::new(params).expect("valid");
        let mut rates = Vec::new();
        // The first report only lets the station in, and counts in the slot that the second one ends.
        for (slot, level) in (0u32..).zip(levels.iter().take(1).chain(levels)) {
            let start = Time::ZERO + Span::from_secs(slot.into());
            let now = start + Span::from_secs(1);
            let frames = if level.is_some() { 100 } else { 0 };
            let feedback = StationFeedback {
                frames,
                packets: u64::from(frames * level.unwrap_or(0)),
                inverse_rate_sum: f64::from(frames) / 390e6,
                ..StationFeedback::empty(Node(1), slot + 1, start, now)
            };
            law.sense(now, &Signal::Station(feedback));
            rates.push(law.rate);
        }
        rates.split_off(1)
    }

    #[test]
    fn a_slot_adds_its_error_and_the_fall_of_its_level() {
        let params = PiParams { integral: 10.0, proportional: 20.0, ..PiParams::default() };
        let levels = [Some(30), Some(36), Some(28), None, Some(40), Some(41)];
        let wanted = [
            1020.0, // 1000 + 10 (32 - 30), and no slot before
            860.0,  // 1020 + 10 (32 - 36) + 20 (30 - 36)
            1060.0, // 860 + 10 (32 - 28) + 20 (36 - 28)
            1060.0, // no frames
            980.0,  // 1060 + 10 (32 - 40), and not from the level of two slots before
            870.0,  // 980 + 10 (32 - 41) + 20 (40 - 41)
        ];
        for (rate, wanted) in rates_after(params, &levels).iter().zip(wanted) {
            assert!((rate - wanted).abs() < 1e-6, "{rate}, and {wanted} is wanted");
        }
    }

    #[test]
    fn a_proportional_gain_settles_only_within_its_bound() {
        // The bound on 7.39e-3 (68 / 2 + K_P) is 1: K_P below 101.
        let levels = |proportional| -> Vec<f64> {
            let params = PiParams { proportional, ..PiParams::default() };
            (400..410).map(|slots| run(params.clone(), 200e-6, 390.0, slots)).collect()
        };
        for gain in [34.0, 68.0] {
            let levels = levels(gain);
            assert!(levels.iter().all(|level| (level - 32.0).abs() < 1.0), "{gain}: {levels:?}");
        }
        let swings = levels(140.0);
        assert!(swings.iter().any(|level| (level - 32.0).abs() > 8.0), "{swings:?}");
    }

    #[test]
    fn and_not_elsewhere_which_is_why_it_was_replaced() {
        // At 29 Mbit/s the loop gain is over thirty times as large.
        let params = PiParams { aim_packets: 10, ..PiParams::default() };
        let levels: Vec<f64> = (300..310).map(|slots| run(params.clone(), 200e-6, 29.25, slots)).collect();
        let spread = levels.iter().fold(0.0f64, |most, level| most.max((level - 10.0).abs()));
        assert!(spread > 3.0, "{levels:?}");
    }

    /// Stations at these data rates behind one hop with 200 us an access; a proxy that says what it sends.
    struct Hop {
        law: LinearPi,
        mbit: Vec<f64>,
        sent: Vec<f64>,
        slot: u32,
    }

    impl Hop {
        fn new(mbit: &[f64]) -> Hop {
            let law = LinearPi::new(PiParams::default()).expect("valid");
            let mut hop = Hop { law, mbit: mbit.to_vec(), sent: vec![0.0; mbit.len()], slot: 0 };
            (0..mbit.len()).for_each(|place| hop.report(place, true));
            hop
        }

        fn now(&self) -> Time {
            Time::ZERO + Span::from_secs(self.slot.into())
        }

        fn report(&mut self, place: usize, waiting: bool) {
            let packets = self.sent[place] as u64;
            let bytes = Bytes::new(packets * 1500);
            let report = StreamReport { station: Node(place as u16), packets, bytes, waiting };
            self.law.sense(self.now(), &Signal::Stream(report));
        }

        /// Packets a second that each may be sent.
        fn rates(&self) -> Vec<f64> {
            let mut rates = Vec::new();
            self.law.decide(self.now(), &mut |_, decision| {
                rates.push(decision.pacing.expect("paces").as_bps() as f64 / 12_000.0);
            });
            rates
        }

        /// A second in which applications want so many packets of each station; how many its frames hold.
        fn second(&mut self, wanted: &[f64]) -> Vec<f64> {
            let rates: Vec<f64> = self.rates().iter().zip(wanted).map(|(may, wants)| may.min(*wants)).collect();
            let airtimes: Vec<f64> = self.mbit.iter().map(|mbit| airtime(1548.0 * 8.0, mbit * 1e6)).collect();
            let idle = 1.0 - airtimes.iter().zip(&rates).map(|(w, x)| w * x).sum::<f64>();
            let round = if idle > 0.0 { rates.len() as f64 * 200e-6 / idle } else { f64::INFINITY };
            let levels: Vec<f64> = rates.iter().map(|x| (x * round).clamp(1.0, 64.0)).collect();
            let start = self.now();
            self.slot += 1;
            for (place, (rate, level)) in rates.iter().zip(&levels).enumerate() {
                self.sent[place] += rate;
                self.report(place, wanted[place] > *rate);
                let frames = (1.0 / round.max(1e-3)).min(rate / level).max(1.0).round();
                let feedback = StationFeedback {
                    frames: frames as u32,
                    packets: (frames * level).round() as u64,
                    inverse_rate_sum: frames / (self.mbit[place] * 1e6),
                    received: *rate as u64,
                    ..StationFeedback::empty(Node(place as u16), self.slot, start, self.now())
                };
                self.law.sense(self.now(), &Signal::Station(feedback));
            }
            levels
        }
    }

    #[test]
    fn ten_minutes_of_light_browsing_leave_no_full_queue_behind() {
        let mut hop = Hop::new(&[390.0]);
        for _ in 0..600 {
            hop.second(&[50.0]);
        }
        // Both slots that were not seen to be limited asked for thirty-one packets more.
        assert!(hop.rates()[0] < 10_000.0, "{:?}", hop.rates());
        let levels: Vec<f64> = (0..30).map(|_| hop.second(&[f64::INFINITY])[0]).collect();
        assert!(levels.iter().all(|level| *level < 40.0), "{levels:?}");
        assert!((levels[29] - 32.0).abs() < 1.0, "{levels:?}");
    }

    #[test]
    fn frames_that_are_too_long_lower_the_rate_though_less_is_sent() {
        let mut hop = Hop::new(&[390.0]);
        hop.law.rate = 60_000.0;
        hop.law.spread();
        // The hop carries 31 400 packets a second.
        let levels: Vec<f64> = (0..60).map(|_| hop.second(&[40_000.0])[0]).collect();
        assert_eq!(levels[0], 64.0);
        assert!((levels[59] - 32.0).abs() < 1.0, "{levels:?}");
    }

    #[test]
    fn the_reference_is_the_slowest_saturated_station() {
        let mut hop = Hop::new(&[390.0, 87.75]);
        let mut levels = Vec::new();
        for _ in 0..600 {
            levels = hop.second(&[f64::INFINITY, 20.0]);
        }
        assert!((levels[0] - 32.0).abs() < 1.0, "{levels:?}");
        // What the slow one may be sent is its share of that, whatever it uses.
        let rates = hop.rates();
        assert!((rates[0] / rates[1] - 390.0 / 87.75).abs() < 0.01, "{rates:?}");
    }

    #[test]
    fn parameters_are_checked() {
        assert!(PiParams { proportional: 0.0, ..PiParams::default() }.validate().is_ok());
        assert!(PiParams { integral: f64::NAN, ..PiParams::default() }.validate().is_err());
        assert!(PiParams { proportional: -1.0, ..PiParams::default() }.validate().is_err());
    }
}
