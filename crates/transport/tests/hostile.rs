//! A stream arrives whole, once and in order, over a network that loses, reorders and doubles datagrams, whatever transport carries it.

use lasthop_laws::atp::{Average, HopDelay, Params, Rate, Variant};
use lasthop_laws::tcp::{Setup, by_name};
use lasthop_laws::{Choice, Place};
use lasthop_transport::stream::{AtpReceiver, AtpSender, StreamReceiver, StreamSender, TcpReceiver, TcpSender};
use lasthop_units::{Seed, Span, Stream, Time};
use lasthop_wire::datagram::{Datagram, raise_delay};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use std::collections::BTreeMap;

/// UDP payload of a full packet.
const DATAGRAM: usize = 1472;
/// What the hop takes for a packet, each way's delay beside that, and the longest queue.
const SERVICE: Span = Span::from_micros(500);
const DELAY: Span = Span::from_millis(5);
const QUEUE: usize = 300;

/// What the network does to datagrams, in parts of a thousand.
#[derive(Clone, Copy, Debug, Default)]
struct Abuse {
    seed: u64,
    lost: u64,
    doubled: u64,
    /// Each datagram is delayed by up to this much more, which reorders them.
    jitter: Span,
    /// A bit of D is turned.
    turned: u64,
}

#[derive(Clone, Copy, Debug)]
enum Law {
    Atp(Variant),
    Tcp(&'static str),
}

const LAWS: [Law; 6] = [
    Law::Atp(Variant::Default),
    Law::Atp(Variant::Aggressive),
    Law::Atp(Variant::Adaptive),
    Law::Atp(Variant::OnChange),
    Law::Tcp("cubic"),
    Law::Tcp("newreno"),
];

type Ends = (Box<dyn StreamSender>, Box<dyn StreamReceiver>);

fn ends(law: Law, seed: u64) -> Ends {
    let now = Time::ZERO;
    match law {
        Law::Atp(variant) => {
            let params = Params { variant, ..Params::default() };
            let apart = params.reports_apart();
            let sender = AtpSender::new(now, 7, Box::new(Rate::new(params.clone())), DATAGRAM);
            (Box::new(sender), Box::new(AtpReceiver::new(7, Box::new(Average::new(params)), apart)))
        }
        Law::Tcp(name) => {
            let law = |who| by_name(name, Setup::new(TcpSender::mss(DATAGRAM), Seed(seed).stream(who)));
            let repair = Choice::named(Place::Sender, name).expect("a law").transport().repair();
            let sender = TcpSender::new(now, 7, seed as u32, law("sender").expect("a law"), repair, DATAGRAM);
            let receiver = TcpReceiver::new(now, 7, !seed as u32, law("receiver").expect("a law"), DATAGRAM);
            (Box::new(sender), Box::new(receiver))
        }
    }
}

/// How the receiving application reads: so much at a time, and not sooner than so long after the last time.
#[derive(Clone, Copy)]
struct Reader {
    most: usize,
    every: Span,
}

const AT_ONCE: Reader = Reader { most: usize::MAX, every: Span::ZERO };

struct Run {
    got: Vec<u8>,
    took: Span,
    /// When each datagram with payload left.
    left: Vec<Time>,
    /// The most that waited unread, in octets.
    unread: u64,
    resent: u64,
    done: bool,
}

/// What is under way: by its arrival and a number; true to the receiver.
type UnderWay = BTreeMap<(Time, u64), (bool, Vec<u8>)>;

fn cast(random: &mut Stream, abuse: Abuse, at: Time, way: bool, mut bytes: Vec<u8>, sky: &mut UnderWay) {
    let mut draw = |below: u64| if below == 0 { 0 } else { random.next_u64() % below };
    if draw(1000) < abuse.turned {
        let bit = draw(32);
        bytes[4 + bit as usize / 8] ^= 1 << (bit % 8);
    }
    let copies = match draw(1000) {
        x if x < abuse.lost => 0,
        x if x < abuse.lost + abuse.doubled => 2,
        _ => 1,
    };
    for _ in 0..copies {
        let late = Span::from_nanos(draw(abuse.jitter.as_nanos() + 1));
        sky.insert((at + DELAY + late, sky.len() as u64 + draw(1 << 40)), (way, bytes.clone()));
    }
}

/// Sends `data` over one hop until it is there or `until` has come.
fn run((mut sender, mut receiver): Ends, data: &[u8], abuse: Abuse, reader: Reader, until: Time) -> Run {
    let mut random = Seed(abuse.seed).stream("network");
    let (mut hop, mut free) = (HopDelay::new(SERVICE), Time::ZERO);
    let mut waiting: BTreeMap<u64, Time> = BTreeMap::new();
    let mut sky = UnderWay::new();
    let (mut now, mut written, mut served, mut reads) = (Time::ZERO, 0, 0u64, Time::ZERO);
    let mut run = Run { got: Vec::new(), took: Span::ZERO, left: Vec::new(), unread: 0, resent: 0, done: false };
    let mut page = vec![0; 1 << 16];
    loop {
        while written < data.len() {
            let count = sender.write(&data[written..]);
            written += count;
            if count == 0 {
                break;
            }
        }
        if written == data.len() {
            sender.close();
        }
        let mut out = Vec::new();
        while sender.poll_transmit(now, &mut out) {
            let mut bytes = std::mem::take(&mut out);
            let read = Datagram::decode(&bytes).expect("our own");
            let payload = match read {
                Datagram::Atp { payload, .. } | Datagram::Segment { payload, .. } => payload.len(),
                _ => panic!("no transport sends that"),
            };
            if payload > 0 {
                run.left.push(now);
            }
            assert!(bytes.len() <= DATAGRAM);
            while waiting.first_key_value().is_some_and(|(_, done)| *done <= now) {
                waiting.pop_first();
            }
            if waiting.len() >= QUEUE {
                continue;
            }
            hop.on_queued();
            raise_delay(&mut bytes, hop.delay(now));
            let head = free.max(now);
            free = head + SERVICE;
            hop.on_done(free, now, head);
            served += 1;
            waiting.insert(served, free);
            cast(&mut random, abuse, free, true, bytes, &mut sky);
        }
        while receiver.poll_transmit(now, &mut out) {
            cast(&mut random, abuse, now, false, std::mem::take(&mut out), &mut sky);
        }
        if reads <= now {
            let most = reader.most.min(page.len());
            loop {
                let count = receiver.read(now, &mut page[..most]);
                run.got.extend_from_slice(&page[..count]);
                if count == 0 || reader.most != usize::MAX {
                    break;
                }
            }
            reads = now + reader.every;
        }
        run.unread = run.unread.max(receiver.figures().delivered.get() - run.got.len() as u64);
        run.done = sender.is_done() && receiver.is_done();
        let reading = (run.unread > 0 && !reader.every.is_zero()).then_some(reads);
        let next =
            [sender.next_timeout(), receiver.next_timeout(), sky.first_key_value().map(|((at, _), _)| *at), reading];
        let Some(next) = next.into_iter().flatten().min().filter(|next| *next < until && !run.done) else { break };
        now = next.max(now);
        while let Some(entry) = sky.first_entry().filter(|entry| entry.key().0 <= now) {
            let (to_receiver, bytes) = entry.remove();
            let datagram = Datagram::decode(&bytes).expect("only D was turned");
            if to_receiver { receiver.on_datagram(now, &datagram) } else { sender.on_datagram(now, &datagram) }
        }
        sender.on_timeout(now);
        receiver.on_timeout(now);
    }
    run.took = now.since(Time::ZERO);
    run.resent = sender.figures().resent;
    run
}

fn random_data(len: usize, seed: u64) -> Vec<u8> {
    let mut random = Seed(seed).stream("data");
    (0..len.div_ceil(8)).flat_map(|_| random.next_u64().to_le_bytes()).take(len).collect()
}

fn secs(secs: u64) -> Time {
    Time::ZERO + Span::from_secs(secs)
}

#[test]
fn sixty_four_megabytes_arrive_intact_for_any_transport_and_loss() {
    let data = random_data(64 << 20, 1);
    for law in LAWS {
        for lost in [0, 50, 200] {
            let abuse = Abuse { seed: 3, lost, doubled: 20, jitter: Span::from_millis(3), turned: 0 };
            let run = run(ends(law, 5), &data, abuse, AT_ONCE, secs(30_000));
            assert!(run.done, "{law:?} at {lost}: {} octets after {}", run.got.len(), run.took);
            assert!(run.got == data, "{law:?} at {lost}: other octets");
            let packets = data.len() as u64 / 1400;
            println!("{law:?} at {lost}: {} of {packets} sent again, {}", run.resent, run.took);
        }
    }
}

#[test]
fn what_is_short_or_empty_arrives_too() {
    for law in LAWS {
        for len in [0, 1, 1443, 1444, 1445, 5000] {
            let (data, abuse) = (random_data(len, 2), Abuse { seed: 4, lost: 100, ..Abuse::default() });
            let run = run(ends(law, 6), &data, abuse, AT_ONCE, secs(600));
            assert!(run.done && run.got == data, "{law:?}, {len} octets: {}", run.got.len());
        }
    }
}

#[test]
fn a_slow_reader_bounds_what_waits_and_what_is_sent() {
    let data = random_data(4 << 20, 7);
    // 100 kB/s, a twentieth of what the hop carries.
    let reader = Reader { most: 10_000, every: Span::from_millis(100) };
    for variant in [Variant::Default, Variant::Adaptive] {
        let run = run(ends(Law::Atp(variant), 8), &data, Abuse::default(), reader, secs(20));
        assert!(data.starts_with(&run.got) && run.got.len() > 1_500_000, "{variant:?}: {}", run.got.len());
        // The sender hears how long a packet takes the application, and follows: all would else wait but what was read.
        assert!(run.unread < 1_000_000, "{variant:?}: {} waited", run.unread);
        let late = run.left.iter().filter(|left| **left > secs(15)).count();
        // 14.44 ms a packet: 346 in five seconds.
        assert!(late < 400, "{variant:?}: {late} packets in five seconds");
    }
}

#[test]
fn a_turned_bit_of_d_neither_stops_a_stream_nor_speeds_it_up_beyond_the_law() {
    let runner = ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new_with_rng(runner, TestRng::from_seed(RngAlgorithm::ChaCha, &[9; 32]));
    let data = random_data(400_000, 3);
    let cases = (any::<u64>(), 0..3usize, 1u64..300, 0u64..100);
    let property = |(seed, law, turned, lost)| {
        let abuse = Abuse { seed, lost, turned, ..Abuse::default() };
        let run = run(ends(LAWS[law], 5), &data, abuse, AT_ONCE, secs(3_000));
        prop_assert!(run.done && run.got == data, "{:?}: {} octets after {}", LAWS[law], run.got.len(), run.took);
        // The least D that the law believes is 10 us, and a sender that wakes late catches up with a millisecond.
        let fastest = run.left.windows(202).map(|some| some[201].since(some[0])).min();
        prop_assert!(fastest.is_none_or(|fastest| fastest >= Span::from_millis(1)), "{:?}", fastest);
        Ok(())
    };
    runner.run(&cases, property).expect("holds");
}
