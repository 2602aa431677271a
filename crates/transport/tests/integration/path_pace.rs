//! The tunnel under ATP: two ends with packets that bring D, over a path that loses, repeats and reorders.

use lasthop_laws::atp::{Average, Params, Rate, Variant};
use lasthop_laws::{ReceiverLaw, SenderLaw, Why};
use lasthop_transport::tunnel::{Config, Endpoint, Event, PathFigures};
use lasthop_units::{Bytes, Seed, Span, Stream, Time};
use lasthop_wire::tunnel::{Frame, OpenResult, PacketSize, open_packet, packet_header};
use proptest::prelude::*;
use rand::RngExt;
use std::collections::{BTreeMap, BTreeSet};

const DELAY: Span = Span::from_millis(5);

/// A packet that has left.
#[derive(Clone, Debug)]
struct Left {
    at: Time,
    len: usize,
    data: bool,
    probe: bool,
    report: bool,
    ack: bool,
}

/// D as a packet meets it: by when it leaves, and a random source.
type Stamp = Box<dyn FnMut(Time, &mut Stream) -> Span>;

/// A packet that is under way: to which end, its number, itself, and D.
type UnderWay = (usize, u64, Vec<u8>, Span);

struct World {
    now: Time,
    /// The gateway that calls, and the other.
    ends: [Endpoint; 2],
    under_way: BTreeMap<(Time, u64), UnderWay>,
    seen: [BTreeSet<u64>; 2],
    lose: [f64; 2],
    repeat: f64,
    jitter: Span,
    stamp: Stamp,
    random: Stream,
    count: u64,
    left: [Vec<Left>; 2],
    events: Vec<(usize, Event)>,
}

fn laws(variant: Variant) -> (Box<dyn SenderLaw>, Box<dyn ReceiverLaw>) {
    let params = Params { variant, ..Params::default() };
    (Box::new(Rate::new(params.clone())), Box::new(Average::new(params)))
}

fn end(variant: Variant, calls: bool) -> Endpoint {
    let (sender, receiver) = laws(variant);
    let mut end = Endpoint::new(Config::gateway(calls)).with_path_pace(sender, receiver);
    end.set_packet_size(PacketSize::ETHERNET.over_mesh());
    end
}

impl World {
    fn new(variant: Variant, seed: u64, delay: Span) -> World {
        World {
            now: Time::from_nanos(1_000_000_000),
            ends: [end(variant, true), end(variant, false)],
            under_way: BTreeMap::new(),
            seen: Default::default(),
            lose: [0.0; 2],
            repeat: 0.0,
            jitter: Span::ZERO,
            stamp: Box::new(move |_, _| delay),
            random: Seed(seed).stream("path"),
            count: 0,
            left: Default::default(),
            events: Vec::new(),
        }
    }

