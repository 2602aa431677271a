//! A station's agent of an ordinary user: the program itself, under another user's number from its first instruction on, without any
//! capability and without a packet socket. Only the namespaces around it, and the proxy, are root's.

// Programs are waited for by the wall clock.
#![allow(clippy::disallowed_methods)]

use crate::support;

use lasthop_tests::{Ended, PATIENCE, children, copy_program, ends_within, eventually, lasthop, run};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Gid, Pid, Uid, chown, setgroups, setresgid, setresuid};
use std::fs::{File, Permissions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use support::netns::{Netns, Row, available};

/// Debian's `nobody`, with its own group.
const NOBODY: u32 = 65534;
const SERVER: &str = "10.94.1.1";
const PROXY: &str = "10.94.2.1:4848";
const DOOR: &str = "127.0.0.1:1080";
const FORWARDED: &str = "127.0.0.1:9000";
/// Octets that the server sends to whoever asks.
const COUNT: usize = 2_000_000;

/// Server, proxy and station in namespaces, and a directory that is the ordinary user's alone.
struct World {
    server: Netns,
    proxy: Netns,
    station: Netns,
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> World {
        let Row { server, proxy, station } = Row::new(94);
        let world = World { server, proxy, station, folder: tempfile::tempdir().expect("a directory") };
        let home = world.home();
        std::fs::create_dir(&home).expect("a new name");
        copy_program(&home.join("lasthop"));
        let (keys, key) = (world.path("proxy.keys"), home.join("key"));
        let _ = run(lasthop(["pair", "--station", "1", "--proxy"]).arg(&keys).arg("--out").arg(&key)).succeeded();
        for path in [&home, &home.join("lasthop"), &key] {
            chown(path, Some(Uid::from_raw(NOBODY)), Some(Gid::from_raw(NOBODY))).expect("root may");
        }
        // Others may pass through to the user's own directory, and to nothing else.
        std::fs::set_permissions(world.folder.path(), Permissions::from_mode(0o711)).expect("ours");
        std::fs::set_permissions(&home, Permissions::from_mode(0o700)).expect("ours");
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The ordinary user's directory, with the program and the key in it.
    fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// The proxy, as an operator starts it.
    fn proxy(&self, log: &str) -> Command {
        let mut command = lasthop(["proxy", "--listen", PROXY, "--rate", "30 Mbit/s", "--keys"]);
        // Other tests need the processors too.
        command.arg(self.path("proxy.keys")).arg("--log").arg(self.path(log)).arg("--no-realtime");
        inside(&mut command, &self.proxy);
        command
    }

    /// `lasthop station` with further arguments, of the ordinary user.
    fn station(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.home().join("lasthop"));
        command.args(["station", "--proxy", PROXY]).args(arguments);
        command.current_dir(self.home()).env_clear().env("NO_COLOR", "1").stdin(Stdio::null());
        inside(&mut command, &self.station);
        // SAFETY: the closure makes system calls only.
        unsafe { command.pre_exec(become_nobody) };
        command
    }

    /// A server that sends [`COUNT`] octets to whoever has said something.
    fn serve(&self) {
        let listener = self.server.within(|| TcpListener::bind((SERVER, 80))).expect("a listener");
        std::thread::spawn(move || {
            for mut socket in listener.incoming().map_while(Result::ok) {
                std::thread::spawn(move || {
                    let bytes: Vec<u8> = (0..COUNT).map(octet).collect();
                    if socket.read_exact(&mut [0]).is_ok() {
                        // A client that has had enough may go.
                        let _ = socket.write_all(&bytes);
                    }
                });
            }
        });
    }

    /// A program of the station that says `greeting` to the agent, hears `answers`, and fetches; false while the tunnel is down.
    fn fetches(&self, door: &str, dialogue: &[(&[u8], &[u8])]) -> bool {
        let mut socket = self.station.within(|| TcpStream::connect(door)).expect("the agent listens");
        socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
        for (say, hear) in dialogue {
            let mut heard = vec![0; hear.len()];
            if socket.write_all(say).is_err() || socket.read_exact(&mut heard).is_err() || heard != *hear {
                return false;
            }
        }
        let mut bytes = Vec::new();
        if socket.write_all(b"x").is_err() || socket.read_to_end(&mut bytes).is_err() || bytes.is_empty() {
            return false;
        }
        assert!(
            bytes.len() == COUNT && bytes.iter().enumerate().all(|(at, byte)| *byte == octet(at)),
            "{}",
            bytes.len()
        );
        true
    }
}

fn octet(at: usize) -> u8 {
    (at * 31 % 251) as u8
}

/// Moves a program into a namespace before it begins.
fn inside(command: &mut Command, netns: &Netns) {
    let file = File::open(format!("/run/netns/{}", netns.name())).expect("a namespace that was made");
    let enter = move || Ok(nix::sched::setns(file.as_fd(), nix::sched::CloneFlags::CLONE_NEWNET)?);
    // SAFETY: the closure makes one system call.
    unsafe { command.pre_exec(enter) };
}

/// Leaves the process as a login of an ordinary user would have it, and less: no program that it starts can gain anything.
fn become_nobody() -> std::io::Result<()> {
    for capability in 0..64 {
        // SAFETY: no pointers are passed. Numbers that the kernel does not know are refused.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
    }
    let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
    setgroups(&[])?;
    setresgid(group, group, group)?;
    setresuid(user, user, user)?;
    Ok(nix::sys::prctl::set_no_new_privs()?)
}

/// Starts an agent and waits until it says that it is ready.
fn start(command: &mut Command) -> Child {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    let _ = BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line);
    if line.is_empty() {
        panic!("it was not ready: {:?}", ends_within(child, PATIENCE));
    }
    child
}

