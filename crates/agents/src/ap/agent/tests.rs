//! The loop with a law of one line, a driver that plays a script, and maps in memory.

use super::*;
use lasthop_signals::{Node, Segment, StationReport};
use lasthop_wire::FlowKey;
use lasthop_wire::tcp::{Flags, TcpHeader, TcpOptions};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;

/// When a script begins.
const START: Time = Time::from_nanos(10_000_000_000);

/// Gives every flow a fixed window and remembers what it was told.
#[derive(Clone)]
struct Fixed {
    window: Bytes,
    flows: BTreeMap<FlowId, Node>,
    gone: std::sync::Arc<std::sync::Mutex<Vec<FlowId>>>,
    /// What it was told of segments, and of the ends of intervals; `None`: it does not want to know.
    passed: Option<std::sync::Arc<std::sync::Mutex<Vec<String>>>>,
}

impl Fixed {
    fn note(&self, line: String) {
        self.passed.iter().for_each(|passed| passed.lock().expect("not poisoned").push(line.clone()));
    }
}

impl HopLaw for Fixed {
    fn sense(&mut self, _: Time, signal: &Signal) {
        match signal {
            Signal::Flow(report) => drop(self.flows.insert(report.flow, report.station)),
            Signal::FlowGone(id) => {
                self.flows.remove(id);
                self.gone.lock().expect("not poisoned").push(*id);
            }
            Signal::Segment(Segment { flow, station, way, seq, len, count, ack, .. }) => {
                self.note(format!("{} {} {way:?} {seq}+{len} ({count}) {ack}", flow.0, station.0));
            }
            Signal::SegmentsMissed => self.note("missed".to_owned()),
            Signal::Hop(_) => self.note("hop".to_owned()),
            _ => {}
        }
    }

    fn wants_segments(&self) -> bool {
        self.passed.is_some()
    }

    fn decide(&self, _: Time, each: &mut dyn FnMut(FlowId, Decision)) {
        let decision = Decision { rwnd: Some(self.window), ..Decision::unlimited(Why::Tight) };
        self.flows.keys().for_each(|id| each(*id, decision));
    }

    fn name(&self) -> &'static str {
        "fixed"
    }
}

#[derive(Default)]
struct Memory {
    flows: RefCell<BTreeMap<Key, Flow>>,
    beats: RefCell<Vec<Time>>,
    /// No packet comes any more, and none has for so long.
    idle: Cell<bool>,
    unused: Cell<Span>,
    /// Flows that are shown when they have changed, and how many times any has been shown.
    unattended: RefCell<BTreeSet<Key>>,
    shown: Cell<u64>,
    /// Packets have begun to pass the programs by.
    bypassed: Cell<bool>,
    /// What the program tells, and how often it had no room for that.
    events: RefCell<Vec<Event>>,
    missed: Cell<u64>,
}

/// The last octets of a station's address stand for the place.
fn slot(key: &Key) -> Slot {
    let IpAddr::V4(station) = key.station_address() else { panic!("IPv4 only") };
    Slot(station.to_bits() & 0xffff)
}

impl Memory {
    fn at(&self, place: Slot, born: Time, act: impl FnOnce(&Key, &mut Flow)) -> bool {
        let mut flows = self.flows.borrow_mut();
        let there = flows.iter_mut().find(|(key, flow)| slot(key) == place && flow.born() == born);
        there.map(|(key, flow)| act(key, flow)).is_some()
    }
}

