//! Tahoe: slow start and congestion avoidance, and slow start again after every loss.
//! Source:     Jacobson, "Congestion avoidance and control", SIGCOMM 1988; order of events as in the recorded runs of ns-2 and WiFu.
//! Equations:  one MSS a window delivered;   on loss: ssthresh = cwnd / 2, cwnd = 1 MSS
//! Symbols:    cwnd -> `window`
//! Deviations: growth counts octets, so that delayed acknowledgements do not slow it, up to one MSS an acknowledgement (RFC 3465).
//! Validity:   for a transport that takes the third duplicate acknowledgement for a timeout; it learns of no other loss.
//! Checked by: tests::*, tests/integration/conformance, transport's tests/integration/tahoe.rs

use super::Setup;
use super::window::Window;
use crate::{Decision, Entry, LossRecovery, SenderLaw, Transport};
use lasthop_signals::{Ack, Loss, Signal};
use lasthop_units::{Bytes, Time};

/// The name of the law.
pub const NAME: &str = "tahoe";
/// Its entry in the registry.
pub const LAW: Entry = Entry::sender(NAME, "TCP Tahoe (Jacobson, 1988), without SACK and RACK.", &[], |_, setup| {
    Ok(Box::new(Tahoe::new(&setup)))
})
.over(Transport::Tcp(LossRecovery::GoBackN));

/// Tahoe for one flow.
#[derive(Clone, Debug)]
pub struct Tahoe {
    window: Window,
}

impl Tahoe {
    /// A flow about to start, with a window of one segment.
    pub fn new(setup: &Setup) -> Tahoe {
        Tahoe { window: Window::new(&Setup { initial_segments: 1, ..setup.clone() }) }
    }

    fn start_anew(&mut self, loss: &Loss) {
        let half: Bytes = self.window.cwnd().scale(0.5);
        self.window.on_timeout(loss, half);
    }
}

impl SenderLaw for Tahoe {
    fn sense(&mut self, now: Time, signal: &Signal) {
        match signal {
            Signal::Ack(ack) => {
                // What fills a hole acknowledges a window at once, and is no reason to send one at once.
                let one = Ack { newly_delivered: ack.newly_delivered.min(ack.mss), ..*ack };
                self.window.climb(&one);
            }
            Signal::Loss(loss) | Signal::Timeout(loss) => self.start_anew(loss),
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
    fn it_starts_with_one_segment_and_after_a_loss_again() {
        let mut tahoe = Tahoe::new(&setup());
        assert_eq!(cwnd(&tahoe), MSS);
        (0..39).for_each(|_| tahoe.sense(Time::ZERO, &Signal::Ack(ack(1, 40))));
        assert_eq!(cwnd(&tahoe), MSS * 40);
        tahoe.sense(Time::ZERO, &Signal::Timeout(loss(0)));
        assert_eq!((cwnd(&tahoe), tahoe.decide(Time::ZERO).why), (MSS, Why::SlowStart));
        // Doubling up to half of what it was, then a segment a window.
        (0..19).for_each(|_| tahoe.sense(Time::ZERO, &Signal::Ack(ack(1, 40))));
        assert_eq!((cwnd(&tahoe), tahoe.decide(Time::ZERO).why), (MSS * 20, Why::CongestionAvoidance));
        (0..20).for_each(|_| tahoe.sense(Time::ZERO, &Signal::Ack(ack(1, 40))));
        assert_eq!(cwnd(&tahoe), MSS * 21);
    }
}
