//! What a PBE sender's programs cost an ACK, live: kernel TCP between two namespaces, counted by the kernel's BPF statistics, whose own
//! two clock readings a run are inside.
//!
//! Prints `name value unit` lines; without root, one line on standard error.
#![allow(clippy::disallowed_methods, reason = "real time is what is measured")]

#[path = "../tests/support/mod.rs"]
mod support;

use lasthop_agents::ap::Stop;
use lasthop_agents::ap::kernel::enable_statistics;
use lasthop_agents::pbe::{Logs, NAME, Receiver, ReceiverConfig, Sender, SenderConfig};
use lasthop_laws::{Choice, Place};
use lasthop_signals::Rnti;
use lasthop_units::{Rate, Span, stats::Samples};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use support::cgroup;
use support::netns::{Netns, available};
use support::upload::Upload;

const ROUNDS: usize = 7;
const ROUND: Duration = Duration::from_millis(700);
const OWN: Rnti = Rnti(100);
/// All of a carrier of 275 PRB: a little more than 1 Gbit/s.
const PRB: u64 = 275;
const BITS: u64 = PRB * 4000;

fn main() {
    // `cargo test --benches` asks for a quick look only.
    let rounds = if std::env::args().any(|argument| argument == "--bench") { ROUNDS } else { 1 };
    let what = "bpf.pbe benchmarks";
    let Some(cgroup) = available(what).then(|| cgroup::own(what)).flatten() else { return };
    let (server, terminal) = (Netns::new("srv"), Netns::new("ue"));
    server.veth("s0", &terminal, "w0");
    for (netns, device, end) in [(&server, "s0", 1), (&terminal, "w0", 2)] {
        netns.ip(&format!("addr add 10.138.1.{end}/24 dev {device}"));
        netns.ip(&format!("link set {device} up"));
    }
    let config = SenderConfig { drop_privileges: false, ..SenderConfig::new(&cgroup) };
    let sender = server.within(|| Sender::open(&config).map_err(|error| error.to_string())).expect("a kernel that can");
    let upload = || Upload::start(&server, &terminal, "10.138.1.2:0", NAME);

    let plain = measure(&sender, rounds, &upload());
    print("bpf.pbe.plain_ns_per_ack", &plain[0]);
    let folder = tempfile::tempdir().expect("a directory");
    let telling = Telling::start(&terminal, &cgroup, &folder.path().join("dci"));
    let told = upload();
    told.until("it is told", |info| {
        info.pacing_rate.is_some_and(|rate| rate > Rate::from_mbit(900) && rate < Rate::from_mbit(1200))
    });
    let costs = measure(&sender, rounds, &told);
    print("bpf.pbe.told_ns_per_ack", &costs[0]);
    print("bpf.pbe.option_ns_per_call", &costs[1]);
    drop(told);
    telling.end();
}

/// What a run of the congestion control, and of what reads options, costs.
fn measure(sender: &Sender, rounds: usize, _upload: &Upload) -> [Samples; 2] {
    let _statistics = enable_statistics().expect("root");
    std::thread::sleep(Duration::from_millis(300));
    let mut samples = [Samples::default(), Samples::default()];
    for _ in 0..rounds {
        let before = sender.cost().expect("programs");
        std::thread::sleep(ROUND);
        let after = sender.cost().expect("programs");
        for ((samples, before), after) in samples.iter_mut().zip(before).zip(after) {
            let (runs, time) = (after.1 - before.1, after.2.saturating_sub(before.2));
            if runs > 0 {
                samples.add(time.as_nanos() as f64 / runs as f64);
            }
        }
    }
    samples
}

/// A terminal that tells, and the log that it reads.
struct Telling {
    stop: &'static Stop,
    threads: Vec<JoinHandle<()>>,
}

impl Telling {
    fn start(terminal: &Netns, cgroup: &Path, pipe: &Path) -> Telling {
        nix::unistd::mkfifo(pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        let stop: &'static Stop = Box::leak(Box::default());
        let config = ReceiverConfig {
            cgroup: cgroup.to_owned(),
            logs: Logs {
                files: vec![pipe.to_owned()],
                prb: vec![PRB as u16],
                slots: None,
                rnti: OWN,
                window: Span::from_millis(2),
            },
            law: Choice::named(Place::Receiver, "pbe").expect("a law"),
            drop_privileges: false,
            user: None,
            say: |_| {},
        };
        let (ready, is_ready) = std::sync::mpsc::channel();
        let name = terminal.name().to_owned();
        let agent = std::thread::spawn(move || {
            Netns::of_another(name).enter();
            let receiver = Receiver::open(&config).expect("an agent");
            ready.send(()).expect("somebody waits");
            receiver.run(stop).expect("the kernel takes nothing away");
        });
        is_ready.recv().expect("it is ready");
        let pipe = pipe.to_owned();
        let decoder = std::thread::spawn(move || {
            let mut pipe = OpenOptions::new().read(true).write(true).open(pipe).expect("a pipe");
            let (began, mut written) = (Instant::now(), 0);
            while !stop.is_asked() {
                let passed = began.elapsed().as_millis() as u64;
                let rows: String = (written..passed).map(row).collect();
                written = passed.max(written);
                if pipe.write_all(rows.as_bytes()).is_err() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        Telling { stop, threads: vec![agent, decoder] }
    }

    fn end(self) {
        self.stop.ask();
        for thread in self.threads {
            thread.join().expect("no panic");
        }
    }
}

/// The terminal has all of a subframe.
fn row(number: u64) -> String {
    let (tti, at) = (number % 10_240, 1_700_000_000_000_000 + number * 1000);
    format!("{tti}\t{}\t{PRB}\t{PRB}\t20\t0\t{BITS}\t0\t0\t0\t0\t{at}\t1\t0\t\n", OWN.0)
}

fn print(name: &str, samples: &Samples) {
    match samples.clone().quantile(0.5) {
        Some(median) => println!("{name} {median:.1} ns"),
        None => eprintln!("{name}: no ACKs"),
    }
}
