//! The agent's loop: signals in, law asked, limits out. Knows neither kernel nor clock: both are handed in.

use super::Error;
use super::abi::Key;
use super::driver::DriverSource;
use super::log::{FlowLine, Log};
use lasthop_laws::oal::rwnd::Flow;
use lasthop_laws::{Decision, HopLaw, Why};
use lasthop_signals::{FlowId, HopReport, Node, Signal};
use lasthop_units::{Bytes, Span, Time};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where flows are and limits act: the eBPF program's maps.
pub(super) trait Enforcer {
    fn flows(&self) -> Result<Vec<(Key, Flow)>, Error>;
    fn set_target(&self, key: &Key, born: Time, target: Option<Bytes>) -> Result<bool, Error>;
    fn forget(&self, key: &Key) -> Result<(), Error>;
    fn heartbeat(&self, now: Time);
}

/// What the loop has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Driver reports that were acted on.
    pub intervals: u64,
    /// Driver reports that were too old when they came, and therefore ignored.
    pub stale_reports: u64,
    /// Flows that were managed.
    pub flows: u64,
    /// Targets that were set or lifted.
    pub orders: u64,
    /// Times that the driver went silent for longer than the age limit.
    pub driver_losses: u64,
    /// The longest that one interval's work has taken.
    pub longest_work: Span,
}

pub(super) struct Agent<'a> {
    pub law: Box<dyn HopLaw>,
    pub enforcer: &'a dyn Enforcer,
    pub stations: BTreeMap<IpAddr, Node>,
    /// Reports and decisions older than this do not count.
    pub age_limit: Span,
    pub log: Option<Log>,
    pub tally: Tally,
    known: BTreeMap<Key, Known>,
    decisions: BTreeMap<FlowId, Decision>,
    next_id: u32,
}

/// A flow that the law has been told of.
struct Known {
    id: FlowId,
    born: Time,
    target: Option<Bytes>,
    /// The interval in which the flow was last seen.
    seen: u64,
}

