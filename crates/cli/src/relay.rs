//! `lasthop relay`.

use crate::ap::AttachArg;
use crate::{flag, note, say};
use anyhow::bail;
use clap::{Args as ClapArgs, ValueEnum};
use lasthop_agents::relay::{self, Config, MarkCe, PORT, Relay, Source, Summary};
use lasthop_agents::service;
use lasthop_report::account;
use lasthop_units::{Span, count};
use std::path::PathBuf;
use std::process::ExitCode;

/// Its command line.
#[derive(ClapArgs)]
#[command(override_usage = "lasthop relay --dev <DEV>... [OPTIONS]\n       lasthop relay --dev <DEV>... --clean")]
pub struct Args {
    /// An interface that datagrams leave through; repeat for each
    #[arg(long = "dev", value_name = "DEV", required = true)]
    devices: Vec<String>,
    /// A UDP port that ATP uses; repeat for each
    #[arg(long = "port", value_name = "PORT", default_values_t = [PORT], value_parser = clap::value_parser!(u16).range(1..))]
    ports: Vec<u16>,
    /// Where D comes from: `kernel`, or `driver:PATH`
    ///
    /// kernel: packets are watched from the queueing discipline to the driver's completion (Linux with BTF). driver: the node's records at the driver's
    /// socket (docs/reference/driver-interface.md).
    #[arg(long, value_name = "SOURCE", default_value = "kernel", value_parser = source)]
    d_source: Source,
    /// Mark packets of ECN-capable transports (CE) while D is at least this
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = flag::quantity::<Span>)]
    mark_ce: Option<Span>,
    /// What marks them
    #[arg(long, value_enum, default_value_t = MarkBy::Ebpf, requires = "mark_ce")]
    mark_by: MarkBy,
    /// D, and records of the driver, that are older than this do not count [default: 250 ms]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = flag::quantity::<Span>)]
    age_limit: Option<Span>,
    /// How to attach to the interfaces
    #[arg(long, value_enum, default_value_t = AttachArg::Best)]
    attach: AttachArg,
    /// Write what D is, ten times a second, to this file (JSON lines: docs/reference/logs.md)
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Become this user (name or number) once everything is open that needs root
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// Remove what a killed relay left on the interfaces, and end
    #[arg(long, conflicts_with_all = ["mark_ce", "log", "user"])]
    clean: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MarkBy {
    /// The program that stamps
    Ebpf,
    /// A handler at user level, over NFQUEUE (needs iptables)
    Nfqueue,
}

/// Runs the relay until it is told to stop.
pub fn relay(args: &Args) -> anyhow::Result<ExitCode> {
    if args.clean {
        return clean(&args.devices);
    }
    let config = args.config();
    config.validate().map_err(flag::of_tunnel)?;
    let stop = service::stop_on_signals()?;
    let handler = args.mark_ce.filter(|_| args.mark_by == MarkBy::Nfqueue);
    let relay = match handler {
        Some(above) => Relay::open_with(&config, Box::new(MarkCe { above })),
        None => Relay::open(&config),
    };
    let relay = relay.map_err(flag::of_tunnel)?;
    let devices: Vec<String> = relay.devices().map(|(name, method)| format!("{name} ({method})")).collect();
    let ports: Vec<String> = args.ports.iter().map(u16::to_string).collect();
    let source = match &args.d_source {
        Source::Kernel => "the kernel".to_owned(),
        Source::Driver(path) => format!("the driver at {}", path.display()),
    };
    say!("relay: {}, UDP {} {}, D from {source}", devices.join(", "), plural(&ports), ports.join(", "))?;
    let summary = relay.run(stop).map_err(flag::of_tunnel)?;
    say!("{}", account::line("relay", &summary))?;
    report(&summary);
    match summary.log_error {
        Some(error) => Err(anyhow::Error::new(error).context("the log is incomplete")),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn clean(devices: &[String]) -> anyhow::Result<ExitCode> {
    let mut busy = Vec::new();
    for device in devices {
        let cleaned = relay::clean(device).map_err(flag::of_ap)?;
        say!("{device}: {} removed", count(cleaned.removed, "filter"))?;
        if cleaned.still_attached > 0 {
            busy.push(device.as_str());
        }
    }
    if !busy.is_empty() {
        bail!("a relay that still runs is attached to {}: stop it first", busy.join(", "));
    }
    Ok(ExitCode::SUCCESS)
}

fn report(summary: &Summary) {
    for device in &summary.devices {
        let counters = device.counters;
        note!(
            "{}: {} of {}, {} stamped; largest D {}",
            device.name,
            count(counters.seen, "datagram"),
            "ATP",
            counters.stamped,
            device.largest
        );
        let others = [
            (counters.stale, "left while no D was known"),
            (counters.other, "of these ports are not ours"),
            (counters.marked, "packets were marked"),
            (device.measured.map_or(0, |measured| measured.dropped), "packets were dropped before the driver had them"),
            (device.measured.map_or(0, |measured| measured.missed), "completions were missed"),
        ];
        others.iter().filter(|(number, _)| *number > 0).for_each(|(number, what)| note!("  {number} {what}"));
    }
    if summary.refused > 0 {
        note!("{} of the driver refused: unreadable, or too old", count(summary.refused, "record"));
    }
    if summary.losses > 0 {
        note!("the driver went away {}; nothing was stamped meanwhile", count(summary.losses, "time"));
    }
    if let Some(handled) = summary.handled {
        note!("{} at user level, {} changed", count(handled.seen, "packet"), handled.changed);
    }
}

fn plural(ports: &[String]) -> &'static str {
    if ports.len() == 1 { "port" } else { "ports" }
}

fn source(text: &str) -> Result<Source, String> {
    match text.split_once(':') {
        None if text == "kernel" => Ok(Source::Kernel),
        Some(("driver", path)) if !path.is_empty() => Ok(Source::Driver(path.into())),
        _ => Err("write `kernel`, or `driver:` and the path of the driver's socket".to_owned()),
    }
}

impl Args {
    fn config(&self) -> Config {
        let default = Config::new(self.devices.clone());
        Config {
            ports: self.ports.clone(),
            source: self.d_source.clone(),
            mark_above: self.mark_ce.filter(|_| self.mark_by == MarkBy::Ebpf),
            age_limit: self.age_limit.unwrap_or(default.age_limit),
            method: self.attach.method(),
            log: self.log.clone(),
            user: self.user.clone(),
            say: |line| note!("{line}"),
            ..default
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_read_or_refused_with_what_would_be_right() {
        assert_eq!(source("kernel"), Ok(Source::Kernel));
        assert_eq!(source("driver:/run/a:b"), Ok(Source::Driver("/run/a:b".into())));
        for wrong in ["", "driver", "driver:", "kernel:", "proc"] {
            assert!(source(wrong).is_err_and(|told| told.contains("driver:")), "{wrong}");
        }
    }
}
