//! `lasthop proxy`.

use crate::{flag, note, say};
use clap::{Args as ClapArgs, ValueEnum};
use lasthop_agents::ap;
use lasthop_agents::proxy::{Config, Proxy, Rule};
use lasthop_agents::transparent;
use lasthop_laws::aggregation::{Allocation, Control, OverheadRule, Params, PiParams, SLOT};
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
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = flag::address, default_value = "0.0.0.0:4848")]
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
    /// What decides how fast stations are served
    #[arg(long, value_enum, default_value_t = LawArg::Aggregation)]
    law: LawArg,
    /// Serve every station at this rate of IP packets instead
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = flag::quantity::<Rate>, conflicts_with = "law")]
    rate: Option<Rate>,
    /// Longest interval between a station's frames to aim at; it is shorter where frames come to --aim-packets first [default: 10 ms]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = flag::quantity::<Span>)]
    target: Option<Span>,
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = flag::quantity::<Span>)]
    #[arg(help = format!("Control interval; that of the stations must be equal [default: {SLOT}]"))]
    slot: Option<Span>,
    /// Which aggregation levels are aimed at [default: exact]
    #[arg(long, value_enum)]
    allocation: Option<AllocationArg>,
    /// Gain of the inner loop [default: 0.5]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    k1: Option<f64>,
    /// Gain of the outer loop [default: 0.2]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    k2: Option<f64>,
    /// Weight of a new sample in the estimate of the access overhead [default: 0.05]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    beta: Option<f64>,
    /// Access overhead of a frame before any was measured [default: 200 us]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = flag::quantity::<Span>)]
    overhead: Option<Span>,
    /// What is kept of the overhead when stations come and go [default: access]
    #[arg(long, value_enum)]
    overhead_rule: Option<OverheadRuleArg>,
    /// linear-pi: integral gain, packets a second for each packet a frame [default: 68]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    integral: Option<f64>,
    /// linear-pi: proportional gain, likewise [default: 0]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    proportional: Option<f64>,
    /// Most packets that the access point puts into one frame [default: 64]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    max_packets: Option<u32>,
    /// Most packets a frame that are aimed at [default: 48; linear-pi: 32]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    aim_packets: Option<u32>,
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

#[derive(Clone, Copy, ValueEnum)]
enum LawArg {
    /// The aggregation regulator
    Aggregation,
    /// Its predecessor, a linear controller
    #[value(alias = "pi")]
    LinearPi,
}

#[derive(Clone, Copy, ValueEnum)]
enum AllocationArg {
    /// The optimum
    Exact,
    /// As published
    Paper,
}

#[derive(Clone, Copy, ValueEnum)]
enum OverheadRuleArg {
    /// The overhead of one access
    Access,
    /// The overhead of the whole round, as published
    Round,
}

