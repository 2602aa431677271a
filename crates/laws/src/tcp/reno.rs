//! Reno: additive increase, multiplicative decrease.
//! Source:     RFC 5681 section 3, with byte counting and PRR as Linux has them.
//! Equations:  one MSS a window delivered;   ssthresh = cwnd / 2 on loss
//! Symbols:    cwnd -> `window`
//! Deviations: the reduction is of cwnd, not of the flight size (Linux); no slow-start exit by delay.
//! Validity:   needs SACK.     Checked by: tests::*, transport's tests/integration/bottleneck.rs against kernel measurements

use super::Setup;
use super::window::Window;
use crate::{Decision, Entry, SenderLaw};
use lasthop_signals::Signal;
use lasthop_units::{Bytes, Time};

/// The name of the law.
pub const NAME: &str = "reno";
/// Its entry in the registry.
pub const LAW: Entry =
    Entry::sender(NAME, "Reno's window with SACK, RACK and PRR, as Linux has it (RFC 5681).", &[], |_, setup| {
        Ok(Box::new(Reno::new(&setup)))
    });

/// Reno for one flow.
#[derive(Clone, Debug)]
pub struct Reno {
    window: Window,
}

impl Reno {
    /// A flow about to start.
    pub fn new(setup: &Setup) -> Reno {
        Reno { window: Window::new(setup) }
    }

    fn half(&self) -> Bytes {
        self.window.cwnd().scale(0.5)
    }
}

impl SenderLaw for Reno {
    fn sense(&mut self, now: Time, signal: &Signal) {
        match signal {
            Signal::Ack(ack) => self.window.climb(ack),
            Signal::Loss(loss) => self.window.on_loss(loss, self.half()),
            Signal::Timeout(loss) => self.window.on_timeout(loss, self.half()),
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
    use crate::Why;
    use crate::tcp::test_signals::{MSS, ack, cwnd, loss, setup};

    #[test]
    fn slow_start_doubles_a_round_and_avoidance_adds_one_segment() {
        let mut reno = Reno::new(&setup());
        (0..10).for_each(|n| reno.sense(Time::ZERO, &Signal::Ack(ack(1, 10 - n))));
        assert_eq!(cwnd(&reno), MSS * 20);
        reno.sense(Time::ZERO, &Signal::Loss(loss(20)));
        reno.sense(Time::ZERO, &Signal::Recovered);
        assert_eq!(cwnd(&reno), MSS * 10);
        (0..10).for_each(|_| reno.sense(Time::ZERO, &Signal::Ack(ack(1, 10))));
        assert_eq!(cwnd(&reno), MSS * 11);
        assert_eq!(reno.decide(Time::ZERO).why, Why::CongestionAvoidance);
    }

    #[test]
    fn a_timeout_restarts_from_one_segment_once() {
        let mut reno = Reno::new(&setup());
        (0..30).for_each(|_| reno.sense(Time::ZERO, &Signal::Ack(ack(1, 40))));
        assert_eq!(cwnd(&reno), MSS * 40);
        reno.sense(Time::ZERO, &Signal::Timeout(loss(0)));
        reno.sense(Time::ZERO, &Signal::Timeout(loss(0)));
        assert_eq!(cwnd(&reno), MSS);
        (0..100).for_each(|_| reno.sense(Time::ZERO, &Signal::Ack(ack(1, 40))));
        let grown = cwnd(&reno);
        assert!(grown > MSS * 20 && grown < MSS * 30, "slow start must end at half of 40: {grown}");
    }

    #[test]
    fn a_spurious_timeout_gives_back_what_it_took() {
        let mut reno = Reno::new(&setup());
        (0..30).for_each(|_| reno.sense(Time::ZERO, &Signal::Ack(ack(1, 40))));
        reno.sense(Time::ZERO, &Signal::Timeout(loss(0)));
        // A timeout of the repair is no news: what the first one took is remembered.
        reno.sense(Time::ZERO, &Signal::Timeout(loss(0)));
        reno.sense(Time::ZERO, &Signal::Undone);
        reno.sense(Time::ZERO, &Signal::Recovered);
        assert_eq!(cwnd(&reno), MSS * 40);
    }

    #[test]
    fn an_unused_window_does_not_grow() {
        let mut reno = Reno::new(&setup());
        let mut idle = ack(1, 2);
        idle.cwnd_limited = false;
        (0..50).for_each(|_| reno.sense(Time::ZERO, &Signal::Ack(idle)));
        assert_eq!(cwnd(&reno), MSS * 10);
    }
}
