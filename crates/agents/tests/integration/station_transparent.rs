//! Transparent mode at the station: programs that know of no proxy.
//!
//! A test program of its own, since it moves itself into a cgroup.
#![cfg(feature = "bpf")]
#![allow(clippy::disallowed_methods, reason = "real time is what is tested")]

use crate::support;

use lasthop_agents::proxy::{self, Rule};
use lasthop_agents::station;
use lasthop_units::Rate;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use support::edge::Edge;
use support::netns::{Netns, available};

/// A cgroup with this process in it.
struct Cgroup {
    path: PathBuf,
    before: PathBuf,
}

impl Cgroup {
    /// `None`, said loudly, where there are no cgroups of version 2.
    fn enter() -> Option<Cgroup> {
        let mounts = fs::read_to_string("/proc/self/mounts").expect("mounts");
        let mut mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let mount = mounts.find(|fields| fields.get(2) == Some(&"cgroup2")).map(|fields| PathBuf::from(fields[1]));
        let path = mount.as_ref().map(|mount| mount.join(format!("lasthop-test-{}", std::process::id())));
        let (Some(mount), Some(path)) = (mount, path.filter(|path| fs::create_dir(path).is_ok())) else {
            // Past the capture of test output.
            let what = "transparent mode at the station: needs a cgroup2 file system that is not read-only";
            let _ = writeln!(std::io::stderr(), "SKIPPED: {what}");
            return None;
        };
        let own = fs::read_to_string("/proc/self/cgroup").expect("our cgroups");
        let own = own.lines().find_map(|line| line.strip_prefix("0::/")).expect("one of version 2");
        let cgroup = Cgroup { path, before: mount.join(own) };
        cgroup.move_to(&cgroup.path);
        Some(cgroup)
    }

    fn move_to(&self, path: &Path) {
        fs::write(path.join("cgroup.procs"), std::process::id().to_string()).expect("root");
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        self.move_to(&self.before);
        let _ = fs::remove_dir(&self.path);
    }
}

/// A service that says its caller's address, sends back what it is sent, and is there as long as the test is.
fn serve(at: &Netns, address: &str) {
    let listener = at.within(|| TcpListener::bind(address)).expect("a listener");
    std::thread::spawn(move || {
        while let Ok((mut socket, from)) = listener.accept() {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                let _ = socket.write_all(format!("{}\n", from.ip()).as_bytes());
                let _ = socket.read_to_end(&mut bytes);
                let _ = socket.write_all(&bytes);
            });
        }
    });
}

/// The address that a service sees when a client calls it, sends it something and has that back.
fn seen_from(at: &Netns, to: &str) -> Option<String> {
    let to: SocketAddr = to.parse().expect("an address");
    let bytes: Vec<u8> = (0..300_000u32).map(|n| (n % 251) as u8).collect();
    let mut socket = at.within(|| TcpStream::connect_timeout(&to, Duration::from_secs(2))).ok()?;
    assert_eq!(socket.peer_addr().ok()?, to, "the program is told what it asked for");
    socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a socket");
    let mut writer = socket.try_clone().expect("a socket");
    let sent = bytes.clone();
    let sending = std::thread::spawn(move || {
        let _ = writer.write_all(&sent).and_then(|()| writer.shutdown(std::net::Shutdown::Write));
    });
    let mut heard = Vec::new();
    let read = socket.read_to_end(&mut heard);
    sending.join().expect("no panic");
    let end = heard.iter().position(|byte| *byte == b'\n').filter(|_| read.is_ok())?;
    assert_eq!(heard[end + 1..], bytes, "what was sent comes back");
    Some(String::from_utf8_lossy(&heard[..end]).into_owned())
}

fn until(what: &str, mut so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn unaware_programs_use_the_proxy_or_else_the_ordinary_path() {
    if !available("transparent mode at the station") {
        return;
    }
    let world = Edge::new(97);
    let (server, through_proxy, directly) = ("10.97.1.1:7", "10.97.1.2", "10.97.2.2");
    // There is a way without the tunnel too.
    world.proxy.within(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1").expect("our own namespace"));
    world.proxy.within(|| fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1").expect("our own namespace"));
    for (netns, device, address) in [
        (&world.server, "s0", "fd97:1::1/64"),
        (&world.proxy, "p0", "fd97:1::2/64"),
        (&world.proxy, "p1", "fd97:2::1/64"),
        (&world.station, "t0", "fd97:2::2/64"),
    ] {
        netns.ip(&format!("addr add {address} dev {device} nodad"));
    }
    world.server.ip("route add 10.97.2.0/24 via 10.97.1.2");
    world.station.ip("route add default via 10.97.2.1");
    world.server.ip("route add fd97:2::/64 via fd97:1::2");
    world.station.ip("route add default via fd97:2::1");
    serve(&world.server, server);
    serve(&world.server, "[fd97:1::1]:7");
    serve(&world.proxy, "10.97.1.2:70");
    serve(&world.station, "10.97.2.2:70");
    world.proxy.ip("addr add 10.97.2.9/24 dev p1");
    serve(&world.proxy, "10.97.2.9:70");

    let Some(cgroup) = Cgroup::enter() else { return };
    let seen = |to: &str| seen_from(&world.station, to);
    assert_eq!(seen(server).as_deref(), Some(directly), "nobody is there who would lead it elsewhere");
    let config = station::Config {
        transparent: Some(cgroup.path.clone()),
        ..station::Config::new("10.97.2.1:4848".parse().expect("an address"), world.key())
    };
    let agent = world.start_station(config);
    assert_eq!(seen(server).as_deref(), Some(directly), "the agent has no proxy");

    let listen = "10.97.2.1:4848".parse().expect("an address");
    let config = proxy::Config::new(listen, world.keys(), Rule::Fixed(Rate::from_mbit(50)));
    let proxy = world.start_proxy(config);
    until("connections are not led to the agent", || seen(server).as_deref() == Some(through_proxy));
    assert_eq!(seen("[fd97:1::1]:7").as_deref(), Some("fd97:1::2"), "over IPv6");
    // What programs do that know only of IPv6 sockets.
    assert_eq!(seen("[::ffff:10.97.1.1]:7").as_deref(), Some(through_proxy), "an IPv4 address in an IPv6 socket");
    assert_eq!(seen("10.97.2.2:70").as_deref(), Some(directly), "an address of this machine");
    assert_eq!(seen("10.97.2.9:70").as_deref(), Some(directly), "an address of a network that this machine is in");
    assert_eq!(seen("10.97.1.1:9"), None, "nobody listens there");
    // The proxy makes no connections to its own machine, which is found out by the first.
    until("what the proxy forbids is cut off", || seen("10.97.1.2:70").as_deref() == Some(directly));
    let by_itself = seen_from(&world.server, "10.97.1.2:70");
    assert_eq!(by_itself.as_deref(), Some("10.97.1.1"), "another network namespace, in the same cgroup");

    drop(proxy.end());
    until("connections are led to an agent without a proxy", || seen(server).as_deref() == Some(directly));
    let summary = agent.end();
    assert!(summary.connections >= 3, "{summary:?}");
    assert_eq!(seen(server).as_deref(), Some(directly), "no agent is there");
}
