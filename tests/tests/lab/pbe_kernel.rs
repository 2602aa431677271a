//! `lasthop pbe` on kernel TCP: a sender goes at what its receiver tells of a cell, and is BBR where nothing is told, where a middle box takes
//! the option away, and where an agent stands still or has gone.
//!
//! The cell is a log that the test writes: 50 PRB of 600 bits, of which the terminal is given 30 and another one 20. The path has 40 Mbit/s and 20 ms.

// Programs are waited for by the wall clock.
#![allow(clippy::disallowed_methods)]

use crate::support;

use lasthop_tests::decoder::{BITS, Decoder, GIVEN, OTHERS, OVERHEAD, OWN};
use lasthop_tests::{PATIENCE, bpf, ends_within, eventually, inside, lasthop, program, run};
use lasthop_units::{Rate, Span};
use lasthop_wire::tcp::{self, Capacity, LogRate};
use lasthop_wire::tcp_info::TcpInfo;
use lasthop_wire::{checksum, ip};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use socket2::{Domain, SockRef, Socket, Type};
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use support::cgroup;
use support::delay::{DelayWire, MiddleBox, Queue};
use support::netns::{Netns, available};
use support::upload::Upload;

/// C_t of that cell: nothing is idle.
fn available_rate() -> Rate {
    Rate::from_bps(GIVEN * BITS * 1000).scale(1.0 / (1.0 + OVERHEAD))
}

/// C_f: two terminals share it.
fn fair_rate() -> Rate {
    Rate::from_bps((GIVEN + OTHERS) * BITS * 1000 / 2).scale(1.0 / (1.0 + OVERHEAD))
}

/// Options that segments had on their way: whether the segment was a SYN, and from which end it came.
type Seen = Arc<Mutex<Vec<(usize, bool, Capacity)>>>;
/// The terminal's segments with so many SACK blocks that there is no room for the option, and those of them which had it.
type Crowded = Arc<Mutex<(u64, u64)>>;

/// A terminal and a server, the wire between them, and what the wire has seen.
struct World {
    terminal: Netns,
    server: Netns,
    cgroup: PathBuf,
    folder: tempfile::TempDir,
    seen: Seen,
    crowded: Crowded,
    net: u8,
    _wire: DelayWire,
}

impl World {
    /// `change` is a middle box: it gets the four octets of an option's value, and what it gives is there in their place; `None`: no operations.
    fn new(net: u8, what: &str, change: fn([u8; 4]) -> Option<[u8; 4]>) -> Option<World> {
        World::that_loses(net, what, change, |_| false)
    }