/// Tells an agent to end, and waits for that.
fn end(child: Child) -> Ended {
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).expect("it runs");
    ends_within(child, PATIENCE)
}

/// A line of `/proc/PID/status`.
fn status(pid: u32, key: &str) -> Vec<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).expect("a line");
    line.split_whitespace().map(str::to_owned).collect()
}

/// Slots of a log in which frames were told, by what `select` finds in a line.
fn told(log: &Path, select: impl Fn(&serde_json::Value) -> &serde_json::Value) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    lines.map(|line| select(&line).clone()).filter(|slot| slot["frames"].as_u64() > Some(0)).collect()
}

#[test]
fn an_unprivileged_station_reports_by_arrival_times() {
    if !available("a station's agent of an ordinary user") {
        return;
    }
    let world = World::new();
    world.serve();
    let proxy = start(&mut world.proxy("proxy.log"));
    let forward = format!("{FORWARDED}={SERVER}:80");
    let flags = ["--key", "key", "--listen", DOOR, "--forward", &forward, "--slot", "100ms", "--log", "station.log"];
    let station = start(&mut world.station(&flags));
    let pid = station.id();
    for (key, wanted) in [("Uid", "65534"), ("Gid", "65534")] {
        assert!(status(pid, key).iter().all(|id| id == wanted), "{key}: {:?}", status(pid, key));
    }
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(status(pid, set), ["0000000000000000"], "{set}");
    }
    assert_eq!((status(pid, "Groups").len(), status(pid, "NoNewPrivs")), (0, vec!["1".to_owned()]));

    let socks: [(&[u8], &[u8]); 2] =
        [(&[5, 1, 0], &[5, 0]), (&[5, 1, 0, 1, 10, 94, 1, 1, 0, 80], &[5, 0, 0, 1, 0, 0, 0, 0, 0, 0])];
    let connect: [(&[u8], &[u8]); 1] =
        [(b"CONNECT 10.94.1.1:80 HTTP/1.1\r\nhost: x\r\n\r\n", b"HTTP/1.1 200 Connection established\r\n\r\n")];
    assert!(eventually(PATIENCE, || world.fetches(DOOR, &socks)), "by SOCKS5");
    assert!(eventually(PATIENCE, || world.fetches(DOOR, &connect)), "by CONNECT");
    assert!(eventually(PATIENCE, || world.fetches(FORWARDED, &[])), "through the forwarded port");

    // What it told of itself, and what has come of it at the proxy.
    let own = || told(&world.home().join("station.log"), |line| line);
    let heard = || told(&world.path("proxy.log"), |line| &line["station_report"]);
    assert!(eventually(PATIENCE, || own().len() > 5 && heard().len() > 5), "{} slots", own().len());
    assert!(own().iter().chain(&heard()).all(|slot| slot["source"] == "timestamps"), "{:?}", own());
    // One line is the table's head: nobody in the namespace has a packet socket, and nobody had to.
    let sockets = std::fs::read_to_string(format!("/proc/{pid}/net/packet")).expect("it runs");
    assert_eq!(sockets.lines().count(), 1, "{sockets}");
    assert_eq!(children(pid), []);

    let said = end(station).succeeded();
    assert!(said.err.contains("1 session, 3 connections"), "{}", said.err);
    assert!(!said.err.contains("log"), "{}", said.err);
    let mut left: Vec<String> = std::fs::read_dir(world.home())
        .expect("there")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    left.sort();
    assert_eq!(left, ["key", "lasthop", "station.log"]);
    let listeners = world.station.within(|| std::fs::read_to_string("/proc/thread-self/net/tcp")).expect("procfs");
    assert!(!listeners.contains(" 0A "), "something listens: {listeners}");
    let _ = end(proxy).succeeded();
}