impl Enforcer for Memory {
    fn look(&self, all: bool, each: &mut dyn FnMut(Seen<'_>) -> Attention) {
        let (changed, unused) = (!self.idle.get(), self.unused.get());
        let shown = |key: &&Key| all || changed || !self.unattended.borrow().contains(*key);
        let keys: Vec<Key> = self.flows.borrow().keys().filter(shown).copied().collect();
        self.shown.set(self.shown.get() + keys.len() as u64);
        for key in &keys {
            let flow = &self.flows.borrow()[key].clone();
            match each(Seen { slot: slot(key), key, flow, changed, unused }) {
                Attention::Always => self.unattended.borrow_mut().remove(key),
                Attention::OnChange => self.unattended.borrow_mut().insert(*key),
            };
        }
    }

    fn set_target(&self, slot: Slot, born: Time, target: Option<Bytes>) -> bool {
        self.at(slot, born, |_, flow| flow.set_target(target))
    }

    fn forget(&self, slot: Slot, born: Time) {
        let mut gone = None;
        self.at(slot, born, |key, _| gone = Some(*key));
        gone.map(|key| self.flows.borrow_mut().remove(&key));
    }

    fn holds(&self, slot: Slot, born: Time) -> bool {
        self.at(slot, born, |_, _| ())
    }

    fn heartbeat(&self, now: Time) -> Result<(), Error> {
        self.beats.borrow_mut().push(now);
        Ok(())
    }

    fn events(&self, into: &mut Vec<Event>) -> Result<bool, Error> {
        into.append(&mut self.events.borrow_mut());
        Ok(true)
    }

    fn missed(&self) -> u64 {
        self.missed.get()
    }

    fn without_place(&self) -> u64 {
        0
    }

    fn sees_all(&self) -> Result<(), Error> {
        if self.bypassed.get() { Err(Error::Offloaded { found: "a switch".to_owned() }) } else { Ok(()) }
    }
}

impl Clock for Cell<Time> {
    fn now(&self) -> Time {
        self.get()
    }

    fn rest(&self, span: Span) {
        self.set(self.get() + span);
    }
}

/// What happens in one turn of the loop.
enum Turn {
    Report,
    /// A report with a station that stands in it twice.
    Twice,
    Stale,
    Silence,
    /// A message that is no record.
    Noise,
    Gone,
    Then(Box<dyn Fn(&Memory)>),
}

struct Script<'a> {
    turns: std::vec::IntoIter<Turn>,
    memory: &'a Memory,
    now: &'a Cell<Time>,
    stop: &'a Stop,
    reconnections: u32,
}

impl Script<'_> {
    /// Station 3 is known by its hardware address only.
    fn addresses(&self) -> BTreeMap<Node, [u8; 6]> {
        BTreeMap::from([(Node(3), [2, 0, 0, 0, 0, 3])])
    }
}

impl DriverSource for Script<'_> {
    fn newest(&mut self, patience: Span) -> io::Result<Option<Record>> {
        let now = self.now.get() + Span::from_millis(4);
        self.now.set(now);
        match self.turns.next() {
            Some(Turn::Report) => Ok(Some(Record { at: now, addresses: self.addresses(), ..Record::default() })),
            Some(Turn::Twice) => {
                let mut record = Record { at: now, ..Record::default() };
                record.report.stations = vec![StationReport::unseen(Node(4)); 2];
                Ok(Some(record))
            }
            Some(Turn::Stale) => Ok(Some(Record { at: now.saturating_sub(Span::from_secs(2)), ..Record::default() })),
            Some(Turn::Silence) => {
                self.now.set(now + patience);
                Ok(None)
            }
            Some(Turn::Noise) => Err(io::ErrorKind::InvalidData.into()),
            Some(Turn::Gone) => Err(io::ErrorKind::ConnectionReset.into()),
            Some(Turn::Then(act)) => {
                act(self.memory);
                self.newest(patience)
            }
            None => {
                self.stop.ask();
                Ok(None)
            }
        }
    }

    fn reconnect(&mut self) -> io::Result<()> {
        self.reconnections += 1;
        Ok(())
    }
}

fn key(station: [u8; 4]) -> Key {
    let flow = FlowKey {
        source: [192, 0, 2, 1].into(),
        destination: station.into(),
        source_port: 443,
        destination_port: 50_000,
        protocol: lasthop_wire::ip::TCP,
    };
    Key::of_downlink(&flow).expect("a TCP flow")
}

fn syn(isn: u32) -> TcpHeader {
    TcpHeader {
        source_port: 50_000,
        destination_port: 443,
        seq: isn,
        ack: 0,
        flags: Flags::SYN,
        window: 65_000,
        options: TcpOptions::default(),
        payload_len: 0,
    }
}

