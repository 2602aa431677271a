//! What bounds gain where uploads collapse, and what the tables cost where they do not.

use super::{LAWS, PATHS, TEN, by_law, row, rows};
use crate::study::{Runner, Shipped, shipped};
use lasthop_experiment::ExperimentError;
use lasthop_report::page::{Chart, Check, Curve, MEANS, Section, digits, mean, shown};
use lasthop_report::{Estimate, Key};
use toml::Value;

const SCALING: Shipped = shipped!("terminal", "scaling");
const FIXED: Shipped = shipped!("terminal", "fixed-rate");
const WINDOWS: Shipped = shipped!("terminal", "fixed-window");
/// Its laws but CUBIC, and the segments of each.
const FIXED_WINDOWS: [(&str, u32); 8] =
    [("w2", 2), ("w3", 3), ("w4", 4), ("w6", 6), ("w8", 8), ("w12", 12), ("w16", 16), ("w24", 24)];

pub(super) fn ten(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let (mut table, mut checks) = (by_law(), Vec::new());
    // Hosts that take time to answer, as the scenario has it, and those that take none, as in ns-3.
    for (at_once, (rtt, delay)) in [false, true].into_iter().flat_map(|at_once| PATHS.map(|path| (at_once, path))) {
        let edits = [("wire.delay", delay.into()), ("hop.wifi.host-delay", Value::from("0 s"))];
        let run = runner.run(TEN, if at_once { &edits } else { &edits[..1] })?;
        let world = if at_once { format!("{rtt} ms, at once") } else { format!("{rtt} ms") };
        table.rows.extend(rows(&world, &run));
        let required = !at_once;
        let mut check = |what: &str, paper: &str, ours: String, met: Option<bool>, headline: bool| {
            let check = Check::new(&format!("{world}: {what}"), paper, ours, met.filter(|_| required));
            checks.push(if headline { check.headline() } else { check });
        };
        let far = rtt == 256;
        let times = run.multiple("tables", "cubic", Key::Throughput);
        let jain = run.of("tables", Key::Jain);
        let total = match far {
            true => ("≥ 2; paper: doubled, 3.35, 5", Some(mean(&times) >= 2.0)),
            false => ("\"did not improve so much\"", None),
        };
        check("tables' total over CUBIC's", total.0, shown(&times), total.1, far);
        let fair = match far {
            true => ("≥ 0.98; paper: about 1, CUBIC's 0.86", Some(mean(&jain) >= 0.98)),
            false => ("not stated", None),
        };
        check("Jain's index", fair.0, shown(&jain), fair.1, far && required);
        let rtt_ms = ["cubic", "tables"].map(|law| run.of(law, Key::RttMean));
        check(
            "round trip, CUBIC and tables",
            "below CUBIC's, which is > 12 s",
            format!("{} and {} ms", shown(&rtt_ms[0]), shown(&rtt_ms[1])),
            Some(mean(&rtt_ms[1]) < mean(&rtt_ms[0])),
            far && required,
        );
        let recoveries = ["cubic", "tables"].map(|law| run.of(law, Key::Recoveries));
        check(
            "recoveries a MB, CUBIC and tables",
            "at most a tenth",
            format!("{} and {}", shown(&recoveries[0]), shown(&recoveries[1])),
            far.then(|| mean(&recoveries[1]) <= mean(&recoveries[0]) / 10.0),
            false,
        );
        let before = run.multiple("tables", "count", Key::Throughput);
        let what = "tables' total over the count's";
        check(what, "1.026 to 1.418", shown(&before), None, false);
        let least = if far { 2.0 } else { 1.3 };
        let times = run.multiple("model", "cubic", Key::Throughput);
        let met = Some(mean(&times) >= least);
        check("model's total over CUBIC's", &format!("≥ {least}"), shown(&times), met, true);
    }
    Ok(Section {
        title: "Ten terminals".into(),
        text: "Ten stations upload through one access point to a server. CUBIC fills every queue: stations lose their channel to collisions, ARF lowers their rates, and the access point's \
               queue drops acknowledgements. At 4 ms the paper saw little gain."
            .into(),
        reason: "stations always contend, and ARF takes their collisions for a bad channel. Where hosts answer at once collisions are fewer, and bounds end the collapse.".into(),
        checks,
        tables: vec![table.only(|row| !row[0].contains("at once") && row[1] != "count", &[0, 1, 2, 3, 4])],
        ..Section::default()
    })
}

