//! `lasthop ap`.

mod metrics;
mod record;

use crate::law::{AccessPoint, Law};
use crate::metrics::Exporter;
use crate::{flag, note, say};
use anyhow::{Context as _, bail};
use clap::{Args as ClapArgs, ValueEnum};
use lasthop_agents::ap::{self, Config};
use lasthop_agents::learn::Desk;
use lasthop_agents::service::{Method, stop_on_signals};
use lasthop_dataset::PseudonymKey;
use lasthop_laws::oal::learned::Learned;
use lasthop_laws::oal::predictor::BacklogThreshold;
use lasthop_laws::oal::tree::Tree;
use lasthop_laws::oal::{self, Params, Prediction};
use lasthop_laws::{Choice, HopLaw, Parameters, Place};
use lasthop_report::account;
use lasthop_signals::Node;
use lasthop_units::{Span, count};
use record::Tape;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Its command line.
#[derive(ClapArgs)]
#[command(override_usage = "lasthop ap --iface <DEV> [OPTIONS]\n       lasthop ap --iface <DEV> --clean")]
pub struct Args {
    /// The interface towards the stations: an access point's, or one with a queue that is a bottleneck
    #[arg(long, value_name = "DEV")]
    iface: String,
    /// Socket of a driver that reports the radio's counters (docs/reference/driver-interface.md) [default: the kernel's own, by nl80211
    /// and qdisc statistics]
    #[arg(long, value_name = "PATH")]
    driver: Option<PathBuf>,
    /// A station that driver and neighbour table do not give away: its address and its number in the driver's reports; repeat
    /// for each. Flows of addresses that nobody knows are left alone
    #[arg(long = "station", value_name = "ADDRESS=NUMBER", value_parser = |text: &str| flag::station::<IpAddr>(text, "IP"))]
    stations: Vec<(IpAddr, Node)>,
    /// Remove what a killed agent left on the interface, and end
    #[arg(long, conflicts_with_all = ["driver", "stations", "log", "shadow", "listen"])]
    clean: bool,
    #[command(flatten)]
    law: Law<AccessPoint>,
    /// With `--predictor learned`: let `lasthop learn` train, at a socket that is made here, in place of this process
    #[arg(long, value_name = "PATH", conflicts_with = "clean")]
    learn: Option<PathBuf>,
    /// With --learn: let this user's `lasthop learn` in, by name or number [default: only the agent's own user's]
    #[arg(long, value_name = "USER", requires = "learn")]
    learner: Option<String>,
    /// With `--predictor learned`: decide by this tree of `lasthop learn --out` while there is no newer one. Without --learn nothing is learned
    #[arg(long, value_name = "FILE", conflicts_with = "clean")]
    tree: Option<PathBuf>,
    /// Reports and decisions older than this do not count [default: 500 ms]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = flag::quantity::<Span>)]
    age_limit: Option<Span>,
    /// Most flows followed at once [default: 4096]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    max_flows: Option<u32>,
    /// How to attach to the interface
    #[arg(long, value_enum, default_value_t = AttachArg::Best)]
    attach: AttachArg,
    /// Change nothing: observe, decide, and say and log which windows would be ordered
    #[arg(long)]
    shadow: bool,
    /// Begin although hardware flow offload or hardware NAT may carry flows past the agent
    #[arg(long)]
    allow_offload: bool,
    /// Serve what the agent does at http://ADDR:PORT/metrics, for Prometheus
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,
    /// Write every decision to this file (JSON lines: docs/reference/logs.md)
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Record what stations lose and what is known before into this file (docs/reference/data-set.md); with --shadow, of an access point
    /// on which nobody acts
    #[arg(long, value_name = "FILE", conflicts_with = "clean")]
    record: Option<PathBuf>,
    /// With --record: make pseudonyms with the key in this file (64 hexadecimal digits), so that devices can be known again in another data
    /// set [default: a fresh one that nobody keeps]
    #[arg(long, value_name = "FILE", requires = "record")]
    key: Option<PathBuf>,
}

/// How to attach to an interface.
#[derive(Clone, Copy, ValueEnum)]
pub enum AttachArg {
    /// TCX where the kernel has it, else clsact
    Best,
    /// TCX links (Linux 6.6)
    Tcx,
    /// Filters on the clsact qdisc
    Clsact,
}

impl AttachArg {
    /// The method that it names.
    pub fn method(self) -> Method {
        match self {
            AttachArg::Best => Method::Best,
            AttachArg::Tcx => Method::Tcx,
            AttachArg::Clsact => Method::Clsact,
        }
    }
}

