//! `lasthop olsr` on nodes in a row, each of which hears its neighbours alone: routes over kernels that forward, what is left when agents
//! are killed or stopped, and what tshark makes of their packets.

// Programs are waited for by the wall clock.
#![allow(clippy::disallowed_methods)]

use crate::support;

use lasthop_tests::{PATIENCE, ends_within, eventually, inside, program, run};
use lasthop_wire::olsr::{PORT, Packet, kind};
use lasthop_wire::{ethernet, ip};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write as _;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::air::Air;
use support::netns::{Netns, available};

/// Nodes in a row.
const NODES: usize = 4;
const IFACE: &str = "m0";
/// Debian's `nobody`; Red Hat's has the same number.
const NOBODY: &str = "65534";

fn address(node: usize) -> String {
    format!("10.127.0.{}", node + 1)
}

struct Mesh {
    nodes: Vec<Netns>,
    air: Air,
    folder: tempfile::TempDir,
}

impl Mesh {
    fn new() -> Option<Mesh> {
        if !available("the routing agent of a mesh") {
            return None;
        }
        let nodes: Vec<Netns> = (0..NODES).map(|node| Netns::new(&format!("m{node}"))).collect();
        let air = Air::new(&nodes, IFACE, |a, b| a.abs_diff(b) == 1);
        for (number, node) in nodes.iter().enumerate() {
            node.ip(&format!("addr add {}/24 brd + dev {IFACE}", address(number)));
            node.within(|| {
                for (of, name, value) in
                    [(IFACE, "forwarding", "1"), (IFACE, "send_redirects", "0"), ("all", "send_redirects", "0")]
                {
                    std::fs::write(format!("/proc/sys/net/ipv4/conf/{of}/{name}"), value).expect("a switch of Linux");
                }
            });
            node.ip(&format!("link set {IFACE} up"));
        }
        Some(Mesh { nodes, air, folder: tempfile::tempdir().expect("a directory") })
    }

    /// The command of a node's agent, with piped output.
    fn command(&self, node: usize, more: &[&str]) -> Command {
        let arguments = [&["olsr", "--iface", IFACE, "--interval", "100 ms"][..], more].concat();
        inside(self.nodes[node].name(), program(), &arguments)
    }

    /// A running agent. What it prints goes into a file.
    fn agent(&self, node: usize, more: &[&str]) -> Child {
        let out = File::create(self.folder.path().join(format!("{node}.out"))).expect("a file");
        self.command(node, more).stdout(out).spawn().expect("it starts")
    }

    /// Next hop by destination, of the routes with the agents' protocol number.
    fn routes(&self, node: usize) -> BTreeMap<String, String> {
        let listed = Command::new("ip")
            .args(["-n", self.nodes[node].name(), "-j", "route", "show", "proto", "98"])
            .output()
            .expect("iproute2");
        let routes: Vec<serde_json::Value> = serde_json::from_slice(&listed.stdout).unwrap_or_default();
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let next = |route: &serde_json::Value| {
            if route["gateway"].is_null() { &route["dst"] } else { &route["gateway"] }.clone()
        };
        routes.iter().map(|route| (text(&route["dst"]), text(&next(route)))).collect()
    }

    /// The routes that `node` has if it and others `lives`: one to each to which there is a row of living nodes.
    fn right(node: usize, lives: impl Fn(usize) -> bool) -> BTreeMap<String, String> {
        let reached = |other: usize| (node.min(other)..=node.max(other)).all(&lives);
        let next = |other: usize| if other > node { node + 1 } else { node - 1 };
        let others = (0..NODES).filter(|other| *other != node && reached(*other));
        others.map(|other| (address(other), address(next(other)))).collect()
    }

    /// Waits until all that live have the routes that are right then.
    fn settles(&self, lives: impl Fn(usize) -> bool) -> Duration {
        let began = Instant::now();
        let wrong =
            || (0..NODES).filter(|node| lives(*node)).find(|node| self.routes(*node) != Mesh::right(*node, &lives));
        let settled = eventually(PATIENCE, || wrong().is_none());
        assert!(settled, "{:?}", (0..NODES).map(|node| self.routes(node)).collect::<Vec<_>>());
        began.elapsed()
    }

