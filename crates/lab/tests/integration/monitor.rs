//! What a station's monitor interface shows is what the emulated radio says that the station heard.
//!
//! Needs root: skips loudly without.

// Waiting for a run that another thread makes is done by the wall clock.
#![allow(clippy::disallowed_methods)]

use crate::machine;
use lasthop_agents::monitor::{Heard, MonitorError, MonitorReader};
use lasthop_lab::address::{Family, mac};
use lasthop_lab::monitor::Shown;
use lasthop_lab::topology::{LAST, MONITOR};
use lasthop_lab::{Doubt, Outcome, Spec, Stop, StreamLog, run};
use lasthop_laws::aggregation::meter::{Frame, Grouping, Meter, Tally};
use lasthop_radio::LastHop;
use lasthop_radio::wifi::{GuardInterval, Mcs, NodeParams, Params, Role, Standard, Width};
use lasthop_radio::{AccessClass, wired};
use lasthop_scenario::graph::{Cable, Graph};
use lasthop_scenario::{Program, Scenario, Stream, StreamKind};
use lasthop_signals::phy::Format;
use lasthop_signals::{MacAddress, Node, ReceivedMpdu};
use lasthop_units::{Rate, Seed, Span, Time};
use nix::sched::{CloneFlags, setns};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
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
    let kind = StreamKind::Bulk { size: None, program: Program::Own, send_buffer: None };
    let class = AccessClass::BestEffort;
    let (from, to) = (Scenario::SERVER, Scenario::station_host);
    let stream = |station| Stream {
        number: 0,
        from,
        to: to(station),
        start: Time::ZERO,
        stop: Time::ZERO + duration,
        kind,
        class,
    };
    Spec {
        graph: Graph::street(
            &Cable::plain(wired::Params {
                rate: Rate::from_mbit(1_000),
                delay: Span::from_millis(2),
                queue_packets: 1_000,
            }),
            &["near".into(), "far".into()],
        ),
        hop: LastHop::Wifi(Box::new(plan)),
        family: Family::V4,
        streams: vec![stream(0), stream(1)],
        infos: Vec::new(),
        congestion: vec!["cubic".into(); 4],
        duration,
        warm_up: Span::from_millis(100),
        seed: Seed(1),
        programs: Vec::new(),
        carriers: Vec::new(),
        beyond: None,
        monitors: vec![0],
    }
}

/// The namespace of station `number` in this process's run, once it is there.
fn station_namespace(number: u16) -> Option<PathBuf> {
    let end = format!("-sta{number}");
    let begin = format!("{}{}-", lasthop_lab::PREFIX, std::process::id());
    let entries = std::fs::read_dir("/run/netns").ok()?.flatten();
    let ours = |name: &str| name.starts_with(&begin) && name.ends_with(&end);
    entries.map(|entry| entry.path()).find(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(ours))
}

/// Opens the monitor as soon as the run has made it.
fn open(station: u16) -> (PathBuf, MonitorReader) {
    let give_up = Instant::now() + Duration::from_secs(60);
    loop {
        assert!(Instant::now() < give_up, "no monitor interface came up");
        std::thread::sleep(Duration::from_millis(2));
        let Some(path) = station_namespace(station) else { continue };
        let entered = File::open(&path).is_ok_and(|file| setns(file, CloneFlags::CLONE_NEWNET).is_ok());
        if entered && let Ok(reader) = MonitorReader::open(MONITOR) {
            return (path, reader);
        }
    }
}

/// What was heard at a station.
struct Listened {
    heard: Vec<Heard>,
    /// What tcpdump printed of the first frames.
    said: Option<String>,
    /// Frames for which the reader's socket had no room left.
    dropped: u64,
}

/// What the reader hears until the interface is gone.
fn listen(station: u16, tcpdump: bool) -> Listened {
    let (path, mut reader) = open(station);
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
    assert_eq!(reader.unreadable(), 0);
    Listened { heard, said, dropped: reader.dropped().unwrap_or(0) }
}

