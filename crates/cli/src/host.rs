//! `lasthop host`.

use crate::law::{Law, Terminal};
use crate::{flag, note, say};
use clap::{Args as ClapArgs, ValueEnum};
use lasthop_agents::host::{Config, Destination, Host, NOTICE_PORT, Summary, Way};
use lasthop_agents::service;
use lasthop_laws::{Place, Value};
use lasthop_report::account;
use lasthop_signals::MacAddress;
use lasthop_units::count;
use std::path::PathBuf;
use std::process::ExitCode;

/// Its command line.
#[derive(ClapArgs)]
pub struct Args {
    /// The wireless interface
    #[arg(long, value_name = "DEV")]
    iface: String,
    /// Look after the connections that programs of this cgroup make over CUBIC
    ///
    /// A directory of a cgroup2 file system: /sys/fs/cgroup (or /sys/fs/cgroup/unified) for the whole machine, or that of a service
    /// or a container. Connections that began before the agent are left alone.
    #[arg(long, value_name = "CGROUP")]
    cgroup: PathBuf,
    /// File of the network's key, the same for all its terminals: without one they do not hear each other
    ///
    /// One line, `station 0 KEY`, the key as 64 hexadecimal digits; `lasthop pair` makes such files.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// BSSID of the access point, where the driver does not say it
    #[arg(long, value_name = "MAC")]
    bss: Option<MacAddress>,
    /// How other terminals are told that this one sends; all ways are heard
    #[arg(long, value_enum, default_value_t = DestinationArg::Broadcast, requires = "key")]
    notices: DestinationArg,
    /// UDP port of notices, the same for all terminals of a network
    #[arg(long, value_name = "PORT", default_value_t = NOTICE_PORT, value_parser = clap::value_parser!(u16).range(1..), requires = "key")]
    port: u16,
    #[command(flatten)]
    law: Law<Terminal>,
    /// How windows are bounded
    #[arg(long, value_enum, default_value_t = BoundArg::Best)]
    bound: BoundArg,
    /// Write every look at the uploads to this file (JSON lines: docs/reference/logs.md)
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Become this user (name or number) once everything is open that needs root
    #[arg(long, value_name = "USER")]
    user: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum DestinationArg {
    /// By IPv4 broadcasts
    Broadcast,
    /// By IPv4 multicasts
    Multicast,
    /// By IPv6 multicasts
    Multicast6,
}

#[derive(Clone, Copy, ValueEnum)]
enum BoundArg {
    /// Within, where the kernel can, else by a clamp
    Best,
    /// By the kernel's CUBIC within bounds (struct_ops): upper and lower
    Within,
    /// By a clamp once a round trip: upper bounds only
    Clamp,
}

/// Runs the agent until it is told to stop.
pub fn host(args: &Args) -> anyhow::Result<ExitCode> {
    args.law.refuse_idle_flags(None)?;
    let choice = args.law.choice();
    choice.check().map_err(|error| flag::of_law(error, Place::Terminal))?;
    if choice.settings().get("beside") == Some(Value::Word("compete")) {
        let why = "--beside compete: it needs to know what waits in the station itself, which the agent is not told yet; leave it out".to_owned();
        return Err(flag::Wrong::line(why));
    }
    let stop = service::stop_on_signals()?;
    let host = Host::open(&args.config(), &choice).map_err(flag::of_tunnel)?;
    let way = match host.way() {
        Way::Within => "CUBIC within bounds",
        Way::Clamp => "a clamp: upper bounds only",
    };
    say!("host: connections of {} through {} have {way}", args.cgroup.display(), args.iface)?;
    let summary = host.run(stop).map_err(flag::of_tunnel)?;
    say!("{}", account::line("terminal", &summary))?;
    note!(
        "{} adopted, {} bounded; {} looks; at most {} sent at once",
        count(summary.adopted, "connection"),
        summary.bounded,
        summary.looks,
        count(u64::from(summary.terminals), "terminal")
    );
    if args.key.is_some() {
        note!("{} sent, {} heard; {} refused", count(summary.told, "notice"), summary.heard, refused(&summary));
    }
    match summary.log_error {
        Some(error) => Err(anyhow::Error::new(error).context("the log is incomplete")),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn refused(summary: &Summary) -> String {
    let refused = summary.refused;
    let parts = [
        (refused.forged, "forged"),
        (refused.replayed, "replayed"),
        (refused.untimely, "from another time"),
        (refused.excess, "too many"),
    ];
    let parts: Vec<String> = parts.iter().filter(|part| part.0 > 0).map(|(n, what)| format!("{n} {what}")).collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}

impl Args {
    fn config(&self) -> Config {
        Config {
            way: match self.bound {
                BoundArg::Best => None,
                BoundArg::Within => Some(Way::Within),
                BoundArg::Clamp => Some(Way::Clamp),
            },
            key: self.key.clone(),
            bssid: self.bss,
            destination: match self.notices {
                DestinationArg::Broadcast => Destination::Broadcast,
                DestinationArg::Multicast => Destination::Multicast,
                DestinationArg::Multicast6 => Destination::Multicast6,
            },
            port: self.port,
            log: self.log.clone(),
            user: self.user.clone(),
            say: |line| note!("{line}"),
            ..Config::new(&self.iface, &self.cgroup)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_line::Line;
    use clap::Parser;
    use lasthop_experiment::agent;
    use lasthop_laws::terminal::{Beside, Params, Rule};
    use lasthop_laws::{Choice, Parameters};
    use lasthop_units::Span;

    fn parse(more: &[String]) -> Args {
        let line = ["host", "--iface", "wlan0", "--cgroup", "/sys/fs/cgroup"].map(str::to_owned).into_iter();
        Line::<Args>::parse_from(line.chain(more.iter().cloned())).args
    }

    #[test]
    fn what_the_lab_writes_is_what_the_agent_reads() {
        let params = Params {
            rule: Rule::Count,
            interval: Span::from_millis(700),
            standing: Span::from_millis(9),
            packets: 17,
            window: 23,
            beside: Beside::Compete,
        };
        let law = Choice::named(Place::Terminal, "terminal").expect("a law").with(params.settings());
        assert_eq!(parse(&agent::flags(&law)).law.choice(), law);
    }

    #[test]
    fn who_names_no_mode_has_the_model() {
        let choice = parse(&[]).law.choice();
        let params = Params::with(choice.settings()).expect("a law");
        assert_eq!(params, Params { rule: Rule::Model, ..Params::default() });
        let tables = parse(&["--mode".into(), "tables".into()]).law.choice();
        assert_eq!(Params::with(tables.settings()), Ok(Params::default()));
    }
}
