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
        text: text(&run),
        checks: magnitudes(&run),
        tables: vec![run.by_law(&LAWS, &[COLUMNS.as_slice(), &PAGES].concat())],
        ..Section::default()
    })
}

/// What was run, and why what is missed is missed.
fn text(run: &Results) -> String {
    let of_bbr = |law: &str, key: Key| shown(&run.multiple(law, "bbr", key));
    format!(
        "Twelve stations near the access point download over two connections each; twice eight far ones come, load a page and download for 18 s.

Three claims against BBR are missed, for these reasons:

* Throughput: the threshold's windows, tight whenever anything waits, carry {} times what BBR does. Shares of airtime bring no more in this world.
* Round trip: the classes' bounds let the access point act from losses of 5 % on. Until then queues fill as CUBIC fills them. The threshold acts on the
  queue itself and has {} of BBR's.
* Jitter: CUBIC alone has {} times BBR's, which paces; windows that come and go take nothing off.

That the access point acts as one, and for the horizon that a class is of, was chosen after the law had run in this world (decision 20). On later moments and on
another run its tree's macro-F is above that of the last known class, of a threshold and of the most frequent class: `crates/sim/tests/long/oal_learning.rs` asserts
and prints it.

Vivace is printed and not judged: this one was written from parts of the paper. Its flows begin far above their share of so slow a hop, come down over
many seconds, and send most segments again meanwhile; where near stations are alone for long it sends few again. To do better says little.",
        of_bbr("cubic+threshold", Key::Throughput),
        of_bbr("cubic+threshold", Key::RttMean),
        of_bbr("cubic", Key::RttVariationMean),
    )
}
