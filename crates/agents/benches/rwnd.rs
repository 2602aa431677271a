//! What the eBPF rewriter costs a packet, live: real TCP over veth pairs, counted by the kernel's BPF statistics, their
//! own two clock readings a run included.
//!
//! Prints `name value unit` lines; without root, one line on standard error.
#![allow(clippy::disallowed_methods, reason = "real time is what is measured")]

#[path = "../tests/support/mod.rs"]
mod support;

use lasthop_agents::ap::kernel::{Direction, Load, Rewriter};
use lasthop_agents::relay::stamper::Stamper;
use lasthop_agents::service::Method;
use lasthop_agents::service::program_info::{enable_statistics, run_time};
use lasthop_units::{Bytes, Span, Time, stats::Samples};
use lasthop_wire::tcp::{Flags, TcpHeader, TcpOptions, Timestamps};
use lasthop_wire::{FlowKey, ethernet, ip, ip_tcp_packet};
use libbpf_rs::libbpf_sys;
use nix::time::{ClockId, clock_gettime};
use std::net::IpAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};
use support::netns::{Netns, available};
use support::tcp::{Bulk, Opener};

const ROUNDS: usize = 7;
const ROUND: Duration = Duration::from_millis(700);
const WINDOW: u64 = 400_000;

fn main() {
    // `cargo test --benches` asks for a quick look only.
    let rounds = if std::env::args().any(|argument| argument == "--bench") { ROUNDS } else { 1 };
    if !available("bpf.rwnd benchmarks") {
        return;
    }
    warm();
    relay();
    let _statistics = enable_statistics().expect("root");
    let air = Path::new(true);
    let costs = air.measure(rounds, Flow::Unknown);
    print("bpf.rwnd.veth_unmanaged_ns_per_packet", &costs.uplink);
    let costs = air.measure(rounds, Flow::Limited);
    print("bpf.rwnd.veth_ns_per_packet", &costs.uplink);
    print("bpf.rwnd.veth_downlink_ns_per_packet", &costs.downlink);
    print("bpf.rwnd.veth_both_ns_per_packet", &costs.both);
    print("bpf.empty_program.uplink_ns_per_packet", &costs.empty_uplink);
    print("bpf.empty_program.downlink_ns_per_packet", &costs.empty_downlink);
    drop(air);
    let costs = Path::new(false).measure(rounds, Flow::Limited);
    print("bpf.rwnd.offload_ns_per_packet", &costs.uplink);
    print("bpf.rwnd.offload_both_ns_per_packet", &costs.both);
}

/// Server, access point, station, on veth pairs.
struct Path {
    station: Netns,
    ap: Netns,
    server: Netns,
}

/// What the flow is to the programs.
#[derive(Clone, Copy, PartialEq)]
enum Flow {
    /// Opened before they were attached.
    Unknown,
    /// Every ACK is rewritten.
    Limited,
}