/// A connection that has carried nothing yet.
fn handshake(at: Time, isn: u32) -> Flow {
    let syn = syn(isn);
    let mut flow = Flow::default();
    let _ = flow.on_uplink(at, &syn);
    let answer = TcpHeader { seq: 7, ack: isn.wrapping_add(1), flags: Flags::SYN | Flags::ACK, ..syn };
    flow.on_downlink(at + Span::from_micros(1), &answer);
    flow
}

/// The first segment to its station.
fn segment(isn: u32) -> TcpHeader {
    TcpHeader { seq: 8, ack: isn.wrapping_add(1), flags: Flags::ACK, payload_len: 1448, ..syn(isn) }
}

/// A connection that has carried a segment.
fn connection(at: Time, isn: u32) -> Flow {
    let mut flow = handshake(at, isn);
    flow.on_downlink(at + Span::from_micros(2), &segment(isn));
    flow
}

struct Outcome {
    tally: Tally,
    gone: Vec<FlowId>,
    reconnections: u32,
    ended: Result<(), Error>,
}

fn play(memory: &Memory, turns: Vec<Turn>, log: Option<Log>) -> (Outcome, Option<Log>) {
    play_saying(memory, turns, log, |_| {})
}

fn play_saying(memory: &Memory, turns: Vec<Turn>, log: Option<Log>, say: Say) -> (Outcome, Option<Log>) {
    play_law(memory, turns, log, say, fixed())
}

fn fixed() -> Fixed {
    Fixed { window: Bytes::new(20_000), flows: BTreeMap::new(), gone: std::sync::Arc::default(), passed: None }
}

fn play_law(memory: &Memory, turns: Vec<Turn>, log: Option<Log>, say: Say, law: Fixed) -> (Outcome, Option<Log>) {
    let gone = std::sync::Arc::clone(&law.gone);
    let (now, stop) = (Cell::new(START), Stop::new());
    let stations = [(IpAddr::from([10, 0, 0, 1]), Node(1)), (IpAddr::from([10, 0, 0, 2]), Node(2))];
    let stations = Stations::new(&stations);
    let mut agent = Agent::new(Box::new(law), memory, stations, (Span::from_millis(500), 4_096), log, say);
    let mut script = Script { turns: turns.into_iter(), memory, now: &now, stop: &stop, reconnections: 0 };
    let ended = agent.run(&mut script, &now, &stop);
    let gone = gone.lock().expect("not poisoned").clone();
    (Outcome { tally: agent.tally, gone, reconnections: script.reconnections, ended }, agent.log)
}

fn target(memory: &Memory, station: [u8; 4]) -> Option<Bytes> {
    memory.flows.borrow()[&key(station)].target()
}

#[test]
fn every_flow_of_a_known_station_gets_its_target_once() {
    let memory = Memory::default();
    for station in [[10, 0, 0, 1], [10, 0, 0, 2], [10, 0, 0, 3], [10, 0, 0, 9]] {
        let mut flow = connection(START, 5);
        flow.note_hardware(&syn(5), [2, 0, 0, 0, 0, station[3]]);
        memory.flows.borrow_mut().insert(key(station), flow);
    }
    let check = Turn::Then(Box::new(|memory: &Memory| {
        assert_eq!(target(memory, [10, 0, 0, 1]), Some(Bytes::new(20_000)));
        assert_eq!(target(memory, [10, 0, 0, 2]), Some(Bytes::new(20_000)));
        assert_eq!(target(memory, [10, 0, 0, 3]), Some(Bytes::new(20_000)), "learned");
        assert_eq!(target(memory, [10, 0, 0, 9]), None, "nobody said which station that is");
    }));
    let (outcome, _) = play(&memory, vec![Turn::Report, Turn::Report, Turn::Report, check], None);
    outcome.ended.expect("memory does not fail");
    assert_eq!((outcome.tally.strangers, outcome.tally.untimed), (1, 0));
    // Each is lifted once more in the end.
    assert_eq!((outcome.tally.intervals, outcome.tally.flows, outcome.tally.orders), (3, 3, 6));
    assert!([1, 2, 3, 9].iter().all(|n| target(&memory, [10, 0, 0, *n]).is_none()), "nothing stays limited");
    assert_eq!(memory.beats.borrow().len(), 5);
}

