//! Both ends without sockets, over a network that somebody bad sits in.

use super::calling::{Call, Calling};
use super::choice::Law;
use super::error::Failure;
use super::listening::{Event, Listening};
use super::seals::Seals;
use crate::tunnel::Key;
use lasthop_units::{Seed, Span, Stream, Time};
use lasthop_wire::atp::{Blocks, Header};
use lasthop_wire::datagram::{Datagram, NO_COOKIE, Open};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use std::collections::BTreeMap;
use std::net::SocketAddr;

const DATAGRAM: usize = 1472;
const PATIENCE: Span = Span::from_secs(5);

fn at(secs: f64) -> Time {
    Time::ZERO + Span::from_secs_f64(secs)
}

fn peer() -> SocketAddr {
    "192.0.2.1:7".parse().expect("an address")
}

fn calling(law: &str, key: Option<Key>, nonce: u8) -> Calling {
    let law = Law::named(law).expect("a law");
    let datagram = DATAGRAM - Seals::overhead(key.as_ref());
    let stream = law.sender(Time::ZERO, 77, 5, datagram).expect("it is built");
    let call =
        Call { connection: 77, nonce: [nonce; 16], transport: law.transport(), size: 9, key, patience: PATIENCE };
    Calling::new(Time::ZERO, call, stream)
}

fn listening(key: Option<Key>) -> Listening {
    Listening::new([3; 32], key, PATIENCE, DATAGRAM)
}

/// What somebody on the way does, in parts of a thousand of all datagrams.
#[derive(Clone, Copy, Debug, Default)]
struct Bad {
    seed: u64,
    lost: u64,
    cut: u64,
    turned: u64,
    repeated: u64,
    forged: u64,
    /// What is added beside every so many datagrams of ATP, of those on one way (true: to the receiver) that it can be made of.
    lie: Option<Lie>,
    every: u64,
    /// And not more often than that.
    lies: u64,
    /// From when on the receiver is dead.
    dead: Option<Time>,
    /// When the run begins.
    from: Time,
}

/// Which way, and what is changed of a header that passes.
type Lie = (bool, fn(&mut Header));

const LONGEST: Span = Span::from_micros(u32::MAX as u64 - 1);
const FAR: u32 = 1 << 30;

/// A copy of a datagram with another header.
fn forged(bytes: &[u8], to_receiver: bool, (way, lie): Lie) -> Option<Vec<u8>> {
    let Ok(Datagram::Atp { mut header, payload }) = Datagram::decode(bytes) else { return None };
    (way == to_receiver).then(|| {
        lie(&mut header);
        let mut out = Vec::new();
        header.encode(&mut out);
        out.extend_from_slice(payload);
        out
    })
}

struct Run {
    got: Vec<u8>,
    end: Option<Result<(), Failure>>,
    events: Vec<Event>,
    now: Time,
    recorded: Vec<Vec<u8>>,
    listening: Listening,
    /// Headers that were forged.
    lies: u64,
}

