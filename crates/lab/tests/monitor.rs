//! What a station's monitor interface shows is what the emulated radio says that the station received.
//!
//! Needs root: skips loudly without.

// Waiting for a run that another thread makes is done by the wall clock.
#![allow(clippy::disallowed_methods)]

use lasthop_agents::monitor::{Heard, MonitorError, MonitorReader};
use lasthop_lab::address::{Family, mac};
use lasthop_lab::monitor::Shown;
use lasthop_lab::topology::{LAST, MONITOR};
use lasthop_lab::{Outcome, Spec, Stop, run};
use lasthop_laws::aggregation::meter::{Grouping, Meter, Tally};
use lasthop_radio::wifi::{GuardInterval, Mcs, NodeParams, Params, Role, Standard, Width};
use lasthop_radio::{AccessClass, wired};
use lasthop_scenario::{Hop, Program, Stream, StreamKind};
use lasthop_signals::Node;
use lasthop_units::{Rate, Seed, Span, Time};
use nix::sched::{CloneFlags, setns};
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Two stations at 175.5 Mbit/s that lose a twentieth of their MPDUs; the first has a monitor.
fn spec() -> Spec {
    let mcs = Mcs::new(4, 1);
    let mut nodes = vec![NodeParams::new(Role::Ap, mcs)];
    nodes.extend((0..2).map(|_| NodeParams::new(Role::Station { ap: Node(0) }, mcs)));
    nodes[1].mpdu_error = 0.05;
    let plan = Params::new(Standard::Dot11ac, Width::Mhz80, GuardInterval::Ns800, nodes).validate().expect("legal");
    let duration = Span::from_millis(1_500);
    let kind = StreamKind::Bulk { size: None, program: Program::Own };
    let class = AccessClass::BestEffort;
    let stream = |station| Stream { station, start: Time::ZERO, stop: Time::ZERO + duration, kind, class };
    Spec {
        wire: wired::Params { rate: Rate::from_mbit(1_000), delay: Span::from_millis(2), queue_packets: 1_000 },
        hop: Hop::Wifi(Box::new(plan)),
        stations: vec!["near".into(), "far".into()],
        family: Family::V4,
        streams: vec![stream(0), stream(1)],
        congestion: "cubic".into(),
        duration,
        warm_up: Span::from_millis(100),
        seed: Seed(1),
        agent: None,
        tunnel: None,
        monitors: vec![0],
    }
}

/// The namespace of this process's only run, once it is there.
fn station_namespace() -> Option<PathBuf> {
    let begin = format!("{}{}-", lasthop_lab::PREFIX, std::process::id());
    let entries = std::fs::read_dir("/run/netns").ok()?.flatten();
    let ours = |name: &str| name.starts_with(&begin) && name.ends_with("-sta1");
    entries.map(|entry| entry.path()).find(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(ours))
}

/// Opens the monitor as soon as the run has made it.
fn open() -> (PathBuf, MonitorReader) {
    let give_up = Instant::now() + Duration::from_secs(20);
    loop {
        assert!(Instant::now() < give_up, "no monitor interface came up");
        std::thread::sleep(Duration::from_millis(2));
        let Some(path) = station_namespace() else { continue };
        let entered = File::open(&path).is_ok_and(|file| setns(file, CloneFlags::CLONE_NEWNET).is_ok());
        if entered && let Ok(reader) = MonitorReader::open(MONITOR) {
            return (path, reader);
        }
    }
}

/// What the reader hears until the interface is gone.
fn listen(tcpdump: bool) -> (Vec<Heard>, Option<String>) {
    let (path, mut reader) = open();
    let said = tcpdump.then(|| tcpdump_lines(&path));
    let mut heard = Vec::new();
    let give_up = Instant::now() + Duration::from_secs(30);
    while Instant::now() < give_up {
        match reader.hear(Duration::from_millis(100)) {
            Ok(Some(found)) => heard.push(found),
            Ok(None) => (),
            Err(MonitorError::Gone { .. } | MonitorError::Down { .. }) => break,
            Err(error) => panic!("{error}"),
        }
        if !path.exists() {
            break;
        }
    }
    assert_eq!((reader.dropped().unwrap_or(0), reader.unreadable()), (0, 0));
    (heard, said)
}

