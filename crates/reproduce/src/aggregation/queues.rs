//! Against what a modern access point does by itself: CUBIC and the regulator, each over an old FIFO and over the queue of Linux.

use super::mean;
use super::unlike::{fine, logs, trace};
use crate::study::{Edit, Results, Runner, Shipped, shipped};
use lasthop_experiment::ExperimentError;
use lasthop_report::combined;
use lasthop_report::page::{Chart, Curve};
use lasthop_report::page::{Check, Section, Table, shown};
use lasthop_report::{Estimate, Key};
use toml::Value;

const MODERN: Shipped = shipped!("aggregation", "modern-ap");
const AMSDU: Shipped = shipped!("aggregation", "amsdu");
/// CUBIC over the FIFO and over the modern queue, then the regulator over either.
const FOUR: [&str; 4] = ["cubic", "cubic+modern-ap", "regulator", "regulator+modern-ap"];

/// The four combinations of sender and queue: a table of them, and what is required of ours. `laws`: CUBIC over the FIFO and
/// over the modern queue, then the regulator over either.
pub(super) fn compared(run: &Results, laws: &[&str; 4]) -> (Table, Vec<Check>) {
    let mut table = Table::new(&[
        "sender, queue of the access point",
        "Mbit/s",
        "hop delay mean (ms)",
        "p95 (ms)",
        "p95 and Mbit/s, of CUBIC's over FIFO",
        "of CUBIC's over the modern queue",
    ]);
    let names = ["CUBIC, FIFO", "CUBIC, modern queue", "regulator, FIFO", "regulator, modern queue"];
    for (name, law) in names.iter().zip(laws) {
        let times = |other: &str| {
            let [delay, rate] = multiples(run, law, other);
            format!("{}, {}", shown(&delay), shown(&rate))
        };
        let of = |key| shown(&run.of(law, key));
        let cells = [Key::Throughput, Key::HopDelayMean, Key::HopDelayP95].map(of);
        table.rows.push([vec![(*name).to_owned()], cells.to_vec(), vec![times(laws[0]), times(laws[1])]].concat());
    }
    let modern = Peer { law: laws[1], ..MODERN_QUEUE };
    let checks = vec![
        against(run, laws[3], &modern, "ours over the modern queue"),
        against(run, laws[2], &modern, "ours over FIFO"),
    ];
    (table, checks)
}

/// p95 delay and throughput of `law` as multiples of what `other` has.
fn multiples(run: &Results, law: &str, other: &str) -> [Estimate; 2] {
    [Key::HopDelayP95, Key::Throughput].map(|key| run.multiple(law, other, key))
}

/// What ours is compared with: a law, what it is, and what is required.
struct Peer<'p> {
    law: &'p str,
    name: &'p str,
    required: &'p str,
}

const MODERN_QUEUE: Peer<'_> =
    Peer { law: "cubic+modern-ap", name: "CUBIC over the modern queue", required: "< 1 and ≥ 1 (issue)" };
const SHORT_TARGET: Peer<'_> = Peer {
    law: "cubic+modern-ap-5ms",
    name: "CUBIC over the modern queue, CoDel's target 5 ms",
    required: "not stated of this variant: as of the other, < 1 and ≥ 1",
};

/// The requirement on one of ours against CUBIC over a modern queue.
fn against(run: &Results, ours: &str, peer: &Peer<'_>, name: &str) -> Check {
    let [delay, rate] = multiples(run, ours, peer.law);
    Check::new(
        &format!("{name}, against {}: p95 delay and throughput as multiples", peer.name),
        peer.required,
        format!("{} and {}", shown(&delay), shown(&rate)),
        mean(&delay) < 1.0 && mean(&rate) >= 1.0,
    )
}

