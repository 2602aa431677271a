//! PBE-CC over a simulated cell: its estimate against what the cell would really carry, and its rate and delay beside BBR's.

use crate::support;

use lasthop_laws::Why;
use lasthop_report::Key;
use lasthop_signals::Node;
use lasthop_sim::build;
use lasthop_units::{Seed, Span, Time};
use support::{parse, simulate, value};

/// A cell of 20 MHz with these stations and others beside them, 15 ms from the server.
fn cell(stations: &str, background: &str) -> String {
    format!(
        "title = \"Cell\"\nduration = \"12 s\"\nwarm-up = \"2 s\"\nseeds = 1\n[wire]\nrate = \"1 Gbit/s\"\ndelay = \"15 ms\"\n\
         [hop.cell]\ncarriers = [\"20 MHz\"]\n{background}{stations}[[traffic]]\nkind = \"bulk\"\nto = \"each\"\n\
         [laws.pbe]\nsender = \"pbe\"\n[laws.published]\nsender = {{ law = \"pbe\", headroom = \"0 s\" }}\n[laws.bbr]\nsender = \"bbr\"\n"
    )
}

const ONE: &str = "[[station]]\nname = \"a\"\ncqi = 12\nbit-error-rate = 1e-6\n";
const TWO: &str = "[[station]]\nname = \"a\"\ncqi = 12\nbit-error-rate = 1e-6\n[[station]]\nname = \"b\"\ncqi = 9\nbit-error-rate = 5e-6\n";
const OTHERS: &str = "[[hop.cell.background]]\nkind = \"data\"\nper-second = 1.0\nsize = \"500 kB\"\nsizes = \"fixed\"\n\
                      [[hop.cell.background]]\nkind = \"control\"\nper-second = 362.0\n";

/// Payload of a packet of 1500 octets: what is told is payload, what a cell carries are packets.
const PAYLOAD: f64 = 1448.0 / 1500.0;

/// How far what the first station tells is from what it could have had in the 40 ms to come, over looks a tenth of a second apart, as shares of
/// the mean of that.
#[derive(Debug)]
struct Errors {
    mean: f64,
    p95: f64,
    bias: f64,
    /// Mean error of an estimate that knows the mean of what is to come, and nothing else.
    floor: f64,
}

fn errors(text: &str) -> Errors {
    let scenario = parse(text);
    let law = scenario.law("pbe").expect("a law of the scenario");
    let mut world = build(&scenario, &law, Seed(1), false).expect("valid parameters");
    let looks: Vec<(f64, f64)> = (0..80)
        .map(|look| {
            world.run_until(Time::ZERO + Span::from_millis(3_000 + 101 * look));
            let told = world.told(Node(1)).expect("it tells from the first packet on").available.as_mbit_f64();
            // What is decided now is decoded 4 ms later.
            let could = world.saturated(Node(1), Span::from_millis(4), Span::from_millis(40));
            (told, could.carried.as_mbit_f64() * PAYLOAD)
        })
        .collect();
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| looks.iter().map(of).sum::<f64>() / looks.len() as f64;
    let could = mean(&|(_, could)| *could);
    let mut sorted: Vec<f64> = looks.iter().map(|(told, could)| (told - could).abs()).collect();
    sorted.sort_by(f64::total_cmp);
    Errors {
        mean: mean(&|(told, could)| (told - could).abs()) / could,
        p95: sorted[looks.len() * 95 / 100] / could,
        bias: mean(&|(told, could)| told - could) / could,
        floor: mean(&|(_, one)| (one - could).abs()) / could,
    }
}

/// The first station's decoder misses a DCI in twenty, and shows one in a hundred subframes that is none.
fn erring(text: &str) -> String {
    text.replacen("cqi = 12\n", "cqi = 12\nmissed-dci = 0.05\nfalse-dci = 0.01\n", 1)
}

/// The second station's queue is never empty.
fn full(text: &str) -> String {
    let bulk = "[[traffic]]\nkind = \"bulk\"\nto = \"each\"\n";
    text.replace(
        bulk,
        &format!("{}[[traffic]]\nkind = \"udp\"\nto = \"b\"\nrate = \"100 Mbit/s\"\n", bulk.replace("each", "a")),
    )
}