#[test]
fn windows_that_differ_little_are_left_as_they_are() {
    let bytes = |octets| Some(Bytes::new(octets));
    assert!(!differs(bytes(100_000), bytes(103_000)) && !differs(bytes(100_000), bytes(97_000)));
    assert!(differs(bytes(100_000), bytes(104_000)) && differs(bytes(100_000), bytes(96_000)));
    assert!(differs(None, bytes(1)) && differs(bytes(1), None) && !differs(None, None));
}

/// A flow that is limited, and stays so: its station says nothing more.
fn limited_connection() -> Flow {
    let mut flow = connection(START, 5);
    flow.set_target(Some(Bytes::new(20_000)));
    let options = TcpOptions::default();
    let ack = TcpHeader {
        source_port: 0,
        destination_port: 0,
        seq: 6,
        ack: 8,
        flags: Flags::ACK,
        window: 60_000,
        options,
        payload_len: 0,
    };
    let _ = flow.on_uplink(START + Span::from_nanos(1), &ack);
    assert_eq!(flow.window(), Some(Bytes::new(20_000)));
    flow
}

#[test]
fn a_stopping_agent_waits_for_opening_windows_with_a_limit() {
    let farewell = |idle: bool| {
        let memory = Memory::default();
        memory.flows.borrow_mut().insert(key([10, 0, 0, 1]), limited_connection());
        memory.idle.set(idle);
        let (outcome, _) = play(&memory, vec![Turn::Report], None);
        assert_eq!(target(&memory, [10, 0, 0, 1]), None);
        outcome.tally.farewell
    };
    assert_eq!(farewell(false), FAREWELL);
    assert!(farewell(true) > ASLEEP && farewell(true) < ASLEEP + LOOK * 2);
}

#[test]
fn a_bypassed_agent_opens_all_windows_and_says_why_it_ends() {
    let memory = Memory::default();
    memory.flows.borrow_mut().insert(key([10, 0, 0, 1]), connection(START, 5));
    let bypassed = Turn::Then(Box::new(|memory: &Memory| {
        assert!(target(memory, [10, 0, 0, 1]).is_some());
        memory.bypassed.set(true);
    }));
    // Half a minute of reports, of which most are never asked for.
    let turns = [Turn::Report, bypassed].into_iter().chain((0..7500).map(|_| Turn::Report)).collect();
    let (outcome, _) = play(&memory, turns, None);
    assert!(matches!(outcome.ended, Err(Error::Offloaded { .. })), "{:?}", outcome.ended);
    let intervals = outcome.tally.intervals;
    assert!((2..=251).contains(&intervals), "noticed within a second: {intervals} reports of 4 ms");
    assert_eq!(target(&memory, [10, 0, 0, 1]), None);
}

#[test]
fn a_silent_driver_releases_all_until_it_reports_again() {
    let memory = Memory::default();
    memory.flows.borrow_mut().insert(key([10, 0, 0, 1]), connection(START, 5));
    let limited = |expected: bool| {
        Turn::Then(Box::new(move |memory: &Memory| {
            assert_eq!(target(memory, [10, 0, 0, 1]).is_some(), expected);
        }))
    };
    let silence = || Turn::Silence;
    let turns = vec![
        Turn::Report,
        limited(true),
        silence(),
        silence(),
        silence(),
        silence(),
        silence(),
        silence(),
        silence(),
        silence(),
        silence(),
        limited(true),
        silence(),
        limited(false),
        Turn::Stale,
        limited(false),
        Turn::Report,
        limited(true),
        Turn::Gone,
        limited(true),
        Turn::Report,
    ];
    let (outcome, _) = play(&memory, turns, None);
    assert_eq!((outcome.tally.driver_losses, outcome.tally.stale_reports), (1, 1));
    assert_eq!(outcome.reconnections, 1);
    let beats = memory.beats.borrow();
    let longest = beats.windows(2).map(|pair| pair[1] - pair[0]).max().expect("several beats");
    assert!(longest < Span::from_millis(250), "the heart beats on while the driver is silent: {longest}");
}

