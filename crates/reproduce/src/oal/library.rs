//! A library's access point: one queue, and loads under which CUBIC loses what the paper counted.

use super::{COLUMNS, LIBRARY, magnitudes};
use crate::study::{Results, Runner};
use lasthop_experiment::ExperimentError;
use lasthop_report::Key;
use lasthop_report::page::{Section, shown};

const LAWS: [&str; 5] = ["cubic", "bbr", "vivace", "cubic+threshold", "cubic+learned"];

/// What only this world has.
const PAGES: [(&str, Key); 1] = [("page object, p95 (ms)", Key::FetchP95)];

pub(super) fn library(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let run = runner.run(LIBRARY, &[])?;
    Ok(Section {
        title: "A library's access point".into(),
        text: "Twelve stations near the access point download over two connections each; twice eight far ones come, load a page and download for 18 s.".into(),
        reason: reason(&run),
        checks: magnitudes(&run),
        tables: vec![run.by_law(&LAWS, &[COLUMNS.as_slice(), &PAGES].concat()).columns(&[0, 1, 2, 3, 6])],
        ..Section::default()
    })
}

/// Why what is missed is missed.
fn reason(run: &Results) -> String {
    let of_bbr = |law: &str, key: Key| shown(&run.multiple(law, "bbr", key));
    format!(
        "the threshold's windows, tight whenever anything waits, carry {} times what BBR does: shares of airtime bring no more in this world. The law acts from losses of 5 % on, and queues fill \
         until then; the threshold has {} of BBR's round trip. CUBIC alone has {} times the jitter of BBR, which paces.",
        of_bbr("cubic+threshold", Key::Throughput),
        of_bbr("cubic+threshold", Key::RttMean),
        of_bbr("cubic", Key::RttVariationMean),
    )
}