/// It is, every other 2 s.
fn on_off(text: &str) -> String {
    let udp = |start: u64| {
        format!(
            "[[traffic]]\nkind = \"udp\"\nto = \"b\"\nrate = \"60 Mbit/s\"\nstart = \"{start} s\"\nstop = \"{} s\"\n",
            start + 2
        )
    };
    let bulk = "[[traffic]]\nkind = \"bulk\"\nto = \"each\"\n";
    let bursts: String = [1, 5, 9].map(udp).concat();
    text.replace(bulk, &format!("{}{bursts}", bulk.replace("each", "a")))
}

/// Between greedy stations an estimate can be right. Beside bursts it cannot: it is what was, and shares what is idle with stations that will
/// not ask for their part in the time of a look.
#[test]
fn the_estimate_is_what_the_cell_would_carry() {
    let bursts =
        OTHERS.split_once("[[hop.cell.background]]\nkind = \"control\"").map(|(data, _)| data).expect("two kinds");
    let cases = [
        ("alone", cell(ONE, ""), 0.10),
        ("alone, errs", erring(&cell(ONE, "")), 0.10),
        ("two", cell(TWO, ""), 0.10),
        ("two, errs", erring(&cell(TWO, "")), 0.10),
        ("full", full(&cell(TWO, "")), 0.10),
        ("full, errs", erring(&full(&cell(TWO, ""))), 0.10),
        ("on/off", on_off(&cell(TWO, "")), 0.10),
        ("on/off, errs", erring(&on_off(&cell(TWO, ""))), 0.10),
        ("two, bursts", cell(TWO, bursts), 0.35),
        ("two, bursts and control", cell(TWO, OTHERS), 0.35),
    ];
    for (name, text, most) in cases {
        let errors = errors(&text);
        let Errors { mean, p95, bias, floor } = errors;
        println!("{name}: mean {mean:.3}, p95 {p95:.3}, bias {bias:+.3}; floor {floor:.3}");
        // A steady bias of a tenth would be a wrong estimate, whatever the cell's chance does.
        assert!(mean <= most && bias.abs() < 0.1, "{name}: {errors:?}");
    }
}

#[test]
fn the_cell_is_full_and_its_queue_short() {
    for (name, text) in [("alone", cell(ONE, "")), ("two", cell(TWO, "")), ("busy", cell(TWO, OTHERS))] {
        let of = |law: &str| {
            let record = simulate(&parse(&text), law, 1);
            (value(&record, Key::Throughput), value(&record, Key::HopDelayP95))
        };
        let laws = ["pbe", "published", "bbr"].map(|law| (law, of(law)));
        for (law, (rate, p95)) in laws {
            println!("{name}, {law}: {rate:.1} Mbit/s, p95 {p95:.1} ms");
        }
        let [(_, pbe), _, (_, bbr)] = laws;
        assert!(pbe.0 > 0.94 * bbr.0 && pbe.1 < 0.5 * bbr.1, "{name}: {pbe:?}, BBR {bbr:?}");
    }
}

/// Two downloads of one station wait in one queue: each can have half of what the station has.
#[test]
fn two_flows_of_a_station_share_what_it_has() {
    let one = cell(ONE, "");
    let bulk = "[[traffic]]\nkind = \"bulk\"\nto = \"each\"\n";
    let two = one.replace(bulk, &format!("{bulk}{}", bulk.replace("to =", "start = \"500 ms\"\nto =")));
    let [alone, both] = [one, two].map(|text| {
        let record = simulate(&parse(&text), "pbe", 1);
        (value(&record, Key::Throughput), value(&record, Key::HopDelayMean), value(&record, Key::HopDelayP95))
    });
    println!("alone {alone:?}, both {both:?}");
    assert!((both.0 / alone.0 - 1.0).abs() < 0.05, "{both:?} of {alone:?}");
    assert!(both.1 < alone.1 * 1.3 && both.2 < alone.2 * 1.3, "{both:?} after {alone:?}");
}

