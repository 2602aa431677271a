//! `lasthop olsr`.

use crate::{flag, note, say};
use clap::Args as ClapArgs;
use lasthop_agents::olsr::{Agent, Change, Config, Prefix, Summary};
use lasthop_agents::service::{self, AgentError};
use lasthop_routing::olsr::Params;
use lasthop_units::{Span, count};
use lasthop_wire::olsr::Willingness;
use std::net::Ipv4Addr;
use std::process::ExitCode;

/// Its command line.
#[derive(ClapArgs)]
pub struct Args {
    /// The interface that is in the mesh
    #[arg(long, value_name = "DEV")]
    iface: String,
    /// Which of its IPv4 addresses is the node's [default: the first]
    #[arg(long, value_name = "ADDRESS")]
    address: Option<Ipv4Addr>,
    /// Take neighbours and destinations from this network alone [default: that of the address]
    #[arg(long, value_name = "NETWORK", value_parser = str::parse::<Prefix>)]
    within: Option<Prefix>,
    /// From one HELLO to the next; TCs and holding times are in the RFC's proportions to it
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = flag::quantity::<Span>, default_value_t = Params::default().hello_interval)]
    interval: Span,
    /// How willingly it forwards for others, from 0 (never) to 7 (always)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=7), default_value_t = Willingness::DEFAULT.0)]
    willingness: u8,
    /// Print changes of routes as JSON lines (docs/reference/logs.md)
    #[arg(long)]
    json: bool,
    /// Become this user (name or number) once everything is open that needs root; CAP_NET_ADMIN stays
    #[arg(long, value_name = "USER")]
    user: Option<String>,
}

/// Runs the agent until it is told to stop.
pub fn olsr(args: &Args) -> anyhow::Result<ExitCode> {
    let stop = service::stop_on_signals()?;
    let agent = Agent::open(&args.config()).map_err(wrong)?;
    let ready = format!(
        "olsr: {} on {}, HELLO every {}, routes within {}",
        agent.address(),
        args.iface,
        args.interval,
        agent.within()
    );
    if args.json {
        note!("{ready}");
    } else {
        say!("{ready}")?;
    }
    let summary = agent.run(stop, |change| tell(change, args.json))?;
    report(&summary);
    Ok(ExitCode::SUCCESS)
}

fn tell(change: &Change, json: bool) -> anyhow::Result<()> {
    if json {
        return say!("{}", serde_json::to_string(change)?);
    }
    let Change { destination, next, hops, .. } = change;
    match (next, hops) {
        (Some(next), Some(1)) if next == destination => say!("{destination}: a neighbour"),
        (Some(next), Some(hops)) => say!("{destination}: through {next}, {}", count(u64::from(*hops), "hop")),
        _ => say!("{destination}: no route"),
    }
}

fn report(summary: &Summary) {
    let Summary { node, strangers, unsent, changes, routes } = summary;
    note!(
        "{} sent, {} heard, {} forwarded; at most {}, {}",
        count(node.sent, "packet"),
        node.heard,
        count(node.forwarded, "message"),
        count(*routes as u64, "route"),
        count(*changes, "change")
    );
    let refused = [
        (node.broken_packets, "packets that could not be read"),
        (node.broken_messages, "messages that could not be read"),
        (node.refused, "entries for which there was no room"),
        (*strangers, "packets from outside of the network"),
        (*unsent, "packets that the kernel did not send"),
    ];
    refused.iter().filter(|(number, _)| *number > 0).for_each(|(number, what)| note!("{number} {what}"));
}

/// An interval that cannot be came from its flag.
fn wrong(error: impl AgentError) -> anyhow::Error {
    match error.common() {
        Ok(service::Error::Config { key: "hello_interval", got, bound }) => {
            flag::Wrong::line(format!("--interval {got}: it must be {bound}"))
        }
        Ok(other) => flag::of_tunnel(other),
        Err(own) => own.into(),
    }
}

impl Args {
    fn config(&self) -> Config {
        let params = Params { willingness: Willingness(self.willingness), ..Params::with_interval(self.interval) };
        Config {
            address: self.address,
            within: self.within,
            params,
            user: self.user.clone(),
            say: |line| note!("{line}"),
            ..Config::new(&self.iface)
        }
    }
}
