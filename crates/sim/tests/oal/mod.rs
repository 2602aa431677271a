//! What an access point saw in a world, and what became of it: a log of signals, as a law gets them, beside what the simulator lost.
#![allow(dead_code, reason = "each user of this module uses part of it")]

use crate::support::{CUBIC, Wifi};
use lasthop_laws::oal::label::{Collector, Item, Timing};
use lasthop_laws::{Decision, HopLaw};
use lasthop_scenario::Scenario;
use lasthop_signals::{FlowId, Node, Signal, Way};
use lasthop_sim::hook::{Forwarded, Hook, Interface, Lost};
use lasthop_sim::{Agent, Payload, build};
use lasthop_units::{Seed, Time};
use lasthop_wire::FlowKey;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// A world with a hop that carries about as much as its name says, and loses.
pub struct World {
    pub name: &'static str,
    pub seconds: u64,
    text: String,
}

/// Downloads that fill the queue, and bursts of short ones.
fn world(
    name: &'static str,
    seconds: u64,
    (width, mcs, queue): (&str, &str, u32),
    (flows, fetch): (u32, &str),
) -> World {
    let (times, queue) = (format!("{seconds} s"), format!("{{ kind = \"fifo\", limit = \"{queue} packets\" }}"));
    let traffic = format!(
        "[[traffic]]\nkind = \"bulk\"\nto = \"each\"\nflows = {flows}\n\
         [[traffic]]\nkind = \"fetch\"\nto = \"each\"\nsize = \"{fetch}\"\nevery = \"700 ms\"\n\
         [[traffic]]\nkind = \"fetch\"\nto = \"a-1\"\nsize = \"{fetch}\"\nevery = \"310 ms\"\n"
    );
    let rest = format!("[[station]]\nname = \"a\"\ncount = 2\n{mcs}\n") + &traffic + CUBIC;
    let text = Wifi { times: (&times, "1 s"), delay: "10 ms", width, queue: &queue, rest: &rest, ..Wifi::default() };
    World { name, seconds, text: text.text() }
}

/// About 10, 100 and 500 Mbit/s.
pub fn worlds() -> [World; 3] {
    [
        world("10 Mbit/s", 60, ("20 MHz", "mcs = 1", 60), (2, "40 kB")),
        world("100 Mbit/s", 30, ("40 MHz", "mcs = 6", 120), (4, "300 kB")),
        world("500 Mbit/s", 24, ("80 MHz", "mcs = 9\nnss = 2", 400), (6, "3 MB")),
    ]
}

/// A world with a queue that overflows and a radio that gives packets up, too.
pub fn lossy() -> World {
    let mcs = "mcs = 6\nmpdu-error-rate = 0.1";
    let lossy = world("lossy", 30, ("40 MHz", mcs, 40), (8, "300 kB"));
    World { text: lossy.text.replace("[hop.wifi]", "[hop.wifi]\nretry-limit = 2"), ..lossy }
}

impl World {
    /// The shipped world that loses as the paper's access points did.
    pub fn library() -> World {
        let text = std::fs::read_to_string(crate::support::shipped("oal/learned.toml")).expect("a shipped scenario");
        World { name: "library", seconds: 60, text }
    }

    /// The same with further traffic (TOML).
    pub fn beside(self, traffic: &str) -> World {
        World { text: self.text.replacen("[hop.wifi]", &format!("{traffic}\n[hop.wifi]"), 1), ..self }
    }

    pub fn scenario(&self) -> Scenario {
        crate::support::parse(&self.text)
    }
}

/// A first copy that entered the access point's queue.
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    pub at: Time,
    pub flow: FlowKey,
    pub station: Node,
    pub seq: u32,
    /// Whether it was lost, and if so whether on the air.
    pub lost: Option<bool>,
}

/// What was seen and what was lost.
pub struct Run {
    pub signals: Vec<(Time, Signal)>,
    pub copies: Vec<Copy>,
    pub end: Time,
}

/// A law that only listens.
#[derive(Clone, Default)]
struct Listener(Arc<Mutex<Vec<(Time, Signal)>>>);

impl HopLaw for Listener {
    fn sense(&mut self, now: Time, signal: &Signal) {
        self.0.lock().expect("one thread").push((now, signal.clone()));
    }

    fn wants_segments(&self) -> bool {
        true
    }

    fn decide(&self, _: Time, _: &mut dyn FnMut(FlowId, Decision)) {}

    fn name(&self) -> &'static str {
        "listener"
    }
}

/// The simulator's truth.
#[derive(Clone)]
struct Truth {
    radio: Interface,
    told: Arc<Mutex<Told>>,
}

#[derive(Default)]
struct Told {
    copies: Vec<Copy>,
    /// For each flow, where its octets are among these: by the first octet of the copy, with the octet behind it.
    octets: BTreeMap<FlowKey, BTreeMap<u32, (u32, usize)>>,
    /// Copies by the packet that carried them: a repeat of a segment has another timestamp.
    packets: BTreeMap<(FlowKey, u32, u32), usize>,
}