/// The first frames as tcpdump prints them.
fn tcpdump_lines(namespace: &std::path::Path) -> String {
    let net = format!("--net={}", namespace.display());
    let arguments = [net.as_str(), "timeout", "5", "tcpdump", "-i", MONITOR, "-c", "5", "-n", "-e"];
    let done = Command::new("nsenter").args(arguments).stdin(Stdio::null()).output().expect("nsenter runs");
    String::from_utf8_lossy(&done.stdout).into_owned()
}

#[test]
fn a_monitor_shows_what_the_radio_received() {
    if !nix::unistd::Uid::effective().is_root() {
        eprintln!("SKIPPED: the lab needs root to make namespaces and interfaces");
        return;
    }
    let tcpdump = Command::new("tcpdump").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !tcpdump {
        eprintln!("SKIPPED in part: tcpdump is not installed");
    }
    let (outcome, (heard, said)) = std::thread::scope(|scope| {
        let listener = scope.spawn(move || listen(tcpdump));
        let outcome = run(&spec(), |_| {}, &Stop::default());
        (outcome.expect("root may run the lab"), listener.join().expect("no panic"))
    });
    let shown: Vec<&Shown> = outcome.hop.shown.iter().collect();
    assert!(shown.len() > 1_000 && heard.len() > 1_000, "{} shown, {} heard", shown.len(), heard.len());
    same_frames(&shown, &heard);
    same_aggregation(&outcome, &heard);
    if let Some(said) = said {
        for part in ["tsft", "5180 MHz", "MCS 4", "80 MHz", "+QoS", "ethertype IPv4", "10.76.1.2"] {
            assert!(said.contains(part), "tcpdump does not say {part:?}: {said}");
        }
    }
}

/// The listener may have come late, and left early: between that, frame by frame, nothing is missing or different.
fn same_frames(shown: &[&Shown], heard: &[Heard]) {
    let mpdus: Vec<_> = heard.iter().map(|heard| heard.mpdu.expect("nothing but data is shown")).collect();
    let first = &mpdus[0];
    let is_first =
        |shown: &&Shown| (shown.sequence, shown.ampdu) == (first.sequence, first.ampdu.map(|ampdu| ampdu.reference));
    let begin = shown.iter().position(is_first).expect("what was heard was shown");
    assert!(shown.len() - begin >= mpdus.len(), "more heard than shown");
    for (shown, mpdu) in shown[begin..].iter().zip(&mpdus) {
        assert_eq!(mpdu.transmitter.0, mac(LAST, shown.from));
        assert_eq!(mpdu.receiver.0, mac(LAST, shown.station));
        assert_eq!((mpdu.sequence, mpdu.retry, mpdu.len), (shown.sequence, shown.retry, shown.len));
        let ampdu = mpdu.ampdu.map(|ampdu| (ampdu.reference, ampdu.last));
        assert_eq!(ampdu, shown.ampdu.map(|reference| (reference, Some(shown.last))));
        assert_eq!(mpdu.tx, Some(shown.tx));
    }
}

/// The meter's frames are the radio's: as many of those of which something came through, of the same size in the mean,
/// though only what was received is shown.
fn same_aggregation(outcome: &Outcome, heard: &[Heard]) {
    let (mut meter, mut tally) = (Meter::new(Grouping::Air), Tally::default());
    for heard in heard {
        meter.receive(heard.at, &heard.mpdu.expect("data"), &mut |frame| tally.add(frame));
    }
    meter.finish(&mut |frame| tally.add(frame));
    let sent: Vec<u64> =
        outcome.hop.frames.iter().filter(|frame| frame.to == Node(1)).map(|frame| frame.packets.into()).collect();
    let (found, raw) = (&tally.packets, &tally.received);
    println!(
        "{} frames of {} MPDUs sent; heard {} of {}, with losses inferred {}",
        sent.len(),
        sent.iter().sum::<u64>(),
        raw.frames(),
        raw.sum(),
        found.sum()
    );
    // The listener may have missed the first frames, of handshakes, and the last.
    let missed = (sent.len() as u64).checked_sub(found.frames()).expect("no frame that was not sent");
    assert!(missed <= 12, "{missed} frames missed");
    let mean = sent.iter().sum::<u64>() as f64 / sent.len() as f64;
    let measured = found.mean().expect("frames");
    // Those that were missed have at most 64 MPDUs each, and move the mean by no more than this.
    let slack = 0.01 + missed as f64 * 64.0 / mean / sent.len() as f64;
    assert!((measured / mean - 1.0).abs() < slack, "{measured} by the meter, {mean} sent, slack {slack}");
}
