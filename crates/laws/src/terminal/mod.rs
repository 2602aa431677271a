//! Bounds on the windows of a station's own uploads, before the access point drowns in acknowledgements.
//! Source:     Hayakawa, Yamaguchi, Oguchi 2015; the model is own (docs/explanation/terminal-law.md).
//! Equations:  see `tables` and `model`; of the tables' bounds a connection has the part 1 / k, k connections through which the terminal sends
//! Symbols:    n, terminals that send -> this one and `neighbours`
//! Deviations: the paper gives every connection of a terminal the whole row; here they share it, so that a terminal
//!             with six connections is no six terminals. The tables' minimum round trip is TCP's own of the connection: one that begins in a
//!             full queue takes that for the path, as the paper's does. The model's is the path's (see `paths`), and terminals empty the
//!             hop together to see it (see `drain`).
//! Validity:   reports of all connections come before the wake-up of the same look; a connection without a round
//!             trip yet is left alone. What neighbours tell beyond that they are there counts in the model alone: they must be
//!             authenticated by whoever hears them, or tell nothing (rate 0, no drain).
//! Checked by: tests::*, tests/integration/conformance

mod competition;
mod drain;
mod model;
mod paths;
mod tables;

use crate::{Bounds, Decision, Entry, HopLaw, ParamError, Parameters, Place, Why, params, words};
use competition::Competition;
use drain::Drains;
use lasthop_signals::{Feedback, FlowId, Signal, SocketReport, Upload};
use lasthop_units::{Rate, Span, Time};
use model::{Path, Window};
use paths::Paths;
use std::collections::BTreeMap;

/// The name of the law.
pub const NAME: &str = "terminal";
/// Its entry in the registry.
pub const LAW: Entry = Entry::hop(
    Place::Terminal,
    NAME,
    "Bounds on the windows of a station's uploads, by active terminals and grown round trips.",
    Params::TABLE,
    |settings| Ok(Box::new(Terminal::new(Params::with(settings)?)?)),
);

/// How often a terminal that sends tells its neighbours so.
pub const NOTICE_INTERVAL: Span = Span::from_millis(300);
/// A neighbour that has not been heard for so long sends no more: three notices.
const SILENT: Span = Span::from_secs(1);
/// One that has not been heard for so long is a new one when it is heard again.
const FORGOTTEN: Span = Span::from_secs(60);
/// What drains leave says nothing of others until so long after the newest terminal began, which may not be bound yet, or a shorter path
/// was seen, which others' queues would hide.
const GRACE: Span = Span::from_secs(5);
/// Neighbours that are remembered: more are not told from that many.
const NEIGHBOURS: usize = 1024;

params! {
    /// What may be set of the law.
    pub struct Params {
        /// What the bounds follow from.
        rule: Rule = "tables";
        /// How often connections are looked at and bounds set.
        interval: Span = "500 ms",
            |p| p.interval >= Span::from_millis(10) && p.interval <= Span::from_secs(60) => "from 10 ms to 60 s";
        /// `model`: how long terminals' packets may wait on the hop.
        standing: Span = "12 ms",
            |p| p.standing >= Span::from_millis(1) && p.standing <= Span::from_secs(1) => "from 1 ms to 1 s";
        /// `model`: further packets that stand on the hop, of all terminals.
        packets: u32 = "30", |p| p.packets >= 1 && p.packets <= 10_000 => "from 1 to 10000";
        /// `fixed`: segments that the terminal may have in flight.
        window: u32 = "8", |p| p.window >= 2 && p.window <= 100_000 => "from 2 to 100000";
        /// `model`: what it does beside unbounded senders that fill the hop.
        beside: Beside = "yield";
    }
}

words! {
    /// What bounds follow from.
    pub enum Rule {
        /// Number of terminals and ratio of round trips (the paper's Tables 2 and 3).
        Tables = "tables",
        /// Number of terminals alone: the authors' earlier method, there every 10 s.
        Count = "count",
        /// `window` segments.
        Fixed = "fixed",
        /// What each connection delivers, plus a little that stands on the hop.
        Model = "model",
    }
}

