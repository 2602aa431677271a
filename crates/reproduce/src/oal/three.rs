//! The paper's set-up: three access points, nine laptops, nine downloads. Figures 8 to 11, and Jain's index over access points.

use super::{CLAIMS, COLUMNS, Claim, OURS, RIVALS, SET_UP, magnitudes};
use crate::study::{Edit, Results, Runner};
use lasthop_experiment::ExperimentError;
use lasthop_report::page::{Bars, Check, Section, Table, digits, mean, shown};
use lasthop_report::{Estimate, Key, Run};
use lasthop_units::stats;

/// The predictor that the agent has by default.
const DEFAULT: &str = "cubic+threshold";
/// The modern access point's queue, in place of an agent.
const MODERN: &str = "cubic+fq-codel-airtime";
const LAWS: [&str; 7] = ["cubic", "bbr", "vivace", OURS, "cubic+paper-capacity", DEFAULT, MODERN];
const ACCESS_POINTS: [&str; 3] = ["first", "second", "third"];
const PLACES: [&str; 3] = ["near", "middle", "far"];

/// What the paper has a figure of: its number, what it shows, and by what that is multiplied.
const FIGURES: [(u32, &str, Key, f64); 4] = [
    (8, "throughput (Mbit/s)", Key::Throughput, 1.0),
    (9, "round trip, mean (ms)", Key::RttMean, 1.0),
    (10, "deviation of the round trip (ms)", Key::RttVariationMean, 1.0),
    (11, "segments sent again (%)", Key::RetransmissionRatio, 100.0),
];

/// What one access point's stations have in one run: of throughput their sum, of what is sent again their share of what all sent, of all
/// else their mean.
fn of_access_point(run: &Run, access_point: &str, key: Key) -> Option<f64> {
    let of = |key| {
        let stations = PLACES.map(|place| Results::figure_of(run, &format!("{access_point}-{place}"), key));
        stations.into_iter().collect::<Option<Vec<f64>>>()
    };
    let values = of(key)?;
    Some(match key {
        Key::Throughput => values.iter().sum(),
        Key::RetransmissionRatio => {
            // What was carried once, and the rest of what was sent.
            let carried = of(Key::Throughput)?;
            let sent: Vec<f64> = carried.iter().zip(&values).map(|(carried, again)| carried / (1.0 - again)).collect();
            sent.iter().zip(&values).map(|(sent, again)| sent * again).sum::<f64>() / sent.iter().sum::<f64>()
        }
        _ => values.iter().sum::<f64>() / PLACES.len() as f64,
    })
}

/// Jain's index over the access points (equation 1.5).
fn jain(run: &Results, law: &str, key: Key) -> Estimate {
    run.over_runs(law, "1", |run| {
        let each = ACCESS_POINTS.map(|name| of_access_point(run, name, key));
        stats::jain(&each.into_iter().collect::<Option<Vec<f64>>>()?)
    })
}

/// What each access point's stations have under a law, as its figure shows it.
fn by_access_point(run: &Results, law: &str, (.., key, factor): (u32, &str, Key, f64)) -> [Estimate; 3] {
    ACCESS_POINTS.map(|name| run.over_runs(law, key.unit(), |run| Some(of_access_point(run, name, key)? * factor)))
}

fn bars(run: &Results) -> Vec<Bars> {
    let of = |figure: (u32, &str, Key, f64)| {
        let (number, what, ..) = figure;
        Bars {
            file: format!("oal-figure-{number}"),
            title: format!("As Figure {number}: {what}, by access point"),
            y: what.to_owned(),
            groups: ACCESS_POINTS.map(str::to_owned).to_vec(),
            bars: LAWS.map(|law| (law.to_owned(), by_access_point(run, law, figure).to_vec())).to_vec(),
        }
    };
    FIGURES.into_iter().map(of).collect()
}

