//! What a peer that holds the keys can make an endpoint hold, as the allocator counts it.

use lasthop_transport::tunnel::{Config, Endpoint, Event};
use lasthop_units::{Bytes, Rate, Seed, Span, Stream, Time};
use lasthop_wire::tunnel::{AckRange, Data, Frame, MAX_PACKET, OpenResult, packet_header};
use rand::RngExt;
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, Ordering};

/// Counts the octets that are allocated.
struct Counting;

static LIVE: AtomicI64 = AtomicI64::new(0);

// SAFETY: everything is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What a malicious station does.
#[derive(Clone, Copy, Debug)]
enum Attack {
    /// The last octet of every stream's window.
    LastOctet,
    /// Every second octet of every stream.
    EverySecondOctet,
    /// Every stream filled, and read by the proxy, one after the other.
    FillAndDrain,
    /// Streams with numbers far apart, given up as soon as they are opened.
    SparseNumbers,
    /// Streams opened and given up in order.
    OpenAndReset,
    /// Streams that are given up and never were.
    ResetOnly,
    /// More streams than are allowed.
    OpenMany,
    /// Streams that the proxy refuses, and that are never ended.
    Refused,
    /// The windows of a thousand streams filled, which nobody reads, whatever all together may send.
    Overdraw,
    /// Some streams, and then questions with every second number, so that each is answered at once.
    Pings,
    /// A stream that is read at once, so that the proxy tells of its window over and over.
    Windows,
    /// Frames of every kind with numbers of every kind.
    Anything,
}

/// What [`Config::budget`] says: 9/4 of the budget, 4 MiB, and 4 KiB a stream; what a peer may have opened and not ended counts as
/// one, and so do the things that wait to be acknowledged.
fn bound(config: &Config) -> i64 {
    let streams = config.max_streams as i64;
    config.budget as i64 * 9 / 4 + (4 << 20) + streams * 4096
}

/// Feeds an endpoint from a peer that acknowledges nothing, and that goes on when it has been refused. In the end the proxy reads
/// all there is. The most that it ever held, and how many packets it took in.
fn most_held(attack: Attack, packets: usize) -> (i64, usize) {
    let config = match attack {
        // As small as makes the proxy speak for every packet.
        Attack::Windows => Config { window: 1 << 10, ..Config::proxy() },
        _ => Config::proxy(),
    };
    let before = LIVE.load(Ordering::Relaxed);
    let mut proxy = Endpoint::new(config.clone());
    proxy.set_pacing(Time::ZERO, Rate::from_mbit(100), Bytes::new(100_000));
    let mut random = Seed(7).stream("attack");
    let (mut most, mut taken, mut out, mut packet) = (0, 0, Vec::new(), Vec::new());
    let (mut refused, mut streams) = (false, BTreeSet::new());
    for number in 0..packets {
        let now = Time::from_nanos(1_000_000_000 + number as u64 * 100_000);
        fill(attack, number as u64, &mut random, &mut packet);
        let step = if matches!(attack, Attack::Pings) { 2 } else { 1 };
        match proxy.on_packet(now, step * number as u64, &packet) {
            Ok(_) => {
                assert!(!refused, "{attack:?}: refused, and then taken in");
                taken += 1;
            }
            Err(_) => refused = true,
        }
        proxy.on_timeout(now);
        while let Some(event) = proxy.next_event() {
            match (attack, event) {
                (Attack::Refused, Event::Open { stream, .. }) => proxy.opened(stream, OpenResult::Refused),
                (_, Event::Open { stream, .. }) => {
                    proxy.opened(stream, OpenResult::Connected);
                    streams.insert(stream);
                }
                _ => {}
            }
        }
        let stream = 2 * (number as u32 / 60) + 1;
        while matches!(attack, Attack::FillAndDrain) && number % 60 == 59 && !proxy.readable(stream).is_empty() {
            let ready = proxy.readable(stream).len();
            proxy.consume(now, stream, ready);
        }
        if matches!(attack, Attack::Windows) {
            proxy.consume(now, 1, proxy.readable(1).len());
        }
        proxy.delays();
        for _ in 0..20 {
            if proxy.poll_transmit(now, &mut out).is_none() {
                break;
            }
        }
        most = most.max(LIVE.load(Ordering::Relaxed) - before);
    }
    for stream in streams {
        while !proxy.readable(stream).is_empty() {
            let ready = proxy.readable(stream).len();
            proxy.consume(Time::MAX, stream, ready);
        }
    }
    (most, taken)
}

