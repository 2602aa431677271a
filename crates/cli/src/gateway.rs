//! `lasthop mesh-gateway`.

use crate::flag::{self, Destination};
use crate::station::forward;
use crate::{note, say};
use anyhow::bail;
use clap::Args as ClapArgs;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser as _};
use lasthop_agents::gateway::{Config, Gateway, Network, Peer};
use lasthop_agents::service;
use lasthop_agents::station::Forward;
use lasthop_laws::atp::Variant;
use lasthop_signals::Node;
use lasthop_units::{Span, count};
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

/// Its command line.
#[derive(ClapArgs)]
pub struct Args {
    /// UDP address: others call here, and everything is sent from here
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = flag::address::<{ flag::MESH }>, default_value_t = (Ipv4Addr::UNSPECIFIED, flag::MESH).into())]
    bind: SocketAddr,
    /// File of keys, one for each other gateway, made by `lasthop pair`
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The gateway that this one calls: its name or address, and its port
    ///
    /// Where the file has several keys, the number of the one that both have stands before it: 3=gateway.example.org:4900. A name is looked up
    /// once; several addresses are tried in turn, 2 s each, until one has answered. A gateway that calls with a key
    /// takes no calls with it: of two gateways one calls.
    #[arg(long, value_name = "[NUMBER=]HOST:PORT", value_parser = callee)]
    peer: Option<Callee>,
    /// Number of the key of the gateway to which local connections lead [default: the one that is called, or the only one]
    #[arg(long, value_name = "NUMBER")]
    via: Option<u16>,
    /// Where local programs find SOCKS5 and HTTP CONNECT
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = flag::address::<1080>)]
    socks5: Option<SocketAddr>,
    /// A local port that leads to one target, which the other gateway connects to; repeat for more
    #[arg(long = "forward", value_name = "ADDRESS:PORT=HOST:PORT", value_parser = forward)]
    forwards: Vec<Forward>,
    /// Lead the connections of this cgroup's programs to the other gateway, without their knowing
    ///
    /// A directory of a cgroup2 file system. Connections to networks that this machine is in are left alone, and all are while the other gateway
    /// is not heard, or when this one has ended, however it does. Needs CAP_BPF and CAP_NET_ADMIN until it has begun.
    #[arg(long, value_name = "CGROUP")]
    transparent: Option<PathBuf>,
    /// How often the other gateway is told how fast it may send
    #[arg(long, value_name = "VARIANT", default_value = "adaptive", value_parser = variants())]
    law: Variant,
    /// Least time from one packet to the next, for ways on which nobody knows the slowest hop
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = flag::quantity::<Span>, default_value_t = Span::ZERO)]
    least_delay: Span,
    /// A network to which other gateways may be connected; repeat for more [default: all but this machine]
    #[arg(long = "allow", value_name = "NETWORK", value_parser = str::parse::<Network>)]
    allow: Vec<Network>,
    /// Let other gateways open connections to this host's own addresses (interfaces, loopback, link-local)
    #[arg(long)]
    allow_local: bool,
    /// Ask for real-time scheduling
    #[arg(long)]
    realtime: bool,
    /// Become this user (name or number) once everything is open that needs root
    #[arg(long, value_name = "USER")]
    user: Option<String>,
}

/// The gateway to call, and with which key.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Callee {
    key: Option<Node>,
    at: Destination,
}

impl fmt::Display for Callee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.at.fmt(f)
    }
}

