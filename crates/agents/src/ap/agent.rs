//! The agent's loop: signals in, law asked, limits out. Knows neither kernel nor clock: both are handed in.

use super::Error;
use super::abi::{Event, Key};
use super::consistency::Consistency;
use super::log::Log;
use super::news::News;
use super::passing::Passing;
use super::stations::Stations;
use super::status::{self, Flows, State};
use super::table::Slot;
use super::watch::{Attention, Seen};
use crate::service::backoff::Backoff;
use crate::service::counters::counters;
use crate::service::driver::DriverSource;
use crate::service::{Say, Stop};
use lasthop_laws::oal::rwnd::Flow;
use lasthop_laws::{Decision, HopLaw, Why, observation};
use lasthop_signals::{FlowId, HopReport, Node, Signal};
use lasthop_units::{Bytes, Span, Time, serialise};
use lasthop_wire::driver::Record;
use std::collections::BTreeMap;
use std::io;

/// Where flows are and limits act: the eBPF program's table.
pub(super) trait Enforcer {
    /// Shows the flows that have attention or have changed, with `all` every one, with what has become of it.
    fn look(&self, all: bool, each: &mut dyn FnMut(Seen<'_>) -> Attention);
    /// False if that connection has gone.
    fn set_target(&self, slot: Slot, born: Time, target: Option<Bytes>) -> bool;
    fn forget(&self, slot: Slot, born: Time);
    /// True if that connection is still there.
    fn holds(&self, slot: Slot, born: Time) -> bool;
    fn heartbeat(&self, now: Time) -> Result<(), Error>;
    /// Refuses to go on when the programs are not attached any more, or packets may have begun to pass them by.
    fn sees_all(&self) -> Result<(), Error>;
    /// Takes the program's events since the last call; false if one of those that moved a flow which was looked at is missing.
    fn events(&self, into: &mut Vec<Event>) -> Result<bool, Error>;
    /// Events for which the program had no room, so far.
    fn missed(&self) -> u64;
    /// Flows that have lost their place in the table to others, or found none, so far.
    fn without_place(&self) -> u64;
    /// Shows the agent's state and what it has done.
    fn show(&self, _now: &dyn Fn() -> (State, Tally)) {}
}

/// The world's time.
pub(super) trait Clock {
    /// `CLOCK_MONOTONIC`, which the eBPF program reads too.
    fn now(&self) -> Time;
    /// Lets time pass.
    fn rest(&self, span: Span);
}

counters! {
    /// What the loop has done.
    pub struct Tally {
        /// Driver reports that were acted on.
        #[metric("reports")]
        pub intervals: u64,
        /// Driver reports that were too old when they came, and therefore ignored.
        #[metric("reports_stale")]
        pub stale_reports: u64,
        /// Driver reports that were refused: they could not be read, or contradicted themselves, the
        /// one before or the time that had passed.
        #[metric("reports_refused")]
        pub refused_reports: u64,
        /// Flows that were managed.
        #[metric("flows_managed")]
        pub flows: u64,
        /// The most flows at once that belong to stations which neither driver nor operator had
        /// named: they were left alone.
        pub strangers: u64,
        /// The most flows at once with neither timestamps nor a handshake in which no SYN was
        /// repeated: their round trip cannot be told, and they get no window.
        pub untimed: u64,
        /// Flows that left the table since nobody had used them for long.
        pub expired: u64,
        /// Targets that were set or lifted.
        pub orders: u64,
        /// Targets that were not set, since what was in force was near enough.
        #[serde(rename = "orders_spared")]
        pub spared: u64,
        /// Events of the program that were lost before they were read: what was to be learned then
        /// is not.
        pub events_missed: u64,
        /// Times that the driver went silent for longer than the age limit.
        pub driver_losses: u64,
        /// The longest that one interval's work has taken.
        #[serde(rename = "longest_work_us", serialize_with = "serialise::micros")]
        pub longest_work: Span,
        /// How long it took in the end to open the windows that were limited.
        #[serde(rename = "longest_farewell_ms", serialize_with = "serialise::millis")]
        pub farewell: Span,
    }
}

pub(super) struct Agent<'a> {
    pub law: Box<dyn HopLaw>,
    pub enforcer: &'a dyn Enforcer,
    pub stations: Stations,
    /// Reports and decisions older than this do not count.
    pub age_limit: Span,
    /// Flows that the law is told of at once. Others wait until some of them rest.
    pub max_flows: usize,
    pub log: Option<Log>,
    pub tally: Tally,
    consistency: Consistency,
    news: News,
    /// `None` if the law does not want to know of every segment.
    passing: Option<Passing>,
    known: BTreeMap<Key, Known>,
    /// Flows that carry nothing: the law does not know of them, and they have no target.
    resting: BTreeMap<Key, Known>,
    /// Flows of unknown stations that have been noted: when they were born, by their place in the table.
    strangers: BTreeMap<Slot, Time>,
    decisions: BTreeMap<FlowId, Decision>,
    /// The last report that was acted on.
    last: HopReport,
    next_id: u32,
}

/// An idle flow's report is repeated to the law after this long: its model's own horizon. Between, nothing has changed.
const REPEAT: Span = Span::from_millis(40);
/// A flow that carries nothing for so long, or has not begun to, rests: its limit is lifted and the law forgets it, until its next packet. A sender that
/// was silent for so long begins with ten segments again (RFC 5681, section 4.1; RFC 6928).
const REST: Span = Span::from_secs(5);
/// As above, while many flows are followed: longer than a round trip.
const REST_CROWDED: Span = Span::from_millis(200);
/// A flow of which no packet comes for so long leaves the table, as it may leave that of a NAT (RFC 5382, REQ-5).
const EXPIRY: Span = Span::from_secs(2 * 3600 + 4 * 60);
/// As above, for one that has never carried anything, or that is still in its handshake.
const EXPIRY_UNUSED: Span = Span::from_secs(4 * 60);
/// New flows taken on in one interval: a flood of them must not hold up those that are known.
const MOST_NEW: usize = 512;
/// Reports that come faster than this are taken in together: a driver that never pauses shall not have all of a processor.
const LEAST_INTERVAL: Span = Span::from_millis(1);
/// The longest that is waited for anything but the heart: so soon a stop is seen.
const BREATH: Span = Span::from_millis(50);
/// Windows differ enough if they do by more than one part in this: 3 %, a millisecond of a 30 ms round trip. Every order
/// makes the next ACKs take the program's long way, and its cache lines travel between processors.
const DEAD_BAND: u64 = 32;
/// The longest that windows may take to open when the agent stops. A window grows by half or more a round trip.
const FAREWELL: Span = Span::from_millis(300);
/// A limited flow that nobody has used for so long has no burst to send.
const ASLEEP: Span = Span::from_millis(100);
/// Time between two looks at where the programs are and for what carries packets past them.
const LOOK_AROUND: Span = Span::from_millis(500);
/// Time between two looks at all flows, those that rest included.
const SURVEY: Span = Span::from_secs(1);
/// Time between two looks at the windows that open.
const LOOK: Span = Span::from_millis(4);

/// A flow that the law has been told of.
struct Known {
    id: FlowId,
    station: Node,
    slot: Slot,
    born: Time,
    /// When the law was last told of it.
    told: Time,
    target: Option<Bytes>,
    /// The interval in which the flow was last seen.
    seen: u64,
}

impl<'a> Agent<'a> {
    pub(super) fn new(
        law: Box<dyn HopLaw>,
        enforcer: &'a dyn Enforcer,
        stations: Stations,
        (age_limit, max_flows): (Span, u32),
        log: Option<Log>,
        say: Say,
    ) -> Agent<'a> {
        Agent {
            passing: law.wants_segments().then(Passing::default),
            law,
            enforcer,
            stations,
            age_limit,
            max_flows: max_flows as usize,
            log,
            tally: Tally::default(),
            consistency: Consistency::default(),
            news: News::new(say),
            known: BTreeMap::new(),
            resting: BTreeMap::new(),
            strangers: BTreeMap::new(),
            decisions: BTreeMap::new(),
            last: HopReport::default(),
            next_id: 0,
        }
    }

