//! `lasthop echo`.

use crate::law::{Agent, Law};
use crate::metrics::{self, Exporter};
use crate::{flag, note, say};
use clap::Args as ClapArgs;
use lasthop_agents::echo::{Config, Echo, PORT, Tally};
use lasthop_agents::service::stop_on_signals;
use lasthop_laws::{Place, echo};
use lasthop_report::account;
use lasthop_units::count;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;

/// Its command line.
#[derive(ClapArgs)]
pub struct Args {
    /// The interface at which probes are answered
    #[arg(long, value_name = "DEV")]
    iface: String,
    /// UDP port of probes, the same for all
    #[arg(long, value_name = "PORT", default_value_t = PORT, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// Ask this neighbour, ten times a second
    #[arg(long, value_name = "ADDRESS")]
    ask: Option<Ipv4Addr>,
    #[command(flatten)]
    law: Law<Prober>,
    /// Serve what the agent does at http://ADDR:PORT/metrics, for Prometheus
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,
    /// Become this user (name or number) once everything is open that needs root
    #[arg(long, value_name = "USER")]
    user: Option<String>,
}

/// `lasthop echo`.
#[derive(Clone, Debug)]
struct Prober;

impl Agent for Prober {
    const PLACE: Place = Place::Relay;
    const DEFAULT: &str = echo::NAME;
}

/// Runs the agent until it is told to stop.
pub fn echo(args: &Args) -> anyhow::Result<ExitCode> {
    let law = args.law.choice();
    law.check().map_err(|error| flag::of_law(error, Place::Relay))?;
    let mut config =
        Config { port: args.port, ask: args.ask, law, user: args.user.clone(), ..Config::new(&args.iface) };
    if let Some(address) = args.listen {
        let add = |status: &_, registry: &mut _| metrics::add(status, Tally::MEANINGS, registry);
        let exporter = Exporter::bind(address, "lasthop_echo", add)?;
        note!("metrics at http://{}/metrics", exporter.address()?);
        config.viewers.push(Arc::new(exporter));
    }
    let stop = stop_on_signals()?;
    let echo = Echo::open(&config).map_err(flag::of_tunnel)?;
    say!("echo: probes at {}, UDP port {}, are answered", args.iface, args.port)?;
    let tally = echo.run(stop).map_err(flag::of_tunnel)?;
    say!("{}", account::line("echo", &tally))?;
    note!("{} answered; {} of {} heard", count(tally.answered, "probe"), tally.heard, count(tally.asked, "question"));
    Ok(ExitCode::SUCCESS)
}
