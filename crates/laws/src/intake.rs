//! How far a proxy opens the receive window of a connection whose data leaves it at a rate that a law has set.
//! Source:     own; the standing queue as in RFC 8289 (CoDel), section 3.1: the least over a round trip, not the mean.
//! Equations:  window = min{ x r + (s x - q) / 2,  2 x r + s x - Q },   q = the least Q of the last round trip or two
//! Symbols:    x -> `rate`, r -> `round_trip`, s -> `standing`, q -> `valley`, Q -> `queued`
//! Deviations: none.
//! Validity:   r is the round trip without a queue; over a longer one the window is too small by x times the difference,
//!             of which up to s x / 2 is made up for.
//! Checked by: tests::*, the simulator's proxy, the edge proxy's tests
//!
//! The window counts from what has arrived, not from what has been read: acknowledgements leave as data arrives, and a sender that is
//! clocked by them sends in bursts. After a burst the queue is long for as long as the burst takes to leave. If the window were
//! smaller by that, the next burst would be, too, and the proxy would stand idle between them, since a receiver that reads announces
//! nothing (Linux: not before the window has doubled). What must go is only what never leaves: the valley between bursts.
//! The valley answers one round trip after the window, and is known another one later; with half of the error in each the loop is
//! stable (its poles are 0.5 ± 0.5i). The second term bounds what a burst and the next may make wait together; where the wire is short,
//! many windows pass between two looks at the queue, and it is what counts.

use lasthop_units::{Bytes, Rate, Span, Time};

/// What is known of the queue of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Intake {
    /// When this round trip began, and its least queue so far.
    since: Time,
    least: Option<Bytes>,
    /// The least queue of the round trip before.
    before: Option<Bytes>,
}

/// Round trips shorter than this are looked at together.
const SHORTEST: Span = Span::from_millis(4);
/// Share of the allowance for which there shall always be something to send.
const STANDING: f64 = 0.6;
/// What has been read and not been acknowledged is no more than the rate carries in this time beyond the least round trip of the
/// tunnel. Stations acknowledge every 100 ms; what is older is not on its way but stands in a queue that the law does not know of.
const UNDER_WAY: Span = Span::from_millis(300);

impl Intake {
    /// What may wait beyond what fills the wire, unless somebody asks for something else: time at the rate.
    pub const ALLOWANCE: Span = Span::from_millis(10);

    /// For how long, at the rate, there shall always be something to send where `allowance` may wait: what bursts lack to be even.
    /// The rest is left to the bursts.
    pub fn standing(allowance: Span) -> Span {
        allowance.scale(STANDING)
    }

    /// Octets that a proxy may have read for a station and not yet seen acknowledged, over a tunnel of this least round trip.
    pub fn under_way(rate: Rate, round_trip: Span) -> Bytes {
        rate.bytes_in(round_trip + UNDER_WAY)
    }

    /// Octets beyond what has arrived that may be sent, when `queued` of them wait. `standing`: the time at `rate` for which
    /// there shall always be something to send.
    pub fn window(&mut self, now: Time, rate: Rate, round_trip: Span, standing: Span, queued: Bytes) -> Bytes {
        if now.since(self.since) >= round_trip.max(SHORTEST) {
            (self.since, self.before, self.least) = (now, self.least, None);
        }
        let least = self.least.map_or(queued, |least| least.min(queued));
        self.least = Some(least);
        let valley = self.before.map_or(least, |before| before.min(least));
        let (wire, wanted) = (rate.bytes_in(round_trip), rate.bytes_in(standing));
        let for_ever = (wire + wanted.scale(0.5)).saturating_sub(valley.scale(0.5));
        for_ever.min((wire.scale(2.0) + wanted).saturating_sub(queued))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// A server that sends what it may at once, and a proxy that passes 100 Mbit/s on. Gives the share of its rate that the proxy
    /// used, and the longest queue in milliseconds at the rate, in the second half of 100 round trips.
    fn served(round_trip: Span, first: Bytes) -> (f64, f64) {
        let (rate, standing, step) = (Rate::from_mbit(100), Span::from_millis(6), Span::from_micros(100));
        let (mut intake, mut queued, mut edge) = (Intake::default(), Bytes::ZERO, first);
        // Octets under way, by when they arrive.
        let mut wire = VecDeque::from([(Time::ZERO + round_trip, first)]);
        let (mut arrived, mut passed, mut longest) = (Bytes::ZERO, Bytes::ZERO, Bytes::ZERO);
        let (mut now, end) = (Time::ZERO, Time::ZERO + round_trip * 100);
        while now < end {
            now += step;
            let burst = wire.pop_front_if(|(at, _)| *at <= now).map_or(Bytes::ZERO, |(_, len)| len);
            (queued, arrived) = (queued + burst, arrived + burst);
            let window = intake.window(now, rate, round_trip, standing, queued);
            // Only arriving data carries the window to the server, and its edge does not move back.
            if !burst.is_zero() && arrived + window > edge {
                wire.push_back((now + round_trip, arrived + window - edge));
                edge = arrived + window;
            }
            let leaves = queued.min(rate.bytes_in(step));
            queued = queued.saturating_sub(leaves);
            if now > Time::ZERO + round_trip * 50 {
                (passed, longest) = (passed + leaves, longest.max(queued));
            }
        }
        let ms = |len: Bytes| rate.time_for(len).expect("a rate").as_secs_f64() * 1e3;
        (ms(passed) / (round_trip * 50).as_secs_f64() / 1e3, ms(longest))
    }

    #[test]
    fn a_server_that_sends_in_one_burst_a_round_trip_is_passed_on_without_a_gap_and_within_the_bound() {
        for ms in [5, 20, 100] {
            let (used, longest) = served(Span::from_millis(ms), Bytes::new(14_000));
            assert!(used > 0.99, "{ms} ms: {used}");
            assert!(longest <= ms as f64 + 10.0, "{ms} ms: a queue of {longest} ms");
        }
    }

    #[test]
    fn what_nobody_takes_closes_the_window() {
        let mut intake = Intake::default();
        let (rate, rtt, standing) = (Rate::from_mbit(100), Span::from_millis(20), Span::from_millis(6));
        let queued = rate.bytes_in(rtt * 2 + standing);
        let window = |intake: &mut Intake, ms: u64| {
            intake.window(Time::ZERO + Span::from_millis(ms), rate, rtt, standing, queued)
        };
        let windows: Vec<Bytes> = (0..50).map(|ms| window(&mut intake, ms)).collect();
        assert_eq!(windows.last(), Some(&Bytes::ZERO));
    }
}
