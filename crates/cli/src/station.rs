//! `lasthop station`.

use crate::flag::{self, Destination};
use crate::logs::LogArgs;
use crate::{note, say};
use anyhow::bail;
use clap::Args as ClapArgs;
use lasthop_agents::service;
use lasthop_agents::station::{Config, Forward, Station};
use lasthop_laws::aggregation::SLOT;
use lasthop_units::{Span, count};
use lasthop_wire::Error as WireError;
use lasthop_wire::proxy::Target;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

/// Its command line.
#[derive(ClapArgs)]
#[command(after_help = "\
Examples:
  lasthop station --proxy proxy.example.org:4848 --key station-1.key
  lasthop station --proxy proxy.example.org:4848 --key station-1.key --dci dci_raw_log_dl_freq_2127500000.dciLog --prb 50 --rnti 20001")]
pub struct Args {
    /// Where the edge proxy is (UDP): its name or address, and its port
    ///
    /// A name is looked up once, when the agent starts. Where it has several addresses they are tried in turn, 2 s each, until one
    /// has answered; the agent stays with that one. It does not ask again: when the proxy moves to another address, the tunnel
    /// falls silent, and the agent has to be started again.
    #[arg(long, value_name = "HOST:PORT", value_parser = flag::destination::<{ flag::PROXY }>)]
    proxy: Destination,
    /// File of the station's key, made by `lasthop pair`
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Where local programs find SOCKS5 and HTTP CONNECT
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = flag::address::<1080>, default_value = "127.0.0.1:1080")]
    listen: SocketAddr,
    /// A local port that leads to one target; repeat for more
    #[arg(long = "forward", value_name = "ADDRESS:PORT=HOST:PORT", value_parser = forward)]
    forwards: Vec<Forward>,
    /// Lead the connections of this cgroup's programs through the tunnel, without their knowing
    ///
    /// A directory of a cgroup2 file system: /sys/fs/cgroup (or /sys/fs/cgroup/unified) for the whole machine, or that of a service
    /// or a container. TCP over IPv4 and IPv6, in the agent's network namespace; not UDP, so not QUIC. Connections to networks
    /// that this machine is in are left alone, and all are while the proxy is not heard or when the agent has ended, however
    /// it does. Needs CAP_BPF and CAP_NET_ADMIN until it has begun.
    #[arg(long, value_name = "CGROUP")]
    transparent: Option<PathBuf>,
    /// A port of this machine to which the proxy may bring connections that others make to this station; repeat for more
    #[arg(long = "serve", value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    serve: Vec<u16>,
    /// Monitor interface (link type radiotap) that shows the frames received
    #[arg(long, value_name = "DEV", conflicts_with = "logs")]
    monitor: Option<String>,
    // Then it tells of a cell, not of frames.
    #[command(flatten)]
    cell: LogArgs,
    /// Length of a reported slot: the control interval of the proxy's law
    #[arg(long, value_name = "TIME", conflicts_with = "logs", allow_hyphen_values = true, value_parser = flag::quantity::<Span>, default_value_t = SLOT)]
    slot: Span,
    /// Write what was measured in every slot to this file (JSON lines: docs/reference/logs.md)
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Ask for real-time scheduling
    #[arg(long)]
    realtime: bool,
    /// Become this user (name or number) once everything is open that needs root
    #[arg(long, value_name = "USER")]
    user: Option<String>,
}

/// Runs the agent until it is told to stop.
pub fn station(args: &Args) -> anyhow::Result<ExitCode> {
    let stop = service::stop_on_signals()?;
    let mut addresses = args.proxy.resolve()?.into_iter();
    let proxy = addresses.next().expect("never none");
    let config = Config {
        more: addresses.collect(),
        listen: Some(args.listen),
        forwards: args.forwards.clone(),
        transparent: args.transparent.clone(),
        serve: args.serve.clone(),
        monitor: args.monitor.clone(),
        cell: args.cell.given(),
        slot: args.slot,
        log: args.log.clone(),
        realtime: args.realtime,
        user: args.user.clone(),
        say: |line| note!("{line}"),
        ..Config::new(proxy, args.key.clone())
    };
    let station = Station::open(&config).map_err(flag::of_tunnel)?;
    for (index, address) in station.addresses()?.into_iter().enumerate() {
        if !address.ip().is_loopback() {
            note!("station: whoever reaches {address} from elsewhere can use it: it asks nobody who they are");
        }
        match index.checked_sub(1).and_then(|index| args.forwards.get(index)) {
            None => say!("station: SOCKS5 and HTTP CONNECT at {address}")?,
            Some(Forward { target, .. }) => say!("station: {address} leads to {}:{}", target.host, target.port)?,
        }
    }
    if let Some(cgroup) = &args.transparent {
        say!("station: connections of {} are led here", cgroup.display())?;
    }
    if let Some(logs) = &config.cell {
        let carriers = count(logs.files.len() as u64, "carrier");
        say!("station: tells what RNTI {} can have of {carriers}", logs.rnti.0)?;
    }
    let summary = station.run(stop)?;
    note!(
        "{}, {}; {} received; {} refused",
        count(summary.sessions, "session"),
        count(summary.connections, "connection"),
        count(summary.packets, "packet"),
        count(summary.refused, "datagram")
    );
    if let Some((subframes, unread)) = summary.cell {
        note!("{}, {} unread", count(subframes, "subframe"), count(unread, "row"));
    }
    if summary.unsent.count > 0 {
        note!("{}", summary.unsent);
    }
    if let (Some((hop50, hop95)), Some((data50, data95))) = (summary.hop_delay, summary.data_delay) {
        note!("delay on the hop: median {hop50:.1}, 95th percentile {hop95:.1}");
        note!("delay from server to program: median {data50:.1}, 95th percentile {data95:.1}");
    }
    match summary.log_error {
        Some(error) => Err(anyhow::Error::new(error).context("the log is incomplete")),
        None if summary.sessions == 0 => {
            bail!("the proxy at {} never answered: wrong address, or wrong key", args.proxy)
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

/// A local port and where it leads.
pub fn forward(text: &str) -> Result<Forward, String> {
    let (listen, target) =
        text.split_once('=').ok_or("write ADDRESS:PORT=HOST:PORT, such as 127.0.0.1:5201=10.0.0.1:5201")?;
    let listen = flag::address::<8080>(listen).map_err(|why| format!("`{listen}`: {why}"))?;
    let (host, port) = target.rsplit_once(':').ok_or(format!("`{target}` has no port"))?;
    let host = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    let port = port.parse().map_err(|_| format!("`{port}` is not a port"))?;
    let target = Target::new(host, port).map_err(|error| match error {
        WireError::ProxyRequest(why) => format!("`{target}`: {why}"),
        other => format!("`{target}`: {other}"),
    })?;
    Ok(Forward { listen, target })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwards_are_two_addresses() {
        let wanted = Forward {
            listen: "127.0.0.1:5201".parse().expect("an address"),
            target: Target { host: "fd00::1".into(), port: 80 },
        };
        assert_eq!(forward("127.0.0.1:5201=[fd00::1]:80"), Ok(wanted));
        for wrong in ["5201=host:80", "127.0.0.1:1=host", "127.0.0.1:1=host:0", "127.0.0.1:1"] {
            assert!(forward(wrong).is_err(), "{wrong}");
        }
    }
}
