//! ATP beside transports that it was not compared with in the paper.

use super::{CHAIN, STACK, by_law, count, rows};
use crate::study::{Results, Runner};
use lasthop_experiment::ExperimentError;
use lasthop_report::page::{Chart, Check, Curve, MEANS, Section, digits, mean};
use lasthop_report::{Estimate, Key};

const PEERS: [&str; 7] = ["adaptive", "tahoe", "classic-reno", "newreno", "cubic", "bbr", "tcp-ap"];

pub(super) fn peers(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let stack = runner.run(STACK, &[])?;
    let mut table = by_law();
    table.rows.extend(rows("stack", &stack, &PEERS));
    let hops = 1..=4u32;
    let chains: Result<Vec<Results>, _> =
        hops.clone().map(|hops| runner.run(CHAIN, &[("traffic.0.from", format!("n{hops}").into())])).collect();
    let chains = chains?;
    for (hops, run) in hops.clone().zip(&chains) {
        table.rows.extend(rows(&count(hops as usize, "hop"), run, &PEERS));
    }
    let line = |law: &str| -> Vec<(f64, Estimate)> {
        hops.clone().zip(&chains).map(|(hops, run)| (f64::from(hops), run.of(law, Key::EndDelayMean))).collect()
    };
    let list = |key| PEERS.map(|law| format!("{law} {}", digits(mean(&stack.of(law, key))))).join(", ");
    let multiples: Vec<String> =
        chains.iter().map(|run| digits(mean(&run.multiple("adaptive", "tcp-ap", Key::Throughput)))).collect();
    Ok(Section {
        title: "Beside other transports".into(),
        text: "The paper asks for a comparison with more transports. `classic-reno` and `newreno` are RFC 5681 and RFC 6582 without SACK and RACK, `bbr` version 1, `tcp-ap` TCP with adaptive pacing \
               (ElRakabawy, Klemm and Lindemann 2005) as its authors' agent for ns-2 has it, which knows the number of hops and the rate of links. Over fewer than four hops it goes by the \
               delay of one hop."
            .into(),
        checks: vec![
            Check::new("stack: log utility (log10)", "not stated", list(Key::LogUtility10), None),
            Check::new("chains: Adaptive's goodput over TCP-AP's, 1 to 4 hops", "not stated", multiples.join(", "), None),
        ],
        tables: vec![table.data()],
        charts: vec![Chart {
            file: "atp-peers-delay".into(),
            title: "Delay from end to end of one flow over one to four hops".into(),
            x: "hops".into(),
            y: "mean delay (ms)".into(),
            curves: PEERS.into_iter().map(|law| Curve::estimated(law, line(law))).collect(),
            note: MEANS.into(),
            ..Chart::default()
        }
        .logarithmic()],
        ..Section::default()
    })
}
