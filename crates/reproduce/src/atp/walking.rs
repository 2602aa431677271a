//! A node that walks along a chain and back while it sends.

use super::{LAWS, by_law, rows};
use crate::study::{Runner, Shipped, shipped};
use lasthop_experiment::ExperimentError;
use lasthop_report::page::{Chart, Check, Curve, MEANS, Section, digits, mean};
use lasthop_report::{Key, SeriesKind};

const WALK: Shipped = shipped!("atp", "walk");
/// Seconds over which curves are averaged.
const WIDTH: f64 = 10.0;

pub(super) fn walking(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let run = runner.run(WALK, &[])?;
    let mut table = by_law();
    table.rows.extend(rows("walk", &run, &LAWS));
    let goodput = LAWS.map(|law| format!("{law} {}", digits(mean(&run.of(law, Key::Throughput))))).join(", ");
    let stalls = LAWS.map(|law| format!("{law} {}", digits(mean(&run.of(law, Key::StallMax)) / 1e3))).join(", ");
    Ok(Section {
        title: "A node that walks".into(),
        text: "The paper names moving nodes as future work. A sender is carried along five nodes 50 m apart, there and back, at 1.4 m/s. OLSR sends HELLOs every two seconds and forgets a neighbour \
               after six: a node that walks out of reach has no way for some seconds, whatever the transport."
            .into(),
        checks: vec![
            Check::new("goodput (Mbit/s)", "not stated", goodput, None),
            Check::new("longest stall (s)", "not stated", stalls, None),
        ],
        tables: vec![table.data()],
        charts: vec![Chart {
            note: MEANS.into(),
            ..Chart::over_time(
                "atp-walk",
                "Goodput of a sender that walks away and back",
                "goodput (Mbit/s)",
                LAWS.into_iter().map(|law| Curve::estimated(law, run.traced(law, SeriesKind::Rate, WIDTH))).collect(),
            )
        }],
        ..Section::default()
    })
}
