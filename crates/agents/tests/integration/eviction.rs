//! Which flow makes room when a set of the program's table is full: the eBPF program's choice and that of
//! `oal::rwnd::ways`, after any history.
//!
//! Needs root (BPF_PROG_TEST_RUN); says so loudly and passes where that is missing.
#![cfg(feature = "bpf")]

use crate::support::machine;
use lasthop_agents::ap::abi::Key;
use lasthop_agents::ap::kernel::{Direction, Load, Rewriter};
use lasthop_agents::service::Error;
use lasthop_laws::oal::rwnd::Flow;
use lasthop_laws::oal::rwnd::ways::{self, WAYS, Way};
use lasthop_units::{Span, Time};
use lasthop_wire::ip::{self, Ecn};
use lasthop_wire::tcp::{Flags, TcpHeader, TcpOptions, Timestamps};
use lasthop_wire::{FlowKey, ethernet, ip_tcp_packet};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::io::Write as _;
use std::net::IpAddr;

/// More than one set holds.
const PORTS: u16 = 12;

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The station's SYN.
    Open(u16),
    /// The answer, and the ACK of it.
    Complete(u16),
    /// Data towards the station.
    Data(u16),
    Reset(u16),
    Forget(u16),
    /// In ticks, which are nanoseconds under a test clock.
    Wait(u64),
}

fn any_event() -> impl Strategy<Value = Event> {
    let port = || 0..PORTS;
    prop_oneof![
        6 => port().prop_map(Event::Open),
        4 => port().prop_map(Event::Complete),
        4 => port().prop_map(Event::Data),
        1 => port().prop_map(Event::Reset),
        1 => port().prop_map(Event::Forget),
        4 => (0u64..4).prop_map(Event::Wait),
        1 => (0u64..100).prop_map(Event::Wait),
    ]
}

fn downlink(port: u16) -> FlowKey {
    let [source, destination] = [IpAddr::from([192, 0, 2, 1]), IpAddr::from([10, 0, 0, 2])];
    FlowKey { source, destination, source_port: 443, destination_port: 50_000 + port, protocol: ip::TCP }
}

fn key(port: u16) -> Key {
    Key::of_downlink(&downlink(port)).expect("a TCP flow")
}

fn header(seq: u32, ack: u32, flags: Flags) -> TcpHeader {
    let options = TcpOptions { timestamps: Some(Timestamps { val: 1, ecr: 0 }), ..TcpOptions::default() };
    TcpHeader { source_port: 0, destination_port: 0, seq, ack, flags, window: 60_000, options, payload_len: 0 }
}

/// Where every frame comes from.
const STATION: [u8; 6] = [4; 6];

/// One set, in Rust.
#[derive(Default)]
struct Reference {
    ways: [Way; WAYS],
    keys: [Option<Key>; WAYS],
}

impl Reference {
    fn pass(&mut self, now: Time, port: u16, direction: Direction, header: &TcpHeader) {
        let tick = now.as_nanos() as u32;
        let here = |keys: &[Option<Key>; WAYS]| keys.iter().position(|k| *k == Some(key(port)));
        let opens = header.flags == Flags::SYN;
        let place = here(&self.keys).or_else(|| {
            let way = ways::choose(&self.ways, tick).filter(|_| opens)?;
            self.keys[way] = Some(key(port));
            self.ways[way] = Way { flow: Some(Flow::default()), used: tick };
            Some(way)
        });
        let Some(way) = place.map(|way| &mut self.ways[way]) else { return };
        way.used = tick;
        let Some(flow) = &mut way.flow else { return };
        match direction {
            Direction::Downlink => flow.on_downlink(now, header),
            Direction::Uplink => {
                assert_eq!(flow.on_uplink(now, header), None, "no target, no change");
                flow.note_hardware(header, STATION);
            }
        }
    }

    fn forget(&mut self, port: u16) {
        for (held, way) in self.keys.iter_mut().zip(&mut self.ways) {
            if *held == Some(key(port)) {
                (*held, way.flow) = (None, None);
            }
        }
    }