#[test]
fn invalid_messages_are_counted_and_keep_the_connection() {
    let memory = Memory::default();
    memory.flows.borrow_mut().insert(key([10, 0, 0, 1]), connection(START, 5));
    let limited = |expected: bool| {
        Turn::Then(Box::new(move |memory: &Memory| {
            assert_eq!(target(memory, [10, 0, 0, 1]).is_some(), expected);
        }))
    };
    // Longer than the age limit in all: with a record now and then, and without.
    for (every, losses) in [(20, 0), (400, 1)] {
        let mut turns: Vec<Turn> = (0..400).map(|n| if n % every == 0 { Turn::Report } else { Turn::Noise }).collect();
        turns.push(limited(losses == 0));
        let (outcome, _) = play(&memory, turns, None);
        assert_eq!(outcome.tally.refused_reports, 400 - 400 / every);
        assert_eq!((outcome.tally.driver_losses, outcome.reconnections), (losses, 0));
    }
}

#[test]
fn flows_that_end_or_vanish_or_change_are_told_to_the_law() {
    let memory = Memory::default();
    memory.flows.borrow_mut().insert(key([10, 0, 0, 1]), connection(START, 5));
    memory.flows.borrow_mut().insert(key([10, 0, 0, 2]), connection(START, 5));
    let turns = vec![
        Turn::Report,
        Turn::Then(Box::new(|memory| {
            let mut flows = memory.flows.borrow_mut();
            // One connection takes the place of another; the other is reset.
            flows.insert(key([10, 0, 0, 1]), connection(START + Span::from_nanos(1), 6));
            let reset = TcpHeader {
                source_port: 0,
                destination_port: 0,
                seq: 0,
                ack: 0,
                flags: Flags::RST,
                window: 0,
                options: TcpOptions::default(),
                payload_len: 0,
            };
            flows.get_mut(&key([10, 0, 0, 2])).expect("there").on_downlink(START + Span::from_nanos(2), &reset);
        })),
        Turn::Report,
        Turn::Report,
        Turn::Then(Box::new(|memory| assert_eq!(target(memory, [10, 0, 0, 1]), Some(Bytes::new(20_000))))),
    ];
    let (outcome, _) = play(&memory, turns, None);
    assert_eq!(outcome.gone, [FlowId(0), FlowId(1)]);
    assert_eq!(outcome.tally.flows, 3);
    assert_eq!(memory.flows.borrow().len(), 1, "what is over leaves the map");
}

#[test]
fn the_log_has_one_object_a_line_with_what_a_replay_needs() {
    let memory = Memory::default();
    memory.flows.borrow_mut().insert(key([10, 0, 0, 1]), connection(START, 5));
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("decisions.jsonl");
    let log = Log::create(&path).expect("a writable directory");
    let vanish = Turn::Then(Box::new(|memory: &Memory| memory.flows.borrow_mut().clear()));
    let (_, log) = play(&memory, vec![Turn::Report, Turn::Report, vanish, Turn::Report], Some(log));
    assert!(log.expect("still there").finish().is_none());
    let text = std::fs::read_to_string(&path).expect("written");
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect();
    assert_eq!(lines[0]["opened"]["station_address"], "10.0.0.1:50000");
    assert_eq!(lines[1]["flows"][0]["target"], 20_000);
    assert_eq!(lines[1]["flows"][0]["why"], "Tight");
    assert_eq!(lines[3]["gone"], 0);
    assert_eq!(lines.len(), 5);
    assert!(lines.windows(2).all(|pair| pair[0]["t_ns"].as_u64() <= pair[1]["t_ns"].as_u64()));
}

