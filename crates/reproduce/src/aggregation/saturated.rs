//! The overhead of a round from outside: a saturated hop without a regulator. Its frames are always full.

use crate::study::{Edit, Runner, Shipped};
use lasthop_experiment::ExperimentError;
use lasthop_report::{Estimate, Key};
use toml::{Table, Value};

/// How long a round of the stations is by the packets in a frame: T(N) = c + w N.
#[derive(Clone)]
pub(super) struct Line {
    /// N and T(N), ms, at the two levels that were run.
    pub rounds: [(Estimate, Estimate); 2],
    /// c, seconds.
    pub overhead: f64,
    /// w of all stations together, seconds a packet.
    pub slope: f64,
}

/// Most packets a frame of the two runs.
const LEVELS: [i64; 2] = [4, 48];
/// More than the hop carries, to each of three stations and more; less than the wire does, to two of them.
const OFFERED: &str = "130 Mbit/s";

impl Line {
    /// T(N), seconds.
    pub fn at(&self, level: f64) -> f64 {
        self.overhead + self.slope * level
    }
}

/// Runs the hop of a scenario, with `edits`, with all stations at `mcs` and, if `neighbour`, with its neighbours all the time, else with none.
pub(super) fn saturated(
    runner: &Runner<'_>,
    scenario: Shipped,
    edits: &[Edit<'_>],
    mcs: u32,
    neighbour: bool,
) -> Result<Line, ExperimentError> {
    let word = |text: &str| Value::from(text.to_owned());
    let table = |entries: &[(&str, Value)]| {
        Value::Table(entries.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect::<Table>())
    };
    let always = Value::Array(vec![table(&[("from", word("0 s")), ("until", word("6 s"))])]);
    let round = |level: i64| {
        let text = scenario.text;
        let mut edits = edits.to_vec();
        edits.extend([
            ("duration", word("6 s")),
            ("warm-up", word("1 s")),
            ("hop.wifi.max-ampdu", Value::from(level)),
            ("station.0.mcs-trace", Value::Array(vec![table(&[("at", word("0 s")), ("mcs", Value::from(mcs))])])),
            ("traffic.0.kind", word("udp")),
            ("traffic.0.rate", word(OFFERED)),
            ("laws", table(&[("open-loop", table(&[("sender", word("cubic"))]))])),
        ]);
        if neighbour && text.contains("[[neighbour]]") {
            edits.push(("neighbour.0.active", always.clone()));
        } else {
            edits.push(("neighbour", Value::Array(Vec::new())));
        }
        if !text.contains("mcs-trace") {
            edits.retain(|(path, _)| *path != "station.0.mcs-trace");
            edits.push(("station.0.mcs", Value::from(mcs)));
        }
        let run = runner.run(scenario, &edits)?;
        Ok((run.of("open-loop", Key::Aggregation), run.of("open-loop", Key::FrameInterval)))
    };
    let rounds = [round(LEVELS[0])?, round(LEVELS[1])?];
    let mean = |estimate: &Estimate| estimate.mean.unwrap_or(f64::NAN);
    let [few, many] = [&rounds[0], &rounds[1]].map(|(level, round)| (mean(level), mean(round) * 1e-3));
    let slope = (many.1 - few.1) / (many.0 - few.0);
    Ok(Line { overhead: few.1 - slope * few.0, slope, rounds })
}

#[cfg(test)]
mod tests {
    use super::super::ACCESS;
    use super::*;
    use crate::study::shipped;
    use lasthop_lab::Stop;
    use lasthop_laws::aggregation::model::airtime;

    #[test]
    fn saturated_overhead_and_airtime_are_the_standards() {
        let stop = Stop::default();
        let runner = Runner::new(true, &stop, &|_| {});
        let scenario = shipped!("aggregation", "neighbour");
        let alone = saturated(&runner, scenario, &[], 9, false).expect("it runs");
        let near = |got: f64, want: f64, share: f64| assert!((got / want - 1.0).abs() < share, "{got} for {want}");
        // Three accesses, and three packets of 1544 octets with their delimiters at 390 Mbit/s.
        near(alone.overhead, 3.0 * ACCESS, 0.05);
        near(alone.slope, 3.0 * airtime(1544.0 * 8.0, 390e6), 0.02);
        // The neighbour's frames: 1500 octets at 54 Mbit/s with all that goes with them take 0.4 ms, one for each of ours.
        let beside = saturated(&runner, scenario, &[], 9, true).expect("it runs");
        near(beside.overhead - alone.overhead, 3.0 * 0.4e-3, 0.15);
    }
}