pub(super) fn modern(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let run = runner.run(MODERN, &[])?;
    let (four, mut checks) = compared(&run, &FOUR);
    let mut section = Section {
        title: "Against the queue of Linux mac80211".into(),
        text: "Not a figure of the paper, which knows no such queue. Bulk TCP to three stations (780, 292.5 and 117 Mbit/s) with a \
               probe to each: FQ-CoDel per station with airtime fairness (CoDel 20 ms / 100 ms, and what else the scenario \
               reference says of `fq-codel-airtime`); `cubic+modern-ap-5ms` is the same with the 5 ms / 100 ms of RFC 8290.\n\n\
               Why less throughput: the sum of the stations' rates is not what the law maximises. The sum of their logarithms is, \
               within the target and with frames of at most 48 of 64 packets; where the fast station is at that limit and the others \
               are not, the optimum is a short round, which costs the fast station most. The modern queue gives all stations the \
               same airtime in the longest frames that there are, so that the fast one is far ahead (Jain, and the last table). \
               Over the modern queue the regulator has less than over the old FIFO: that queue does not serve in rounds but by airtime, \
               with two aggregates a class in hardware; the near station's frames come twice as often and half as full (last table), each with \
               an access of its own, and queues that come and go there are drained where the loop would have shortened them (decision 8). \
               The rows `-60` and `-64` aim at frames of so many packets and show what the margin costs; the nearer to full, \
               the later a queue shows. Where one station has the channel, sharing cannot cost anything, and the regulator \
               is ahead in both (Figure 13).\n\n\
               From server to application the regulator has 20 to 22 ms in the mean, less than CUBIC over the modern queue (column of the second table), \
               but not less than with CoDel's target at 5 ms: what does not stand on the hop waits in the proxy."
            .into(),
        tables: tables(&run, four),
        ..Section::default()
    };
    checks.push(against(&run, "regulator-60+modern-ap", &MODERN_QUEUE, "ours with 60 packets over the modern queue"));
    checks.push(against(&run, "regulator+modern-ap", &SHORT_TARGET, "ours over the modern queue"));
    checks.push(against(&run, "regulator", &SHORT_TARGET, "ours over FIFO"));
    section.checks = checks;
    let sums = ["regulator", "cubic+modern-ap"].map(|law| logs(&run, law));
    section.checks.push(Check::new(
        "what the law maximises: the sum of ln(packets/s), ours over an old FIFO and CUBIC's over the modern queue",
        "larger, by the law's own measure",
        sums.iter().map(fine).collect::<Vec<_>>().join(" and "),
        sums[0].mean.zip(sums[1].mean).map(|(ours, theirs)| ours > theirs),
    ));
    section.charts.push(picture(&run, "modern-ap", "Three stations: p95 delay over the hop against throughput"));
    section.charts.push(trace(&run, "modern-ap-delay", "Three stations: delay over the hop", &FOUR));
    Ok(section)
}

/// Packets an MPDU, and the longest A-MSDU that holds as many.
const PACKED: [(i64, &str); 2] = [(2, "3839 B"), (5, "7935 B")];

/// The same where MPDUs hold several packets, so that the fast station is not, or later, at the limit of its frames.
pub(super) fn modern_amsdu(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let mut section = Section {
        title: "Against the queue of Linux mac80211, with A-MSDUs".into(),
        text: "The stations and the traffic of the section before, in a world that came when its results had been seen. An MPDU holds up to two packets \
               (A-MSDUs of 3839 octets, the least maximum of 802.11ac; so the paper's testbed had it), then up to five (7935 octets). A frame holds up to 128 and \
               320; the regulator aims at three quarters of that as it does of 64, and under `regulator-64` it knows nothing of A-MSDUs. A-MSDUs are not \
               validated against another simulator, and nothing is lost on the air here.\n\n\
               With five packets the fast station is not at the limit of its frames in rounds of 10 ms, so that all have the same time on the \
               air, as the modern queue gives it to them; then ours carries more, about as much as its frames have more of the airtime (last column of the second table): \
               through its tunnel stations acknowledge ten times a second, CUBIC's every second packet. With two it is at that limit over the FIFO, \
               and the sum of logarithms asks for short rounds again. CUBIC over a FIFO carries least, and with five packets how much, and to whom, differs from seed to seed. \
               From server to application (a column of the second table) the regulator is ahead of CUBIC over the modern queue, but with five packets an \
               MPDU over that queue not if CoDel's target is 5 ms: what does not stand on the hop waits in the proxy."
            .into(),
        ..Section::default()
    };
    for (packets, octets) in PACKED {
        let run = runner.run(AMSDU, &packed(packets, octets))?;
        let ours = [("regulator+modern-ap", "over the modern queue"), ("regulator", "over FIFO")];
        let stated = "not stated of this world: < 1 and ≥ 1";
        for peer in [Peer { required: stated, ..MODERN_QUEUE }, Peer { required: stated, ..SHORT_TARGET }] {
            let of = |(law, queue)| against(&run, law, &peer, &format!("{packets} packets an MPDU, ours {queue}"));
            section.checks.extend(ours.map(of));
        }
        let (four, _) = compared(&run, &FOUR);
        section.tables.extend(tables(&run, four));
        let title = format!("Three stations, {packets} packets an MPDU: p95 delay over the hop against throughput");
        section.charts.push(picture(&run, &format!("modern-ap-amsdu-{packets}"), &title));
    }
    Ok(section)
}

