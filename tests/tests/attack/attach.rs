//! Agents that lose their interface, programs or qdisc, or find them claimed by another.

use crate::case::{Case, Seen};
use crate::program::{Program, run};
use crate::radio::tc;
use crate::scene::Scene;
use crate::support::driver::IdleDriver;
use crate::support::netns::Netns;
use lasthop_tests::bpf;
use nix::sys::signal::Signal;
use std::time::Duration;

pub const CASES: &[Case] = &[
    Case {
        name: "attach: interface deleted",
        done: "the agent's interface is deleted (TCX, then clsact)",
        right: ENDS,
        run: |scene| deleted(scene, false),
    },
    Case {
        name: "attach: interface made anew",
        done: "the interface is deleted, and another has its name (TCX, then clsact)",
        right: ENDS,
        run: |scene| deleted(scene, true),
    },
    Case {
        name: "attach: qdisc removed",
        done: "somebody removes the clsact qdisc and makes another",
        right: "the agent says so within 1 s and ends with status 1; the other qdisc stays",
        run: qdisc,
    },
    Case {
        name: "attach: --clean",
        done: "--clean beside a living agent (TCX, then clsact), which is held up meanwhile",
        right: "it is refused; the agent's programs stay, and the agent goes on",
        run: |scene| beside(scene, Intruder::Clean),
    },
    Case {
        name: "attach: a second agent",
        done: "a second agent on the interface of a living one (TCX, then clsact), which is held up meanwhile",
        right: "it does not begin; the first one's programs stay, and the first one goes on",
        run: |scene| beside(scene, Intruder::Agent),
    },
    Case {
        name: "attach: what is foreign",
        done: "an agent with clsact begins, is killed and cleaned up on an interface with somebody's qdisc and filter",
        right: "qdisc and filter are there all the time",
        run: foreign,
    },
];

const ENDS: &str = "the agent says so within 1 s and ends with status 1";
/// Within this an agent must have noticed, in the long form: it looks every half second.
const SOON: Duration = Duration::from_secs(1);
const METHODS: [&str; 2] = ["tcx", "clsact"];

/// An access point with `wlan0` on a cable, and its driver.
struct Cable {
    ap: Netns,
    folder: tempfile::TempDir,
    _driver: IdleDriver,
}

impl Cable {
    fn new() -> Cable {
        let (ap, folder) = (Netns::new("ap"), tempfile::tempdir().expect("a directory"));
        ap.ip("link add wlan0 type veth peer name sta0");
        ap.ip("link set wlan0 up");
        let driver = IdleDriver::listen(&folder.path().join("driver"), [2; 6]);
        Cable { ap, folder, _driver: driver }
    }

    fn start(&self, method: &str) -> Program {
        let driver = self.folder.path().join("driver");
        let driver = driver.to_str().expect("a path in ASCII");
        Program::lasthop(&self.ap, &["ap", "--iface", "wlan0", "--driver", driver, "--attach", method])
    }

    fn agent(&self, scene: &Scene, method: &str) -> Program {
        let mut agent = self.start(method);
        agent.says(scene, "is connected");
        agent
    }

    fn filters(&self) -> String {
        tc(&self.ap, "filter show dev wlan0 ingress") + &tc(&self.ap, "filter show dev wlan0 egress")
    }

    fn qdiscs(&self) -> String {
        tc(&self.ap, "qdisc show dev wlan0")
    }
}

/// An agent from which something is taken: how long it took to end, and whether it ended as it should.
fn ends(scene: &Scene, agent: Program, seen: Seen) -> (Seen, Duration) {
    let (took, status, said) = agent.ends(scene);
    let seen = seen
        .must(status.code() == Some(1), format_args!("it ended with {status}"))
        .must(said.iter().any(|line| line.contains("not attached to wlan0 any more")), "it does not say so")
        .must(!scene.is_whole() || took <= SOON, format_args!("it noticed after {} ms", took.as_millis()));
    (seen, took)
}

