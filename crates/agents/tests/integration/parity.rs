//! The eBPF rewriter and the Rust rewriter, on the same packets: equal bytes out, equal state left behind. And the program tells of the
//! segments of which the state does not.
//!
//! Needs root (BPF_PROG_TEST_RUN); says so loudly and passes where that is missing.
#![cfg(feature = "bpf")]

use crate::support::machine;
use lasthop_agents::ap::abi::{Event as Told, Key};
use lasthop_agents::ap::kernel::{Direction, Load, Rewriter};
use lasthop_agents::service::Error;
use lasthop_laws::oal::rwnd::Flow;
use lasthop_units::{Bytes, Span, Time};
use lasthop_wire::ip::{self, Ecn};
use lasthop_wire::tcp::{Flags, SackBlock, SackBlocks, TcpHeader, TcpOptions, Timestamps};
use lasthop_wire::{FlowKey, Link, TcpPacket, ethernet, ip_tcp_packet};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::IpAddr;

const AGE_LIMIT: Span = Span::from_millis(500);

/// The Rust side of what the eBPF program and its map are.
#[derive(Default)]
struct Reference {
    flows: BTreeMap<Key, Flow>,
    heartbeat: Time,
}

impl Reference {
    fn run(&mut self, now: Time, direction: Direction, packet: &[u8]) -> (Vec<u8>, Option<Key>) {
        let untouched = packet.to_vec();
        let Ok(Some(found)) = TcpPacket::parse(packet, Link::Ethernet) else { return (untouched, None) };
        let downlink = if direction == Direction::Uplink { found.flow.reversed() } else { found.flow };
        let Some(key) = Key::of_downlink(&downlink) else { return (untouched, None) };
        let flags = found.header.flags;
        let opens = flags.contains(Flags::SYN) && !flags.intersects(Flags::ACK | Flags::RST);
        if opens {
            self.flows.entry(key).or_default();
        }
        let Some(flow) = self.flows.get_mut(&key) else { return (untouched, Some(key)) };
        let mut out = untouched;
        let source = <[u8; 6]>::try_from(&packet[6..12]).expect("six octets");
        match direction {
            Direction::Downlink => flow.on_downlink(now, &found.header),
            Direction::Uplink if now > self.heartbeat + AGE_LIMIT => flow.pass_uplink(now, &found.header),
            Direction::Uplink => {
                if let Some(window) = flow.on_uplink(now, &found.header) {
                    found.set_window(&mut out, window);
                }
            }
        }
        if direction == Direction::Uplink {
            flow.note_hardware(&found.header, source);
        }
        (out, Some(key))
    }
}

#[derive(Clone, Debug)]
enum Event {
    /// A segment of a connection that goes on: numbers near where it stands.
    Segment {
        direction: bool,
        flow: usize,
        seq: u32,
        ack: u32,
        header: TcpHeader,
        payload: usize,
    },
    /// A whole handshake.
    Open {
        flow: usize,
        station_opens: bool,
        isn: (u32, u32),
        options: (TcpOptions, TcpOptions),
        window: u16,
    },
    Target {
        flow: usize,
        target: Option<u64>,
    },
    Wait {
        ns: u64,
        heartbeat: bool,
    },
}

#[derive(Clone, Debug)]
struct Wrapping {
    tags: usize,
    extensions: usize,
    damage: Vec<(usize, u8)>,
    padding: usize,
    cut: Option<usize>,
}

const FLOWS: usize = 4;

fn downlink(flow: usize) -> FlowKey {
    let (source, destination) = match flow % 2 {
        0 => (IpAddr::from([192, 0, 2, 1]), IpAddr::from([10, 0, 0, 2])),
        _ => ("2001:db8::1".parse().expect("an address"), "2001:db8:1::2".parse().expect("an address")),
    };
    FlowKey { source, destination, source_port: 443, destination_port: 50_000 + flow as u16, protocol: ip::TCP }
}

