//! The agent's loop: what the kernel tells of the host's uploads, and what neighbours tell, goes to the law; its bounds go back.
//!
//! Bounds hold for [`HOLD`] from the last beat. They end with the agent, however that does: with it goes the program that adopts
//! connections, and those that were adopted are CUBIC as the kernel has it.

use super::config::{Config, Summary};
use super::error::Error;
use super::guard::Guard;
use super::neighbours::Neighbours;
use super::network::Network;
use super::sockets::Sockets;
use super::uploads::{Uploads, segments};
use super::{Way, log};
use crate::service::log::Log;
use crate::service::poll::{Poll, Ready};
use crate::service::privileges::Account;
use crate::service::run_loop::{self, Turns};
use crate::service::spin_sleeper::Until;
use crate::service::{self, Stop, clock, system};
use crate::tunnel::keys;
use lasthop_laws::terminal::NOTICE_INTERVAL;
use lasthop_laws::{Choice, HopLaw};
use lasthop_signals::{Feedback, FlowId, Signal};
use lasthop_units::{Rate, Span, Time};
use lasthop_wire::sock_diag::{Socket, States};
use std::collections::{BTreeMap, BTreeSet};

/// How long bounds hold after a beat: within a second of an agent's end they are over.
pub const HOLD: Span = Span::from_millis(750);
/// How often it is said that they hold on, and looked whether the network is the same.
const BEAT: Span = Span::from_millis(200);
/// The law is asked no more often than this, whatever it wants.
const SHORTEST: Span = Span::from_millis(10);
/// The token of the neighbours' sockets.
const HEARD: u64 = 0;

/// A host's agent with everything open and its privileges given up.
pub struct Host {
    config: Config,
    choice: Choice,
    law: Box<dyn HopLaw>,
    interval: Span,
    guard: Guard,
    sockets: Sockets,
    uploads: Uploads,
    network: Network,
    neighbours: Option<Neighbours>,
    /// The number of the interface at which neighbours are heard.
    heard_at: u32,
    poll: Poll,
    log: Option<Log>,
    /// When it looks, tells its neighbours, and beats next.
    look: Time,
    notice: Time,
    beat: Time,
    /// Uploads at the last look, what they deliver, and whether they empty the hop.
    sending: (usize, Rate, bool),
    /// Connections that have had bounds.
    bounded: BTreeSet<FlowId>,
    summary: Summary,
}

impl Host {
    /// Opens everything that needs privileges, and gives those up.
    ///
    /// # Errors
    /// [`Error`].
    pub fn open(config: &Config, choice: &Choice) -> Result<Host, Error> {
        config.validate()?;
        let account = config.user.as_deref().map(Account::find).transpose()?;
        let law = choice.hop()?;
        let key = config.key.as_deref().map(keys::station_key).transpose()?;
        let network = Network::of(&config.iface, config.bssid);
        let Some(index) = network.index() else {
            return Err(service::Error::NoInterface { name: config.iface.clone() }.into());
        };
        let log = config.log.as_deref().map(|path| Log::create(path, config.say)).transpose()?;
        let poll = Poll::new().map_err(system("epoll"))?;
        let neighbours = match &key {
            Some((_, key)) => {
                let Some(bssid) = network.bssid() else {
                    return Err(Error::NoBss(config.iface.clone()));
                };
                let iface = (config.iface.as_str(), index);
                Some(Neighbours::open(iface, (config.destination, config.port), (bssid, key), (&poll, HEARD))?)
            }
            None => {
                (config.say)("no --key: neighbours are neither told nor heard, and the law counts this terminal alone");
                None
            }
        };
        let sockets = Sockets::open()?;
        let mut guard = Guard::begin(&config.cgroup, config.way, &config.say)?;
        if config.drop_privileges {
            crate::service::privileges::drop_all(account.as_ref())?;
        }
        // Better now than when the first upload begins.
        guard.check()?;
        let now = clock::now();
        let interval = choice.interval().unwrap_or(lasthop_laws::terminal::Params::default().interval);
        Ok(Host {
            config: config.clone(),
            choice: choice.clone(),
            law,
            interval,
            sockets,
            uploads: Uploads::default(),
            network,
            neighbours,
            heard_at: index,
            poll,
            log,
            look: now,
            notice: now,
            beat: now,
            sending: (0, Rate::ZERO, false),
            bounded: BTreeSet::new(),
            summary: Summary::new(guard.way()),
            guard,
        })
    }

    /// How windows are bounded.
    pub fn way(&self) -> Way {
        self.guard.way()
    }

    /// Works until `stop` is set.
    ///
    /// # Errors
    /// [`Error`], if the kernel takes away what it needs.
    pub fn run(mut self, stop: &Stop) -> Result<Summary, Error> {
        run_loop::run(&mut self, stop)?;
        self.guard.hold_until(Time::ZERO);
        let Host { guard, neighbours, log, bounded, mut summary, .. } = self;
        (summary.adopted, summary.bounded) = (guard.adopted(), bounded.len() as u64);
        drop(guard);
        if let Some(neighbours) = neighbours {
            (summary.told, summary.heard, summary.refused) = neighbours.account();
        }
        summary.log_error = log.and_then(Log::finish);
        Ok(summary)
    }

