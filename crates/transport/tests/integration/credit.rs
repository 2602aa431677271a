//! The windows of single streams and of all together: nothing is lost by them, and both ends' accounts agree after any history.

use lasthop_transport::tunnel::{Config, Endpoint, Event, Violation};
use lasthop_units::{Bytes, Rate, Seed, Span, Stream, Time};
use lasthop_wire::tunnel::{Data, Frame, OpenResult, packet_header};
use proptest::prelude::*;
use rand::RngExt;
use std::collections::{BTreeMap, BTreeSet};

/// Far less than all streams could want.
const BUDGET: u64 = 100_000;
const DELAY: Span = Span::from_millis(3);

/// Two ends, and a path that loses and delays.
struct World {
    now: Time,
    ends: [Endpoint; 2],
    under_way: BTreeMap<(Time, u64), (usize, u64, Vec<u8>)>,
    random: Stream,
    lose: f64,
    count: u64,
    /// Streams that each end knows of.
    streams: [BTreeSet<u32>; 2],
    /// Octets written to and read from each stream towards each end.
    written: BTreeMap<(usize, u32), u64>,
    read: BTreeMap<(usize, u32), u64>,
}

#[derive(Clone, Debug)]
enum Step {
    Open(usize),
    /// Writes to some stream, and perhaps ends it.
    Write {
        end: usize,
        which: usize,
        ends: bool,
    },
    Read {
        end: usize,
        which: usize,
    },
    Reset {
        end: usize,
        which: usize,
    },
    Refuse(usize),
    Wait(u64),
}

fn any_step() -> impl Strategy<Value = Step> {
    let (end, which) = (0..2usize, 0..20usize);
    prop_oneof![
        3 => end.clone().prop_map(Step::Open),
        6 => (end.clone(), which.clone(), 0u8..5)
            .prop_map(|(end, which, ends)| Step::Write { end, which, ends: ends == 0 }),
        6 => (end.clone(), which.clone()).prop_map(|(end, which)| Step::Read { end, which }),
        2 => (end.clone(), which).prop_map(|(end, which)| Step::Reset { end, which }),
        1 => end.prop_map(Step::Refuse),
        6 => (1u64..30).prop_map(Step::Wait),
    ]
}

impl World {
    fn new(seed: u64, lose: f64) -> World {
        let end = |config: Config| {
            let mut end = Endpoint::new(Config { budget: BUDGET, ..config });
            end.set_pacing(Time::ZERO, Rate::from_mbit(100), Bytes::new(1 << 30));
            end
        };
        World {
            now: Time::from_nanos(1_000_000_000),
            ends: [end(Config::station()), end(Config::proxy())],
            under_way: BTreeMap::new(),
            random: Seed(seed).stream("path"),
            lose,
            count: 0,
            streams: Default::default(),
            written: BTreeMap::new(),
            read: BTreeMap::new(),
        }
    }

