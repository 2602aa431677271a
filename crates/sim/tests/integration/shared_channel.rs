//! Two access points on one channel, each with its own regulator: both hold the target, and neither starves the other.

use crate::support;

use lasthop_report::{Entity, Key, RunRecord, SeriesKind};
use lasthop_scenario::Scenario;
use lasthop_signals::Node;
use support::{Wifi, parse, simulate, value};

/// Six stations each; the second access point's begin 10 s later. RTS, so that collisions cost little. The last half counts.
fn two() -> String {
    let (times, hop) = (("100 s", "50 s"), "rts-threshold = \"500 B\"");
    Wifi { title: "Two access points", times, hop, rest: STATIONS, ..Wifi::default() }.text()
}

const STATIONS: &str = r#"
[[access-point]]
name = "next-door"
[[station]]
name = "ours"
count = 6
mcs = 9
[[station]]
name = "theirs"
count = 6
mcs = 9
access-point = "next-door"
[[traffic]]
kind = "bulk"
to = "ours"
[[traffic]]
kind = "bulk"
to = "theirs"
start = "10 s"
[laws.regulator]
sender = "cubic"
regulator = { target = "10 ms" }
[laws.cubic]
sender = "cubic"
[laws.ap]
sender = "cubic"
agent = {}
"#;

/// Sum over the stations of one access point.
fn sum(record: &RunRecord, of: &str, key: Key) -> f64 {
    let stations = record.stations.iter().filter(|station| station.name.starts_with(of));
    stations.map(|station| station.figures[&key].value().expect("observed")).sum()
}

#[test]
fn stations_belong_to_the_access_point_that_they_name() {
    let scenario = parse(&two());
    let homes: Vec<Node> = (0..12).map(|place| scenario.access_point_of(place)).collect();
    assert_eq!(homes[..6], [Scenario::AP; 6]);
    assert_eq!(homes[6..], [Node(13); 6]);
    assert_eq!(scenario.further_access_points(), ["next-door"]);
}

#[test]
fn two_regulators_hold_the_target_and_come_to_equal_shares() {
    let scenario = parse(&two());
    let ours = simulate(&scenario, "regulator", 1);
    let cubic = simulate(&parse(&two().replace("100 s", "20 s").replace("50 s", "12 s")), "cubic", 1);
    for of in ["ours", "theirs"] {
        let interval = sum(&ours, of, Key::FrameInterval) / 6.0;
        assert!((8.5..=11.5).contains(&interval), "{of}: {interval} ms");
    }
    let shares = ["ours", "theirs"].map(|of| sum(&ours, of, Key::Throughput));
    assert!(shares[1] > 0.75 * shares[0] && shares[0] > 0.75 * shares[1], "{shares:?}");
    let p95 = |record: &RunRecord| value(record, Key::HopDelayP95);
    assert!(p95(&ours) < 0.2 * p95(&cubic), "{} and {}", p95(&ours), p95(&cubic));
    // To each of them the other is overhead: far more than six accesses of 0.2 to 0.35 ms.
    for name in ["ours-1", "theirs-1"] {
        let own = |entity: &Entity| matches!(entity, Entity::Station(station) if station == name);
        let track = ours.tracks.iter().find(|track| track.kind == SeriesKind::Overhead && own(&track.entity));
        let last = track.and_then(|track| track.values.iter().rev().flatten().next()).expect("sampled");
        assert!((4_000.0..9_000.0).contains(last), "{name}: {last} us");
    }
}

#[test]
fn each_access_point_has_an_agent_of_its_own() {
    let scenario = parse(&two().replace("100 s", "12 s").replace("50 s", "4 s").replace("\"10 s\"", "\"0 s\""));
    let p95 = |law| value(&simulate(&scenario, law, 1), Key::HopDelayP95);
    assert!(p95("ap") < 0.5 * p95("cubic"), "{} and {}", p95("ap"), p95("cubic"));
}

#[test]
fn frames_of_hidden_access_points_collide_where_both_are_heard() {
    // Each access point has one station, which hears both; without RTS.
    let text =
        two().replace("rts-threshold = \"500 B\"\n", "").replace("count = 6", "count = 1").replace("100 s", "6 s");
    let text = text.replace("50 s", "1 s").replace("start = \"10 s\"", "");
    let heard = parse(&text);
    let hidden = parse(&text.replace("name = \"next-door\"", "name = \"next-door\"\nreach-ap = \"none\""));
    let rate = |scenario| value(&simulate(scenario, "cubic", 1), Key::Throughput);
    let (heard, hidden) = (rate(&heard), rate(&hidden));
    assert!(heard > 200.0 && hidden < 0.85 * heard, "{heard} and {hidden} Mbit/s");
}