fn any_options(syn: bool) -> BoxedStrategy<TcpOptions> {
    let stamps = option::weighted(0.7, (0u32..40, 0u32..40).prop_map(|(val, ecr)| Timestamps { val, ecr }));
    if syn {
        let scale = option::weighted(0.9, prop_oneof![9 => 0u8..=14, 1 => any::<u8>()]);
        let mss = option::weighted(0.9, prop_oneof![9 => 536u16..1461, 1 => any::<u16>()]);
        let hands_off = prop::bool::weighted(0.03);
        (mss, scale, any::<bool>(), stamps, hands_off)
            .prop_map(|(mss, window_scale, sack_permitted, timestamps, hands_off)| TcpOptions {
                mss,
                window_scale,
                sack_permitted,
                timestamps,
                hands_off,
                ..TcpOptions::default()
            })
            .boxed()
    } else {
        let blocks = prop_oneof![3 => vec(any::<(u32, u32)>(), 0..1), 1 => vec(any::<(u32, u32)>(), 1..4)];
        (stamps, blocks, prop::bool::weighted(0.003))
            .prop_map(|(timestamps, blocks, hands_off)| {
                let mut sack = SackBlocks::EMPTY;
                if !hands_off {
                    blocks.iter().for_each(|&(left, right)| sack.push(SackBlock { left, right }));
                }
                TcpOptions { timestamps, sack, hands_off, ..TcpOptions::default() }
            })
            .boxed()
    }
}

/// A clean connection of each flow, limited from the start: most of what follows then happens to live flows.
fn any_beginning() -> impl Strategy<Value = Vec<(Event, Wrapping)>> {
    let options = || {
        (0u8..=10, 536u16..1461, any::<bool>()).prop_map(|(scale, mss, stamps)| TcpOptions {
            mss: Some(mss),
            window_scale: Some(scale),
            timestamps: stamps.then_some(Timestamps { val: 1, ecr: 0 }),
            ..TcpOptions::default()
        })
    };
    let one = ((any::<u32>(), any::<u32>()), any::<bool>(), (options(), options()), 1_000u16..9_000, 1_000u64..60_000);
    vec(one, FLOWS).prop_map(|connections| {
        let clean = Wrapping { tags: 0, extensions: 0, damage: Vec::new(), padding: 0, cut: None };
        let events =
            connections.into_iter().enumerate().flat_map(|(flow, (isn, station_opens, options, window, target))| {
                let open = Event::Open { flow, station_opens, isn, options, window };
                [open, Event::Target { flow, target: Some(target) }]
            });
        events.map(|event| (event, clean.clone())).collect()
    })
}

fn any_event() -> impl Strategy<Value = (Event, Wrapping)> {
    let flags = prop_oneof![90 => Just(0x10u8), 9 => Just(0x18), 1 => Just(0x11), 1 => any::<u8>()];
    let near = || {
        prop_oneof![
            60 => Just(0u32),
            20 => 0u32..3_000,
            5 => 0u32..100_000,
            2 => (u32::MAX - 50_000)..=u32::MAX,
            1 => any::<u32>(),
        ]
    };
    let window = || prop_oneof![1 => Just(0u16), 2 => 1u16..60, 3 => any::<u16>()];
    let header = (flags, window(), any_options(false)).prop_map(|(flags, window, options)| TcpHeader {
        source_port: 0,
        destination_port: 0,
        seq: 0,
        ack: 0,
        flags: Flags(flags),
        window,
        options,
        payload_len: 0,
    });
    let flow = || 0usize..FLOWS;
    let payload = prop_oneof![1 => Just(0usize), 1 => 1usize..1449];
    let isn = || prop_oneof![any::<u32>(), (u32::MAX - 100_000)..=u32::MAX];
    let event = prop_oneof![
        40 => (any::<bool>(), flow(), near(), near(), header, payload).prop_map(
            |(direction, flow, seq, ack, header, payload)| Event::Segment { direction, flow, seq, ack, header, payload }
        ),
        3 => (flow(), any::<bool>(), (isn(), isn()), (any_options(true), any_options(true)), window()).prop_map(
            |(flow, station_opens, isn, options, window)| Event::Open { flow, station_opens, isn, options, window }
        ),
        5 => (flow(), option::weighted(0.8, prop_oneof![1_000u64..5_000, 5_000u64..500_000, any::<u64>()]))
            .prop_map(|(flow, target)| Event::Target { flow, target }),
        6 => (prop_oneof![5 => 0u64..20_000_000, 1 => 0u64..3_000_000_000], prop::bool::weighted(0.8))
            .prop_map(|(ns, heartbeat)| Event::Wait { ns, heartbeat }),
    ];
    let damage = prop_oneof![8 => vec((0usize..120, any::<u8>()), 0..1), 1 => vec((12usize..100, any::<u8>()), 1..3)];
    let tags = prop_oneof![5 => Just(0usize), 1 => 1usize..4];
    let extensions = prop_oneof![5 => Just(0usize), 1 => 1usize..7];
    let wrapping = (tags, extensions, damage, 0usize..8, option::weighted(0.02, 54usize..120))
        .prop_map(|(tags, extensions, damage, padding, cut)| Wrapping { tags, extensions, damage, padding, cut });
    (event, wrapping)
}

