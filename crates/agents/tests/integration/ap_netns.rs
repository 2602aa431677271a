//! The agent on a real path: server, 20 ms of wire, access point, station, all kernel TCP in namespaces.
//!
//! Needs root; says so loudly and passes where that is missing.
#![cfg(feature = "bpf")]
#![allow(clippy::disallowed_methods, reason = "real time is what is tested")]

use crate::support;

use lasthop_agents::ap::{self, Config};
use lasthop_agents::service::{Method, stop_on_signals};
use lasthop_signals::Node;
use lasthop_units::Bytes;
use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader};
use std::net::IpAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use support::delay::DelayWire;
use support::driver::IdleDriver;
use support::netns::{Netns, available};
use support::tcp::{Bulk, Opener};

const ONE_WAY: Duration = Duration::from_millis(10);
const WINDOW: u64 = 100_000;
/// The station's hardware address, as its driver knows it.
const STATION: [u8; 6] = [2, 0x4c, 0x48, 0, 0, 9];
/// What 100 kB a round trip of 20 ms make, headers not counted.
const LIMITED_MBIT_S: f64 = 40.0;

struct Path3 {
    station: Netns,
    ap: Netns,
    server: Netns,
    _wire: DelayWire,
    dir: tempfile::TempDir,
    _driver: IdleDriver,
}

impl Path3 {
    fn new() -> Path3 {
        let (station, ap, server) = (Netns::new("sta"), Netns::new("ap"), Netns::new("srv"));
        station.veth("sta0", &ap, "wlan0");
        let [a, b, c, d, e, f] = STATION;
        station.ip(&format!("link set sta0 address {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}"));
        let wire = DelayWire::new((&server, "srv0"), (&ap, "eth0"), ONE_WAY);
        for (netns, device, v4, v6) in [
            (&station, "sta0", "10.1.0.2/24", "fd00:1::2/64"),
            (&ap, "wlan0", "10.1.0.1/24", "fd00:1::1/64"),
            (&ap, "eth0", "10.2.0.1/24", "fd00:2::1/64"),
            (&server, "srv0", "10.2.0.2/24", "fd00:2::2/64"),
        ] {
            netns.ip(&format!("addr add {v4} dev {device}"));
            netns.ip(&format!("addr add {v6} dev {device} nodad"));
            netns.ip(&format!("link set {device} txqueuelen 10000 up"));
        }
        for (netns, v4, v6) in [(&station, "10.1.0.1", "fd00:1::1"), (&server, "10.2.0.1", "fd00:2::1")] {
            netns.ip(&format!("route add default via {v4}"));
            netns.ip(&format!("-6 route add default via {v6}"));
        }
        ap.within(|| {
            std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").expect("our own namespace");
            std::fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1").expect("our own namespace");
        });
        let dir = tempfile::tempdir().expect("a directory");
        let driver = IdleDriver::listen(&dir.path().join("driver"), STATION);
        Path3 { station, ap, server, _wire: wire, dir, _driver: driver }
    }

    /// As most access points are: the wireless interface is a port of a bridge, and that has the addresses.
    fn bridge(&self) {
        self.ap.ip("link add br-lan type bridge forward_delay 0");
        self.ap.ip("link set wlan0 master br-lan");
        self.ap.ip("addr flush dev wlan0");
        self.ap.ip("addr add 10.1.0.1/24 dev br-lan");
        self.ap.ip("link set br-lan up");
    }

    fn transfer(&self, v6: bool, opener: Opener) -> Bulk {
        let [station, server] = if v6 { ["fd00:1::2", "fd00:2::2"] } else { ["10.1.0.2", "10.2.0.2"] };
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        Bulk::start((&self.server, address(server)), (&self.station, address(station)), opener)
    }

    fn agent(&self, method: &str) -> Agent {
        self.agent_on("wlan0", method)
    }

    fn agent_on(&self, iface: &str, method: &str) -> Agent {
        Agent::start(&self.ap, &self.dir.path().join("driver"), iface, method)
    }