    /// Datagrams go from one end of the row to the other and back.
    fn carries(&self) -> bool {
        let socket = |node: usize| {
            self.nodes[node].within(|| UdpSocket::bind((address(node).as_str(), 7000)).expect("a free port"))
        };
        let (near, far) = (socket(0), socket(NODES - 1));
        near.set_read_timeout(Some(Duration::from_millis(200))).expect("a timeout");
        far.set_read_timeout(Some(Duration::from_millis(200))).expect("a timeout");
        let mut room = [0; 16];
        eventually(PATIENCE, || {
            let _ = near.send_to(b"there", (address(NODES - 1).as_str(), 7000));
            let Ok((len, from)) = far.recv_from(&mut room) else { return false };
            assert_eq!((&room[..len], from.ip().to_string()), (&b"there"[..], address(0)));
            let _ = far.send_to(b"back", from);
            near.recv_from(&mut room).is_ok_and(|(len, _)| &room[..len] == b"back")
        })
    }

    /// All routes of a node's main table, as text.
    fn table(&self, node: usize) -> String {
        let listed = Command::new("ip").args(["-n", self.nodes[node].name(), "route"]).output().expect("iproute2");
        String::from_utf8_lossy(&listed.stdout).into_owned()
    }
}

/// `/proc/…/status` as keys with their words.
fn status(pid: u32) -> BTreeMap<String, Vec<String>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.map(|(key, words)| (key.to_owned(), words.split_whitespace().map(str::to_owned).collect())).collect()
}

/// The OLSR packets among frames.
fn packets(frames: &[Vec<u8>]) -> Vec<&[u8]> {
    let payload = |frame: &'_ Vec<u8>| {
        let link = ethernet::parse(frame).ok()?;
        let at = link.payload_at;
        let packet = &frame[at..];
        let is_udp = packet.first()? >> 4 == 4 && *packet.get(9)? == ip::UDP;
        let at = at + usize::from(packet.first()? & 15) * 4;
        let port = u16::from_be_bytes(frame.get(at + 2..at + 4)?.try_into().ok()?);
        (is_udp && port == PORT).then_some(at + 8)
    };
    frames.iter().filter_map(|frame| Some(&frame[payload(frame)?..])).collect()
}

/// A classic pcap file of Ethernet frames, a microsecond from each to the next.
fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let mut file = words(&[0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 65_535, 1]);
    for (number, frame) in frames.iter().enumerate() {
        let len = frame.len() as u32;
        file.extend(words(&[0, number as u32, len, len]));
        file.extend_from_slice(frame);
    }
    file
}

/// What tshark prints of those packets of a file that pass a filter, the values of fields a line; `None`, said loudly, where there is none.
fn tshark(file: &Path, filter: &str, fields: &[&str]) -> Option<Vec<String>> {
    let fields = fields.iter().flat_map(|field| ["-e", field]);
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file).args(["-Y", filter, "-T", "fields"]).args(fields).stdin(Stdio::null());
    match command.output() {
        Ok(output) => {
            assert!(output.status.success(), "tshark: {}", String::from_utf8_lossy(&output.stderr));
            Some(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
        }
        Err(_) => {
            // Past the capture of test output.
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED: what tshark makes of OLSR packets (Debian: apt-get install tshark)"
            );
            None
        }
    }
}

