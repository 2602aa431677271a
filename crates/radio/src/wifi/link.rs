//! The radio conditions of a link over time: signal-to-noise ratio from a trace or from distance, and block fading.
//! Source:     T. S. Rappaport, Wireless Communications, 4.9 (log-distance path loss), 5.6 (Rayleigh and Rician fading);
//!             free-space loss at one metre: ITU-R P.525.
//! Equations:  loss = 20 log10(4 pi f / c) + 10 n log10(d);   noise = -174 dBm/Hz + 10 log10(width) + noise figure;
//!             snr = transmit power - loss - noise;   h = sqrt(K / (K + 1)) + sqrt(1 / (K + 1)) CN(0, 1), gain |h|^2
//! Symbols:    n -> `exponent`, d -> distance in metres, K -> `k`
//! Deviations: the channel is flat and holds for one block (the coherence time, or 10 ms without fading), then is drawn anew
//!             without memory; both directions are alike; no shadowing but what a trace brings. Wide channels fade less
//!             deeply than a flat one, for they fade in parts.
//! Validity:   distances from 1 m.     Checked by: tests::*

use super::air::Strength;
use super::decibel::{Db, Dbm};
use super::phy::{Band, Phy};
use lasthop_units::{Span, Stream, Time};
use rand::Rng;

/// The radio conditions between a station and its access point.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Its mean signal-to-noise ratio over the whole channel.
    pub snr: Snr,
    /// Fading about that mean; `None` for none.
    pub fading: Option<Fading>,
}

/// Where the mean signal-to-noise ratio comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Snr {
    /// Steps in increasing order of time; each holds until the next, the first also before its time.
    Trace(Vec<(Time, Db)>),
    /// From the distance in metres. The node walks between its points in a straight line; at least one point.
    Distance {
        /// How distance becomes a ratio.
        loss: PathLoss,
        /// Points in increasing order of time.
        walk: Vec<(Time, f64)>,
    },
}

/// Log-distance path loss and the noise of the receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathLoss {
    /// 2 in free space, 3 to 4 through walls.
    pub exponent: f64,
    /// Power of the transmitter with its antennas.
    pub power: Dbm,
    /// Noise figure of the receiver.
    pub noise_figure: Db,
}

impl Default for PathLoss {
    /// An exponent of 3 (an office, Rappaport table 4.6), 20 dBm (the limit at 2.4 GHz in Europe, EN 300 328), and 7 dB
    /// (ns-3's default).
    fn default() -> PathLoss {
        PathLoss { exponent: 3.0, power: Dbm(20.0), noise_figure: Db(7.0) }
    }
}

/// Block fading: the channel's power gain changes from one coherence time to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fading {
    /// How long a gain holds.
    pub coherence: Span,
    /// Power of the direct path over that of all others (Rician); 0 for none (Rayleigh).
    pub k: f64,
}

impl PathLoss {
    /// Mean signal-to-noise ratio at a distance of `metres`.
    pub fn snr(&self, metres: f64, phy: Phy) -> Db {
        let hertz: f64 = match phy.standard.band() {
            Band::Ghz2_4 => 2.437e9,
            Band::Ghz5 => 5.25e9,
        };
        let first = 20.0 * (4.0 * std::f64::consts::PI * hertz / 299_792_458.0).log10();
        let loss = first + 10.0 * self.exponent * metres.max(1.0).log10();
        Db(self.power.0 - loss - self.noise(phy).0)
    }

    /// Noise of the receiver over the channel's width.
    pub fn noise(&self, phy: Phy) -> Dbm {
        Dbm(-174.0 + 10.0 * (f64::from(phy.width.mhz()) * 1e6).log10() + self.noise_figure.0)
    }
}

/// How long conditions hold without fading: a tenth of a second of walking is 14 cm.
const BLOCK: Span = Span::from_millis(10);

impl Link {
    /// How long conditions hold.
    pub(super) fn block(&self) -> Span {
        self.fading.map_or(BLOCK, |fading| fading.coherence)
    }

    fn mean(&self, at: Time, phy: Phy) -> Db {
        match &self.snr {
            Snr::Trace(steps) => {
                let next = steps.partition_point(|step| step.0 <= at);
                steps[next.saturating_sub(1)].1
            }
            Snr::Distance { loss, walk } => loss.snr(distance(walk, at), phy),
        }
    }
}

/// Where a node is that walks from point to point.
fn distance(walk: &[(Time, f64)], at: Time) -> f64 {
    let next = walk.partition_point(|point| point.0 <= at);
    match (next.checked_sub(1).map(|before| walk[before]), walk.get(next)) {
        (Some((left, from)), Some((arrives, to))) => {
            let part = at.since(left).as_secs_f64() / arrives.since(left).as_secs_f64();
            from + (to - from) * part
        }
        (Some((_, metres)), None) | (None, Some(&(_, metres))) => metres,
        (None, None) => 1.0,
    }
}

/// A link at work: its ratio now, and what follows from it for each mode, kept while the block lasts.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    link: Link,
    phy: Phy,
    stream: Stream,
    block: u64,
    /// Linear.
    snr: f64,
    /// Logarithm of a bit's success by mode; NaN where nobody has asked in this block.
    pub ln_success: Vec<f64>,
    /// The best mode of the block, if it was asked for.
    pub best: Option<u16>,
}