#[test]
fn contradictory_records_are_logged_once_counted_and_ignored() {
    static SAID: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());
    let memory = Memory::default();
    memory.flows.borrow_mut().insert(key([10, 0, 0, 1]), connection(START, 5));
    let limited = |expected: bool| {
        Turn::Then(Box::new(move |memory: &Memory| {
            assert_eq!(target(memory, [10, 0, 0, 1]).is_some(), expected);
        }))
    };
    // 600 ms of lies, of which the last good record outlives 500.
    let lies = || (0..75).map(|_| Turn::Twice);
    let mut turns = vec![Turn::Report];
    turns.extend(lies());
    turns.push(limited(true));
    turns.extend(lies());
    turns.extend([limited(false), Turn::Report, limited(true)]);
    let (outcome, _) = play_saying(&memory, turns, None, |line| {
        SAID.lock().expect("not poisoned").push(line.to_owned());
    });
    assert_eq!((outcome.tally.refused_reports, outcome.tally.driver_losses), (150, 1));
    assert_eq!(outcome.tally.intervals, 2);
    let said = SAID.lock().expect("not poisoned").clone();
    let told = said.iter().filter(|line| line.contains("station 4 is listed twice")).count();
    assert_eq!(told, 1, "{said:?}");
}

#[test]
fn idle_flows_rest_and_finally_leave_the_table() {
    let memory = Memory::default();
    // 1500 handshakes, of stations that are known by hardware address, and one flow that carries something.
    for n in 0..1_500u16 {
        let [high, low] = (n + 256).to_be_bytes();
        let mut flow = handshake(START, 5);
        flow.note_hardware(&syn(5), [2, 0, 0, 0, 0, 3]);
        memory.flows.borrow_mut().insert(key([10, 1, high, low]), flow);
    }
    memory.flows.borrow_mut().insert(key([10, 0, 0, 1]), connection(START, 5));
    memory.idle.set(true);
    let is = |station: [u8; 4], limited: bool| {
        Turn::Then(Box::new(move |memory: &Memory| assert_eq!(target(memory, station).is_some(), limited)))
    };
    let mut turns = vec![Turn::Report, Turn::Report, is([10, 1, 1, 0], false), is([10, 0, 0, 1], true)];
    turns.push(Turn::Then(Box::new(|memory: &Memory| memory.shown.set(0))));
    turns.extend((0..100).map(|_| Turn::Report));
    turns.push(Turn::Then(Box::new(|memory: &Memory| {
        assert_eq!(memory.shown.get(), 100, "looks at flows in 100 intervals");
        memory.unused.set(EXPIRY_UNUSED);
    })));
    turns.extend((0..300).map(|_| Turn::Report));
    let (outcome, _) = play(&memory, turns, None);
    assert_eq!((outcome.tally.flows, outcome.tally.expired), (1, 1_500));
    assert_eq!(memory.flows.borrow().len(), 1, "the one that has carried something may rest for longer");
}

#[test]
fn a_flow_that_wakes_up_is_the_same_and_is_limited_again() {
    let memory = Memory::default();
    memory.flows.borrow_mut().insert(key([10, 0, 0, 1]), connection(START, 5));
    memory.idle.set(true);
    let is = |limited: bool| {
        Turn::Then(Box::new(move |memory: &Memory| {
            assert_eq!(target(memory, [10, 0, 0, 1]).is_some(), limited);
        }))
    };
    let wake = Turn::Then(Box::new(|memory: &Memory| {
        let at = memory.beats.borrow().last().copied().expect("a beat");
        memory.flows.borrow_mut().get_mut(&key([10, 0, 0, 1])).expect("there").on_downlink(at, &segment(5));
        memory.unattended.borrow_mut().clear();
    }));
    let mut turns = vec![Turn::Report, is(true)];
    turns.extend((0..1_300).map(|_| Turn::Report));
    turns.extend([is(false), wake, Turn::Report, is(true)]);
    let (outcome, _) = play(&memory, turns, None);
    assert_eq!((outcome.tally.flows, outcome.gone.len()), (1, 1));
}

