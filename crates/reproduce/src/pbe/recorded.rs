//! Recorded links: what each law makes of the opportunities that a telephone had.

use crate::study::{Edit, Results, Runner, Shipped, shipped};
use lasthop_experiment::ExperimentError;
use lasthop_report::page::{Check, Section, Table, mean, shown};
use lasthop_report::{Estimate, Key, combined};
use lasthop_scenario::LastHop;
use lasthop_units::{Span, Time};
use std::path::PathBuf;
use toml::Value;

const RECORDED: Shipped = shipped!("pbe", "recorded");
const LAWS: [&str; 7] = ["cubic", "bbr", "copa", "copa-tenth", "pbe", "roomy", "published"];
/// What Copa's own program did over mahimahi in this world (reference data, the traces): the part of the link that it used, in percent, and
/// the 95th percentile of the queueing delay in milliseconds. With which delta is not said.
const LINKS: [(&str, (f64, f64)); 3] =
    [("Verizon-LTE-short", (88.8, 102.0)), ("ATT-LTE-driving", (68.1, 50.0)), ("TMobile-LTE-short", (77.9, 83.0))];
/// Octets of a full segment that are payload, and those of an opportunity that it takes.
const PAYLOAD: f64 = 1448.0 / 1504.0;

/// The folder of recorded traces; `None` if it is not there.
fn folder() -> Option<PathBuf> {
    let beside = || PathBuf::from("../shared/reference");
    let folder = std::env::var_os("LASTHOP_REFERENCE").map_or_else(beside, PathBuf::from).join("traces");
    folder.join("README.md").exists().then(|| folder.canonicalize()).and_then(Result::ok)
}

/// What the link offered while it was measured, and what its propagation takes.
fn offered(run: &Results) -> (f64, f64) {
    let LastHop::Trace(hop) = run.scenario.hop() else { panic!("a trace is the hop") };
    let (from, to) = (Time::ZERO + run.scenario.warm_up(), Time::ZERO + run.scenario.duration());
    let rate = hop.down.trace.rate_between(from, to).map_or(f64::NAN, |rate| rate.as_mbit_f64());
    (rate, Span::as_millis_f64(hop.down.delay))
}

/// The figure.
pub(super) fn recorded(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let title = "Recorded links".to_owned();
    let Some(folder) = folder() else {
        let text = "Not run: recorded traces do not ship with Lasthop. Set `LASTHOP_REFERENCE` to a folder with them in its `traces`.".into();
        return Ok(Section { title, text, ..Section::default() });
    };
    let mut table = Table::new(&["link", "law", "used (%)", "queueing delay, mean (ms)", "p95 (ms)"]);
    let mut checks = Vec::new();
    for (link, copa) in LINKS {
        let path = |end: &str| Value::from(folder.join(format!("{link}.{end}")).display().to_string());
        let edits: [Edit<'_>; 2] = [("hop.trace.downlink", path("down")), ("hop.trace.uplink", path("up"))];
        let told = [("hop.trace.downlink", Value::from(link))];
        let run = runner.run_as(RECORDED, &edits, &told)?;
        let (rate, delay) = offered(&run);
        let used = |law: &str| combined([&run.of(law, Key::Throughput)], |[goodput]| 100.0 * goodput / PAYLOAD / rate);
        let queued = |law: &str, key| -> Estimate { combined([&run.of(law, key)], |[hop]| hop - delay) };
        for law in LAWS {
            let figures = [used(law), queued(law, Key::HopDelayMean), queued(law, Key::HopDelayP95)];
            table.rows.push([link, law].map(str::to_owned).into_iter().chain(figures.iter().map(shown)).collect());
        }
        let [pbe, bbr] = ["pbe", "bbr"].map(|law| (mean(&used(law)), mean(&queued(law, Key::HopDelayP95))));
        checks.push(Check::new(
            &format!("{link}: part used (%), p95 queueing delay (ms)"),
            &format!("≥ {:.1}, ≤ {:.0}", bbr.0 - 2.0, bbr.1 / 3.0),
            format!("{}, {}", shown(&used("pbe")), shown(&queued("pbe", Key::HopDelayP95))),
            pbe.0 >= bbr.0 - 2.0 && pbe.1 <= bbr.1 / 3.0,
        ));
        let ours = (mean(&used("copa")), mean(&queued("copa", Key::HopDelayP95)));
        checks.push(Check::new(
            &format!("{link}: Copa's, beside its own program's"),
            &format!("{} ± 5, {} ± 25 %", copa.0, copa.1),
            format!("{}, {}", shown(&used("copa")), shown(&queued("copa", Key::HopDelayP95))),
            (ours.0 - copa.0).abs() <= 5.0 && (ours.1 / copa.1 - 1.0).abs() <= 0.25,
        ));
    }
    Ok(Section {
        title,
        text: "Not of the paper. Three links of commercial networks, recorded by saturating a telephone in a car (mahimahi's traces), each played for a minute with a queue without end, three seeds. PBE-CC's \
               receiver sees the opportunities, used and unused, as it would see a cell's resource blocks. Required is BBR's use less 2 points at a third of its p95."
            .into(),
        reason: "what these links carry changes within a round trip, and a queue as short as PBE-CC's is empty when more comes. With which delta Copa's own program ran is not known: ours with 0.1 \
                 (`copa-tenth` of the data, chosen for that) comes near, with the paper's 0.5 it uses less."
            .into(),
        checks,
        tables: vec![table.data()],
        ..Section::default()
    })
}
