//! Interarrival jitter of one probe stream.
//! Source:     RFC 3550 section 6.4.1.
//! Equations:  D(i-1,i) = (R_i - R_{i-1}) - (S_i - S_{i-1});   J += (|D(i-1,i)| - J) / 16
//! Symbols:    S -> `sent`, R -> `received`, transit R - S -> `transit`, J -> `level` (all in milliseconds)
//! Deviations: RTP reports J whenever a report is due, which shows little more than the last 16 packets. A run wants
//!             one number that stands for the whole window: the mean of J over the window's arrivals. J itself runs
//!             from the stream's first packet, so it has left its start value of 0 by the time the window opens.
//! Validity:   packets in the order of arrival; sender and receiver need not share a clock.
//! Checked by: tests::a_hand_worked_stream, tests::a_steady_stream_has_none

use lasthop_units::Time;
use lasthop_units::stats::Moments;

/// The jitter of one stream.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Jitter {
    transit: Option<f64>,
    level: f64,
    window: Moments,
}

impl Jitter {
    /// Folds one arrival in; only those `in_window` count towards the mean.
    pub(crate) fn arrival(&mut self, sent: Time, received: Time, in_window: bool) {
        let transit = (received.as_nanos() as f64 - sent.as_nanos() as f64) / 1e6;
        let Some(before) = self.transit.replace(transit) else { return };
        self.level += ((transit - before).abs() - self.level) / 16.0;
        if in_window {
            self.window.add(self.level);
        }
    }

    /// The mean of J over the window in milliseconds; `None` if it saw no two packets.
    pub(crate) fn mean_ms(&self) -> Option<f64> {
        self.window.mean()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Time {
        Time::from_nanos(n * 1_000_000)
    }

    #[test]
    fn a_hand_worked_stream() {
        let mut jitter = Jitter::default();
        // Transits 10, 26, 10 ms: |D| = 16, 16; J = 1, then 1 + (16 - 1) / 16 = 1.9375; their mean is 1.46875.
        for (sent, transit) in [(0, 10), (20, 26), (40, 10)] {
            jitter.arrival(ms(sent), ms(sent + transit), true);
        }
        assert_eq!(jitter.mean_ms(), Some(1.46875));
    }

    #[test]
    fn a_steady_stream_has_none() {
        let mut jitter = Jitter::default();
        (0..50).for_each(|i| jitter.arrival(ms(20 * i), ms(20 * i + 7), true));
        assert_eq!(jitter.mean_ms(), Some(0.0));
    }

    #[test]
    fn one_packet_has_no_jitter_to_report() {
        let mut jitter = Jitter::default();
        jitter.arrival(ms(0), ms(7), true);
        assert_eq!(jitter.mean_ms(), None);
    }
}
