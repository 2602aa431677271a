//! Westwood+: after a loss the window is what the path was seen to carry, and not half of what it was.
//! Source:     Grieco, Mascolo, "Performance evaluation and comparison of Westwood+, New Reno, and Vegas TCP congestion control",
//!             ACM CCR 34(2), 2004; the filter and the least sampling time are those of Linux's `tcp_westwood.c`.
//! Equations:  sample = delivered since the last one / time, once a round trip;   b1' = 7/8 b1 + 1/8 sample;   b' = 7/8 b + 1/8 b1'
//!             on loss ssthresh = b * least round trip, at least two segments;   growth as Reno's
//! Symbols:    b -> `Bandwidth::rate`, b1 -> `Bandwidth::once`
//! Deviations: a loss never raises the window (the paper lowers it only where it is above the threshold).
//! Validity:   as Reno.     Checked by: tests::*

use super::Setup;
use super::window::Window;
use crate::{Decision, Entry, SenderLaw};
use lasthop_signals::{Ack, Signal};
use lasthop_units::{Bytes, Span, Time};

/// The name of the law.
pub const NAME: &str = "westwood";
/// Its entry in the registry.
pub const LAW: Entry =
    Entry::sender(NAME, "TCP Westwood+ (Grieco, Mascolo 2004).", &[], |_, setup| Ok(Box::new(Westwood::new(&setup))));

/// Shorter samples would be of single bursts.
const LEAST_SAMPLE: Span = Span::from_millis(50);

/// Westwood+ for one flow.
#[derive(Clone, Debug)]
pub struct Westwood {
    window: Window,
    bandwidth: Bandwidth,
}

/// What the path was seen to carry.
#[derive(Clone, Debug, Default)]
struct Bandwidth {
    /// When the sample that is being taken began; `None` before the first acknowledgement.
    since: Option<Time>,
    delivered: Bytes,
    /// Octets a second, filtered once and twice; `None` before the first sample.
    filtered: Option<(f64, f64)>,
    rtt: Option<Span>,
    least_rtt: Option<Span>,
}

impl Bandwidth {
    fn on_ack(&mut self, now: Time, ack: &Ack) {
        self.rtt = ack.rtt.or(self.rtt);
        self.least_rtt = match (self.least_rtt, ack.rtt) {
            (Some(least), Some(rtt)) => Some(least.min(rtt)),
            (least, rtt) => least.or(rtt),
        };
        let since = *self.since.get_or_insert(now);
        self.delivered += ack.newly_delivered;
        let Some(rtt) = self.rtt else { return };
        let lasted = now.since(since);
        if lasted <= rtt.max(LEAST_SAMPLE) {
            return;
        }
        let sample = self.delivered.get() as f64 / lasted.as_secs_f64();
        let older = |old: f64, new: f64| old * 7.0 / 8.0 + new / 8.0;
        self.filtered = Some(match self.filtered {
            None => (sample, sample),
            Some((once, rate)) => (older(once, sample), older(rate, older(once, sample))),
        });
        (self.since, self.delivered) = (Some(now), Bytes::ZERO);
    }

    /// What fills the path and no queue; `None` before the first sample.
    fn product(&self) -> Option<Bytes> {
        let (_, rate) = self.filtered?;
        Some(Bytes::new((rate * self.least_rtt?.as_secs_f64()) as u64))
    }
}

impl Westwood {
    /// A flow about to start.
    pub fn new(setup: &Setup) -> Westwood {
        Westwood { window: Window::new(setup), bandwidth: Bandwidth::default() }
    }

    /// Where the window goes after a loss.
    fn target(&self) -> Bytes {
        let cwnd = self.window.cwnd();
        let product = self.bandwidth.product().unwrap_or(cwnd.scale(0.5));
        product.max(self.window.mss() * 2).min(cwnd)
    }
}

