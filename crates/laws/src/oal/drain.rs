//! What a queue drains at, for a hop of which nobody counts airtime: a wired bottleneck.
//! Source:     own: a server that is never idle sends at its own rate.
//! Equations:  c = sum bytes / sum dt          over the newest intervals of `WINDOW` in which backlog(start) >= bytes
//!             c >= bytes(WINDOW) / WINDOW     in any
//!             while neither says more:  c <- c + (dt / `FORGET`) (`MOST` c_m - c)
//! Symbols:    bytes -> what left the queue in an interval between two reports, dt -> its length, c_m -> c when it was measured last
//! Deviations: -
//! Validity:   counters cumulative; one that went back begins anew. What waited at an interval's start and left in it shows that the
//!             queue was not empty in between: with less, an interval says no more than that the hop can carry as much.
//! Checked by: tests::*, crates/agents/tests/quiet/wired_bottleneck.rs

use lasthop_signals::StationReport;
use lasthop_units::{Bytes, Span, Time};
use std::collections::VecDeque;

/// Time over which a rate is measured: at 10 Mbit/s some 80 full packets.
const WINDOW: Span = Span::from_millis(100);
/// Time constant with which the estimate grows while it cannot be measured: windows that are too small keep the queue empty, and an
/// empty queue cannot show that they are.
const FORGET: Span = Span::from_secs(1);
/// Towards how many times what was measured it grows.
const MOST: f64 = 2.0;

/// The estimator of one queue.
#[derive(Clone, Debug, Default)]
pub struct Drain {
    before: Option<(Time, Bytes, Bytes)>,
    /// The newest intervals in which the queue was never empty, and all of the newest: bytes, seconds.
    busy: Sum,
    all: Sum,
    /// Bits a second.
    rate: Option<f64>,
    measured: f64,
}

impl Drain {
    /// Folds one report in.
    pub fn update(&mut self, now: Time, report: &StationReport) {
        let (sent, waits) = (report.tx_bytes, report.backlog_bytes);
        let Some((since, sent_before, waited)) = self.before.replace((now, sent, waits)) else { return };
        if sent < sent_before {
            *self = Drain { before: self.before, ..Drain::default() };
            return;
        }
        let (bytes, seconds) = ((sent - sent_before), now.since(since).as_secs_f64());
        if seconds <= 0.0 {
            return;
        }
        let interval = (bytes.get() as f64, seconds);
        self.all.push(interval);
        if waited >= bytes && !bytes.is_zero() {
            self.busy.push(interval);
            if let Some(rate) = self.busy.rate() {
                (self.rate, self.measured) = (Some(rate), rate);
                return;
            }
        }
        let least = self.all.rate().unwrap_or(0.0);
        if let Some(rate) = &mut self.rate {
            if least > *rate {
                (*rate, self.measured) = (least, least);
            } else {
                let grown = (seconds / FORGET.as_secs_f64()).min(1.0) * (MOST * self.measured - *rate);
                *rate += grown.max(0.0);
            }
        }
    }

    /// Bits a second that the queue drains at; `None` until it was not empty for 100 ms in all.
    pub fn rate(&self) -> Option<f64> {
        self.rate
    }
}

/// Intervals of [`WINDOW`] in all.
#[derive(Clone, Debug, Default)]
struct Sum {
    intervals: VecDeque<(f64, f64)>,
    bytes: f64,
    seconds: f64,
}

impl Sum {
    fn push(&mut self, interval: (f64, f64)) {
        self.intervals.push_back(interval);
        (self.bytes, self.seconds) = (self.bytes + interval.0, self.seconds + interval.1);
        while let Some((bytes, seconds)) = self.intervals.front().copied() {
            if self.seconds - seconds < WINDOW.as_secs_f64() {
                return;
            }
            self.intervals.pop_front();
            (self.bytes, self.seconds) = (self.bytes - bytes, self.seconds - seconds);
        }
    }

    /// Bits a second; `None` if there is less than [`WINDOW`].
    fn rate(&self) -> Option<f64> {
        let enough = self.seconds >= WINDOW.as_secs_f64() * 0.999;
        enough.then(|| 8.0 * self.bytes / self.seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_signals::Node;

    const STEP: Span = Span::from_millis(4);

    /// A queue of rate `rate` into which `offered` come, looked at every 4 ms.
    struct Queue {
        drain: Drain,
        now: Time,
        waits: f64,
        sent: f64,
    }

    impl Queue {
        fn new() -> Queue {
            Queue { drain: Drain::default(), now: Time::ZERO, waits: 0.0, sent: 0.0 }
        }

        /// For so many steps octets come at `offered` and leave at `rate` at most, both in bits a second.
        fn run(&mut self, steps: u32, offered: f64, rate: f64) -> Option<f64> {
            for _ in 0..steps {
                let seconds = STEP.as_secs_f64();
                self.waits += offered / 8.0 * seconds;
                let leaves = self.waits.min(rate / 8.0 * seconds);
                (self.waits, self.sent, self.now) = (self.waits - leaves, self.sent + leaves, self.now + STEP);
                let report = StationReport {
                    backlog_bytes: Bytes::new(self.waits as u64),
                    backlog_packets: (self.waits / 1500.0) as u32,
                    tx_bytes: Bytes::new(self.sent as u64),
                    ..StationReport::unseen(Node(1))
                };
                self.drain.update(self.now, &report);
            }
            self.drain.rate()
        }
    }

    fn near(rate: Option<f64>, expected: f64) -> bool {
        rate.is_some_and(|rate| (rate / expected - 1.0).abs() < 0.02)
    }

    #[test]
    fn a_queue_that_is_never_empty_drains_at_the_rate_of_the_hop() {
        let mut queue = Queue::new();
        assert_eq!(queue.run(10, 80e6, 50e6), None, "not for long enough");
        assert!(near(queue.run(60, 80e6, 50e6), 50e6));
        // It falls, and it rises.
        assert!(near(queue.run(60, 20e6, 10e6), 10e6));
        assert!(near(queue.run(30, 90e6, 90e6), 90e6));
    }

    #[test]
    fn what_is_carried_without_a_queue_is_the_least_that_can_be() {
        let mut queue = Queue::new();
        queue.run(100, 80e6, 50e6);
        // Less comes than can be carried: that says nothing, and it grows.
        let calm = queue.run(5000, 5e6, 50e6).expect("measured before");
        assert!((50e6..=100.1e6).contains(&calm), "{calm}");
        let mut slow = Queue::new();
        assert!(near(slow.run(100, 20e6, 10e6), 10e6));
        assert!(slow.run(200, 45e6, 1e9).is_some_and(|rate| rate >= 44e6));
    }

    #[test]
    fn a_counter_that_falls_begins_anew() {
        let mut queue = Queue::new();
        queue.run(100, 80e6, 50e6);
        queue.sent = 0.0;
        assert_eq!(queue.run(1, 80e6, 50e6), None);
        assert!(near(queue.run(100, 80e6, 50e6), 50e6));
    }
}
