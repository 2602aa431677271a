//! Stations of unlike rates.

use super::many::slot_intervals;
use super::{hop, mean, near};
use crate::study::{Edit, Results, Runner, Shipped, shipped};
use lasthop_experiment::ExperimentError;
use lasthop_laws::aggregation::allocation::{exact, paper};
use lasthop_laws::aggregation::model::airtime;
use lasthop_report::combined;
use lasthop_report::page::{Chart, Curve, MEANS};
use lasthop_report::page::{Check, Section, Table, digits, shown};
use lasthop_report::{Estimate, Key, Run, SeriesKind};
use lasthop_sim::TUNNEL_PAYLOAD;
use lasthop_units::stats::Moments;
use toml::{Table as Keys, Value};

const TWO: Shipped = shipped!("aggregation", "two-stations");
const UNLIKE: Shipped = shipped!("aggregation", "unlike-rates");
const THREE: Shipped = shipped!("aggregation", "three-stations");

/// What a rule has reached.
struct Reached {
    logs: Estimate,
    mbit: Estimate,
    round: Estimate,
}

/// A station's name and its PHY rate, Mbit/s.
type Rated<'s> = (&'s str, f64);

/// Sum over the stations of the logarithm of their packets a second, over the seeds: of what arrived, as many octets as a full packet of the
/// tunnel brings. Segments that do not pass it bring more, and count by that.
pub(super) fn logs(run: &Results, law: &str) -> Estimate {
    run.over_runs(law, "1", |run| {
        let of = |station: &lasthop_report::StationRecord| station.figures.get(&Key::Throughput)?.value();
        run.record.stations.iter().map(|s| Some((of(s)? * 1e6 / TUNNEL_PAYLOAD.bits() as f64).ln())).sum()
    })
}

/// Sums of logarithms differ in their third place: all of them, and the interval.
pub(super) fn fine(estimate: &Estimate) -> String {
    let Some(mean) = estimate.mean else { return "–".into() };
    estimate.half_ci().map_or(format!("{mean:.3}"), |half| format!("{mean:.3} ± {half:.4}"))
}