    fn send(&mut self) {
        let mut packet = Vec::new();
        for end in 0..2 {
            while let Some(departure) = self.ends[end].poll_transmit(self.now, &mut packet) {
                self.count += 1;
                assert!(self.count < 5_000_000, "it sends for ever at {:?}", self.now);
                let size = PacketSize::ETHERNET.over_mesh();
                assert!(packet.len() <= size.packet());
                let frames: Vec<Frame<'_>> =
                    open_packet(&packet).expect("ours").1.map(|frame| frame.expect("ours")).collect();
                let has = |what: fn(&Frame<'_>) -> bool| frames.iter().any(what);
                self.left[end].push(Left {
                    at: self.now,
                    len: size.sealed_ip_len(packet.len()),
                    data: has(|frame| matches!(frame, Frame::Data(_))),
                    probe: has(|frame| matches!(frame, Frame::Probe)),
                    report: has(|frame| matches!(frame, Frame::PathDelay { .. })),
                    ack: has(|frame| matches!(frame, Frame::Ack { .. })),
                });
                for _ in 0..1 + usize::from(self.random.random_bool(self.repeat)) {
                    if !self.random.random_bool(self.lose[end]) {
                        let jitter = Span::from_nanos(self.random.random_range(0..=self.jitter.as_nanos()));
                        let stamp = (self.stamp)(self.now, &mut self.random);
                        self.count += 1;
                        let key = (self.now + DELAY + jitter, self.count);
                        self.under_way.insert(key, (1 - end, departure.number, packet.clone(), stamp));
                    }
                }
            }
        }
    }

    /// Goes on to the next thing that happens, not beyond `until`; false if that is where it stopped.
    fn step(&mut self, until: Time) -> bool {
        self.send();
        let now = self.now;
        let timers = self.ends.iter().filter_map(|end| end.next_timeout(now));
        let next = timers.chain(self.under_way.keys().next().map(|(at, _)| *at)).min();
        let next = next.unwrap_or(until).max(now).min(until);
        self.count += 1;
        assert!(self.count < 5_000_000, "the world stands still at {now:?}");
        self.now = next;
        while let Some(entry) = self.under_way.first_entry().filter(|entry| entry.key().0 <= next) {
            let (to, number, packet, stamp) = entry.remove();
            if self.seen[to].insert(number) {
                self.ends[to].on_stamped_packet(next, number, &packet, stamp).expect("an honest peer");
            }
        }
        for end in 0..2 {
            self.ends[end].on_timeout(next);
            while let Some(event) = self.ends[end].next_event() {
                self.events.push((end, event));
            }
        }
        next < until
    }

    fn run_for(&mut self, span: Span) {
        let until = self.now + span;
        while self.step(until) {}
    }

    /// Opens a stream from one end, answered with success.
    fn stream(&mut self, from: usize) -> u32 {
        let number = self.ends[from].open("server", 80);
        let until = self.now + Span::from_secs(60);
        while self.step(until) {
            for (end, event) in std::mem::take(&mut self.events) {
                match event {
                    Event::Open { stream, .. } if (end, stream) == (1 - from, number) => {
                        self.ends[end].opened(stream, OpenResult::Connected);
                    }
                    Event::Opened { stream, result } => {
                        assert_eq!((end, stream, result), (from, number, OpenResult::Connected));
                        return number;
                    }
                    Event::Readable(_) => {}
                    other => panic!("{other:?}"),
                }
            }
        }
        panic!("no stream in a minute");
    }

    /// Moves `total` octets from end `from` to the other and the end of the stream, `piece` at a time; returns how long that took.
    fn transfer(&mut self, from: usize, number: u32, total: usize, piece: usize) -> Span {
        let octet = |at: usize| (at * 31 % 251) as u8;
        let (mut written, mut read, began) = (0, 0, self.now);
        let until = self.now + Span::from_secs(600);
        loop {
            let wanted = self.ends[from].wants(self.now, number).min(total - written).min(piece);
            let bytes: Vec<u8> = (written..written + wanted).map(octet).collect();
            self.ends[from].write(number, &bytes, self.now);
            written += wanted;
            if written == total {
                self.ends[from].finish(number);
            }
            assert!(self.step(until), "not done in ten minutes: {read} of {total}");
            let ready = self.ends[1 - from].readable(number).to_vec();
            assert!(ready.iter().enumerate().all(|(n, byte)| *byte == octet(read + n)), "wrong octets after {read}");
            read += ready.len();
            self.ends[1 - from].consume(self.now, number, ready.len());
            if self.ends[1 - from].take_end(number) {
                assert_eq!(read, total);
                return self.now.since(began);
            }
        }
    }

    fn figures(&self, end: usize) -> PathFigures {
        self.ends[end].path_figures().expect("by the path")
    }
}

#[test]
fn what_is_written_is_read_at_any_loss_and_loss_costs_no_rate() {
    for variant in [Variant::Default, Variant::Aggressive, Variant::Adaptive] {
        for lose in [0.0, 0.05, 0.2] {
            let mut world = World::new(variant, 7, Span::from_micros(500));
            (world.lose, world.repeat, world.jitter) = ([lose; 2], 0.05, Span::from_millis(3));
            for from in [0, 1] {
                let number = world.stream(from);
                let took = world.transfer(1 - from, number, 3_000_000, usize::MAX);
                world.transfer(from, number, 300_000, usize::MAX);
                // 2000 packets a second of 1405 octets; those that are lost are sent again, and the last of them after an epoch or two.
                let least = 3e6 / 1405.0 / 2000.0;
                let most = least / (1.0 - lose) * 1.25 + if variant == Variant::Default { 8.0 } else { 1.5 };
                let took = took.as_secs_f64();
                assert!(took > least * 0.99 && took < most, "{variant:?}, loss {lose}: {took} s, {least} to {most}");
                world.run_for(Span::from_secs(30));
                assert!(!world.ends[0].has(number) && !world.ends[1].has(number), "a stream that is over is forgotten");
            }
            assert!(world.ends.iter().all(|end| end.backlog().total() == Bytes::ZERO));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn whatever_the_path_and_whatever_d_says_every_octet_arrives(
        seed: u64, lose in 0.0..0.3, repeat in 0.0..0.3, jitter_us in 0u64..8_000, octets in 1usize..60_000, all in any::<bool>(),
    ) {
        let mut world = World::new(Variant::Adaptive, seed, Span::ZERO);
        (world.lose, world.repeat, world.jitter) = ([lose; 2], repeat, Span::from_micros(jitter_us));
        // Half of the packets, or all of them, bring any D at all.
        world.stamp = Box::new(move |_, random| match all || random.random_bool(0.5) {
            true => Span::from_micros(random.random_range(0..2_000)),
            false => Span::from_micros(random.random_range(0..=u64::from(u32::MAX)) >> random.random_range(0..32)),
        });
        let number = world.stream(0);
        world.transfer(1, number, octets, usize::MAX);
        world.transfer(0, number, octets / 7, usize::MAX);
    }

    #[test]
    fn packets_of_any_bytes_are_errors_or_harmless(
        packets in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..60), any::<u32>()), 1..30),
    ) {
        let mut end = end(Variant::Adaptive, false);
        let (mut now, mut out) = (Time::ZERO, Vec::new());
        for (number, (bytes, delay)) in packets.iter().enumerate() {
            now += Span::from_millis(1);
            let packet = [packet_header(now).as_slice(), bytes].concat();
            let _ = end.on_stamped_packet(now, number as u64, &packet, Span::from_micros((*delay).into()));
            end.on_timeout(now);
            let sent = (0..100).take_while(|_| end.poll_transmit(now, &mut out).is_some()).count();
            prop_assert!(sent < 100, "it answers for ever");
        }
    }
}