words! {
    /// What a terminal does beside unbounded senders that fill the hop.
    pub enum Beside {
        /// Keeps its windows small, and gets little.
        Yield = "yield",
        /// Drops its bounds where such senders are seen.
        Compete = "compete",
    }
}

/// Decides for the connections of one terminal.
#[derive(Clone, Debug)]
pub struct Terminal {
    params: Params,
    neighbours: BTreeMap<u64, Neighbour>,
    flows: BTreeMap<FlowId, Flow>,
    paths: Paths,
    drains: Drains,
    competition: Competition,
    /// A drain lasted at the last look.
    drained: bool,
    /// When the newest terminal began, this one or a neighbour, or a path was last seen to be shorter than had been known.
    unsettled: Time,
}

#[derive(Clone, Copy, Debug)]
struct Neighbour {
    heard: Time,
    /// It still does, as of the last look.
    sends: bool,
    /// What it delivers, if it told.
    rate: Option<f64>,
    /// Connections through which it sends.
    flows: u32,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    report: SocketReport,
    /// The least round trip of its path, as of the last look.
    base: Option<Span>,
    window: Window,
    decision: Decision,
}

/// What connections show of the hop.
struct Seen {
    /// How long packets wait on it, the least of all connections.
    waits: Span,
    /// Those of some connection say that it is busy.
    busy: bool,
    /// The longest round trip.
    longest: Span,
}

impl Terminal {
    /// A terminal that has heard nobody.
    ///
    /// # Errors
    /// Those of [`Params::validate`].
    pub fn new(params: Params) -> Result<Terminal, ParamError> {
        params.validate()?;
        Ok(Terminal {
            params,
            neighbours: BTreeMap::new(),
            flows: BTreeMap::new(),
            paths: Paths::default(),
            drains: Drains::default(),
            competition: Competition::default(),
            drained: false,
            unsettled: Time::ZERO,
        })
    }

