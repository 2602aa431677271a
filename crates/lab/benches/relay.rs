//! How much the emulator carries over one wired hop without losing a packet, how much round-trip time it adds, and whether it keeps up
//! with a trace of 1 Gbit/s.
//!
//! Prints one line a figure: name, value, unit. The measurement of the round-trip time runs where every run of the lab
//! puts its probes; the receiver of the largest rate runs under SCHED_FIFO like the emulator where that is allowed, so
//! that the figures are the emulator's and not those of whatever else the machine does.

use lasthop_lab::address::{self, Family};
use lasthop_lab::emulator::{Emulator, Segment};
use lasthop_lab::frame::Frame;
use lasthop_lab::topology::{Hosts, WIRE};
use lasthop_lab::{Clock, Histogram, LabError, RunDir, clean, sched};
use lasthop_radio::LastHop;
use lasthop_radio::last_hop::Model;
use lasthop_radio::queue::LinkKind;
use lasthop_radio::trace;
use lasthop_radio::wired::{Params, Wire};
use lasthop_signals::Node;
use lasthop_units::{Bytes, Rate, Seed, Span};
use lasthop_wire::delivery::DeliveryTrace;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

fn main() -> Result<(), LabError> {
    if !nix::unistd::Uid::effective().is_root() {
        eprintln!("SKIPPED: lab.relay.* and lab.trace_1gbit.* need root to make namespaces and interfaces");
        return Ok(());
    }
    // `cargo bench` says so; `cargo test` only wants to see that it works.
    let thorough = std::env::args().any(|argument| argument == "--bench");
    clean()?;
    let added = added_rtt(if thorough { 5_000 } else { 200 })?;
    let rate = lossless_rate(if thorough { Span::from_secs(2) } else { Span::from_millis(200) })?;
    let lost = lost_over_trace(if thorough { Span::from_secs(2) } else { Span::from_millis(200) })?;
    println!("lab.relay.mbit_s {:.0} Mbit/s", rate.as_mbit_f64());
    println!("lab.relay.added_rtt_us_p50 {:.1} us", added.quantile(0.5).as_nanos() as f64 / 1e3);
    println!("lab.relay.added_rtt_us_p99 {:.1} us", added.quantile(0.99).as_nanos() as f64 / 1e3);
    println!("lab.trace_1gbit.lost {lost} packets");
    Ok(())
}

/// Below the emulator's.
const PRIORITY: i32 = 20;
const PACKET: Bytes = Bytes::new(1500);
const HEADERS: usize = 28;
const SERVER: Node = Node(0);
const STATION: Node = Node(1);

/// Two hosts and the cable between them.
struct Bench {
    hosts: Hosts,
    emulator: Emulator,
    clock: Clock,
    // Last, so that it is dropped last.
    _run: RunDir,
}

impl Bench {
    fn new(line: Params) -> Result<Bench, LabError> {
        Bench::over(Model::Cable(Wire::new(SERVER, STATION, line, line)))
    }

    fn over(model: Model<Frame>) -> Result<Bench, LabError> {
        let run = RunDir::claim()?;
        let mut hosts = Hosts::on_one_wire(&run)?;
        let ports = hosts.taps.pop().expect("a hop has interfaces");
        let clock = Clock::start();
        let emulator = Emulator::start(
            clock,
            vec![Segment {
                model,
                ports,
                logged: false,
                watched: 0..0,
                drivers: Vec::new(),
                delays: Vec::new(),
                monitors: Vec::new(),
                controls: Vec::new(),
            }],
        )?;
        std::thread::sleep(Duration::from_millis(100));
        Ok(Bench { hosts, emulator, clock, _run: run })
    }

    /// Sockets at server and station that talk to each other.
    fn sockets(&self) -> Result<(Socket, Socket), LabError> {
        let at = |node| SocketAddr::new(address::ip(Family::V4, WIRE, node), 7000);
        let open = |from: Node, to: Node| {
            let open = || {
                let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
                socket.bind(&SockAddr::from(at(from)))?;
                socket.connect(&SockAddr::from(at(to)))?;
                socket.set_read_timeout(Some(Duration::from_millis(100)))?;
                set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, 256 << 20)?;
                set_option(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, 256 << 20)?;
                Ok::<_, io::Error>(socket)
            };
            open().map_err(failed("making a UDP socket"))
        };
        Ok((
            self.hosts.server.within(|| open(SERVER, STATION))?,
            self.hosts.stations[0].within(|| open(STATION, SERVER))?,
        ))
    }
}

/// Round-trip times of small datagrams, less what the model itself takes.
fn added_rtt(pings: usize) -> Result<Histogram, LabError> {
    let line = Params { rate: Rate::from_mbit(1000), delay: Span::from_millis(1), queue_packets: 1000 };
    let bench = Bench::new(line)?;
    let (server, station) = bench.sockets()?;
    let (payload, done) = ([0u8; 100], AtomicBool::new(false));
    let serialisation = line.rate.time_for(Bytes::new((payload.len() + HEADERS) as u64)).expect("not zero");
    let modelled = (line.delay + serialisation) * 2;
    let pinned_cpu = bench.emulator.pinned_cpu();
    let mut added = Histogram::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pinned_cpu.measure_beside();
            let mut buffer = [MaybeUninit::uninit(); 256];
            while !done.load(Ordering::Relaxed) {
                if station.recv(&mut buffer).is_ok() {
                    let _ = station.send(&payload);
                }
            }
        });
        scope.spawn(|| {
            pinned_cpu.measure_beside();
            let mut buffer = [MaybeUninit::uninit(); 256];
            for ping in 0..pings {
                let sent = bench.clock.now();
                if server.send(&payload).is_ok() && server.recv(&mut buffer).is_ok() && ping >= pings / 20 {
                    added.add(bench.clock.now().since(sent).saturating_sub(modelled));
                }
            }
            done.store(true, Ordering::Relaxed);
        });
    });
    eprintln!("lateness {:?}", bench.emulator.finish()?.lateness.summaries());
    Ok(added)
}

