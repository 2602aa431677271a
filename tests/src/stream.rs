//! Both ends of `lasthop send` and `lasthop recv`, and two namespaces for them.

use crate::{Ended, PATIENCE, ends_within, lasthop};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::io::{BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

/// A file with octets that do not repeat within its length.
pub fn file(folder: &Path, len: usize) -> PathBuf {
    let path = folder.join("sent");
    let mut out = BufWriter::new(fs::File::create(&path).expect("a file"));
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for at in (0..len).step_by(8) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let octets = (state ^ state >> 33).to_le_bytes();
        out.write_all(&octets[..8.min(len - at)]).expect("room");
    }
    out.flush().expect("room");
    path
}

/// A receiver that listens, and where. It is killed when dropped.
pub struct Receiver {
    child: Option<Child>,
    /// Where it listens.
    pub address: String,
    lines: BufReader<ChildStderr>,
}

impl Receiver {
    /// Starts it, and waits until it listens.
    pub fn start(mut command: Command) -> Receiver {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped"));
        let mut line = String::new();
        lines.read_line(&mut line).expect("it says where it listens");
        let address = line.strip_prefix("listening at ").unwrap_or_else(|| panic!("{line}")).trim().to_owned();
        Receiver { child: Some(child), address, lines }
    }

    /// One at a free port of loopback, with these arguments.
    pub fn here(arguments: &[&str]) -> Receiver {
        Receiver::start(lasthop([&["recv", "--bind", "127.0.0.1:0"], arguments].concat()))
    }

    /// What it writes to standard output.
    ///
    /// # Panics
    /// If somebody has taken it before.
    pub fn output(&mut self) -> ChildStdout {
        self.child.as_mut().and_then(|child| child.stdout.take()).expect("piped, and taken once")
    }

    /// Waits for its end.
    pub fn end(mut self) -> Ended {
        let mut err = String::new();
        self.lines.read_to_string(&mut err).expect("text");
        let ended = ends_within(self.child.take().expect("it runs"), PATIENCE);
        assert!(!err.contains("panicked"), "{err}");
        Ended { err, ..ended }
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = self.child.as_ref().expect("it runs").id();
        kill(Pid::from_raw(pid as i32), signal).expect("our child");
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Two namespaces and a pair of interfaces between them; they go with it.
pub struct Pair(pub [String; 2]);

impl Pair {
    /// Makes them, with the addresses 10.77.0.1 and 10.77.0.2.
    #[expect(clippy::new_without_default, reason = "it changes the machine")]
    pub fn new() -> Pair {
        let names = ["a", "b"].map(|end| format!("lasthop-streams-{}-{end}", std::process::id()));
        names.iter().for_each(|name| ip(&format!("netns add {name}")));
        let [a, b] = &names;
        ip(&format!("link add v0 netns {a} type veth peer name v0 netns {b}"));
        for (name, address) in [(a, "10.77.0.1/24"), (b, "10.77.0.2/24")] {
            ip(&format!("-n {name} addr add {address} dev v0"));
            ip(&format!("-n {name} link set v0 up"));
        }
        Pair(names)
    }

    /// Shapes what the first sends by a TBF with these arguments; false if the machine has none.
    pub fn shaped(&self, tbf: &str) -> bool {
        let shaped = format!("-n {} qdisc add dev v0 root tbf {tbf}", self.0[0]);
        Command::new("tc").args(shaped.split(' ')).status().is_ok_and(|status| status.success())
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.0.iter().for_each(|name| ip(&format!("netns del {name}")));
    }
}

fn ip(arguments: &str) {
    let done = Command::new("ip").args(arguments.split(' ')).status().expect("iproute2 is there");
    assert!(done.success() || std::thread::panicking(), "ip {arguments}");
}
