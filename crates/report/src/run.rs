//! The runs of an experiment and the circumstances of their making.
//!
//! [`RunInfo`] becomes `run.json`. Everything that may differ between two equal simulator runs (host, clock, duration)
//! lives there, so that `result.json` can be compared byte by byte.

use crate::{PbeAccount, RelayAccount, RunRecord, TerminalAccount};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The kind of world that a run took place in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum World {
    /// Virtual time, modelled end hosts.
    Sim,
    /// Wall-clock time, kernel TCP, modelled radio.
    Lab,
    /// Real radios.
    Hardware,
}

impl World {
    /// The name in `result.json`.
    pub const fn name(self) -> &'static str {
        match self {
            World::Sim => "sim",
            World::Lab => "lab",
            World::Hardware => "hardware",
        }
    }

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
    /// What the access point's agent says it has done, if there was one that said so.
    #[serde(default)]
    pub agent: Option<AgentAccount>,
    /// What the agents of stations that bound their own windows say they have done, together; none without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminals: Option<TerminalAccount>,
    /// What relays say they have done, by the name of their node; empty without them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub relays: BTreeMap<String, RelayAccount>,
    /// What the agents of PBE-CC on kernel TCP say they have done, together; none without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pbe: Option<PbeAccount>,
}

/// What is always so is left out.
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// An access point's agent's account of itself: the last line that it prints, and a part of `run.json`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct AgentAccount {
    /// How its programs were attached.
    pub method: String,
    /// It was in shadow mode: the windows were those that it would have ordered, and nothing was changed.
    #[serde(default)]
    pub shadow: bool,
    /// Driver reports that it acted on.
    pub intervals: u64,
    /// Driver reports that were too old when they came.
    pub stale_reports: u64,
    /// Driver reports that were refused: they could not be read, or contradicted themselves, the one before or the time that had
    /// passed.
    #[serde(default)]
    pub refused_reports: u64,
    /// Times that the driver was silent for so long that all windows were released.
    pub driver_losses: u64,
    /// Flows that it managed.
    pub flows: u64,
    /// The most flows at once that it left alone, since nobody had said which station theirs is.
    #[serde(default)]
    pub strangers: u64,
    /// The most flows at once with neither TCP timestamps nor an undisturbed handshake, which get no window: their round trip
    /// cannot be told.
    #[serde(default)]
    pub untimed: u64,
    /// Flows that left the table since no packet had used them for long.
    #[serde(default)]
    pub expired: u64,
    /// Events of its program that were lost before it read them, and with them what was to be learned then.
    #[serde(default)]
    pub events_missed: u64,
    /// Windows that it ordered or lifted.
    pub orders: u64,
    /// Windows that were near enough to what was in force.
    pub orders_spared: u64,
    /// The longest that the work of one interval took, microseconds.
    pub longest_work_us: f64,
    /// How long windows took to open in the end, milliseconds.
    pub farewell_ms: f64,
    /// Segments with a lowered window.
    pub rewritten: u64,
    /// Segments that passed untouched because nobody decided.
    pub unattended: u64,
    /// Segments that could not be read.
    pub malformed: u64,
    /// Flows that entered the program's table.
    pub opened: u64,
    /// Flows that lost their place in it to others.
    pub evicted: u64,
    /// Flows that found no place.
    pub refused: u64,
}

impl AgentAccount {
    /// The account as the line that an agent prints: `{"agent":{…}}`.
    pub fn line(&self) -> String {
        serde_json::json!({ "agent": self }).to_string()
    }

    /// This account and that of another agent beside it as one: counts together, the longest of times.
    pub fn and(self, other: AgentAccount) -> AgentAccount {
        AgentAccount {
            method: self.method,
            shadow: self.shadow,
            intervals: self.intervals + other.intervals,
            stale_reports: self.stale_reports + other.stale_reports,
            refused_reports: self.refused_reports + other.refused_reports,
            driver_losses: self.driver_losses + other.driver_losses,
            flows: self.flows + other.flows,
            strangers: self.strangers + other.strangers,
            untimed: self.untimed + other.untimed,
            expired: self.expired + other.expired,
            events_missed: self.events_missed + other.events_missed,
            orders: self.orders + other.orders,
            orders_spared: self.orders_spared + other.orders_spared,
            longest_work_us: self.longest_work_us.max(other.longest_work_us),
            farewell_ms: self.farewell_ms.max(other.farewell_ms),
            rewritten: self.rewritten + other.rewritten,
            unattended: self.unattended + other.unattended,
            malformed: self.malformed + other.malformed,
            opened: self.opened + other.opened,
            evicted: self.evicted + other.evicted,
            refused: self.refused + other.refused,
        }
    }

    /// The last account in what an agent printed; `None` if there is none.
    pub fn find(printed: &str) -> Option<AgentAccount> {
        #[derive(Deserialize)]
        struct Line {
            agent: AgentAccount,
        }
        printed.lines().rev().find_map(|line| serde_json::from_str::<Line>(line).ok()).map(|line| line.agent)
    }
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

    #[test]
    fn an_agents_account_is_found_among_what_else_it_printed() {
        let account = AgentAccount { method: "tcx".into(), driver_losses: 2, ..AgentAccount::default() };
        let printed = format!("hello\n{{\"other\":1}}\n{}\n", account.line());
        assert_eq!(AgentAccount::find(&printed), Some(account));
        assert_eq!(AgentAccount::find("3 flows managed"), None);
    }
}