fn deleted(scene: &mut Scene, anew: bool) -> Seen {
    let (mut seen, mut took) = (Seen::new(""), Vec::new());
    // In the short form one method each.
    let methods = scene.pick(&METHODS[..], &METHODS[usize::from(anew)..=usize::from(anew)]);
    for method in methods {
        let cable = Cable::new();
        let agent = cable.agent(scene, method);
        cable.ap.ip("link del wlan0");
        if anew {
            cable.ap.ip("link add wlan0 type veth peer name sta0");
            cable.ap.ip("link set wlan0 up");
        }
        let (so_far, time) = ends(scene, agent, seen);
        seen = so_far;
        took.push(format!("{} ms ({method})", time.as_millis()));
        if anew {
            seen = seen.must(cable.filters().is_empty(), "it touched the other interface");
        }
    }
    seen.measured(format!("ended after {}", took.join(", ")))
}

fn qdisc(scene: &mut Scene) -> Seen {
    let cable = Cable::new();
    let agent = cable.agent(scene, "clsact");
    tc(&cable.ap, "qdisc del dev wlan0 clsact");
    tc(&cable.ap, "qdisc add dev wlan0 clsact");
    let (seen, took) = ends(scene, agent, Seen::new(""));
    seen.must(cable.qdiscs().contains("clsact"), "it removed somebody's qdisc")
        .measured(format!("ended after {} ms; the other qdisc is there", took.as_millis()))
}

/// What comes to the interface of a living agent.
#[derive(Clone, Copy)]
enum Intruder {
    Clean,
    Agent,
}

fn beside(scene: &mut Scene, intruder: Intruder) -> Seen {
    let (mut seen, mut told) = (Seen::new(""), String::new());
    for method in METHODS {
        let cable = Cable::new();
        let mut agent = cable.agent(scene, method);
        let (programs, filters) = (bpf::programs_of(agent.id()), cable.filters());
        // It may be slow to answer, too.
        agent.signal(Signal::SIGSTOP);
        let (succeeded, said) = match intruder {
            Intruder::Clean => run(scene, &cable.ap, &["ap", "--iface", "wlan0", "--clean"]),
            Intruder::Agent => {
                let (_, status, said) = cable.start("best").ends(scene);
                (status.success(), said.join("\n"))
            }
        };
        agent.signal(Signal::SIGCONT);
        let refusal = match intruder {
            Intruder::Clean => "stop it first",
            Intruder::Agent => "another agent is attached",
        };
        // Long enough for a look at what is attached.
        scene.rest(scene.ms(1500, 100));
        let lives = !agent.has_ended();
        let same = bpf::programs_of(agent.id()) == programs && cable.filters() == filters;
        seen = seen
            .must(!succeeded && said.contains(refusal), format_args!("not refused beside {method}: {said}"))
            .must(programs.len() >= 2 && same, format_args!("programs of {method} were touched"))
            .must(programs.iter().all(|program| bpf::is_loaded(*program)), "a program was removed")
            .must(lives, format_args!("the agent with {method} has ended"));
        let (_, status, _) = agent.stops(scene);
        seen = seen.must(status.success(), "the agent failed in the end");
        told = said.lines().find(|line| line.contains(refusal)).unwrap_or_default().to_owned();
    }
    seen.measured(format!("refused twice: `{told}`"))
}

fn foreign(scene: &mut Scene) -> Seen {
    let cable = Cable::new();
    tc(&cable.ap, "qdisc add dev wlan0 clsact");
    // A classic program that classifies everything alike: the one kind of filter that every kernel with eBPF has.
    tc(&cable.ap, "filter add dev wlan0 ingress prio 7 bpf bytecode 1,6_0_0_0, flowid 1:1");
    let is_there = || cable.filters().contains("pref 7 bpf") && cable.qdiscs().contains("clsact");
    let mut seen = Seen::new("").must(is_there(), "somebody's filter cannot be made");
    let agent = cable.agent(scene, "clsact");
    seen = seen.must(is_there(), "gone when the agent began");
    agent.signal(Signal::SIGKILL);
    drop(agent);
    let left = cable.filters().lines().filter(|line| line.contains("rwnd_")).count();
    let (cleaned, said) = run(scene, &cable.ap, &["ap", "--iface", "wlan0", "--clean"]);
    seen = seen.must(cleaned && !cable.filters().contains("rwnd_"), "the agent's filters are left");
    seen = seen.must(is_there(), "gone after --clean");
    let (_, status, _) = cable.agent(scene, "clsact").stops(scene);
    seen.must(status.success(), "the agent failed")
        .must(is_there(), "gone when the agent ended")
        .measured(format!("there all the time; {left} filters of the killed agent left, then `{said}`"))
}
