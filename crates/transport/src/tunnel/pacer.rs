//! Departures at even intervals: one packet at a time, not a burst a millisecond.
//! Source:     the model of \[aggregation\] has packets arrive at the access point evenly, `1/x` apart.
//! Equations:  due' = due + length / rate;   when the rate x becomes x', and the next packet is due in t:  t' = t x / x'
//! Deviations: a packet that is late does not delay those behind it, unless by more than `CATCH_UP`: what is missed
//!             beyond that is not made up for, so idling saves up no burst.
//! Validity:   any rate; a rate of zero sends nothing.     Checked by: tests::*

use lasthop_units::{Bytes, Rate, Span, Time};

/// When packets of one session may leave.
#[derive(Clone, Debug, Default)]
pub(super) struct Pacer {
    due: Time,
}

/// Delay that is made up for: the few milliseconds for which a busy machine may stop a process.
const CATCH_UP: Span = Span::from_millis(2);

/// A rate of zero is asked again this much later.
const BLOCKED: Span = Span::from_millis(100);

impl Pacer {
    /// When the next packet is due; in the past if it is late.
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// A packet of `len` leaves at `now`, at `rate`; returns when it should have left, as far as delay is made up for.
    pub(super) fn on_sent(&mut self, now: Time, len: Bytes, rate: Rate) -> Time {
        let due = self.due.max(now.saturating_sub(CATCH_UP));
        self.due = due + rate.time_for(len).unwrap_or(BLOCKED);
        due
    }

    /// A packet leaves at `now`, `gap` before the next one however long it is; returns when it should have left, likewise.
    pub(super) fn on_sent_every(&mut self, now: Time, gap: Span) -> Time {
        let due = self.due.max(now.saturating_sub(CATCH_UP));
        self.due = due + gap;
        due
    }

    /// What a longer gap would have made wait need not wait beyond `at` any more.
    pub(super) fn wait_at_most(&mut self, at: Time) {
        self.due = self.due.min(at);
    }

    /// The rate was `old` and is `new` from `now` on: what was to be waited at the old one is not waited for at the new. (The packet before
    /// may have left at one a second.)
    pub(super) fn change(&mut self, now: Time, old: Rate, new: Rate) {
        if self.due > now && !new.is_zero() {
            self.due = now + (self.due - now).scale(old.as_bps() as f64 / new.as_bps() as f64);
        }
    }

    /// Nothing was to be sent up to `now`: the schedule begins anew.
    pub(super) fn idle(&mut self, now: Time) {
        self.due = self.due.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Bytes = Bytes::new(1500);

    #[test]
    fn departures_are_even_and_lateness_does_not_add_up() {
        let (mut pacer, rate) = (Pacer::default(), Rate::from_mbit(12));
        let at = |us: u64| Time::from_nanos(us * 1000);
        pacer.idle(at(10_000));
        for n in 0..5 {
            assert_eq!(pacer.due(), at(10_000 + n * 1000));
            // Each leaves a little late.
            assert_eq!(pacer.on_sent(at(10_000 + n * 1000 + 70 * n), FULL, rate), at(10_000 + n * 1000));
        }
    }

    #[test]
    fn a_long_stop_is_not_made_up_for() {
        let (mut pacer, rate) = (Pacer::default(), Rate::from_mbit(12));
        let late = Time::from_nanos(1_000_000_000);
        let mut burst = 0;
        while pacer.due() <= late {
            pacer.on_sent(late, FULL, rate);
            burst += 1;
        }
        assert_eq!(burst, 3, "2 ms and the packet that is due");
    }

    #[test]
    fn the_wait_for_the_next_packet_is_at_the_rate_of_now() {
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let [slow, fast] = [Rate::from_bps(12_000), Rate::from_mbit(12)];
        let mut pacer = Pacer::default();
        pacer.idle(at(1000));
        pacer.on_sent(at(1000), FULL, slow);
        assert_eq!(pacer.due(), at(2000));
        // Half of it has been waited.
        pacer.change(at(1500), slow, fast);
        assert_eq!(pacer.due(), at(1500) + Span::from_micros(500));
        pacer.change(at(1500), fast, slow);
        assert_eq!(pacer.due(), at(2000), "and back");
        pacer.change(at(1500), slow, Rate::ZERO);
        assert_eq!(pacer.due(), at(2000));
        pacer.change(at(1500), Rate::ZERO, fast);
        assert_eq!(pacer.due(), at(1500), "there was none");
        pacer.change(at(1600), fast, slow);
        assert_eq!(pacer.due(), at(1500), "what is late stays so");
    }

    #[test]
    fn a_rate_of_zero_blocks() {
        let mut pacer = Pacer::default();
        pacer.on_sent(Time::ZERO, FULL, Rate::ZERO);
        assert!(pacer.due() > Time::ZERO);
    }
}
