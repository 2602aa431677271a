//! Whatever stands in a scenario file: an answer, never a panic, and a scenario that loads can be built.

use lasthop_radio::LastHop;
use lasthop_scenario::{Error, Scenario, StreamKind};
use lasthop_units::{Span, Time};
use proptest::prelude::*;
use std::path::Path;

/// Every table of a scenario with nothing but what must be there: the rest is defaults.
const LEAST: &str = r#"
title = "The least"
duration = "1 s"
[wire]
rate = "1 Gbit/s"
delay = "10 ms"
[hop.wifi]
standard = "802.11ac"
queue = { kind = "fq-codel-airtime" }
[[station]]
name = "a"
mcs = 0
[[neighbour]]
name = "b"
mcs = 0
load = "saturated"
[[traffic]]
kind = "bulk"
to = "a"
[[traffic]]
kind = "probe"
to = "each"
[[traffic]]
kind = "fetch"
to = "each"
[laws.ap]
sender = "cubic"
agent = {}
"#;

const FULL: [&str; 4] = [
    LEAST,
    include_str!("../../../../scenarios/first-light.toml"),
    include_str!("../../../../scenarios/wired/bottleneck-50mbit.toml"),
    include_str!("../../../../scenarios/wifi/one-station.toml"),
];

/// Values of every sort, right somewhere and wrong elsewhere.
const VALUES: [&str; 24] = [
    "0",
    "-1",
    "7",
    "18446744073709551616",
    "1.5",
    "nan",
    "inf",
    "true",
    "\"\"",
    "\"each\"",
    "\"20 ms\"",
    "\"0 s\"",
    "\"1 s\"",
    "\"1 min\"",
    "\"160 MHz\"",
    "\"54 Mbit/s\"",
    "\"0 bit/s\"",
    "\"802.11g\"",
    "\"fifo\"",
    "\"saturated\"",
    "[]",
    "{}",
    "[{ at = \"0 s\", mcs = 1 }]",
    "1979-05-27",
];

fn load(text: &str) -> Result<Scenario, Error> {
    Scenario::parse("some.toml", text, Path::new("."))
}

#[test]
fn every_default_reads() {
    let scenario = load(LEAST).unwrap_or_else(|error| panic!("{}", error.plain()));
    assert_eq!(scenario.seeds(), [1, 2, 3, 4, 5]);
    assert_eq!(
        scenario.laws()[0].agent().map(|agent| (agent.name(), agent.settings().is_empty())),
        Some(("oal", true))
    );
    let fq_codel = lasthop_radio::queue::FqCodelParams::default();
    assert_eq!(
        scenario.hop().plan().queue(),
        Some(lasthop_radio::queue::HopQueue::Stations(lasthop_radio::queue::Kind::FqCodelAirtime(fq_codel)))
    );
    let LastHop::Wifi(plan) = scenario.hop() else { panic!("a Wi-Fi hop") };
    assert_eq!(plan.params().background[0].active, [(Time::ZERO, Time::ZERO + Span::from_secs(1))]);
    assert!(matches!(scenario.streams()[1].kind, StreamKind::Probe { every, .. } if every == Span::from_millis(20)));
}

#[test]
fn periods_are_spelled_out_to_the_end_of_the_run() {
    let text = LEAST.replace("load =", "period = \"400 ms\"\nactive-for = \"250 ms\"\nfirst = \"100 ms\"\nload =");
    let scenario = load(&text).unwrap_or_else(|error| panic!("{}", error.plain()));
    let LastHop::Wifi(plan) = scenario.hop() else { panic!("a Wi-Fi hop") };
    let ms = |ms: u64| Time::ZERO + Span::from_millis(ms);
    assert_eq!(plan.params().background[0].active, [(ms(100), ms(350)), (ms(500), ms(750)), (ms(900), ms(1000))]);
}

#[test]
fn more_nodes_than_the_hop_models_hold_are_refused() {
    let station = |n: usize| format!("[[station]]\nname = \"s{n}\"\nmcs = 0\n");
    let text = |stations: usize| LEAST.to_owned() + &(1..stations).map(station).collect::<String>();
    assert!(load(&text(1021)).is_ok());
    let error = load(&text(1022)).expect_err("1 + 1022 + 2 nodes").plain();
    assert!(error.contains("too many nodes: stations 1022, neighbours 1"), "{error}");
    assert!(load(&text(70_000)).is_err());
}

/// A scenario with one line changed as a person or an editor might.
fn changed(text: &str, at: usize, how: usize, value: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let at = at % lines.len();
    match how % 5 {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, lines[at].clone()),
        2 => lines[at] = lines[at].split('=').next().unwrap_or_default().to_owned() + "= " + value,
        3 => lines[at] = lines[at].replacen(['a', 'e', '1', '"', '['], "", 1),
        _ => lines.insert(at, format!("{value} = {value}")),
    }
    lines.join("\n")
}

/// Either it can be built in every part, or every problem says where it is and what would be right.
fn answered(text: &str) {
    match load(text) {
        Ok(scenario) => {
            assert!(scenario.warm_up() < scenario.duration());
            for law in scenario.laws() {
                let under = scenario.hop_under(law);
                assert_eq!(under.plan().queue(), law.queue.or(scenario.hop().plan().queue()));
            }
            for stream in scenario.streams() {
                assert!(scenario.station_of(stream.to).is_some());
                assert!(stream.start < stream.stop && stream.stop <= Time::ZERO + scenario.duration());
            }
        }
        Err(error) => {
            assert!(!error.problems().is_empty(), "refused without a reason");
            for problem in error.problems() {
                assert!(!problem.what().is_empty() && !problem.remedy().is_empty(), "{problem:?}");
                assert!(problem.line() <= text.lines().count().max(1) && problem.column() >= 1, "{problem:?}");
            }
            assert!(format!("{:?}", miette::Report::new(error)).contains("some.toml"));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn changed_scenarios_get_an_answer(
        base in 0..FULL.len(),
        changes in prop::collection::vec((any::<usize>(), any::<usize>(), 0..VALUES.len()), 1..4),
    ) {
        let text = changes.iter().fold(FULL[base].to_owned(), |text, (at, how, value)| {
            changed(&text, *at, *how, VALUES[*value])
        });
        answered(&text);
    }

    #[test]
    fn any_text_gets_an_answer(text in any::<String>()) {
        answered(&text);
    }
}