/// A segment in sequence with nothing but timestamps, in a plain frame.
fn ordinary_event() -> impl Strategy<Value = (Event, Wrapping)> {
    let stamps = (0u32..40, 0u32..40).prop_map(|(val, ecr)| Timestamps { val, ecr });
    let payload = prop_oneof![2 => Just(0usize), 1 => 1usize..1449];
    let ack = prop_oneof![3 => Just(0u32), 1 => 0u32..3_000];
    (any::<bool>(), 0..FLOWS, ack, 100u16..9_000, stamps, payload).prop_map(
        |(direction, flow, ack, window, stamps, payload)| {
            let header = TcpHeader {
                source_port: 0,
                destination_port: 0,
                seq: 0,
                ack: 0,
                flags: Flags::ACK,
                window,
                options: TcpOptions { timestamps: Some(stamps), ..TcpOptions::default() },
                payload_len: 0,
            };
            let clean = Wrapping { tags: 0, extensions: 0, damage: Vec::new(), padding: 0, cut: None };
            (Event::Segment { direction, flow, seq: 0, ack, header, payload }, clean)
        },
    )
}

/// A frame around an IP packet, perhaps tagged, extended, damaged, padded or cut.
fn frame(packet: &[u8], wrapping: &Wrapping) -> Vec<u8> {
    let is_v6 = packet[0] >> 4 == 6;
    let mut bytes = vec![2; 12];
    for _ in 0..wrapping.tags {
        bytes.extend_from_slice(&ethernet::VLAN.to_be_bytes());
        bytes.extend_from_slice(&[0, 7]);
    }
    bytes.extend_from_slice(&if is_v6 { ethernet::IPV6 } else { ethernet::IPV4 }.to_be_bytes());
    let ip_at = bytes.len();
    let extensions = if is_v6 { wrapping.extensions } else { 0 };
    bytes.extend_from_slice(&packet[..if is_v6 { 40 } else { 20 }]);
    for i in 0..extensions {
        let next = if i + 1 == extensions { ip::TCP } else { 60 };
        bytes.extend_from_slice(&[next, 0, 1, 4, 0, 0, 0, 0]);
    }
    if extensions > 0 {
        bytes[ip_at + 6] = if wrapping.damage.is_empty() { 60 } else { 44 };
        let len = (packet.len() - 40 + 8 * extensions) as u16;
        bytes[ip_at + 4..ip_at + 6].copy_from_slice(&len.to_be_bytes());
    }
    bytes.extend_from_slice(&packet[if is_v6 { 40 } else { 20 }..]);
    bytes.extend(std::iter::repeat_n(0x55, wrapping.padding));
    for &(at, value) in &wrapping.damage {
        if let Some(byte) = bytes.get_mut(at) {
            *byte = value;
        }
    }
    if let Some(cut) = wrapping.cut {
        bytes.truncate(cut);
    }
    bytes
}

/// What an event says.
#[derive(PartialEq, Debug)]
struct News {
    key: Key,
    born: Time,
    at: Time,
    /// Highest sequence number and highest acknowledgement, before it.
    numbers: (u32, u32),
    up: bool,
    /// Sequence number, payload, acknowledgement.
    segment: (u32, u32, u32),
    sack: Vec<(u32, u32)>,
}

impl News {
    fn of(event: &Told) -> News {
        // Of data the blocks say nothing that anybody uses.
        let sack = event.sack().filter(|_| event.is_up()).collect();
        let (numbers, segment) = ((event.max_end, event.highest_ack), (event.seq, event.len, event.ack));
        News { key: event.key, born: event.born(), at: event.at(), numbers, up: event.is_up(), segment, sack }
    }
}