/// Runs `spec` with a listener at `station` until every frame was read and the lab has no doubts about a run, three times at most. Frames can
/// be compared in a run that was no worse than late ([`is_late`]); `None`, said loudly, if there was none.
fn undisturbed(spec: &Spec, station: Node, tcpdump: bool) -> Option<(Outcome, Listened)> {
    let (mut late, mut reasons) = (None, Vec::new());
    for _ in 0..3 {
        let (outcome, listened) = std::thread::scope(|scope| {
            let listener = scope.spawn(|| listen(station.0, tcpdump));
            let outcome = run(spec, |_| {}, &Stop::default());
            (outcome.expect("root may run the lab"), listener.join().expect("no panic"))
        });
        let whole = listened.dropped == 0;
        if whole && outcome.doubts.is_empty() {
            return Some((outcome, listened));
        }
        reasons.push((listened.dropped, outcome.doubts.clone()));
        if whole && outcome.doubts.iter().all(|doubt| matches!(doubt, Doubt::Late(..))) {
            late = Some((outcome, listened));
        }
    }
    let skipped = if late.is_some() { "SKIPPED in part" } else { "SKIPPED" };
    // Past the capture of test output.
    let _ = writeln!(
        std::io::stderr(),
        "{skipped}: the machine was too busy for a run of the lab (frames not read, doubts): {reasons:?}"
    );
    late
}

/// True for a run of which delays say nothing.
fn is_late(outcome: &Outcome) -> bool {
    !outcome.doubts.is_empty()
}

/// The first frames as tcpdump prints them.
fn tcpdump_lines(namespace: &Path) -> String {
    let net = format!("--net={}", namespace.display());
    let arguments = [net.as_str(), "timeout", "5", "tcpdump", "-i", MONITOR, "-c", "60", "-n", "-e"];
    let done = Command::new("nsenter").args(arguments).stdin(Stdio::null()).output().expect("nsenter runs");
    String::from_utf8_lossy(&done.stdout).into_owned()
}

fn is_root() -> bool {
    let root = nix::unistd::Uid::effective().is_root();
    if !root {
        // Past the capture of test output.
        let _ = writeln!(std::io::stderr(), "SKIPPED: the lab needs root to make namespaces and interfaces");
    }
    root
}

#[test]
fn a_monitor_shows_what_the_radio_received() {
    if !is_root() {
        return;
    }
    let _alone = machine::alone();
    let tcpdump = Command::new("tcpdump").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !tcpdump {
        let _ = writeln!(std::io::stderr(), "SKIPPED in part: tcpdump is not installed");
    }
    let Some((outcome, Listened { heard, said, .. })) = undisturbed(&spec(), Node(1), tcpdump) else { return };
    let shown: Vec<&Shown> = outcome.hop.shown.iter().collect();
    assert!(shown.len() > 1_000 && heard.len() > 1_000, "{} shown, {} heard", shown.len(), heard.len());
    same_frames(&shown, &heard);
    // The other station's frames are heard as well.
    same_aggregation(&outcome, &heard, Node(1));
    same_aggregation(&outcome, &heard, Node(2));
    let damaged = shown.iter().filter(|shown| !shown.whole).count() as f64;
    let from_ap = shown.iter().filter(|shown| shown.from == Node(0)).count() as f64;
    assert!((damaged / from_ap - 0.05).abs() < 0.01, "{damaged} damaged of {from_ap}");
    if let Some(said) = said {
        for part in ["tsft", "5180 MHz", "MCS 4", "80 MHz", "+QoS", "ethertype IPv4", "10.76.1.2"] {
            assert!(said.contains(part), "tcpdump does not say {part:?}: {said}");
        }
    }
}