    fn attached(&self) -> usize {
        self.attached_to("wlan0")
    }

    fn attached_to(&self, iface: &str) -> usize {
        self.ap.within(|| ap::attached(nix::net::if_::if_nametoindex(iface).expect("there") as i32))
    }

    /// What `tc` shows on either side, for filters (TCX does not show there).
    fn filters(&self) -> String {
        let show = |side| {
            let output =
                Command::new("tc").args(["-n", self.ap.name(), "filter", "show", "dev", "wlan0", side]).output();
            String::from_utf8_lossy(&output.expect("iproute2").stdout).into_owned()
        };
        show("ingress") + &show("egress")
    }
}

/// The agent in a process of its own: this test binary, started again.
struct Agent {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Agent {
    fn start(netns: &Netns, driver: &Path, iface: &str, method: &str) -> Agent {
        let file = std::fs::File::open(format!("/run/netns/{}", netns.name())).expect("a namespace");
        let mut command = Command::new(std::env::current_exe().expect("this binary"));
        command.args(["--exact", "ap_netns::agent_process", "--nocapture"]);
        command.env("LASTHOP_TEST_AGENT", method).env("LASTHOP_TEST_DRIVER", driver);
        command.env("LASTHOP_TEST_IFACE", iface).stdout(Stdio::piped());
        // SAFETY: between fork and exec only the setns system call is made.
        unsafe { command.pre_exec(move || setns(&file, CloneFlags::CLONE_NEWNET).map_err(Into::into)) };
        let mut child = command.spawn().expect("this binary starts");
        let out = BufReader::new(child.stdout.take().expect("piped"));
        Agent { child, out }
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).expect("our child");
    }

    /// Waits until the agent has ended by itself, which is a failure; gives what it said.
    fn fails(mut self) -> String {
        let took = wait(PATIENCE, || self.child.try_wait().expect("our child").is_some());
        println!("ended after {took:?}");
        assert!(took.is_some(), "the agent goes on");
        assert!(!self.child.wait().expect("our child").success());
        let mut text = String::new();
        while self.out.read_line(&mut text).is_ok_and(|len| len > 0) {}
        text
    }

