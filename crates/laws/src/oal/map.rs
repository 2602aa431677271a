//! The paper's map from a flow's past windows to its rates, and the window that a wanted rate needs.
//! Source:     \[oal\], which names both and gives neither a formula. Own: the window is inferred from what is in
//!             flight, and the logarithm of the rate regressed on the logarithm of the window.
//! Equations:  w = f + x RTT_w                                  the sender's window: in flight behind the access point, and on the wire
//!             ln x = a + b ln w,  least squares, an observation weighing e^(-age / `MEMORY`)
//!             w(x) = e^((ln x - a) / b)
//! Symbols:    f -> `FlowReport::in_flight`, RTT_w -> `FlowReport::wired_rtt`, x -> rate
//! Deviations: b is from `SLOPES`. Below what fills the hop rate grows with the window, b = 1; beyond it not at all, b = 0, and no window yields more:
//!             the least slope keeps the inverse from running away. As long as windows have hardly varied b = 1, so that the map is the round trip as it
//!             is, which is the `paper` rule.
//! Validity:   from `LEAST` observations on; positive rates and windows.
//! Checked by: tests::*, `lasthop reproduce oal` (against the simulator's windows)

use lasthop_signals::FlowReport;
use lasthop_units::{Bytes, Rate, Span, Time};

/// After this an observation weighs a 2.7th.
const MEMORY: Span = Span::from_secs(10);
/// Observations, as weights, from which there is a map.
const LEAST: f64 = 10.0;
/// Slopes of the map.
const SLOPES: (f64, f64) = (0.25, 1.0);
/// Variance of the logarithm of windows from which a slope can be told: a deviation of a tenth.
const VARIED: f64 = 0.01;

/// The sender's congestion window, or what it uses of it, as it shows at the access point; `None` without a wired round trip.
pub fn inferred_window(flow: &FlowReport, rate: Rate) -> Option<Bytes> {
    Some(flow.in_flight + rate.bytes_in(flow.wired_rtt?))
}

/// One flow's map.
#[derive(Clone, Copy, Debug, Default)]
pub struct Map {
    at: Time,
    /// Sums of weights, and weighted means and moments of ln w and ln x.
    weight: f64,
    window: f64,
    rate: f64,
    window_variance: f64,
    covariance: f64,
}

impl Map {
    /// At `now` the flow had `rate` with `window`. What is zero tells nothing.
    pub fn learn(&mut self, now: Time, window: Bytes, rate: Rate) {
        if window.is_zero() || rate.is_zero() {
            return;
        }
        let (window, rate) = ((window.get() as f64).ln(), (rate.as_bps() as f64).ln());
        let keeps = (-now.since(self.at).as_secs_f64() / MEMORY.as_secs_f64()).exp();
        self.at = now;
        self.weight = self.weight * keeps + 1.0;
        // The weighted form of Welford's update (West 1979): means and moments forget alike.
        let share = 1.0 / self.weight;
        let (from_window, from_rate) = (window - self.window, rate - self.rate);
        self.window += share * from_window;
        self.rate += share * from_rate;
        self.window_variance = (1.0 - share) * (self.window_variance + share * from_window * from_window);
        self.covariance = (1.0 - share) * (self.covariance + share * from_window * from_rate);
    }

    fn slope(&self) -> f64 {
        if self.window_variance < VARIED {
            return SLOPES.1;
        }
        (self.covariance / self.window_variance).clamp(SLOPES.0, SLOPES.1)
    }

    fn is_known(&self) -> bool {
        self.weight >= LEAST
    }

    /// The window for `rate`; `None` while too little is known.
    pub fn window(&self, rate: Rate) -> Option<Bytes> {
        let rate = Some(rate).filter(|rate| !rate.is_zero() && self.is_known())?;
        let window = self.window + ((rate.as_bps() as f64).ln() - self.rate) / self.slope();
        // No window is larger than what a scaled field can say.
        Some(Bytes::new(window.exp().min(f64::from(1u32 << 30)) as u64))
    }

    /// The rate with `window`; `None` while too little is known.
    pub fn rate(&self, window: Bytes) -> Option<Rate> {
        let window = Some(window).filter(|window| !window.is_zero() && self.is_known())?;
        let rate = self.rate + self.slope() * ((window.get() as f64).ln() - self.window);
        Some(Rate::from_bps(rate.exp().min(1e12) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::brief::at;

    /// A flow over a path that takes 20 ms and carries at most `most`.
    fn taught(windows: impl Iterator<Item = u64>, most: u64) -> Map {
        let mut map = Map::default();
        for (turn, window) in (0..).zip(windows) {
            map.learn(at(40 * turn), Bytes::new(window), Rate::from_bps((window * 8 * 50).min(most)));
        }
        map
    }

    #[test]
    fn a_window_that_does_not_fill_the_hop_is_rate_times_rtt() {
        let map = taught((0..50).map(|turn| 20_000 + 1_000 * turn), u64::MAX);
        let window = map.window(Rate::from_mbit(4)).expect("50 observations");
        // 4 Mbit/s over 20 ms, by extrapolation.
        assert!(window.get().abs_diff(10_000) <= 1, "{window}");
        assert!(map.rate(Bytes::new(10_000)).expect("known").as_bps().abs_diff(4_000_000) < 1000);
    }

    #[test]
    fn without_variation_it_is_the_round_trip_as_it_is() {
        let map = taught((0..50).map(|_| 100_000), 10_000_000);
        // 100 kB at 10 Mbit/s stand for 80 ms.
        assert!(map.window(Rate::from_mbit(5)).expect("known").get().abs_diff(50_000) <= 1);
    }

    #[test]
    fn above_the_bdp_windows_add_little_and_the_inverse_is_bounded() {
        let map = taught((0..50).map(|turn| 100_000 + 4_000 * turn), 10_000_000);
        let (half, twice) = (map.window(Rate::from_mbit(5)), map.window(Rate::from_mbit(20)));
        // Slope 1/4: half the rate is a sixteenth of the window.
        assert!(half.expect("known").get() * 15 < 200_000 && twice.expect("known").get() < (1 << 30) + 1);
    }

    #[test]
    fn few_observations_and_empty_ones_make_no_map() {
        assert_eq!(taught((0..9).map(|_| 50_000), u64::MAX).window(Rate::from_mbit(1)), None);
        let mut map = Map::default();
        (0..100).for_each(|turn| map.learn(at(turn), Bytes::ZERO, Rate::from_mbit(1)));
        (0..100).for_each(|turn| map.learn(at(turn), Bytes::new(5), Rate::ZERO));
        assert_eq!((map.window(Rate::from_mbit(1)), map.rate(Bytes::new(5))), (None, None));
    }

    #[test]
    fn the_moments_are_those_of_least_squares() {
        // Without forgetting (all at once) the slope is the textbook's.
        let mut map = Map::default();
        let points: Vec<(f64, f64)> = (0..40)
            .map(|n| (10.0 + f64::from(n % 7) * 0.3, 15.0 + f64::from(n % 7) * 0.2 + f64::from(n % 3) * 0.1))
            .collect();
        let bytes = |ln: f64| Bytes::new(ln.exp() as u64);
        for (window, rate) in &points {
            map.learn(at(1), bytes(*window), Rate::from_bps(rate.exp() as u64));
        }
        let mean = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / points.len() as f64;
        let (x, y) = (mean(&|p| p.0), mean(&|p| p.1));
        let slope = mean(&|p| (p.0 - x) * (p.1 - y)) / mean(&|p| (p.0 - x).powi(2));
        assert!((map.slope() - slope).abs() < 1e-3, "{} and {slope}", map.slope());
    }
}
