//! Figure 4: the mean of the packets a frame against the model, by rate, by MCS, and with stations of unlike rates.

use super::single::{LOADS, PHY, RATE_SWEEP, sweep};
use super::{ACCESS, PACKET_BITS, SUBFRAME_BITS, hop};
use crate::study::{Edit, Runner};
use lasthop_experiment::ExperimentError;
use lasthop_report::Key;
use lasthop_report::page::{Chart, Check, Curve, MEANS, Section, Table, digits, shown};
use toml::{Table as Keys, Value};

/// Data rates of two streams at 80 MHz and the long guard interval by MCS, Mbit/s.
const TWO_STREAMS: [f64; 10] = [58.5, 117.0, 175.5, 234.0, 351.0, 468.0, 526.5, 585.0, 702.0, 780.0];
/// Rates that are offered at several MCS, Mbit/s, and the lowest MCS that carries each in frames of fewer packets than the limit.
const OFFERED: [(f64, usize); 3] = [(100.0, 1), (200.0, 3), (300.0, 4)];
/// Two stations of unlike rates, and these rates in Mbit/s.
const STATIONS: &str = "[[station]]\nname = \"fast\"\nnss = 2\nmcs = 7\n[[station]]\nname = \"slow\"\nmcs = 4\n";
const UNLIKE: [(&str, f64); 2] = [("fast", PHY), ("slow", 175.5)];

/// Runs of one part of the figure: the points as a table, and the largest departure from the model between 2 and 48 packets a frame.
/// At full frames the model's own limit holds, and near it their randomness meets the limit.
struct Part {
    table: Table,
    worst: f64,
}

impl Part {
    fn new(case: &str) -> Part {
        Part { table: Table::new(&[case, "offered (Mbit/s)", "packets a frame", "F(x)", "off by (%)"]), worst: 0.0 }
    }

    fn add(&mut self, case: String, mbit: f64, got: &lasthop_report::Estimate, expected: f64) {
        let off = got.mean.map_or(f64::NAN, |got| got / expected - 1.0);
        if (2.0..48.0).contains(&expected) {
            // A departure that is not known is the largest.
            self.worst = if off.is_nan() { f64::INFINITY } else { self.worst.max(off.abs()) };
        }
        let off = format!("{:+.1}", off * 100.0);
        self.table.rows.push(vec![case, digits(mbit), shown(got), digits(expected), off]);
    }

    fn check(&self, what: &str) -> Check {
        let ours = format!("off by at most {:.1} %", self.worst * 100.0);
        Check::new(what, "the model fits: within 10 %", ours, self.worst <= 0.1)
    }
}

/// Packets a frame at this rate a station by the model, Mbit/s; 64 where it cannot be carried.
fn level(stations: &[f64], mbit: f64) -> f64 {
    let rates = vec![mbit * 1e6 / PACKET_BITS; stations.len()];
    hop(ACCESS, stations, SUBFRAME_BITS, false).aggregation(&rates).map_or(64.0, |levels| levels[0])
}

pub(super) fn model(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let (rates, by_rate) = by_rate(runner)?;
    let (mcs, by_mcs) = by_mcs(runner)?;
    let (unlike, of_unlike) = of_unlike(runner)?;
    Ok(Section {
        title: "Figure 4: the model of the mean aggregation level".into(),
        text: format!(
            "UDP at constant rates, nothing controlled, against F(x) = c x / (1 - w'x). Nothing is fitted: c is {:.1} us a station from the standard's timing, w \
             follows from 1544 B a packet and the data rate. First the rate changes (one and two stations at 585 Mbit/s), then the MCS at three rates (c), then two stations have \
             unlike data rates and the same send rate (d): the model then gives both the same level. The paper's curves are not known.",
            ACCESS * 1e6
        ),
        checks: vec![
            rates.check("level by send rate, 2 to 48 packets"),
            mcs.check("(c) level by MCS"),
            unlike.check("(d) level of either of two unlike stations"),
        ],
        tables: vec![rates.table.data(), mcs.table.data().named("mcs"), unlike.table.data().named("unlike")],
        charts: vec![by_rate, by_mcs, of_unlike],
        ..Section::default()
    })
}

