//! Two ends of a tunnel over a path that loses, repeats and reorders: what is written is read, exactly, at the rate
//! that was set.

use lasthop_laws::tcp::{self, Setup};
use lasthop_signals::{FrameSource, Node, StationFeedback};
use lasthop_transport::tunnel::{Config, Delay, Endpoint, Event, Violation};
use lasthop_units::{Bytes, Rate, Seed, Span, Stream, Time};
use lasthop_wire::tunnel::{AckRange, Data, Frame, OpenResult, PacketSize, packet_header};
use proptest::prelude::*;
use rand::RngExt;
use std::collections::{BTreeMap, BTreeSet};

/// What the path does to packets.
#[derive(Clone, Debug)]
struct Faults {
    lose: f64,
    repeat: f64,
    /// Extra delay of up to so much, drawn for every packet: that is what reorders them.
    jitter: Span,
}

const CLEAN: Faults = Faults { lose: 0.0, repeat: 0.0, jitter: Span::ZERO };
const DELAY: Span = Span::from_millis(5);

/// Two ends, the path between them, and a clock.
struct World {
    now: Time,
    ends: [Endpoint; 2],
    /// Packets under way by arrival: to which end, number, packet.
    under_way: BTreeMap<(Time, u64), (usize, u64, Vec<u8>)>,
    seen: [BTreeSet<u64>; 2],
    faults: Faults,
    random: Stream,
    count: u64,
    /// Departures from each end: when, and how long as an IP packet.
    departures: [Vec<(Time, usize)>; 2],
    events: Vec<(usize, Event)>,
}

impl World {
    fn new(seed: u64, faults: Faults) -> World {
        World {
            now: Time::from_nanos(1_000_000_000),
            ends: [Endpoint::new(Config::station()), Endpoint::new(Config::proxy())],
            under_way: BTreeMap::new(),
            seen: Default::default(),
            faults,
            random: Seed(seed).stream("path"),
            count: 0,
            departures: Default::default(),
            events: Vec::new(),
        }
    }