/// Runs the proxy until it is told to stop.
pub fn proxy(args: &Args) -> anyhow::Result<ExitCode> {
    if args.clean {
        let found = transparent::clean().map_err(flag::of_tunnel)?;
        say!("{}", if found { "rule and route removed" } else { "nothing to remove" })?;
        return Ok(ExitCode::SUCCESS);
    }
    args.refuse_idle_flags()?;
    let stop = ap::stop_on_signals()?;
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
    /// A flag that what runs does not look at would be a promise that nobody keeps.
    fn refuse_idle_flags(&self) -> anyhow::Result<()> {
        const AGGREGATION: &str = "--law aggregation";
        const PI: &str = "--law linear-pi";
        let flags = [
            ("--target", self.target.is_some(), &[AGGREGATION][..]),
            ("--allocation", self.allocation.is_some(), &[AGGREGATION]),
            ("--k1", self.k1.is_some(), &[AGGREGATION]),
            ("--k2", self.k2.is_some(), &[AGGREGATION]),
            ("--beta", self.beta.is_some(), &[AGGREGATION]),
            ("--overhead", self.overhead.is_some(), &[AGGREGATION]),
            ("--overhead-rule", self.overhead_rule.is_some(), &[AGGREGATION]),
            ("--max-packets", self.max_packets.is_some(), &[AGGREGATION]),
            ("--integral", self.integral.is_some(), &[PI]),
            ("--proportional", self.proportional.is_some(), &[PI]),
            ("--aim-packets", self.aim_packets.is_some(), &[AGGREGATION, PI]),
            ("--slot", self.slot.is_some(), &[AGGREGATION, PI]),
        ];
        let runs = match (self.rate, self.law) {
            (Some(_), _) => "--rate",
            (None, LawArg::Aggregation) => AGGREGATION,
            (None, LawArg::LinearPi) => PI,
        };
        match flags.into_iter().find(|(_, given, of)| *given && !of.contains(&runs)) {
            None => Ok(()),
            Some((name, _, of)) => Err(flag::Wrong::idle(name, of, runs)),
        }
    }

    fn config(&self) -> Config {
        let default = Config::new(self.listen, self.keys.clone().unwrap_or_default(), self.rule());
        Config {
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

    fn rule(&self) -> Rule {
        if let Some(rate) = self.rate {
            return Rule::Fixed(rate);
        }
        Rule::Law(match self.law {
            LawArg::Aggregation => {
                let default = Params::default();
                Control::Aggregation(Params {
                    allocation: match self.allocation {
                        None | Some(AllocationArg::Exact) => Allocation::Exact,
                        Some(AllocationArg::Paper) => Allocation::Paper,
                    },
                    target: self.target.unwrap_or(default.target),
                    k1: self.k1.unwrap_or(default.k1),
                    k2: self.k2.unwrap_or(default.k2),
                    beta: self.beta.unwrap_or(default.beta),
                    overhead: self.overhead.unwrap_or(default.overhead),
                    overhead_rule: match self.overhead_rule {
                        None | Some(OverheadRuleArg::Access) => OverheadRule::Access,
                        Some(OverheadRuleArg::Round) => OverheadRule::Round,
                    },
                    interval: self.slot.unwrap_or(SLOT),
                    max_packets: self.max_packets.unwrap_or(default.max_packets),
                    aim_packets: self.aim_packets.unwrap_or(default.aim_packets),
                    ..default
                })
            }
            LawArg::LinearPi => {
                let default = PiParams::default();
                Control::LinearPi(PiParams {
                    integral: self.integral.unwrap_or(default.integral),
                    proportional: self.proportional.unwrap_or(default.proportional),
                    aim_packets: self.aim_packets.unwrap_or(default.aim_packets),
                    // Not the second that was its own: stations that are told nothing report at this pace. Gains are a slot's.
                    interval: self.slot.unwrap_or(SLOT),
                    ..default
                })
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn rule(line: &str) -> Rule {
        Line::parse_from(["proxy", "--keys", "k"].into_iter().chain(line.split_whitespace())).args.rule()
    }

    #[test]
    fn flags_are_parameters() {
        assert_eq!(rule(""), Rule::Law(Control::Aggregation(Params::default())));
        let wanted =
            Params { target: Span::from_millis(20), k1: 1.5, allocation: Allocation::Paper, ..Params::default() };
        assert_eq!(rule("--target 20ms --k1 1.5 --allocation paper"), Rule::Law(Control::Aggregation(wanted)));
        let wanted = |interval| Rule::Law(Control::LinearPi(PiParams { interval, ..PiParams::default() }));
        assert_eq!(rule("--law linear-pi --slot 1s"), wanted(Span::from_secs(1)));
        assert_eq!(rule("--rate 100Mbit/s"), Rule::Fixed(Rate::from_mbit(100)));
    }

    #[test]
    fn stations_and_every_law_have_the_same_slot_if_nobody_says_another() {
        let slot = |line| match rule(line) {
            Rule::Law(control) => control.interval(),
            Rule::Fixed(rate) => panic!("{rate}"),
        };
        let station = lasthop_agents::station::Config::new(([192, 0, 2, 1], 4848).into(), PathBuf::new()).slot;
        assert_eq!([slot(""), slot("--law linear-pi"), station], [SLOT; 3]);
        let help = Line::command().render_long_help().to_string();
        assert!(help.contains(&format!("that of the stations must be equal [default: {SLOT}]")), "{help}");
    }

    #[test]
    fn a_flag_that_nothing_looks_at_is_refused_and_either_remedy_works() {
        let refused = |line: &str| {
            let line = ["proxy", "--keys", "k"].into_iter().chain(line.split_whitespace());
            Line::parse_from(line).args.refuse_idle_flags().err().map(|error| error.to_string())
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
