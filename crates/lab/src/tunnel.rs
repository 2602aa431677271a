//! The edge proxy and the stations' agents while a run lasts: programs that carry TCP streams over the hop.
//!
//! The proxy runs in the access point's namespace: at the access point's end of the wire, as in the simulator. Programs of a
//! station ask the agent beside them for connections, at [`DOOR`].

use crate::address;
use crate::child::Child;
use crate::error::{LabError, Result};
use crate::netns::Namespace;
use crate::run_dir::RunDir;
use crate::spec::{Spec, TunnelSpec};
use crate::stop::Stop;
use crate::topology::{AP, Hosts, LAST, MONITOR};
use crate::traffic::all;
use lasthop_scenario::{Program as By, Scenario, Stream, StreamKind};
use lasthop_signals::HostId;
use lasthop_units::Span;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

/// Where a station's agent takes requests from programs of that station.
pub(crate) const DOOR: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1080));

/// The proxy's port.
const PROXY_PORT: u16 = 4800;

/// Running programs: the proxy first.
#[derive(Debug)]
pub(crate) struct Tunnel {
    programs: Vec<Program>,
    log: PathBuf,
    station_logs: Vec<PathBuf>,
}

#[derive(Debug)]
struct Program {
    child: Child,
    name: String,
}

/// What the programs leave.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// The proxy's log.
    pub log: String,
    /// The stations' logs.
    pub station_logs: Vec<String>,
    /// What they printed to standard error.
    pub said: String,
}

/// How long one may take to be ready.
const PATIENCE: Span = Span::from_secs(10);

/// How long one may take to end.
const FAREWELL: Span = Span::from_secs(2);

impl Tunnel {
    /// Makes the keys, starts the proxy and the agents, and waits until every agent listens. They find each other once
    /// the hop is alive.
    pub(crate) fn start(tunnel: &TunnelSpec, spec: &Spec, hosts: &Hosts, run: &RunDir, stop: &Stop) -> Result<Tunnel> {
        let Some(ap) = &hosts.ap else { return Err(LabError::Spec("a proxy without an access point".into())) };
        let proxy = SocketAddr::new(address::ip(spec.family, LAST, AP), PROXY_PORT);
        let log = run.file("proxy.log");
        let station_log = |station| run.file(&format!("station-{}.log", Scenario::station_node(station).0));
        let filled = |arguments: &[String], station: usize| -> Vec<String> {
            let node = Scenario::station_node(station);
            let fill = |argument: &String| {
                argument
                    .replace("{keys}", &run.file("keys").to_string_lossy())
                    .replace("{key}", &run.file(&format!("station-{}.key", node.0)).to_string_lossy())
                    .replace("{log}", &log.to_string_lossy())
                    .replace("{station_log}", &station_log(station).to_string_lossy())
                    .replace("{proxy}", &proxy.to_string())
                    .replace("{door}", &DOOR.to_string())
                    .replace("{monitor}", MONITOR)
                    .replace("{station}", &node.0.to_string())
            };
            arguments.iter().map(fill).collect()
        };
        let begin = |namespace: &Namespace, arguments: &[String], name: String| {
            Child::start(namespace, tunnel.program.as_os_str(), arguments).map(|child| Program { child, name })
        };
        for station in 0..hosts.stations.len() {
            let pair = begin(ap, &filled(&tunnel.pair, station), format!("pairing station {}", station + 1))?;
            pair.succeeds(stop)?;
        }
        let mut tunnel_programs = Tunnel {
            programs: vec![begin(ap, &filled(&tunnel.proxy, 0), "the edge proxy".into())?],
            log: log.clone(),
            station_logs: (0..hosts.stations.len()).map(station_log).collect(),
        };
        for (station, namespace) in hosts.stations.iter().enumerate() {
            let name = format!("the agent of station {}", spec.stations()[station]);
            let mut arguments = filled(&tunnel.station, station);
            for (port, from) in iperf3_ports(spec, station) {
                let target = SocketAddr::new(spec.address(from, Scenario::station_host(station)), port);
                let fill = |argument: &String| {
                    argument.replace("{local}", &forwarded(port).to_string()).replace("{target}", &target.to_string())
                };
                arguments.extend(tunnel.forward.iter().map(fill));
            }
            tunnel_programs.programs.push(begin(namespace, &arguments, name)?);
        }
        for station in &hosts.stations {
            tunnel_programs.await_door(station, stop)?;
        }
        Ok(tunnel_programs)
    }

