//! Stations that bound the windows of their own uploads.

use crate::support;

use lasthop_report::Key;
use support::{edited, parse, simulate, value};

/// Payload of a full segment with timestamps, in bits.
const SEGMENT: f64 = 1448.0 * 8.0;

/// The shipped world without collapse, shortened.
fn fixed_rate(changes: &[(&str, &str)]) -> lasthop_scenario::Scenario {
    let shorter = [("duration = \"60 s\"", "duration = \"30 s\""), ("warm-up = \"20 s\"", "warm-up = \"15 s\"")];
    edited("terminal/fixed-rate.toml", &[&shorter, changes].concat())
}

#[test]
fn ten_terminals_have_in_flight_what_the_table_allows() {
    let record = simulate(&fixed_rate(&[]), "tables", 1);
    // The last row of Table 2 on a long path: 17 packets a round trip of 256 ms and a little.
    let allowed = 10.0 * 17.0 * SEGMENT / 0.256 / 1e6;
    let total = value(&record, Key::Throughput);
    assert!(total < allowed && total > 0.93 * allowed, "{total} of {allowed} Mbit/s");
    assert!(value(&record, Key::Jain) > 0.999, "all have the same window");
    assert!(value(&record, Key::RttMean) < 300.0, "nothing waits: {} ms", value(&record, Key::RttMean));
}

#[test]
fn terminals_are_counted_by_what_they_hear() {
    // As many as a row of the table has: 4 may have 200 packets each, more than the hop carries; 5 have 65.
    let five = simulate(&fixed_rate(&[("count = 10", "count = 5")]), "tables", 1);
    let allowed = 5.0 * 65.0 * SEGMENT / 0.256 / 1e6;
    let total = value(&five, Key::Throughput);
    // A notice is sent once and not acknowledged: where three in a row are lost, four terminals are counted for a while.
    assert!(total < 1.05 * allowed && total > 0.93 * allowed, "{total} of {allowed} Mbit/s");
    // Where an access point does not send group frames out again nobody hears anybody: each has the row of one.
    let isolated = fixed_rate(&[("count = 10", "count = 5"), ("[hop.wifi]", "[hop.wifi]\nclient-isolation = true")]);
    let isolated = simulate(&isolated, "count", 1);
    assert!(
        value(&isolated, Key::Throughput) > 1.2 * allowed,
        "the hop's capacity, {:?}",
        value(&isolated, Key::Throughput)
    );
}

#[test]
fn stations_without_uploads_are_left_alone() {
    let world = |law: &str| {
        let text = "title = \"Downloads\"\nduration = \"10 s\"\nwarm-up = \"2 s\"\n[wire]\nrate = \"1 Gbit/s\"\ndelay = \"10 ms\"\n\
                    [hop.wifi]\nstandard = \"802.11g\"\nqueue = { kind = \"fifo\" }\n[[station]]\nname = \"s\"\ncount = 3\n\
                    rate = \"54 Mbit/s\"\n[[traffic]]\nkind = \"bulk\"\nto = \"each\"\n[laws.cubic]\nsender = \"cubic\"\n\
                    [laws.tables]\nsender = \"cubic\"\npart = [{ at = \"terminal\", law = \"terminal\" }]\n";
        let record = simulate(&parse(text), law, 1);
        [Key::Throughput, Key::RttMean, Key::HopDelayMean].map(|key| value(&record, key))
    };
    assert_eq!(world("tables"), world("cubic"));
}

#[test]
fn some_stations_may_be_bound_and_others_not() {
    let text = "title = \"Some\"\nduration = \"30 s\"\nwarm-up = \"15 s\"\n[wire]\nrate = \"1 Gbit/s\"\ndelay = \"128 ms\"\n\
                [hop.wifi]\nstandard = \"802.11g\"\nqueue = { kind = \"fifo\" }\n[[station]]\nname = \"bound\"\ncount = 5\n\
                rate = \"54 Mbit/s\"\n[[station]]\nname = \"free\"\nrate = \"54 Mbit/s\"\n[[traffic]]\nkind = \"bulk\"\n\
                from = \"each\"\nto = \"server\"\n[laws.some]\nsender = \"cubic\"\n\
                part = [{ at = \"terminal\", on = [\"bound\"], law = \"terminal\" }]\n";
    let record = simulate(&parse(text), "some", 1);
    let of = |name: &str| {
        let station = record.stations.iter().find(|station| station.name == name).expect("a station");
        station.figures[&Key::Throughput].value().expect("it sends")
    };
    // Five announce themselves; the sixth does not, and has what is left.
    let allowed = 65.0 * SEGMENT / 0.256 / 1e6;
    for name in ["bound-1", "bound-5"] {
        assert!(of(name) < 1.1 * allowed, "{name}: {} of {allowed} Mbit/s", of(name));
    }
    assert!(of("free") > 2.0 * allowed, "{} Mbit/s", of("free"));
}

#[test]
fn the_model_fills_a_hop_that_tables_leave_idle_with_no_queue() {
    let ([total, rtt], [table, _]) = {
        let of = |law: &str| {
            let record = simulate(&fixed_rate(&[]), law, 1);
            assert!(value(&record, Key::Jain) > 0.98, "{law}: {}", value(&record, Key::Jain));
            [Key::Throughput, Key::RttP95].map(|key| value(&record, key))
        };
        (of("model"), of("tables"))
    };
    assert!(total > 2.5 * table, "{total} beside {table} Mbit/s");
    assert!(rtt < 320.0, "{rtt} ms");
}

#[test]
fn hidden_terminals_keep_queues_short_by_the_model() {
    let isolated = fixed_rate(&[("[hop.wifi]", "[hop.wifi]\nclient-isolation = true")]);
    let record = simulate(&isolated, "model", 1);
    assert!(value(&record, Key::Throughput) > 20.0, "{} Mbit/s", value(&record, Key::Throughput));
    assert!(value(&record, Key::RttP95) < 1000.0, "{} ms", value(&record, Key::RttP95));
}

#[test]
fn stations_that_compete_keep_their_part_beside_unmanaged_ones() {
    let changes = [
        ("\"managed\"\ncount = 2\nrate-control = \"arf\"", "\"managed\"\ncount = 2\nrate-control = \"minstrel\""),
        ("\"unmanaged\"\ncount = 2\nrate-control = \"arf\"", "\"unmanaged\"\ncount = 2\nrate-control = \"minstrel\""),
        ("delay = \"128 ms\"", "delay = \"2 ms\""),
        ("duration = \"60 s\"", "duration = \"45 s\""),
    ];
    let scenario = edited("terminal/coexistence.toml", &changes);
    let each = |law: &str| {
        let record = simulate(&scenario, law, 1);
        ["managed", "unmanaged"].map(|group| {
            let stations = record.stations.iter().filter(|station| station.name.starts_with(group));
            stations.map(|station| station.figures[&Key::Throughput].value().expect("it sends")).sum::<f64>()
        })
    };
    let [managed, unmanaged] = each("compete");
    assert!(unmanaged < 1.5 * managed, "{unmanaged} beside {managed} Mbit/s");
    assert!(managed + unmanaged > 20.0, "{} Mbit/s", managed + unmanaged);
    let [managed, unmanaged] = each("model");
    assert!(unmanaged > 10.0 * managed, "those that yield starve: {unmanaged} beside {managed} Mbit/s");
}
