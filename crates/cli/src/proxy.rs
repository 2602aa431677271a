//! `lasthop proxy`.

use crate::law::{self, Law};
use crate::{flag, note, say};
use clap::Args as ClapArgs;
use lasthop_agents::proxy::{Config, Proxy, Rule};
use lasthop_agents::service;
use lasthop_agents::transparent;
use lasthop_laws::{Place, Settings, Value, pbe};
use lasthop_signals::Node;
use lasthop_units::{Rate, Span, count};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

/// Its command line.
#[derive(ClapArgs)]
#[command(override_usage = "lasthop proxy --keys <FILE> [OPTIONS]\n       lasthop proxy --clean")]
pub struct Args {
    /// UDP address for stations
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = flag::address::<{ flag::PROXY }>, default_value_t = (Ipv4Addr::UNSPECIFIED, flag::PROXY).into())]
    listen: SocketAddr,
    /// File of keys, made by `lasthop pair`
    #[arg(long, value_name = "FILE", required_unless_present = "clean")]
    keys: Option<PathBuf>,
    /// Interface towards the servers: connections from there to a station's address are brought to the station (IPv4)
    #[arg(long, value_name = "DEV", requires = "addresses")]
    transparent: Option<String>,
    /// A station's address and number, for --transparent; repeat for each
    #[arg(long = "station", id = "addresses", value_name = "ADDRESS=NUMBER", requires = "transparent")]
    #[arg(value_parser = |text: &str| flag::station::<Ipv4Addr>(text, "IPv4"))]
    addresses: Vec<(Ipv4Addr, Node)>,
    /// Remove the route that a proxy with --transparent has left, and end
    #[arg(long, conflicts_with_all = ["keys", "transparent", "log"])]
    clean: bool,
    #[command(flatten)]
    law: Law<law::Proxy>,
    /// Serve every station at this rate of IP packets instead
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = flag::quantity::<Rate>, conflicts_with = "law")]
    rate: Option<Rate>,
    /// No capacity above this one is believed of a station that tells of its cell
    ///
    /// Such a station (`lasthop station --dci`) is served by PBE-CC, whatever law serves the others. Nor is more believed than twice what it was delivered in the best
    /// of ten round trips.
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = cell_most, conflicts_with = "rate", default_value_t = pbe::Params::default().most)]
    cell_most: Rate,
    /// What may be held for a station beyond what fills the wires, as time at its rate
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = flag::quantity::<Span>, default_value = "10 ms")]
    allowance: Span,
    /// Let stations open connections to this host's own addresses (interfaces, loopback, link-local)
    #[arg(long)]
    allow_local: bool,
    /// Write what the controller saw and decided to this file (JSON lines: docs/reference/logs.md)
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Do without real-time scheduling
    #[arg(long)]
    no_realtime: bool,
    /// Become this user (name or number) once everything is open that needs root
    #[arg(long, value_name = "USER")]
    user: Option<String>,
}

/// Runs the proxy until it is told to stop.
pub fn proxy(args: &Args) -> anyhow::Result<ExitCode> {
    if args.clean {
        let found = transparent::clean().map_err(flag::of_tunnel)?;
        say!("{}", if found { "rule and route removed" } else { "nothing to remove" })?;
        return Ok(ExitCode::SUCCESS);
    }
    args.refuse_idle_flags()?;
    args.law.choice().check().map_err(|error| flag::of_law(error, Place::Proxy))?;
    let stop = service::stop_on_signals()?;
    let proxy = Proxy::open(&args.config()).map_err(flag::of_tunnel)?;
    say!("proxy: waiting for stations at {} (UDP)", proxy.address()?)?;
    let summary = proxy.run(stop)?;
    note!(
        "{}, {}; {} sent, {} lost on the way; {} refused",
        count(summary.sessions, "session"),
        count(summary.connections, "connection"),
        count(summary.packets, "packet"),
        summary.lost,
        count(summary.refused, "datagram")
    );
    if summary.unsent.count > 0 {
        note!("{}", summary.unsent);
    }
    if summary.doubted.count > 0 {
        note!("{}", summary.doubted);
    }
    if let Some((p50, p99)) = summary.pacing_error {
        note!("pacing error: median {p50:.0}, 99th percentile {p99:.0}");
    }
    match summary.log_error {
        Some(error) => Err(anyhow::Error::new(error).context("the log is incomplete")),
        None => Ok(ExitCode::SUCCESS),
    }
}

impl Args {
    fn refuse_idle_flags(&self) -> anyhow::Result<()> {
        self.law.refuse_idle_flags(self.rate.map(|_| "--rate"))
    }

    fn config(&self) -> Config {
        let default = Config::new(self.listen, self.keys.clone().unwrap_or_default(), self.rule());
        Config {
            cells: default.cells.map(|law| law.with(self.cell_settings())),
            allowance: self.allowance,
            allow_local: self.allow_local,
            transparent: self
                .transparent
                .as_ref()
                .map(|iface| transparent::Config { iface: iface.clone(), stations: self.addresses.clone() }),
            log: self.log.clone(),
            realtime: !self.no_realtime,
            user: self.user.clone(),
            say: |line| note!("{line}"),
            ..default
        }
    }

