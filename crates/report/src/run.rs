//! The runs of an experiment and the circumstances of their making.
//!
//! [`RunInfo`] becomes `run.json`. Everything that may differ between two equal simulator runs (host, clock, duration)
//! lives there, so that `result.json` can be compared byte by byte.

use crate::RunRecord;
use lasthop_units::named;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

named! {
    /// The kind of world that a run took place in.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum World {
        /// Virtual time, modelled end hosts.
        Sim = "sim",
        /// Wall-clock time, kernel TCP, modelled radio.
        Lab = "lab",
        /// Real radios.
        Hardware = "hardware",
    }
}

impl World {
    /// One word for a badge.
    pub const fn badge(self) -> &'static str {
        match self {
            World::Sim => "Simulated",
            World::Lab => "Lab, emulated radio",
            World::Hardware => "Radio hardware",
        }
    }

    /// What a reader must know about what was real and what was not.
    pub const fn statement(self) -> &'static str {
        match self {
            World::Sim => {
                "Everything here was simulated in virtual time: the hosts, their TCP (Lasthop's own implementation), \
                 the wired path and the radio hop. Nothing ran on radio hardware."
            }
            World::Lab => {
                "The end hosts were real Linux network stacks with the kernel's own TCP, running in wall-clock time; laws \
                 that no kernel has (as ATP and Vivace) were Lasthop's own senders over UDP. The wired path and the radio hop between them were emulated by a model. Nothing ran on radio \
                 hardware."
            }
            World::Hardware => "The hop was real radio hardware; end hosts ran in wall-clock time.",
        }
    }
}

/// One law under one seed, and what came of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// The law's name as the user wrote it.
    pub law: String,
    /// The seed.
    pub seed: u64,
    /// What was measured.
    pub record: RunRecord,
}

/// The circumstances of an experiment.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct RunInfo {
    /// Version of Lasthop.
    pub lasthop: String,
    /// Git revision that it was built from, if known.
    pub git_revision: Option<String>,
    /// Path of the scenario file as given.
    pub scenario: String,
    /// The scenario file as it was read.
    #[serde(default)]
    pub scenario_text: String,
    /// The command line.
    pub command: Vec<String>,
    /// Name of the machine.
    pub host: String,
    /// Kernel release.
    pub kernel: String,
    /// Processor model and how many of them.
    pub cpu: String,
    /// What the runs took their time from: `"virtual"`, or the name of the clock and the scheduling class.
    pub clock: String,
    /// Start, RFC 3339 in UTC.
    pub started: String,
    /// Wall-clock seconds from start to the last file.
    pub duration_s: f64,
    /// Versions of other programs that took part, by name.
    pub versions: BTreeMap<String, String>,
    /// Doubts that concern all runs, such as "real-time scheduling was not allowed".
    pub doubts: Vec<String>,
    /// How each run went, in the order of running.
    pub runs: Vec<RunStatus>,
}

/// How one run went.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct RunStatus {
    /// Its law.
    pub law: String,
    /// Its seed.
    pub seed: u64,
    /// Wall-clock seconds that it took.
    pub duration_s: f64,
    /// How late the emulator was, by kind of event (`delivery`, `driver_report`, `model_event`…); empty without one.
    #[serde(default)]
    pub lateness: BTreeMap<String, Lateness>,
    /// What came of an edge proxy's law, station by station; empty without one, and in the simulator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regulated: Vec<Regulated>,
    /// Why its figures should not be trusted; empty if there is no such reason.
    pub doubts: Vec<String>,
    /// How many runs before this one the machine had disturbed (`--tries`).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeated: usize,
    /// What programs beside the traffic say that they have done, as their authors name it: their accounts added up, or by the
    /// name of their host.
    #[serde(flatten)]
    pub accounts: BTreeMap<String, Value>,
}

/// What is always so is left out.
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// How an edge proxy served one station in the measuring window. What was not measured is absent.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Regulated {
    /// The station's name.
    pub station: String,
    /// Slots that it reported.
    pub slots: u64,
    /// Interval between its frames by the controller's account: packets a frame reported, over packets a second allowed
    /// (μ_N/x); mean over slots.
    pub interval_ms: Option<f64>,
    /// Interval between its frames that the controller aimed at: its target, a longer one while that was out of reach, or a shorter one where
    /// the queue had no room for it; mean over slots.
    pub interval_aim_ms: Option<f64>,
    /// Interval between its frames on the air.
    pub frame_interval_ms: Option<f64>,
    /// Packets a frame on the air.
    pub aggregation_packets: Option<f64>,
    /// Packets a frame that the controller aimed at.
    pub target_packets: Option<f64>,
    /// Overhead of a service round that the controller estimated.
    pub round_overhead_ms: Option<f64>,
    /// Network-layer rate that it was served at.
    pub rate_mbit_s: Option<f64>,
    /// Share of the time that its frames occupied the channel.
    pub airtime_share: f64,
    /// Data frames that it sent to the access point, a second: acknowledgements, feedback, probes.
    pub uplink_frames_s: Option<f64>,
    /// Share of the time that those occupied the channel, without what precedes and follows each.
    pub uplink_airtime_share: Option<f64>,
    /// The most that the proxy held for it, over the bound at that time.
    pub backlog_over_bound: Option<f64>,
    /// Share of the looks at what the proxy held that found more than the bound.
    pub looks_over_bound: Option<f64>,
    /// How late packets left the proxy: worst slot's 99th percentile.
    pub pacing_error_us_p99: Option<f64>,
}

/// How far the emulator lagged behind the model's event times.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Lateness {
    /// Events handled.
    pub events: u64,
    /// Median lag in microseconds.
    pub p50_us: f64,
    /// 99th percentile in microseconds.
    pub p99_us: f64,
    /// Largest in microseconds.
    pub max_us: f64,
}

/// Whether the figures may be trusted, and if not, why.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Verdict {
    /// True if there is no reason to doubt.
    pub reliable: bool,
    /// The reasons, each naming the run that it concerns.
    pub reasons: Vec<String>,
}

impl RunInfo {
    /// What all doubts together amount to.
    pub fn verdict(&self) -> Verdict {
        let of_runs = self
            .runs
            .iter()
            .flat_map(|run| run.doubts.iter().map(move |doubt| format!("{}, seed {}: {doubt}", run.law, run.seed)));
        let reasons: Vec<String> = self.doubts.iter().cloned().chain(of_runs).collect();
        Verdict { reliable: reasons.is_empty(), reasons }
    }

    /// The contents of `run.json`: these fields and the verdict.
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct File<'a> {
            verdict: Verdict,
            #[serde(flatten)]
            info: &'a RunInfo,
        }
        crate::json::pretty(&File { verdict: self.verdict(), info: self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_doubtful_run_makes_the_result_unreliable_and_is_named() {
        let mut info = RunInfo::default();
        assert!(info.verdict().reliable);
        info.runs.push(RunStatus { law: "bbr".into(), seed: 3, doubts: vec!["late".into()], ..RunStatus::default() });
        assert_eq!(info.verdict(), Verdict { reliable: false, reasons: vec!["bbr, seed 3: late".into()] });
        let json: serde_json::Value = serde_json::from_str(&info.to_json()).expect("valid JSON");
        assert_eq!(json["verdict"]["reliable"], false);
        let back: RunInfo = serde_json::from_str(&info.to_json()).expect("fields of RunInfo");
        assert_eq!(back, info);
    }
}
