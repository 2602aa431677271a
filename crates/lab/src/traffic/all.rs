//! All streams of a run together.

use super::bulk::{Bulk, Upload};
use super::carried::Carried;
use super::door::Door;
use super::fetch::{FetchStream, Fetches};
use super::iperf3::{self, Iperf3};
use super::probe::{ProbeStream, Probes};
use super::{Call, End, Period, tos};
use crate::error::{LabError, Result};
use crate::netns::Namespace;
use crate::outcome::StreamLog;
use crate::pinned_cpu::PinnedCpu;
use crate::spec::{Spec, forwarded};
use crate::topology::Hosts;
use lasthop_scenario::{Program, Stream, StreamKind};
use lasthop_signals::HostId;
use std::net::SocketAddr;

/// Running streams.
pub(crate) struct Traffic {
    streams: Vec<Running>,
    probes: Option<Probes>,
    loads: Option<Probes>,
    fetches: Option<Fetches>,
}

/// One stream, in the specification's order.
enum Running {
    Bulk(Bulk),
    /// To be started by the run's own thread when its time has come.
    Due(Period),
    Iperf3(Period, Iperf3),
    /// Its sender, too, is started when its time has come.
    Carried(Period, Carried),
    /// The next of [`Traffic::probes`].
    Probe,
    /// The next of [`Traffic::loads`].
    Load,
    /// The next of [`Traffic::fetches`].
    Fetch,
}

/// Of stream 0; the others follow. The port before it is left to a server that a user calls with
/// `iperf3`.
const FIRST_PORT: u16 = iperf3::PORT + 1;

/// The port of stream `number` at the host that listens for it.
pub(crate) fn port(number: usize) -> u16 {
    FIRST_PORT + number as u16
}

/// The calling host: a station calls wired hosts; between two stations or two wired hosts, and to fetch something, the
/// one that gets the data does.
fn caller(spec: &Spec, stream: &Stream) -> HostId {
    let uploads = spec.station_of(stream.from).is_some() && spec.station_of(stream.to).is_none();
    match stream.kind {
        StreamKind::Bulk { .. } if uploads => stream.from,
        _ => stream.to,
    }
}

/// The connection of stream `number`, and the end that sends.
fn call<'a>(spec: &'a Spec, hosts: &'a Hosts, number: usize, stream: &Stream) -> Result<(Call<'a>, End)> {
    let caller = caller(spec, stream);
    let (listener, sender) =
        if caller == stream.from { (stream.to, End::Caller) } else { (stream.from, End::Listener) };
    let at = spec.door(stream.to).filter(|_| spec.is_proxied(stream));
    let call = Call {
        listener: host(hosts, listener)?,
        caller: host(hosts, caller)?,
        address: SocketAddr::new(spec.address(listener, caller), port(number)),
        door: Door { at, tos: tos(stream.class) },
        congestion: [listener, caller].map(|host| spec.congestion[host.index()].as_str()),
    };
    Ok((call, sender))
}

fn host(hosts: &Hosts, host: HostId) -> Result<&Namespace> {
    hosts.of(host).ok_or_else(|| LabError::Spec(format!("a stream of host {}, which is not there", host.0)))
}