impl Path {
    /// `on_air`: one packet a frame and whole checksums, as 802.11 has it. Otherwise the kernel hands packets of up to
    /// 64 kB from one namespace to the other and leaves their checksums undone.
    fn new(on_air: bool) -> Path {
        let (station, ap, server) = (Netns::new("sta"), Netns::new("ap"), Netns::new("srv"));
        station.veth("sta0", &ap, "wlan0");
        server.veth("srv0", &ap, "eth0");
        for (netns, device, address) in [
            (&station, "sta0", "10.1.0.2/24"),
            (&ap, "wlan0", "10.1.0.1/24"),
            (&ap, "eth0", "10.2.0.1/24"),
            (&server, "srv0", "10.2.0.2/24"),
        ] {
            netns.ip(&format!("addr add {address} dev {device}"));
            if on_air {
                netns.as_on_air(device);
            }
            netns.ip(&format!("link set {device} up"));
        }
        station.ip("route add default via 10.1.0.1");
        server.ip("route add default via 10.2.0.1");
        ap.within(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")).expect("our own namespace");
        Path { station, ap, server }
    }

    fn transfer(&self) -> Bulk {
        let address = |octets: [u8; 4]| IpAddr::from(octets);
        let (server, station) = (address([10, 2, 0, 2]), address([10, 1, 0, 2]));
        Bulk::start((&self.server, server), (&self.station, station), Opener::Receiver)
    }

    fn measure(&self, rounds: usize, flow: Flow) -> Costs {
        let index = |device| nix::net::if_::if_nametoindex(device).expect("there") as i32;
        let earlier = (flow == Flow::Unknown).then(|| self.transfer());
        let rewriter = self.ap.within(|| {
            let mut rewriter = Rewriter::load(Load::default()).expect("a kernel that takes the programs");
            rewriter.attach(index("wlan0"), Method::Best).expect("attached");
            rewriter
        });
        // On the path's other interface, where the same packets pass.
        let empty = self.ap.within(|| {
            let sides = [libbpf_sys::BPF_TCX_EGRESS, libbpf_sys::BPF_TCX_INGRESS];
            sides.map(|side| EmptyProgram::attach(index("eth0"), side))
        });
        let _transfer = earlier.unwrap_or_else(|| self.transfer());
        std::thread::sleep(Duration::from_millis(100));
        for (key, flow) in rewriter.flows() {
            rewriter.set_target(&key, flow.born(), Some(Bytes::new(WINDOW)));
        }
        let costs = Costs::measure(&rewriter, &empty, rounds);
        let counters = rewriter.counters().expect("counters");
        eprintln!(
            "{} uplink segments, {} windows lowered, {} segments took the long way of {}",
            costs.uplink_runs, counters.rewritten, counters.apart, costs.runs
        );
        costs
    }
}

/// One flow, everything warm: how far the program itself is from what is measured live.
fn warm() {
    let rewriter =
        Rewriter::load(Load { age_limit: Span::MAX, ..Load::default() }).expect("a kernel that takes the programs");
    let flow = FlowKey {
        source: IpAddr::from([10, 2, 0, 2]),
        destination: IpAddr::from([10, 1, 0, 2]),
        source_port: 443,
        destination_port: 50_000,
        protocol: ip::TCP,
    };
    let frame = |flow: &FlowKey, seq, ack, flags, options, payload: &[u8]| {
        let header =
            TcpHeader { source_port: 0, destination_port: 0, seq, ack, flags, window: 60_000, options, payload_len: 0 };
        let mut frame = Vec::new();
        ethernet::write(&mut frame, [2; 6], [4; 6], ethernet::IPV4);
        frame.extend(ip_tcp_packet(flow, ip::Ecn::NotEct, &header, payload).expect("options fit"));
        frame
    };
    let syn = TcpOptions {
        mss: Some(1460),
        window_scale: Some(7),
        timestamps: Some(Timestamps { val: 1, ecr: 0 }),
        ..TcpOptions::default()
    };
    let stamps = TcpOptions { timestamps: Some(Timestamps { val: 2, ecr: 1 }), ..TcpOptions::default() };
    let up = flow.reversed();
    let ack = frame(&up, 101, 1_449, Flags::ACK, stamps, b"");
    let data = frame(&flow, 1, 101, Flags::ACK, stamps, &[0; 1_448]);
    let time = |name, direction, packet: &[u8]| {
        let each = rewriter.time_test_runs(direction, packet, 200_000).expect("a test run");
        println!("{name} {} ns", each.as_nanos());
    };
    let mut other = ack.clone();
    other[23] = ip::UDP;
    time("bpf.rwnd.warm_other_protocol_ns", Direction::Uplink, &other);
    time("bpf.rwnd.warm_unmanaged_ns", Direction::Uplink, &ack);
    for (direction, packet) in [
        (Direction::Uplink, frame(&up, 100, 0, Flags::SYN, syn, b"")),
        (Direction::Downlink, frame(&flow, 0, 101, Flags::SYN | Flags::ACK, syn, b"")),
        (Direction::Downlink, data.clone()),
    ] {
        rewriter.test_run(direction, &packet).expect("a test run");
    }
    time("bpf.rwnd.warm_uplink_ns", Direction::Uplink, &ack);
    time("bpf.rwnd.warm_downlink_ns", Direction::Downlink, &data);
}

/// What the relay's program costs a packet: of another protocol, of ours with a larger D in it, and of ours with a
/// raised D, which takes a D that grows all the time, since a test run hands on what the run before has written.
fn relay() {
    let mut stamper = Stamper::load(&[4900], None).expect("a kernel that takes the program");
    let place = stamper.add(1, 14);
    let frame = |delay: u32, port: u16| {
        let [from, to] = [[10, 2, 0, 2], [10, 1, 0, 2]].map(IpAddr::from);
        let mut udp = [port, port, 8 + 1_400, 0].map(u16::to_be_bytes).concat();
        udp.extend_from_slice(&[0x12, 0, 0, 0]);
        udp.extend_from_slice(&delay.to_be_bytes());
        udp.resize(8 + 1_400, 7);
        let sum = lasthop_wire::checksum::transport(from, to, ip::UDP, &udp);
        udp[6..8].copy_from_slice(&sum.to_be_bytes());
        let mut frame = Vec::new();
        ethernet::write(&mut frame, [2; 6], [4; 6], ethernet::IPV4);
        ip::write(&mut frame, from, to, ip::UDP, ip::Ecn::NotEct, udp.len()).expect("one family");
        frame.extend_from_slice(&udp);
        frame
    };
    let time = |name, packet: &[u8]| {
        let each = stamper.time_test_runs(packet, 200_000).expect("a test run");
        println!("{name} {} ns", each.as_nanos());
    };
    stamper.set(place, Span::from_millis(1), Time::MAX);
    time("bpf.relay.warm_other_port_ns", &frame(0, 4901));
    time("bpf.relay.warm_larger_ns", &frame(1_000_000, 4900));
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut delay = 1u64;
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                delay += 1;
                stamper.set(place, Span::from_micros(delay), Time::MAX);
            }
        });
        // Those thousands of runs count in nearly all of which D had grown: the other thread was at work then.
        let (began, mut each) = (Instant::now(), Samples::default());
        while each.count() < 100 && began.elapsed() < Duration::from_secs(10) {
            let before = stamper.counters(place).stamped;
            let took = stamper.time_test_runs(&frame(0, 4900), 1_000).expect("a test run");
            if stamper.counters(place).stamped - before >= 900 {
                each.add(took.as_nanos() as f64);
            }
        }
        print("bpf.relay.warm_raised_ns", &each);
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[derive(Default)]
struct Costs {
    uplink: Samples,
    downlink: Samples,
    /// Of all runs together.
    both: Samples,
    empty_uplink: Samples,
    empty_downlink: Samples,
    uplink_runs: u64,
    runs: u64,
}

