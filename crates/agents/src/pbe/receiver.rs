//! The receiver's loop: what the log shows of the cell, and what the kernel tells of packets, goes to the laws; what they tell goes back.

use super::Carriers;
use super::config::{ReceiverConfig, ReceiverSummary};
use super::error::Error;
use super::flows::Flows;
use super::teller::Teller;
use crate::service::poll::Poll;
use crate::service::privileges::Account;
use crate::service::{Stop, clock, system};
use lasthop_units::{Span, Time};

/// How long what is told holds after a beat: within a second of an agent's end, or of its standing still, nothing is told any more.
pub const HOLD: Span = Span::from_millis(500);
/// How often it is said that it holds on, and looked whether the programs are where they were left.
const BEAT: Span = Span::from_millis(100);
/// How often a file is looked at that grows, and time passes for the laws.
const LOOK: Span = Span::from_millis(2);
/// How long a look and the next are apart at least: a subframe, so that those of all carriers, and what packets came in it, are looked at together.
const PACE: Span = Span::from_millis(1);

/// A receiver with everything open and its privileges given up.
pub struct Receiver {
    teller: Teller,
    carriers: Carriers,
    flows: Flows,
    poll: Poll,
    beat: Time,
    changes: u64,
}

impl Receiver {
    /// Opens everything that needs privileges, and gives those up.
    ///
    /// # Errors
    /// [`Error`].
    pub fn open(config: &ReceiverConfig) -> Result<Receiver, Error> {
        config.validate()?;
        let account = config.user.as_deref().map(Account::find).transpose()?;
        let poll = Poll::new().map_err(system("epoll"))?;
        let carriers = Carriers::open(&config.logs, &poll, 0, config.say)?;
        let teller = Teller::begin(&config.cgroup)?;
        poll.add_level(&teller.waits_on(), u64::MAX).map_err(system("waiting for news"))?;
        if config.drop_privileges {
            crate::service::privileges::drop_all(account.as_ref())?;
        }
        // Better now than when the first connection begins.
        teller.check()?;
        let flows = Flows::new(config.law.clone());
        Ok(Receiver { teller, carriers, flows, poll, beat: Time::ZERO, changes: 0 })
    }

    /// Works until `stop` is set, or every log has ended.
    ///
    /// # Errors
    /// [`Error`], if a log is none, or the kernel takes away what it needs.
    pub fn run(mut self, stop: &Stop) -> Result<ReceiverSummary, Error> {
        while !stop.is_asked() && !self.carriers.is_over() {
            let now = clock::monotonic_now();
            self.service(now)?;
            self.poll.wait(LOOK).map_err(system("waiting for news"))?;
            let passed = clock::monotonic_now().since(now);
            std::thread::sleep(PACE.saturating_sub(passed).into());
        }
        self.teller.hold_until(Time::ZERO);
        let counters = self.teller.counters();
        Ok(ReceiverSummary {
            agreed: counters.agreed,
            written: counters.written,
            lost: counters.lost,
            arrived: self.flows.arrived(),
            subframes: self.carriers.subframes(),
            unread: self.carriers.unread(),
            changes: self.changes,
        })
    }

    fn service(&mut self, now: Time) -> Result<(), Error> {
        let Receiver { teller, carriers, flows, poll, changes, .. } = self;
        for news in teller.news()? {
            flows.on_news(now, &news)?;
        }
        carriers.read(now, poll, &mut |subframe| flows.on_subframe(now, subframe))?;
        flows.on_time(now);
        flows.changes(|cookie, value| {
            *changes += 1;
            teller.set(cookie, value)
        })?;
        if self.beat <= now {
            self.beat = now + BEAT;
            if !self.teller.is_attached() {
                return Err(Error::ReceiverDetached);
            }
            self.teller.hold_until(now + HOLD);
        }
        Ok(())
    }
}
