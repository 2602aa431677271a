//! "On-AP learning": congestion prediction and receive-window rewriting on access points (Lin and Jiang 2020).

use crate::study::{Results, Runner, Shipped, shipped};
use crate::{Figure, System};
use lasthop_experiment::ExperimentError;
use lasthop_report::Key;
use lasthop_report::page::{Check, Section, mean, shown};

pub(super) const SYSTEM: System = System {
    name: "oal",
    title: "Learning on the access point (Lin and Jiang)",
    figures: &[Figure { id: "library", title: "A library's access point that loses", make: library }],
    preface: PREFACE,
    headlines: &["library"],
};

const PREFACE: &str = "
# Learning on the access point, reproduced

Written by `lasthop reproduce oal`; `--quick` takes one seed, `--out DIR` writes elsewhere. The paper is Lin and Jiang 2020. Everything was simulated in
virtual time over Lasthop's model of the Wi-Fi hop, which is validated against ns-3. **Nothing here ran on radio hardware.**

## Result

{result}

## How to read it

Values are means over five seeds (one with `--quick`), ± half of their 95 % confidence intervals. A requirement is met or not by the means.

The paper measured nine laptops at three access points. Which rates they ran, where they stood and how long the queues were, it does not say; it does say
what share of segments its access points lost. The world here is one access point with a queue of that age, and loses under CUBIC what the paper counted
(`crates/sim/tests/oal_world.rs`): that was fixed before any law ran in it.

Rows: `cubic+learned` is CUBIC behind an access point that learns, as the paper's: every second a tree is trained from the losses that passing headers show, and
windows are tight while it foresees losses of 5 % or more, but for the twentieth of its time in which it lets be to learn. `cubic+threshold` has the
same windows, and tightens them as soon as the backlog takes 2.5 ms to drain or a packet is dropped. `bbr` and `vivace` are Lasthop's own.
";

const LIBRARY: Shipped = shipped!("oal", "learned");
const LAWS: [&str; 5] = ["cubic", "bbr", "vivace", "cubic+threshold", "cubic+learned"];
const OURS: &str = "cubic+learned";
const COLUMNS: [(&str, Key); 7] = [
    ("total (Mbit/s)", Key::Throughput),
    ("round trip, mean (ms)", Key::RttMean),
    ("its deviation (ms)", Key::RttVariationMean),
    ("hop delay, mean (ms)", Key::HopDelayMean),
    ("p95", Key::HopDelayP95),
    ("sent again", Key::RetransmissionRatio),
    ("page object, p95 (ms)", Key::FetchP95),
];

/// What the paper says of one figure: ours as a multiple of BBR's and of Vivace's.
struct Claim {
    what: &'static str,
    key: Key,
    bounds: [f64; 2],
    /// How the paper may be read otherwise.
    doubt: &'static str,
}

const CLAIMS: [Claim; 4] = [
    Claim { what: "throughput", key: Key::Throughput, bounds: [1.175, 1.165], doubt: "" },
    Claim { what: "round trip, mean", key: Key::RttMean, bounds: [0.70, 0.74], doubt: "" },
    Claim {
        what: "jitter (mean deviation of the round trip)",
        key: Key::RttVariationMean,
        bounds: [0.84, 0.98],
        doubt: "",
    },
    Claim {
        what: "share of segments sent again",
        key: Key::RetransmissionRatio,
        bounds: [0.748, 0.874],
        doubt: ", if its percentage is relative",
    },
];

/// Against BBR and, for the reason that the section's text gives not judged, against Vivace.
fn claims(run: &Results) -> Vec<Check> {
    let mut checks = Vec::new();
    for (place, (rival, name, judged)) in [("bbr", "BBR", true), ("vivace", "Vivace", false)].into_iter().enumerate() {
        for Claim { what, key, bounds, doubt } in &CLAIMS {
            let (bound, ours) = (bounds[place], run.multiple(OURS, rival, *key));
            let met = if *key == Key::Throughput { mean(&ours) >= bound } else { mean(&ours) <= bound };
            let paper = format!("{bound}{doubt}{}", if judged { "" } else { "; not judged" });
            let what = format!("{what}, as a multiple of {name}'s");
            checks.push(Check::new(&what, &paper, shown(&ours), judged.then_some(met)).headline());
        }
    }
    checks
}

fn library(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let run = runner.run(LIBRARY, &[])?;
    Ok(Section {
        title: "A library's access point".into(),
        text: text(&run),
        checks: claims(&run),
        tables: vec![run.by_law(&LAWS, &COLUMNS)],
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
another run its tree's macro-F is above that of the last known class, of a threshold and of the most frequent class: `crates/sim/tests/oal_learning.rs` asserts
and prints it.

Vivace is printed and not judged: this one was written from parts of the paper. Its flows begin far above their share of so slow a hop, come down over
many seconds, and send most segments again meanwhile; where near stations are alone for long it sends few again. To do better says little.",
        of_bbr("cubic+threshold", Key::Throughput),
        of_bbr("cubic+threshold", Key::RttMean),
        of_bbr("cubic", Key::RttVariationMean),
    )
}
