//! Being on time: waking a little early and watching the clock for the rest, within a budget.
//!
//! A sleeping thread comes late by what the timer interrupt, the processor's wake-up and the scheduler take: tens of
//! microseconds in a virtual machine. Who wakes that much early and polls is on time, but a real-time thread that polls
//! all the time is throttled by the kernel and starves everything else on its processor. Hence the budget.
//!
//! The processor's part of the delay is avoided for all threads by asking the kernel (PM QoS) not to let processors
//! fall into deep sleep while a run lasts.

use lasthop_units::{Span, Time};
use std::fs::{File, OpenOptions};
use std::io::Write;

/// Decides between sleeping and polling.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Punctual {
    /// Time that may still be spent polling.
    budget: Span,
    updated: Time,
}

/// How early to wake: most wake-ups are less late than this, even on a virtual machine.
const EARLY: Span = Span::from_micros(50);

/// Polling may take one part in this many of all time…
const SHARE: u64 = 4;

/// …and at most this much in one go.
const LONGEST: Span = Span::from_millis(5);

impl Punctual {
    pub(crate) fn new(now: Time) -> Punctual {
        Punctual { budget: LONGEST, updated: now }
    }

    /// How long to sleep at `now`, given that the next event is at `next` if nothing arrives: zero means to poll.
    pub(crate) fn wait(&mut self, now: Time, next: Time) -> Span {
        self.budget = (self.budget + now.since(self.updated) / SHARE).min(LONGEST);
        self.updated = now;
        let ahead = next.since(now);
        match self.budget >= EARLY {
            true => ahead.saturating_sub(EARLY),
            false => ahead,
        }
    }

    /// Accounts for a poll that found nothing and took from `from` to `to`.
    pub(crate) fn polled(&mut self, from: Time, to: Time) {
        self.budget = self.budget.saturating_sub(to.since(from));
    }
}

/// Keeps processors out of deep sleep as long as it lives; nothing where the kernel does not offer that. The request
/// belongs to the open file, so it ends with the process at the latest.
#[derive(Debug)]
pub(crate) struct Wakeful {
    request: Option<File>,
}

impl Wakeful {
    pub(crate) fn ask() -> Wakeful {
        // The value is the tolerable wake-up latency in microseconds, as a native 32-bit integer.
        let ask = || {
            let mut file = OpenOptions::new().write(true).open("/dev/cpu_dma_latency")?;
            file.write_all(&0i32.to_ne_bytes())?;
            Ok::<_, std::io::Error>(file)
        };
        Wakeful { request: ask().ok() }
    }

    /// True if the kernel has accepted.
    pub(crate) fn is_granted(&self) -> bool {
        self.request.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_wakes_early_and_then_polls() {
        let mut punctual = Punctual::new(Time::ZERO);
        let at = |us: u64| Time::ZERO + Span::from_micros(us);
        assert_eq!(punctual.wait(at(0), at(1000)), Span::from_micros(950));
        assert_eq!(punctual.wait(at(960), at(1000)), Span::ZERO);
        assert_eq!(punctual.wait(at(1005), at(1000)), Span::ZERO);
    }

    #[test]
    fn polling_never_takes_more_than_its_share() {
        let mut punctual = Punctual::new(Time::ZERO);
        let (step, mut now, mut polled) = (Span::from_micros(1), Time::ZERO, Span::ZERO);
        while now < Time::ZERO + Span::from_secs(1) {
            // An event is always 40 us ahead: without a budget this would poll for ever.
            let next = now + Span::from_micros(40);
            let wait = punctual.wait(now, next);
            if wait.is_zero() {
                punctual.polled(now, now + step);
                polled += step;
                now += step;
            } else {
                now += wait;
            }
        }
        assert!(polled <= Span::from_millis(1000 / SHARE) + LONGEST, "{polled}");
        assert!(polled >= Span::from_millis(200), "the budget is used: {polled}");
    }
}