/// Times of packets with data, and of probes, that an end has sent.
fn stamped(world: &World, end: usize) -> Vec<Time> {
    world.left[end].iter().filter(|left| left.data || left.probe).map(|left| left.at).collect()
}

#[test]
fn packets_leave_d_apart_however_short_they_are() {
    for piece in [usize::MAX, 100] {
        let mut world = World::new(Variant::Adaptive, 1, Span::from_millis(1));
        let number = world.stream(0);
        world.left = Default::default();
        let took = world.transfer(0, number, 400_000, piece);
        let times = stamped(&world, 0);
        let packets = times.len() as f64;
        assert!(packets <= took.as_secs_f64() * 1000.0 + 5.0, "{packets} packets in {took}");
        // But for the probe's round trip, and the last packet's way.
        let paced = took.saturating_sub(DELAY * 3).as_secs_f64() * 1000.0;
        assert!(piece == 100 || packets >= paced * 0.95, "{packets} packets in {took}");
        // Before that little is written ahead: nobody knows how much can leave.
        for pair in times[20..].windows(2) {
            let gap = pair[1].since(pair[0]);
            assert!(gap >= Span::from_micros(940), "{gap}: no more than a horizon early");
            // A program that writes little at a time does so when something else happens.
            assert!(piece == 100 || gap <= Span::from_micros(1060), "{gap}");
        }
        assert!(world.left[0].iter().all(|left| left.len <= 1500));
    }
}

#[test]
fn the_first_packet_is_a_data_probe_that_sets_the_rate() {
    for d in [Span::from_micros(300), Span::from_millis(20)] {
        let mut world = World::new(Variant::Default, 1, d);
        let number = world.stream(0);
        world.run_for(Span::from_secs(2));
        assert_eq!(world.figures(0).gap, None, "nothing is known before there was a packet with data");
        let began = world.now;
        world.ends[0].write(number, b"a question", began);
        while world.ends[1].readable(number).is_empty() {
            world.step(began + Span::from_secs(1));
        }
        assert_eq!(world.now.since(began), DELAY, "it need not wait for an answer");
        world.run_for(DELAY + Span::from_millis(1));
        assert_eq!((world.figures(0).gap, world.figures(0).why), (Some(d), Why::QuickStart));
        // The other way nothing has been sent.
        assert_eq!((world.figures(1).gap, world.figures(1).told), (None, Some(d)));
    }
}