/// The paper's orders, and then its magnitudes.
fn checks(run: &Results) -> Vec<Check> {
    let mut checks = Vec::new();
    for (rival, name) in RIVALS {
        for Claim { what, key, more, .. } in &CLAIMS {
            let [ours, theirs] = [OURS, rival].map(|law| mean(&run.of(law, *key)));
            let (order, met) = if *more { ("above", ours > theirs) } else { ("below", ours < theirs) };
            let values = format!("{} and {}", shown(&run.of(OURS, *key)), shown(&run.of(rival, *key)));
            checks.push(Check::new(&format!("{what}: {order} {name}'s"), "so in its figures", values, met));
            // A run's figure weighs laptops by their acknowledgements; the paper's pictures are by access point.
            let Some(figure) = FIGURES.into_iter().find(|(_, _, of, _)| of == key) else { continue };
            let [ours, theirs] = [OURS, rival].map(|law| by_access_point(run, law, figure));
            let in_order = |(ours, theirs)| (mean(ours) > mean(theirs)) == *more;
            let each = |all: &[Estimate; 3]| all.each_ref().map(|one| digits(mean(one))).join(", ");
            checks.push(Check::new(
                &format!("Figure {}, by access point: {order} {name}'s", figure.0),
                "so in its figures",
                format!("{}; {}", each(&ours), each(&theirs)),
                ours.iter().zip(&theirs).all(in_order),
            ));
        }
    }
    checks.extend(magnitudes(run).into_iter().map(|check| Check { headline: false, ..check }));
    for law in [OURS, DEFAULT] {
        let [rate, delay] = [Key::Throughput, Key::HopDelayP95].map(|key| run.multiple(law, MODERN, key));
        let (enough, short) = (mean(&rate) >= 0.95, mean(&delay) <= 0.4);
        checks.push(Check::new(&format!("{law}: throughput over the modern queue's"), "≥ 0.95", shown(&rate), enough));
        checks.push(Check::new(
            &format!("{law}: p95 of the hop's delay over the modern queue's"),
            "≤ 0.4",
            shown(&delay),
            short,
        ));
    }
    let (ours, bbr) = (jain(run, OURS, Key::Throughput), jain(run, "bbr", Key::Throughput));
    checks.push(Check::new(
        "Jain's index of throughput over access points, and BBR's",
        "slightly below BBR's",
        format!("{} and {}", shown(&ours), shown(&bbr)),
        None,
    ));
    checks
}

pub(super) fn three(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    // One seed of 600 s is long where somebody only wants to see whether it works.
    let short: [Edit<'_>; 1] = [("duration", "60 s".into())];
    let run = runner.run(SET_UP, if runner.quick { &short } else { &[] })?;
    let mut fairness =
        Table::new(&["Jain's index over access points, of", "throughput", "round trip", "its deviation"]);
    let keys = [Key::Throughput, Key::RttMean, Key::RttVariationMean];
    fairness.rows =
        LAWS.map(|law| [vec![law.to_owned()], keys.map(|key| shown(&jain(&run, law, key))).to_vec()].concat()).to_vec();
    Ok(Section {
        title: "Three access points, nine laptops".into(),
        text: text(&run),
        reason: reason(&run),
        checks: checks(&run),
        tables: vec![run.by_law(&LAWS, &COLUMNS).columns(&[0, 1, 2, 3, 6]), fairness.data().named("fairness")],
        pictures: bars(&run).iter().map(Bars::picture).collect(),
        ..Section::default()
    })
}

/// What was run, and what the figures come from.
fn text(run: &Results) -> String {
    let again = |law: &str| format!("{:.2} %", 100.0 * mean(&run.of(law, Key::RetransmissionRatio)));
    let times = |key: Key| shown(&run.multiple(OURS, "cubic", key));
    format!(
        "Figures 8 to 11. All rows but the last have OpenWrt 15.05's queue; `cubic+paper-capacity` has the paper's own rule for the capacity, and the last row is CUBIC over the queue of today's \
         mac80211, the modern queue. This set-up loses little: CUBIC sends {} again, and the law acts from 5 % on. So the learned row is nearly CUBIC's: {} times its throughput, {} times its round \
         trip; an oracle in place of the tree is never tight. What it has over BBR and Vivace is CUBIC's lead over them.",
        again("cubic"),
        times(Key::Throughput),
        times(Key::RttMean),
    )
}

/// Why what is missed is missed.
fn reason(run: &Results) -> String {
    format!(
        "BBR and Vivace pace; CUBIC alone has {} ms of jitter, and windows that are seldom tight take little off it. A run's figure weighs laptops by their acknowledgements, the paper's picture \
         counts them alike. The threshold acts on the queue and not on losses: less delay for less throughput.",
        shown(&run.of("cubic", Key::RttVariationMean)),
    )
}
