//! One, two and five flows over one to four hops, on testbeds with the paper's rates and powers.

use super::{LAWS, by_law, count, rows};
use crate::study::{Results, Runner, Shipped, shipped};
use lasthop_experiment::ExperimentError;
use lasthop_report::page::{Bars, Chart, Check, Curve, MEANS, Section, digits, mean};
use lasthop_report::{Estimate, Key, Run};
use lasthop_units::stats;
use toml::{Table, Value};

const TESTBEDS: [(&str, Shipped); 2] = [("A", shipped!("atp", "testbed-a")), ("B", shipped!("atp", "testbed-b"))];
const FLOWS: [usize; 3] = [1, 2, 5];

/// So many flows from the node that is so many hops away to the gateway.
fn traffic(flows: usize, hops: u32) -> Value {
    let flow = |_| {
        let mut table = Table::new();
        for (key, value) in [("kind", "bulk".to_owned()), ("from", format!("n{hops}")), ("to", "ap".to_owned())] {
            table.insert(key.to_owned(), Value::from(value));
        }
        Value::Table(table)
    };
    Value::Array((0..flows).map(flow).collect())
}

/// A law's throughput as a multiple of Default's, the mean over the runs: one for each number of hops.
fn leads(runs: &[Results], law: &str) -> Vec<f64> {
    runs.iter().map(|run| mean(&run.multiple(law, "default", Key::Throughput))).collect()
}

