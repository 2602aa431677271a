//! The forty places of PBE-CC's evaluation, as worlds: what a row of `scenarios/pbe/places.csv` changes in `place.toml`.

use crate::study::{Edit, Results, Runner, Shipped, shipped};
use lasthop_experiment::ExperimentError;
use toml::{Table, Value};

/// The scenario of the first place.
const PLACE: Shipped = shipped!("pbe", "place");
const PLACES: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/pbe/places.csv"));
/// Qualities of the four terminals that are sent files: the middles of the quarters of all samples of the traces.
const OTHERS: [i64; 4] = [8, 11, 13, 14];

macro_rules! traces {
    ($($n:literal)*) => {
        [$(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/pbe/traces/static-", $n, ".csv"))),*]
    };
}
/// The measured channels, `static-1` and on.
const TRACES: [&str; 23] = traces!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23);

/// One place.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Its number, from 1.
    pub number: u32,
    /// Measured by day: others are sent files.
    pub busy: bool,
    /// Widths of the carriers in MHz.
    pub carriers: Vec<u32>,
    /// The number of its trace, from 1.
    pub trace: usize,
    /// Layers of the telephone.
    pub layers: i64,
    /// Its bit errors.
    pub bit_error_rate: f64,
    /// Terminals with signalling on each carrier, a second.
    pub signalling: f64,
    /// Files of 0.5 MB to others, a second.
    pub files: f64,
    /// The seed of its only run.
    pub seed: i64,
}

/// All places, in the order of the file.
///
/// # Panics
/// If the file that ships is not as it should be: a test reads it.
pub fn places() -> Vec<Place> {
    PLACES.lines().skip(1).map(|line| place(line).unwrap_or_else(|| panic!("places.csv: {line}"))).collect()
}

fn place(line: &str) -> Option<Place> {
    let cells: Vec<&str> = line.split(',').collect();
    let [number, kind, carriers, trace, layers, errors, signalling, files, seed] = cells[..] else { return None };
    Some(Place {
        number: number.parse().ok()?,
        busy: kind == "busy",
        carriers: carriers.split('+').map(|mhz| mhz.parse().ok()).collect::<Option<_>>()?,
        trace: trace.strip_prefix("static-")?.parse().ok().filter(|n| (1..=TRACES.len()).contains(n))?,
        layers: layers.parse().ok()?,
        bit_error_rate: errors.parse().ok()?,
        signalling: signalling.parse().ok()?,
        files: files.parse().ok()?,
        seed: seed.parse().ok()?,
    })
}

impl Place {
    /// What it changes in the scenario of the first place.
    pub fn edits(&self) -> Vec<Edit<'static>> {
        let carriers = self.carriers.iter().map(|mhz| Value::from(format!("{mhz} MHz"))).collect::<Vec<_>>();
        vec![
            ("hop.cell.carriers", Value::from(carriers)),
            ("hop.cell.background", Value::from(self.background())),
            ("station.0.cqi-trace", Value::from(steps(TRACES[self.trace - 1]))),
            ("station.0.layers", Value::from(self.layers)),
            ("station.0.bit-error-rate", Value::from(self.bit_error_rate)),
            ("seeds", Value::from(vec![self.seed])),
        ]
    }

    /// What comes of a download there under each law.
    ///
    /// # Errors
    /// Those of [`lasthop_experiment::run`].
    pub fn run(&self, runner: &Runner<'_>) -> Result<Results, ExperimentError> {
        let row = Value::from(i64::from(self.number));
        runner.run_as(PLACE, &self.edits(), &[("row of places.csv", row)])
    }

    fn background(&self) -> Vec<Value> {
        let carriers = self.carriers.len();
        let signalling = (1..=carriers).map(|carrier| {
            let rate = Value::from(self.signalling);
            table([("kind", Value::from("control")), ("carrier", Value::from(carrier as i64)), ("per-second", rate)])
        });
        let rate = self.files / OTHERS.len() as f64;
        let files = OTHERS.iter().enumerate().filter(|_| self.files > 0.0).map(|(n, cqi)| {
            table([
                ("kind", Value::from("data")),
                ("carrier", Value::from((1 + n % carriers) as i64)),
                ("per-second", Value::from(rate)),
                ("size", Value::from("500 kB")),
                ("sizes", Value::from("fixed")),
                ("cqi", Value::from(*cqi)),
                ("layers", Value::from(2)),
            ])
        });
        signalling.chain(files).collect()
    }
}

/// A trace as a list in a scenario.
pub(super) fn steps(trace: &str) -> Vec<Value> {
    let lines = trace.lines().filter(|line| !line.starts_with('#')).skip(1);
    let step = |line: &str| {
        let (at, cqi) = line.split_once(',').expect("two columns: a test reads them all");
        let cqi = cqi.parse::<i64>().expect("a CQI: a test reads them all");
        table([("at", Value::from(format!("{at} s"))), ("cqi", Value::from(cqi))])
    };
    lines.map(step).collect()
}

fn table<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::Table(entries.map(|(key, value)| (key.to_owned(), value)).into_iter().collect::<Table>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::edited;
    use lasthop_scenario::LastHop;
    use lasthop_scenario::Scenario;
    use lasthop_units::Time;
    use std::path::Path;

    #[test]
    fn there_are_25_busy_and_15_idle_places_each_a_legal_world() {
        let places = places();
        let busy = places.iter().filter(|place| place.busy).count();
        assert_eq!((places.len(), busy), (40, 25));
        for place in places {
            let text = edited(PLACE, &place.edits());
            let scenario = Scenario::parse("place", &text, Path::new("/nowhere"))
                .unwrap_or_else(|error| panic!("place {}: {}", place.number, error.plain()));
            let LastHop::Cell(plan) = scenario.hop() else { panic!("a cell") };
            let params = plan.params();
            assert_eq!(params.carriers.len(), place.carriers.len());
            assert_eq!(usize::from(params.stations[0].carriers), place.carriers.len());
            assert!(params.stations[0].channel.last().is_some_and(|step| step.at > Time::ZERO + scenario.duration()));
            // Signalling on each carrier, and files to four others.
            let others = if place.busy { OTHERS.len() } else { 0 };
            assert_eq!(params.background.len(), place.carriers.len() + others, "place {}", place.number);
            assert_eq!(place.busy, place.files > 0.0);
        }
    }

    #[test]
    fn the_shipped_scenario_is_the_first_place() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/pbe");
        let shipped = Scenario::load(folder.join("place.toml")).unwrap_or_else(|error| panic!("{}", error.plain()));
        let first = Scenario::parse("place", &edited(PLACE, &places()[0].edits()), Path::new("/nowhere"));
        let first = first.unwrap_or_else(|error| panic!("{}", error.plain()));
        assert_eq!((shipped.hop(), shipped.seeds()), (first.hop(), first.seeds()));
    }
}
