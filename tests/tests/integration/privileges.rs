//! Which user's process an agent is once everything is open that needs root.

use lasthop_tests::{lasthop, run};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

/// Debian's `nobody`, with its own group; Red Hat's has the same numbers.
const NOBODY: &str = "65534";

/// An agent that has said that it is ready.
struct Agent(Child);

impl Agent {
    fn start(arguments: &[&str]) -> Agent {
        let mut child = lasthop(arguments).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut line).expect("text");
        let agent = Agent(child);
        assert!(!line.is_empty(), "it says that it is ready");
        agent
    }

    /// `/proc/…/status` as keys with their words.
    fn status(&self) -> BTreeMap<String, Vec<String>> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).expect("it runs");
        let pairs = text.lines().filter_map(|line| line.split_once(':'));
        pairs.map(|(key, words)| (key.to_owned(), words.split_whitespace().map(str::to_owned).collect())).collect()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.0.id() as i32), Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

fn is_root() -> bool {
    if !geteuid().is_root() {
        eprintln!("SKIPPED: to become somebody else needs root");
    }
    geteuid().is_root()
}

fn keys(folder: &Path) -> (String, String) {
    let (proxy, station) = (folder.join("proxy.keys"), folder.join("1.key"));
    let (proxy, station) = (proxy.to_str().expect("text").to_owned(), station.to_str().expect("text").to_owned());
    let made = run(&mut lasthop(["pair", "--proxy", &proxy, "--station", "1", "--out", &station]));
    assert_eq!(made.status, 0, "{}", made.err);
    (proxy, station)
}

#[test]
fn proxy_station_and_gateway_drop_root_for_the_given_user() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    let (proxy, station) = keys(folder.path());
    let at = "127.0.0.1:0";
    let agents = [
        vec!["proxy", "--keys", &proxy, "--listen", at, "--user", NOBODY],
        vec!["station", "--key", &station, "--proxy", "127.0.0.1:9", "--listen", at, "--user", NOBODY],
        vec![
            "mesh-gateway",
            "--key",
            &station,
            "--peer",
            "127.0.0.1:9",
            "--bind",
            at,
            "--socks5",
            at,
            "--user",
            NOBODY,
        ],
    ];
    for arguments in agents {
        let agent = Agent::start(&arguments);
        let status = agent.status();
        assert_eq!(status["Uid"], [NOBODY; 4], "{arguments:?}");
        assert_eq!(
            (&status["Gid"][..], &status["Groups"][..]),
            (&[NOBODY; 4].map(str::to_owned)[..], &[NOBODY.to_owned()][..])
        );
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert_eq!(status[set], ["0000000000000000"], "{set} of {arguments:?}");
        }
        assert_eq!(status["NoNewPrivs"], ["1"]);
    }
}

#[test]
fn without_a_user_it_stays_who_it_was_without_capabilities() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    let (proxy, _) = keys(folder.path());
    let agent = Agent::start(&["proxy", "--keys", &proxy, "--listen", "127.0.0.1:0"]);
    let status = agent.status();
    assert_eq!(
        (&status["Uid"][..], &status["CapEff"][..]),
        (&["0"; 4].map(str::to_owned)[..], &["0000000000000000".to_owned()][..])
    );
}

#[test]
fn a_user_that_there_is_not_is_told() {
    let folder = tempfile::tempdir().expect("a directory");
    let (proxy, _) = keys(folder.path());
    let ended = run(&mut lasthop(["proxy", "--keys", &proxy, "--listen", "127.0.0.1:0", "--user", "no-such-user"]));
    assert!(ended.status != 0 && ended.err.contains("there is no user no-such-user"), "{} {}", ended.status, ended.err);
}