fn average(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn list(values: &[f64]) -> String {
    values.iter().map(|value| digits(*value)).collect::<Vec<_>>().join(", ")
}

/// Jain's index over a law's flows, which all begin at one node, averaged over runs and hops.
fn jain(runs: &[Results], law: &str) -> f64 {
    let of = |run: &Run| {
        let rates = run.record.streams.iter().map(|stream| stream.figures.get(&Key::Throughput)?.value());
        stats::jain(&rates.collect::<Option<Vec<f64>>>()?)
    };
    average(&runs.iter().map(|results| mean(&results.over_runs(law, "", of))).collect::<Vec<_>>())
}

pub(super) fn testbeds(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let hop_counts: &[u32] = if runner.quick { &[1, 4] } else { &[1, 2, 3, 4] };
    let (mut table, mut checks, mut charts, mut pictures) = (by_law(), Vec::new(), Vec::new(), Vec::new());
    for (testbed, scenario) in TESTBEDS {
        for flows in FLOWS {
            let runs: Result<Vec<Results>, _> =
                hop_counts.iter().map(|hops| runner.run(scenario, &[("traffic", traffic(flows, *hops))])).collect();
            let runs = runs?;
            for (hops, run) in hop_counts.iter().zip(&runs) {
                table.rows.extend(rows(
                    &format!("{testbed}, {}, {}", count(flows, "flow"), count(*hops as usize, "hop")),
                    run,
                    &LAWS,
                ));
            }
            checks.extend(judged(testbed, flows, &runs));
            let line = |law: &str| -> Vec<(f64, Estimate)> {
                hop_counts
                    .iter()
                    .zip(&runs)
                    .map(|(hops, run)| (f64::from(*hops), run.of(law, Key::Throughput)))
                    .collect()
            };
            let bar = |law: &str| -> Vec<Estimate> { runs.iter().map(|run| run.of(law, Key::Throughput)).collect() };
            if flows == 1 {
                let bars = Bars {
                    file: format!("atp-testbed-{}-bars", testbed.to_lowercase()),
                    title: format!("Testbed {testbed}: one flow"),
                    y: "goodput (Mbit/s)".into(),
                    groups: hop_counts.iter().map(|hops| count(*hops as usize, "hop")).collect(),
                    bars: LAWS.into_iter().map(|law| (law.to_owned(), bar(law))).collect(),
                };
                pictures.push(bars.picture());
                continue;
            }
            charts.push(Chart {
                file: format!("atp-testbed-{}-{flows}", testbed.to_lowercase()),
                title: format!("Testbed {testbed}: total goodput of {flows} flows over one to four hops"),
                x: "hops".into(),
                y: "total goodput (Mbit/s)".into(),
                curves: LAWS.into_iter().map(|law| Curve::estimated(law, line(law))).collect(),
                note: MEANS.into(),
                ..Chart::default()
            });
        }
    }
    checks.push(calm(runner)?);
    Ok(Section {
        title: "Two testbeds".into(),
        text: "Five nodes in a corridor, at 24 Mbit/s and 10 dBm (A, where fading loses frames) and at 6 Mbit/s and 17 dBm (B, where it hardly does). All flows go from the node so many hops away to \
               the gateway. The paper does not say where its nodes stood, nor which ends two and five flows had. Indices and totals are means over hop counts."
            .into(),
        reason: "in A fades hold every variant down: what waits through a fade raises D, and the way up again is as long for Adaptive as for Default. In B, over several hops, Default falls \
                 behind as on the chains. All flows begin at one node and hear one D, so that indices differ in the third digit, but for Tahoe's in B."
            .into(),
        checks,
        tables: vec![table.data()],
        charts,
        pictures,
        ..Section::default()
    })
}

/// Testbed A where next to nothing reaches a receiver but by the direct path.
fn calm(runner: &Runner<'_>) -> Result<Check, ExperimentError> {
    let mut told = Vec::new();
    for hops in [1, 4] {
        let fading = ("hop.wifi.mesh.fading.k", Value::from(1000.0));
        let run = runner.run(TESTBEDS[0].1, &[("traffic", traffic(1, hops)), fading])?;
        let rate = |law| digits(mean(&run.of(law, Key::Throughput)));
        let multiple = digits(mean(&run.multiple("adaptive", "default", Key::Throughput)));
        told.push(format!("{multiple} ({} and {} Mbit/s)", rate("adaptive"), rate("default")));
    }
    Ok(Check::new(
        "A with hardly any fading, 1 flow: Adaptive's goodput over Default's, 1 and 4 hops",
        "not stated",
        told.join(", "),
        None,
    ))
}

/// What the paper states of so many flows on a testbed.
fn judged(testbed: &str, flows: usize, runs: &[Results]) -> Vec<Check> {
    let what = |rest: &str| format!("{testbed}, {}: {rest}", count(flows, "flow"));
    let mut checks = Vec::new();
    match (testbed, flows) {
        ("A", 1) => {
            let leads = leads(runs, "adaptive");
            let ours = format!("{}; {}", digits(average(&leads)), list(&leads));
            let met = average(&leads) >= 1.5;
            checks.push(
                Check::new(&what("Adaptive's goodput over Default's, mean and by hops"), "mean ≥ 1.5", ours, met)
                    .headline(),
            );
        }
        ("A", 2) => {
            let leads = leads(runs, "aggressive");
            let met = leads.last() < leads.first();
            let paper = "its lead falls with hops";
            checks.push(
                Check::new(&what("Aggressive's goodput over Default's, by hops"), paper, list(&leads), met).headline(),
            );
        }
        ("B", 1) => {
            let leads = leads(runs, "adaptive");
            let met = (0.9..=1.1).contains(&average(&leads));
            let ours = format!("{}; {}", digits(average(&leads)), list(&leads));
            checks.push(
                Check::new(
                    &what("Adaptive's goodput over Default's, mean and by hops"),
                    "mean within 10 % of 1",
                    ours,
                    met,
                )
                .headline(),
            );
        }
        _ => {}
    }
    if flows > 1 {
        let fairness = ["aggressive", "adaptive", "default", "tahoe"].map(|law| jain(runs, law));
        let [aggressive, adaptive, default, tahoe] = fairness;
        let met = aggressive.min(adaptive) > default && default > tahoe;
        let paper = "the first two highest, Tahoe last";
        checks.push(
            Check::new(&what("Jain's index: aggressive, adaptive, default, tahoe"), paper, list(&fairness), met)
                .headline(),
        );
    }
    if flows == 5 && testbed == "A" {
        let totals =
            LAWS.map(|law| average(&runs.iter().map(|run| mean(&run.of(law, Key::Throughput))).collect::<Vec<_>>()));
        let ours = LAWS
            .iter()
            .zip(totals)
            .map(|(law, total)| format!("{law} {}", digits(total)))
            .collect::<Vec<_>>()
            .join(", ");
        // Those of the paper: Tahoe is its TCP.
        let [_, tahoe, others @ ..] = totals;
        let worst = others[..3].iter().all(|total| *total > tahoe);
        checks.push(Check::new(&what("total goodput (Mbit/s)"), "Tahoe worst", ours, worst).headline());
    }
    checks
}