    fn send(&mut self) {
        let mut packet = Vec::new();
        for end in 0..2 {
            while let Some(departure) = self.ends[end].poll_transmit(self.now, &mut packet) {
                assert!(packet.len() <= lasthop_wire::tunnel::MAX_PACKET);
                self.departures[end].push((self.now, packet.len() + 60));
                let copies = 1 + usize::from(self.random.random_bool(self.faults.repeat));
                for _ in 0..copies {
                    if !self.random.random_bool(self.faults.lose) {
                        let jitter = Span::from_nanos(self.random.random_range(0..=self.faults.jitter.as_nanos()));
                        self.count += 1;
                        let key = (self.now + DELAY + jitter, self.count);
                        self.under_way.insert(key, (1 - end, departure.number, packet.clone()));
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
        // Something may always happen at once, but not for ever.
        self.count += 1;
        assert!(self.count < 20_000_000, "the world stands still at {now:?}");
        self.now = next;
        while let Some(entry) = self.under_way.first_entry().filter(|entry| entry.key().0 <= next) {
            let (to, number, packet) = entry.remove();
            if self.seen[to].insert(number) {
                self.ends[to].on_packet(next, number, &packet).expect("an honest peer");
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

    /// Opens a stream from the station, answered with success.
    fn stream(&mut self) -> u32 {
        let number = self.ends[0].open("server", 80);
        let until = self.now + Span::from_secs(60);
        while self.step(until) {
            for (end, event) in std::mem::take(&mut self.events) {
                match event {
                    Event::Open { stream, host, port } => {
                        assert_eq!((end, stream, host.as_str(), port), (1, number, "server", 80));
                        self.ends[1].opened(stream, OpenResult::Connected);
                    }
                    Event::Opened { stream, result } => {
                        assert_eq!((end, stream, result), (0, number, OpenResult::Connected));
                        return number;
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        panic!("no stream in a minute");
    }

    /// Moves `total` octets from end `from` to the other and the end of the stream; returns how long that took.
    fn transfer(&mut self, from: usize, number: u32, total: usize) -> Span {
        let octet = |at: usize| (at * 31 % 251) as u8;
        let (mut written, mut read, began) = (0, 0, self.now);
        let until = self.now + Span::from_secs(600);
        loop {
            let wanted = self.ends[from].wants(self.now, number).min(total - written);
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
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn what_is_written_is_read_whatever_the_path_does(
        seed: u64, lose in 0.0..0.3, repeat in 0.0..0.3, jitter_us in 0u64..8_000, down in 1usize..60_000, up in 0usize..60_000,
    ) {
        let mut world = World::new(seed, Faults { lose, repeat, jitter: Span::from_micros(jitter_us) });
        world.ends[1].set_pacing(world.now, Rate::from_mbit(20), Bytes::new(100_000));
        let number = world.stream();
        world.transfer(1, number, down);
        world.transfer(0, number, up);
        world.run_for(Span::from_secs(60));
        for end in &world.ends {
            prop_assert!(!end.has(number), "a stream that is over is forgotten");
            prop_assert_eq!(end.backlog().total(), Bytes::ZERO);
        }
    }

    #[test]
    fn packets_of_any_bytes_are_errors_or_harmless(packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 1..30)) {
        let mut end = Endpoint::new(Config::proxy());
        let (mut now, mut out) = (Time::ZERO, Vec::new());
        for (number, packet) in packets.iter().enumerate() {
            now += Span::from_millis(1);
            // It goes on even when it has been refused.
            let _ = end.on_packet(now, number as u64, packet);
            end.on_timeout(now);
            for _ in 0..100 {
                let _ = end.poll_transmit(now, &mut out);
            }
        }
    }
}

#[test]
fn packets_leave_evenly_at_the_rate_that_was_set_and_full() {
    let mut world = World::new(1, CLEAN);
    world.ends[1].set_pacing(world.now, Rate::from_mbit(12), Bytes::new(1_000_000));
    let number = world.stream();
    world.departures[1].clear();
    let took = world.transfer(1, number, 3_000_000);
    // 1413 octets of each 1500 are the stream's: at 12 Mbit/s one such packet a millisecond.
    let expected = 3_000_000.0 / 1413.0 * 1e-3;
    assert!((took.as_secs_f64() / expected - 1.0).abs() < 0.01, "{took} for {expected} s");
    let full: Vec<Time> = world.departures[1].iter().filter(|(_, len)| *len == 1500).map(|(at, _)| *at).collect();
    assert!(full.len() > 2100, "{}", full.len());
    for pair in full.windows(2) {
        let gap = pair[1].since(pair[0]);
        assert!(gap.as_micros().abs_diff(1000) <= 41, "{gap}: a horizon early, and what an acknowledgement takes");
    }
}

/// A busy machine looks only once a millisecond, and reads after it has sent: that costs evenness, not the rate.
#[test]
fn who_reads_after_sending_keeps_the_rate_when_late() {
    let mut world = World::new(12, CLEAN);
    let number = world.stream();
    world.run_for(Span::from_millis(100));
    let (end, rate) = (&mut world.ends[1], Rate::from_mbit(100));
    end.set_pacing(world.now, rate, Bytes::new(100_000_000));
    let (mut packet, mut sent, mut read) = (Vec::new(), 0u64, 0);
    for ms in 0..100 {
        // As a proxy goes round: what is due, what can be read, and again at once while more is due.
        for round in 0..20 {
            let now = world.now + Span::from_millis(ms) + Span::from_micros(round);
            while end.poll_transmit(now, &mut packet).is_some() {
                sent += packet.len() as u64 + 60;
            }
            let wanted = end.wants(now, number);
            if wanted > 0 {
                end.write(number, &vec![0; wanted], now);
                read += wanted;
                end.fed(now);
            }
        }
    }
    let expected = rate.bytes_in(Span::from_millis(100)).get();
    assert!(read > 0 && sent.abs_diff(expected) < expected / 50, "{sent} of {expected} octets");
}

#[test]
fn packets_fit_the_path_and_are_paced_by_their_length() {
    let size = PacketSize::of_path(true, 1300);
    let mut world = World::new(5, Faults { lose: 0.02, ..CLEAN });
    world.ends[1].set_pacing(world.now, Rate::from_mbit(12), Bytes::new(1_000_000));
    let number = world.stream();
    world.departures[1].clear();
    // Some of what is sent in long packets is lost, and is sent again in short ones.
    world.ends[1].write(number, &vec![0; 100_000], world.now);
    world.run_for(Span::from_millis(30));
    assert!(world.departures[1].iter().any(|(_, len)| *len == 1500));
    world.ends[1].set_packet_size(size);
    world.departures[1].clear();
    world.run_for(Span::from_secs(1));
    // The world counts the headers of IPv4.
    let longest = world.departures[1].iter().map(|(_, len)| len + 20).max();
    assert_eq!(longest, Some(1300));
    assert_eq!(world.ends[1].backlog().total(), Bytes::ZERO);
    let full: Vec<Time> = world.departures[1].iter().filter(|(_, len)| len + 20 == 1300).map(|(at, _)| *at).collect();
    let gaps = (full[0], full[30]);
    let each = gaps.1.since(gaps.0).as_secs_f64() / 30.0;
    assert!((1300.0 * 8.0 / 12e6 / each - 1.0).abs() < 0.05, "{each} s from one to the next");
}

#[test]
fn losses_cost_repetitions_but_not_the_rate() {
    let mut world = World::new(2, Faults { lose: 0.02, ..CLEAN });
    world.ends[1].set_pacing(world.now, Rate::from_mbit(100), Bytes::new(1_000_000));
    let number = world.stream();
    let took = world.transfer(1, number, 10_000_000);
    let rate = Rate::of(Bytes::new(10_000_000), took).expect("took time").as_mbit_f64();
    assert!((88.0..94.2).contains(&rate), "{rate} Mbit/s; 94.2 would be all of it without a loss");
    assert!(world.ends[1].lost_packets() > 50);
}

#[test]
fn no_more_is_held_than_the_budget_allows() {
    let mut world = World::new(3, Faults { lose: 0.01, ..CLEAN });
    let budget = Bytes::new(40_000);
    // Far more would fit into the path: 100 Mbit/s times 10 ms are 125 kB.
    world.ends[1].set_pacing(world.now, Rate::from_mbit(100), budget);
    let number = world.stream();
    let until = world.now + Span::from_secs(2);
    let mut most = Bytes::ZERO;
    loop {
        let wanted = world.ends[1].wants(world.now, number);
        world.ends[1].write(number, &vec![0; wanted], world.now);
        most = most.max(world.ends[1].backlog().total());
        if !world.step(until) {
            break;
        }
        let ready = world.ends[0].readable(number).len();
        world.ends[0].consume(world.now, number, ready);
    }
    assert!(most <= budget && most >= budget.scale(0.9), "{most}");
}

#[test]
fn many_streams_together_are_read_no_further_ahead_than_one() {
    let mut world = World::new(6, CLEAN);
    let streams: Vec<u32> = (0..20).map(|_| world.stream()).collect();
    world.ends[1].set_pacing(world.now, Rate::from_mbit(10), Bytes::new(1_000_000));
    let (until, mut most) = (world.now + Span::from_secs(1), Bytes::ZERO);
    let mut written = vec![0; streams.len()];
    loop {
        // In turn, as `wants` asks for: whoever has had the least.
        while world.ends[1].wants_in_all(world.now) > 0 {
            let least = (0..streams.len()).min_by_key(|n| written[*n]).expect("streams");
            let wanted = world.ends[1].wants(world.now, streams[least]);
            assert!(wanted > 0, "the window of a stream is far");
            world.ends[1].write(streams[least], &vec![0; wanted], world.now);
            written[least] += wanted;
        }
        assert!(streams.iter().all(|stream| world.ends[1].wants(world.now, *stream) == 0));
        most = most.max(world.ends[1].backlog().unsent);
        if !world.step(until) {
            break;
        }
        for stream in &streams {
            let ready = world.ends[0].readable(*stream).len();
            world.ends[0].consume(world.now, *stream, ready);
        }
    }
    assert!(most <= Bytes::new(2 * 1413), "{most} read ahead");
    let sum: usize = written.iter().sum();
    assert!(sum as f64 > 0.9 * 10e6 / 8.0, "{sum} octets in a second");
}

#[test]
fn a_law_of_its_own_fills_the_path_without_overrunning_it() {
    let mut world = World::new(4, CLEAN);
    let setup = Setup::new(Bytes::new(1500), Seed(4).stream("law"));
    let law = lasthop_laws::by_name(tcp::cubic::NAME, setup).expect("a law of that name");
    world.ends[0] = Endpoint::new(Config::station()).with_law(law);
    let number = world.stream();
    let took = world.transfer(0, number, 4_000_000);
    // Slow start alone: 15 kB, 30 kB, ... in round trips of 10 ms gives 4 MB in nine of them.
    assert!((Span::from_millis(60)..Span::from_millis(200)).contains(&took), "{took}");
}

#[test]
fn when_nobody_answers_only_probes_leave() {
    let mut world = World::new(5, CLEAN);
    world.ends[1].set_pacing(world.now, Rate::from_mbit(100), Bytes::new(1_000_000));
    let number = world.stream();
    world.faults.lose = 1.0;
    world.departures[1].clear();
    world.ends[1].write(number, &[0; 500_000], world.now);
    world.run_for(Span::from_secs(10));
    let late = world.departures[1].iter().filter(|(at, _)| world.now.since(*at) < Span::from_secs(9)).count();
    assert!((2..=10).contains(&late), "{late} probes in nine seconds");
    world.faults.lose = 0.0;
    let until = world.now + Span::from_secs(6);
    while world.step(until) {
        let ready = world.ends[0].readable(number).len();
        world.ends[0].consume(world.now, number, ready);
    }
    assert_eq!(world.ends[1].backlog().total(), Bytes::ZERO, "all arrives once there is somebody");
}

#[test]
fn after_a_silence_data_flow_as_soon_as_the_other_end_speaks() {
    let mut world = World::new(9, CLEAN);
    world.ends[1].set_pacing(world.now, Rate::from_mbit(20), Bytes::new(1_000_000));
    let number = world.stream();
    world.ends[1].write(number, &[0; 100_000], world.now);
    world.run_for(Span::from_millis(20));
    world.faults.lose = 1.0;
    world.run_for(Span::from_secs(10));
    let read = world.ends[0].readable(number).len();
    assert!((1..50_000).contains(&read), "{read} octets before the silence");
    world.faults.lose = 0.0;
    // The station pings, as it does while it hears nothing: that is when it is back.
    world.ends[0].ping();
    let took = 5 + 5 + 100 + 60;
    world.run_for(Span::from_millis(took));
    assert_eq!(world.ends[0].readable(number).len(), 100_000, "{took} ms: the ping, the probe's answer, and the rest");
}

#[test]
fn delays_are_told_of_packets_and_of_data() {
    let mut world = World::new(6, CLEAN);
    let number = world.stream();
    world.ends[0].delays();
    let origin = world.now.saturating_sub(Span::from_millis(3));
    world.ends[1].write(number, b"answer", origin);
    world.run_for(Span::from_millis(6));
    assert_eq!(world.ends[0].readable(number), b"answer");
    world.run_for(Span::from_millis(1));
    world.ends[0].consume(world.now, number, 6);
    let delays: Vec<Delay> = world.ends[0].delays().collect();
    assert_eq!(delays, [Delay::Hop(DELAY), Delay::Data(Span::from_millis(10))], "3 before, 5 on the way, 2 waiting");
}

#[test]
fn accounts_pass_and_are_not_repeated() {
    let mut world = World::new(7, CLEAN);
    let feedback = StationFeedback {
        station: Node(3),
        slot: 9,
        start: Time::ZERO,
        end: Time::from_nanos(5),
        frames: 2,
        packets: 60,
        packets_squared: 1800,
        min_packets: 29,
        max_packets: 31,
        inverse_rate_sum: 1e-8,
        received: 60,
        highest_sequence: 70,
        lost: 1,
        delay_mean: None,
        delay_max: None,
        source: FrameSource::Radiotap,
    };
    world.ends[0].tell(feedback);
    world.run_for(Span::from_secs(1));
    assert_eq!(world.events, [(1, Event::Feedback(feedback))]);
}

#[test]
fn a_reset_ends_both_sides_and_what_comes_late_is_ignored() {
    let mut world = World::new(8, CLEAN);
    let number = world.stream();
    world.ends[1].write(number, &[7; 3000], world.now);
    world.send();
    world.ends[0].reset(number);
    world.run_for(Span::from_secs(2));
    assert_eq!(world.events, [(1, Event::Reset(number))]);
    assert!(!world.ends[0].has(number) && !world.ends[1].has(number));
    assert_eq!(world.ends[1].backlog().total(), Bytes::ZERO);
}

/// A packet with frames, as the other end would send it.
fn packet_with(now: Time, frames: &[Frame<'_>]) -> Vec<u8> {
    let mut packet = packet_header(now).to_vec();
    frames.iter().for_each(|frame| frame.encode(&mut packet).expect("short enough"));
    packet
}

/// Where a part of a stream begins, its octets, and whether the stream ends with it.
type Part<'a> = (u64, &'a [u8], bool);

/// Parts of stream 1, each in a packet of its own; the reader reads whatever comes. `given_up` says behind which part the reader
/// gives the stream up.
fn parts(parts: &[Part<'_>], given_up: Option<usize>) -> Result<Endpoint, Violation> {
    let (mut end, now, stream) = (Endpoint::new(Config::proxy()), Time::from_nanos(1_000_000_000), 1);
    end.on_packet(now, 0, &packet_with(now, &[Frame::Open { stream, host: "host", port: 80 }]))?;
    for (number, (offset, bytes, last)) in (1..).zip(parts.iter().copied()) {
        let data = Data { stream, offset, age: Span::ZERO, end: last, bytes };
        end.on_packet(now, number, &packet_with(now, &[Frame::Data(data)]))?;
        let count = end.readable(stream).len();
        end.consume(now, stream, count);
        if given_up == Some(number as usize - 1) {
            end.reset(stream);
        }
    }
    Ok(end)
}

#[test]
fn a_stream_has_one_end_and_nothing_behind_it() {
    let refused = |which: &[Part<'_>], given_up| parts(which, given_up).map(drop);
    let wrong: [(&str, &[Part<'_>]); 5] = [
        ("an end before what was read", &[(0, b"abcdef", false), (3, b"", true)]),
        ("an end before what waits", &[(2, b"cdef", false), (3, b"", true)]),
        ("data behind the end", &[(0, b"abcdef", true), (6, b"g", false)]),
        ("an end further on", &[(0, b"abcdef", true), (6, b"g", true)]),
        ("an end further back", &[(0, b"abcdef", true), (5, b"f", false), (3, b"de", true)]),
    ];
    for (what, which) in wrong {
        assert_eq!(refused(which, None), Err(Violation::Data(1)), "{what}");
    }
    let late = refused(&[(0, b"abcdef", false), (3, b"", true)], Some(0));
    assert_eq!(late, Err(Violation::Data(1)), "an end before what had come when the reader gave up");
    let right: &[Part<'_>] = &[(0, b"abc", false), (3, b"", true), (1, b"bc", true), (0, b"ab", false)];
    assert_eq!((refused(right, None), refused(right, Some(0))), (Ok(()), Ok(())));
    assert!(parts(right, None).is_ok_and(|mut end| end.take_end(1)), "the reader sees the end");
}

#[test]
fn data_waits_while_very_many_packets_have_no_acknowledgement() {
    let mut end = Endpoint::new(Config::proxy());
    end.set_pacing(Time::ZERO, Rate::from_mbit(100_000), Bytes::new(1 << 30));
    let (mut now, mut out, stream) = (Time::from_nanos(1_000_000_000), Vec::new(), end.open("host", 80));
    for _ in 0..60_000 {
        now += Span::from_micros(1);
        end.write(stream, b"x", now);
        while end.poll_transmit(now, &mut out).is_some() {}
    }
    assert_eq!(end.numbers(), 32 << 10);
    assert!(end.next_timeout(now).is_some_and(|at| at > now), "nobody need look before something comes");
    let mut packet = packet_header(now).to_vec();
    let ranges = vec![AckRange { first: 0, last: end.numbers() - 1 }];
    Frame::Ack { delay: Span::ZERO, ranges }.encode(&mut packet).expect("short");
    end.on_packet(now, 0, &packet).expect("an honest peer");
    now += Span::from_millis(1);
    while end.poll_transmit(now, &mut out).is_some() {}
    assert_eq!(end.backlog().unsent, Bytes::ZERO);
}

#[test]
fn an_answer_that_tells_no_round_trip_lets_data_flow_again() {
    let mut end = Endpoint::new(Config::proxy());
    end.set_pacing(Time::ZERO, Rate::from_mbit(100), Bytes::new(1 << 20));
    let (mut now, mut out, stream) = (Time::from_nanos(1_000_000_000), Vec::new(), end.open("host", 80));
    for _ in 0..2 {
        now += Span::from_millis(1);
        end.write(stream, b"x", now);
        while end.poll_transmit(now, &mut out).is_some() {}
    }
    let asked = end.numbers();
    // Acknowledgements follow, more than this end remembers the departures of.
    for number in 0..100 {
        let mut ping = packet_header(now).to_vec();
        Frame::Ping.encode(&mut ping).expect("short");
        end.on_packet(now, number, &ping).expect("an honest peer");
        now += Span::from_millis(2);
        assert!(end.poll_transmit(now, &mut out).is_some(), "an acknowledgement");
    }
    now += Span::from_secs(1);
    end.on_timeout(now);
    while end.poll_transmit(now, &mut out).is_some() {}
    end.write(stream, b"more", now);
    assert!(end.poll_transmit(now, &mut out).is_none(), "there may be nobody");
    let mut packet = packet_header(now).to_vec();
    let ranges = vec![AckRange { first: 0, last: asked + 5 }];
    Frame::Ack { delay: Span::ZERO, ranges }.encode(&mut packet).expect("short");
    end.on_packet(now, 100, &packet).expect("an honest peer");
    assert_eq!(end.srtt(), None, "when the largest left is forgotten");
    assert!(end.poll_transmit(now, &mut out).is_some() && end.backlog().unsent.is_zero());
}

/// A packet with these frames.
fn packet(now: Time, frames: &[Frame<'_>]) -> Vec<u8> {
    let mut packet = packet_header(now).to_vec();
    frames.iter().for_each(|frame| frame.encode(&mut packet).expect("short"));
    packet
}

#[test]
fn path_challenges_are_answered_once_at_once_and_unacked() {
    let mut world = World::new(11, CLEAN);
    world.run_for(Span::from_secs(1));
    let World { mut now, ends: [mut station, mut proxy], .. } = world;
    let mut out = Vec::new();
    let number = proxy.challenge_path(now, [7; 8], &mut out);
    assert_eq!((number + 1, out.as_slice()), (proxy.numbers(), &*packet(now, &[Frame::PathChallenge([7; 8])])));
    station.on_packet(now, number, &out).expect("understood");
    assert_eq!(station.next_timeout(now), Some(now));
    let answer = station.poll_transmit(now, &mut out).expect("it leaves at once").number;
    assert_eq!(out, packet(now, &[Frame::PathAnswer([7; 8])]));
    assert!(station.poll_transmit(now, &mut Vec::new()).is_none());
    proxy.on_packet(now, answer, &out).expect("understood");
    assert_eq!((proxy.take_path_answer(), proxy.take_path_answer()), (Some([7; 8]), None));
    // It is of the packet that has come last, and of no other.
    proxy.on_packet(now, answer + 1, &out).expect("understood");
    proxy.on_packet(now, answer + 2, &packet(now, &[Frame::Ping])).expect("understood");
    assert_eq!(proxy.take_path_answer(), None);
    now += Span::from_secs(10);
    station.on_timeout(now);
    assert!(station.poll_transmit(now, &mut out).is_none(), "nothing of it is waited for");
    // An end that asks and asks does not make it hold more.
    let many: Vec<Frame<'_>> = (0..100).map(|n| Frame::PathChallenge([n; 8])).collect();
    station.on_packet(now, number + 1, &packet(now, &many)).expect("understood");
    assert!(station.poll_transmit(now, &mut out).is_some());
    let last: Vec<Frame<'_>> = (96..100).map(|n| Frame::PathAnswer([n; 8])).collect();
    assert_eq!(out, packet(now, &last));
}