/// Runs the agent until it is told to stop.
pub fn ap(args: Args) -> anyhow::Result<ExitCode> {
    if args.clean {
        let cleaned = ap::clean(&args.iface).map_err(flag::of_ap)?;
        say!("{}: {} removed", args.iface, count(cleaned.removed, "filter"))?;
        if cleaned.still_attached > 0 {
            bail!(
                "an agent that still runs has {} attached to {}: stop it first",
                count(cleaned.still_attached, "program"),
                args.iface
            );
        }
        return Ok(ExitCode::SUCCESS);
    }
    args.law.refuse_idle_flags(None)?;
    let choice = args.law.choice();
    choice.check().map_err(|error| flag::of_law(error, Place::AccessPoint))?;
    let mut law = args.hop(&choice)?;
    let mut config = args.config();
    config.validate().map_err(flag::of_ap)?;
    let mut tape = None;
    if let Some(path) = &args.record {
        let key = PseudonymKey::of(args.key.as_deref())?;
        let (begun, watched) = Tape::begin(path, key, &args.iface, law)?;
        law = watched;
        config.viewers.push(begun.clone());
        tape = Some(begun);
    }
    if let Some(address) = args.listen {
        let exporter = Exporter::bind(address, "lasthop_ap", metrics::add)?;
        note!("metrics at http://{}/metrics", exporter.address()?);
        config.viewers.push(Arc::new(exporter));
    }
    let stop = stop_on_signals()?;
    let ran = ap::run(&config, law, stop).map_err(flag::of_ap);
    // What there is counts, whatever ended the agent.
    let recorded = tape.map_or(Ok(()), |tape| tape.finish());
    let summary = match ran {
        Ok(summary) => summary,
        Err(error) => {
            if let Err(lost) = recorded {
                note!("{lost:#}");
            }
            return Err(error);
        }
    };
    let tally = summary.tally;
    say!("{}", account::line("agent", &summary))?;
    note!(
        "{} {} in {}, {} {}ordered; longest interval {}",
        count(tally.flows, "flow"),
        if summary.shadow { "watched" } else { "managed" },
        count(tally.intervals, "interval"),
        count(tally.orders, "window"),
        if summary.shadow { "would have been " } else { "" },
        tally.longest_work
    );
    if tally.refused_reports > 0 {
        note!("{} of the driver refused: unreadable, or against what is known", count(tally.refused_reports, "record"));
    }
    if tally.driver_losses > 0 {
        note!("the driver fell silent {}; windows were released meanwhile", count(tally.driver_losses, "time"));
    }
    if tally.strangers > 0 {
        note!(
            "up to {} flows at once were left alone: neither the driver nor --station says whose they are",
            tally.strangers
        );
    }
    if tally.untimed > 0 {
        note!(
            "up to {} flows at once got no window: they have no TCP timestamps, and their SYNs were repeated",
            tally.untimed
        );
    }
    if tally.events_missed > 0 {
        note!("{} of the program lost before they were read", count(tally.events_missed, "event"));
    }
    recorded?;
    match summary.log_error {
        Some(error) => Err(anyhow::Error::new(error).context("the decision log is incomplete")),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// The tree in a file.
fn tree(path: &Path) -> anyhow::Result<Tree> {
    let bytes = std::fs::read(path).with_context(|| format!("tree {}", path.display()))?;
    Tree::decode(&bytes)
        .with_context(|| format!("tree {}: make one with `lasthop learn --out` of this version", path.display()))
}

impl Args {
    /// The law; what learns in it may be trained elsewhere, or have a tree already.
    fn hop(&self, choice: &Choice) -> anyhow::Result<Box<dyn HopLaw>> {
        if self.learn.is_none() && self.tree.is_none() {
            return Ok(choice.hop()?);
        }
        let params = (choice.name() == oal::NAME).then(|| Params::with(choice.settings())).transpose()?;
        let Some(params) = params.filter(|params| params.predictor == Prediction::Learned) else {
            let flag = if self.learn.is_some() { "--learn" } else { "--tree" };
            return Err(flag::Wrong::idle(flag, &["--predictor learned"], "--predictor threshold"));
        };
        let threshold = BacklogThreshold::new(params.trigger);
        let learned = match &self.learn {
            Some(path) => {
                let desk = Desk::open(path, self.learner.as_deref(), |line| note!("{line}"))?;
                Learned::trained_elsewhere(params.learning(), threshold, Box::new(desk))
            }
            None => Learned::taught(params.learning(), threshold),
        };
        let learned = match &self.tree {
            Some(path) => learned.with_fixed(Arc::new(tree(path)?)),
            None => learned,
        };
        Ok(Box::new(oal::AccessPoint::with_predictor(params, Box::new(learned))?))
    }

    fn config(&self) -> Config {
        let default = Config::new(&self.iface);
        Config {
            driver: self.driver.clone(),
            stations: self.stations.clone(),
            age_limit: self.age_limit.unwrap_or(default.age_limit),
            max_flows: self.max_flows.unwrap_or(default.max_flows),
            method: self.attach.method(),
            shadow: self.shadow,
            allow_offload: self.allow_offload,
            log: self.log.clone(),
            say: |line| note!("{line}"),
            ..default
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_line::Line;
    use clap::Parser;
    use lasthop_experiment::agent;
    use lasthop_laws::oal::{CapacityRule, Weights, WindowRule};

    #[test]
    fn what_the_lab_writes_is_what_the_agent_reads() {
        let params = Params {
            weights: Weights::PotentialDelay,
            capacity: CapacityRule::Paper,
            window: WindowRule::Paper,
            slack: Span::from_micros(7_500),
            slack_max: Span::from_millis(30),
            trigger: Span::from_micros(1_234),
            release_after: 5,
            ceiling_gain: 1.5,
            predictor: Prediction::Learned,
            horizon: Span::from_millis(40),
            repair: Span::from_millis(2_500),
            depth: 9,
            explore: 0.125,
            explore_seed: 77,
            tree_age_limit: Span::from_secs(45),
        };
        let oal = Choice::named(Place::AccessPoint, "oal").expect("a law").with(params.settings());
        let line = ["ap", "--iface", "wlan0", "--driver", "d"].map(str::to_owned).into_iter();
        let line = Line::<Args>::parse_from(line.chain(agent::flags(&oal)));
        assert_eq!(line.args.law.choice(), oal);
        let plain = Line::<Args>::parse_from(["ap", "--iface", "wlan0", "--driver", "d"]);
        assert_eq!(Params::with(plain.args.law.choice().settings()), Ok(Params::default()));
    }
}