pub(super) fn allocations(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let target = |law: &str, ms: f64| (format!("laws.{law}.regulator.target"), Value::from(format!("{ms} ms")));
    let mut section = Section {
        title: "Stations of unlike rates: published allocation and optimum".into(),
        text: "Not a figure of the paper. TCP through the proxy. Levels rise with the data rate until fast stations reach the most packets a frame; \
               then the published rule goes on lengthening the round for the slow ones, and the optimum does not. Predicted: the model with c = 200 us a \
               station. Statements: the optimum's gain in the sum of logarithms, seed by seed, judged by the lower end of its interval; and the optimum against the published rule."
            .into(),
        ..Section::default()
    };
    let mut table = Table::new(&[
        "PHY (Mbit/s), T",
        "rule",
        "predicted: Mbit/s, round (ms)",
        "Mbit/s in all",
        "round (ms)",
        "sum of ln(packets/s)",
        "packets a frame",
    ]);
    type Case<'c> = (Shipped, Vec<Edit<'c>>, &'c [Rated<'c>], f64);
    let cases: [Case<'_>; 3] = [
        (UNLIKE, vec![], &[("fast", 1170.0), ("middle", 585.0), ("slow", 175.5)], 10.0),
        (TWO, vec![], &[("fast", 1170.0), ("slow", 87.75)], 5.0),
        (
            UNLIKE,
            vec![
                ("station.0.nss", Value::from(2)),
                ("station.0.mcs", Value::from(7)),
                ("station.1.nss", Value::from(1)),
                ("station.1.mcs", Value::from(4)),
                ("station.2.mcs", Value::from(2)),
            ],
            &[("fast", 585.0), ("middle", 175.5), ("slow", 87.75)],
            20.0,
        ),
    ];
    for (scenario, edits, stations, ms) in cases {
        let targets: Vec<(String, Value)> = ["exact", "paper"].map(|law| target(law, ms)).to_vec();
        let edits: Vec<Edit<'_>> =
            edits.into_iter().chain(targets.iter().map(|(path, value)| (path.as_str(), value.clone()))).collect();
        let run = runner.run(scenario, &edits)?;
        let rates: Vec<f64> = stations.iter().map(|(_, mbit)| *mbit).collect();
        let model = hop(200e-6, &rates, 1548.0 * 8.0, true);
        let label = format!("{}; {ms} ms", rates.iter().map(|rate| digits(*rate)).collect::<Vec<_>>().join(", "));
        let mut reached: Vec<Reached> = Vec::new();
        let mut curves: Vec<Curve> = Vec::new();
        for (law, plan) in [("exact", exact(&model, ms * 1e-3)), ("paper", paper(&model, ms * 1e-3))] {
            let sum = logs(&run, law);
            let levels: Vec<Estimate> =
                stations.iter().map(|(name, _)| run.of_station(law, name, Key::Aggregation)).collect();
            let at_rates = |levels: &[f64]| rates.iter().copied().zip(levels.iter().copied()).collect::<Vec<_>>();
            curves.push(Curve::estimated(law, rates.iter().copied().zip(levels.iter().cloned())));
            curves.push(Curve::reference(format!("{law}, predicted"), at_rates(&plan.levels)));
            let predicted = plan.rates.iter().sum::<f64>() * super::PACKET_BITS / 1e6;
            table.rows.push(vec![
                label.clone(),
                law.into(),
                format!("{}, {:.2}", digits(predicted), plan.round * 1e3),
                shown(&run.of(law, Key::Throughput)),
                shown(&run.of(law, Key::FrameInterval)),
                fine(&sum),
                levels.iter().map(shown).collect::<Vec<_>>().join(", "),
            ]);
            let [mbit, round] = [Key::Throughput, Key::FrameInterval].map(|key| run.of(law, key));
            reached.push(Reached { logs: sum, mbit, round });
        }
        let both = |pick: fn(&Reached) -> &Estimate| [pick(&reached[0]), pick(&reached[1])];
        let (mbit, round) = (both(|r| &r.mbit), both(|r| &r.round));
        let gain = combined([&reached[0].logs, &reached[1].logs], |[exact, paper]| exact - paper);
        let said = |[a, b]: [&Estimate; 2]| format!("{} against {}", shown(a), shown(b));
        let means = |[a, b]: [&Estimate; 2]| a.mean.zip(b.mean);
        section.checks.push(Check::new(
            &format!("{label}: sum of logs; Mbit/s; round (ms)"),
            "larger, more, shorter",
            format!("{}; {}; {}", fine(&gain), said(mbit), said(round)),
            gain.ci95
                .map(|[least, _]| least)
                .or(gain.mean)
                .zip(means(mbit))
                .zip(means(round))
                .map(|((least, mbit), round)| least > 0.0 && mbit.0 > mbit.1 && round.0 < round.1),
        ));
        section.charts.push(Chart {
            file: format!("allocations-{}", section.charts.len() + 1),
            title: format!("Packets a frame by data rate: {} Mbit/s, T = {ms} ms", {
                rates.iter().map(|rate| digits(*rate)).collect::<Vec<_>>().join(", ")
            }),
            x: "PHY rate of the station (Mbit/s)".into(),
            y: "packets a frame".into(),
            curves,
            note: MEANS.into(),
            ..Chart::default()
        });
    }
    section.tables.push(table.data());
    Ok(section)
}