fn run(mut calling: Calling, mut listening: Listening, data: &[u8], bad: Bad, until: Time) -> Run {
    let mut random = Seed(bad.seed).stream("bad");
    let mut sky: BTreeMap<(Time, u64), (bool, Vec<u8>)> = BTreeMap::new();
    let (mut number, mut written, mut now, mut got, mut events) = (0u64, 0, bad.from, Vec::new(), Vec::new());
    let (mut recorded, mut page) = (Vec::<Vec<u8>>::new(), vec![0; 1 << 16]);
    let (mut passed, mut lies) = (0u64, 0u64);
    let harm = |random: &mut Stream, bytes: Vec<u8>, recorded: &mut Vec<Vec<u8>>| {
        let mut draw = |below: u64| random.next_u64() % below.max(1);
        let mut out = Vec::new();
        if draw(1000) < bad.forged {
            let mut forged: Vec<u8> = (0..draw(200)).map(|_| draw(256) as u8).collect();
            let len = forged.len().min(12);
            forged[..len].copy_from_slice(&bytes[..len]);
            out.push(forged);
        }
        if draw(1000) < bad.repeated && !recorded.is_empty() {
            out.push(recorded[draw(recorded.len() as u64) as usize].clone());
        }
        recorded.push(bytes.clone());
        let mut bytes = bytes;
        if draw(1000) < bad.cut {
            bytes.truncate(draw(bytes.len() as u64) as usize);
        }
        if draw(1000) < bad.turned && !bytes.is_empty() {
            let bit = draw(8 * bytes.len() as u64) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        if draw(1000) >= bad.lost {
            out.push(bytes);
        }
        out
    };
    while calling.end().is_none() || listening.figures().is_some() {
        while written < data.len() {
            let count = calling.write(&data[written..]);
            written += count;
            if count == 0 {
                break;
            }
        }
        if written == data.len() {
            calling.close();
        }
        let mut cast = |random: &mut Stream, to: bool, bytes: Vec<u8>, recorded: &mut Vec<Vec<u8>>| {
            let lie = bad.lie.and_then(|lie| forged(&bytes, to, lie));
            passed += u64::from(lie.is_some());
            let lie = lie.filter(|_| passed.is_multiple_of(bad.every) && lies < bad.lies);
            lies += u64::from(lie.is_some());
            for one in harm(random, bytes, recorded).into_iter().chain(lie) {
                number += 1;
                let late = Span::from_micros(5_000 + random.next_u64() % 2_000);
                sky.insert((now + late, number), (to, one));
            }
        };
        let mut out = Vec::new();
        while calling.poll_transmit(now, &mut out) {
            cast(&mut random, true, std::mem::take(&mut out), &mut recorded);
        }
        let alive = bad.dead.is_none_or(|dead| now < dead);
        while let Some(to) = listening.poll_transmit(now, &mut out) {
            assert_eq!(to, peer());
            if alive {
                cast(&mut random, false, std::mem::take(&mut out), &mut recorded);
            }
        }
        loop {
            let count = listening.read(now, &mut page);
            got.extend_from_slice(&page[..count]);
            if count == 0 {
                break;
            }
        }
        listening.on_timeout(now);
        while let Some(event) = listening.event() {
            if event == Event::Complete {
                listening.kept(now);
            }
            events.push(event);
        }
        let next = [calling.next_timeout(), listening.next_timeout(), sky.first_key_value().map(|((at, _), _)| *at)];
        let Some(next) = next.into_iter().flatten().min().filter(|next| *next < until) else { break };
        now = next.max(now + Span::from_nanos(1));
        while let Some(entry) = sky.first_entry().filter(|entry| entry.key().0 <= now) {
            let (to_receiver, bytes) = entry.remove();
            match to_receiver {
                true if alive => listening.on_datagram(now, peer(), &bytes),
                true => {}
                false => calling.on_datagram(now, &bytes),
            }
        }
        calling.on_timeout(now);
        listening.on_timeout(now);
    }
    Run { got, end: calling.end().cloned(), events, now, recorded, listening, lies }
}

fn data(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 31 % 251) as u8).collect()
}

fn begun(run: &Run) -> usize {
    run.events.iter().filter(|event| matches!(event, Event::Begun(..))).count()
}

#[test]
fn with_a_key_damaged_or_forged_packets_change_nothing() {
    let config = ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[4; 32]));
    let laws = prop::sample::select(vec!["adaptive", "aggressive", "default", "cubic"]);
    let cases = (any::<u64>(), laws, 0u64..60, 0u64..60, 0u64..200, 0u64..200, 0u64..60);
    let property = |(seed, law, cut, turned, repeated, forged, lost)| {
        let bad = Bad { seed, lost, cut, turned, repeated, forged, ..Bad::default() };
        let (key, data) = (Key::new([8; 32]), data(300_000));
        let run = run(calling(law, Some(key.clone()), 1), listening(Some(key)), &data, bad, at(900.0));
        prop_assert_eq!(&run.end, &Some(Ok(())), "{} after {:?}: {:?}", law, run.now, run.events);
        prop_assert!(run.got == data && begun(&run) == 1, "{}: {} octets", law, run.got.len());
        Ok(())
    };
    runner.run(&cases, property).expect("holds");
}

#[test]
fn without_a_key_nothing_panics_whatever_comes() {
    for seed in 0..12 {
        for law in ["adaptive", "cubic"] {
            let bad = Bad { seed, lost: 20, cut: 50, turned: 50, repeated: 100, forged: 200, ..Bad::default() };
            // What arrives may be damaged then, or not arrive: that it ends at all is what counts.
            let run = run(calling(law, None, 1), listening(None), &data(60_000), bad, at(60.0));
            assert!(run.end.is_some() || law == "cubic", "{law}, {seed}: {:?}", run.events);
            assert!(run.got.len() <= 10_000_000, "{law}");
        }
    }
}

