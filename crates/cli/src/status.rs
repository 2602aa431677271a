//! `lasthop status`.

use crate::{console, flag, note, say};
use anyhow::bail;
use clap::Args as ClapArgs;
use lasthop_agents::ap::status::{ModelStatus, State, StationStatus};
use lasthop_agents::service::status::{Status, ask};
use lasthop_report::account::{Account, counter};
use lasthop_units::count;
use serde_json::Value;
use std::process::ExitCode;

/// Its command line.
#[derive(ClapArgs)]
pub struct Args {
    /// The interface of the agent [default: every one of this network namespace]
    #[arg(long, value_name = "DEV")]
    iface: Option<String>,
    /// Print each status as a line of JSON
    #[arg(long)]
    json: bool,
}

/// Asks the agents that run, and prints what they answer.
pub fn status(args: &Args) -> anyhow::Result<ExitCode> {
    let found = ask(args.iface.as_deref()).map_err(flag::of_ap)?;
    if found.is_empty() {
        match &args.iface {
            Some(iface) => bail!("no agent runs on {iface}: `lasthop ap --iface {iface}` starts one"),
            None => bail!("no agent that answers runs in this network namespace: `lasthop ap --iface DEV` starts one"),
        }
    }
    for status in found {
        if args.json {
            say!("{}", Value::from(status))?;
            continue;
        }
        match status["agent"].as_str() {
            Some("ap") => tell(&serde_json::from_value(Value::from(status))?)?,
            _ => tell_any(&serde_json::from_value(Value::from(status))?)?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What every agent tells.
fn tell_any(Status { agent, iface, pid, running_s, state: (), done }: &Status<()>) -> anyhow::Result<()> {
    say!("{iface}: {agent}; process {pid}, for {running_s:.0} s")?;
    tell_done(done)
}

/// The counters that are not 0.
fn tell_done(done: &Account) -> anyhow::Result<()> {
    let counted = done.iter().filter(|(_, value)| value.as_f64().is_some_and(|number| number > 0.0));
    let counted: Vec<String> = counted.map(|(name, value)| format!("{name} {value}")).collect();
    if counted.is_empty() { Ok(()) } else { say!("counters: {}", counted.join(", ")) }
}

fn tell(Status { iface, pid, running_s, state, done, .. }: &Status<State>) -> anyhow::Result<()> {
    let State { law, method, shadow, heard_s, driver_lost, flows, resting, .. } = state;
    let counter = |name| counter(done, name);
    let mode = if *shadow { "shadow, nothing is changed" } else { "acting" };
    say!("{iface}: {law}, {mode}; attached by {method}; process {pid}, for {running_s:.0} s")?;
    let driver = if *driver_lost { "silent: no window is lowered" } else { "heard" };
    say!(
        "driver: {driver}, last {heard_s:.2} s ago; {} acted on, {} refused, {} too old, {} silent",
        count(counter("intervals"), "report"),
        counter("refused_reports"),
        counter("stale_reports"),
        count(counter("driver_losses"), "time")
    )?;
    let total = flows.tight + flows.ceiling + flows.free;
    say!(
        "flows: {total} ({} tight, {} under a ceiling, {} without a limit), {resting} at rest, {} taken on so far; {}",
        flows.tight,
        flows.ceiling,
        flows.free,
        counter("flows"),
        count(counter("orders"), "order")
    )?;
    if let Some(ModelStatus { decider, version, age_s, age_limit_s, items }) = &state.model {
        let by = match decider.as_str() {
            "learned" => "the learned tree",
            "given" => "the given tree",
            _ => "no tree",
        };
        let newest = version.zip(*age_s).map_or_else(
            || "none learned yet".to_owned(),
            |(version, age)| {
                format!("newest tree {version}, its newest item {age:.1} s old of at most {age_limit_s:.1} s")
            },
        );
        say!("model: {by} decides; {newest}; {} so far", count(*items, "item"))?;
    }
    if counter("strangers") > 0 {
        note!("up to {} flows at once were of nobody knows whom, and left alone", counter("strangers"));
    }
    if state.shared_backlog_packets > 0 {
        say!("waiting for all stations: {}", count(state.shared_backlog_packets, "packet"))?;
    }
    tell_done(done)?;
    let row = |station: &StationStatus| {
        let rate = match station.phy_rate_mbit_s {
            0.0 => "-".to_owned(),
            rate => format!("{rate:.1}"),
        };
        let StationStatus { station, flows, backlog_packets, queue_drops, .. } = station;
        [station.to_string(), flows.to_string(), backlog_packets.to_string(), queue_drops.to_string(), rate]
    };
    let head = ["station", "flows", "waiting", "refused", "PHY rate, Mbit/s"];
    say!("{}", console::table(head, state.stations.iter().map(row)))
}