    /// Runs until `stop` is asked or packets pass the programs by, and then until every window is open.
    pub(super) fn run(&mut self, driver: &mut dyn DriverSource, clock: &dyn Clock, stop: &Stop) -> Result<(), Error> {
        self.stations.take_all_for(driver.everybody());
        // Short enough to see `stop`, to keep the heart beating, and to notice in time that the driver is silent.
        let patience = Span::from_nanos(self.age_limit.as_nanos() / 4).min(BREATH);
        let mut heard = clock.now();
        let mut lost = false;
        let (mut looked, mut surveyed) = (heard, heard);
        let mut reason = Ok(());
        let (mut connected, mut backoff) = (true, Backoff::new());
        while !stop.is_asked() && reason.is_ok() {
            let began = clock.now();
            if !connected && backoff.may_try(began) {
                connected = driver.reconnect().is_ok();
            }
            let report = if connected {
                driver.newest(patience)
            } else {
                clock.rest(backoff.next().since(began).min(patience));
                Ok(None)
            };
            let now = clock.now();
            match report {
                Ok(Some(record)) if now.since(record.at) <= self.age_limit => {
                    match self.consistency.admit(now, record) {
                        Ok(record) => {
                            if lost {
                                lost = false;
                                self.note_driver(now, "back");
                                self.news.heard();
                            }
                            heard = now;
                            backoff.succeeded();
                            let all = now.since(surveyed) >= SURVEY;
                            surveyed = if all { now } else { surveyed };
                            self.interval(now, record, all)?;
                            self.tally.longest_work = self.tally.longest_work.max(clock.now().since(now));
                        }
                        Err(why) => {
                            self.tally.refused_reports += 1;
                            self.news.contradicts(why);
                        }
                    }
                }
                Ok(Some(_)) => {
                    self.tally.stale_reports += 1;
                    self.news.stale(now);
                }
                Ok(None) => {}
                // The message is over, and the next one begins anew.
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    self.tally.refused_reports += 1;
                    self.news.unreadable(&error);
                }
                // A driver that restarts is back within moments; one that does not is no reason to spin.
                Err(_) => connected = false,
            }
            if !lost && now.since(heard) > self.age_limit {
                lost = true;
                self.tally.driver_losses += 1;
                self.note_driver(now, "lost");
                self.news.silent(now, self.age_limit);
                self.release_all();
            }
            self.enforcer.heartbeat(now)?;
            if now.since(looked) >= LOOK_AROUND {
                looked = now;
                reason = self.enforcer.sees_all();
                self.news.places(now, self.enforcer.without_place());
                self.news.tell(now);
                let agent = &*self;
                agent.enforcer.show(&|| (agent.state((heard, now), lost), agent.tally));
            }
            clock.rest(LEAST_INTERVAL.saturating_sub(clock.now().since(began)));
        }
        self.open_windows(clock, stop)?;
        reason
    }

    /// What there is to show. `heard`: when a report was acted on last.
    fn state(&self, (heard, now): (Time, Time), lost: bool) -> State {
        let mut flows = Flows::default();
        let mut of: BTreeMap<Node, usize> = BTreeMap::new();
        for known in self.known.values() {
            let decision = self.decisions.get(&known.id);
            let decision = decision.filter(|decision| decision.rwnd.is_some() && !lost);
            match decision.map(|decision| decision.why) {
                Some(Why::Tight) => flows.tight += 1,
                Some(_) => flows.ceiling += 1,
                None => flows.free += 1,
            }
            *of.entry(known.station).or_default() += 1;
        }
        let count = |station| of.get(&station).copied().unwrap_or(0);
        State {
            law: self.law.name().to_owned(),
            heard_s: now.since(heard).as_secs_f64(),
            driver_lost: lost,
            flows,
            resting: self.resting.len(),
            stations: self
                .last
                .stations
                .iter()
                .map(|report| status::of_station(report, count, self.stations.address(report.station)))
                .collect(),
            shared_backlog_packets: self.last.queues.iter().map(|queue| u64::from(queue.backlog_packets)).sum(),
            model: self.law.model(now).map(Into::into),
            ..State::default()
        }
    }

    /// Rule 10 to the end: what is still limited when the programs go is freed at once, and may send a burst.
    fn open_windows(&mut self, clock: &dyn Clock, stop: &Stop) -> Result<(), Error> {
        self.release_all();
        let began = clock.now();
        let mut moved = began;
        loop {
            let now = clock.now();
            self.tally.farewell = now.since(began);
            self.enforcer.heartbeat(now)?;
            let mut limited = false;
            self.enforcer.look(true, &mut |seen| {
                if seen.flow.window().is_some() && !seen.flow.is_over() {
                    limited = true;
                    moved = if seen.changed { now } else { moved };
                }
                Attention::Always
            });
            if !limited || now.since(moved) > ASLEEP || self.tally.farewell >= FAREWELL || stop.is_urgent() {
                return Ok(());
            }
            clock.rest(LOOK);
        }
    }

    /// One control interval: flows, then the hop, then decisions.
    fn interval(&mut self, now: Time, record: Record, all: bool) -> Result<(), Error> {
        self.tally.intervals += 1;
        self.stations.update(&record.addresses);
        let mut lines = self.sense_flows(now, all);
        self.sense_segments(now)?;
        self.sense_gone(now, all);
        let signal = Signal::Hop(record.report);
        self.law.sense(now, &signal);
        self.act(now);
        if let (Some(log), Signal::Hop(hop)) = (&mut self.log, &signal) {
            for line in &mut lines {
                if let Some(decision) = self.decisions.get(&line.report.flow) {
                    (line.target, line.why) = (decision.rwnd, decision.why);
                }
            }
            log.interval(now, hop, lines);
        }
        if let Signal::Hop(hop) = signal {
            self.last = hop;
        }
        Ok(())
    }

    /// Tells a law that wants to know of the segments that have passed since the last interval.
    fn sense_segments(&mut self, now: Time) -> Result<(), Error> {
        let Some(passing) = &mut self.passing else { return Ok(()) };
        // After the flows were read: no number is ahead of what is taken here.
        let whole = self.enforcer.events(&mut passing.events)?;
        let missed = self.enforcer.missed();
        let new = missed.saturating_sub(self.tally.events_missed);
        self.tally.events_missed = missed;
        if new > 0 || !whole {
            passing.forget();
            self.law.sense(now, &Signal::SegmentsMissed);
        }
        if new > 0 {
            self.news.missed(now, new);
            if let Some(log) = &mut self.log {
                log.missed(now, new);
            }
        }
        let (law, resting) = (&mut self.law, &self.resting);
        passing.tell(now, |key| resting.contains_key(key), |at, segment| law.sense(at, &Signal::Segment(segment)));
        Ok(())
    }

    /// Tells the law of every flow that can be managed and belongs to a known station, as often as there is news. With
    /// `all` it looks at those too that rest.
    fn sense_flows(&mut self, now: Time, all: bool) -> Vec<observation::Flow> {
        let mut lines = Vec::new();
        let (mut strangers, mut untimed) = (0, 0);
        let mut room = self.max_flows.saturating_sub(self.known.len()).min(MOST_NEW);
        let crowded = self.known.len() > self.max_flows / 2;
        let enforcer = self.enforcer;
        enforcer.look(all, &mut |seen| {
            let Seen { slot, key, flow, changed, unused } = seen;
            if flow.is_over() {
                enforcer.forget(slot, flow.born());
                return Attention::OnChange;
            }
            let idle = Idle::of(now, flow);
            if all && idle.expires(unused) {
                self.tally.expired += 1;
                enforcer.forget(slot, flow.born());
                return Attention::OnChange;
            }
            if !flow.is_manageable() {
                return Attention::OnChange;
            }
            let Some(station) = self.stations.of(key.station_address(), flow.hardware()) else {
                strangers += 1;
                if self.strangers.insert(slot, flow.born()) != Some(flow.born()) {
                    self.news.stranger(now, key.station_address());
                }
                return if idle.rests(crowded) { Attention::OnChange } else { Attention::Always };
            };
            if idle.rests(crowded) {
                self.lay_to_rest(now, key, flow);
                return Attention::OnChange;
            }
            let Some((id, is_new)) = self.identify(now, (slot, station), key, flow, &mut room) else {
                return Attention::Always;
            };
            if is_new {
                self.news.accepted(now, station, key.station_address());
            }
            let report = flow.report(now, id, station);
            let carries = !report.forwarded.is_zero();
            untimed += u64::from(carries && !flow.has_timestamps() && report.wired_rtt.is_none());
            if let Some(log) = self.log.as_mut().filter(|_| is_new) {
                log.opened(now, key, &report);
            }
            if let Some(known) = self.known.get_mut(key)
                && (changed || is_new || now.since(known.told) >= REPEAT)
            {
                known.told = now;
                self.law.sense(now, &Signal::Flow(report));
            }
            if let Some(passing) = &mut self.passing {
                passing.saw(key, id, station, flow);
            }
            if self.log.is_some() {
                let (window, target) = (flow.window(), None);
                lines.push(observation::Flow { report, window, target, why: Why::Unmanaged });
            }
            Attention::Always
        });
        self.tally.strangers = self.tally.strangers.max(strangers);
        self.tally.untimed = self.tally.untimed.max(untimed);
        lines
    }

    /// Nobody uses this flow: neither law nor program need keep it in mind.
    fn lay_to_rest(&mut self, now: Time, key: &Key, flow: &Flow) {
        let seen = self.tally.intervals;
        if let Some(known) = self.resting.get_mut(key).filter(|known| known.born == flow.born()) {
            known.seen = seen;
            return;
        }
        let Some(mut known) = self.known.remove(key) else { return };
        if known.born != flow.born() {
            return self.gone(now, known.id);
        }
        if known.target.take().is_some() {
            self.enforcer.set_target(known.slot, known.born, None);
            self.tally.orders += 1;
        }
        self.law.sense(now, &Signal::FlowGone(known.id));
        known.seen = seen;
        if let Some(other) = self.resting.insert(*key, known) {
            self.note_gone(now, other.id);
        }
    }

    /// The number of a flow, and whether it is a new one: a connection that takes another's key is another flow. `None` for a new one
    /// if there is no more room for such in this interval.
    fn identify(
        &mut self,
        now: Time,
        (slot, station): (Slot, Node),
        key: &Key,
        flow: &Flow,
        room: &mut usize,
    ) -> Option<(FlowId, bool)> {
        let seen = self.tally.intervals;
        if let Some(known) = self.known.get_mut(key).filter(|known| known.born == flow.born()) {
            known.seen = seen;
            (known.slot, known.station) = (slot, station);
            return Some((known.id, false));
        }
        *room = room.checked_sub(1)?;
        if let Some(other) = self.known.remove(key) {
            self.gone(now, other.id);
        }
        match self.resting.remove(key) {
            Some(known) if known.born == flow.born() => {
                // The law has forgotten it, and is told at once.
                let id = known.id;
                self.known.insert(*key, Known { slot, station, seen, told: Time::ZERO, ..known });
                return Some((id, false));
            }
            Some(other) => self.note_gone(now, other.id),
            None => {}
        }
        let id = FlowId(self.next_id);
        self.next_id = self.next_id.wrapping_add(1);
        self.tally.flows += 1;
        // What the table says counts: an agent may find targets of its own from before a driver's loss.
        let known = Known { id, station, slot, born: flow.born(), told: now, target: flow.target(), seen };
        self.known.insert(*key, known);
        Some((id, true))
    }

    /// Flows that were not seen are gone. Those that rest are seen where everything is looked at.
    fn sense_gone(&mut self, now: Time, all: bool) {
        let current = self.tally.intervals;
        let unseen = |flows: &BTreeMap<Key, Known>| -> Vec<Key> {
            flows.iter().filter(|(_, known)| known.seen != current).map(|(key, _)| *key).collect()
        };
        for key in unseen(&self.known) {
            if let Some(known) = self.known.remove(&key) {
                self.gone(now, known.id);
            }
        }
        if !all {
            return;
        }
        for key in unseen(&self.resting) {
            if let Some(known) = self.resting.remove(&key) {
                self.note_gone(now, known.id);
            }
        }
        // Whoever left the table has left this, too.
        let enforcer = self.enforcer;
        self.strangers.retain(|slot, born| enforcer.holds(*slot, *born));
    }

    fn gone(&mut self, now: Time, id: FlowId) {
        self.law.sense(now, &Signal::FlowGone(id));
        self.note_gone(now, id);
    }

    fn note_gone(&mut self, now: Time, id: FlowId) {
        if let Some(log) = &mut self.log {
            log.gone(now, id);
        }
    }

    /// Writes what the law decides where it differs enough from what is in force.
    fn act(&mut self, now: Time) {
        self.decisions.clear();
        let decisions = &mut self.decisions;
        self.law.decide(now, &mut |id, decision| {
            decisions.insert(id, decision);
        });
        for known in self.known.values_mut() {
            let target = self.decisions.get(&known.id).and_then(|decision| decision.rwnd);
            if target == known.target {
                continue;
            }
            if !differs(known.target, target) {
                self.tally.spared += 1;
                continue;
            }
            self.enforcer.set_target(known.slot, known.born, target);
            known.target = target;
            self.tally.orders += 1;
        }
    }

    /// Lifts every limit, in the steps of rule 10.
    fn release_all(&mut self) {
        for known in self.known.values_mut() {
            if known.target.take().is_some() {
                self.enforcer.set_target(known.slot, known.born, None);
                self.tally.orders += 1;
            }
        }
    }

    fn note_driver(&mut self, now: Time, state: &str) {
        if let Some(log) = &mut self.log {
            log.driver(now, state);
        }
    }
}

