//! "On-AP learning": congestion prediction and receive-window rewriting on access points (Lin and Jiang 2020).

mod ablation;
mod closed_loop;
mod library;
mod moving;
mod oracle;
mod three;
mod trees;
mod windows;

use crate::study::{Results, Shipped, shipped};
use crate::{Figure, System};
use lasthop_laws::HopLaw;
use lasthop_laws::oal::predictor::Predictor;
use lasthop_laws::oal::{AccessPoint, Params};
use lasthop_report::Key;
use lasthop_report::page::{Check, mean, shown};
use lasthop_scenario::{Scenario, SetUp};
use lasthop_sim::{SimError, World, build_with};
use lasthop_units::Seed;

pub(super) const SYSTEM: System = System {
    name: "oal",
    title: "Learning on the access point (Lin and Jiang)",
    figures: &[
        Figure { id: "three", title: "Three access points, nine laptops (Figures 8 to 11)", make: three::three },
        Figure { id: "library", title: "A library's access point that loses", make: library::library },
        Figure { id: "ablation", title: "What foresight is worth", make: ablation::ablation },
        Figure { id: "trees", title: "What trees foresee (Tables 2 and 4, Figure 3)", make: trees::trees },
        Figure { id: "loop", title: "Ten minutes in a closed loop", make: closed_loop::closed_loop },
        Figure {
            id: "windows",
            title: "Windows that an access point infers, and what it makes of them",
            make: windows::windows,
        },
        Figure { id: "1", title: "A laptop that moves", make: moving::moving },
    ],
    preface: PREFACE,
    headlines: &["library"],
};

const PREFACE: &str = "
# Learning on the access point, reproduced

Lin and Jiang 2020, and what goes beyond it. Everything is simulated over Lasthop's model of the
Wi-Fi hop, which is validated against ns-3. **Nothing here ran on radio hardware.** `lasthop
reproduce oal` writes these pages.

## Result

{result}

## How to read it

Values are means over seeds, ± half of their 95 % confidence intervals; whiskers of bars are
standard deviations of single runs. The mean decides whether a requirement is met. A requirement
without the paper's number is this project's own.

The paper measured nine laptops at three access points; rates, places and queues it does not tell.
So there are two worlds. One has what the paper tells of its set-up. The other, the library, is one
access point with a queue of that age, which loses under CUBIC what the paper counted
(`crates/sim/tests/integration/oal_world.rs`). Both were fixed before any law ran in them. That the
access point acts as one, and its horizon, was chosen after the law had run in the library
([decision 20](../decisions/0020-train-trees-per-horizon.md)).

Jitter is the mean deviation of the round trip. Rows: `cubic+learned` is CUBIC behind an access
point that learns, as the paper's. Every second a tree is trained from the losses that passing
headers show. Windows are tight while it foresees losses of 5 % or more, but for the twentieth of
its time in which it leaves them open to learn. `cubic+threshold` has the same windows and tightens
them as soon as the backlog takes 2.5 ms to drain or a packet is dropped. `bbr` and `vivace` are
Lasthop's own; Vivace's is written from parts of the paper, and magnitudes against it are not
judged.
";

const LIBRARY: Shipped = shipped!("oal", "learned");
const SET_UP: Shipped = shipped!("oal", "three-access-points");
const OURS: &str = "cubic+learned";
/// Whom the paper compares with, in the order of its bounds.
const RIVALS: [(&str, &str); 2] = [("bbr", "BBR"), ("vivace", "Vivace")];
const COLUMNS: [(&str, Key); 6] = [
    ("total (Mbit/s)", Key::Throughput),
    ("round trip, mean (ms)", Key::RttMean),
    ("its deviation (ms)", Key::RttVariationMean),
    ("hop delay, mean (ms)", Key::HopDelayMean),
    ("p95", Key::HopDelayP95),
    ("sent again", Key::RetransmissionRatio),
];

/// The world of a set-up; access points that have an agent in it act by the law with these parameters and this predictor.
fn world(
    (scenario, law, seed): (&Scenario, &SetUp, u64),
    params: &Params,
    predictor: &dyn Fn() -> Box<dyn Predictor>,
) -> Result<World, SimError> {
    let own = || AccessPoint::with_predictor(params.clone(), predictor()).expect("the defaults are valid");
    build_with(scenario, law, Seed(seed), false, &mut |_, law| law.map(|_| Box::new(own()) as Box<dyn HopLaw>))
}

/// What the paper says of one figure: ours as a multiple of BBR's and of Vivace's.
struct Claim {
    what: &'static str,
    key: Key,
    /// Whether more is better.
    more: bool,
    bounds: [f64; 2],
    /// How the paper may be read otherwise.
    doubt: &'static str,
}

const CLAIMS: [Claim; 4] = [
    Claim { what: "throughput", key: Key::Throughput, more: true, bounds: [1.175, 1.165], doubt: "" },
    Claim { what: "mean round trip", key: Key::RttMean, more: false, bounds: [0.70, 0.74], doubt: "" },
    Claim { what: "jitter", key: Key::RttVariationMean, more: false, bounds: [0.84, 0.98], doubt: "" },
    Claim {
        what: "sent again",
        key: Key::RetransmissionRatio,
        more: false,
        bounds: [0.748, 0.874],
        doubt: ", if relative",
    },
];

/// Against BBR and, for the reason that the section's text gives not judged, against Vivace.
fn magnitudes(run: &Results) -> Vec<Check> {
    let mut checks = Vec::new();
    for (place, ((rival, name), judged)) in RIVALS.into_iter().zip([true, false]).enumerate() {
        for Claim { what, key, more, bounds, doubt } in &CLAIMS {
            let (bound, ours) = (bounds[place], run.multiple(OURS, rival, *key));
            let met = if *more { mean(&ours) >= bound } else { mean(&ours) <= bound };
            let paper = format!("{bound}{doubt}{}", if judged { "" } else { "; not judged" });
            let what = format!("{what} over {name}'s");
            checks.push(Check::new(&what, &paper, shown(&ours), judged.then_some(met)).headline());
        }
    }
    checks
}