    /// Terminals that send, this one included: those that were heard since the last look among them.
    pub fn terminals(&self) -> u32 {
        u32::try_from(self.others().count()).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// Neighbours that send.
    fn others(&self) -> impl Iterator<Item = &Neighbour> {
        self.neighbours.values().filter(|neighbour| neighbour.sends)
    }

    fn has_room_for(&self, neighbour: u64) -> bool {
        self.neighbours.len() < NEIGHBOURS || self.neighbours.contains_key(&neighbour)
    }

    /// Sets the bounds of every connection anew.
    fn look(&mut self, now: Time) {
        self.neighbours.retain(|_, neighbour| now.since(neighbour.heard) <= FORGOTTEN);
        self.neighbours.values_mut().for_each(|neighbour| neighbour.sends = now.since(neighbour.heard) <= SILENT);
        match self.params.rule {
            Rule::Tables => self.by_table(tables::by_both),
            Rule::Count => self.by_table(|own, _, terminals| (tables::by_terminals(own, terminals), false)),
            Rule::Fixed => {
                let bounds = Bounds { lower: 1, upper: self.params.window };
                self.by_table(|_, _, _| (bounds, false));
            }
            Rule::Model => self.by_model(now),
        }
    }

    /// Every connection has its part of what `bounds` says for a minimum and a smoothed round trip and a number of terminals.
    fn by_table(&mut self, bounds: impl Fn(Span, Span, u32) -> (Bounds<u32>, bool)) {
        let (terminals, sharing) = (self.terminals(), count(self.flows.len()));
        for flow in self.flows.values_mut() {
            flow.decision = match (flow.report.rtt, flow.report.min_rtt) {
                (Some(rtt), Some(own)) => part(bounds(own, rtt, terminals), &flow.report, sharing),
                _ => Decision::unlimited(Why::Unmanaged),
            };
        }
    }

    fn by_model(&mut self, now: Time) {
        for flow in self.flows.values_mut() {
            flow.window.look(&flow.report);
            let Some(own) = flow.report.min_rtt else { continue };
            let least = self.paths.least(now, flow.report.destination, own);
            let before = flow.base.replace(least).unwrap_or(least);
            self.drains.on_minimum(before, least);
            if Drains::is_news(before, least) {
                self.unsettled = now;
            }
        }
        let fair = self.fair();
        let sharing = count(self.flows.values().filter(|flow| flow.window.is_in_use()).count());
        let standing = self.params.standing;
        // What makes equals of connections; one alone needs none.
        let rivals = f64::from(sharing) + self.others().map(|neighbour| f64::from(neighbour.flows)).sum::<f64>();
        let share = f64::from(self.params.packets) / rivals * (1.0 - 1.0 / rivals);
        let path = |flow: &Flow| {
            let (rtt, base) = flow.report.rtt.zip(flow.base)?;
            let deviation = flow.report.deviation;
            Some(Path {
                rtt,
                deviation,
                base,
                standing,
                share,
                rivals,
                fair: fair.map(|fair| fair / f64::from(sharing)),
            })
        };
        let paths = || self.flows.values().filter_map(path);
        let seen = Seen {
            waits: paths().map(|path| path.waits()).min().unwrap_or(Span::ZERO),
            busy: paths().any(|path| path.is_busy()),
            longest: paths().map(|path| path.rtt).max().unwrap_or(Span::ZERO),
        };
        let deep = self.drains.is_deep();
        let drains = self.drain(now, &seen);
        let over = std::mem::replace(&mut self.drained, drains) && !drains;
        let competes = self.competition.is_on();
        let part = if self.competition.is_in_doubt() { 0.125 } else { 0.5 };
        for flow in self.flows.values_mut() {
            let Some(path) = path(flow) else {
                flow.decision = Decision::unlimited(Why::Unmanaged);
                continue;
            };
            let bounds = match (drains, over) {
                (true, _) if competes => flow.window.parted(&flow.report, part),
                (_, true) if competes => flow.window.regain(flow.report.mss),
                _ if competes => flow.window.compete(now, &flow.report, &path),
                (true, _) => flow.window.drained(&flow.report, path.base, deep),
                (_, true) => flow.window.resume(now, path.rtt, flow.report.mss, deep),
                _ => flow.window.step(now, &flow.report, &path),
            };
            let why = match bounds {
                _ if competes => Why::Competing,
                None => Why::Unmanaged,
                Some(_) => Why::Model,
            };
            let told = Upload { rate: flow.window.rate().map(bits), drains: drains && bounds.is_some() };
            flow.decision = Decision {
                cwnd: bounds,
                feedback: Some(Feedback::Upload(told)),
                revisit: self.drains.until(),
                ..Decision::unlimited(why)
            };
        }
        if competes && !drains && self.flows.values().any(|flow| flow.window.has_stepped()) {
            self.rate().into_iter().for_each(|rate| self.competition.stepped(now, rate));
        }
    }

    /// Begins and ends drains, and takes from them whether others fill the hop. True while one lasts.
    fn drain(&mut self, now: Time, seen: &Seen) -> bool {
        let (waits, standing) = (seen.waits, self.params.standing);
        let settled = self.params.beside == Beside::Compete && now.since(self.unsettled) >= GRACE;
        let much = self.much();
        let long = self.drain_for();
        if self.drains.is_due(now) && seen.busy {
            self.drains.begin(now, long);
        }
        let drains = self.drains.lasts(now);
        match (self.drained, drains) {
            (false, true) => self.competition.drains((Drains::spans(long) && settled).then_some(waits)),
            (true, false) => self.competition.drained(now, (waits, much), self.rate()),
            (false, false) if !Drains::spans(seen.longest) => self.competition.rest(now),
            (false, false) => self.competition.look(waits, standing),
            (true, true) => {}
        }
        if self.drained && !drains && self.competition.is_on() {
            self.drains.put_off(now);
            self.flows.values_mut().for_each(|flow| flow.window.enter());
        }
        if !drains && settled && self.competition.asks(now, waits, much) {
            self.drains.hurry();
        }
        drains
    }

    /// How long a drain must last: a round trip, or two where so much waits that what leaves after the first packets of the drain must
    /// come back.
    fn drain_for(&self) -> Span {
        let much = self.much();
        let long = |flow: &Flow| {
            let rtt = flow.report.rtt?;
            let waits = rtt.saturating_sub(flow.base.unwrap_or(rtt));
            let halves = self.competition.is_on() && !self.competition.is_in_doubt();
            Some(match self.params.beside {
                Beside::Yield => Drains::short(rtt),
                Beside::Compete if waits > much && !halves => rtt * 2,
                Beside::Compete => rtt,
            })
        };
        self.flows.values().filter_map(long).max().unwrap_or(Span::ZERO)
    }

    /// Packets that wait longer than this are not only the terminals' own, in a drain: twice what the two segments that a drain leaves
    /// of each take on a hop that all have the same part of, or four times what may wait at other times.
    fn much(&self) -> Span {
        let mss = self.flows.values().map(|flow| flow.report.mss.get()).max().unwrap_or(0) as f64;
        let left = self.rate().map_or(f64::INFINITY, |rate| 2.0 * mss / rate.max(1.0));
        Span::from_secs_f64(left.min(3600.0)).max(self.params.standing * 4)
    }

    /// Payload a second that its connections deliver, of those that use their windows.
    fn rate(&self) -> Option<f64> {
        self.flows.values().filter_map(|flow| flow.window.rate()).reduce(|sum, rate| sum + rate)
    }

    /// What would be fair for each terminal, in payload a second: the mean of what those that tell deliver, this one included.
    fn fair(&self) -> Option<f64> {
        let own: f64 = self.flows.values().filter_map(|flow| flow.window.rate()).sum();
        let told = self.neighbours.values().filter(|neighbour| neighbour.sends).filter_map(|neighbour| neighbour.rate);
        let (number, all) = told.fold((1.0, own), |(number, all), rate| (number + 1.0, all + rate));
        (own > 0.0 && number > 1.0).then(|| all / number)
    }
}

/// How many share something: at least one does.
fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX).max(1)
}