impl SenderLaw for Westwood {
    fn sense(&mut self, now: Time, signal: &Signal) {
        match signal {
            Signal::Ack(ack) => {
                self.bandwidth.on_ack(now, ack);
                self.window.climb(ack);
            }
            Signal::Loss(loss) => self.window.on_loss(loss, self.target()),
            Signal::Timeout(loss) => {
                self.window.on_timeout(loss, self.target());
                // The path may be another one now.
                self.bandwidth.least_rtt = None;
            }
            other => self.window.follow(now, other),
        }
    }

    fn decide(&self, _now: Time) -> Decision {
        self.window.decide()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::test_signals::{MSS, ack, cwnd, loss, setup};

    /// One segment acknowledged every `gap` ms from `from` ms on, with a round trip of `rtt` ms.
    fn acks(westwood: &mut Westwood, (from, count, gap): (u64, u64, u64), rtt: u64) -> u64 {
        for n in 0..count {
            let at = Time::ZERO + Span::from_millis(from + n * gap);
            let sample = Ack { rtt: Some(Span::from_millis(rtt)), ..ack(1, 1_000) };
            westwood.sense(at, &Signal::Ack(sample));
        }
        from + count * gap
    }

    #[test]
    fn a_sample_is_a_round_trip_of_acknowledgements_filtered_twice() {
        let mut westwood = Westwood::new(&setup());
        // A segment a millisecond: the first sample ends at 101 ms, with 102 segments in 101 ms.
        let at = acks(&mut westwood, (0, 102, 1), 100);
        let mss = MSS.get() as f64;
        let first = 102.0 * mss / 0.101;
        let (once, rate) = westwood.bandwidth.filtered.expect("a sample");
        assert!((once - first).abs() < 1.0 && (rate - first).abs() < 1.0, "{once} {rate}");
        // Half as fast: the next ends after 102 ms of it, with 51 segments.
        acks(&mut westwood, (at + 1, 51, 2), 100);
        let (once, rate) = westwood.bandwidth.filtered.expect("a sample");
        let second = 51.0 * mss / 0.102;
        let expected = first * 7.0 / 8.0 + second / 8.0;
        assert!((once - expected).abs() < 1.0, "{once}, expected {expected}");
        assert!((rate - (first * 7.0 / 8.0 + expected / 8.0)).abs() < 1.0, "{rate}");
    }

    #[test]
    fn a_loss_leaves_what_the_path_carries_in_its_least_round_trip() {
        let mut westwood = Westwood::new(&setup());
        // A queue of three times the path: 20 ms without it, and 80 ms with it.
        let at = acks(&mut westwood, (0, 1, 1), 20);
        acks(&mut westwood, (at, 2_000, 1), 80);
        assert!(cwnd(&westwood) > MSS * 100);
        westwood.sense(Time::ZERO + Span::from_secs(3), &Signal::Loss(loss(80)));
        westwood.sense(Time::ZERO + Span::from_secs(3), &Signal::Recovered);
        // A segment a millisecond for 20 ms, and not half of the window.
        let left = cwnd(&westwood).get() as f64 / MSS.get() as f64;
        assert!((19.0..=21.0).contains(&left), "{left} segments");
    }

    #[test]
    fn without_a_sample_a_loss_halves_and_never_raises() {
        let mut westwood = Westwood::new(&setup());
        let before = cwnd(&westwood);
        westwood.sense(Time::ZERO, &Signal::Loss(loss(10)));
        westwood.sense(Time::ZERO, &Signal::Recovered);
        assert_eq!(cwnd(&westwood), before.scale(0.5));
        acks(&mut westwood, (0, 3, 100), 1_000);
        let before = cwnd(&westwood);
        westwood.bandwidth.filtered = Some((1e12, 1e12));
        westwood.sense(Time::ZERO, &Signal::Loss(loss(10)));
        westwood.sense(Time::ZERO, &Signal::Recovered);
        assert!(cwnd(&westwood) <= before);
    }
}