    /// Lets time pass. Openings are answered: with success, unless `refuse` says which end does not.
    fn run_for(&mut self, span: Span, refuse: Option<usize>) {
        let until = self.now + span;
        let mut packet = Vec::new();
        loop {
            for end in 0..2 {
                while let Some(departure) = self.ends[end].poll_transmit(self.now, &mut packet) {
                    if !self.random.random_bool(self.lose) {
                        self.count += 1;
                        let arrives = (self.now + DELAY, self.count);
                        self.under_way.insert(arrives, (1 - end, departure.number, packet.clone()));
                    }
                }
            }
            let timers = self.ends.iter().filter_map(|end| end.next_timeout(self.now));
            let next = timers.chain(self.under_way.keys().next().map(|(at, _)| *at)).min();
            self.count += 1;
            assert!(self.count < 3_000_000, "the world stands still");
            self.now = next.unwrap_or(until).max(self.now).min(until);
            while let Some(entry) = self.under_way.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (to, number, packet) = entry.remove();
                self.ends[to].on_packet(self.now, number, &packet).expect("an honest peer");
            }
            for end in 0..2 {
                self.ends[end].on_timeout(self.now);
                while let Some(event) = self.ends[end].next_event() {
                    match event {
                        Event::Open { stream, .. } => {
                            let refused = refuse == Some(end);
                            let result = if refused { OpenResult::Refused } else { OpenResult::Connected };
                            self.ends[end].opened(stream, result);
                            if !refused {
                                self.streams[end].insert(stream);
                            }
                        }
                        // Whoever is refused ends its half.
                        Event::Opened { stream, result } if result != OpenResult::Connected => {
                            self.ends[end].reset(stream);
                            self.streams[end].remove(&stream);
                        }
                        Event::Reset(stream) => drop(self.streams[end].remove(&stream)),
                        _ => {}
                    }
                }
            }
            if self.now >= until {
                return;
            }
        }
    }

    fn some(&self, end: usize, which: usize) -> Option<u32> {
        let known = &self.streams[end];
        known.iter().nth(which % known.len().max(1)).copied()
    }

    fn read(&mut self, end: usize, stream: u32) {
        loop {
            let count = self.ends[end].readable(stream).len();
            if count == 0 {
                break;
            }
            *self.read.entry((end, stream)).or_default() += count as u64;
            self.ends[end].consume(self.now, stream, count);
        }
        self.ends[end].take_end(stream);
    }

    fn do_step(&mut self, step: &Step) {
        match *step {
            Step::Open(end) => {
                let stream = self.ends[end].open("host", 80);
                self.streams[end].insert(stream);
            }
            Step::Write { end, which, ends } => {
                let Some(stream) = self.some(end, which) else { return };
                let wanted = self.ends[end].wants(self.now, stream);
                self.ends[end].write(stream, &vec![7; wanted], self.now);
                *self.written.entry((1 - end, stream)).or_default() += wanted as u64;
                if ends {
                    self.ends[end].finish(stream);
                }
            }
            Step::Read { end, which } => {
                if let Some(stream) = self.some(end, which) {
                    self.read(end, stream);
                }
            }
            Step::Reset { end, which } => {
                if let Some(stream) = self.some(end, which) {
                    self.ends[end].reset(stream);
                    self.streams[end].remove(&stream);
                }
            }
            Step::Refuse(end) => self.run_for(Span::from_millis(5), Some(end)),
            Step::Wait(ms) => self.run_for(Span::from_millis(ms), None),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn all_credit_comes_back_after_any_open_read_and_reset(
        seed: u64, lose in 0.0..0.2, steps in prop::collection::vec(any_step(), 1..80),
    ) {
        let mut world = World::new(seed, lose);
        steps.iter().for_each(|step| world.do_step(step));
        // Then everybody reads, and half of what is left is given up.
        for round in 0..40 {
            for end in 0..2 {
                for stream in world.streams[end].clone() {
                    world.read(end, stream);
                    if round == 20 && stream % 4 < 2 {
                        world.ends[end].reset(stream);
                        world.streams[end].remove(&stream);
                    }
                }
            }
            world.run_for(Span::from_millis(500), None);
        }
        for (end, stream) in world.streams.iter().enumerate().flat_map(|(end, all)| all.iter().map(move |s| (end, *s))) {
            // A stream that was ended in both directions may be forgotten; one that was not given up has lost nothing.
            let count = |map: &BTreeMap<(usize, u32), u64>| map.get(&(end, stream)).copied().unwrap_or(0);
            prop_assert_eq!(count(&world.read), count(&world.written), "stream {} at end {}", stream, end);
        }
        for end in &world.ends {
            let room = end.room();
            prop_assert!((BUDGET * 3 / 4..=BUDGET).contains(&room), "{} of {}", room, BUDGET);
            prop_assert_eq!(end.backlog().total(), Bytes::ZERO);
        }
    }
}

#[test]
fn unread_streams_hold_at_most_the_budget_and_others_go_on() {
    let mut world = World::new(1, 0.0);
    let streams: Vec<u32> = (0..8).map(|_| world.ends[0].open("host", 80)).collect();
    world.run_for(Span::from_millis(50), None);
    let write_all = |world: &mut World| {
        for _ in 0..400 {
            for stream in &streams {
                let wanted = world.ends[0].wants(world.now, *stream);
                world.ends[0].write(*stream, &vec![1; wanted], world.now);
            }
            world.run_for(Span::from_millis(1), None);
        }
    };
    write_all(&mut world);
    let held = |world: &World| streams.iter().map(|stream| world.ends[1].readable(*stream).len() as u64).sum::<u64>();
    let full = held(&world);
    assert!(full <= BUDGET && full > BUDGET - 3000, "{full}");
    assert_eq!(world.ends[0].room() / 1413, 0);
    for stream in &streams[..4] {
        world.read(1, *stream);
    }
    write_all(&mut world);
    assert!(held(&world) > BUDGET - 3000, "what was read made room");
}

#[test]
fn data_beyond_the_budget_is_not_held_and_stays_refused() {
    let mut end = Endpoint::new(Config { budget: BUDGET, ..Config::proxy() });
    let now = Time::from_nanos(1_000_000_000);
    // The budget is told with the first packet; two streams of 50 000 octets use it up.
    assert!(end.poll_transmit(now, &mut Vec::new()).is_some());
    let (part, parts) = ([7; 1000], BUDGET / 2000);
    let packet = |stream: u32, offset: u64, bytes: &[u8]| {
        let mut packet = packet_header(now).to_vec();
        for frame in [
            Frame::Open { stream, host: "host", port: 80 },
            Frame::Data(Data { stream, offset, age: Span::ZERO, end: false, bytes }),
        ] {
            frame.encode(&mut packet).expect("short enough");
        }
        packet
    };
    let mut number = 0..;
    let mut next = || number.next().expect("endless");
    for stream in [1, 3] {
        for n in 0..parts {
            end.on_packet(now, next(), &packet(stream, n * 1000, &part)).expect("within the budget");
        }
    }
    assert_eq!(end.on_packet(now, next(), &packet(5, 0, &part)), Err(Violation::Budget));
    assert_eq!(end.readable(5), b"", "nothing of it is held");
    assert_eq!(end.on_packet(now, next(), &packet(1, parts * 1000, b"x")), Err(Violation::Budget));
    let mut read = [1, 3, 5].map(|stream| {
        let mut read = 0;
        while !end.readable(stream).is_empty() {
            let count = end.readable(stream).len();
            end.consume(now, stream, count);
            read += count as u64;
        }
        read
    });
    read.sort_unstable();
    assert_eq!(read, [0, BUDGET / 2, BUDGET / 2]);
    // There would be room again, but not for this peer.
    while end.poll_transmit(now, &mut Vec::new()).is_some() {}
    let mut ping = packet_header(now).to_vec();
    Frame::Ping.encode(&mut ping).expect("short enough");
    assert_eq!(end.on_packet(now, next(), &ping), Err(Violation::Budget));
}