#[test]
fn without_a_key_a_forged_header_keeps_no_stream_from_its_end() {
    let all: [(&str, Lie); 9] = [
        ("an echo from far ahead", (false, |header| header.serial = header.serial.wrapping_add(FAR))),
        ("an echo from a little ahead", (false, |header| header.serial = header.serial.wrapping_add(3))),
        ("a serial number from far ahead", (true, |header| header.serial = header.serial.wrapping_add(FAR))),
        ("no window", (false, |header| header.window = 0)),
        ("the longest epoch", (false, |header| header.epoch = LONGEST)),
        ("the longest D_avg", (false, |header| header.average = LONGEST)),
        ("the longest D", (true, |header| header.delay = LONGEST)),
        ("what was never made", (false, |header| header.number = header.number.wrapping_add(40_000))),
        (
            "blocks of what has not come",
            (false, |header| {
                header.blocks = Blocks::of([(header.number.wrapping_add(1), header.number.wrapping_add(50))]);
            }),
        ),
    ];
    let data = data(3_000_000);
    for law in ["adaptive", "aggressive", "default", "on-change"] {
        for (what, lie) in all {
            // A long D slows a sender down for as long as somebody goes on, and each for some seconds more.
            let slows = what.starts_with("the longest D");
            let (most, within) = if slows { (3, at(60.0)) } else { (u64::MAX, at(15.0)) };
            // One alone, which no other lie mends; and again and again.
            for (every, lies) in [(1, 1), (2, most), (10, most)] {
                let bad = Bad { seed: every, lost: 20, lie: Some(lie), every, lies, ..Bad::default() };
                // Packets leave a millisecond apart, so that there are reports to forge.
                let mut calling = calling(law, None, 1);
                calling.set_own_delay(Span::from_millis(1));
                let run = run(calling, listening(None), &data, bad, at(90.0));
                assert!(run.lies > 0 || every > 2, "{law}, {what}: nothing was forged");
                println!("{law}, {what}, one in {every}: {} forged, {}", run.lies, run.now.since(Time::ZERO));
                assert_eq!(run.end, Some(Ok(())), "{law}, {what}, one in {every}: {:?}", run.now);
                assert!(run.got == data, "{law}, {what}: {} octets", run.got.len());
                assert!(run.now < within, "{law}, {what}, one in {every}: {:?}", run.now);
            }
        }
    }
}

#[test]
fn without_a_key_a_forged_ack_ends_the_stream_with_a_reason() {
    let lie: Lie = (false, |header| header.number = header.number.wrapping_add(40));
    let data = data(3_000_000);
    let mut ends = Vec::new();
    for seed in 0..8 {
        let bad = Bad { seed, lost: 100, lie: Some(lie), every: 1, lies: 4, ..Bad::default() };
        let run = run(calling("adaptive", None, 1), listening(None), &data, bad, at(60.0));
        assert!(run.end != Some(Ok(())) || run.got == data);
        ends.push((run.end, run.now));
    }
    assert!(ends.iter().any(|(end, _)| *end == Some(Err(Failure::Contradicted))), "{ends:?}");
    assert!(ends.iter().all(|(end, now)| end.is_some() && *now < at(30.0)), "{ends:?}");
}

#[test]
fn a_receiver_that_dies_is_noticed_within_the_patience() {
    for law in ["adaptive", "aggressive", "default", "cubic"] {
        let bad = Bad { dead: Some(at(0.5)), ..Bad::default() };
        let run = run(calling(law, None, 1), listening(None), &vec![7; 400_000_000], bad, at(60.0));
        assert_eq!(run.end, Some(Err(Failure::Silent(PATIENCE))), "{law}");
        assert!(run.now < at(0.5) + PATIENCE * 3, "{law}: {}", run.now.since(Time::ZERO));
    }
    let bad = Bad { dead: Some(Time::ZERO), ..Bad::default() };
    let run = run(calling("adaptive", None, 1), listening(None), &[1], bad, at(60.0));
    assert_eq!(run.end, Some(Err(Failure::NoAnswer(PATIENCE))));
}

