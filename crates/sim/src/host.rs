//! When the kernel of a station stamps the packets that its radio has received: the driver's interrupts and polls.
//!
//! An interrupt comes at once or, with moderation, some time after the last one at the earliest; 5 us plus an exponential 10 us
//! later, in one case out of 200 with another exponential 300 us, the driver's poll begins (NAPI). It takes so much a
//! packet, by a factor between 0.6 and 1.6, in one case out of 100 with another exponential 20 us; after each 64 packets it
//! pauses for 2 to 15 us. What arrives while it runs is handed up in the same poll. Stamps are the times at which packets are
//! handed up.
//!
//! None of these figures is a measurement of a certain device: they span what is usual.

use lasthop_units::{Span, Stream, Time};
use rand::Rng;

/// One station's host.
#[derive(Clone, Debug)]
pub struct Host {
    dice: Stream,
    moderation: Span,
    packet_us: f64,
    interrupt: Time,
    /// Where the poll is, or has ended.
    now: Time,
    /// Packets of this poll; `None` before the first.
    polled: Option<u32>,
}

/// Packets that one poll hands up without a pause (NAPI_POLL_WEIGHT).
const WEIGHT: u32 = 64;

impl Host {
    /// With interrupts at least `moderation` apart, that takes `packet_us` microseconds for a packet.
    pub fn new(dice: Stream, moderation: Span, packet_us: f64) -> Host {
        Host { dice, moderation, packet_us, interrupt: Time::ZERO, now: Time::ZERO, polled: None }
    }

    /// When it stamps the packet that the radio hands it at `came`. Packets come in order.
    pub fn stamp(&mut self, came: Time) -> Time {
        let polled = match self.polled {
            Some(polled) if came <= self.now => polled,
            _ => {
                self.interrupt = came.max(self.now).max(self.interrupt + self.moderation);
                let late = if self.dice.next_u32().is_multiple_of(200) { self.exponential(300.0) } else { 0.0 };
                self.now = self.interrupt + us(5.0 + self.exponential(10.0) + late);
                0
            }
        };
        let odd = if self.dice.next_u32().is_multiple_of(100) { self.exponential(20.0) } else { 0.0 };
        let work = self.packet_us * self.uniform(0.6, 1.6) + odd;
        self.now += us(work);
        let stamp = self.now;
        self.polled = Some(polled + 1);
        if (polled + 1).is_multiple_of(WEIGHT) {
            let pause = self.uniform(2.0, 15.0);
            self.now += us(pause);
        }
        stamp
    }

    fn uniform(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * (f64::from(self.dice.next_u32()) + 0.5) / 4_294_967_296.0
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * self.uniform(0.0, 1.0).ln()
    }
}

fn us(us: f64) -> Span {
    Span::from_secs_f64(us * 1e-6)
}
