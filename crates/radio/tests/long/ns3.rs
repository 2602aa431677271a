//! The model against ns-3 3.37 (reference data S1: one station, S2: several). The profile switches ns-3's departures
//! from the standard on; nothing is fitted. Writes docs/reference/ns3-validation.md, its figure and bench/ns3-validation if
//! asked to by `LASTHOP_WRITE_DOCS`.

use crate::common;
use crate::validation;

use lasthop_radio::wifi::Profile;
use std::path::Path;
use validation::cases::{CHOSEN, DEFAULT, Table};
use validation::page::One;
use validation::rule::{EXCEPTIONS, Exception, Value};
use validation::{SEEDS, figure, fit, one_station, page, several_stations};

#[test]
fn every_visible_point_agrees_with_ns3() {
    let (Some(s1), Some(s2), Some(lines)) =
        (Table::read("s1_agg.csv"), Table::read("s2_agg.csv"), Table::read("s1_fit.csv"))
    else {
        return;
    };
    let one = one_station(&s1, Profile::Ns3_3_37, SEEDS, CHOSEN);
    let by_default = one_station(&s1, Profile::Ns3_3_37, SEEDS, DEFAULT);
    let several = several_stations(&s2, Profile::Ns3_3_37);
    let fits = fit::compare(&lines, &one);
    let values: Vec<&Value> =
        page::values(&one).chain(page::values(&several)).chain(fits.iter().flat_map(|(_, _, values)| values)).collect();
    assert!(values.len() > 1_000, "the reference has been cut: {} values", values.len());
    let default_fits = fit::compare(&lines, &by_default);
    let stations = One { chosen: (&one, &fits), by_default: (&by_default, &default_fits) };
    let chains = common::chains::compare().unwrap_or_default();
    let text = page::write(&stations, &several, &chains);
    println!("{text}");
    if std::env::var_os("LASTHOP_WRITE_DOCS").is_some() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let (docs, data) = (root.join("docs"), root.join("bench/ns3-validation"));
        std::fs::write(docs.join("reference/ns3-validation.md"), &text).expect("the page can be written");
        std::fs::create_dir_all(&data).expect("a folder");
        std::fs::write(data.join("points.csv"), page::points_csv(&stations, &several)).expect("data can be written");
        std::fs::write(data.join("chains.csv"), page::chains_csv(&chains)).expect("data can be written");
        figure::draw(&docs.join("images/ns3-validation.svg"), &one, &several).expect("the figure can be drawn");
    }
    let unknown = page::report(&values);
    println!("{} values, {unknown} outside the rule without a known cause", values.len());
    // Of a reference with other points the exceptions do not speak.
    let of = |known: &Exception| values.iter().find(|v| v.place == known.place && v.figure == known.figure).copied();
    let obsolete = EXCEPTIONS.iter().filter(|known| of(known).is_some_and(Value::holds));
    let obsolete: Vec<String> = obsolete.map(|known| format!("{}, {}", known.place, known.figure)).collect();
    assert_eq!(unknown, 0, "see the list above");
    // What the page says of the number of packets that wait: it decides at nominal capacity only, deviations apart.
    let elsewhere = by_default.iter().filter(|point| !point.case.at_knee()).flat_map(|point| &point.values);
    let outside: Vec<&Value> = elsewhere.filter(|value| !value.holds() && value.figure != "MPDUs, sd").collect();
    assert!(outside.is_empty(), "with ns-3's default: {outside:?}");
    assert!(obsolete.is_empty(), "inside the rule by now, so no exceptions any more: {obsolete:?}");
}

#[test]
fn by_the_standard_throughput_and_aggregation_stay_near_ns3() {
    let Some(s1) = Table::read("s1_agg.csv") else { return };
    let points = one_station(&s1, Profile::Standard, 1, CHOSEN);
    for (figure, allowed) in [("throughput", 0.02), ("MPDUs, mean", 0.06)] {
        let of = || page::values(&points).filter(|value| value.figure == figure);
        let worst = of().max_by(|a, b| a.deviation().abs().total_cmp(&b.deviation().abs())).expect("some points");
        println!("{figure}: worst {:+.2} % ({})", worst.deviation() * 100.0, worst.place);
        assert!(worst.deviation().abs() < allowed, "{figure}: {worst:?}");
    }
}
