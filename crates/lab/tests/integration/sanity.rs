//! Kernel TCP over a wired hop behaves as theory says.
//!
//! Needs root, and measures by the wall clock: skips loudly without the one, or if the machine was too busy for the other.

use crate::machine;
use lasthop_lab::address::Family;
use lasthop_lab::{LatenessKind, Outcome, Spec, Stop, StreamLog, run};
use lasthop_radio::AccessClass;
use lasthop_radio::wired::{Impairments, Params};
use lasthop_radio::{LastHop, cables};
use lasthop_report::Key;
use lasthop_scenario::graph::{Cable, Graph};
use lasthop_scenario::{Program, Scenario, Stream, StreamKind};
use lasthop_signals::Node;
use lasthop_units::stats::Samples;
use lasthop_units::{Bytes, Rate, Seed, Span, Time};
use std::io::Write as _;

fn is_root() -> bool {
    let root = nix::unistd::Uid::effective().is_root();
    if !root {
        // Past the capture of test output.
        let _ = writeln!(std::io::stderr(), "SKIPPED: the lab needs root to make namespaces and interfaces");
    }
    root
}

/// 50 Mbit/s, 20 ms of round-trip time, a FIFO of 1000 packets.
fn spec(congestion: &str, duration: Span) -> Spec {
    let down = Params { rate: Rate::from_mbit(50), delay: Span::ZERO, queue_packets: 1000 };
    Spec {
        graph: street(&["sta1"]),
        hop: LastHop::from(cables::Plan {
            down,
            up: Params { rate: Rate::from_mbit(1000), ..down },
            impairments: Impairments::default(),
        }),
        family: Family::V4,
        streams: vec![stream(0, duration, StreamKind::Bulk { size: None, program: Program::Own, send_buffer: None })],
        infos: Vec::new(),
        congestion: vec![congestion.into(); 3],
        duration,
        warm_up: Span::from_secs(1),
        seed: Seed(1),
        programs: Vec::new(),
        carriers: Vec::new(),
        beyond: None,
        monitors: Vec::new(),
    }
}