fn bits(payload_a_second: f64) -> Rate {
    Rate::from_bps((payload_a_second * 8.0) as u64)
}

/// The part of the tables' bounds that one of `sharing` connections has.
fn part((bounds, by_ratio): (Bounds<u32>, bool), report: &SocketReport, sharing: u32) -> Decision {
    let why = if by_ratio { Why::RoundTrip } else { Why::Terminals };
    let (lower, upper) = ((bounds.lower / sharing).max(1), (bounds.upper / sharing).max(2));
    let segments = |packets: u32| report.mss * u64::from(packets);
    Decision { cwnd: Some(Bounds { lower: segments(lower), upper: segments(upper) }), ..Decision::unlimited(why) }
}

impl HopLaw for Terminal {
    fn sense(&mut self, now: Time, signal: &Signal) {
        match signal {
            Signal::Socket(report) => {
                if self.flows.is_empty() {
                    self.unsettled = now;
                }
                let window = Window::default();
                let fresh = Flow { report: *report, base: None, window, decision: Decision::unlimited(Why::Unmanaged) };
                self.flows.entry(report.flow).or_insert(fresh).report = *report;
            }
            Signal::FlowGone(flow) => {
                self.flows.remove(flow);
            }
            Signal::Neighbour(notice) if self.has_room_for(notice.terminal) => {
                let flows = u32::from(notice.flows).max(1);
                let rate = (!notice.rate.is_zero()).then(|| notice.rate.as_bps() as f64 / 8.0);
                if self.neighbours.insert(notice.terminal, Neighbour { heard: now, sends: true, rate, flows }).is_none()
                {
                    self.unsettled = now;
                }
                if notice.drains && self.drains.may_join(now, self.competition.is_on()) {
                    self.drains.begin(now, self.drain_for());
                }
            }
            Signal::Wakeup => self.look(now),
            _ => {}
        }
    }

