//! The hop that the access point's agent is attacked on: an emulated 802.11ac radio that `lasthop lab` has put up.

use crate::liar::Liar;
use crate::program::Program;
use crate::scene::Scene;
use crate::support::netns::Netns;
use crate::support::tcp::{Bulk, Opener};
use lasthop_lab::address::{Family, ip};
use lasthop_lab::topology::{AP, LAST, WIRE};
use lasthop_signals::Node;
use lasthop_tests::{lasthop, own_scenario};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Server, access point and station, a driver that tells the truth, and one between that need not.
pub struct Radio {
    // Taken down in this order.
    pub liar: Liar,
    _lab: Lab,
    pub server: Netns,
    pub ap: Netns,
    pub station: Netns,
    socket: PathBuf,
    _folder: tempfile::TempDir,
}

/// The lab's process; it takes everything down when its program's input ends, as it does when we die.
struct Lab(Program);

/// How long the lab may take to take everything down.
const FAREWELL: Duration = Duration::from_secs(10);

impl Radio {
    pub fn start(scene: &Scene) -> Radio {
        let mut command = lasthop(["lab"]);
        command.arg(own_scenario("attack")).args(["--", "cat"]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut lab = Lab(Program::start(command));
        lab.0.says(scene, "cat runs on");
        let run = format!("{}-0", lab.0.id());
        let netns = |role: &str| Netns::of_another(format!("lasthop-{run}-{role}"));
        let folder = tempfile::tempdir().expect("a directory");
        let socket = folder.path().join("driver");
        let liar = Liar::between(&Path::new("/run/lasthop").join(&run).join("driver.sock"), &socket);
        let (server, ap, station) = (netns("server"), netns("ap"), netns("sta1"));
        Radio { liar, _lab: lab, server, ap, station, socket, _folder: folder }
    }

    /// The agent on the access point's wireless interface, at work.
    pub fn agent(&self, scene: &Scene, more: &[&str]) -> Program {
        let driver = self.socket.to_str().expect("a path in ASCII");
        let mut agent = Program::lasthop(&self.ap, &[&["ap", "--iface", "wlan0", "--driver", driver], more].concat());
        agent.says(scene, "is connected");
        agent
    }

    /// Where a server's address is.
    pub fn server_address(&self) -> std::net::IpAddr {
        ip(Family::V4, WIRE, Node(0))
    }

    /// A download that lasts until it is dropped.
    pub fn download(&self) -> Bulk {
        let station = ip(Family::V4, LAST, Node(AP.0 + 1));
        Bulk::start((&self.server, self.server_address()), (&self.station, station), Opener::Receiver)
    }

    /// `tc` in the access point's namespace: what it shows.
    pub fn tc(&self, arguments: &str) -> String {
        tc(&self.ap, arguments)
    }

    /// What is attached to the access point's wireless interface as `tc` shows it: filters on either side.
    pub fn filters(&self) -> String {
        self.tc("filter show dev wlan0 ingress") + &self.tc("filter show dev wlan0 egress")
    }
}

/// `tc` in a namespace: what it shows. Its arguments are separated by single blanks; `_` stands for one in an argument.
pub fn tc(at: &Netns, arguments: &str) -> String {
    let mut command = std::process::Command::new("tc");
    let arguments = arguments.split(' ').map(|argument| argument.replace('_', " "));
    let output = command.args(["-n", at.name()]).args(arguments).output().expect("iproute2");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.0.close_input();
        let began = Instant::now();
        while !self.0.has_ended() {
            if began.elapsed() > FAREWELL {
                // It is killed, and leaves what a killed run leaves.
                self.0.signal(nix::sys::signal::Signal::SIGKILL);
                std::thread::sleep(Duration::from_millis(100));
                let _ = lasthop(["lab", "--clean"]).output();
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The windows that a sender has seen, octets.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    pub least: u32,
    pub median: u32,
    pub most: u32,
}

impl Windows {
    /// Of a download over `span`, looked at every few milliseconds.
    pub fn of(scene: &Scene, download: &Bulk, span: Duration) -> Windows {
        let mut seen = vec![download.info().snd_wnd];
        scene.until(span, || {
            seen.push(download.info().snd_wnd);
            false
        });
        seen.sort_unstable();
        Windows { least: seen[0], median: seen[seen.len() / 2], most: seen[seen.len() - 1] }
    }
}

/// How a download went on.
#[derive(Clone, Copy, Debug)]
pub struct Flowed {
    pub mbit_s: f64,
    /// The longest time without an acknowledged octet.
    pub stall: Duration,
}

impl Flowed {
    /// Of a download over `span`.
    pub fn of(scene: &Scene, download: &Bulk, span: Duration) -> Flowed {
        let (began, first) = (Instant::now(), download.info().bytes_acked);
        let (mut last, mut moved, mut stall) = (first, began, Duration::ZERO);
        scene.until(span, || {
            let acked = download.info().bytes_acked;
            if acked > last {
                (last, moved) = (acked, Instant::now());
            }
            stall = stall.max(moved.elapsed());
            false
        });
        Flowed { mbit_s: (last - first) as f64 * 8.0 / began.elapsed().as_secs_f64() / 1e6, stall }
    }
}

/// Octets as people read them.
pub fn kb(octets: u32) -> String {
    match octets {
        0..10_000_000 => format!("{} kB", octets / 1000),
        _ => format!("{} MB", octets / 1_000_000),
    }
}