#[test]
fn a_closing_driver_is_retried_with_backoff_and_stops_are_seen() {
    let memory = Memory::default();
    // Whoever answers and closes at once, for 30 seconds of turns.
    let turns = (0..600).map(|_| Turn::Gone).collect();
    let (outcome, _) = play(&memory, turns, None);
    let beats = memory.beats.borrow();
    let passed = *beats.last().expect("beats") - beats[0];
    let most = 7 + passed.as_nanos() / 1_000_000_000;
    assert!(u64::from(outcome.reconnections) <= most, "{} in {passed}", outcome.reconnections);
    let longest = beats.windows(2).map(|pair| pair[1] - pair[0]).max().expect("several beats");
    assert!(longest <= Span::from_millis(100), "a stop is seen within {longest}");
}

/// The program's own table, under a test clock.
#[cfg(feature = "bpf")]
mod full_table {
    use super::*;
    use crate::ap::kernel::{Direction, Load, Rewriter};
    use crate::service::privileges;
    use lasthop_laws::oal::{AccessPoint, Params};
    use lasthop_units::Rate;
    use lasthop_wire::ip::Ecn;
    use lasthop_wire::{ethernet, ip_tcp_packet};
    use nix::time::{ClockId, clock_gettime};
    use std::io::Write as _;

    impl Enforcer for Rewriter {
        fn look(&self, all: bool, each: &mut dyn FnMut(Seen<'_>) -> Attention) {
            Rewriter::look(self, all, each);
        }

        fn set_target(&self, slot: Slot, born: Time, target: Option<Bytes>) -> bool {
            self.set_target_at(slot, born, target)
        }

        fn forget(&self, slot: Slot, born: Time) {
            self.forget_at(slot, born);
        }

        fn holds(&self, slot: Slot, born: Time) -> bool {
            self.holds_at(slot, born)
        }

        fn heartbeat(&self, now: Time) -> Result<(), Error> {
            self.set_test_time(now);
            Ok(Rewriter::heartbeat(self, now)?)
        }

        fn sees_all(&self) -> Result<(), Error> {
            Ok(())
        }

        fn events(&self, into: &mut Vec<Event>) -> Result<bool, Error> {
            Ok(Rewriter::events(self, into)?)
        }

        fn missed(&self) -> u64 {
            0
        }

        fn without_place(&self) -> u64 {
            self.counted().expect("a map").evicted
        }
    }

    /// A handshake as the program sees it, and a segment behind it if it carries something.
    fn open(rewriter: &Rewriter, station: [u8; 4], carries: bool) {
        let down = key(station).downlink();
        let up = FlowKey {
            source: down.destination,
            destination: down.source,
            source_port: down.destination_port,
            destination_port: down.source_port,
            ..down
        };
        let frame = |flow: &FlowKey, header: &TcpHeader| {
            let payload = vec![0; header.payload_len as usize];
            let packet = ip_tcp_packet(flow, Ecn::NotEct, header, &payload).expect("a short packet");
            let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 3];
            frame.extend_from_slice(&ethernet::IPV4.to_be_bytes());
            frame.extend_from_slice(&packet);
            frame
        };
        let answer = TcpHeader { seq: 7, ack: 6, flags: Flags::SYN | Flags::ACK, ..syn(5) };
        let last = TcpHeader { seq: 6, ack: 8, flags: Flags::ACK, ..syn(5) };
        let packets = [
            (Direction::Uplink, frame(&up, &syn(5))),
            (Direction::Downlink, frame(&down, &answer)),
            (Direction::Uplink, frame(&up, &last)),
            (Direction::Downlink, frame(&down, &segment(5))),
        ];
        for (direction, packet) in packets.into_iter().take(if carries { 4 } else { 3 }) {
            rewriter.test_run(direction, &packet).expect("a run");
        }
    }

    fn busy() -> Span {
        // The usual account goes by the kernel's ticks.
        let used = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("always there");
        Span::from_nanos(used.tv_sec() as u64 * 1_000_000_000 + used.tv_nsec() as u64)
    }