    fn decide(&self, _now: Time, each: &mut dyn FnMut(FlowId, Decision)) {
        self.flows.iter().for_each(|(flow, known)| each(*flow, known.decision));
    }

    fn name(&self) -> &'static str {
        NAME
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_signals::{MacAddress, Notice};
    use lasthop_units::Bytes;
    use lasthop_units::brief::at;

    const MSS: Bytes = Bytes::new(1448);
    const SILENT_SOCKET: SocketReport = SocketReport {
        flow: FlowId(1),
        rtt: None,
        deviation: Span::ZERO,
        min_rtt: None,
        mss: MSS,
        cwnd: Bytes::new(14_480),
        in_flight: Bytes::new(14_480),
        delivered: Bytes::ZERO,
        queued: None,
        destination: 1,
    };

    fn socket(flow: u32, rtt_ms: u64, min_ms: u64) -> Signal {
        let (rtt, min_rtt) = (Some(Span::from_millis(rtt_ms)), Some(Span::from_millis(min_ms)));
        Signal::Socket(SocketReport { flow: FlowId(flow), rtt, min_rtt, ..SILENT_SOCKET })
    }

    fn notice(terminal: u64) -> Signal {
        Signal::Neighbour(Notice {
            bssid: MacAddress([2, 0, 0, 0, 0, 1]),
            terminal,
            sequence: 0,
            flows: 1,
            rate: Rate::ZERO,
            drains: false,
        })
    }

    /// Lower and upper bound of a connection in segments.
    fn bounds(law: &Terminal, of: u32) -> Option<(u64, u64)> {
        let mut found = None;
        law.decide(Time::ZERO, &mut |flow, decision| {
            if flow == FlowId(of) {
                found = decision.cwnd.map(|cwnd| (cwnd.lower.get() / MSS.get(), cwnd.upper.get() / MSS.get()));
            }
        });
        found
    }

    fn terminal(rule: Rule) -> Terminal {
        Terminal::new(Params { rule, ..Params::default() }).expect("defaults are valid")
    }

    #[test]
    fn bounds_are_set_at_a_look_and_stand_until_the_next() {
        let mut law = terminal(Rule::Tables);
        law.sense(at(0), &socket(1, 256, 256));
        assert_eq!(bounds(&law, 1), None);
        law.sense(at(0), &Signal::Wakeup);
        assert_eq!(bounds(&law, 1), Some((250, 555)));
        (1..10).for_each(|other| law.sense(at(100), &notice(other)));
        assert_eq!(bounds(&law, 1), Some((250, 555)));
        law.sense(at(500), &Signal::Wakeup);
        assert_eq!(bounds(&law, 1), Some((5, 17)));
        law.sense(at(600), &Signal::FlowGone(FlowId(1)));
        assert_eq!(bounds(&law, 1), None);
    }

    #[test]
    fn a_neighbour_counts_once_and_expires_after_a_silent_second() {
        let mut law = terminal(Rule::Count);
        law.sense(at(0), &socket(1, 2560, 256));
        (0..3).for_each(|_| law.sense(at(0), &notice(7)));
        law.sense(at(300), &notice(8));
        let seen = [1000, 1001, 1300, 1301].map(|ms| {
            law.sense(at(ms), &Signal::Wakeup);
            (law.terminals(), bounds(&law, 1).expect("managed"))
        });
        assert_eq!(seen, [(3, (200, 300)), (2, (300, 400)), (2, (300, 400)), (1, (250, 555))]);
    }