pub(super) fn windows(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let (mut table, mut checks, mut charts) = (by_law(), Vec::new(), Vec::new());
    for (rtt, delay) in PATHS {
        let run = runner.run(WINDOWS, &[("wire.delay", delay.into())])?;
        let world = format!("{rtt} ms");
        table.rows.extend(
            std::iter::once("cubic").chain(FIXED_WINDOWS.map(|(law, _)| law)).map(|law| row(&world, &run, law)),
        );
        let total = |law: &str| mean(&run.of(law, Key::Throughput));
        let best = FIXED_WINDOWS.into_iter().max_by(|(a, _), (b, _)| total(a).total_cmp(&total(b)));
        if let Some((law, window)) = best {
            let times = run.multiple(law, "cubic", Key::Throughput);
            let what = format!("{rtt} ms: best fixed window, and its total over CUBIC's");
            let check = Check::new(&what, "not stated", format!("{window} segments, {}", shown(&times)), None);
            checks.push(check.headline());
        }
        let points = FIXED_WINDOWS.map(|(law, window)| (f64::from(window), run.of(law, Key::Throughput)));
        let cubic = FIXED_WINDOWS.map(|(_, window)| (f64::from(window), run.of("cubic", Key::Throughput)));
        charts.push(Chart {
            file: format!("terminal-windows-{rtt}"),
            title: format!("Total goodput of ten terminals with one window, {rtt} ms"),
            x: "window of each terminal (segments)".into(),
            y: "total goodput (Mbit/s)".into(),
            curves: vec![Curve::estimated("fixed window", points), Curve::estimated("cubic", cubic)],
            note: MEANS.into(),
            ..Chart::default()
        });
    }
    Ok(Section {
        title: "What any window can do".into(),
        text: "The ten terminals, all with one window for good. At 4 ms two segments each are already more than the hop carries (58 Mbit/s if nothing waited), so that stations always contend: \
               no bound can end the collapse there. At 256 ms the path holds few enough packets while windows are small."
            .into(),
        checks,
        tables: vec![table.data()],
        charts,
        ..Section::default()
    })
}

pub(super) fn scaling(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let counts: &[i64] = if runner.quick { &[1, 3, 10] } else { &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10] };
    let (mut table, mut charts, mut checks) = (by_law(), Vec::new(), Vec::new());
    for (rtt, delay) in PATHS {
        let mut lines: Vec<Vec<(f64, Estimate)>> = vec![Vec::new(); LAWS.len()];
        let mut least: Option<(f64, i64)> = None;
        for &count in counts {
            let run = runner.run(SCALING, &[("station.0.count", count.into()), ("wire.delay", delay.into())])?;
            table.rows.extend(rows(&format!("{rtt} ms, n = {count}"), &run));
            for (line, law) in lines.iter_mut().zip(LAWS) {
                line.push((count as f64, run.of(law, Key::Throughput)));
            }
            let times = mean(&run.multiple("tables", "cubic", Key::Throughput));
            if least.is_none_or(|(known, _)| times < known) {
                least = Some((times, count));
            }
        }
        let (times, count) = least.unwrap_or((f64::NAN, 0));
        checks.push(Check::new(
            &format!("{rtt} ms: tables' total over CUBIC's, the least"),
            "\"generally improved\"; no figure",
            format!("{} at n = {count}", digits(times)),
            None,
        ));
        charts.push(Chart {
            file: format!("terminal-scaling-{rtt}"),
            title: format!("Total goodput of 1 to 10 terminals, {rtt} ms"),
            x: "terminals".into(),
            y: "total goodput (Mbit/s)".into(),
            curves: LAWS.into_iter().zip(lines).map(|(law, line)| Curve::estimated(law, line)).collect(),
            note: MEANS.into(),
            ..Chart::default()
        });
    }
    Ok(Section {
        title: "One to ten terminals".into(),
        text: "The same world with fewer terminals. From two on ARF falls. The tables let more through than the hop carries up to four terminals, so that queues stand, and less than it carries \
               from five on at 256 ms (Table 2: 65 packets each and fewer)."
            .into(),
        checks,
        tables: vec![table.data()],
        charts,
        ..Section::default()
    })
}

pub(super) fn fixed_rate(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let (mut table, mut checks) = (by_law(), Vec::new());
    for (rtt, delay) in PATHS {
        let run = runner.run(FIXED, &[("wire.delay", Value::from(delay))])?;
        table.rows.extend(rows(&format!("{rtt} ms"), &run));
        let times = run.multiple("tables", "cubic", Key::Throughput);
        let paper = if rtt == 256 { "the table's last row allows 8.0 Mbit/s" } else { "not stated" };
        let what = format!("{rtt} ms: tables' total, and over CUBIC's");
        let ours = format!("{} Mbit/s, {}", shown(&run.of("tables", Key::Throughput)), shown(&times));
        let cost = Check::new(&what, paper, ours, None);
        checks.push(if rtt == 256 { cost.headline() } else { cost });
    }
    Ok(Section {
        title: "A fixed rate: nothing collapses".into(),
        text: "All stations send at 54 Mbit/s whatever happens. By the paper's Table 2 ten terminals at 256 ms may have 17 packets each in flight: 8.0 Mbit/s together, where the hop carries 25."
            .into(),
        checks,
        tables: vec![table.data()],
        ..Section::default()
    })
}