struct Both<'a> {
    kernel: &'a Rewriter,
    reference: Reference,
    now: Time,
    /// What each flow's ends count from: the initial sequence numbers, advanced as segments go by.
    at: [(u32, u32); FLOWS],
    rewritten: u32,
    /// Segments of flows in the table.
    managed: u64,
    told: u64,
}

impl Both<'_> {
    fn pass(&mut self, direction: Direction, bytes: &[u8]) -> Result<(), TestCaseError> {
        self.kernel.set_test_time(self.now);
        let news = self.news(direction, bytes);
        let out = self.kernel.test_run(direction, bytes).expect("test run");
        let mut told = Vec::new();
        prop_assert!(self.kernel.events(&mut told).expect("a ring"));
        self.told += told.len() as u64;
        prop_assert_eq!(told.iter().map(News::of).collect::<Vec<_>>(), news.into_iter().collect::<Vec<_>>());
        let (expected, key) = self.reference.run(self.now, direction, bytes);
        prop_assert_eq!(&out, &expected, "bytes differ, {:?}", direction);
        self.rewritten += u32::from(out != bytes);
        if let Some(key) = key {
            self.managed += u64::from(self.reference.flows.contains_key(&key));
            let state = self.kernel.flow(&key);
            prop_assert_eq!(state, self.reference.flows.get(&key).copied(), "state differs, {:?}", direction);
        }
        Ok(())
    }

    /// What the program is to tell of a segment: what the flow's numbers do not say.
    fn news(&self, direction: Direction, bytes: &[u8]) -> Option<News> {
        let found = TcpPacket::parse(bytes, Link::Ethernet).ok()??;
        let up = direction == Direction::Uplink;
        let key = Key::of_downlink(&if up { found.flow.reversed() } else { found.flow })?;
        let flow = self.reference.flows.get(&key).filter(|flow| flow.is_manageable())?;
        let TcpHeader { seq, ack, flags, options, payload_len: len, .. } = found.header;
        let (end, highest_ack) = flow.progress();
        let ahead = end.wrapping_sub(seq) as i32;
        let is_news = match up {
            true => !options.sack.is_empty(),
            false => len == 1 || (len > 0 && seq != end) || (len == 0 && ahead < 0),
        };
        let sack = if up { options.sack.as_slice() } else { &[] };
        let sack = sack.iter().map(|block| (block.left, block.right)).collect();
        let news = News {
            key,
            born: flow.born(),
            at: self.now,
            numbers: (end, highest_ack),
            up,
            segment: (seq, len, ack),
            sack,
        };
        (is_news && !flags.intersects(Flags::SYN | Flags::RST)).then_some(news)
    }

    fn segment(
        &mut self,
        direction: Direction,
        flow: usize,
        header: &TcpHeader,
        payload: usize,
        wrapping: &Wrapping,
    ) -> Result<(), TestCaseError> {
        let key = if direction == Direction::Uplink { downlink(flow).reversed() } else { downlink(flow) };
        let packet = ip_tcp_packet(&key, Ecn::NotEct, header, &vec![3; payload]).expect("options fit");
        self.pass(direction, &frame(&packet, wrapping))
    }

    fn happen(&mut self, event: &Event, wrapping: &Wrapping) -> Result<(), TestCaseError> {
        self.now += Span::from_micros(50);
        match event {
            Event::Segment { direction, flow, seq, ack, header, payload } => {
                let (down, up) = self.at[*flow];
                let direction = if *direction { Direction::Uplink } else { Direction::Downlink };
                let mut header = *header;
                match direction {
                    Direction::Downlink => {
                        // Mostly in sequence: only large numbers are out of it.
                        header.seq = if *seq < 3_000 { down } else { down.wrapping_add(*seq) };
                        header.ack = up;
                        if *seq < 3_000 {
                            self.at[*flow].0 = down.wrapping_add(*payload as u32);
                        }
                    }
                    Direction::Uplink => {
                        header.seq = up;
                        header.ack = down.wrapping_sub(*ack);
                    }
                }
                self.segment(direction, *flow, &header, *payload, wrapping)
            }
            Event::Open { flow, station_opens, isn, options, window } => {
                let plain = TcpHeader {
                    source_port: 0,
                    destination_port: 0,
                    seq: 0,
                    ack: 0,
                    flags: Flags::SYN,
                    window: *window,
                    options: TcpOptions::default(),
                    payload_len: 0,
                };
                let (down, up) = (isn.0, isn.1);
                let answer = Flags::SYN | Flags::ACK;
                let sides = if *station_opens {
                    [(Direction::Uplink, up, 0, Flags::SYN), (Direction::Downlink, down, up.wrapping_add(1), answer)]
                } else {
                    [(Direction::Downlink, down, 0, Flags::SYN), (Direction::Uplink, up, down.wrapping_add(1), answer)]
                };
                for (direction, seq, ack, flags) in sides {
                    let options = if direction == Direction::Downlink { options.0 } else { options.1 };
                    let header = TcpHeader { seq, ack, flags, options, ..plain };
                    self.segment(direction, *flow, &header, 0, wrapping)?;
                }
                self.at[*flow] = (down.wrapping_add(1), up.wrapping_add(1));
                Ok(())
            }
            Event::Target { flow, target } => {
                let key = Key::of_downlink(&downlink(*flow)).expect("a TCP flow");
                let target = target.map(Bytes::new);
                let there = self.reference.flows.get_mut(&key);
                let born = there.as_ref().map_or(Time::ZERO, |flow| flow.born());
                let done = self.kernel.set_target(&key, born, target);
                prop_assert_eq!(done, there.is_some());
                if let Some(flow) = there {
                    flow.set_target(target);
                    let stale = self.kernel.set_target(&key, born + Span::from_nanos(1), None);
                    prop_assert!(!stale, "another connection's target");
                }
                Ok(())
            }
            Event::Wait { ns, heartbeat } => {
                self.now += Span::from_nanos(*ns);
                if *heartbeat {
                    self.kernel.heartbeat(self.now).expect("a heartbeat");
                    self.reference.heartbeat = self.now;
                }
                Ok(())
            }
        }
    }
}