#[test]
fn a_row_of_nodes_finds_loses_and_regains_routes() {
    let Some(mesh) = Mesh::new() else { return };
    // Left by an agent that was killed, and somebody else's.
    mesh.nodes[1].ip(&format!("route add 10.127.0.77/32 dev {IFACE} proto 98 metric 698"));
    mesh.nodes[1].ip(&format!("route add 10.127.0.50/32 dev {IFACE} proto static"));
    mesh.nodes[1].ip(&format!("route add 10.127.0.51/32 dev {IFACE} proto 98"));
    let tables: Vec<String> = (0..NODES).map(|node| mesh.table(node)).collect();
    let foreign =
        |table: &str| table.lines().filter(|line| !line.contains("metric 698")).map(str::to_owned).collect::<Vec<_>>();

    let mut agents: Vec<Child> = (0..NODES)
        .map(|node| mesh.agent(node, if node == 0 { &["--user", NOBODY, "--json"] } else { &["--user", NOBODY] }))
        .collect();
    // The route of the protocol, but not of the metric, is none of the agent's: it is left alone. It would be in the way of comparing.
    assert!(eventually(PATIENCE, || !mesh.table(1).contains("10.127.0.77")), "{}", mesh.table(1));
    assert!(mesh.table(1).contains("10.127.0.51"), "{}", mesh.table(1));
    mesh.nodes[1].ip(&format!("route del 10.127.0.51/32 dev {IFACE}"));
    println!("routes stand {:?} after the agents", mesh.settles(|_| true));
    assert!(mesh.carries(), "datagrams do not come from end to end");
    for agent in &agents {
        let status = status(agent.id());
        assert_eq!((&status["Uid"][0], &status["CapEff"][0]), (&NOBODY.to_owned(), &"0000000000001000".to_owned()));
    }

    // The second of the row is killed: the first is alone, and the others know no way to either.
    agents[1].kill().expect("our child");
    println!("routes through a killed node are gone after {:?}", mesh.settles(|node| node != 1));
    let killed = ends_within(agents.remove(1), PATIENCE);
    assert!(killed.err.contains("removed 1 route that an agent before had left"), "{}", killed.err);
    assert!(!mesh.routes(1).is_empty(), "who is killed leaves its routes to the next");
    agents.insert(1, mesh.agent(1, &[]));
    println!("routes stand again {:?} after it began anew", mesh.settles(|_| true));
    assert!(mesh.carries(), "datagrams do not come from end to end");

    // Routes that somebody takes away, as the kernel does with an interface that goes down, come back.
    mesh.nodes[2].ip(&format!("link set {IFACE} down"));
    mesh.nodes[2].ip(&format!("link set {IFACE} up"));
    println!("routes stand again {:?} after an interface was down", mesh.settles(|_| true));

    for agent in &agents {
        kill(Pid::from_raw(agent.id() as i32), Signal::SIGTERM).expect("our child");
    }
    for (node, agent) in agents.into_iter().enumerate() {
        let ended = ends_within(agent, PATIENCE).succeeded();
        assert!(ended.err.contains("packets sent"), "{}", ended.err);
        let right: Vec<String> =
            foreign(&tables[node]).into_iter().filter(|line| !line.contains("10.127.0.51")).collect();
        assert_eq!(foreign(&mesh.table(node)), right, "others' routes are as they were");
        assert_eq!(mesh.routes(node), BTreeMap::new(), "no route is left");
    }

    // What was printed says the same: at last there were routes to all others.
    let text = std::fs::read_to_string(mesh.folder.path().join("0.out")).expect("its output");
    let mut told: BTreeMap<String, Option<u64>> = BTreeMap::new();
    for line in text.lines() {
        let change: serde_json::Value = serde_json::from_str(line).expect("JSON lines and nothing else");
        told.insert(change["destination"].as_str().expect("an address").to_owned(), change["hops"].as_u64());
    }
    assert!(
        told.len() == NODES - 1 && told.keys().all(|other| (1..NODES).any(|node| address(node) == *other)),
        "{told:?}"
    );

    let frames = mesh.air.frames();
    let packets = packets(&frames);
    let kinds: BTreeSet<u8> = packets
        .iter()
        .flat_map(|bytes| {
            Packet::decode(bytes).expect("ours").messages.iter().map(|m| m.header.kind).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(kinds, BTreeSet::from([kind::HELLO, kind::TC]));
    let file = mesh.folder.path().join("mesh.pcap");
    std::fs::write(&file, pcap(&frames)).expect("a file");
    let Some(decoded) = tshark(&file, "olsr", &["frame.protocols", "olsr.message_type"]) else { return };
    assert_eq!(decoded.len(), packets.len(), "tshark takes all for OLSR");
    let told =
        decoded.iter().filter(|line| line.ends_with("\t1") || line.ends_with("\t2") || line.contains(',')).count();
    assert_eq!(told, decoded.len(), "every packet has messages that tshark knows");
    // Warnings and errors of its experts; that the TTL is 1 is a note.
    let complaints = tshark(
        &file,
        "olsr && (_ws.malformed || _ws.expert.severity >= 6291456)",
        &["frame.number", "_ws.expert.message"],
    );
    assert_eq!(complaints, Some(vec![]), "tshark complains");
    println!("tshark decodes {} packets", decoded.len());
}

#[test]
fn what_cannot_be_is_told_with_what_would_be_right() {
    let Some(mesh) = Mesh::new() else { return };
    let told = |node: usize, arguments: &[&str]| {
        run(&mut inside(mesh.nodes[node].name(), program(), &[&["olsr"], arguments].concat()))
    };
    let _ = told(0, &["--iface", "wlan9"]).failed_saying(&["no interface wlan9"]);
    let _ = told(0, &["--iface", IFACE, "--address", "10.9.9.9"])
        .failed_saying(&["not the address 10.9.9.9", "ip addr add"]);
    let _ = told(0, &["--iface", IFACE, "--user", "no-such-user"]).failed_saying(&["no user no-such-user"]);
    mesh.nodes[1].ip(&format!("addr flush dev {IFACE}"));
    let _ = told(1, &["--iface", IFACE]).failed_saying(&["no IPv4 address", "ip addr add"]);
    mesh.nodes[1].ip(&format!("addr add 10.127.0.2/32 dev {IFACE}"));
    let _ = told(1, &["--iface", IFACE]).failed_saying(&["without a network", "--within"]);
    for (wrong, says) in [
        (&["--interval", "1 ms"][..], "--interval 1 ms: it must be from 50 ms to 60 s"),
        (&["--interval", "2"][..], "--interval"),
        (&["--within", "10.1.2.3/8"][..], "write 10.0.0.0/8"),
        (&["--willingness", "8"][..], "0..=7"),
    ] {
        let ended = told(0, &[&["--iface", IFACE], wrong].concat());
        assert!(ended.status == 2 && ended.err.contains(says), "{wrong:?}: {}", ended.err);
    }
    // A process that may not change routes.
    let program = program().to_string_lossy();
    let without = ["--bounding-set", "-net_admin", &program, "olsr", "--iface", IFACE];
    let _ = run(&mut inside(mesh.nodes[0].name(), Path::new("setpriv"), &without))
        .failed_saying(&["CAP_NET_ADMIN", "--user"]);
    // One that runs, and another for the same interface; then its address goes.
    let first = mesh.agent(2, &[]);
    let out = mesh.folder.path().join("2.out");
    assert!(eventually(PATIENCE, || std::fs::metadata(&out).is_ok_and(|found| found.len() > 0)), "it is ready");
    let _ = told(2, &["--iface", IFACE]).failed_saying(&["10.127.0.3:698", "another program has it"]);
    mesh.nodes[2].ip(&format!("addr flush dev {IFACE}"));
    let _ = ends_within(first, PATIENCE).failed_saying(&["does not have the address 10.127.0.3 any more"]);
}

#[test]
fn one_with_an_address_alone_finds_those_within_a_network() {
    let Some(mesh) = Mesh::new() else { return };
    for node in 0..NODES {
        mesh.nodes[node].ip(&format!("addr flush dev {IFACE}"));
        mesh.nodes[node].ip(&format!("addr add {}/32 dev {IFACE}", address(node)));
    }
    let agents: Vec<Child> = (0..NODES).map(|node| mesh.agent(node, &["--within", "10.127.0.0/16"])).collect();
    println!("routes stand after {:?}", mesh.settles(|_| true));
    assert!(mesh.carries(), "datagrams do not come from end to end");
    for agent in agents {
        kill(Pid::from_raw(agent.id() as i32), Signal::SIGTERM).expect("our child");
        let _ = ends_within(agent, PATIENCE).succeeded();
    }
}