impl<'a> Agent<'a> {
    pub(super) fn new(
        law: Box<dyn HopLaw>,
        enforcer: &'a dyn Enforcer,
        stations: &[(IpAddr, Node)],
        age_limit: Span,
        log: Option<Log>,
    ) -> Agent<'a> {
        Agent {
            law,
            enforcer,
            stations: stations.iter().copied().collect(),
            age_limit,
            log,
            tally: Tally::default(),
            known: BTreeMap::new(),
            decisions: BTreeMap::new(),
            next_id: 0,
        }
    }

    /// Runs until `stop` is set, asking `clock` for the time (`CLOCK_MONOTONIC`, which the eBPF program reads too).
    pub(super) fn run(
        &mut self,
        driver: &mut dyn DriverSource,
        clock: &dyn Fn() -> Time,
        stop: &AtomicBool,
    ) -> Result<(), Error> {
        // Short enough to see `stop`, to keep the heart beating, and to notice in time that the driver is silent.
        let patience = Span::from_nanos(self.age_limit.as_nanos() / 4);
        let mut heard = clock();
        let mut lost = false;
        while !stop.load(Ordering::Relaxed) {
            let report = driver.newest(patience);
            let now = clock();
            match report {
                Ok(Some((at, report))) if now.since(at) <= self.age_limit => {
                    if lost {
                        lost = false;
                        self.note_driver(now, "back");
                    }
                    heard = now;
                    self.interval(now, report)?;
                    self.tally.longest_work = self.tally.longest_work.max(clock().since(now));
                }
                Ok(Some(_)) => self.tally.stale_reports += 1,
                Ok(None) => {}
                Err(_) => {
                    // A driver that restarts is back within moments; one that does not is no reason to spin.
                    if driver.reconnect().is_err() {
                        std::thread::sleep(std::time::Duration::from(patience));
                    }
                }
            }
            if !lost && now.since(heard) > self.age_limit {
                lost = true;
                self.tally.driver_losses += 1;
                self.note_driver(now, "lost");
                self.release_all()?;
            }
            self.enforcer.heartbeat(now);
        }
        Ok(())
    }

    /// One control interval: flows, then the hop, then decisions.
    fn interval(&mut self, now: Time, hop: HopReport) -> Result<(), Error> {
        self.tally.intervals += 1;
        let mut lines = self.sense_flows(now)?;
        self.sense_gone(now);
        let signal = Signal::Hop(hop);
        self.law.sense(now, &signal);
        self.act(now)?;
        if let (Some(log), Signal::Hop(hop)) = (&mut self.log, &signal) {
            for line in &mut lines {
                if let Some(decision) = self.decisions.get(&line.report.flow) {
                    line.decision = *decision;
                }
            }
            log.interval(now, hop, &lines);
        }
        Ok(())
    }

    /// Tells the law of every flow that can be managed and whose station is known.
    fn sense_flows(&mut self, now: Time) -> Result<Vec<FlowLine>, Error> {
        let mut lines = Vec::new();
        for (key, flow) in self.enforcer.flows()? {
            if flow.is_over() {
                self.enforcer.forget(&key)?;
                continue;
            }
            let Some(station) = self.stations.get(&key.station_address()).copied() else { continue };
            if !flow.is_manageable() {
                continue;
            }
            let (id, is_new) = self.identify(now, &key, &flow);
            let report = flow.report(now, id, station);
            if let Some(log) = self.log.as_mut().filter(|_| is_new) {
                log.opened(now, &key, &report);
            }
            self.law.sense(now, &Signal::Flow(report));
            if self.log.is_some() {
                lines.push(FlowLine { report, window: flow.window(), decision: Decision::unlimited(Why::Unmanaged) });
            }
        }
        Ok(lines)
    }

    /// The number of a flow, and whether it is a new one: a connection that takes another's key is another flow.
    fn identify(&mut self, now: Time, key: &Key, flow: &Flow) -> (FlowId, bool) {
        let seen = self.tally.intervals;
        if let Some(known) = self.known.get_mut(key).filter(|known| known.born == flow.born()) {
            known.seen = seen;
            return (known.id, false);
        }
        if let Some(other) = self.known.remove(key) {
            self.gone(now, other.id);
        }
        let id = FlowId(self.next_id);
        self.next_id = self.next_id.wrapping_add(1);
        self.tally.flows += 1;
        // What the map says counts: an agent may find targets of its own from before a driver's loss.
        self.known.insert(*key, Known { id, born: flow.born(), target: flow.target(), seen });
        (id, true)
    }

    fn sense_gone(&mut self, now: Time) {
        let current = self.tally.intervals;
        let gone: Vec<Key> = self.known.iter().filter(|(_, k)| k.seen != current).map(|(key, _)| *key).collect();
        for key in gone {
            if let Some(known) = self.known.remove(&key) {
                self.gone(now, known.id);
            }
        }
    }

    fn gone(&mut self, now: Time, id: FlowId) {
        self.law.sense(now, &Signal::FlowGone(id));
        if let Some(log) = &mut self.log {
            log.gone(now, id);
        }
    }

    /// Writes what the law decides where it differs from what is in force.
    fn act(&mut self, now: Time) -> Result<(), Error> {
        self.decisions.clear();
        let decisions = &mut self.decisions;
        self.law.decide(now, &mut |id, decision| {
            decisions.insert(id, decision);
        });
        for (key, known) in &mut self.known {
            let target = self.decisions.get(&known.id).and_then(|decision| decision.rwnd);
            if target != known.target {
                self.enforcer.set_target(key, known.born, target)?;
                known.target = target;
                self.tally.orders += 1;
            }
        }
        Ok(())
    }

    /// Lifts every limit, in the steps of rule 10.
    fn release_all(&mut self) -> Result<(), Error> {
        for (key, known) in &mut self.known {
            if known.target.take().is_some() {
                self.enforcer.set_target(key, known.born, None)?;
                self.tally.orders += 1;
            }
        }
        Ok(())
    }

    fn note_driver(&mut self, now: Time, state: &str) {
        if let Some(log) = &mut self.log {
            log.driver(now, state);
        }
    }
}

#[cfg(test)]
#[path = "agent/tests.rs"]
mod tests;