/// The next packet of an attack, as full as it may be.
fn fill(attack: Attack, n: u64, random: &mut Stream, packet: &mut Vec<u8>) {
    packet.clear();
    packet.extend_from_slice(&packet_header(Time::from_nanos(n)));
    let data = |stream: u32, offset: u64, bytes: &'static [u8]| {
        Frame::Data(Data { stream, offset, age: Span::ZERO, end: false, bytes })
    };
    let opening = |stream: u32| Frame::Open { stream, host: "x", port: 1 };
    let mut k = n * 1000;
    while packet.len() + 400 < MAX_PACKET {
        k += 1;
        let frames = match attack {
            Attack::LastOctet => {
                // As far out as all together may be: 4000 streams by 1000 octets.
                let stream = 2 * ((n * 20 + k - n * 1000) as u32 % 4000) + 1;
                vec![opening(stream), data(stream, if n == 0 { 0 } else { 1000 }, b"x")]
            }
            Attack::EverySecondOctet => {
                let place = k % 1000 + n * 40;
                vec![data(2 * (n as u32 % 1000) + 1, 2 * (place % 2000), b"x")]
            }
            Attack::FillAndDrain => {
                let (stream, at) = (2 * (n as u32 / 60) + 1, n % 60);
                vec![opening(stream), data(stream, at * 1000, &[7; 1000])]
            }
            Attack::Overdraw => {
                let (stream, at) = (2 * (n as u32 / 65) + 1, n % 65);
                vec![opening(stream), data(stream, at * 1000, &[7; 1000])]
            }
            // What waits longest is asked after again and again: it takes some that wait to hold up all behind them.
            Attack::Pings if n < 1000 => vec![opening(2 * n as u32 + 1)],
            Attack::Pings => vec![Frame::Ping],
            Attack::Windows => vec![opening(1), data(1, n * 1000, &[7; 1000])],
            Attack::SparseNumbers => {
                let stream = (k as u32).wrapping_mul(2_654_435_761) | 1;
                vec![opening(stream), Frame::Reset { stream, sent: 0 }]
            }
            Attack::OpenAndReset => {
                let stream = 2 * (n * 40 + k - n * 1000) as u32 + 1;
                vec![opening(stream), Frame::Reset { stream, sent: 0 }]
            }
            Attack::ResetOnly => vec![Frame::Reset { stream: 2 * (n * 90 + k - n * 1000) as u32 + 1, sent: 0 }],
            Attack::OpenMany | Attack::Refused => vec![opening(2 * (n * 70 + k - n * 1000) as u32 + 1)],
            Attack::Anything => vec![anything(random)],
        };
        frames.iter().for_each(|frame| frame.encode(packet).expect("short enough"));
        if matches!(attack, Attack::FillAndDrain | Attack::Overdraw | Attack::Pings | Attack::Windows) {
            break;
        }
        if matches!(attack, Attack::Refused) && n > 0 && k.is_multiple_of(40) {
            // It lets the proxy know that its refusals have arrived, so that those streams are over there.
            Frame::Ack { delay: Span::ZERO, ranges: vec![AckRange { first: 0, last: n - 1 }] }
                .encode(packet)
                .expect("short");
            break;
        }
    }
}

fn anything(random: &mut Stream) -> Frame<'static> {
    let stream = 2 * random.random_range(0..6000u32) + 1;
    let offset = [0, 1, 20, 300, 700][random.random_range(0..5usize)];
    let bytes: &[u8] = [&b""[..], b"x", &[7; 300]][random.random_range(0..3usize)];
    match random.random_range(0..20u32) {
        0..8 => Frame::Data(Data { stream, offset, age: Span::ZERO, end: false, bytes }),
        8..12 => Frame::Open { stream, host: "host", port: 80 },
        12 => Frame::Window { stream, limit: offset * 100 },
        13 => Frame::Budget { limit: offset * 1000 },
        14 => Frame::Reset { stream, sent: 1000 },
        _ => Frame::Ping,
    }
}

/// One test, because the allocator counts for the whole process.
#[test]
fn no_peer_makes_an_endpoint_hold_more_than_its_bound() {
    let bound = bound(&Config::proxy());
    for (attack, packets, least_taken) in [
        (Attack::LastOctet, 2000, 2000),
        (Attack::EverySecondOctet, 8000, 1000),
        (Attack::FillAndDrain, 8000, 5000),
        (Attack::SparseNumbers, 4000, 100),
        (Attack::OpenAndReset, 8000, 100),
        (Attack::ResetOnly, 8000, 100),
        (Attack::OpenMany, 4000, 50),
        (Attack::Refused, 4000, 100),
        (Attack::Overdraw, 40_000, 4000),
        (Attack::Pings, 400_000, 400_000),
        (Attack::Windows, 400_000, 10_000),
        (Attack::Anything, 20_000, 10_000),
    ] {
        let (most, taken) = most_held(attack, packets);
        eprintln!("{attack:?}: {most} octets of {bound} at most, {taken} packets taken in");
        assert!(most <= bound, "{attack:?}: {most} octets held, {bound} allowed");
        assert!(taken >= least_taken, "{attack:?}: only {taken} packets were taken in, which shows nothing");
    }
}