#[test]
fn keys_that_are_not_the_same_or_missing_are_told() {
    let (one, other) = (Key::new([1; 32]), Key::new([2; 32]));
    for (ours, theirs, why) in [
        (None, Some(one.clone()), Failure::WantsKey),
        (Some(one.clone()), None, Failure::NoKey),
        (Some(one), Some(other), Failure::NoAnswer(PATIENCE)),
    ] {
        let run = run(calling("adaptive", ours, 1), listening(theirs), &[1; 10], Bad::default(), at(60.0));
        assert_eq!((run.end, run.got.len()), (Some(Err(why)), 0));
    }
}

#[test]
fn a_recorded_connection_makes_no_second_one() {
    let (key, data) = (Key::new([8; 32]), data(20_000));
    let first = run(calling("adaptive", Some(key.clone()), 1), listening(Some(key)), &data, Bad::default(), at(60.0));
    assert_eq!((first.end, first.got == data), (Some(Ok(())), true));
    let mut listening = first.listening;
    while listening.event().is_some() {}
    for bytes in &first.recorded {
        listening.on_datagram(first.now + Span::from_millis(1), peer(), bytes);
    }
    assert!(listening.figures().is_none() && listening.event().is_none());
}

#[test]
fn a_flood_of_opens_costs_bounded_memory_and_no_connection() {
    let mut listening = listening(None);
    let mut bytes = Vec::new();
    for n in 0..200_000u32 {
        let transport = Law::Tcp("cubic").transport();
        let cookie = if n % 2 == 0 { NO_COOKIE } else { [1; 32] };
        let open = Open { connection: n, delay: Span::ZERO, transport, nonce: [0; 16], size: 0, cookie };
        bytes.clear();
        Datagram::Open(open).encode(&mut bytes).expect("no options");
        let from = SocketAddr::new([10, 0, (n >> 8) as u8, n as u8].into(), 9);
        listening.on_datagram(at(0.0), from, &bytes);
    }
    assert!(listening.figures().is_none() && listening.event().is_none(), "nobody has shown a cookie");
    let mut out = Vec::new();
    let mut answers = 0;
    while listening.poll_transmit(at(0.0), &mut out).is_some() {
        answers += 1;
    }
    assert!(answers <= 64, "{answers} answers were kept");
    let data = data(5_000);
    let run = run(calling("adaptive", None, 1), listening, &data, Bad::default(), at(60.0));
    assert_eq!((run.end, run.got), (Some(Ok(())), data));
}

#[test]
fn a_second_sender_is_told_that_the_receiver_is_busy() {
    let (mut listening, mut first, mut second) =
        (listening(None), calling("adaptive", None, 1), calling("adaptive", None, 2));
    let other: SocketAddr = "192.0.2.2:7".parse().expect("an address");
    let mut now = Time::ZERO;
    for _ in 0..6 {
        now += Span::from_millis(10);
        let mut out = Vec::new();
        for (calling, from) in [(&mut first, peer()), (&mut second, other)] {
            calling.on_timeout(now);
            while calling.poll_transmit(now, &mut out) {
                listening.on_datagram(now, from, &std::mem::take(&mut out));
            }
        }
        while let Some(to) = listening.poll_transmit(now, &mut out) {
            let calling = if to == other { &mut second } else { &mut first };
            calling.on_datagram(now, &std::mem::take(&mut out));
        }
    }
    assert_eq!((second.end(), first.end()), (Some(&Err(Failure::Busy)), None));
}

#[test]
fn a_sender_with_nothing_to_send_yet_is_taken_and_lasts() {
    for law in ["adaptive", "cubic"] {
        let (mut calling, mut listening) = (calling(law, None, 1), listening(None));
        let mut now = Time::ZERO;
        // Two minutes, beyond any patience.
        for _ in 0..12_000 {
            now += Span::from_millis(10);
            let mut out = Vec::new();
            calling.on_timeout(now);
            while calling.poll_transmit(now, &mut out) {
                listening.on_datagram(now, peer(), &std::mem::take(&mut out));
            }
            listening.on_timeout(now);
            while listening.poll_transmit(now, &mut out).is_some() {
                calling.on_datagram(now, &std::mem::take(&mut out));
            }
        }
        assert!(calling.is_open() && calling.end().is_none(), "{law}: {:?}", calling.end());
        assert!(matches!(listening.event(), Some(Event::Begun(..))) && listening.event().is_none(), "{law}");
        // Once it has something, and an end, both come to theirs.
        let run = run(calling, listening, b"late", Bad { from: now, ..Bad::default() }, at(400.0));
        assert_eq!((run.end, run.got.as_slice()), (Some(Ok(())), &b"late"[..]), "{law}");
    }
}