    #[test]
    fn growing_rtts_tighten_the_bounds_by_the_tables_only() {
        let why = |rule| {
            let mut law = terminal(rule);
            law.sense(at(0), &socket(1, 1100, 256));
            law.sense(at(0), &Signal::Wakeup);
            let mut why = None;
            law.decide(at(0), &mut |_, decision| why = Some(decision.why));
            (why, bounds(&law, 1).expect("managed"))
        };
        assert_eq!(why(Rule::Tables), (Some(Why::RoundTrip), (5, 10)));
        assert_eq!(why(Rule::Count), (Some(Why::Terminals), (250, 555)));
    }

    #[test]
    fn connections_of_a_terminal_share_its_bounds() {
        let mut law = terminal(Rule::Tables);
        (1..=5).for_each(|flow| law.sense(at(0), &socket(flow, 256, 256)));
        law.sense(at(0), &Signal::Wakeup);
        assert_eq!((1..=5).map(|flow| bounds(&law, flow)).collect::<Vec<_>>(), vec![Some((50, 111)); 5]);
    }

    /// A terminal by the model that looks twice a second at a connection through a hop which carries `hop` segments a second
    /// beside a path of 20 ms, one queue for all; the connection keeps to its upper bound. Takes and returns its window and what it has delivered, in segments.
    fn settles(law: &mut Terminal, hop: f64, (from, looks): (u64, u64), state: (f64, f64)) -> (f64, f64) {
        let (mut window, mut delivered) = state;
        for look in 0..looks {
            let rtt = (window / hop).max(0.020);
            let report = SocketReport {
                rtt: Some(Span::from_secs_f64(rtt)),
                min_rtt: Some(Span::from_millis(20)),
                cwnd: MSS.scale(window),
                in_flight: MSS.scale(window),
                delivered: MSS.scale(delivered),
                ..SILENT_SOCKET
            };
            law.sense(at(from + 500 * look), &Signal::Socket(report));
            law.sense(at(from + 500 * look), &Signal::Wakeup);
            law.decide(Time::ZERO, &mut |_, decision| {
                window = decision.cwnd.map_or(window, |cwnd| cwnd.upper.get() as f64 / MSS.get() as f64);
            });
            delivered += 0.5 * window / (window / hop).max(0.020);
        }
        (window, delivered)
    }

    const FRESH: (f64, f64) = (10.0, 0.0);

    #[test]
    fn the_model_fills_any_hop_and_no_queue() {
        for hop in [1000.0, 2000.0, 20_000.0, 100_000.0] {
            let mut law = terminal(Rule::Model);
            let (window, _) = settles(&mut law, hop, (0, 61), FRESH);
            let waits = window / hop - 0.020;
            assert!((0.005..0.015).contains(&waits), "{waits} s at {hop} segments a second");
        }
    }

    #[test]
    fn the_model_follows_a_hop_that_slows_and_one_that_speeds_up() {
        let mut law = terminal(Rule::Model);
        let fast = settles(&mut law, 2000.0, (0, 41), FRESH);
        let slow = settles(&mut law, 500.0, (20_500, 20), fast);
        assert!(slow.0 < 500.0 * 0.040, "{slow:?}");
        let (window, _) = settles(&mut law, 20_000.0, (30_500, 40), slow);
        assert!(window > 20_000.0 * 0.020, "{window}");
    }

