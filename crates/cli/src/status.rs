//! `lasthop status`.

use crate::{console, flag, note, say};
use anyhow::bail;
use clap::Args as ClapArgs;
use lasthop_agents::ap::status::{ModelStatus, StationStatus, Status};
use lasthop_agents::{ap, service};
use lasthop_units::count;
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
    let ifaces = match &args.iface {
        Some(iface) => vec![iface.clone()],
        None => {
            let all = nix::net::if_::if_nameindex()?;
            all.iter().filter_map(|iface| Some(iface.name().to_str().ok()?.to_owned())).collect()
        }
    };
    let mut found = Vec::new();
    for iface in &ifaces {
        match ap::ask(iface) {
            Ok(status) => found.extend(status),
            // Not every interface is one that an agent could be on.
            Err(service::Error::LinkType { .. } | service::Error::NoInterface { .. }) if args.iface.is_none() => {}
            Err(error) => return Err(flag::of_ap(error)),
        }
    }
    if found.is_empty() {
        match &args.iface {
            Some(iface) => bail!("no agent runs on {iface}: `lasthop ap --iface {iface}` starts one"),
            None => {
                bail!("no agent of an access point runs in this network namespace: `lasthop ap --iface DEV` starts one")
            }
        }
    }
    for status in &found {
        if args.json {
            say!("{}", serde_json::to_string(status)?)?;
        } else {
            tell(status)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn tell(status: &Status) -> anyhow::Result<()> {
    let Status { iface, law, method, shadow, pid, running_s, heard_s, driver_lost, flows, resting, done, .. } = status;
    let mode = if *shadow { "shadow, nothing is changed" } else { "acting" };
    say!("{iface}: {law}, {mode}; attached by {method}; process {pid}, for {running_s:.0} s")?;
    let driver = if *driver_lost { "silent: no window is lowered" } else { "heard" };
    say!(
        "driver: {driver}, last {heard_s:.2} s ago; {} acted on, {} refused, {} too old, {} silent",
        count(done.intervals, "report"),
        done.refused_reports,
        done.stale_reports,
        count(done.driver_losses, "time")
    )?;
    let total = flows.tight + flows.ceiling + flows.free;
    say!(
        "flows: {total} ({} tight, {} under a ceiling, {} without a limit), {resting} at rest, {} taken on so far; {}",
        flows.tight,
        flows.ceiling,
        flows.free,
        done.flows,
        count(done.orders, "order")
    )?;
    if let Some(ModelStatus { decider, version, age_s, age_limit_s, items }) = &status.model {
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
    if done.strangers > 0 {
        note!("up to {} flows at once were of nobody knows whom, and left alone", done.strangers);
    }
    if status.shared_backlog_packets > 0 {
        say!("waiting for all stations: {}", count(status.shared_backlog_packets, "packet"))?;
    }
    let row = |station: &StationStatus| {
        let rate = match station.phy_rate_mbit_s {
            0.0 => "-".to_owned(),
            rate => format!("{rate:.1}"),
        };
        let StationStatus { station, flows, backlog_packets, queue_drops, .. } = station;
        [station.to_string(), flows.to_string(), backlog_packets.to_string(), queue_drops.to_string(), rate]
    };
    let head = ["station", "flows", "waiting", "refused", "PHY rate, Mbit/s"];
    say!("{}", console::table(head, status.stations.iter().map(row)))
}
