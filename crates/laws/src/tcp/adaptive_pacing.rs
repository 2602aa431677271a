//! TCP with adaptive pacing (TCP-AP): NewReno with packets that leave a four-hop delay apart, so that those of a chain
//! do not meet in the air.
//! Source:     ElRakabawy, Klemm, Lindemann, "TCP with adaptive pacing for multihop wireless networks", MobiHoc 2005; where the paper leaves a
//!             choice, the authors' agent for ns-2.
//! Equations:  q = (RTT / h - (L_data + L_ack) / b) / 2, a hop's queueing and contention;   one hop: q + L_data / b
//!             FHD = 4 hops from four hops on, otherwise one;   FHD_avg' = alpha FHD_avg + (1 - alpha) FHD
//!             interval = (1 + 2 v) FHD_avg, v the mean absolute deviation of the last 50 FHD over their mean
//! Symbols:    h -> `Setup::hops`; b -> `Params::link_rate`; alpha = 0.7 -> `KEPT`
//! Deviations: a negative q counts as none. The retransmission timer backs off; what is sent again is paced as everything is.
//! Validity:   over the loss recovery of NewReno; all links of the path have one rate; h as routes were when the connection began.
//! Checked by: tests::*, tests/integration/conformance

use super::{NewReno, Setup};
use crate::{Decision, Entry, LossRecovery, Parameters, SenderLaw, Transport, params};
use lasthop_signals::{Ack, Signal};
use lasthop_units::{Bytes, Rate, Time};
use std::collections::VecDeque;

/// The name of the law.
pub const NAME: &str = "tcp-ap";
/// Its entry in the registry.
pub const LAW: Entry = Entry::sender(
    NAME,
    "TCP-AP (ElRakabawy, Klemm, Lindemann 2005): NewReno paced by the delay of four hops.",
    Params::TABLE,
    |settings, setup| Ok(Box::new(AdaptivePacing::new(Params::with(settings)?, &setup))),
)
.over(Transport::Tcp(LossRecovery::NewReno));

params! {
    /// What may be set of a sender.
    pub struct Params {
        /// Rate of the path's links.
        link_rate: Rate = "2 Mbit/s", |p| !p.link_rate.is_zero() => "above zero";
    }
}

/// What is kept of the average at a new sample.
const KEPT: f64 = 0.7;
/// Samples of which the deviation counts.
const HISTORY: usize = 50;
/// No longer sample counts, seconds.
const MOST: f64 = 0.5;
/// Between two packets before anything is known, seconds.
const FIRST: f64 = 0.05;
/// Hops within which packets meet in the air: carrier sensing reaches about twice as far as reception.
const SPATIAL_REUSE: f64 = 4.0;
/// Octets of TCP, IP and MAC headers, preamble included.
const OVERHEAD: u64 = 112;

/// The law of one sender.
#[derive(Clone, Debug)]
pub struct AdaptivePacing {
    window: NewReno,
    params: Params,
    hops: f64,
    mss: Bytes,
    /// Delays of the last packets over as many hops as share the air, seconds.
    samples: VecDeque<f64>,
    average: Option<f64>,
}

impl AdaptivePacing {
    /// A flow about to start.
    pub fn new(params: Params, setup: &Setup) -> AdaptivePacing {
        let (window, hops) = (NewReno::new(setup, true), f64::from(setup.hops.max(1)));
        AdaptivePacing { window, params, hops, mss: setup.mss, samples: VecDeque::new(), average: None }
    }

    fn on_round_trip(&mut self, ack: &Ack) {
        let Some(rtt) = ack.rtt.filter(|_| !ack.newly_delivered.is_zero()) else { return };
        self.mss = ack.mss;
        let octets = 1.0 / self.params.link_rate.as_bps() as f64 * 8.0;
        let (data, acknowledgement) = ((self.mss.get() + OVERHEAD) as f64 * octets, OVERHEAD as f64 * octets);
        let queueing = ((rtt.as_secs_f64() / self.hops - data - acknowledgement) / 2.0).max(0.0);
        let shared = if self.hops >= SPATIAL_REUSE { SPATIAL_REUSE } else { 1.0 };
        let delay = (queueing + data) * shared;
        if queueing > MOST || delay > MOST {
            return;
        }
        self.average = Some(self.average.map_or(delay, |known| KEPT * known + (1.0 - KEPT) * delay));
        if self.samples.len() == HISTORY {
            self.samples.pop_front();
        }
        self.samples.push_back(delay);
    }