    #[test]
    fn draining_neighbours_are_joined_and_slower_ones_get_way() {
        let told = |rate: u64, drains: bool| {
            let Signal::Neighbour(notice) = notice(7) else { unreachable!("it is one") };
            Signal::Neighbour(Notice { rate: Rate::from_bps(rate), drains, ..notice })
        };
        let mut alone = terminal(Rule::Model);
        let settled = settles(&mut alone, 2000.0, (0, 41), FRESH);
        let mut beside = alone.clone();
        beside.sense(at(20_400), &told(1_000_000, false));
        alone.sense(at(20_400), &told(0, false));
        let [polite, free] = [&mut beside, &mut alone].map(|law| settles(law, 2000.0, (20_500, 1), settled).0);
        assert!(polite < 0.95 * free, "{polite} beside {free}");
        beside.sense(at(21_000), &told(1_000_000, true));
        beside.sense(at(21_000), &Signal::Wakeup);
        let mut upper = 0;
        beside.decide(at(21_000), &mut |_, decision| {
            upper = decision.cwnd.map_or(0, |cwnd| cwnd.upper.get() / MSS.get());
            assert!(matches!(decision.feedback, Some(Feedback::Upload(Upload { drains: true, .. }))));
            assert_eq!(decision.revisit, Some(at(21_200)));
        });
        assert!((upper as f64) < 0.8 * polite, "{upper} of {polite}");
    }

    /// Looks twice a second at a connection of which packets wait `waits` ms beside a path of 20 ms, whatever its window is, and of which so many
    /// octets wait in the terminal itself. It keeps to its upper bound. Returns the reason and bounds of the last decision.
    fn beside(law: &mut Terminal, (from, looks): (u64, u64), waits: u64, queued: u64) -> (Why, Option<(u64, u64)>) {
        let (mut window, mut last) = (MSS * 40, None);
        for look in 0..looks {
            let now = at(from + 500 * look);
            let report = SocketReport {
                rtt: Some(Span::from_millis(20 + waits)),
                min_rtt: Some(Span::from_millis(20)),
                cwnd: window,
                in_flight: window,
                delivered: MSS * (50 * (look + from / 500)),
                queued: Some(Bytes::new(queued)),
                ..SILENT_SOCKET
            };
            law.sense(now, &Signal::Socket(report));
            law.sense(now, &Signal::Wakeup);
            law.decide(now, &mut |_, decision| {
                window = decision.cwnd.map_or(window, |cwnd| cwnd.upper.min(MSS * 40));
                last = Some((
                    decision.why,
                    decision.cwnd.map(|cwnd| (cwnd.lower.get() / MSS.get(), cwnd.upper.get() / MSS.get())),
                ));
            });
        }
        last.expect("a connection")
    }

    fn competing() -> Terminal {
        let params = Params { rule: Rule::Model, beside: Beside::Compete, ..Params::default() };
        Terminal::new(params).expect("defaults are valid")
    }

    #[test]
    fn a_terminal_that_yields_never_lets_go() {
        assert_eq!(beside(&mut terminal(Rule::Model), (0, 60), 400, 0).0, Why::Model);
    }

    #[test]
    fn a_queue_that_drains_do_not_shorten_is_competed_with() {
        let mut law = competing();
        assert_eq!(beside(&mut law, (0, 8), 400, 0).0, Why::Model, "too early to tell");
        let (why, bounds) = beside(&mut law, (4000, 60), 400, 0);
        assert_eq!((why, bounds.map(|(_, upper)| upper > 1000)), (Why::Competing, Some(true)));
        let (why, bounds) = beside(&mut law, (34_000, 1), 400, 30_000);
        let upper = bounds.expect("what waits in the terminal is bounded").1;
        assert!(why == Why::Competing && (20..40).contains(&upper), "{bounds:?}");
        assert_eq!(beside(&mut law, (34_500, 4), 5, 0).0, Why::Model, "the hop is free");
    }

    #[test]
    fn a_round_trip_of_many_seconds_is_competed_with_by_nobody() {
        assert_ne!(beside(&mut competing(), (0, 120), 12_000, 0).0, Why::Competing);
    }

    #[test]
    fn a_connection_without_a_round_trip_is_left_alone() {
        let mut law = terminal(Rule::Tables);
        law.sense(at(0), &Signal::Socket(SILENT_SOCKET));
        law.sense(at(0), &Signal::Wakeup);
        assert_eq!(bounds(&law, 1), None);
    }
}