#[test]
fn what_needs_privileges_is_refused_with_the_correction() {
    if !available("a station's agent of an ordinary user") {
        return;
    }
    let world = World::new();
    let _monitor = support::monitor::monitor(&world.station, "mon0");
    let home = world.home();
    std::fs::copy(home.join("key"), home.join("roots")).expect("copied");
    std::fs::copy(home.join("key"), home.join("open")).expect("copied");
    std::fs::set_permissions(home.join("roots"), Permissions::from_mode(0o600)).expect("ours");
    chown(&home.join("open"), Some(Uid::from_raw(NOBODY)), None).expect("root may");
    std::fs::set_permissions(home.join("open"), Permissions::from_mode(0o644)).expect("ours");
    let refused = |arguments: &[&str], says: &[&str]| {
        let _ = run(&mut world.station(arguments)).failed_saying(says);
    };
    refused(&["--key", "key", "--monitor", "mon0"], &["not allowed to listen on mon0", "CAP_NET_RAW", "leave it out"]);
    refused(&["--key", "key", "--monitor", "mon1"], &["no interface mon1"]);
    refused(&["--key", "open"], &["mode 0644", "chmod 600 open"]);
    refused(&["--key", "roots"], &["key file roots", "chown"]);
    refused(&["--key", "key", "--listen", "127.0.0.1:80"], &["127.0.0.1:80", "below 1024"]);
    refused(&["--key", "key", "--log", "/usr/log"], &["log /usr/log", "a directory that you may write to"]);
    refused(&["--key", "key", "--user", "root"], &["cannot become user root", "without --user"]);
}

#[test]
fn a_full_disk_and_no_real_time_end_nothing_and_are_told() {
    if !available("a station's agent of an ordinary user") {
        return;
    }
    let world = World::new();
    world.serve();
    let proxy = start(&mut world.proxy("/dev/full"));
    let forward = format!("{FORWARDED}={SERVER}:80");
    let flags = [
        "--key",
        "key",
        "--listen",
        DOOR,
        "--forward",
        &forward,
        "--slot",
        "100ms",
        "--log",
        "/dev/full",
        "--realtime",
    ];
    let station = start(&mut world.station(&flags));
    assert!(eventually(PATIENCE, || world.fetches(FORWARDED, &[])), "through the forwarded port");
    // Slots have been told, and so both logs have failed.
    std::thread::sleep(Duration::from_secs(1));
    assert!(world.fetches(FORWARDED, &[]), "after the logs have failed");
    let station = end(station).failed_saying(&["log /dev/full", "make room", "the log is incomplete", "1 session, "]);
    assert!(station.err.contains("no real-time scheduling"), "{}", station.err);
    assert_eq!(station.err.matches("nothing more is written").count(), 1, "{}", station.err);
    end(proxy).failed_saying(&["log /dev/full", "the log is incomplete", "1 session, "]);
}