    /// The same, but some of the server's segments with data are lost: which, by their number.
    fn that_loses(
        net: u8,
        what: &str,
        change: fn([u8; 4]) -> Option<[u8; 4]>,
        is_lost: fn(u64) -> bool,
    ) -> Option<World> {
        let cgroup = available(what).then(|| cgroup::own(what)).flatten()?;
        let doctor = run(&mut lasthop(["doctor"]));
        if !doctor.out.contains("The agent can run here.") {
            // Past the capture of test output.
            let _ = writeln!(std::io::stderr(), "SKIPPED: {what}: {}", doctor.out);
            return None;
        }
        let (server, terminal) = (Netns::new("srv"), Netns::new("ue"));
        let queue = Queue { octets_a_second: 40e6 / 8.0, packets: 200 };
        let (seen, crowded) = (Seen::default(), Crowded::default());
        let middle = middle_box((Arc::clone(&seen), Arc::clone(&crowded)), change, is_lost);
        let ends = ((&server, "s0"), (&terminal, "w0"));
        let wire = DelayWire::with(ends.0, ends.1, Duration::from_millis(10), Some(queue), middle);
        for (netns, device, end) in [(&server, "s0", 1), (&terminal, "w0", 2)] {
            netns.ip(&format!("addr add 10.{net}.1.{end}/24 dev {device}"));
            netns.ip(&format!("link set {device} up"));
        }
        let folder = tempfile::tempdir().expect("a directory");
        nix::unistd::mkfifo(&folder.path().join("dci"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        Some(World { terminal, server, cgroup, folder, seen, crowded, net, _wire: wire })
    }

    fn pipe(&self) -> PathBuf {
        self.folder.path().join("dci")
    }

    fn agent(&self, at: &Netns, arguments: &[&str]) -> Child {
        let cgroup = self.cgroup.to_string_lossy().into_owned();
        let arguments = [&["pbe"], arguments, &["--cgroup", &cgroup]].concat();
        let mut command = inside(at.name(), program(), &arguments);
        // It does not outlive its test, however that ends.
        let with_parent = || nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(std::io::Error::from);
        // SAFETY: a system call, and nothing else, between fork and exec.
        unsafe { command.pre_exec(with_parent) };
        let mut child = command.spawn().expect("it starts");
        // The line that it is ready.
        let mut line = Vec::new();
        let out = child.stdout.as_mut().expect("piped");
        while !line.ends_with(b"\n") {
            let mut octet = [0];
            if out.read(&mut octet).expect("readable") == 0 {
                panic!("{}", ends_within(child, PATIENCE).err);
            }
            line.push(octet[0]);
        }
        child
    }

    /// The sender's agent, under a name that no other test's has.
    fn sender(&self, more: &[&str]) -> Child {
        let name = self.name();
        self.agent(&self.server, &[&["sender", "--name", &name], more].concat())
    }

    fn name(&self) -> String {
        format!("lhpbe{}", self.net)
    }

    fn receiver(&self) -> Child {
        let (pipe, own) = (self.pipe().to_string_lossy().into_owned(), OWN.to_string());
        self.agent(&self.terminal, &["receiver", "--dci", &pipe, "--prb", "50", "--rnti", &own])
    }

    /// A download over a connection that the terminal makes.
    fn download(&self) -> Download {
        Download::start(&self.server, &self.terminal, &format!("10.{}.1.1:0", self.net), &self.name())
    }

    /// Options of the terminal's segments that are no SYNs.
    fn told(&self) -> Vec<Capacity> {
        let seen = self.seen.lock().expect("no panic");
        seen.iter().filter(|(from, syn, _)| *from == 1 && !syn).map(|(.., option)| *option).collect()
    }
}

/// Notes options, and changes them.
fn middle_box(
    (seen, crowded): (Seen, Crowded),
    change: fn([u8; 4]) -> Option<[u8; 4]>,
    is_lost: fn(u64) -> bool,
) -> MiddleBox {
    let mut count = 0;
    Box::new(move |from, packet| {
        let Some((at, header)) = tcp_of(packet) else { return };
        if from == 0 && header.payload_len > 0 {
            count += 1;
            if is_lost(count) {
                // No device takes a packet without octets.
                packet.clear();
                return;
            }
        }
        if from == 1 && header.options.sack.as_slice().len() >= 3 {
            let mut crowded = crowded.lock().expect("no panic");
            crowded.0 += 1;
            crowded.1 += u64::from(header.options.capacity.is_some());
        }
        let Some(option) = header.options.capacity else { return };
        let syn = header.flags.contains(tcp::Flags::SYN);
        seen.lock().expect("no panic").push((from, syn, option));
        let value = option.to_bytes();
        let changed = change(value);
        if changed == Some(value) {
            return;
        }
        let whole = [&[253, 8, 0x50, 0x42], &value[..]].concat();
        let place = packet.windows(8).position(|octets| octets == whole).expect("it was read there");
        match changed {
            Some(value) => packet[place + 4..place + 8].copy_from_slice(&value),
            None => packet[place..place + 8].fill(1),
        }
        packet[at + tcp::CHECKSUM_AT..at + tcp::CHECKSUM_AT + 2].fill(0);
        let address = |at: usize| IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(&packet[at..at + 4]).expect("four")));
        let sum = checksum::transport(address(12), address(16), ip::TCP, &packet[at..]);
        packet[at + tcp::CHECKSUM_AT..at + tcp::CHECKSUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
    })
}

/// Where the TCP header of an IPv4 packet is, and what it says.
fn tcp_of(packet: &[u8]) -> Option<(usize, tcp::TcpHeader)> {
    let first = *packet.first()?;
    if first >> 4 != 4 || *packet.get(9)? != ip::TCP {
        return None;
    }
    let at = usize::from(first & 0xf) * 4;
    Some((at, tcp::parse(packet.get(at..)?).ok()?.0))
}

/// A download that goes on until dropped; what comes is compared with what was sent.
struct Download {
    sender: TcpStream,
    received: TcpStream,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// The octet at a place of what is sent.
fn octet(place: u64) -> u8 {
    (place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

impl Download {
    fn start(server: &Netns, terminal: &Netns, at: &str, congestion: &str) -> Download {
        let at: SocketAddr = at.parse().expect("an address");
        let listener = server.within(|| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
            socket.set_tcp_congestion(congestion.as_bytes()).expect("a congestion control that there is");
            socket.bind(&at.into()).expect("a free port");
            socket.listen(1).expect("bound");
            TcpListener::from(socket)
        });
        let address = listener.local_addr().expect("bound");
        let received =
            terminal.within(|| TcpStream::connect_timeout(&address, Duration::from_secs(5)).expect("a path"));
        let (sender, _) = listener.accept().expect("connected");
        let stop = Arc::new(AtomicBool::new(false));
        let (mut source, mut sink) =
            (sender.try_clone().expect("a descriptor"), received.try_clone().expect("a descriptor"));
        let seen = Arc::clone(&stop);
        let sending = std::thread::spawn(move || {
            let mut place = 0;
            while !seen.load(Ordering::Relaxed) {
                let block: Vec<u8> = (place..place + 65_536).map(octet).collect();
                place += 65_536;
                if source.write_all(&block).is_err() {
                    return;
                }
            }
        });
        let receiving = std::thread::spawn(move || {
            let (mut place, mut block) = (0, vec![0; 1 << 18]);
            while let Ok(len @ 1..) = sink.read(&mut block) {
                let wrong = block[..len].iter().zip(place..).find(|(got, place)| **got != octet(*place));
                assert!(wrong.is_none(), "octet {:?} is not what was sent", wrong.map(|(_, place)| place));
                place += len as u64;
            }
        });
        Download { sender, received, stop, threads: vec![sending, receiving] }
    }

    fn info(&self) -> TcpInfo {
        info(&self.sender)
    }

    fn acked(&self) -> u64 {
        self.info().bytes_acked.map_or(0, |octets| octets.get())
    }

    /// Waits until another megabyte has arrived.
    fn goes_on(&self) {
        let before = self.acked();
        assert!(eventually(PATIENCE, || self.acked() > before + 1_000_000), "{:?}", self.info());
    }

    /// Ends it; fails if something came that was not sent.
    fn ends(mut self) {
        self.shut();
        for thread in self.threads.drain(..) {
            thread.join().expect("what came is what was sent");
        }
    }

    fn shut(&self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = SockRef::from(&self.sender).set_linger(Some(Duration::ZERO));
        let _ = self.sender.shutdown(std::net::Shutdown::Both);
        let _ = self.received.shutdown(std::net::Shutdown::Both);
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        self.shut();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn info(socket: &TcpStream) -> TcpInfo {
    use std::os::fd::AsRawFd as _;
    let mut bytes = [0; lasthop_wire::tcp_info::ROOM];
    let mut len = bytes.len() as libc::socklen_t;
    // SAFETY: the buffer has room for `len` octets.
    let failed = unsafe {
        let to = bytes.as_mut_ptr().cast();
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, to, &mut len)
    };
    assert_eq!(failed, 0, "TCP_INFO");
    TcpInfo::parse(&bytes[..len as usize]).expect("a record")
}

fn pacing(info: &TcpInfo) -> Rate {
    info.pacing_rate.unwrap_or(Rate::ZERO)
}

/// True if a connection is paced at C_t, and its window is what fills the path at that rate.
fn at_capacity(info: &TcpInfo) -> bool {
    let (rate, told) = (pacing(info), available_rate());
    let near = rate.as_bps().abs_diff(told.as_bps()) * 100 < told.as_bps();
    let Some(rtt) = info.min_rtt else { return false };
    // C_t (RTprop + 8 ms), in whole segments.
    let window = rate.bytes_in(rtt + Span::from_millis(8)).get().div_ceil(info.mss.get().max(1));
    near && u64::from(info.cwnd).abs_diff(window) <= 1
}

/// Waits until a connection goes at what it is told.
fn reaches_capacity(info: impl Fn() -> TcpInfo) {
    let reached = eventually(PATIENCE, || at_capacity(&info()));
    assert!(reached, "{:?} beside {}", info(), available_rate());
}

/// Waits until it goes as fast as the path, which only BBR finds out.
fn goes_beyond(what: &str, info: impl Fn() -> TcpInfo) {
    let beyond = eventually(PATIENCE, || pacing(&info()) > available_rate().scale(2.0));
    assert!(beyond, "{what}: {:?}", info());
}

fn untouched(value: [u8; 4]) -> Option<[u8; 4]> {
    Some(value)
}

/// As much as an option can say.
fn forged([.., last]: [u8; 4]) -> Option<[u8; 4]> {
    Some([0xff, 0xf0, 0xff, 0xf0 | last & 0xf])
}

#[test]
fn a_connection_goes_at_what_it_is_told_until_nobody_tells() {
    let Some(world) = World::new(131, "PBE on kernel TCP", untouched) else { return };
    let (mut sender, mut receiver, _decoder) = (world.sender(&[]), world.receiver(), Decoder::start(&world.pipe()));
    let programs: BTreeSet<u32> = [&sender, &receiver].iter().flat_map(|agent| bpf::programs_of(agent.id())).collect();
    assert!(programs.len() >= 10, "{programs:?}");
    let download = world.download();
    reaches_capacity(|| download.info());
    download.goes_on();
    // What the programs write is what the wire format says, and numbers count segments.
    let told = world.told();
    let (available, fair) = (LogRate::of(available_rate()), LogRate::of(fair_rate()));
    let known: Vec<&Capacity> = told.iter().filter(|option| option.available > LogRate::default()).collect();
    let near = |code: LogRate, rate: Rate| code.rate().as_bps().abs_diff(rate.as_bps()) * 100 < rate.as_bps();
    let right =
        known.iter().filter(|option| near(option.available, available.rate()) && near(option.fair, fair.rate()));
    assert!(right.count() * 2 > known.len() && known.len() > 20, "{known:?}");
    let gaps = told.windows(2).filter(|pair| (pair[0].number + 1) % 16 != pair[1].number).count();
    assert_eq!(gaps, 0, "{told:?}");
    // The other way round: the sender makes the connection.
    let upload = Upload::start(&world.server, &world.terminal, "10.131.1.2:0", &world.name());
    drop(download);
    reaches_capacity(|| upload.info());
    drop(upload);

    let download = world.download();
    reaches_capacity(|| download.info());
    kill(Pid::from_raw(receiver.id() as i32), Signal::SIGSTOP).expect("our child");
    goes_beyond("the receiver stands still", || download.info());
    kill(Pid::from_raw(receiver.id() as i32), Signal::SIGCONT).expect("our child");
    reaches_capacity(|| download.info());
    receiver.kill().expect("our child");
    goes_beyond("the receiver was killed", || download.info());
    download.goes_on();
    let _ = ends_within(receiver, PATIENCE);

    receiver = world.receiver();
    let other = world.download();
    reaches_capacity(|| other.info());
    sender.kill().expect("our child");
    goes_beyond("the sender was killed", || other.info());
    other.goes_on();
    let _ = ends_within(sender, PATIENCE);
    let again = world.server.within(|| {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.set_tcp_congestion(world.name().as_bytes())
    });
    assert!(again.is_err(), "nobody can choose it any more");
    other.ends();
    download.ends();
    kill(Pid::from_raw(receiver.id() as i32), Signal::SIGTERM).expect("our child");
    let account = account(&ends_within(receiver, PATIENCE).succeeded().out);
    assert_eq!(account["pbe_receiver"]["agreed"], 1, "{account}");
    assert!(account["pbe_receiver"]["written"].as_u64() > Some(10), "{account}");
    assert!(eventually(PATIENCE, || programs.iter().all(|id| !bpf::is_loaded(*id))), "programs are left");
}

#[test]
fn a_peer_without_the_option_has_bbr_and_never_sees_it() {
    let Some(world) = World::new(132, "PBE without a receiver", untouched) else { return };
    let sender = world.sender(&[]);
    let download = world.download();
    goes_beyond("nobody tells", || download.info());
    download.goes_on();
    download.ends();
    assert!(world.seen.lock().expect("no panic").is_empty(), "no SYN asked for it");
    kill(Pid::from_raw(sender.id() as i32), Signal::SIGTERM).expect("our child");
    let ended = ends_within(sender, PATIENCE).succeeded();
    assert!(ended.out.contains(r#"{"pbe_sender":{"options":0,"overtaken":0,"promised":0}}"#), "{}", ended.out);
}

#[test]
fn a_receiver_leaves_senders_alone_that_do_not_want_to_be_told() {
    let Some(world) = World::new(133, "a receiver without PBE senders", untouched) else { return };
    let (receiver, _decoder) = (world.receiver(), Decoder::start(&world.pipe()));
    let download = Download::start(&world.server, &world.terminal, "10.133.1.1:0", "cubic");
    download.goes_on();
    download.ends();
    let seen = world.seen.lock().expect("no panic").clone();
    assert!(!seen.is_empty() && seen.iter().all(|(from, syn, _)| *from == 1 && *syn), "in a SYN alone: {seen:?}");
    kill(Pid::from_raw(receiver.id() as i32), Signal::SIGTERM).expect("our child");
    ends_within(receiver, PATIENCE).succeeded();
}

#[test]
fn where_the_option_is_taken_away_it_is_bbr() {
    let Some(world) = World::new(134, "PBE past a middle box", |_| None) else { return };
    let (_sender, _receiver) = (Ended(world.sender(&[])), Ended(world.receiver()));
    let _decoder = Decoder::start(&world.pipe());
    let download = world.download();
    goes_beyond("nothing gets through", || download.info());
    download.goes_on();
    assert!(world.seen.lock().expect("no panic").iter().all(|(_, syn, _)| *syn), "no end has seen the other's");
    download.ends();
}

#[test]
fn a_forged_capacity_is_believed_within_bounds() {
    let Some(world) = World::new(135, "a forged capacity", forged) else { return };
    let (_sender, _receiver) = (Ended(world.sender(&["--most", "60 Mbit/s"])), Ended(world.receiver()));
    let _decoder = Decoder::start(&world.pipe());
    let download = world.download();
    let mut fastest = Rate::ZERO;
    let before = download.acked();
    let done = eventually(PATIENCE, || {
        fastest = fastest.max(pacing(&download.info()));
        download.acked() > before + 5_000_000
    });
    assert!(done, "{:?}", download.info());
    let bounds = (available_rate().scale(2.0), Rate::from_mbit(60));
    assert!(fastest > bounds.0 && fastest <= bounds.1, "{fastest} beside {bounds:?}: {:?}", download.info());
    download.ends();
}

#[test]
fn segments_without_room_for_the_option_change_nothing() {
    // Six holes at once, every 400 segments: more SACK blocks than leave room for the option.
    let holes = |count: u64| count % 400 < 12 && count.is_multiple_of(2);
    let Some(world) = World::that_loses(137, "PBE beside SACK blocks", untouched, holes) else { return };
    let (_sender, _receiver) = (Ended(world.sender(&[])), Ended(world.receiver()));
    let _decoder = Decoder::start(&world.pipe());
    let download = world.download();
    reaches_capacity(|| download.info());
    (0..3).for_each(|_| download.goes_on());
    reaches_capacity(|| download.info());
    let info = download.info();
    assert!(info.total_retrans > 6, "{info:?}");
    download.ends();
    let (crowded, with) = *world.crowded.lock().expect("no panic");
    assert!(crowded > 3 && with == 0, "{with} of {crowded}");
}

/// What an agent says at its end.
fn account(out: &str) -> serde_json::Value {
    let line = out.lines().find_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    line.expect("its account")
}

/// An agent that is killed at the test's end, however that comes.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_cannot_be_is_told_with_what_would_be_right() {
    let Some(world) = World::new(136, "PBE's refusals", untouched) else { return };
    let cgroup = world.cgroup.to_string_lossy().into_owned();
    let told = |arguments: &[&str]| run(&mut inside(world.server.name(), program(), &[&["pbe"], arguments].concat()));
    let _ = told(&["sender", "--cgroup", "/tmp"]).failed_saying(&["/tmp is no cgroup", "cgroup2"]);
    let log = world.folder.path().join("no.log");
    std::fs::write(&log, "no log\n".repeat(30)).expect("written");
    let log = log.to_string_lossy().into_owned();
    let receiver = |more: &[&str]| told(&[&["receiver", "--cgroup", &cgroup, "--rnti", "7"], more].concat());
    let _ = receiver(&["--dci", &log]).failed_saying(&["is no log of assignments"]);
    let _ = receiver(&["--dci", "/no/such/log"]).failed_saying(&["cannot read the log /no/such/log"]);
    for (wrong, says) in [
        (
            &["sender", "--cgroup", "/tmp", "--name", "much_too_long_a_name"][..],
            "--name much_too_long_a_name: it must be 1 to 15",
        ),
        (&["sender", "--cgroup", "/tmp", "--most", "1 kbit/s"], "--most 1 kbit/s: it must be at least 1 Mbit/s"),
        (&["receiver", "--cgroup", "/tmp", "--dci", "-", "--dci", "-", "--rnti", "7"], "standard input once at most"),
        (
            &["receiver", "--cgroup", "/tmp", "--dci", "x", "--prb", "6", "--prb", "6", "--rnti", "7"],
            "once for each --dci",
        ),
    ] {
        let ended = told(wrong);
        assert!(ended.status == 2 && ended.err.contains(says), "{ended:?}");
    }
    // Names are the whole kernel's.
    let _first = Ended(world.sender(&[]));
    let name = world.name();
    let _ = told(&["sender", "--cgroup", &cgroup, "--name", &name]).failed_saying(&[&name, "--name"]);
}
