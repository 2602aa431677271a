//! What bounds gain where uploads collapse, and what the tables cost where they do not.

use super::{LAWS, PATHS, TEN, by_law, rows};
use crate::study::{Runner, Shipped, shipped};
use lasthop_experiment::ExperimentError;
use lasthop_report::page::{Chart, Check, Curve, MEANS, Section, digits, mean, shown};
use lasthop_report::{Estimate, Key};
use toml::Value;

const SCALING: Shipped = shipped!("terminal", "scaling");
const FIXED: Shipped = shipped!("terminal", "fixed-rate");

pub(super) fn ten(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let (mut table, mut checks) = (by_law(), Vec::new());
    for (rtt, delay) in PATHS {
        let run = runner.run(TEN, &[("wire.delay", delay.into())])?;
        table.rows.extend(rows(&format!("{rtt} ms"), &run));
        let times = run.multiple("tables", "cubic", Key::Throughput);
        let jain = run.of("tables", Key::Jain);
        let rtt_ms = ["cubic", "tables"].map(|law| run.of(law, Key::RttMean));
        let total = |paper: &str, met: Option<bool>| {
            Check::new(&format!("{rtt} ms: total goodput, as a multiple of CUBIC's"), paper, shown(&times), met)
        };
        let fair =
            |paper: &str, met: Option<bool>| Check::new(&format!("{rtt} ms: Jain's index"), paper, shown(&jain), met);
        if rtt == 256 {
            checks.push(
                total("≥ 2 (issue); paper \"doubled\", elsewhere 3.35 and 5", Some(mean(&times) >= 2.0)).headline(),
            );
            checks.push(
                fair("≥ 0.98 (issue); paper close to 1, CUBIC's about 0.86", Some(mean(&jain) >= 0.98)).headline(),
            );
        } else {
            checks.push(total("\"did not improve so much\"", None));
            checks.push(fair("not stated", None));
        }
        let trips = Check::new(
            &format!("{rtt} ms: round trip, CUBIC and tables"),
            "CUBIC's more than 12 s by ping, the tables' not stated: below CUBIC's",
            format!("{} and {} ms", shown(&rtt_ms[0]), shown(&rtt_ms[1])),
            mean(&rtt_ms[1]) < mean(&rtt_ms[0]),
        );
        checks.push(if rtt == 256 { trips.headline() } else { trips });
        let recoveries = ["cubic", "tables"].map(|law| run.of(law, Key::Recoveries));
        let few = (rtt == 256).then(|| mean(&recoveries[1]) <= mean(&recoveries[0]) / 10.0);
        checks.push(Check::new(
            &format!("{rtt} ms: recoveries a MB, CUBIC and tables"),
            "at most a tenth (issue)",
            format!("{} and {}", shown(&recoveries[0]), shown(&recoveries[1])),
            few,
        ));
        let before = run.multiple("tables", "count", Key::Throughput);
        checks.push(Check::new(
            &format!("{rtt} ms: the tables' total as a multiple of that by the count alone"),
            "1.026 to 1.418",
            shown(&before),
            None,
        ));
        let least = if rtt == 256 { 2.0 } else { 1.3 };
        let times = run.multiple("model", "cubic", Key::Throughput);
        let model = Check::new(
            &format!("{rtt} ms: the model's total, as a multiple of CUBIC's"),
            &format!("≥ {least} (issue)"),
            shown(&times),
            mean(&times) >= least,
        );
        checks.push(model.headline());
    }
    Ok(Section {
        title: "Ten terminals".into(),
        text: "Ten stations upload through one access point to a server. CUBIC fills every queue: stations lose their channel to collisions, ARF lowers their \
               rates, and the access point's queue drops acknowledgements (losses are of what it sends). At 4 ms the paper saw little gain; its access \
               point may not have collapsed there."
            .into(),
        checks,
        tables: vec![table],
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
            &format!("{rtt} ms: the tables' total as a multiple of CUBIC's, where it is least"),
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
        text: "The same world with fewer terminals. From two on ARF falls; the tables let more through than the hop carries up to four terminals, so queues \
               stand, and less than it carries from five on at 256 ms (Table 2: 65 packets each and fewer)."
            .into(),
        checks,
        tables: vec![table],
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
        let what = format!("{rtt} ms: the tables' total, and as a multiple of CUBIC's");
        let ours = format!("{} Mbit/s, {}", shown(&run.of("tables", Key::Throughput)), shown(&times));
        let cost = Check::new(&what, paper, ours, None);
        checks.push(if rtt == 256 { cost.headline() } else { cost });
    }
    Ok(Section {
        title: "A fixed rate: nothing collapses".into(),
        text: "All stations send at 54 Mbit/s whatever happens. Ten terminals at 256 ms may have 17 packets each in flight by the paper's Table 2: 8.0 Mbit/s together, where the hop carries 25."
            .into(),
        checks,
        tables: vec![table],
        ..Section::default()
    })
}