/// The listener may have come late, and left early: between that, frame by frame, nothing is missing or different.
fn same_frames(shown: &[&Shown], heard: &[Heard]) {
    let mpdus: Vec<_> = heard.iter().map(|heard| heard.mpdu.expect("nothing but data is shown")).collect();
    // A damaged frame tells nothing that it could be found by.
    let ahead = mpdus.iter().position(|mpdu| mpdu.fcs_good).expect("some are whole");
    let first = &mpdus[ahead];
    let is_first = |shown: &&Shown| {
        (mac(LAST, shown.from), shown.sequence, shown.ampdu)
            == (first.transmitter.0, first.sequence, first.ampdu.map(|ampdu| ampdu.reference))
    };
    let begin = shown.iter().position(is_first).expect("what was heard was shown") - ahead;
    assert!(shown.len() - begin >= mpdus.len(), "more heard than shown");
    for (shown, mpdu) in shown[begin..].iter().zip(&mpdus) {
        if shown.whole {
            assert_eq!(mpdu.transmitter.0, mac(LAST, shown.from));
            assert_eq!(mpdu.receiver.0, mac(LAST, shown.to));
            assert_eq!((mpdu.sequence, mpdu.retry), (shown.sequence, shown.retry));
        }
        assert_eq!((mpdu.fcs_good, mpdu.len), (shown.whole, shown.len));
        let ampdu = mpdu.ampdu.map(|ampdu| (ampdu.reference, ampdu.last));
        assert_eq!(ampdu, shown.ampdu.map(|reference| (reference, Some(shown.last))));
        assert_eq!(mpdu.tx, Some(shown.tx));
    }
}