fn chart(file: &str, title: &str, x: &str, curves: Vec<Curve>) -> Chart {
    let [file, title, x, y] = [file, title, x, "packets a frame"].map(str::to_owned);
    Chart { file, title, x, y, curves, note: MEANS.into(), ..Chart::default() }
}

/// One and two stations.
fn by_rate(runner: &Runner<'_>) -> Result<(Part, Chart), ExperimentError> {
    let (mut part, mut curves) = (Part::new("stations"), Vec::new());
    for stations in [1, 2] {
        let (mut ours, mut model) = (Vec::new(), Vec::new());
        for (mbit, run) in sweep(runner, stations, None)? {
            let expected = level(&vec![PHY; stations], mbit / stations as f64);
            let got = run.of("open-loop", Key::Aggregation);
            part.add(stations.to_string(), mbit, &got, expected);
            ours.push((mbit, got));
            model.push((mbit, expected));
        }
        let noun = if stations == 1 { "station" } else { "stations" };
        curves.push(Curve::estimated(format!("{stations} {noun}"), ours));
        curves.push(Curve::reference(format!("F(x), {stations} {noun}"), model));
    }
    Ok((part, chart("figure-4", "Packets a frame against the offered rate", "offered in all (Mbit/s)", curves)))
}

/// One station at the same rates and several MCS.
fn by_mcs(runner: &Runner<'_>) -> Result<(Part, Chart), ExperimentError> {
    let (mut part, mut curves) = (Part::new("MCS"), Vec::new());
    for (mbit, lowest) in OFFERED {
        let (mut ours, mut model) = (Vec::new(), Vec::new());
        for mcs in (lowest..TWO_STREAMS.len()).step_by(if runner.quick { 4 } else { 1 }) {
            let edits: [Edit<'_>; 2] =
                [("traffic.0.rate", Value::from(format!("{mbit} Mbit/s"))), ("station.0.mcs", Value::from(mcs as i64))];
            let got = runner.run(RATE_SWEEP, &edits)?.of("open-loop", Key::Aggregation);
            let expected = level(&[TWO_STREAMS[mcs]], mbit);
            part.add(mcs.to_string(), mbit, &got, expected);
            ours.push((mcs as f64, got));
            model.push((mcs as f64, expected));
        }
        curves.push(Curve::estimated(format!("{mbit} Mbit/s"), ours));
        curves.push(Curve::reference(format!("F(x), {mbit} Mbit/s"), model));
    }
    Ok((part, chart("figure-4c", "Packets a frame of one station by its MCS, two streams", "MCS", curves)))
}

/// Two stations of unlike data rates that are sent the same.
fn of_unlike(runner: &Runner<'_>) -> Result<(Part, Chart), ExperimentError> {
    let (mut part, mut ours, mut model) = (Part::new("station"), UNLIKE.map(|_| Vec::new()), Vec::new());
    let rates = UNLIKE.map(|(_, mbit)| mbit);
    let most = hop(ACCESS, &rates, SUBFRAME_BITS, false).rates(&[64.0; 2])[0] * PACKET_BITS / 1e6;
    let stations: Keys = toml::from_str(STATIONS).expect("TOML");
    for load in LOADS.into_iter().filter(|load| *load < 1.0).step_by(if runner.quick { 3 } else { 1 }) {
        let mbit = load * most;
        let edits: [Edit<'_>; 2] =
            [("station", stations["station"].clone()), ("traffic.0.rate", Value::from(format!("{mbit:.3} Mbit/s")))];
        let run = runner.run(RATE_SWEEP, &edits)?;
        let expected = level(&rates, mbit);
        for (line, (name, _)) in ours.iter_mut().zip(UNLIKE) {
            let got = run.of_station("open-loop", name, Key::Aggregation);
            part.add(name.to_owned(), mbit, &got, expected);
            line.push((mbit, got));
        }
        model.push((mbit, expected));
    }
    let lines = UNLIKE.iter().zip(ours);
    let mut curves: Vec<Curve> =
        lines.map(|((_, mbit), line)| Curve::estimated(format!("station at {mbit} Mbit/s"), line)).collect();
    curves.push(Curve::reference("F(x), either", model));
    Ok((
        part,
        chart("figure-4d", "Packets a frame of two stations of unlike rates", "offered to each (Mbit/s)", curves),
    ))
}