    #[test]
    fn nine_thousand_handshakes_cost_little() {
        if !(privileges::has(privileges::SYS_ADMIN) || privileges::has(privileges::BPF)) {
            let _ = writeln!(std::io::stderr(), "SKIPPED: a full table: needs root");
            return;
        }
        for carries in [false, true] {
            let (held, flows, costs) = cost_of_9000(carries);
            let longest = costs.iter().copied().max().expect("intervals");
            let mean = costs.iter().copied().sum::<Span>() / costs.len() as u64;
            println!("{held} flows, carrying: {carries}: longest interval {longest}, mean {mean}");
            assert!(held > 4_096 && if carries { flows >= 4_096 } else { flows == 0 }, "{flows} of {held} flows");
            assert!(longest < Span::from_millis(20), "{longest} of processor time");
            // A tenth of a processor at 250 intervals a second, and a half until those that carried something rest.
            assert!(mean < Span::from_micros(if carries { 2_000 } else { 400 }), "{mean} an interval");
        }
    }

    /// Flows in the table, how many of them the agent has managed, and the processor time of each of 300 intervals.
    fn cost_of_9000(carries: bool) -> (u64, u64, Vec<Span>) {
        let rewriter = Rewriter::load(Load { test_clock: true, ..Load::default() }).expect("programs");
        Enforcer::heartbeat(&rewriter, START).expect("a beat");
        for n in 0..9_000u16 {
            let [high, low] = (n + 256).to_be_bytes();
            open(&rewriter, [10, 1, high, low], carries);
        }
        let held = rewriter.flows().len() as u64;
        let law = AccessPoint::new(Params::default()).expect("valid parameters");
        let limits = (Span::from_millis(500), 4_096);
        let mut agent = Agent::new(Box::new(law), &rewriter, Stations::new(&[]), limits, None, |_| {});
        let interval = |n: u64| {
            let now = START + Span::from_millis(4 * n);
            Enforcer::heartbeat(&rewriter, now).expect("a beat");
            let addresses = BTreeMap::from([(Node(3), [2, 0, 0, 0, 0, 3])]);
            let mut record = Record { at: now, addresses, ..Record::default() };
            record.report.channel.active = Span::from_millis(4 * n);
            let station = StationReport::unseen(Node(3));
            record.report.stations = vec![StationReport { phy_rate: Rate::from_mbit(100), ..station }];
            let before = busy();
            agent.interval(now, record, n.is_multiple_of(250)).expect("a map");
            busy() - before
        };
        let costs = (1..=300).map(interval).collect();
        (held, agent.tally.flows, costs)
    }
}

#[test]
fn a_law_hears_segments_in_their_interval_and_of_missed_ones() {
    let memory = Memory::default();
    // From 8 on it has carried 1448 octets, three segments without an MSS option; then it repeats them.
    let repeat = |memory: &Memory| {
        let at = START + Span::from_millis(6);
        let event =
            Event::test((key([10, 0, 0, 1]), START + Span::from_millis(5), at), (1456, 8), false, (8, 1448, 6), &[]);
        memory.events.borrow_mut().push(event);
    };
    let turns: Vec<Turn> = vec![
        Turn::Report,
        Turn::Then(Box::new(move |memory: &Memory| {
            memory.flows.borrow_mut().insert(key([10, 0, 0, 1]), connection(START + Span::from_millis(5), 5));
            repeat(memory);
        })),
        Turn::Report,
        Turn::Then(Box::new(move |memory: &Memory| {
            repeat(memory);
            memory.missed.set(7);
        })),
        Turn::Report,
        Turn::Report,
    ];
    let passed = std::sync::Arc::default();
    let law = Fixed { passed: Some(std::sync::Arc::clone(&passed)), ..fixed() };
    let (outcome, _) = play_law(&memory, turns, None, |_| {}, law);
    outcome.ended.expect("memory does not fail");
    let passed = passed.lock().expect("not poisoned").clone();
    assert_eq!(passed, ["hop", "0 1 Down 8+1448 (3) 0", "0 1 Down 8+1448 (0) 0", "hop", "missed", "hop", "hop"]);
    assert_eq!(outcome.tally.events_missed, 7);
}