#[test]
fn bpf_and_rust_agree_on_bytes_and_state() {
    machine::share(module_path!());
    let load = Load { test_clock: true, age_limit: AGE_LIMIT, max_flows: 64, events: true, ..Load::default() };
    let kernel = match Rewriter::load(load) {
        Ok(kernel) => kernel,
        Err(Error::Permission { what }) => {
            // Past the capture of test output.
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED: parity of eBPF and Rust rewriter: not allowed to use {what} (needs root)"
            );
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let cases = 1024;
    let rewritten = std::cell::Cell::new(0);
    let (hour, managed, told) = (std::cell::Cell::new(0), std::cell::Cell::new(0u64), std::cell::Cell::new(0u64));
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    // Most of what a flow sees is ordinary, which is what the program's short way is for.
    let event = prop_oneof![2 => any_event(), 1 => ordinary_event()];
    let histories = (any_beginning(), vec(event, 1..250));
    let outcome = runner.run(&histories, |(mut history, rest)| {
        history.extend(rest);
        // Places rest before they are taken again: each history has an hour of its own.
        hour.set(hour.get() + 1);
        let start = Time::ZERO + Span::from_secs(3_600 * hour.get());
        kernel.heartbeat(start).expect("a heartbeat");
        let reference = Reference { heartbeat: start, ..Reference::default() };
        let mut both =
            Both { kernel: &kernel, reference, now: start, at: [(0, 0); FLOWS], rewritten: 0, managed: 0, told: 0 };
        let result = history.iter().try_for_each(|(event, wrapping)| both.happen(event, wrapping));
        rewritten.set(rewritten.get() + both.rewritten);
        managed.set(managed.get() + both.managed);
        told.set(told.get() + both.told);
        let left = kernel.flows();
        let expected: Vec<(Key, Flow)> = both.reference.flows.iter().map(|(key, flow)| (*key, *flow)).collect();
        for (key, _) in &left {
            kernel.forget(key);
        }
        result?;
        prop_assert_eq!(left, expected);
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
    // A comparison of packets that nobody changes would prove little.
    assert!(rewritten.get() > 2 * cases, "only {} segments in {cases} histories were rewritten", rewritten.get());
    let apart = kernel.counters().expect("counters").apart;
    let short = managed.get() - apart;
    assert!(10 * short > managed.get(), "only {short} of {} segments took the short way", managed.get());
    assert!(told.get() > u64::from(cases), "only {} segments were told", told.get());
    println!(
        "{} segments told; {} segments rewritten alike in {cases} histories; {short} short, {apart} long",
        told.get(),
        rewritten.get()
    );
}