    fn await_door(&mut self, station: &Namespace, stop: &Stop) -> Result<()> {
        let (step, mut waited) = (Span::from_millis(10), Span::ZERO);
        let open = || station.within(|| Ok(TcpStream::connect_timeout(&DOOR, Duration::from_millis(100)).is_ok()));
        while !open()? {
            if stop.is_raised() {
                return Err(LabError::Stopped);
            }
            if self.has_ended() {
                return Err(self.explain());
            }
            if waited >= PATIENCE {
                let why = format!("it does not listen at {DOOR} after {PATIENCE}");
                return Err(LabError::Program { program: format!("the station's agent in {}", station.name()), why });
            }
            std::thread::sleep(step.into());
            waited += step;
        }
        Ok(())
    }

    /// True if one of them has ended, which none should do by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.programs.iter_mut().any(|program| program.child.has_ended())
    }

    /// Why one ended too early.
    pub(crate) fn explain(&mut self) -> LabError {
        let place = self.programs.iter_mut().position(|program| program.child.has_ended());
        match place.map(|place| self.programs.swap_remove(place)) {
            Some(program) => program.explain(),
            None => LabError::Stopped,
        }
    }

    /// Ends all of them without a farewell.
    pub(crate) fn kill(&mut self) {
        self.programs.iter_mut().for_each(|program| program.child.kill());
    }

    /// Asks all to end, stations first, and takes what they leave. Their farewells last no longer than until `stop` is
    /// raised.
    pub(crate) fn stop(self, stop: &Stop) -> Result<Left> {
        let mut said = String::new();
        // All stations at once: their farewells need not add up.
        self.programs.iter().skip(1).for_each(|station| station.child.ask());
        for program in self.programs.into_iter().rev() {
            let ended = program.child.stop(FAREWELL, stop)?;
            for line in ended.stderr.lines() {
                said.push_str(&format!("{}: {line}\n", program.name));
            }
        }
        let read = |path: &PathBuf| std::fs::read_to_string(path).unwrap_or_default();
        Ok(Left { log: read(&self.log), station_logs: self.station_logs.iter().map(read).collect(), said })
    }
}

/// Where programs of a station that cannot ask the agent find the server's port.
pub(crate) fn forwarded(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// Ports and senders of the downloads to `station` by `iperf3`.
fn iperf3_ports(spec: &Spec, station: usize) -> impl Iterator<Item = (u16, HostId)> + '_ {
    let by_iperf3 = move |stream: &Stream| {
        spec.is_proxied(stream)
            && spec.station_of(stream.to) == Some(station)
            && matches!(stream.kind, StreamKind::Bulk { program: By::Iperf3, .. })
    };
    (0..).zip(&spec.streams).filter(move |(_, stream)| by_iperf3(stream)).map(|(n, stream)| (all::port(n), stream.from))
}

impl Program {
    /// Waits for one that is to end by itself.
    fn succeeds(self, stop: &Stop) -> Result<()> {
        let ended = self.child.wait(PATIENCE, stop)?;
        match ended.status.success() {
            true => Ok(()),
            false if stop.is_raised() => Err(LabError::Stopped),
            false => Err(LabError::Program { program: self.name, why: ended.complaint() }),
        }
    }

    fn explain(self) -> LabError {
        LabError::Program { why: self.child.ended_early(), program: self.name }
    }
}
