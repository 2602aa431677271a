//! All streams of a run together.

use super::bulk::Bulk;
use super::door::Door;
use super::fetch::{FetchStream, Fetches};
use super::iperf3::{Ends, Iperf3};
use super::probe::{ProbeStream, Probes};
use super::{Period, tos};
use crate::address;
use crate::error::{LabError, Result};
use crate::home::Seat;
use crate::outcome::StreamLog;
use crate::spec::{Spec, receiver};
use crate::topology::{Hosts, LAST, WIRE};
use crate::tunnel;
use lasthop_scenario::{Program, Scenario, StreamKind};
use lasthop_signals::Node;
use std::net::SocketAddr;

/// Running streams.
pub(crate) struct Traffic {
    streams: Vec<Running>,
    probes: Option<Probes>,
    fetches: Option<Fetches>,
}

/// One stream, in the specification's order.
enum Running {
    Bulk(Bulk),
    /// To be started by the run's own thread when its time has come.
    Due(Period, SocketAddr),
    Iperf3(Period, Iperf3),
    /// The next of [`Traffic::probes`].
    Probe,
    /// The next of [`Traffic::fetches`].
    Fetch,
}

const FETCH_PORT: u16 = 5000;
/// Of stream 0; the others follow.
const FIRST_PORT: u16 = 5201;

/// The server's port of stream `number`.
pub(crate) fn port(number: usize) -> u16 {
    FIRST_PORT + number as u16
}

impl Traffic {
    /// Makes all sockets, and the threads that will use them when their time has come. What measures single packets
    /// sits at `seat`.
    pub(crate) fn start(spec: &Spec, hosts: &Hosts, period: &Period, seat: Seat) -> Result<Traffic> {
        let door = Door { at: spec.tunnel.as_ref().map(|_| tunnel::DOOR), tos: 0 };
        let server_ip = address::ip(spec.family, WIRE, Node(0));
        let (mut streams, mut probes, mut fetches) = (Vec::new(), Vec::new(), Vec::new());
        for (number, stream) in spec.streams.iter().enumerate() {
            let station = &hosts.stations[receiver(stream)];
            let (start, stop) = (stream.start, stream.stop);
            let tos = tos(stream.class);
            let door = Door { tos, ..door };
            let own = Period { start, end: stop, ..period.clone() };
            let port = port(number);
            streams.push(match stream.kind {
                StreamKind::Bulk { size, program: Program::Own } => {
                    let at = SocketAddr::new(server_ip, port);
                    Running::Bulk(Bulk::start(&hosts.server, (station, door), at, &spec.congestion, size, &own)?)
                }
                StreamKind::Bulk { program: Program::Iperf3, .. } => {
                    Running::Due(own, SocketAddr::new(server_ip, port))
                }
                StreamKind::Probe { size, every } => {
                    let to = address::ip(spec.family, LAST, Scenario::station_node(receiver(stream)));
                    let address = SocketAddr::new(to, port);
                    probes.push(ProbeStream { station, address, every, size, tos, start, stop });
                    Running::Probe
                }
                StreamKind::Udp { .. } => return Err(LabError::Spec("the lab has no UDP load".into())),
                StreamKind::Fetch { size, every } => {
                    fetches.push(FetchStream { station, door, size, every, start, stop });
                    Running::Fetch
                }
            });
        }
        let some_probes = !probes.is_empty();
        let probes = some_probes.then(|| Probes::start(&hosts.server, &probes, period, seat)).transpose()?;
        let at = SocketAddr::new(server_ip, FETCH_PORT);
        let some_fetches = !fetches.is_empty();
        let start_fetches = || Fetches::start(&hosts.server, &fetches, at, &spec.congestion, period);
        let fetches = some_fetches.then(start_fetches).transpose()?;
        Ok(Traffic { streams, probes, fetches })
    }

    /// Starts the programs whose time has come. To be called again and again from one and the same thread.
    pub(crate) fn start_due_programs(&mut self, spec: &Spec, hosts: &Hosts) -> Result<()> {
        for (running, stream) in self.streams.iter_mut().zip(&spec.streams) {
            if let Running::Due(own, at) = running
                && own.clock.until(own.start).is_zero()
            {
                let StreamKind::Bulk { size, .. } = stream.kind else { continue };
                let (server, station) = (&hosts.server, &hosts.stations[receiver(stream)]);
                let called = spec.tunnel.as_ref().map_or(*at, |_| tunnel::forwarded(at.port()));
                let ends = Ends { server, station, listens: *at, called, tos: tos(stream.class) };
                let test = Iperf3::start(&ends, &spec.congestion, size, own.end.since(own.clock.now()))?;
                *running = Running::Iperf3(own.clone(), test);
            }
        }
        Ok(())
    }

    /// Waits for the end of all of it; one log a stream.
    pub(crate) fn finish(self) -> Result<Vec<StreamLog>> {
        // Everything is waited for before the first error is returned: no thread outlives the run.
        let probes = self.probes.map(Probes::finish).transpose();
        let fetches = self.fetches.map(Fetches::finish).transpose();
        let ended: Vec<Result<Ended>> = self.streams.into_iter().map(Running::finish).collect();
        let mut probes = probes?.unwrap_or_default().into_iter();
        let mut fetches = fetches?.unwrap_or_default().into_iter();
        ended
            .into_iter()
            .map(|ended| {
                Ok(match ended? {
                    Ended::Log(log) => log,
                    Ended::Probe => StreamLog::Probe(probes.next().unwrap_or_default()),
                    Ended::Fetch => StreamLog::Fetch(fetches.next().unwrap_or_default()),
                })
            })
            .collect()
    }
}

/// What became of a stream, if it is known here.
enum Ended {
    Log(StreamLog),
    Probe,
    Fetch,
}

impl Running {
    fn finish(self) -> Result<Ended> {
        Ok(match self {
            Running::Bulk(bulk) => Ended::Log(StreamLog::Bulk(bulk.finish()?)),
            Running::Iperf3(own, test) => Ended::Log(StreamLog::Iperf3(test.finish(&own)?)),
            Running::Due(..) => return Err(LabError::Stopped),
            Running::Probe => Ended::Probe,
            Running::Fetch => Ended::Fetch,
        })
    }
}