impl Traffic {
    /// Makes all sockets, and the threads that will use them when their time has come. What measures single packets
    /// runs on `pinned_cpu`.
    pub(crate) fn start(spec: &Spec, hosts: &Hosts, period: &Period, pinned_cpu: PinnedCpu) -> Result<Traffic> {
        let (mut streams, mut probes, mut loads, mut fetches) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (number, stream) in spec.streams.iter().enumerate() {
            let (start, stop) = (stream.start, stream.stop);
            let own = Period { start, end: stop, ..period.clone() };
            let datagrams = |size, every| {
                let address = SocketAddr::new(spec.address(stream.to, stream.from), port(number));
                let (sender, receiver) = (host(hosts, stream.from)?, host(hosts, stream.to)?);
                Ok(ProbeStream { sender, receiver, address, every, size, tos: tos(stream.class), start, stop })
            };
            if let Some(carrier) = spec.carrier(stream) {
                let address = SocketAddr::new(spec.address(stream.to, stream.from), spec.carried_at(number));
                let receiver = Carried::receive(host(hosts, stream.to)?, carrier, address, &own)?;
                streams.push(Running::Carried(own, receiver));
                continue;
            }
            streams.push(match stream.kind {
                StreamKind::Bulk { size, program: Program::Own, send_buffer } => {
                    let (call, sender) = call(spec, hosts, number, stream)?;
                    Running::Bulk(Bulk::start(&call, sender, Upload { size, buffer: send_buffer }, &own)?)
                }
                StreamKind::Bulk { program: Program::Iperf3, .. } => Running::Due(own),
                StreamKind::Probe { size, every } => {
                    probes.push(datagrams(size, every)?);
                    Running::Probe
                }
                StreamKind::Udp { size, .. } => {
                    let every = stream.every().ok_or_else(|| LabError::Spec("UDP traffic without a rate".into()))?;
                    loads.push(datagrams(size, every)?);
                    Running::Load
                }
                StreamKind::Fetch { size, every } => {
                    let (call, _) = call(spec, hosts, number, stream)?;
                    fetches.push(FetchStream { call, size, every, start, stop });
                    Running::Fetch
                }
            });
        }
        let start = |streams: Vec<ProbeStream<'_>>| {
            (!streams.is_empty()).then(|| Probes::start(&streams, period, pinned_cpu)).transpose()
        };
        let (probes, loads) = (start(probes)?, start(loads)?);
        let fetches = (!fetches.is_empty()).then(|| Fetches::start(&fetches, period)).transpose()?;
        Ok(Traffic { streams, probes, loads, fetches })
    }

    /// Starts the programs that are due. To be called again and again from one and the same thread.
    pub(crate) fn start_due_programs(&mut self, spec: &Spec, hosts: &Hosts) -> Result<()> {
        for (number, (running, stream)) in self.streams.iter_mut().zip(&spec.streams).enumerate() {
            if let Running::Carried(own, transfer) = running
                && !transfer.has_begun()
                && own.clock.until(own.start).is_zero()
                && let (Some(carrier), StreamKind::Bulk { size, .. }) = (spec.carrier(stream), stream.kind)
            {
                transfer.send(host(hosts, stream.from)?, carrier, size, own)?;
            }
            if let Running::Due(own) = running
                && own.clock.until(own.start).is_zero()
            {
                let StreamKind::Bulk { size, .. } = stream.kind else { continue };
                let (call, sender) = call(spec, hosts, number, stream)?;
                let called = call.door.at.map_or(call.address, |_| forwarded(call.address.port()));
                let test = Iperf3::start(&call, called, sender, size, own.end.since(own.clock.now()))?;
                *running = Running::Iperf3(own.clone(), test);
            }
        }
        Ok(())
    }

    /// Waits for the end of all of it; one log a stream.
    pub(crate) fn finish(self) -> Result<Vec<StreamLog>> {
        // Everything is waited for before the first error is returned: no thread outlives the run.
        let probes = self.probes.map(Probes::finish).transpose();
        let loads = self.loads.map(Probes::finish).transpose();
        let fetches = self.fetches.map(Fetches::finish).transpose();
        let ended: Vec<Result<Ended>> = self.streams.into_iter().map(Running::finish).collect();
        let mut probes = probes?.unwrap_or_default().into_iter();
        let mut loads = loads?.unwrap_or_default().into_iter();
        let mut fetches = fetches?.unwrap_or_default().into_iter();
        ended
            .into_iter()
            .map(|ended| {
                Ok(match ended? {
                    Ended::Log(log) => log,
                    Ended::Probe => StreamLog::Probe(probes.next().unwrap_or_default()),
                    Ended::Load => StreamLog::Udp(loads.next().unwrap_or_default()),
                    Ended::Fetch => StreamLog::Fetch(fetches.next().unwrap_or_default()),
                })
            })
            .collect()
    }
}

/// What became of a stream, if it is known here.
#[allow(clippy::large_enum_variant, reason = "one a stream, and most are the largest")]
enum Ended {
    Log(StreamLog),
    Probe,
    Load,
    Fetch,
}

impl Running {
    fn finish(self) -> Result<Ended> {
        Ok(match self {
            Running::Bulk(bulk) => Ended::Log(StreamLog::Bulk(bulk.finish()?)),
            Running::Iperf3(own, test) => Ended::Log(StreamLog::Iperf3(test.finish(&own)?)),
            Running::Carried(own, transfer) => Ended::Log(StreamLog::Carried(transfer.finish(&own)?)),
            Running::Due(..) => return Err(LabError::Stopped),
            Running::Probe => Ended::Probe,
            Running::Load => Ended::Load,
            Running::Fetch => Ended::Fetch,
        })
    }
}