/// The meter's frames to a station are the radio's: as many of those of which something came through, of the same size in
/// the mean, though what was lost on the way tells no addresses.
fn same_aggregation(outcome: &Outcome, heard: &[Heard], station: Node) {
    let (mut meter, mut tally) = (Meter::new(Grouping::Air), Tally::default());
    let mut add = |frame: &Frame| {
        if frame.receiver.0 == mac(LAST, station) {
            tally.add(frame);
        }
    };
    for heard in heard {
        meter.receive(heard.at, &heard.mpdu.expect("data"), &mut add);
    }
    meter.finish(&mut add);
    let sent: Vec<u64> =
        outcome.hop.frames.iter().filter(|frame| frame.to == station).map(|frame| frame.packets.into()).collect();
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

/// A radio with everything in it, three seconds of it, and `iperf3` for one of the downloads if it is installed.
fn everything() -> Spec {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/scenarios/radio.toml");
    let scenario = Scenario::load(&path).unwrap_or_else(|error| panic!("{}", error.plain()));
    let mut spec = Spec::of(&scenario, &scenario.laws()[0], 1);
    let iperf3 = Command::new("iperf3").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !iperf3 {
        let _ = writeln!(std::io::stderr(), "SKIPPED in part: iperf3 is not installed");
    }
    let marked = spec.streams.iter_mut().filter(|stream| stream.class == AccessClass::Video);
    for stream in marked.filter(|_| iperf3) {
        stream.kind = StreamKind::Bulk { size: None, program: Program::Iperf3, send_buffer: None };
    }
    spec
}

const AP: Node = Node(0);
const DESK: Node = Node(1);
const WALKER: Node = Node(2);
const CELLAR: Node = Node(3);

/// Frames that were heard whole on the way from one node to another.
fn between(heard: &[Heard], from: Node, to: Node) -> Vec<ReceivedMpdu> {
    let [from, to] = [from, to].map(|node| MacAddress(mac(LAST, node)));
    let whole = heard.iter().filter_map(|heard| heard.mpdu).filter(|mpdu| mpdu.fcs_good);
    whole.filter(|mpdu| (mpdu.transmitter, mpdu.receiver) == (from, to)).collect()
}

fn identifiers(mpdus: &[ReceivedMpdu]) -> BTreeSet<u8> {
    mpdus.iter().map(|mpdu| mpdu.tid).collect()
}

#[test]
fn marks_reach_the_air_and_a_monitor_hears_the_whole_channel() {
    if !is_root() {
        return;
    }
    let _alone = machine::alone();
    let spec = everything();
    let Some((outcome, Listened { heard, .. })) = undisturbed(&spec, WALKER, false) else { return };
    same_frames(&outcome.hop.shown.iter().collect::<Vec<_>>(), &heard);
    if !is_late(&outcome) {
        delays_follow_the_classes(&outcome, &spec);
    }

    // A socket's mark is the frame's traffic identifier.
    let (own, desk) = (between(&heard, AP, WALKER), between(&heard, AP, DESK));
    assert_eq!(identifiers(&own), BTreeSet::from([0, 1, 5, 6]), "bulk, background, video and voice");
    for others in [desk.as_slice(), &between(&heard, DESK, AP), &between(&heard, CELLAR, AP)] {
        assert_eq!(identifiers(others), BTreeSet::from([0]), "nothing there is marked");
    }
    let voice = own.iter().filter(|mpdu| mpdu.tid == 6);
    assert!(voice.clone().count() >= 120, "{} of 150 voice frames", voice.count());
    let video = own.iter().filter(|mpdu| mpdu.tid == 5).map(|mpdu| mpdu.len.get()).sum::<u64>();
    assert!(video > 500_000, "{video} octets of video");

    let format = |mpdus: &[ReceivedMpdu], of| mpdus.iter().all(|mpdu| mpdu.tx.is_some_and(|tx| tx.format == of));
    assert!(format(&own, Format::He) && format(&desk, Format::He));
    assert!(own.iter().any(|mpdu| mpdu.msdus > 1), "no A-MSDU among {}", own.len());
    let legacy = between(&heard, Node(4), Node(5));
    assert!(legacy.len() > 100 && format(&legacy, Format::NonHt), "{} frames of the neighbour", legacy.len());

    // From 2 m to 12 m: 20 dBm - 46.85 dB - 35 lg d is -37.4 and -64.6 dBm, give or take what fading does.
    let signals: Vec<f64> = heard.iter().filter_map(|heard| heard.signal).map(f64::from).collect();
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let tenth = signals.len() / 10;
    let (begin, end) = (mean(&signals[..tenth]), mean(&signals[signals.len() - tenth..]));
    assert!((begin + 40.0).abs() < 6.0 && (end + 64.6).abs() < 6.0, "{begin} dBm, then {end} dBm");
    let damaged = heard.iter().filter_map(|heard| heard.mpdu).filter(|mpdu| !mpdu.fcs_good).count();
    assert!(damaged > 20, "{damaged} damaged MPDUs of {}", heard.len());
}

/// On a hop that downloads keep busy, voice waits less than background, and every download gets something.
///
/// Background may get next to nothing for seconds, as the standard has it: it counts down only in what is left of
/// the others' backoffs after AIFSN 7, a few slots between two frame exchanges of some ms, and internal collisions
/// bring its window to 1023 slots. In one of 40 runs half of its probes had not arrived when the 3 s were over. That its
/// frames do go on the air is asserted by their traffic identifier.
fn delays_follow_the_classes(outcome: &Outcome, spec: &Spec) {
    let from = Time::ZERO + spec.warm_up;
    let quantiles = |class: AccessClass| {
        let of_class = spec.streams.iter().zip(&outcome.streams).filter(|(stream, _)| stream.class == class);
        let probes = of_class.filter_map(|(_, log)| match log {
            StreamLog::Probe(probes) => Some(probes.iter().filter(|probe| probe.sent > from)),
            _ => None,
        });
        // One that never arrived waited longer than any that did.
        let mut delays: Vec<f64> =
            probes.flatten().map(|probe| probe.delay.map_or(f64::INFINITY, |delay| delay.as_millis_f64())).collect();
        delays.sort_by(f64::total_cmp);
        [50, 95].map(|part| delays[delays.len() * part / 100])
    };
    let (voice, background) = (quantiles(AccessClass::Voice), quantiles(AccessClass::Background));
    println!("one-way delay, median and p95: voice {voice:.1?} ms, background {background:.1?} ms");
    assert!(voice[0] * 2.0 < background[0] && voice[1] * 2.0 < background[1], "{voice:?} ms, {background:?} ms");
    let end = Time::ZERO + spec.duration;
    for (number, stream) in spec.streams.iter().enumerate() {
        if let StreamKind::Bulk { .. } = stream.kind {
            let goodput = outcome.goodput(number, from.max(stream.start), end.min(stream.stop)).expect("a flow");
            println!("bulk {number} to {:?}: {goodput}", stream.to);
            assert!(goodput > Rate::from_mbit(1), "stream {number}: {goodput}");
        }
    }
}
