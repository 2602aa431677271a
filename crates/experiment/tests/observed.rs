//! A world that is recorded runs as it does when nobody records it.

use lasthop_dataset::{KEY_LEN, Observer, PseudonymKey, Recorder, Row};
use lasthop_experiment::{Names, Observed, observe};
use lasthop_scenario::Scenario;
use lasthop_sim::{build, build_with};
use lasthop_units::{Seed, Span, Time};
use std::convert::Infallible;

fn scenario() -> Scenario {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/oal/learned.toml");
    Scenario::load(path).unwrap_or_else(|error| panic!("{}", error.plain()))
}

fn rows(scenario: &Scenario, law: &str, seconds: u64) -> Vec<Row> {
    let law = scenario.law(law).expect("it has it");
    let names = Names::of(scenario);
    let of = Observed { scenario, law: &law, seed: 3, names: &names, timing: Recorder::TIMING };
    let (key, mut rows) = (PseudonymKey::new(&[5; KEY_LEN]), Vec::new());
    let mut on = |done| done < Span::from_secs(seconds);
    let whole = observe(&of, &key, (0, Span::from_secs(900)), &mut on, &mut |row| {
        rows.push(row);
        Ok::<(), Infallible>(())
    });
    assert!(!whole.expect("it can be simulated"), "stopped before its end");
    rows
}

#[test]
fn recording_changes_nothing_of_what_a_law_does() {
    let scenario = scenario();
    let law = scenario.law("cubic+threshold").expect("it has it");
    let plain = build(&scenario, &law, Seed(3), true).expect("valid");
    let watched = build_with(&scenario, &law, Seed(3), true, &mut |_, law| {
        assert!(law.is_some(), "the set-up has an agent");
        Some(Box::new(Observer::new(Recorder::TIMING, law)))
    });
    let end = Time::ZERO + Span::from_secs(4);
    let [one, other] = [plain, watched.expect("valid")].map(|mut world| {
        world.run_until(end);
        world.finish(end).finish()
    });
    assert!(one == other);
}

#[test]
fn rows_are_those_of_the_stations_that_load_and_say_who_acted() {
    let scenario = scenario();
    let (shadow, acts) = (rows(&scenario, "cubic", 6), rows(&scenario, "cubic+threshold", 6));
    for rows in [&shadow, &acts] {
        // Twelve near stations, of 28.
        let stations: std::collections::BTreeSet<_> = rows.iter().map(|row| row.station).collect();
        assert_eq!(stations.len(), 12);
        assert!(rows.len() > 400, "{}", rows.len());
        assert!(rows.iter().all(|row| row.at >= Time::ZERO + Span::from_secs(900)), "as much later as was asked for");
        assert!(rows.iter().all(|row| row.copies > 0 && row.lost <= row.copies));
        assert!(rows.windows(2).all(|pair| pair[0].at <= pair[1].at), "one access point's rows stand in order");
    }
    assert!(shadow.iter().all(|row| !row.acted) && shadow.iter().any(|row| row.lost > 0));
    assert!(acts.iter().filter(|row| row.acted).count() > acts.len() / 2);
}