pub(super) fn three(runner: &Runner<'_>) -> Result<Section, ExperimentError> {
    let run = runner.run(THREE, &[])?;
    let mut table =
        Table::new(&["law", "station", "packets a frame", "interval (ms)", "airtime (%)", "Mbit/s", "mean delay (ms)"]);
    let mut section = Section {
        title: "Figure 12: three stations, T = 10 ms".into(),
        text: "Stations at 175.5, 117 and 87.75 Mbit/s, TCP through the proxy (the paper: clients on a testbed). Intervals lie 2 to 3 % below the target and levels 5 %: the law counts slots \
               alike, so that the mean of the slots is at the target and that of the frames below it. Slots differ because stations answer, and an answer that collides costs a whole \
               frame; with RTS they hardly differ. The linear predecessor has its gain for one station at 390 Mbit/s, which makes it unstable here; its own page has gains for this hop."
            .into(),
        ..Section::default()
    };
    for law in run.scenario.laws() {
        for station in ["a", "b", "c"] {
            let of = |key| run.of_station(&law.name, station, key);
            let airtime = shown(&combined([&of(Key::Airtime)], |[share]| share * 100.0));
            table.rows.push(vec![
                law.name.clone(),
                station.into(),
                shown(&of(Key::Aggregation)),
                shown(&of(Key::FrameInterval)),
                airtime,
                shown(&of(Key::Throughput)),
                shown(&of(Key::HopDelayMean)),
            ]);
        }
    }
    let of = |station: &str, key| run.of_station("regulator", station, key);
    let intervals = ["a", "b", "c"].map(|station| of(station, Key::FrameInterval));
    let levels = ["a", "b", "c"].map(|station| of(station, Key::Aggregation));
    let shares = ["a", "b", "c"].map(|station| mean(&of(station, Key::Airtime)));
    let list = |values: &[Estimate; 3]| values.each_ref().map(shown).join(", ");
    let middle = shares.iter().sum::<f64>() / 3.0;
    let spread = shares.iter().map(|share| (share / middle - 1.0).abs()).fold(0.0, f64::max);
    section.checks.push(Check::new(
        "interval of each station",
        "10 ms ± 20 %",
        format!("{} ms", list(&intervals)),
        intervals.iter().all(|ms| near(ms.mean, 10.0, 0.2)),
    ));
    section.checks.push(Check::new(
        "packets a frame",
        "44, 30, 22 (± 10 %)",
        list(&levels),
        levels.iter().zip([44.0, 30.0, 22.0]).all(|(level, want)| near(level.mean, want, 0.1)),
    ));
    section.checks.push(Check::new(
        "airtime equal",
        "within 10 %",
        format!("within {:.1} %", spread * 100.0),
        spread <= 0.1,
    ));
    section.tables.extend([table.data(), slots(runner, &run)?.data().named("slots")]);
    section.charts.push(trace(
        &run,
        "figure-12",
        "Three stations: mean delay over the hop",
        &["regulator", "linear-pi", "cubic"],
    ));
    Ok(section)
}

/// The stations of [`THREE`].
const RATES: [Rated<'_>; 3] = [("a", 175.5), ("b", 117.0), ("c", 87.75)];

/// How much the regulator's control slots differ, and c: in this hop, and where less disturbs them.
fn slots(runner: &Runner<'_>, run: &Results) -> Result<Table, ExperimentError> {
    let regulator = Keys::from_iter([("target".into(), "10 ms".into())]);
    let law = Keys::from_iter([("sender".into(), "cubic".into()), ("regulator".into(), Value::from(regulator))]);
    let only: Edit<'_> = ("laws", Keys::from_iter([("regulator".into(), Value::from(law))]).into());
    let other = |edit: Edit<'_>| runner.run(THREE, &[edit, only.clone()]);
    let (announced, paced) =
        (other(("hop.wifi.rts-threshold", "500 B".into()))?, other(("traffic.0.kind", "udp".into()))?);
    let mut table = Table::new(&[
        "regulator",
        "mean of the slots' intervals (ms)",
        "sd of these, of their mean",
        "interval (ms)",
        "c: the interval less the packets' airtime (ms)",
    ]);
    for (hop, run) in [("as above", run), ("with RTS", &announced), ("paced UDP", &paced)] {
        let over = |value: fn(&Run) -> Option<f64>| shown(&run.over_runs("regulator", "", value));
        table.rows.push(vec![
            hop.into(),
            over(|run| slot_intervals(run).collect::<Moments>().mean()),
            over(|run| {
                let slots: Moments = slot_intervals(run).collect();
                Some(slots.sd()? / slots.mean()?)
            }),
            shown(&run.of("regulator", Key::FrameInterval)),
            over(|run| {
                let of = |key| RATES.map(|(name, _)| Results::figure_of(run, name, key));
                let round = of(Key::FrameInterval).into_iter().sum::<Option<f64>>()? / RATES.len() as f64;
                let packets = RATES.iter().zip(of(Key::Aggregation));
                let busy = packets.map(|((_, mbit), level)| Some(level? * airtime(1548.0 * 8.0, mbit * 1e6) * 1e3));
                Some(round - busy.sum::<Option<f64>>()?)
            }),
        ]);
    }
    Ok(table)
}

/// Delays over the hop under some laws, on a logarithmic axis.
pub(super) fn trace(run: &Results, file: &str, title: &str, laws: &[&str]) -> Chart {
    let curve = |law: &&str| Curve::estimated(*law, run.traced(law, SeriesKind::HopDelay, TRACE));
    Chart::over_time(file, title, "mean delay over the hop (ms)", laws.iter().map(curve).collect()).logarithmic()
}

/// Seconds over which traces of delays are averaged.
pub(super) const TRACE: f64 = 0.5;