    /// What is set of the law that serves stations in cells.
    fn cell_settings(&self) -> Settings {
        let mut settings = Settings::default();
        settings.set("most", Value::Rate(self.cell_most));
        settings
    }

    /// What paces, from parameters that are legal.
    fn rule(&self) -> Rule {
        self.rate.map_or_else(|| Rule::Law(self.law.choice()), Rule::Fixed)
    }
}

/// A capacity that the law takes for the most.
fn cell_most(text: &str) -> Result<Rate, String> {
    let rate = flag::quantity::<Rate>(text)?;
    let least = Rate::from_mbit(1);
    if rate >= least { Ok(rate) } else { Err(format!("must be at least {least}")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_line::Line;
    use clap::{CommandFactory, Parser};
    use lasthop_laws::Parameters;
    use lasthop_laws::aggregation::{Allocation, Params, PiParams, SLOT};

    fn rule(line: &str) -> Rule {
        Line::<Args>::parse_from(["proxy", "--keys", "k"].into_iter().chain(line.split_whitespace())).args.rule()
    }

    #[test]
    fn flags_are_parameters() {
        let law = |line| match rule(line) {
            Rule::Law(choice) => choice,
            Rule::Fixed(rate) => panic!("{rate}"),
        };
        let regulator = |line| Params::with(law(line).settings()).expect("legal");
        assert_eq!((law("").name(), regulator("")), ("aggregation", Params::default()));
        let wanted =
            Params { target: Span::from_millis(20), k1: 1.5, allocation: Allocation::Paper, ..Params::default() };
        assert_eq!(regulator("--target 20ms --k1 1.5 --allocation paper"), wanted);
        let other = law("--law linear-pi --slot 1s");
        let wanted = PiParams { interval: Span::from_secs(1), ..PiParams::default() };
        assert_eq!((other.name(), PiParams::with(other.settings())), ("linear-pi", Ok(wanted)));
        assert_eq!(rule("--rate 100Mbit/s"), Rule::Fixed(Rate::from_mbit(100)));
    }

    #[test]
    fn cell_stations_use_pbe_unless_all_have_one_rate() {
        let line = |line: &str| {
            let line = ["proxy", "--keys", "k"].into_iter().chain(line.split_whitespace());
            Line::<Args>::try_parse_from(line).map(|line| line.args.config().cells)
        };
        let most = |text: &str| {
            let law = line(text).expect("legal").expect("a law for cells");
            (law.name().to_owned(), pbe::Params::with(law.settings()).expect("legal").most)
        };
        assert_eq!(most(""), ("pbe".to_owned(), pbe::Params::default().most));
        assert_eq!(most("--law linear-pi --cell-most 50Mbit/s"), ("pbe".to_owned(), Rate::from_mbit(50)));
        assert_eq!(line("--rate 1Mbit/s").expect("legal"), None);
        for wrong in ["--rate 1Mbit/s --cell-most 50Mbit/s", "--cell-most 1kbit/s"] {
            assert!(line(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn stations_and_all_laws_have_the_same_default_slot() {
        let slot = |line| match rule(line) {
            Rule::Law(choice) => choice.interval().expect("it has slots"),
            Rule::Fixed(rate) => panic!("{rate}"),
        };
        let station = lasthop_agents::station::Config::new(([192, 0, 2, 1], 4848).into(), PathBuf::new()).slot;
        assert_eq!([slot(""), slot("--law linear-pi"), station], [SLOT; 3]);
        let help = Line::<Args>::command().render_long_help().to_string();
        assert!(help.contains(&format!("that of the stations must be equal [default: {SLOT}]")), "{help}");
    }

    #[test]
    fn an_unused_flag_is_refused_and_either_remedy_works() {
        let refused = |line: &str| {
            let line = ["proxy", "--keys", "k"].into_iter().chain(line.split_whitespace());
            Line::<Args>::parse_from(line).args.refuse_idle_flags().err().map(|error| error.to_string())
        };
        for right in [
            "",
            "--k1 1 --slot 1s",
            "--law linear-pi --integral 5 --aim-packets 30",
            "--rate 1Mbit/s --allowance 5ms",
            "--rate 1Mbit/s",
            "--law aggregation --slot 1s",
            "--law linear-pi --slot 1s",
        ] {
            assert_eq!(refused(right), None);
        }
        assert_eq!(
            refused("--law linear-pi --k1 1").as_deref(),
            Some(
                "--k1 has no meaning with --law linear-pi: leave out --k1, or use --law aggregation in place of --law linear-pi"
            )
        );
        assert_eq!(
            refused("--rate 1Mbit/s --slot 1s").as_deref(),
            Some(
                "--slot has no meaning with --rate: leave out --slot, or use --law aggregation or --law linear-pi in place of --rate"
            )
        );
    }
}