#[test]
fn without_feedback_the_rate_halves_twice_then_only_probes() {
    let d = Span::from_millis(2);
    let mut world = World::new(Variant::Aggressive, 3, d);
    let number = world.stream(0);
    let write = |world: &mut World, span: Span| {
        let until = world.now + span;
        loop {
            let wanted = world.ends[0].wants(world.now, number);
            world.ends[0].write(number, &vec![0; wanted], world.now);
            if !world.step(until) {
                break;
            }
            let ready = world.ends[1].readable(number).len();
            world.ends[1].consume(world.now, number, ready);
        }
    };
    write(&mut world, Span::from_secs(1));
    assert_eq!(world.figures(0).gap, Some(d));
    // Nothing comes back from now on.
    world.lose[1] = 1.0;
    let (silent, mut gaps) = (world.now, Vec::new());
    while world.now.since(silent) < Span::from_secs(2) {
        write(&mut world, Span::from_millis(1));
        let gap = world.figures(0).gap;
        if gaps.last() != Some(&gap) {
            gaps.push(gap);
        }
    }
    assert_eq!(gaps, [Some(d), Some(d * 2), Some(d * 4), None]);
    // Epochs of 40 ms: the last that was told, 1.5 of them, and two more; then one packet each.
    let after = silent + DELAY + Span::from_millis(40 + 60 + 40 + 40 + 5);
    let late: Vec<&Left> = world.left[0].iter().filter(|left| left.at > after).collect();
    assert!(late.iter().filter(|left| left.data).all(|left| left.probe), "nothing but probes");
    assert!((40..=46).contains(&late.iter().filter(|left| left.probe).count()), "a probe an epoch: {}", late.len());
    // The first answer makes it go on.
    world.lose[1] = 0.0;
    let before = world.left[0].len();
    write(&mut world, Span::from_secs(1));
    assert_eq!(world.figures(0).gap, Some(d));
    assert!(world.left[0].len() - before > 400);
}

#[test]
fn what_comes_is_acknowledged_once_an_epoch() {
    let mut world = World::new(Variant::Aggressive, 4, Span::from_micros(500));
    let number = world.stream(0);
    world.left = Default::default();
    let took = world.transfer(0, number, 4_000_000, usize::MAX).as_secs_f64();
    let (acks, reports) = world.left[1]
        .iter()
        .fold((0, 0), |(acks, reports), left| (acks + i32::from(left.ack), reports + i32::from(left.report)));
    let epochs = took / 0.04;
    assert!(f64::from(reports) <= epochs + 5.0 && f64::from(acks) <= epochs + 12.0, "{acks}, {reports}, {epochs}");
    let data = world.left[0].iter().filter(|left| left.data).count();
    assert!(world.left[1].len() * 20 < data, "{} for {data} packets: windows too", world.left[1].len());
}

#[test]
fn who_asks_for_a_sign_of_life_hears_one_before_it_asks_again() {
    let mut world = World::new(Variant::Default, 4, Span::from_micros(500));
    let number = world.stream(0);
    world.transfer(0, number, 1_000_000, usize::MAX);
    world.run_for(Span::from_secs(5));
    for _ in 0..20 {
        world.left = Default::default();
        world.ends[0].ping();
        world.run_for(Span::from_millis(500));
        let acks = world.left[1].iter().filter(|left| left.ack).count();
        // What is idle costs the way a ping and its answer.
        assert_eq!((world.left[0].len(), acks, world.left[1].len()), (1, 1, 1));
    }
}

#[test]
fn the_last_packets_are_sent_again_when_they_are_lost() {
    for variant in [Variant::Adaptive, Variant::Default] {
        let mut world = World::new(variant, 5, Span::from_millis(1));
        let number = world.stream(0);
        world.transfer(1, number, 50_000, usize::MAX);
        let began = world.now;
        world.ends[0].write(number, &[9; 100], began);
        world.ends[0].finish(number);
        // All that leaves within an epoch is lost.
        world.lose = [1.0; 2];
        world.run_for(Span::from_millis(40));
        world.lose = [0.0; 2];
        while !world.ends[1].has(number) || world.ends[1].readable(number).is_empty() {
            assert!(world.step(began + Span::from_secs(60)), "never sent again");
        }
        // The next probe leaves an epoch after the first; its answer shows what is missing.
        assert!(world.now.since(began) < Span::from_millis(2_600), "{variant:?}: {}", world.now.since(began));
    }
}

#[test]
fn forged_delays_neither_outrun_the_interface_nor_silence_it() {
    let mut world = World::new(Variant::Adaptive, 6, Span::ZERO);
    let own = Span::from_millis(3);
    world.ends[0].set_own_delay(own);
    let number = world.stream(0);
    world.left = Default::default();
    let took = world.transfer(0, number, 100_000, usize::MAX);
    let packets = stamped(&world, 0).len() as f64;
    assert!(packets <= took.as_secs_f64() / own.as_secs_f64() + 3.0, "{packets} in {took}");
    // Somebody has written the largest D for two seconds.
    let number = world.stream(0);
    let lies_until = world.now + Span::from_secs(2);
    world.stamp =
        Box::new(
            move |now, _| {
                if now < lies_until { Span::from_micros(u64::from(u32::MAX)) } else { Span::from_millis(3) }
            },
        );
    let took = world.transfer(0, number, 400_000, usize::MAX);
    assert!(took < Span::from_secs(40), "{took}: 285 packets of 3 ms, and what the lie has cost");
}