impl Hook for Truth {
    fn egress(&mut self, forwarded: &mut Forwarded<'_>) {
        let (Payload::Tcp { header, .. }, Some(flow)) = (&forwarded.packet.payload.content, forwarded.key) else {
            return;
        };
        if forwarded.interface != self.radio || header.payload_len == 0 {
            return;
        }
        let mut told = self.told.lock().expect("one thread");
        let told = &mut *told;
        // No run comes round to where it began; the first octet is as far from zero as any.
        let octets = told.octets.entry(flow).or_default();
        let end = header.seq.wrapping_add(header.payload_len);
        let passed = |octet: u32| {
            let before = octets.range(..=octet).next_back().or_else(|| octets.iter().next_back());
            before.is_some_and(|(start, (end, _))| octet.wrapping_sub(*start) < end.wrapping_sub(*start))
        };
        if !passed(header.seq) && !passed(end.wrapping_sub(1)) {
            let val = header.options.timestamps.expect("both ends use them").val;
            let (at, station, seq) = (forwarded.at, forwarded.beside, header.seq);
            octets.insert(seq, (end, told.copies.len()));
            told.packets.insert((flow, seq, val), told.copies.len());
            told.copies.push(Copy { at, flow, station, seq, lost: None });
        }
    }

    fn lost(&mut self, _: Time, interface: Interface, lost: &Lost<'_>) {
        let (Payload::Tcp { header, .. }, Some(flow)) = (lost.payload, lost.key) else { return };
        let Some(timestamps) = header.options.timestamps.filter(|_| interface == self.radio) else { return };
        let mut told = self.told.lock().expect("one thread");
        if let Some(copy) = told.packets.get(&(flow, header.seq, timestamps.val)).copied() {
            told.copies[copy].lost = Some(lost.on_air);
        }
    }
}

/// Runs a world without an acting law.
pub fn run(world: &World, seed: u64) -> Run {
    let scenario = world.scenario();
    let law = scenario.law("cubic").expect("it has it");
    let mut world = build(&scenario, &law, Seed(seed), false).expect("valid parameters");
    let (radio, listener) = (world.radio(0), Listener::default());
    let truth = Truth { radio, told: Arc::default() };
    world.add_hook(Scenario::AP_HOST, Box::new(Agent::with_law(Box::new(listener.clone()), radio)));
    world.add_hook(Scenario::AP_HOST, Box::new(truth.clone()));
    let end = Time::ZERO + scenario.duration();
    world.run_until(end);
    let signals = std::mem::take(&mut *listener.0.lock().expect("one thread"));
    let copies = std::mem::take(&mut truth.told.lock().expect("one thread").copies);
    Run { signals, copies, end }
}

impl Run {
    /// The items that a collector makes of it.
    pub fn items(&self, timing: Timing) -> Vec<Item> {
        let (mut collector, mut items) = (Collector::new(timing), Vec::new());
        for (now, signal) in &self.signals {
            collector.sense(*now, signal);
            collector.take(|item| items.push(item));
        }
        items
    }

    /// The number by which the access point calls each flow.
    pub fn flows(&self) -> BTreeMap<(Node, u32), FlowId> {
        let mut flows = BTreeMap::new();
        for (_, signal) in &self.signals {
            if let Signal::Segment(segment) = signal
                && segment.way == Way::Down
                && segment.len > 0
            {
                flows.entry((segment.station, segment.seq)).or_insert(segment.flow);
            }
        }
        flows
    }

    /// First copies for a station in `(after, until]`, and how many of them a queue has lost.
    pub fn truth(&self, station: Node, after: Time, until: Time) -> (u64, u64) {
        let from = self.copies.partition_point(|copy| copy.at <= after);
        let copies = self.copies[from..].iter().take_while(|copy| copy.at <= until);
        copies
            .filter(|copy| copy.station == station)
            .fold((0, 0), |(all, lost), copy| (all + 1, lost + u64::from(copy.lost == Some(false))))
    }
}

/// Right ones of those that were said, and of those that are.
#[derive(Clone, Copy, Default, Debug)]
pub struct Score {
    pub said: u64,
    pub are: u64,
    pub both: u64,
}

impl Score {
    pub fn add(&mut self, said: bool, is: bool) {
        self.said += u64::from(said);
        self.are += u64::from(is);
        self.both += u64::from(said && is);
    }

    pub fn precision(&self) -> f64 {
        self.both as f64 / self.said.max(1) as f64
    }

    pub fn recall(&self) -> f64 {
        self.both as f64 / self.are.max(1) as f64
    }

    pub fn f(&self) -> f64 {
        2.0 * self.both as f64 / (self.said + self.are).max(1) as f64
    }
}