impl Channel {
    /// Fading draws from `stream`.
    pub fn new(link: Link, phy: Phy, modes: usize, stream: Stream) -> Channel {
        Channel { link, phy, stream, block: u64::MAX, snr: 0.0, ln_success: vec![f64::NAN; modes], best: None }
    }

    /// What a receiver measures of a frame that begins at `at`. Where only the ratio is given, the noise is that of a
    /// receiver with the default figure.
    pub fn strength(&mut self, at: Time) -> Strength {
        let loss = match &self.link.snr {
            Snr::Distance { loss, .. } => *loss,
            Snr::Trace(_) => PathLoss::default(),
        };
        let noise = loss.noise(self.phy);
        Strength { signal: Dbm(noise.0 + 10.0 * self.snr(at).log10()), noise }
    }

    /// The signal-to-noise ratio at `at`.
    pub fn snr(&mut self, at: Time) -> f64 {
        let length = self.link.block();
        let block = at.as_nanos() / length.as_nanos();
        if block != self.block {
            self.block = block;
            let mean = self.link.mean(Time::ZERO + length * block, self.phy).linear();
            self.snr = mean * self.link.fading.map_or(1.0, |fading| gain(&mut self.stream, block, fading.k));
            self.ln_success.fill(f64::NAN);
            self.best = None;
        }
        self.snr
    }
}

/// The power gain of a block: its own place in the stream, so that it does not depend on which blocks were asked for.
fn gain(stream: &mut Stream, block: u64, k: f64) -> f64 {
    stream.set_word_pos(u128::from(block) * 4);
    let mut uniform = || ((stream.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    // Box and Muller: two Gaussians of variance 1/2, the parts of CN(0, 1).
    let radius = (-uniform().ln()).sqrt();
    let angle = std::f64::consts::TAU * uniform();
    let (direct, scattered) = ((k / (k + 1.0)).sqrt(), (1.0 / (k + 1.0)).sqrt());
    (direct + scattered * radius * angle.cos()).powi(2) + (scattered * radius * angle.sin()).powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wifi::{GuardInterval, Standard, Width};
    use lasthop_units::Seed;

    const PHY: Phy = Phy { standard: Standard::Dot11ac, width: Width::Mhz80, guard_interval: GuardInterval::Ns800 };

    #[test]
    fn ten_times_the_distance_costs_30_db_at_exponent_three() {
        let loss = PathLoss::default();
        // 20 dBm - 46.85 dB at 1 m - (-174 + 79.03 + 7) dBm.
        assert!((loss.snr(1.0, PHY).0 - 61.12).abs() < 0.01, "{:?}", loss.snr(1.0, PHY));
        assert!((loss.snr(1.0, PHY).0 - loss.snr(10.0, PHY).0 - 30.0).abs() < 1e-9);
        let narrow = Phy { width: Width::Mhz20, ..PHY };
        assert!((loss.snr(5.0, narrow).0 - loss.snr(5.0, PHY).0 - 6.02).abs() < 0.01);
    }

    #[test]
    fn somebody_walks_in_a_straight_line() {
        let at = |s: f64| Time::ZERO + Span::from_secs_f64(s);
        let walk = [(at(1.0), 2.0), (at(3.0), 10.0)];
        assert_eq!([0.0, 1.0, 2.0, 3.0, 9.0].map(|s| distance(&walk, at(s))), [2.0, 2.0, 6.0, 10.0, 10.0]);
    }

    #[test]
    fn gains_match_their_distribution_and_not_the_query_order() {
        let mut stream = Seed(5).stream("fading");
        for (k, variance) in [(0.0, 1.0), (3.0, 7.0 / 16.0)] {
            let gains: Vec<f64> = (0..200_000).map(|block| gain(&mut stream, block, k)).collect();
            let mean = gains.iter().sum::<f64>() / gains.len() as f64;
            let spread = gains.iter().map(|gain| (gain - mean).powi(2)).sum::<f64>() / gains.len() as f64;
            assert!((mean - 1.0).abs() < 0.01, "{mean}");
            // (1 + 2 K) / (1 + K)^2.
            assert!((spread / variance - 1.0).abs() < 0.03, "{spread} for {variance}");
            assert!((gain(&mut stream, 777, k) - gains[777]).abs() < 1e-12);
        }
        // Rayleigh: the gain is exponential, below a tenth in 9.5 % of the blocks.
        let deep = (0..100_000).filter(|&block| gain(&mut stream, block, 0.0) < 0.1).count();
        assert!((deep as f64 / 1e5 - 0.0952).abs() < 0.004, "{deep}");
    }

    #[test]
    fn a_trace_holds_from_step_to_step() {
        let at = |s: u64| Time::ZERO + Span::from_secs(s);
        let link = Link { snr: Snr::Trace(vec![(at(0), Db(30.0)), (at(2), Db(10.0))]), fading: None };
        let mut channel = Channel::new(link, PHY, 1, Seed(1).stream("fading"));
        let db = [0, 1, 2, 5].map(|s| 10.0 * channel.snr(at(s)).log10());
        assert!(db.iter().zip([30.0, 30.0, 10.0, 10.0]).all(|(a, b): (&f64, f64)| (a - b).abs() < 1e-9), "{db:?}");
    }
}
