//! Writes a report of made-up runs into a directory, to look at while working on the page:
//! `cargo run -p lasthop-report --example gallery -- out/gallery`
//!
//! Three stations share a queue with a drain rate that changes; four imaginary laws keep different amounts in it.
//! Nothing here models a real protocol.

use lasthop_report::{
    Gauge, Lateness, Recorder, Report, Run, RunInfo, RunStatus, Segments, SeriesKind, Summary, Window, World,
};
use lasthop_signals::{FlowId, Node};
use lasthop_units::{Bytes, Rate, Span, Time};
use std::collections::VecDeque;
use std::path::Path;

const STATIONS: [&str; 3] = ["laptop", "tv", "phone (moving)"];
const END: Time = Time::from_nanos(10_000_000_000);
const MTU: Bytes = Bytes::new(1500);

/// A law, by name: how many packets it likes to keep in the queue, and the queue's limit.
const LAWS: [(&str, f64, usize); 4] =
    [("cubic", 950.0, 1000), ("bbr", 260.0, 1000), ("cubic over FQ-CoDel", 60.0, 8192), ("cubic+ap", 35.0, 1000)];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: gallery DIRECTORY")?;
    let runs: Vec<Run> = LAWS
        .iter()
        .flat_map(|(law, target, limit)| (1..=5).map(move |seed| imagine(law, *target, *limit, seed)))
        .collect();
    let laws = LAWS.map(|(law, ..)| law.to_string());
    let summary = Summary::of(World::Lab, "gallery", &laws, &runs);
    let late = Lateness { events: 1_000_000, p50_us: 18.0, p99_us: 210.0, max_us: 2_400.0 };
    let status = |run: &Run| RunStatus {
        law: run.law.clone(),
        seed: run.seed,
        duration_s: 10.4,
        lateness: [("delivery".to_owned(), late)].into(),
        regulated: Vec::new(),
        doubts: if run.seed == 4 && run.law == "bbr" { vec!["an imaginary doubt".into()] } else { Vec::new() },
        ..RunStatus::default()
    };
    let info = RunInfo {
        lasthop: env!("CARGO_PKG_VERSION").into(),
        scenario: "gallery".into(),
        clock: "none: these runs are made up".into(),
        runs: runs.iter().map(status).collect(),
        ..RunInfo::default()
    };
    let report = Report {
        title: "Gallery: made-up runs",
        description: "Not a measurement: numbers invented to see how a report looks.",
        summary: &summary,
        expected: &lasthop_report::Key::usual(),
        runs: &runs,
        info: &info,
    };
    for path in report.write(Path::new(&folder))? {
        println!("{}", path.display());
    }
    println!("{}", summary.text_table(&lasthop_report::Key::usual(), 160));
    Ok(())
}

/// What a hop that drains a shared queue under a drifting rate might have shown.
fn imagine(law: &str, target: f64, limit: usize, seed: u64) -> Run {
    let mut random = Noise(seed);
    let window = Window { warm_up: Time::from_nanos(2_000_000_000), end: END };
    let mut r = Recorder::new(window, STATIONS.iter().enumerate().map(|(i, s)| (Node(i as u16 + 1), s.to_string())));
    r.keep_packets();
    (0..3).for_each(|i| r.bulk_flow(Time::ZERO, FlowId(i), Node(i as u16 + 1), &format!("download {}", i + 1)));
    let mut queue: VecDeque<(Time, usize)> = VecDeque::new();
    let (mut sent, mut lost) = ([0u64; 3], [0u64; 3]);
    let mut credit = 0.0;
    for ms in 0..END.as_nanos() / 1_000_000 {
        let now = Time::from_nanos(ms * 1_000_000);
        let s = ms as f64 / 1e3;
        // A neighbour that comes and goes, a station that moves.
        let neighbour = if (3.0..5.0).contains(&s) || (7.0..8.2).contains(&s) { 0.45 } else { 1.0 };
        let mbit = 240.0 * neighbour * (0.85 + 0.15 * (s * 1.3).sin()) * (0.7 + 0.6 * random.share());
        // Sawtooth around the target, so that something happens.
        let phase = (s * 0.7 + seed as f64 * 0.37).fract();
        let wanted = target * (0.7 + 0.35 * phase) * if s < 0.6 { s / 0.6 } else { 1.0 };
        while (queue.len() as f64) < wanted {
            let to = (random.share() * 3.0) as usize;
            sent[to] += 1;
            if queue.len() >= limit || random.share() < 0.0008 * target / 100.0 {
                lost[to] += 1;
                break;
            }
            queue.push_back((now, to));
        }
        credit += Rate::from_bps((mbit * 1e6) as u64).bytes_in(Span::from_millis(1)).get() as f64;
        while credit >= 1500.0 {
            let Some((since, to)) = queue.pop_front() else { break };
            credit -= 1500.0;
            let node = Node(to as u16 + 1);
            let at = now + Span::from_secs_f64(0.0004 + 0.0014 * random.share());
            r.hop_delivery(at, since, node, MTU);
            r.goodput(at, FlowId(to as u32), node, Bytes::new(1448));
        }
        credit = credit.min(30_000.0);
        let wait = Span::from_secs_f64(queue.len() as f64 * 12_000.0 / (mbit * 1e6));
        let oal = law.ends_with("ap");
        for i in 0..3u16 {
            let (node, flow) = (Node(i + 1), FlowId(i.into()));
            if ms % 4 == 0 {
                r.sample(
                    now,
                    Gauge::Station(SeriesKind::Backlog, node),
                    queue.iter().filter(|(_, to)| *to == usize::from(i)).count() as f64,
                );
                let advertised = if oal { 60_000.0 + 200.0 * mbit } else { 3_145_728.0 };
                r.sample(now, Gauge::Flow(SeriesKind::Window, flow), advertised);
                r.sample(now, Gauge::Flow(SeriesKind::Cwnd, flow), (wanted * 0.33 + 200.0) * 1448.0);
                r.sample(
                    now,
                    Gauge::Station(SeriesKind::PhyRate, node),
                    [866.7, 650.0, 390.0 * neighbour][usize::from(i)],
                );
            }
            if ms % 20 == 0 {
                let received = now + Span::from_millis(10) + wait + Span::from_secs_f64(0.002 * random.share());
                if random.share() < if law == "cubic" { 0.06 } else { 0.004 } {
                    r.probe_lost(now, node);
                } else {
                    r.probe(now, received, node);
                }
            }
            if ms % 1000 == 100 * u64::from(i) {
                let took = Span::from_millis(70) + wait * 3;
                if now + took < END { r.fetch(now, now + took, node) } else { r.fetch_unfinished(now, node) }
            }
            if ms == 2000 || ms == 9999 {
                let i = usize::from(i);
                r.segments(now, flow, Segments { sent: sent[i], retransmitted: lost[i], ..Segments::default() });
            }
        }
        r.sample(now, Gauge::Hop(SeriesKind::Capacity), mbit);
        r.sample(now, Gauge::Hop(SeriesKind::ChannelBusy), 1.0 - neighbour * 0.1);
    }
    Run { law: law.to_string(), seed, record: r.finish() }
}

/// Numbers that look random (SplitMix64), to spare the crate a dependency.
struct Noise(u64);

impl Noise {
    /// The next one, from 0 up to but not including 1.
    fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}