/// These stations behind 1 Gbit/s and 10 ms.
fn street(stations: &[&str]) -> Graph {
    let wire = Params { rate: Rate::from_mbit(1000), delay: Span::from_millis(10), queue_packets: 10_000 };
    Graph::street(&Cable::plain(wire), &stations.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
}

fn stream(station: usize, duration: Span, kind: StreamKind) -> Stream {
    let (from, to) = (Scenario::SERVER, Scenario::station_host(station));
    Stream { number: 0, from, to, start: Time::ZERO, stop: Time::ZERO + duration, class: AccessClass::BestEffort, kind }
}

/// Payload share of the link: 1448 bytes of every 1500 (IPv4 and TCP headers with timestamps).
const PAYLOAD_MBIT: f64 = 50.0 * 1448.0 / 1500.0;

struct Figures {
    goodput_mbit: f64,
    queue_mean_ms: f64,
    queue_max_ms: f64,
    retransmitted: u32,
}

/// Runs `spec` until the lab itself has no doubts about a run; `None`, said loudly, if the machine was too busy for that three times.
fn undisturbed(spec: &Spec) -> Option<Outcome> {
    let _alone = machine::alone();
    let mut doubts = Vec::new();
    for _ in 0..3 {
        let outcome = run(spec, |_| {}, &Stop::default()).expect("root may run the lab");
        if outcome.doubts.is_empty() {
            return Some(outcome);
        }
        doubts.push(outcome.doubts);
    }
    // Past the capture of test output.
    let _ = writeln!(std::io::stderr(), "SKIPPED: the machine was too busy for a run of the lab: {doubts:?}");
    None
}

/// Runs `spec` and takes its figures from `settled` on; `None` if the machine was too busy.
fn measure(name: &str, spec: &Spec, settled: Span) -> Option<(Outcome, Figures)> {
    let outcome = undisturbed(spec)?;
    let (from, end) = (Time::ZERO + settled, Time::ZERO + spec.duration);
    let mut delays = Samples::default();
    outcome.hop_delays(Node(1), from, end).for_each(|(_, delay)| delays.add(delay.as_millis_f64()));
    let StreamLog::Bulk(log) = &outcome.streams[0] else { panic!("our own sender") };
    let figures = Figures {
        goodput_mbit: outcome.goodput(0, from, end).expect("a flow").as_mbit_f64(),
        queue_mean_ms: delays.mean().expect("packets crossed"),
        queue_max_ms: delays.quantile(1.0).expect("packets crossed"),
        retransmitted: log.last.total_retrans,
    };
    println!(
        "{name}: {:.2} Mbit/s, hop delay mean {:.1} ms max {:.1} ms, {} segments retransmitted of {:.0}, lateness {:?}, \
         FIFO {}, doubts {:?}",
        figures.goodput_mbit,
        figures.queue_mean_ms,
        figures.queue_max_ms,
        figures.retransmitted,
        log.last.bytes_sent.unwrap_or_default().get() as f64 / 1448.0,
        outcome.lateness,
        outcome.realtime,
        outcome.doubts,
    );
    Some((outcome, figures))
}

#[test]
fn cubic_fills_the_queue_and_the_link() {
    if !is_root() {
        return;
    }
    let measured = measure("cubic", &spec("cubic", Span::from_secs(10)), Span::from_secs(1));
    let Some((outcome, figures)) = measured else { return };
    // Every kind of event is watched: a full link delivers 40 000 packets here, of two models' events each.
    for (kind, least) in [(LatenessKind::Delivery, 40_000), (LatenessKind::ModelEvent, 40_000)] {
        let seen = outcome.lateness.iter().find(|(of, _)| *of == kind).map_or(0, |(_, summary)| summary.count);
        assert!(seen >= least, "{kind:?}: {seen}");
    }
    // Of the link itself, not only of the share that headers leave.
    assert!(figures.goodput_mbit >= 0.95 * 50.0, "{}", figures.goodput_mbit);
    assert!(figures.goodput_mbit <= 1.001 * PAYLOAD_MBIT, "faster than the link: {}", figures.goodput_mbit);
    // A thousand full packets and one in service take 240.2 ms; CUBIC reaches that and backs off to no less than 0.7.
    assert!(figures.queue_max_ms > 235.0 && figures.queue_max_ms < 242.0, "{}", figures.queue_max_ms);
    assert!(figures.queue_mean_ms > 100.0, "{}", figures.queue_mean_ms);
    assert!(figures.retransmitted > 0);
}

#[test]
fn bbr_keeps_the_queue_below_one_bdp_after_startup() {
    if !is_root() {
        return;
    }
    let measured = measure("bbr", &spec("bbr", Span::from_secs(10)), Span::from_secs(3));
    let Some((_, figures)) = measured else { return };
    // One BDP of queue delays by one RTT.
    assert!(figures.queue_mean_ms < 20.0, "{}", figures.queue_mean_ms);
    assert!(figures.goodput_mbit >= 0.95 * PAYLOAD_MBIT, "{}", figures.goodput_mbit);
}

#[test]
fn probes_fetches_and_ipv6_cross_two_hops_to_three_stations() {
    if !is_root() {
        return;
    }
    let duration = Span::from_secs(4);
    let kinds = [
        StreamKind::Bulk { size: None, program: Program::Own, send_buffer: None },
        StreamKind::Probe { size: Bytes::new(172), every: Span::from_millis(20) },
        StreamKind::Fetch { size: Bytes::new(100_000), every: Span::from_secs(1) },
    ];
    let streams = kinds.iter().flat_map(|kind| (0..3).map(|station| stream(station, duration, *kind))).collect();
    let mut spec = Spec { congestion: vec!["cubic".into(); 5], family: Family::V6, streams, ..spec("cubic", duration) };
    spec.graph = street(&["sta1", "sta2", "sta3"]);
    let spec = spec.with_named_streams();
    let Some((outcome, figures)) = measure("three stations, IPv6", &spec, Span::from_secs(1)) else { return };
    assert!(figures.goodput_mbit > 30.0, "{}", figures.goodput_mbit);

    let mut fetched = Vec::new();
    for log in &outcome.streams[3..] {
        match log {
            StreamLog::Probe(probes) => {
                let arrived: Vec<_> = probes.iter().filter_map(|probe| probe.delay).collect();
                assert!(probes.len() >= 195 && arrived.len() >= 150, "{} of {} probes", arrived.len(), probes.len());
                assert!(arrived.iter().all(|delay| *delay >= Span::from_millis(10)), "faster than the wire");
            }
            StreamLog::Fetch(fetches) => {
                assert_eq!(fetches.len(), 4);
                fetched.extend(fetches.iter().filter_map(|fetch| fetch.duration));
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(fetched.len() >= 8, "{fetched:?}");
    // Handshake and request take two round trips at least.
    assert!(fetched.iter().all(|duration| *duration >= Span::from_millis(40)), "{fetched:?}");
    assert!(outcome.hop.reports.len() > 900, "{} driver reports in four seconds", outcome.hop.reports.len());

    let record = outcome.record(&spec);
    let throughput = record.figure(Key::Throughput).value().expect("three downloads");
    assert!(throughput > 90.0 && throughput < 3.0 * PAYLOAD_MBIT, "{throughput}");
    for key in [Key::HopDelayP95, Key::ProbeDelayP95, Key::FetchP50, Key::Jitter, Key::RetransmissionRatio] {
        assert!(record.figure(key).value().is_some(), "{key:?}: {:?}", record.figure(key));
    }
}

#[test]
fn iperf3_measures_the_same_link() {
    if !is_root() {
        return;
    }
    if std::process::Command::new("iperf3").arg("--version").output().is_err() {
        // Past the capture of test output.
        let _ = writeln!(std::io::stderr(), "SKIPPED: iperf3 is not installed");
        return;
    }
    let mut spec = spec("cubic", Span::from_secs(4));
    spec.streams[0].kind = StreamKind::Bulk { size: None, program: Program::Iperf3, send_buffer: None };
    let Some(outcome) = undisturbed(&spec) else { return };
    let goodput = outcome.goodput(0, Time::ZERO, Time::ZERO + spec.duration).expect("a flow").as_mbit_f64();
    println!("iperf3: {goodput:.2} Mbit/s");
    assert!(goodput > 0.85 * PAYLOAD_MBIT && goodput <= 1.02 * PAYLOAD_MBIT, "{goodput}");
}

#[test]
fn a_run_leaves_nothing_behind_even_if_stopped() {
    if !is_root() {
        return;
    }
    let _alone = machine::alone();
    let stop = Stop::default();
    let asked = stop.clone();
    let ended = run(
        &spec("cubic", Span::from_secs(30)),
        |passed| {
            if passed > Span::from_millis(300) {
                asked.raise();
            }
        },
        &stop,
    );
    assert!(matches!(ended, Err(lasthop_lab::LabError::Stopped)), "{ended:?}");
    let ours = format!("{}{}-", lasthop_lab::PREFIX, std::process::id());
    let left: Vec<_> = std::fs::read_dir("/run/netns").into_iter().flatten().flatten().collect();
    let left: Vec<_> = left.iter().filter(|entry| entry.file_name().to_string_lossy().starts_with(&ours)).collect();
    assert!(left.is_empty(), "{left:?}");
}