    fn flows(&self) -> Vec<(Key, Flow)> {
        let both = self.keys.iter().zip(&self.ways);
        let mut flows: Vec<(Key, Flow)> = both.filter_map(|(key, way)| Some(((*key)?, way.flow?))).collect();
        flows.sort_unstable_by_key(|(key, _)| *key);
        flows
    }
}

struct Both<'a> {
    kernel: &'a Rewriter,
    reference: Reference,
    now: Time,
}

impl Both<'_> {
    fn pass(&mut self, port: u16, direction: Direction, header: &TcpHeader, payload: usize) {
        let flow = if direction == Direction::Uplink { downlink(port).reversed() } else { downlink(port) };
        let mut frame = Vec::new();
        ethernet::write(&mut frame, [2; 6], STATION, ethernet::IPV4);
        frame.extend(ip_tcp_packet(&flow, Ecn::NotEct, header, &vec![0; payload]).expect("options fit"));
        self.kernel.set_test_time(self.now);
        let out = self.kernel.test_run(direction, &frame).expect("a test run");
        assert_eq!(out, frame, "no target, no change");
        let header = TcpHeader { payload_len: payload as u32, ..*header };
        self.reference.pass(self.now, port, direction, &header);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Open(port) => self.pass(port, Direction::Uplink, &header(7, 0, Flags::SYN), 0),
            Event::Complete(port) => {
                self.pass(port, Direction::Downlink, &header(99, 8, Flags::SYN | Flags::ACK), 0);
                self.pass(port, Direction::Uplink, &header(8, 100, Flags::ACK), 0);
            }
            Event::Data(port) => self.pass(port, Direction::Downlink, &header(100, 8, Flags::ACK), 10),
            Event::Reset(port) => self.pass(port, Direction::Downlink, &header(100, 8, Flags::RST), 0),
            Event::Forget(port) => {
                self.kernel.forget(&key(port));
                self.reference.forget(port);
            }
            Event::Wait(ticks) => self.now += Span::from_nanos(ticks),
        }
    }
}

#[test]
fn bpf_and_rust_agree_on_who_makes_room() {
    machine::share(module_path!());
    // One set.
    let load = Load { test_clock: true, age_limit: Span::from_secs(1_000_000), max_flows: 1, ..Load::default() };
    let kernel = match Rewriter::load(load) {
        Ok(kernel) => kernel,
        Err(Error::Permission { what }) => {
            // Past the capture of test output.
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED: eviction from the eBPF table: not allowed to use {what} (needs root)"
            );
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let hour = std::cell::Cell::new(0u64);
    let mut runner = TestRunner::new(Config { cases: 256, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&vec(any_event(), 1..250), |history| {
        // Later than whatever stands in the table. Of a tick the low 32 bits count: one history sees them wrap.
        hour.set(hour.get() + 1);
        let now = Time::from_nanos((hour.get() << 32) + (1 << 32) + (hour.get() << 20) - (128 << 20) - 50);
        kernel.heartbeat(now).expect("a heartbeat");
        let rested = Way { flow: None, used: (now.as_nanos() as u32).wrapping_sub(1 << 20) };
        let mut both =
            Both { kernel: &kernel, reference: Reference { ways: [rested; WAYS], ..Default::default() }, now };
        // Whatever earlier histories left in free places, all have rested alike: bring them into one state.
        for port in 0..WAYS as u16 {
            both.pass(100 + port, Direction::Uplink, &header(7, 0, Flags::SYN), 0);
        }
        (0..WAYS as u16).for_each(|port| both.happen(Event::Forget(100 + port)));
        both.now += Span::from_nanos(10);
        for event in history {
            both.happen(event);
            let left = kernel.flows();
            if left != both.reference.flows() {
                kernel.flows().iter().for_each(|(key, _)| kernel.forget(key));
                prop_assert_eq!(left, both.reference.flows(), "after {:?}", event);
            }
        }
        kernel.flows().iter().for_each(|(key, _)| kernel.forget(key));
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
    let counters = kernel.counters().expect("counters");
    // A comparison of sets that never fill would prove little.
    assert!(counters.evicted > 800 && counters.refused > 50, "{counters:?}");
    println!("{counters:?}");
}