    /// Mean absolute deviation of the samples over their mean.
    fn deviation(&self) -> f64 {
        let count = self.samples.len().max(1) as f64;
        let mean = self.samples.iter().sum::<f64>() / count;
        if mean == 0.0 {
            return 0.0;
        }
        self.samples.iter().map(|sample| (sample - mean).abs()).sum::<f64>() / count / mean
    }

    /// From one packet to the next, seconds.
    fn interval(&self) -> f64 {
        self.average.map_or(FIRST, |average| (1.0 + 2.0 * self.deviation()) * average)
    }
}

impl SenderLaw for AdaptivePacing {
    fn sense(&mut self, now: Time, signal: &Signal) {
        if let Signal::Ack(ack) = signal {
            self.on_round_trip(ack);
        }
        self.window.sense(now, signal);
    }

    fn decide(&self, now: Time) -> Decision {
        let bits = self.mss.get() as f64 * 8.0 / self.interval();
        Decision { pacing: Some(Rate::from_bps(bits.max(1.0) as u64)), ..self.window.decide(now) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::test_signals::{MSS, ack, setup};
    use lasthop_units::Span;

    fn law(hops: u32) -> AdaptivePacing {
        let params = Params { link_rate: Rate::from_mbit(2) };
        AdaptivePacing::new(params, &Setup { hops, ..setup() })
    }

    fn interval_us(law: &AdaptivePacing) -> u64 {
        let rate = law.decide(Time::ZERO).pacing.expect("paced").as_bps();
        (MSS.get() as f64 * 8e6 / rate as f64).round() as u64
    }

    fn measured(law: &mut AdaptivePacing, us: u64) {
        let rtt = Some(Span::from_micros(us));
        law.sense(Time::ZERO, &Signal::Ack(Ack { rtt, ..ack(1, 4) }));
    }

    #[test]
    fn four_hops_by_hand() {
        // At 4 us an octet: 1000 + 112 and 112 octets are 4448 and 448 us.
        assert_eq!(MSS, Bytes::new(1000));
        for (hops, rtt, want) in [(5, 60_000, 4 * (3_552 + 4_448)), (4, 48_000, 4 * 8_000), (3, 36_000, 8_000)] {
            let mut law = law(hops);
            assert_eq!(interval_us(&law), 50_000, "nothing is known");
            measured(&mut law, rtt);
            assert_eq!(interval_us(&law), want, "{hops} hops");
        }
    }

    #[test]
    fn round_trips_that_vary_slow_it_down() {
        let mut law = law(1);
        // q = 1 and 3 ms in turn: delays of 5.448 and 7.448 ms, with a deviation of 1 ms of 6.448.
        (0..50).for_each(|n| measured(&mut law, 4_896 + if n % 2 == 0 { 2_000 } else { 6_000 }));
        let (low, high) = (5_448.0, 7_448.0);
        // The average settles to what alternates between (0.3 x + 0.21 y) / 0.51.
        let average = (0.3 * high + 0.21 * low) / 0.51;
        let want = average * (1.0 + 2.0 / 6.448);
        assert!((interval_us(&law) as f64 - want).abs() < 2.0, "{} {want}", interval_us(&law));
    }

    #[test]
    fn a_round_trip_out_of_bounds_counts_for_nothing() {
        let mut law = law(1);
        measured(&mut law, 8_896);
        let before = interval_us(&law);
        measured(&mut law, 1_200_000);
        assert_eq!(interval_us(&law), before);
    }
}