/// The scenario with so many packets an MPDU, of which the regulator knows.
fn packed(packets: i64, octets: &'static str) -> Vec<Edit<'static>> {
    let mut edits = vec![("hop.wifi.max-amsdu", octets.into())];
    for keys in [
        ["laws.regulator.regulator.max-packets", "laws.regulator.regulator.aim-packets"],
        ["laws.regulator+modern-ap.regulator.max-packets", "laws.regulator+modern-ap.regulator.aim-packets"],
    ] {
        edits.extend(keys.into_iter().zip([64, 48].map(|single| Value::from(single * packets))));
    }
    edits
}

/// All laws of a run: the `four` combinations of sender and queue, all figures of all laws, and those of the stations.
fn tables(run: &Results, four: Table) -> Vec<Table> {
    let mut table = Table::new(&[
        "law",
        "Mbit/s",
        "hop delay mean (ms)",
        "p95 (ms)",
        "probe p95 (ms)",
        "server to application, mean (ms)",
        "Jain",
        "sum of ln(packets/s)",
        "airtime of frames (%)",
    ]);
    let mut each =
        Table::new(&["law", "Mbit/s: near, middle, far", "packets a frame", "airtime (%)", "frame interval (ms)"]);
    let stations = ["near", "middle", "far"];
    for law in run.scenario.laws() {
        let of = |key| shown(&run.of(&law.name, key));
        let percent = |share: &Estimate| shown(&combined([share], |[share]| share * 100.0));
        table.rows.push(vec![
            law.name.clone(),
            of(Key::Throughput),
            of(Key::HopDelayMean),
            of(Key::HopDelayP95),
            of(Key::ProbeDelayP95),
            of(Key::EndDelayMean),
            of(Key::Jain),
            fine(&logs(run, &law.name)),
            percent(&run.of(&law.name, Key::Airtime)),
        ]);
        let list = |key, show: &dyn Fn(&Estimate) -> String| {
            stations.map(|station| show(&run.of_station(&law.name, station, key))).join(", ")
        };
        each.rows.push(vec![
            law.name.clone(),
            list(Key::Throughput, &shown),
            list(Key::Aggregation, &shown),
            list(Key::Airtime, &percent),
            list(Key::FrameInterval, &shown),
        ]);
    }
    vec![four, table, each]
}

/// Delay against throughput, a point for each law.
fn picture(run: &Results, file: &str, title: &str) -> Chart {
    let point = |law: &str| {
        let rate = run.of(law, Key::Throughput).mean.unwrap_or(0.0);
        Curve::estimated(law, [(rate, run.of(law, Key::HopDelayP95))])
    };
    Chart {
        file: file.into(),
        title: title.into(),
        x: "throughput of all stations (Mbit/s)".into(),
        y: "p95 delay (ms)".into(),
        curves: run.scenario.laws().iter().map(|law| point(&law.name)).collect(),
        logarithmic: true,
        note: "Points: means over the seeds. Whiskers: 95 % confidence intervals of the p95 delay; those of the throughput are in the \
               table. Lower and further right is better."
            .into(),
        ..Chart::default()
    }
}