    /// Ends the agent by SIGTERM and gives what it printed.
    fn stop(mut self) -> String {
        self.signal(Signal::SIGTERM);
        let began = Instant::now();
        while self.child.try_wait().expect("our child").is_none() {
            assert!(began.elapsed() < PATIENCE, "the agent does not stop");
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut text = String::new();
        while self.out.read_line(&mut text).is_ok_and(|len| len > 0) {}
        text
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Not a test of its own: what [`Agent::start`] runs.
#[test]
fn agent_process() {
    let Ok(method) = std::env::var("LASTHOP_TEST_AGENT") else { return };
    let driver = PathBuf::from(std::env::var_os("LASTHOP_TEST_DRIVER").expect("set with the other"));
    // Behind the wireless interface the agent tells stations apart by itself; a TUN device has no hardware addresses.
    let station = |text: &str| (text.parse().expect("an address"), Node(1));
    let config = Config {
        stations: ["10.2.0.2", "fd00:2::2"].map(station).to_vec(),
        method: if method == "clsact" { Method::Clsact } else { Method::Best },
        say: |line| println!("{line}"),
        driver: Some(driver),
        ..Config::new(std::env::var("LASTHOP_TEST_IFACE").expect("set with the other"))
    };
    let stop = stop_on_signals().expect("handlers");
    let law = Box::new(support::Fixed::new(Bytes::new(WINDOW)));
    match ap::run(&config, law, stop) {
        Ok(summary) => println!("{summary:?}"),
        Err(error) => {
            println!("agent: {error}");
            std::process::exit(1);
        }
    }
}

/// How long to wait for what must happen, however busy the machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until `done` or for `patience`; gives how long it took.
fn wait(patience: Duration, mut done: impl FnMut() -> bool) -> Option<Duration> {
    let began = Instant::now();
    while began.elapsed() < patience {
        if done() {
            return Some(began.elapsed());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    None
}

/// Waits for as much as a second and a half shows on an idle machine, in a time in which the window is never wider. An agent that a busy
/// machine keeps from deciding lets go meanwhile, as it should: then that time begins anew.
fn assert_limited(bulk: &Bulk) {
    std::thread::sleep(Duration::from_millis(1_000));
    let (began, mut since) = (Instant::now(), Instant::now());
    let mut before = bulk.info();
    loop {
        std::thread::sleep(Duration::from_millis(100));
        let after = bulk.info();
        let megabits = (after.bytes_acked - before.bytes_acked) as f64 * 8.0 / 1e6;
        // The kernel counts in ticks, and between an ACK and the next blocked segment it counts the sender as busy.
        let limited = Duration::from_micros(after.rwnd_limited_us - before.rwnd_limited_us);
        let said = format!("limited for {limited:?} of {:?}, {megabits} Mbit: {after:?}", since.elapsed());
        let at_most = 1.1 * LIMITED_MBIT_S * since.elapsed().as_secs_f64();
        if u64::from(after.snd_wnd) > WINDOW + 16_384 {
            println!("let go: {said}");
            (since, before) = (Instant::now(), after);
        } else if since.elapsed() >= Duration::from_millis(1_500)
            && limited > Duration::from_millis(150)
            && (0.2 * LIMITED_MBIT_S * 1.5..at_most).contains(&megabits)
        {
            println!("{said}");
            return;
        }
        assert!(began.elapsed() < PATIENCE, "the receive window is what limits, at W / RTT = 40 Mbit/s: {said}");
    }
}

/// The window that is written limits the sender, and once the agent is gone the station's own does: by what the sender's TCP says.
fn limit_and_let_go(v6: bool, opener: Opener) {
    let path = Path3::new();
    let bulk = path.transfer(v6, opener);
    let opened = wait(PATIENCE, || u64::from(bulk.info().snd_wnd) > 5 * WINDOW);
    println!("free: {opened:?}, {:?}", bulk.watch(Duration::from_millis(500)));
    assert!(opened.is_some(), "the station's own window is not wide: {:?}", bulk.info());
    drop(bulk);

    let agent = path.agent("best");
    assert!(wait(PATIENCE, || path.attached() == 2).is_some(), "the agent attaches");
    let bulk = path.transfer(v6, opener);
    assert_limited(&bulk);

    // A hanging agent: attached still, but nobody decides.
    agent.signal(Signal::SIGSTOP);
    let took = wait(PATIENCE, || u64::from(bulk.info().snd_wnd) > 3 * WINDOW);
    println!("untouched {took:?} after the agent hung");
    assert!(took.is_some(), "still limited");
    agent.signal(Signal::SIGCONT);
    drop(bulk);
    let bulk = path.transfer(v6, opener);
    assert_limited(&bulk);

    agent.signal(Signal::SIGKILL);
    let took = wait(PATIENCE, || u64::from(bulk.info().snd_wnd) > 3 * WINDOW);
    println!("unlimited {took:?} after the kill");
    assert!(took.is_some(), "still limited");
    // The kernel lets go of the two links one after the other, on its own time.
    assert!(wait(PATIENCE, || path.attached() == 0).is_some(), "still attached");
    assert_eq!(path.filters(), "");
    let freed = bulk.watch(Duration::from_millis(1_000));
    println!("freed: {freed:?}");
    assert!(u64::from(freed.after.snd_wnd) > 3 * WINDOW, "{freed:?}");
}

#[test]
fn ipv4_flows_from_the_station_are_limited_until_agent_death() {
    if available("the agent on a real path") {
        limit_and_let_go(false, Opener::Receiver);
    }
}

#[test]
fn ipv6_flows_from_the_server_are_limited_until_agent_death() {
    if available("the agent on a real path") {
        limit_and_let_go(true, Opener::Sender);
    }
}

#[test]
fn a_terminated_agent_leaves_nothing_and_a_second_is_refused() {
    if !available("the agent on a real path") {
        return;
    }
    let path = Path3::new();
    let agent = path.agent("best");
    assert!(wait(PATIENCE, || path.attached() == 2).is_some(), "the agent attaches");
    let mut second = path.agent("best");
    assert!(!second.child.wait().expect("our child").success(), "the interface is taken");
    assert_eq!(path.attached(), 2);
    let bulk = path.transfer(false, Opener::Receiver);
    assert_limited(&bulk);
    // Windows open in steps first.
    let mut seen = vec![u64::from(bulk.info().snd_wnd)];
    agent.signal(Signal::SIGTERM);
    let took = wait(PATIENCE, || {
        seen.push(u64::from(bulk.info().snd_wnd));
        path.attached() == 0
    });
    println!("detached {took:?} after SIGTERM; windows {seen:?}");
    assert!(took.is_some(), "still attached");
    let said = agent.stop();
    println!("{said}");
    assert!(said.contains("method: Tcx") && said.contains("driver_losses: 0"), "{said}");
    // By the agent's own clock: some round trips of 20 ms.
    let steps = farewell(&said).expect("an account");
    assert!(steps > 50.0, "{said}");
    assert_eq!((path.attached(), path.filters().as_str()), (0, ""));
    drop(bulk);

    // An agent that is told twice to stop does not wait.
    let agent = path.agent("best");
    assert!(wait(PATIENCE, || path.attached() == 2).is_some(), "the agent attaches");
    let bulk = path.transfer(false, Opener::Receiver);
    assert_limited(&bulk);
    agent.signal(Signal::SIGTERM);
    std::thread::sleep(Duration::from_millis(20));
    agent.signal(Signal::SIGINT);
    let took = wait(PATIENCE, || path.attached() == 0);
    println!("detached {took:?} after the second signal");
    assert!(took.is_some(), "still attached");
    let said = agent.stop();
    println!("farewell {:?} ms, and {steps} ms with all steps", farewell(&said));
    assert!(farewell(&said).is_some_and(|ms| ms < steps), "{said}");
}

/// How long an agent took to open windows before it let go, ms, by its own account.
fn farewell(said: &str) -> Option<f64> {
    let (_, rest) = said.split_once("farewell: ")?;
    let (number, unit) = rest.split_once(" }")?.0.split_once(' ')?;
    let ms = [("s", 1e3), ("ms", 1.0), ("us", 1e-3), ("ns", 1e-6)].into_iter().find(|(name, _)| *name == unit)?.1;
    Some(number.parse::<f64>().ok()? * ms)
}

#[test]
fn filters_of_a_killed_agent_pass_all_and_are_cleaned_up() {
    if !available("the agent on a real path") {
        return;
    }
    let path = Path3::new();
    let mut agent = path.agent("clsact");
    assert!(wait(PATIENCE, || path.attached() == 2).is_some(), "the agent attaches");
    let bulk = path.transfer(false, Opener::Receiver);
    assert_limited(&bulk);
    agent.signal(Signal::SIGKILL);
    // What it claims goes with its last breath, which a busy machine delays.
    agent.child.wait().expect("our child");
    let took = wait(PATIENCE, || u64::from(bulk.info().snd_wnd) > 3 * WINDOW);
    println!("untouched {took:?} after the kill");
    assert!(took.is_some(), "still limited");
    assert_eq!(path.attached(), 2, "a filter outlives its process");
    let cleaned = path.ap.within(|| ap::clean("wlan0").expect("an interface"));
    assert_eq!((cleaned.removed, cleaned.still_attached), (2, 0));
    let qdiscs = Command::new("tc").args(["-n", path.ap.name(), "qdisc", "show", "dev", "wlan0"]).output();
    let qdiscs = String::from_utf8_lossy(&qdiscs.expect("iproute2").stdout).into_owned();
    assert!(!qdiscs.contains("clsact"), "{qdiscs}");

    // Stopped in an orderly way, it removes its filters itself, privileges dropped or not.
    let agent = path.agent("clsact");
    assert!(wait(PATIENCE, || path.attached() == 2).is_some(), "the agent attaches");
    let said = agent.stop();
    assert!(said.contains("method: Clsact"), "{said}");
    assert_eq!((path.attached(), path.filters().as_str()), (0, ""));
}

#[test]
fn flows_without_timestamps_are_limited_too() {
    if !available("the agent on a real path") {
        return;
    }
    let path = Path3::new();
    path.station.within(|| std::fs::write("/proc/sys/net/ipv4/tcp_timestamps", "0").expect("our own namespace"));
    let agent = path.agent("best");
    assert!(wait(PATIENCE, || path.attached() == 2).is_some(), "the agent attaches");
    for opener in [Opener::Receiver, Opener::Sender] {
        assert_limited(&path.transfer(false, opener));
    }
    let said = agent.stop();
    assert!(said.contains("strangers: 0, untimed: 0"), "{said}");
}

#[test]
fn stations_are_known_on_a_port_of_a_bridge() {
    if !available("the agent on a real path") {
        return;
    }
    let path = Path3::new();
    path.bridge();
    let agent = path.agent("best");
    assert!(wait(PATIENCE, || path.attached() == 2).is_some(), "the agent attaches");
    let bulk = path.transfer(false, Opener::Receiver);
    assert_limited(&bulk);
    let said = agent.stop();
    assert!(said.contains("flows: 1, strangers: 0"), "{said}");
}

#[test]
fn a_device_without_link_layer_is_read_from_its_first_octet() {
    if !available("the agent on a real path") {
        return;
    }
    let path = Path3::new();
    // The wire's end is a TUN device: the server takes the station's part behind it.
    let agent = path.agent_on("eth0", "best");
    assert!(wait(PATIENCE, || path.attached_to("eth0") == 2).is_some(), "the agent attaches");
    for (station, server) in [("10.1.0.2", "10.2.0.2"), ("fd00:1::2", "fd00:2::2")] {
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        let ends = ((&path.station, address(station)), (&path.server, address(server)));
        let bulk = Bulk::start(ends.0, ends.1, Opener::Receiver);
        assert_limited(&bulk);
    }
    drop(agent);
}

impl Path3 {
    /// `tc` with these arguments, in the access point's namespace.
    fn tc(&self, arguments: &str) -> String {
        let output = Command::new("tc").args(["-n", self.ap.name()]).args(arguments.split_whitespace()).output();
        let output = output.expect("iproute2");
        assert!(output.status.success(), "tc {arguments}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn running(&self, method: &str) -> Agent {
        let agent = self.agent(method);
        assert!(wait(PATIENCE, || self.attached() == 2).is_some(), "the agent attaches");
        agent
    }
}

#[test]
fn an_agent_ends_when_its_interface_goes_or_is_made_anew() {
    if !available("the agent on a real path") {
        return;
    }
    for method in ["best", "clsact"] {
        let path = Path3::new();
        let agent = path.running(method);
        path.ap.ip("link del wlan0");
        let said = agent.fails();
        assert!(said.contains("not attached to wlan0 any more: the interface has gone"), "{said}");
        assert!(said.contains("attached to wlan0 by") && said.contains("is connected"), "{said}");
    }
    let path = Path3::new();
    let agent = path.running("best");
    path.ap.ip("link set wlan0 name old0");
    path.ap.ip("link add wlan0 type veth peer name wlan0-peer");
    path.ap.ip("link del old0");
    let said = agent.fails();
    assert!(said.contains("was deleted and another one has its name"), "{said}");
}

#[test]
fn an_agent_whose_qdisc_or_filters_are_removed_ends() {
    if !available("the agent on a real path") {
        return;
    }
    let path = Path3::new();
    let agent = path.running("clsact");
    path.tc("qdisc del dev wlan0 clsact");
    // Somebody else makes one anew: that is not the agent's to remove.
    path.tc("qdisc add dev wlan0 clsact");
    let said = agent.fails();
    assert!(said.contains("somebody has removed them"), "{said}");
    assert!(path.tc("qdisc show dev wlan0").contains("clsact"), "a foreign qdisc stays");
    // So does one that was there before.
    let agent = path.running("clsact");
    assert!(agent.stop().contains("method: Clsact"));
    assert_eq!(path.filters(), "");
    assert!(path.tc("qdisc show dev wlan0").contains("clsact"), "a foreign qdisc stays");
    let agent = path.running("clsact");
    path.tc("filter del dev wlan0 ingress");
    let said = agent.fails();
    assert!(said.contains("somebody has removed them"), "{said}");
    assert_eq!(path.attached(), 0, "and its other filter goes with it");
}

/// The TCX links that a process holds, by the kernel's numbers.
fn tcx_links(pid: u32) -> Vec<u32> {
    let files = std::fs::read_dir(format!("/proc/{pid}/fdinfo")).expect("our child").flatten();
    let texts = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
    let field = |text: &str, key: &str| {
        text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).map(|value| value.trim().to_owned())
    };
    let tcx = texts.filter(|text| field(text, "link_type").as_deref() == Some("tcx"));
    tcx.filter_map(|text| field(&text, "link_id")?.parse().ok()).collect()
}

/// What `bpftool link detach` does.
fn detach(link: u32) {
    // SAFETY: a number goes in, and a descriptor or a negative error comes out.
    let fd = unsafe { libbpf_rs::libbpf_sys::bpf_link_get_fd_by_id(link) };
    assert!(fd >= 0, "link {link}: {}", std::io::Error::last_os_error());
    // SAFETY: a fresh descriptor, owned by nobody else.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: the descriptor is open until the end of this function.
    let error = unsafe { libbpf_rs::libbpf_sys::bpf_link_detach(fd.as_raw_fd()) };
    assert_eq!(error, 0, "link {link}: {}", std::io::Error::last_os_error());
}

#[test]
fn an_agent_whose_link_somebody_detaches_ends() {
    if !available("the agent on a real path") {
        return;
    }
    for side in 0..2 {
        let path = Path3::new();
        let agent = path.running("best");
        let links = tcx_links(agent.child.id());
        assert_eq!(links.len(), 2, "one a side");
        detach(links[side]);
        let said = agent.fails();
        assert!(said.contains("not attached to wlan0 any more: somebody has removed them"), "{said}");
        assert_eq!(path.attached(), 0, "and its other program goes with it");
    }
}

#[test]
fn nobody_touches_what_a_living_agent_has_attached() {
    if !available("the agent on a real path") {
        return;
    }
    for (first, second) in [("clsact", "clsact"), ("clsact", "best"), ("best", "clsact")] {
        let path = Path3::new();
        let agent = path.running(first);
        let before = path.filters();
        // It may be slow to answer, too.
        agent.signal(Signal::SIGSTOP);
        let cleaned = path.ap.within(|| ap::clean("wlan0").expect("an interface"));
        assert_eq!((cleaned.removed, cleaned.still_attached), (0, 2), "{first}");
        let said = path.agent(second).fails();
        assert!(said.contains("another agent is attached"), "{said}");
        agent.signal(Signal::SIGCONT);
        assert_eq!((path.attached(), path.filters()), (2, before));
        std::thread::sleep(Duration::from_millis(600));
        assert!(agent.stop().contains("method: "), "it went on");
        assert_eq!(path.attached(), 0);
    }
}

#[test]
fn segments_that_come_in_lists_are_no_case_for_the_agent() {
    if !available("the agent on a real path") {
        return;
    }
    let path = Path3::new();
    path.ap.set_feature("wlan0", "rx-gro-list", true);
    let said = path.agent("best").fails();
    assert!(said.contains("rx-gro-list of wlan0") && said.contains("ethtool -K wlan0 rx-gro-list off"), "{said}");
    path.ap.set_feature("wlan0", "rx-gro-list", false);
    let agent = path.running("best");
    path.ap.set_feature("wlan0", "rx-gro-list", true);
    let said = agent.fails();
    assert!(said.contains("rx-gro-list of wlan0"), "{said}");
    assert_eq!(path.attached(), 0);
}
