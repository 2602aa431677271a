//! What PBE-CC costs, live: kernel TCP between two namespaces. The sender's programs an ACK, counted by the kernel's
//! BPF statistics, their own two clock readings a run included; and the receiver of a busy cell, by processor time.
//!
//! Prints `name value unit` lines; without root, one line on standard error.
#![allow(clippy::disallowed_methods, reason = "real time is what is measured")]

#[path = "../tests/support/mod.rs"]
mod support;

use lasthop_agents::pbe::{Logs, Receiver, ReceiverConfig, Sender, SenderConfig};
use lasthop_agents::service::Stop;
use lasthop_agents::service::program_info::enable_statistics;
use lasthop_laws::{Choice, Place};
use lasthop_signals::Rnti;
use lasthop_units::{Rate, Span, stats::Samples};
use nix::time::{ClockId, clock_gettime};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use support::cgroup;
use support::netns::{Netns, available};
use support::upload::Upload;

/// Of the congestion control: no other agent's.
const NAME: &str = "lasthop_bench";
const ROUNDS: usize = 7;
const ROUND: Duration = Duration::from_millis(700);
const OWN: Rnti = Rnti(100);
/// Bits of a PRB pair.
const RATE: u64 = 4000;
/// A carrier of 275 PRB that is the terminal's alone: a little more than 1 Gbit/s.
const ALONE: Cell = Cell { carriers: 1, prb: 275, users: 1, assigned: 1 };
/// Four carriers of 20 MHz, each with a hundred terminals, of which eight are given something in a subframe.
const BUSY: Cell = Cell { carriers: 4, prb: 100, users: 100, assigned: 8 };
/// A terminal's fair share there.
const SHARE: Rate = Rate::from_mbit(16);
/// How long the receiver of a busy cell is watched.
const WATCHED: Duration = Duration::from_secs(10);

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
    let config = SenderConfig { drop_privileges: false, name: NAME.into(), ..SenderConfig::new(&cgroup) };
    let sender = server.within(|| Sender::open(&config).map_err(|error| error.to_string())).expect("a kernel that can");
    let upload = || Upload::start(&server, &terminal, "10.138.1.2:0", NAME);

    let plain = measure(&sender, rounds, &upload());
    print("bpf.pbe.plain_ns_per_ack", &plain[0]);
    let folder = tempfile::tempdir().expect("a directory");
    let bench = FeedbackBench::start(&terminal, &cgroup, folder.path(), ALONE);
    let told = upload();
    told.until("it is told", |info| {
        info.pacing_rate.is_some_and(|rate| rate > Rate::from_mbit(900) && rate < Rate::from_mbit(1200))
    });
    let costs = measure(&sender, rounds, &told);
    print("bpf.pbe.told_ns_per_ack", &costs[0]);
    print("bpf.pbe.option_ns_per_call", &costs[1]);
    drop(told);
    bench.end();

    let bench = FeedbackBench::start(&terminal, &cgroup, folder.path(), BUSY);
    let told = upload();
    told.no_faster_than(SHARE);
    std::thread::sleep(if rounds == ROUNDS { WATCHED } else { ROUND });
    drop(told);
    println!("pbe.receiver_of_4_carriers_100_users_ms_per_s {:.1} ms", bench.end());
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

/// Carriers, each with so many terminals, of which so many are given equal parts of a subframe, in turn.
#[derive(Clone, Copy)]
struct Cell {
    carriers: usize,
    prb: u64,
    users: u64,
    assigned: u64,
}

impl Cell {
    /// The rows of a subframe.
    fn rows(self, number: u64) -> String {
        let (tti, at) = (number % 10_240, 1_700_000_000_000_000 + number * 1000);
        let prb = self.prb / self.assigned;
        let row = |place| {
            let rnti = u64::from(OWN.0) + (number * self.assigned + place) % self.users;
            format!("{tti}\t{rnti}\t{prb}\t{prb}\t20\t0\t{}\t0\t0\t0\t0\t{at}\t1\t0\t\n", prb * RATE)
        };
        (0..self.assigned).map(row).collect()
    }
}

/// A terminal that tells, and the logs that it reads.
struct FeedbackBench {
    stop: &'static Stop,
    agent: JoinHandle<f64>,
    decoder: JoinHandle<()>,
}

impl FeedbackBench {
    fn start(terminal: &Netns, cgroup: &Path, folder: &Path, cell: Cell) -> FeedbackBench {
        let logs: Vec<PathBuf> =
            (0..cell.carriers).map(|carrier| folder.join(format!("{}-{carrier}", cell.users))).collect();
        logs.iter().for_each(|log| nix::unistd::mkfifo(log, nix::sys::stat::Mode::S_IRWXU).expect("a pipe"));
        let stop: &'static Stop = Box::leak(Box::default());
        let config = ReceiverConfig {
            cgroup: cgroup.to_owned(),
            logs: Logs {
                files: logs.clone(),
                prb: vec![cell.prb as u16],
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
            let (began, busy) = (Instant::now(), thread_time());
            let did = receiver.run(stop).expect("the kernel takes nothing away");
            eprintln!("pbe.receiver: {} packets and {} subframes in {:?}", did.arrived, did.subframes, began.elapsed());
            (thread_time() - busy).as_secs_f64() * 1e3 / began.elapsed().as_secs_f64()
        });
        is_ready.recv().expect("it is ready");
        let decoder = std::thread::spawn(move || {
            let open = |log| OpenOptions::new().read(true).write(true).open(log).expect("a pipe");
            let mut pipes: Vec<File> = logs.iter().map(open).collect();
            let (began, mut written) = (Instant::now(), 0);
            while !stop.is_asked() {
                let passed = began.elapsed().as_millis() as u64;
                let rows: String = (written..passed).map(|number| cell.rows(number)).collect();
                written = passed.max(written);
                if pipes.iter_mut().any(|pipe| pipe.write_all(rows.as_bytes()).is_err()) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        FeedbackBench { stop, agent, decoder }
    }

    /// Milliseconds of processor time that the agent had a second.
    fn end(self) -> f64 {
        self.stop.ask();
        self.decoder.join().expect("no panic");
        self.agent.join().expect("no panic")
    }
}

/// Processor time that the calling thread has had.
fn thread_time() -> Duration {
    Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("it is always there"))
}

fn print(name: &str, samples: &Samples) {
    match samples.clone().quantile(0.5) {
        Some(median) => println!("{name} {median:.1} ns"),
        None => eprintln!("{name}: no ACKs"),
    }
}
