//! Host, gateway, slow hop, gateway, host: `a` – `ga` – `gb` – `b`, and what runs there.

use super::server::FILE;
use super::support::netns::Netns;
use lasthop_tests::{Ended, PATIENCE, ends_within, eventually, inside, lasthop, program, run};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The namespaces, with addresses 10.N.1.2, 10.N.1.1 – 10.N.9.1, 10.N.9.2 – 10.N.2.1, 10.N.2.2 from left to right.
pub struct World {
    net: u8,
    pub a: Netns,
    pub ga: Netns,
    pub gb: Netns,
    pub b: Netns,
    folder: tempfile::TempDir,
    files: AtomicU32,
}

/// Keys of two pairs of gateways: a file with both, and one with the second alone.
pub fn keys(folder: &Path) -> [String; 2] {
    let text = |name: &str| folder.join(name).to_str().expect("a path of letters").to_owned();
    let all = text("all.keys");
    for number in ["2", "3"] {
        let out = text(&format!("{number}.key"));
        run(&mut lasthop(["pair", "--proxy", &all, "--station", number, "--out", &out])).succeeded();
    }
    [all, text("3.key")]
}

impl World {
    /// `None` where there is no slow hop to be had.
    pub fn new(net: u8) -> Option<World> {
        let [a, ga, gb, b] = ["a", "ga", "gb", "b"].map(Netns::new);
        a.veth("e0", &ga, "l0");
        ga.veth("m0", &gb, "m0");
        gb.veth("l0", &b, "e0");
        let ends = [
            (&a, "e0", "1.2"),
            (&ga, "l0", "1.1"),
            (&ga, "m0", "9.1"),
            (&gb, "m0", "9.2"),
            (&gb, "l0", "2.1"),
            (&b, "e0", "2.2"),
        ];
        for (netns, device, end) in ends {
            netns.ip(&format!("addr add 10.{net}.{end}/24 dev {device}"));
            netns.ip(&format!("link set {device} up"));
        }
        // The ordinary way, without gateways.
        gb.within(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1").expect("our own namespace"));
        ga.ip(&format!("route add 10.{net}.2.0/24 via 10.{net}.9.2"));
        b.ip(&format!("route add 10.{net}.9.0/24 via 10.{net}.2.1"));
        for gateway in [&ga, &gb] {
            let shaped = "qdisc add dev m0 root tbf rate 50mbit burst 4kb limit 300kb";
            let shaped = Command::new("tc").args(["-n", gateway.name()]).args(shaped.split(' ')).status();
            if !shaped.is_ok_and(|status| status.success()) {
                return None;
            }
        }
        let folder = tempfile::tempdir().expect("a directory");
        keys(folder.path());
        Some(World { net, a, ga, gb, b, folder, files: AtomicU32::new(0) })
    }

    /// An address of the world, with a port if one is given.
    pub fn at(&self, end: &str) -> String {
        format!("10.{}.{end}", self.net)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn gateway(&self, at: &Netns, key: &str, arguments: &[&str]) -> Running {
        let key = self.path(key);
        let own = ["mesh-gateway", "--bind", "0.0.0.0:4900", "--key", key.to_str().expect("letters")];
        Running::start(inside(at.name(), program(), &[own.as_slice(), arguments].concat()))
    }

    /// The gateway at `gb`, which is called.
    pub fn called(&self, arguments: &[&str]) -> Running {
        let via = if arguments.is_empty() { &[][..] } else { &["--via", "3"] };
        self.gateway(&self.gb, "all.keys", &[via, arguments].concat())
    }

    /// The gateway at `ga`, which calls it.
    pub fn calling(&self, arguments: &[&str]) -> Running {
        self.calling_at(&self.at("9.2:4900"), arguments)
    }

    /// The same where another address leads to it.
    pub fn calling_at(&self, peer: &str, arguments: &[&str]) -> Running {
        self.gateway(&self.ga, "3.key", &[&["--peer", peer], arguments].concat())
    }

    /// Waits until a SOCKS5 door of `ga` leads somewhere.
    pub fn until_up(&self, door: &str) {
        let url = format!("http://{}/short", self.at("2.2:80"));
        let up = || self.curl(&self.a, &["--socks5-hostname", door, "-m", "20"], &url).ended.status == 0;
        assert!(eventually(PATIENCE, up), "no way through the gateways");
    }

    fn curl_line(&self, at: &Netns, options: &[&str], url: &str) -> (Command, PathBuf) {
        let out = self.path(&format!("got-{}", self.files.fetch_add(1, Ordering::Relaxed)));
        let own = ["-sS", "-m", "120", "-o", out.to_str().expect("letters"), url];
        (inside(at.name(), Path::new("curl"), &[&own[..3], options, &own[3..]].concat()), out)
    }

    /// Fetches a file.
    pub fn curl(&self, at: &Netns, options: &[&str], url: &str) -> Got {
        let (mut command, out) = self.curl_line(at, options, url);
        Got { ended: run(&mut command), out }
    }

    /// The same from a cgroup, by the ordinary way or by where that leads.
    pub fn curl_in(&self, cgroup: &Cgroup, at: &Netns, url: &str) -> Got {
        let (command, out) = self.curl_line(at, &["--noproxy", "*"], url);
        let mut moved = Command::new("sh");
        moved.args(["-c", "echo 0 > \"$0\"/cgroup.procs && exec \"$@\""]).arg(cgroup.text());
        moved.arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
        Got { ended: run(&mut moved), out }
    }

    /// Sends the file, and returns what the server says of it.
    pub fn upload(&self, at: &Netns, options: &[&str], url: &str) -> String {
        let file = self.path("file");
        fs::write(&file, &*FILE).expect("room");
        let options = [options, &["-T", file.to_str().expect("letters")]].concat();
        String::from_utf8(self.curl(at, &options, url).succeeded_with_file()).expect("text")
    }

    /// Begins to fetch what does not end.
    pub fn begin(&self, at: &Netns, options: &[&str], url: &str) -> Running {
        let (mut command, _) = self.curl_line(at, options, url);
        Running { child: Some(command.spawn().expect("curl starts")) }
    }
}

/// What curl has fetched.
pub struct Got {
    pub ended: Ended,
    out: PathBuf,
}

impl Got {
    pub fn succeeded_with_file(self) -> Vec<u8> {
        self.ended.succeeded();
        let got = fs::read(&self.out).expect("curl has written it");
        let _ = fs::remove_file(self.out);
        got
    }
}

/// A program that runs; killed if the test fails.
pub struct Running {
    child: Option<Child>,
}

impl Running {
    /// Starts a gateway, and waits until it says where it is.
    fn start(mut command: Command) -> Running {
        let mut child = command.spawn().expect("it starts");
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        out.read_line(&mut line).expect("text");
        if !line.starts_with("mesh-gateway: ") {
            let mut err = String::new();
            let _ = child.stderr.take().expect("piped").read_to_string(&mut err);
            let _ = child.wait();
            panic!("it does not start: {line}{err}");
        }
        // Whoever writes later finds a reader.
        std::thread::spawn(move || drop(out.read_to_string(&mut String::new())));
        Running { child: Some(child) }
    }

    /// A gateway in this network namespace.
    pub fn here(arguments: &[&str]) -> Running {
        let mut command = lasthop([&["mesh-gateway", "--bind", "127.0.0.1:0"], arguments].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Running::start(command)
    }

    /// One that ends by itself, since it cannot start.
    pub fn never_starts(arguments: &[&str]) -> Ended {
        let mut command = lasthop(arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        ends_within(child, PATIENCE)
    }

    pub fn kill(mut self, signal: Signal) {
        let mut child = self.child.take().expect("it runs");
        kill(Pid::from_raw(child.id() as i32), signal).expect("our child");
        let _ = child.wait();
    }

    /// Tells it to stop, and waits.
    pub fn stop(mut self) -> Ended {
        let child = self.child.take().expect("it runs");
        kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).expect("our child");
        let ended = ends_within(child, PATIENCE);
        assert!(!ended.err.contains("panicked"), "{}", ended.err);
        ended
    }

    /// Waits until it ends.
    pub fn end(mut self) -> Ended {
        ends_within(self.child.take().expect("it runs"), PATIENCE * 2)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A cgroup of version 2, for as long as this lives.
pub struct Cgroup(PathBuf);

impl Cgroup {
    /// `None` where there is none to be had.
    pub fn new() -> Option<Cgroup> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mounts = fs::read_to_string("/proc/self/mounts").expect("mounts");
        let mut mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let mount = mounts.find(|fields| fields.get(2) == Some(&"cgroup2")).map(|fields| PathBuf::from(fields[1]))?;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = mount.join(format!("lasthop-gateways-{}-{number}", std::process::id()));
        fs::create_dir(&path).ok()?;
        Some(Cgroup(path))
    }

    pub fn text(&self) -> String {
        self.0.to_str().expect("letters").to_owned()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