/// The wire before the cell has 10 Mbit/s from 4 to 8 s; the cell would carry 41.
#[test]
fn a_wire_narrower_than_the_cell_is_found_and_left_again() {
    let narrow = "[backhaul]\nrate = \"1 Gbit/s\"\nchanges = [{ at = \"4 s\", rate = \"10 Mbit/s\" }, { at = \"8 s\", rate = \"1 Gbit/s\" }]\n";
    let scenario = parse(&cell(ONE, "").replace("[hop.cell]", &format!("{narrow}[hop.cell]")));
    let law = scenario.law("pbe").expect("a law of the scenario");
    let mut world = build(&scenario, &law, Seed(1), false).expect("valid parameters");
    let mut changes = Vec::new();
    for ms in 1..12_000 {
        world.run_until(Time::ZERO + Span::from_millis(ms));
        let why = world.does(Node(1));
        if changes.last().is_none_or(|(_, last)| *last != why) {
            changes.push((ms, why));
        }
    }
    println!("{changes:?}");
    let from_the_cell = changes.iter().position(|(ms, _)| *ms > 4000).expect("it is found");
    let [drain, probe, back] = changes[from_the_cell..] else { panic!("{changes:?}") };
    assert_eq!([drain.1, probe.1, back.1].map(Option::unwrap), [Why::PbeDrain, Why::PbeInternet, Why::PbeWireless]);
    // The queue of the wire grows by 27 ms, six subframes of packets show it, and that is told.
    assert!(drain.0 < 4120 && (35..=50).contains(&(probe.0 - drain.0)), "half the rate for a round trip: {changes:?}");
    // From 10 to 41 Mbit/s by a quarter in two round trips of some 40 ms are 0.5 s, from a probe on that begins within eight of them.
    assert!((8_400..8_900).contains(&back.0), "{changes:?}");
}

#[test]
fn behind_a_narrow_wire_it_is_as_bbr() {
    let text = cell(ONE, "").replace("rate = \"1 Gbit/s\"", "rate = \"10 Mbit/s\"");
    let [pbe, bbr] = ["pbe", "bbr"].map(|law| {
        let record = simulate(&parse(&text), law, 1);
        (value(&record, Key::Throughput), value(&record, Key::EndDelayMean), value(&record, Key::EndDelayP95))
    });
    println!("PBE {pbe:?}, BBR {bbr:?}");
    // Of 10 Mbit/s 1428 in 1500 octets are payload.
    assert!(pbe.0 > 0.96 * 9.52, "{pbe:?}");
    assert!(pbe.1 < 1.1 * bbr.1 && pbe.2 < 1.1 * bbr.2, "{pbe:?}, BBR {bbr:?}");
}

/// A recorded link shows its opportunities: PBE goes by them, and its queue is a fraction of BBR's.
#[test]
fn a_recorded_link_is_gone_by_as_a_cell() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/pbe");
    let text = std::fs::read_to_string(format!("{folder}/recorded.toml")).expect("a shipped scenario");
    let scenario =
        lasthop_scenario::Scenario::parse("recorded", &text, std::path::Path::new(folder)).expect("it is right");
    let law = scenario.law("pbe").expect("a law of the scenario");
    let mut world = build(&scenario, &law, Seed(1), false).expect("valid parameters");
    let states = (10..60).map(|n| {
        world.run_until(Time::ZERO + Span::from_millis(100 * n));
        world.does(Node(1))
    });
    let by_the_cell = states.filter(|why| *why == Some(Why::PbeWireless)).count();
    assert!(by_the_cell > 45, "{by_the_cell} of 50");
    let [pbe, bbr] = ["pbe", "bbr"].map(|law| {
        let record = simulate(&scenario, law, 1);
        (value(&record, Key::Throughput), value(&record, Key::HopDelayP95) - 20.0)
    });
    println!("PBE {pbe:?}, BBR {bbr:?}");
    assert!(pbe.0 > 0.6 * bbr.0 && pbe.1 < bbr.1 / 3.0, "{pbe:?}, BBR {bbr:?}");
}
