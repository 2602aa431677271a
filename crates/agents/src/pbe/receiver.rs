//! The receiver's loop: what the log shows of the cell, and what the kernel tells of packets, goes to the laws; what they tell goes back.

use super::carrier::{Carrier, Known};
use super::config::{ReceiverConfig, ReceiverSummary};
use super::flows::Flows;
use super::teller::Teller;
use crate::ap::Stop;
use crate::ap::privileges::Account;
use crate::tunnel::poll::Poll;
use crate::tunnel::{Error, clock};
use lasthop_units::{Span, Time};

/// How long what is told holds after a beat: within a second of an agent's end, or of its standing still, nothing is told any more.
pub const HOLD: Span = Span::from_millis(500);
/// How often it is said that it holds on, and looked whether the programs are where they were left.
const BEAT: Span = Span::from_millis(100);
/// How often a file is looked at that grows, and time passes for the laws.
const LOOK: Span = Span::from_millis(2);

/// A receiver with everything open and its privileges given up.
pub struct Receiver {
    teller: Teller,
    carriers: Vec<Carrier>,
    flows: Flows,
    poll: Poll,
    beat: Time,
    subframes: u64,
    changes: u64,
}

impl Receiver {
    /// Opens everything that needs privileges, and gives those up.
    ///
    /// # Errors
    /// [`Error`].
    pub fn open(config: &ReceiverConfig) -> Result<Receiver, Error> {
        config.validate()?;
        config.law.check()?;
        let account = config.user.as_deref().map(Account::find).transpose()?;
        let poll = Poll::new().map_err(Error::system("epoll"))?;
        let mut carriers = Vec::new();
        for (number, path) in config.logs.iter().enumerate() {
            let prb = config.prb.get(number).or(config.prb.first()).copied();
            let known = Known { own: config.rnti, prb, slots: config.slots, window: config.window };
            let number = u8::try_from(number).unwrap_or(u8::MAX);
            let carrier = Carrier::open(number, path, known, config.say)?;
            if let Some(file) = carrier.waits_on() {
                poll.add_level(&file, u64::from(number)).map_err(Error::system("waiting for a log"))?;
            }
            carriers.push(carrier);
        }
        let teller = Teller::begin(&config.cgroup)?;
        poll.add_level(&teller.waits_on(), u64::MAX).map_err(Error::system("waiting for news"))?;
        if config.drop_privileges {
            crate::ap::drop_all_privileges(account.as_ref())?;
        }
        // Better now than when the first connection begins.
        teller.check()?;
        let flows = Flows::new(config.law.clone());
        Ok(Receiver { teller, carriers, flows, poll, beat: Time::ZERO, subframes: 0, changes: 0 })
    }

    /// Works until `stop` is set, or every log has ended.
    ///
    /// # Errors
    /// [`Error`], if a log is none, or the kernel takes away what it needs.
    pub fn run(mut self, stop: &Stop) -> Result<ReceiverSummary, Error> {
        while !stop.is_asked() && !self.carriers.iter().all(Carrier::is_over) {
            let now = clock::monotonic(clock::now());
            self.service(now)?;
            self.poll.wait(LOOK).map_err(Error::system("waiting for news"))?;
        }
        self.teller.hold_until(Time::ZERO);
        let counters = self.teller.counters();
        Ok(ReceiverSummary {
            agreed: counters.agreed,
            written: counters.written,
            lost: counters.lost,
            arrived: self.flows.arrived(),
            subframes: self.subframes,
            unread: self.carriers.iter().map(Carrier::unread).sum(),
            changes: self.changes,
        })
    }

    fn service(&mut self, now: Time) -> Result<(), Error> {
        let Receiver { teller, carriers, flows, poll, subframes, changes, .. } = self;
        for news in teller.news()? {
            flows.on_news(now, &news)?;
        }
        for carrier in carriers.iter_mut().filter(|carrier| !carrier.is_over()) {
            carrier.read(now, &mut |subframe| {
                *subframes += 1;
                flows.on_subframe(now, subframe);
            })?;
            // A pipe that has ended stays ready for ever.
            if let Some(file) = carrier.waits_on().filter(|_| carrier.is_over()) {
                poll.remove(&file);
            }
        }
        flows.on_time(now);
        flows.changes(|cookie, value| {
            *changes += 1;
            teller.set(cookie, value)
        })?;
        if self.beat <= now {
            self.beat = now + BEAT;
            if !self.teller.is_attached() {
                let why = "the programs are not attached any more: somebody has removed them, or the cgroup";
                return Err(Error::Pbe(why.to_owned()));
            }
            self.teller.hold_until(now + HOLD);
        }
        Ok(())
    }
}