/// Runs the gateway until it is told to stop.
pub fn gateway(args: &Args) -> anyhow::Result<ExitCode> {
    let stop = service::stop_on_signals()?;
    let peer = match &args.peer {
        Some(callee) => Some(Peer { key: callee.key, addresses: callee.at.resolve()? }),
        None => None,
    };
    let config = Config {
        peer,
        via: args.via.map(Node),
        listen: args.socks5,
        forwards: args.forwards.clone(),
        transparent: args.transparent.clone(),
        variant: args.law,
        least_delay: args.least_delay,
        allow: args.allow.clone(),
        allow_local: args.allow_local,
        realtime: args.realtime,
        user: args.user.clone(),
        say: |line| note!("{line}"),
        ..Config::new(args.bind, args.key.clone())
    };
    let gateway = Gateway::open(&config).map_err(flag::of_tunnel)?;
    say!("mesh-gateway: {} (UDP)", gateway.address()?)?;
    let mut doors = gateway.doors()?.into_iter();
    if let Some(address) = args.socks5.and_then(|_| doors.next()) {
        open_to_others(address);
        say!("mesh-gateway: SOCKS5 and HTTP CONNECT at {address}")?;
    }
    for (address, Forward { target, .. }) in doors.zip(&args.forwards) {
        open_to_others(address);
        say!("mesh-gateway: {address} leads to {}:{}", target.host, target.port)?;
    }
    if let Some(cgroup) = &args.transparent {
        say!("mesh-gateway: connections of {} are led here", cgroup.display())?;
    }
    let summary = gateway.run(stop)?;
    note!(
        "{}, {} there, {} here; {} sent, {} lost on the way; {} received; {} refused",
        count(summary.sessions, "session"),
        count(summary.connections, "connection"),
        summary.served,
        count(summary.packets, "packet"),
        summary.lost,
        summary.received,
        count(summary.refused, "datagram")
    );
    if let (Some(delay), Some(most)) = (summary.delay, summary.most_delay) {
        note!("delay of the slowest hop: {most:.1} at most, {delay:.1} at last");
    }
    if summary.unsent.count > 0 {
        note!("{}", summary.unsent);
    }
    match &args.peer {
        Some(callee) if summary.sessions == 0 => {
            bail!("the gateway at {callee} never answered: wrong address, wrong key, or it calls too")
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn open_to_others(address: SocketAddr) {
    if !address.ip().is_loopback() {
        note!("mesh-gateway: whoever reaches {address} from elsewhere can use it: it asks nobody who they are");
    }
}

fn callee(text: &str) -> Result<Callee, String> {
    let (key, at) = match text.split_once('=') {
        None => (None, text),
        Some((number, at)) => {
            let number = number.parse().map_err(|_| {
                format!("`{number}` is not the number of a key (0 to 65535); write 3=gateway.example.org:4900")
            })?;
            (Some(Node(number)), at)
        }
    };
    Ok(Callee { key, at: flag::destination::<{ flag::MESH }>(at)? })
}

fn variants() -> impl clap::builder::TypedValueParser<Value = Variant> {
    let name = |variant: &Variant| PossibleValue::new(variant.as_str()).hide(*variant == Variant::OnChange);
    PossibleValuesParser::new(Variant::ALL.iter().map(name)).try_map(|name| {
        let known = Variant::ALL.iter().copied().find(|one| one.as_str() == name);
        match known.ok_or("there is no such variant")? {
            Variant::OnChange => Err("this variant reports packets apart from the path, and the tunnel acknowledges them together with it; use adaptive, default or aggressive"),
            known => Ok(known),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_line::Line;
    use clap::Parser;

    fn parsed(line: &str) -> Result<Args, String> {
        let words = ["mesh-gateway", "--key", "k"].into_iter().chain(line.split_whitespace());
        Line::<Args>::try_parse_from(words).map(|line| line.args).map_err(|error| error.to_string())
    }

    #[test]
    fn who_is_called_may_have_a_number_before_it() {
        let at = |text: &str| flag::destination::<{ flag::MESH }>(text).expect("legal");
        assert_eq!(callee("b.mesh:4900"), Ok(Callee { key: None, at: at("b.mesh:4900") }));
        assert_eq!(callee("3=[fd00::2]:4900"), Ok(Callee { key: Some(Node(3)), at: at("[fd00::2]:4900") }));
        for (wrong, says) in
            [("x=b.mesh:1", "`x` is not the number"), ("3=b.mesh", "there is no port"), ("b:0", "port 0")]
        {
            let told = callee(wrong).expect_err(wrong);
            assert!(told.contains(says), "{told}");
        }
    }

    #[test]
    fn flags_are_values() {
        let args = parsed("--law aggressive --allow 10.2.0.0/16 --allow fd00::/8 --least-delay 100us").expect("legal");
        assert_eq!((args.law, args.allow.len(), args.least_delay), (Variant::Aggressive, 2, Span::from_micros(100)));
        let args = parsed("").expect("legal");
        assert_eq!((args.law, args.allow.len(), args.socks5), (Variant::Adaptive, 0, None));
        for (wrong, says) in [
            ("--law fast", "adaptive"),
            ("--law on-change", "the tunnel acknowledges them together with it; use adaptive"),
            ("--allow 10.2.0.1/16", "did you mean 10.2.0.0/16?"),
            ("--allow mesh", "not an IP address"),
            ("--bind 4900", "not an address with a port"),
        ] {
            let told = parsed(wrong).map(drop).expect_err(wrong);
            assert!(told.contains(says), "{told}");
        }
    }
}