impl Costs {
    fn measure(rewriter: &Rewriter, empty: &[EmptyProgram; 2], rounds: usize) -> Costs {
        let mut costs = Costs::default();
        for _ in 0..rounds {
            let all = || {
                let of = |d| rewriter.run_time(d).expect("statistics");
                let nothing = |i: usize| run_time(&empty[i].program).expect("statistics");
                [of(Direction::Uplink), of(Direction::Downlink), nothing(0), nothing(1)]
            };
            let before = all();
            let began = Instant::now();
            while began.elapsed() < ROUND {
                rewriter.heartbeat(monotonic()).expect("a heartbeat");
                std::thread::sleep(Duration::from_millis(4));
            }
            let after = all();
            let spent = |i: usize| (after[i].0 - before[i].0, after[i].1.saturating_sub(before[i].1).as_nanos());
            let each = |(runs, ns): (u64, u64)| if runs == 0 { f64::NAN } else { ns as f64 / runs as f64 };
            let [up, down, no_up, no_down] = [0, 1, 2, 3].map(spent);
            costs.uplink.add(each(up));
            costs.downlink.add(each(down));
            costs.both.add(each((up.0 + down.0, up.1 + down.1)));
            costs.empty_uplink.add(each(no_up));
            costs.empty_downlink.add(each(no_down));
            costs.uplink_runs += up.0;
            costs.runs += up.0 + down.0;
        }
        costs
    }
}

fn print(name: &str, samples: &Samples) {
    match samples.clone().quantile(0.5) {
        Some(median) => println!("{name} {median:.1} ns"),
        None => eprintln!("{name}: no packets"),
    }
}

/// A program that does nothing, on the path's other interface: what the kernel's statistics cost by themselves for the
/// same packets. That is more for ACKs than for data: they are seldom, and find the caches cold.
struct EmptyProgram {
    program: OwnedFd,
    _link: OwnedFd,
}

impl EmptyProgram {
    fn attach(ifindex: i32, side: u32) -> EmptyProgram {
        let instruction =
            |code: u32, imm: i32| libbpf_sys::bpf_insn { code: code as u8, imm, ..libbpf_sys::bpf_insn::default() };
        // r0 = -1 (go on); exit.
        let instructions = [
            instruction(libbpf_sys::BPF_ALU64 | libbpf_sys::BPF_MOV | libbpf_sys::BPF_K, -1),
            instruction(libbpf_sys::BPF_JMP | libbpf_sys::BPF_EXIT, 0),
        ];
        let owned = |fd: i32| {
            assert!(fd >= 0, "an empty program: {}", std::io::Error::from_raw_os_error(-fd));
            // SAFETY: a fresh descriptor, owned by nobody else.
            unsafe { OwnedFd::from_raw_fd(fd) }
        };
        // SAFETY: the instructions are as many as is said, and strings end with 0; nothing is kept.
        let program = owned(unsafe {
            libbpf_sys::bpf_prog_load(
                libbpf_sys::BPF_PROG_TYPE_SCHED_CLS,
                c"empty".as_ptr(),
                c"GPL".as_ptr(),
                instructions.as_ptr(),
                instructions.len() as u64,
                std::ptr::null_mut(),
            )
        });
        // SAFETY: descriptors and numbers only; null stands for default options.
        let link = owned(unsafe { libbpf_sys::bpf_link_create(program.as_raw_fd(), ifindex, side, std::ptr::null()) });
        EmptyProgram { program, _link: link }
    }
}

fn monotonic() -> Time {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("always there");
    Time::ZERO + Span::from_secs(now.tv_sec() as u64) + Span::from_nanos(now.tv_nsec() as u64)
}
