//! "ATP in wireless mesh networks" (Zhang, Buck and Zappala 2011).

mod peers;
mod robust;
mod testbeds;
mod transfers;
mod walking;

use crate::study::{Results, Runner, Shipped, shipped};
use crate::{Figure, System};
use lasthop_experiment::ExperimentError;
use lasthop_report::page::{Bars, Chart, Check, Curve, MEANS, Section, Table, digits, mean, shown};
use lasthop_report::{Estimate, Key, Run};

pub(super) const SYSTEM: System = System {
    name: "atp",
    title: "ATP in a mesh (Zhang, Buck and Zappala)",
    figures: &[
        Figure { id: "stack", title: "Three flows, the middle one between the others", make: stack },
        Figure { id: "chains", title: "One flow over one to four hops", make: chains },
        Figure { id: "testbeds", title: "One, two and five flows on two testbeds", make: testbeds::testbeds },
        Figure { id: "transfers", title: "32 random transfers over a whole mesh", make: transfers::transfers },
        Figure { id: "walk", title: "A node that walks", make: walking::walking },
        Figure { id: "peers", title: "Beside other transports: Reno, NewReno, BBR, TCP-AP", make: peers::peers },
        Figure { id: "robust", title: "Adaptive's constants halved and doubled", make: robust::robust },
    ],
    preface: PREFACE,
    headlines: &["stack", "chains", "testbeds", "transfers"],
};

const PREFACE: &str = "
# ATP in a mesh, reproduced

Zhang, Buck and Zappala 2011, and what goes beyond it. Everything is simulated over Lasthop's model
of the Wi-Fi hop, which is validated against ns-3. **Nothing here ran on radio hardware.** `lasthop
reproduce atp` writes these pages.

## Result

{result}

## How to read it

Values are means over ten seeds, ± half of their 95 % confidence intervals; whiskers of bars are
standard deviations of single runs. The mean decides whether a requirement is met. A requirement
without the paper's number is this project's own.

The paper measured a testbed of 802.11a; its channels are not known. The stack and the chains are
those of ns-3 runs and lose nothing but what collides; the testbeds have the paper's rates and
powers, and losses that follow from where their nodes stand. All were fixed before ATP ran in them.
Hosts take 20 us to send a packet on ([decision 24](../decisions/0024-host-response-delay.md)).

Log utility is the sum of the logarithms of the flows' throughputs in kbit/s, none counted as less
than 1 kbit/s; the paper states neither base nor unit. A flow starves if it gets less than a tenth
of an equal share.

Rows: `tahoe` is TCP Tahoe without SACK and RACK, the paper's comparison; `cubic` today's TCP;
`default`, `aggressive` and `adaptive` are ATP with feedback every second, every 40 ms, and every
twenty packets. The paper says of Adaptive's rule only that it is dynamic: ours is our own.
`on-change` is a fourth variant, which the paper's authors wish for: it tells of the rate when that
has changed by a tenth.
";

const STACK: Shipped = shipped!("atp", "stack");
const CHAIN: Shipped = shipped!("atp", "chain");
const LAWS: [&str; 6] = ["cubic", "tahoe", "default", "aggressive", "adaptive", "on-change"];

/// An empty table of what each law makes of a world.
fn by_law() -> Table {
    Table::new(&[
        "world",
        "law",
        "total (Mbit/s)",
        "log utility (ln)",
        "log utility (log10)",
        "starved",
        "Jain",
        "end to end, mean (ms)",
        "sent again",
    ])
}

fn rows<'r>(world: &'r str, run: &'r Results, laws: &'r [&str]) -> impl Iterator<Item = Vec<String>> + 'r {
    laws.iter().map(move |law| {
        let keys = [
            Key::Throughput,
            Key::LogUtility,
            Key::LogUtility10,
            Key::StarvedShare,
            Key::Jain,
            Key::EndDelayMean,
            Key::RetransmissionRatio,
        ];
        run.row(&[world, *law], law, &keys)
    })
}

