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
    let checks =
        vec![against(run, laws[3], &modern, "ours, modern queue"), against(run, laws[2], &modern, "ours, FIFO")];
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

const MODERN_QUEUE: Peer<'_> = Peer { law: "cubic+modern-ap", name: "modern queue", required: "p95 < 1, rate ≥ 1" };
const SHORT_TARGET: Peer<'_> =
    Peer { law: "cubic+modern-ap-5ms", name: "modern queue at 5 ms", required: "p95 < 1, rate ≥ 1" };

/// The requirement on one of ours against CUBIC over a modern queue.
fn against(run: &Results, ours: &str, peer: &Peer<'_>, name: &str) -> Check {
    let [delay, rate] = multiples(run, ours, peer.law);
    Check::new(
        &format!("{name} over CUBIC's, {}", peer.name),
        peer.required,
        format!("{}, {}", shown(&delay), shown(&rate)),
        mean(&delay) < 1.0 && mean(&rate) >= 1.0,
    )
}

pub(super) fn modern(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let run = runner.run(MODERN, &[])?;
    let (four, mut checks) = compared(&run, &FOUR);
    let mut section = Section {
        title: "Linux mac80211's queue".into(),
        text: "Not a figure of the paper, which knows no such queue. Bulk TCP to three stations (780, 292.5 and 117 Mbit/s) with a probe to each; CoDel at 20 ms, or at the 5 ms of RFC 8290. \
               From server to application the regulator has 20 to 22 ms, less than CUBIC over the modern queue but not less than with CoDel at 5 ms: what does not stand on the hop waits in the \
               proxy. Rows `-60` and `-64` of the data aim at fuller frames."
            .into(),
        reason: "the law maximises the sum of logarithms, not of rates. With the fast station at 48 packets and the others below, that is a short round, which costs the fast station most; the \
                 modern queue gives equal airtime in the longest frames. Over it the near station's frames come twice as often and half as full."
            .into(),
        tables: {
            let [four, laws, stations] = tables(&run, four);
            vec![four.columns(&[0, 1, 2, 3]), laws.data().named("laws"), stations.data().named("stations")]
        },
        ..Section::default()
    };
    checks.push(against(&run, "regulator-60+modern-ap", &MODERN_QUEUE, "ours with 60 packets, modern queue"));
    checks.push(against(&run, "regulator+modern-ap", &SHORT_TARGET, "ours, modern queue"));
    checks.push(against(&run, "regulator", &SHORT_TARGET, "ours, FIFO"));
    section.checks = checks;
    let sums = ["regulator", "cubic+modern-ap"].map(|law| logs(&run, law));
    section.checks.push(Check::new(
        "sum of ln(packets/s): ours, FIFO and CUBIC's, modern queue",
        "larger: it is what the law maximises",
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
        title: "Linux mac80211's queue, with A-MSDUs".into(),
        text: "The same stations and traffic; an MPDU holds two packets (A-MSDUs of 3839 octets), then five (7935). The regulator aims at three quarters of what a frame holds. A-MSDUs are not \
               validated against another simulator. With five packets the fast station is not at the limit of its frames, and ours carries more, for stations acknowledge ten times a second \
               through the tunnel."
            .into(),
        reason: "with two packets the fast station is at that limit over the FIFO, and the sum of logarithms asks for short rounds again.".into(),
        ..Section::default()
    };
    for (packets, octets) in PACKED {
        let run = runner.run(AMSDU, &packed(packets, octets))?;
        let ours = [("regulator+modern-ap", "modern queue"), ("regulator", "FIFO")];
        for peer in [MODERN_QUEUE, SHORT_TARGET] {
            let of = |(law, queue)| against(&run, law, &peer, &format!("{packets} packets, ours, {queue}"));
            section.checks.extend(ours.map(of));
        }
        let (four, _) = compared(&run, &FOUR);
        let name = if packets == PACKED[0].0 { ["2", "2-laws", "2-stations"] } else { ["5", "5-laws", "5-stations"] };
        let tables = tables(&run, four).into_iter().zip(name);
        section.tables.extend(tables.map(|(table, name)| table.data().named(name)));
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
fn tables(run: &Results, four: Table) -> [Table; 3] {
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
    [four, table, each]
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
        note: "Lower and further right is better.".into(),
        ..Chart::default()
    }
}