    /// Says that bounds hold on, and looks whether they should.
    fn beat(&mut self, now: Time) -> Result<(), Error> {
        self.beat = now + BEAT;
        if !self.guard.is_attached() {
            return Err(Error::Detached(self.config.cgroup.clone()));
        }
        let network = Network::of(&self.config.iface, self.config.bssid);
        if network != self.network {
            self.moved(now, network)?;
        }
        self.guard.hold_until(clock::monotonic(now + HOLD));
        Ok(())
    }

    /// The network is another one, or has gone: what was learned of it counts no more.
    fn moved(&mut self, now: Time, network: Network) -> Result<(), Error> {
        let alive = network.is_alive();
        (self.config.say)(&format!(
            "{}: {}; all windows are let go",
            self.config.iface,
            if alive { "the network has changed" } else { "the interface is down, or gone" }
        ));
        for (cookie, _) in self.uploads.clear() {
            self.guard.set(cookie, None)?;
        }
        self.law = self.choice.hop()?;
        if let (Some(neighbours), Some(bssid), Some(index)) = (&mut self.neighbours, network.bssid(), network.index()) {
            let to = (index != self.heard_at).then_some((self.config.iface.as_str(), index));
            neighbours.move_to(bssid, to, (&self.poll, HEARD))?;
            self.heard_at = index;
        }
        self.network = network;
        self.sending = (0, Rate::ZERO, false);
        self.summary.moves += 1;
        self.look = now + self.interval;
        Ok(())
    }

    /// Looks at the uploads, and sets their bounds.
    fn look(&mut self, now: Time) -> Result<(), Error> {
        let (network, guard) = (&self.network, &self.guard);
        let ours = |socket: &&Socket| network.has(socket.local.ip()) && guard.holds(socket.congestion_control.as_str());
        if !network.is_alive() {
            self.look = now + self.interval;
            return Ok(());
        }
        let sockets = self.sockets.list(States::CONNECTED)?;
        let (uploads, gone) = self.uploads.look(now, sockets.iter().filter(ours));
        for (cookie, flow) in gone {
            self.law.sense(now, &Signal::FlowGone(flow));
            self.guard.set(cookie, None)?;
        }
        uploads.iter().for_each(|upload| self.law.sense(now, &Signal::Socket(upload.report)));
        self.law.sense(now, &Signal::Wakeup);
        let mut decisions = BTreeMap::new();
        self.law.decide(now, &mut |flow, decision| {
            decisions.insert(flow, decision);
        });
        let (mut rate, mut drains, mut next) = (Rate::ZERO, false, now + self.interval);
        for decision in decisions.values() {
            next = decision.revisit.map_or(next, |at| next.min(at));
            if let Some(Feedback::Upload(upload)) = decision.feedback {
                rate += upload.rate.unwrap_or(Rate::ZERO);
                drains |= upload.drains;
            }
        }
        for upload in &uploads {
            let bounds = decisions.get(&upload.report.flow).and_then(|decision| segments(decision, upload));
            self.guard.set(upload.cookie, bounds)?;
            if bounds.is_some() {
                self.bounded.insert(upload.report.flow);
            }
        }
        if drains && !self.sending.2 {
            self.notice = now;
        }
        self.sending = (uploads.len(), rate, drains);
        self.look = next.max(now + SHORTEST);
        self.summary.looks += 1;
        let terminals = self.neighbours.as_ref().map_or(0, |neighbours| neighbours.live(now)) + 1;
        self.summary.terminals = self.summary.terminals.max(terminals);
        if let Some(log) = &mut self.log {
            let heard = self.neighbours.as_ref().map_or((0, 0), |neighbours| {
                let (_, heard, refused) = neighbours.account();
                (heard, refused.total())
            });
            log::look(log, now, (terminals, drains), heard, &uploads, &decisions);
        }
        Ok(())
    }

    /// Tells the neighbours that it sends, if it does.
    fn tell(&mut self) {
        let (flows, rate, drains) = self.sending;
        if let Some(neighbours) = self.neighbours.as_mut().filter(|_| flows > 0) {
            neighbours.tell(flows, rate, drains);
        }
    }
}

impl Turns for Host {
    type Error = Error;

    fn poll(&mut self) -> &mut Poll {
        &mut self.poll
    }

    fn service(&mut self, now: Time) -> Result<(), Error> {
        if self.beat <= now {
            self.beat(now)?;
        }
        if self.look <= now {
            self.look(now)?;
        }
        if self.notice <= now {
            self.notice = now + NOTICE_INTERVAL;
            self.tell();
        }
        Ok(())
    }

    fn next(&mut self, _: Time) -> Until {
        self.look.min(self.notice).min(self.beat).into()
    }

    fn on_ready(&mut self, now: Time, _: Ready) -> Result<(), Error> {
        let Some(neighbours) = &mut self.neighbours else { return Ok(()) };
        for notice in neighbours.hear(now) {
            self.law.sense(now, &Signal::Neighbour(notice));
            if notice.drains && !self.sending.2 && self.sending.0 > 0 {
                self.look = now;
            }
        }
        Ok(())
    }
}