/// Laws by a figure, the best first.
fn order(run: &Results, laws: &[&'static str], key: Key) -> Vec<&'static str> {
    let mut sorted = laws.to_vec();
    sorted.sort_by(|one, other| mean(&run.of(other, key)).total_cmp(&mean(&run.of(one, key))));
    sorted
}

fn stack(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let run = runner.run(STACK, &[])?;
    let mut table = by_law();
    table.rows.extend(rows("stack", &run, &LAWS));
    let mut flows = Table::new(&["law", "outer (Mbit/s)", "middle", "outer"]);
    for law in LAWS {
        let rate = |station: &str| shown(&run.of_station(law, station, Key::Throughput));
        flows.rows.push(vec![law.into(), rate("a"), rate("b-sink"), rate("c-sink")]);
    }
    let paper = ["adaptive", "default", "aggressive", "tahoe"];
    let ours = order(&run, &paper, Key::LogUtility);
    let gain = |law| mean(&run.of(law, Key::LogUtility10)) - mean(&run.of("tahoe", Key::LogUtility10));
    let checks = vec![
        Check::new("order of log utility, the highest first", &paper.join(" > "), ours.join(" > "), ours == paper)
            .headline(),
        Check::new(
            "log utility (log10) above Tahoe's: adaptive, default, aggressive",
            "1.04, 0.88, 0.66, if to base 10",
            ["adaptive", "default", "aggressive"].map(|law| digits(gain(law))).join(", "),
            None,
        )
        .headline(),
        fourth("the stack", &run),
    ];
    let bar = |law: &str| -> Vec<Estimate> {
        ["a", "b-sink", "c-sink"].map(|station| run.of_station(law, station, Key::Throughput)).into()
    };
    let bars = Bars {
        file: "atp-stack".into(),
        title: "Goodput of the stack's flows".into(),
        y: "goodput (Mbit/s)".into(),
        groups: ["outer", "middle", "outer"].map(String::from).into(),
        bars: LAWS.into_iter().map(|law| (law.to_owned(), bar(law))).collect(),
    };
    Ok(Section {
        title: "The stack".into(),
        text: "Three flows over one hop each. The nodes of the middle link hear all others; those of the outer links do not hear each other and leave the middle one no gap."
            .into(),
        reason: "Default hears of its path once a second, and its order among the variants changes from seed to seed; `on-change` differs from Adaptive by less than its interval.".into(),
        checks,
        tables: vec![table.columns(&[1, 2, 4, 5, 7]), flows.data().named("flows"), floors(&run, &paper).data().named("floors")],
        pictures: vec![bars.picture()],
        ..Section::default()
    })
}

/// The sum of the logarithms of the laws' goodputs where no flow counts as less than a floor: the paper states none.
fn floors(run: &Results, laws: &[&'static str]) -> Table {
    let utility = |law: &str, floor: f64| {
        let of = |run: &Run| {
            let rates = run.record.streams.iter().map(|stream| stream.figures.get(&Key::Throughput)?.value());
            rates.map(|mbit| Some((mbit? * 1e3).max(floor).log10())).sum::<Option<f64>>()
        };
        digits(mean(&run.over_runs(law, "", of)))
    };
    let mut table = Table::new(&[&["log utility (log10), no flow below (kbit/s)"], laws].concat());
    let row = |floor: f64| [vec![floor.to_string()], laws.iter().map(|law| utility(law, floor)).collect()].concat();
    table.rows = [0.1, 1.0, 10.0, 100.0].map(row).to_vec();
    table
}

/// So many of a thing, in words of a table.
fn count(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// What is asked of the fourth variant in a world.
fn fourth(world: &str, run: &Results) -> Check {
    let of = |law, key| mean(&run.of(law, key));
    let [(utility, goodput), (adaptive, least)] =
        ["on-change", "adaptive"].map(|law| (of(law, Key::LogUtility), of(law, Key::Throughput)));
    let (more, part) = (utility - adaptive, goodput / least);
    Check::new(
        &format!("{world}: on-change beside Adaptive: log utility (ln), goodput"),
        "more, and no less",
        format!("{}{}, {}", if more < 0.0 { "" } else { "+" }, digits(more), digits(part)),
        more > 0.0 && part >= 1.0,
    )
    .headline()
}

fn chains(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let mut table = by_law();
    let mut lines: Vec<Vec<(f64, Estimate)>> = vec![Vec::new(); LAWS.len()];
    let mut above = Vec::new();
    for hops in 1..=4usize {
        let run = runner.run(CHAIN, &[("traffic.0.from", format!("n{hops}").into())])?;
        table.rows.extend(rows(&count(hops, "hop"), &run, &LAWS));
        for (line, law) in lines.iter_mut().zip(LAWS) {
            line.push((hops as f64, run.of(law, Key::Throughput)));
        }
        above.push(run.multiple("adaptive", "default", Key::Throughput));
    }
    Ok(Section {
        title: "Chains".into(),
        text: "One flow from a node to the gateway. TCP carries more than ATP over every number of hops: it keeps a queue, and ATP sends at 1/D with D = Q + T, so that any queue slows it down (with \
               Poisson arrivals at 59 % of the hop's capacity, by M/D/1). ATP's delay is a tenth of TCP's and less. Default climbs until the queue overflows, and then goes for seconds at \
               the few packets that a full queue's D allows."
            .into(),
        checks: vec![
            Check::new(
                "Adaptive's goodput over Default's, 1 to 4 hops",
                "on par, no figure: each ≥ 0.95",
                above.iter().map(shown).collect::<Vec<_>>().join(", "),
                above.iter().all(|times| mean(times) >= 0.95),
            )
            .headline(),
        ],
        tables: vec![table.data()],
        charts: vec![Chart {
            file: "atp-chains".into(),
            title: "One flow over one to four hops at 24 Mbit/s".into(),
            x: "hops".into(),
            y: "goodput (Mbit/s)".into(),
            curves: LAWS.into_iter().zip(lines).map(|(law, line)| Curve::estimated(law, line)).collect(),
            note: MEANS.into(),
            ..Chart::default()
        }],
        ..Section::default()
    })
}