/// For how long a flow has carried nothing to its station: windows are lowered for what it carries.
struct Idle {
    span: Span,
    /// It has carried something.
    carried: bool,
}

impl Idle {
    fn of(now: Time, flow: &Flow) -> Idle {
        // Numbers do not matter here.
        let last = flow.report(now, FlowId(0), Node(0)).last_data;
        Idle { span: now.since(last.max(flow.born())), carried: last > Time::ZERO }
    }

    fn rests(&self, crowded: bool) -> bool {
        // A handshake alone is no reason for a limit: what can come first is ten segments.
        !self.carried || self.span >= if crowded { REST_CROWDED } else { REST }
    }

    /// True for a flow of which no packet has come for so long in either direction.
    fn expires(&self, unused: Span) -> bool {
        unused >= if self.carried { EXPIRY } else { EXPIRY_UNUSED }
    }
}

/// True if a window is worth an order: there is one where there was none, or it differs by more than the dead band.
fn differs(in_force: Option<Bytes>, wanted: Option<Bytes>) -> bool {
    let (Some(in_force), Some(wanted)) = (in_force, wanted) else { return in_force != wanted };
    in_force.get().abs_diff(wanted.get()) > in_force.get() / DEAD_BAND
}

#[cfg(test)]
#[path = "agent/tests.rs"]
mod tests;
