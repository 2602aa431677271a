//! What the eBPF rewriter costs a packet, live: real TCP over veth pairs, counted by the kernel's BPF statistics, whose
//! own two clock readings a run are inside.
//!
//! Prints `name value unit` lines; without root, one line on standard error.
#![allow(clippy::disallowed_methods, reason = "real time is what is measured")]

#[path = "../tests/support/mod.rs"]
mod support;

use lasthop_agents::ap::Method;
use lasthop_agents::ap::kernel::{Direction, Load, Rewriter, enable_statistics, run_time};
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
        // One packet a frame, as 802.11 has it: no segmentation offload hides packets from the hook.
        netns.ip(&format!("link set {device} up"));
    }
    station.ip("route add default via 10.1.0.1");
    server.ip("route add default via 10.2.0.1");
    ap.within(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")).expect("our own namespace");
    let transfer = || {
        let address = |octets: [u8; 4]| IpAddr::from(octets);
        Bulk::start((&server, address([10, 2, 0, 2])), (&station, address([10, 1, 0, 2])), Opener::Receiver)
    };

    let _statistics = enable_statistics().expect("root");
    let mut rewriter = Rewriter::load(Load::default()).expect("a kernel that takes the programs");
    // Opened before the programs are attached, this flow is none that they know.
    let unknown = transfer();
    let (rewriter, _unknown_costs) = ap.within(move || {
        let index = nix::net::if_::if_nametoindex("wlan0").expect("there") as i32;
        rewriter.attach(index, Method::Best).expect("attached");
        let costs = Costs::measure(&rewriter, rounds);
        print(&costs, "bpf.rwnd.unmanaged_ns_per_packet", Direction::Uplink);
        (rewriter, costs)
    });
    drop(unknown);

    let known = transfer();
    let empty = ap.within(|| EmptyProgram::attach(nix::net::if_::if_nametoindex("eth0").expect("there") as i32));
    std::thread::sleep(Duration::from_millis(100));
    for (key, flow) in rewriter.flows().expect("a map that can be read") {
        rewriter.set_target(&key, flow.born(), Some(Bytes::new(WINDOW))).expect("an order");
    }
    let before = rewriter.counters().expect("counters");
    let costs = Costs::measure(&rewriter, rounds);
    let after = rewriter.counters().expect("counters");
    print(&costs, "bpf.rwnd.ns_per_packet", Direction::Uplink);
    print(&costs, "bpf.rwnd.downlink_ns_per_packet", Direction::Downlink);
    let rewritten = (after.rewritten - before.rewritten) as f64 / costs.uplink_runs.max(1) as f64;
    print_value("bpf.empty_program_ns_per_packet", empty.cost(), "ns");
    eprintln!("{:.0} % of {} uplink segments were rewritten", rewritten * 100.0, costs.uplink_runs);
    drop(known);
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

struct Costs {
    uplink: Samples,
    downlink: Samples,
    uplink_runs: u64,
}

impl Costs {
    fn measure(rewriter: &Rewriter, rounds: usize) -> Costs {
        let mut costs = Costs { uplink: Samples::default(), downlink: Samples::default(), uplink_runs: 0 };
        for _ in 0..rounds {
            let both = || [Direction::Uplink, Direction::Downlink].map(|d| rewriter.run_time(d).expect("statistics"));
            let before = both();
            let began = Instant::now();
            while began.elapsed() < ROUND {
                rewriter.heartbeat(monotonic());
                std::thread::sleep(Duration::from_millis(50));
            }
            let after = both();
            let cost = |i: usize| {
                let (runs, time) = (after[i].0 - before[i].0, after[i].1.saturating_sub(before[i].1));
                (runs, if runs == 0 { f64::NAN } else { time.as_nanos() as f64 / runs as f64 })
            };
            costs.uplink.add(cost(0).1);
            costs.downlink.add(cost(1).1);
            costs.uplink_runs += cost(0).0;
        }
        costs
    }
}

fn print(costs: &Costs, name: &str, direction: Direction) {
    let mut samples = if direction == Direction::Uplink { costs.uplink.clone() } else { costs.downlink.clone() };
    match samples.quantile(0.5) {
        Some(median) => println!("{name} {median:.1} ns"),
        None => eprintln!("{name}: no packets"),
    }
}

fn print_value(name: &str, value: Option<f64>, unit: &str) {
    match value {
        Some(value) => println!("{name} {value:.1} {unit}"),
        None => eprintln!("{name}: no packets"),
    }
}

/// A program that does nothing, on the ingress of the same path's other interface (one segment there is one data
/// segment): what the kernel's statistics and a cold cache cost by themselves on this machine.
struct EmptyProgram {
    program: OwnedFd,
    _link: OwnedFd,
}

impl EmptyProgram {
    fn attach(ifindex: i32) -> EmptyProgram {
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
        let link = owned(unsafe {
            libbpf_sys::bpf_link_create(program.as_raw_fd(), ifindex, libbpf_sys::BPF_TCX_INGRESS, std::ptr::null())
        });
        EmptyProgram { program, _link: link }
    }

    fn cost(&self) -> Option<f64> {
        let (runs, time) = run_time(&self.program).expect("statistics");
        (runs > 0).then(|| time.as_nanos() as f64 / runs as f64)
    }
}

fn monotonic() -> Time {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("always there");
    Time::ZERO + Span::from_secs(now.tv_sec() as u64) + Span::from_nanos(now.tv_nsec() as u64)
}