/// The largest rate found at which every packet of a test of length `lasts` arrives, twice in a row.
fn lossless_rate(lasts: Span) -> Result<Rate, LabError> {
    let line = Params { rate: Rate::from_mbit(40_000), delay: Span::from_millis(1), queue_packets: 100_000 };
    let bench = Bench::new(line)?;
    let (server, station) = bench.sockets()?;
    segments(&server)?;
    let (mut good, mut bad) = (Rate::ZERO, Rate::from_mbit(12_000));
    while bad.saturating_sub(good) > good.scale(0.04).max(Rate::from_mbit(20)) {
        // Upward in steps at first: far above what is possible says little and takes long to drain.
        let try_now =
            if good.is_zero() { Rate::from_mbit(500) } else { ((good + bad).scale(0.5)).min(good.scale(1.4)) };
        let carried = (0..2).all(|_| offer(&bench, &server, &station, try_now, lasts).is_whole());
        *(if carried { &mut good } else { &mut bad }) = try_now;
        if bad <= Rate::from_mbit(20) {
            break;
        }
    }
    Ok(good)
}

/// Packets of 1500 bytes that do not arrive in time over a link that plays a trace of 1 Gbit/s, offered all that it carries.
fn lost_over_trace(lasts: Span) -> Result<u64, LabError> {
    // 250 packets of 1500 bytes in 3 ms.
    let stamps = (1..=3).flat_map(|ms| std::iter::repeat_n(ms, if ms == 3 { 84 } else { 83 }));
    let trace = DeliveryTrace::new(stamps.collect()).expect("in order");
    let params = trace::Params { trace, queue: LinkKind::Infinite, delay: Span::from_millis(1), shown: false };
    let bench = Bench::over(LastHop::from(trace::Plan { down: params.clone(), up: params }).build(1, Seed(1)))?;
    let (server, station) = bench.sockets()?;
    segments(&server)?;
    let offered = offer(&bench, &server, &station, Rate::from_mbit(1000), lasts);
    eprintln!("trace of 1 Gbit/s: {} packets sent, {} came", offered.sent, offered.came);
    // What could not be sent was not carried either.
    Ok(offered.wanted.max(offered.sent) - offered.came.min(offered.sent))
}

/// Asks for packets of 1500 bytes from larger datagrams.
fn segments(socket: &Socket) -> Result<(), LabError> {
    let payload = PACKET.get() as libc::c_int - HEADERS as libc::c_int;
    set_option(socket, libc::SOL_UDP, libc::UDP_SEGMENT, payload).map_err(failed("asking for UDP segmentation"))
}

/// What was sent and what came.
struct Offered {
    wanted: u64,
    sent: u64,
    came: u64,
    in_time: bool,
}

impl Offered {
    /// True if all packets arrived, and could be sent at the rate.
    fn is_whole(&self) -> bool {
        self.came == self.sent && self.sent >= self.wanted * 99 / 100 && self.in_time
    }
}

/// Packets sent at `rate` for `lasts`.
fn offer(bench: &Bench, server: &Socket, station: &Socket, rate: Rate, lasts: Span) -> Offered {
    const SEGMENTS: u64 = 16;
    let (clock, begin) = (bench.clock, bench.clock.now());
    let gap = rate.time_for(PACKET * SEGMENTS).expect("not zero");
    let batch = vec![0u8; (PACKET.get() as usize - HEADERS) * SEGMENTS as usize];
    let (sent, done, came) = (AtomicU64::new(0), AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            sched::sharpen_timers();
            let mut next = begin;
            while next < begin + lasts && clock.now() < begin + lasts * 2 {
                if clock.now() < next {
                    clock.sleep_until(next);
                }
                if server.send(&batch).is_ok() {
                    sent.fetch_add(SEGMENTS, Ordering::Relaxed);
                }
                next += gap;
            }
            // What is on its way comes within the hop's delay, or not at all.
            std::thread::sleep(Duration::from_millis(200));
            done.store(true, Ordering::Relaxed);
        });
        scope.spawn(|| {
            sched::become_realtime(PRIORITY);
            while !done.load(Ordering::Relaxed) {
                came.fetch_add(receive_many(station), Ordering::Relaxed);
            }
        });
    });
    let (sent, came) = (sent.into_inner(), came.into_inner());
    let took = clock.now().since(begin);
    let in_time = took < lasts + lasts / 50 + Span::from_millis(250);
    Offered { wanted: rate.bytes_in(lasts).get() / PACKET.get(), sent, came, in_time }
}

/// Takes up to 64 datagrams and returns how many.
fn receive_many(socket: &Socket) -> u64 {
    // SAFETY: all-zero message headers are valid: they ask for no data and no addresses.
    let mut messages: [libc::mmsghdr; 64] = unsafe { std::mem::zeroed() };
    // SAFETY: the array holds as many headers as are announced; with MSG_TRUNC no buffer is needed.
    let count = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            messages.as_mut_ptr(),
            messages.len() as libc::c_uint,
            libc::MSG_WAITFORONE | libc::MSG_TRUNC,
            std::ptr::null_mut(),
        )
    };
    u64::try_from(count).unwrap_or(0)
}

fn set_option(socket: &Socket, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the value outlives the call and has the length given.
    match unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), len) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn failed(doing: &'static str) -> impl Fn(io::Error) -> LabError {
    move |source| LabError::System { doing: doing.into(), source }
}
