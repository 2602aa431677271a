//! Scalable TCP: a window grows by a share of what is acknowledged, so that it recovers in a fixed number of round trips.
//! Source:     Kelly, "Scalable TCP: improving performance in highspeed wide area networks", ACM CCR 33(2), 2003.
//! Equations:  cwnd' = cwnd + growth * delivered;   ssthresh = (1 - decrease) * cwnd on loss
//! Symbols:    cwnd -> `window`
//! Deviations: windows that are short grow as Reno's, as the paper's legacy window has it.
//! Validity:   as Reno.     Checked by: tests::*

use super::Setup;
use super::window::Window;
use crate::{Decision, Entry, ParamError, Parameters, SenderLaw, params};
use lasthop_signals::{Ack, Signal};
use lasthop_units::{Bytes, Time};

/// The name of the law.
pub const NAME: &str = "scalable";
/// Its entry in the registry.
pub const LAW: Entry = Entry::sender(NAME, "Scalable TCP (Kelly 2003).", Params::TABLE, |settings, setup| {
    Ok(Box::new(Scalable::new(&setup, Params::with(settings)?)))
});

params! {
    /// How the window grows and shrinks. The defaults are the paper's.
    pub struct Params {
        /// Growth for each octet acknowledged.
        growth: f64 = "0.01", |p| p.growth > 0.0 && p.growth <= 1.0 => "above 0, at most 1";
        /// Share of the window that a loss takes.
        decrease: f64 = "0.125", |p| p.decrease > 0.0 && p.decrease < 1.0 => "between 0 and 1";
    }
}

/// Scalable TCP for one flow.
#[derive(Clone, Debug)]
pub struct Scalable {
    window: Window,
    params: Params,
}

impl Scalable {
    /// A flow about to start.
    pub fn new(setup: &Setup, params: Params) -> Scalable {
        Scalable { window: Window::new(setup), params }
    }

    fn reduced(&self) -> Bytes {
        self.window.cwnd().scale(1.0 - self.params.decrease)
    }

    fn on_ack(&mut self, ack: &Ack) {
        let delivered = self.window.on_ack(ack);
        let share = self.window.mss().scale(1.0 / self.params.growth);
        self.window.grow(delivered, share.min(self.window.cwnd()));
    }
}

impl SenderLaw for Scalable {
    fn sense(&mut self, now: Time, signal: &Signal) {
        match signal {
            Signal::Ack(ack) => self.on_ack(ack),
            Signal::Loss(loss) => self.window.on_loss(loss, self.reduced()),
            Signal::Timeout(loss) => self.window.on_timeout(loss, self.reduced()),
            other => self.window.follow(now, other),
        }
    }

    fn decide(&self, _now: Time) -> Decision {
        self.window.decide()
    }

    fn name(&self) -> &'static str {
        NAME
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::test_signals::{MSS, ack, cwnd, loss, setup};

    #[test]
    fn a_loss_takes_an_eighth_and_a_hundred_segments_give_one() {
        let mut law = Scalable::new(&setup(), Params::default());
        (0..790).for_each(|_| law.sense(Time::ZERO, &Signal::Ack(ack(1, 1000))));
        assert_eq!(cwnd(&law), MSS * 800);
        law.sense(Time::ZERO, &Signal::Loss(loss(800)));
        law.sense(Time::ZERO, &Signal::Recovered);
        assert_eq!(cwnd(&law), MSS * 700);
        (0..100).for_each(|_| law.sense(Time::ZERO, &Signal::Ack(ack(1, 700))));
        assert_eq!(cwnd(&law), MSS * 701);
    }
}
