//! The propagation delay of the path.
//! Source:     [draft-cardwell-iccrg-bbr-congestion-control-00] section 4.1.2.
//! Equations:  RTprop = least RTT of the last 10 s
//! Deviations: an RTT that may include a delayed ACK is not told apart.     Validity: RTT > 0.     Checked by: tests::*

use lasthop_units::{Span, Time};

/// How long an estimate holds.
pub(crate) const WINDOW: Span = Span::from_secs(10);

/// The filter.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MinRtt {
    least: Option<Span>,
    seen_at: Time,
}

impl MinRtt {
    /// Folds in a sample. True if the least RTT had not been seen for 10 s before it.
    pub(crate) fn update(&mut self, now: Time, rtt: Option<Span>) -> bool {
        let expired = self.least.is_some() && now > self.seen_at + WINDOW;
        if let Some(rtt) = rtt
            && (expired || self.least.is_none_or(|least| rtt < least))
        {
            self.least = Some(rtt);
            self.seen_at = now;
        }
        expired
    }

    /// The path has just been measured empty: the estimate is good for another window.
    pub(crate) fn refresh(&mut self, now: Time) {
        self.seen_at = now;
    }

    /// The estimate.
    pub(crate) fn get(&self) -> Option<Span> {
        self.least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minimum_expires_after_ten_seconds() {
        let mut min = MinRtt::default();
        let ms = Span::from_millis;
        assert!(!min.update(Time::ZERO, Some(ms(20))));
        assert!(!min.update(Time::ZERO + Span::from_secs(10), Some(ms(30))));
        assert_eq!(min.get(), Some(ms(20)));
        assert!(min.update(Time::ZERO + ms(10_001), Some(ms(30))));
        assert_eq!(min.get(), Some(ms(30)));
        assert!(!min.update(Time::ZERO + ms(10_002), Some(ms(40))));
    }
}
