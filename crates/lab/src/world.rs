//! One run from beginning to end.

use crate::address;
use crate::clean::clean;
use crate::clock::Clock;
use crate::emulator::{Emulator, Model, Segment};
use crate::error::{LabError, Result};
use crate::log::EmulatorLog;
use crate::outcome::{Doubt, FlowLog, LATEST, Outcome};
use crate::run_dir::RunDir;
use crate::spec::{LastHop, Program, Spec};
use crate::stop::Stop;
use crate::tap::Tap;
use crate::topology::{Hosts, LAST, WIRE};
use crate::traffic::bulk::Bulk;
use crate::traffic::fetch::{Fetch, Fetches};
use crate::traffic::iperf3::Iperf3;
use crate::traffic::probe::{Probe, Probes};
use crate::traffic::{Period, TICK};
use lasthop_radio::star::Star;
use lasthop_radio::wired::Wire;
use lasthop_signals::Node;
use lasthop_units::{Span, Time};
use std::net::SocketAddr;

/// Runs `spec`: builds the hosts, brings the hops to life, lets traffic flow, takes everything down. `progress` is told
/// some twenty times a second how much of the duration has passed.
///
/// To be called from a thread that lives as long as the run, since programs die with the thread that started them.
///
/// # Errors
/// What cannot be built, a program that failed, or [`LabError::Stopped`] if `stop` was raised. Whatever happens, nothing
/// that was made is left behind, except by a kill, whose leavings the next run removes.
pub fn run(spec: &Spec, mut progress: impl FnMut(Span), stop: &Stop) -> Result<Outcome> {
    spec.check()?;
    clean()?;
    let run = RunDir::claim()?;
    let mut hosts = Hosts::behind_ap(&run, spec.stations)?;
    let taps = std::mem::take(&mut hosts.taps);
    let dropped_before = hosts.dropped()?;

    let clock = Clock::start();
    let emulator = Emulator::start(clock, segments(spec, taps)?)?;
    let began = clock.now() + SETTLE;
    let period = Period { clock, start: began, end: began + spec.duration, stop: Stop::default() };
    let mut traffic = Traffic::start(spec, &hosts, &period)?;

    let mut stopped = false;
    while !stopped && clock.now() < period.end {
        progress(clock.now().since(began).min(spec.duration));
        traffic.start_due_programs(spec, &hosts)?;
        clock.sleep_until(period.end.min(clock.now() + Span::from(TICK)));
        stopped = stop.is_raised() || emulator.has_ended();
    }
    if stopped {
        period.stop.raise();
    }
    // The emulator first: if it failed, everything else failed because of it.
    let harvest = traffic.finish();
    let dropped = hosts.dropped()?.saturating_sub(dropped_before);
    let log = emulator.finish()?;
    if stopped {
        return Err(LabError::Stopped);
    }
    let Harvest { bulk, probes, fetches } = harvest?;
    progress(spec.duration);
    let doubts = doubts(&log, dropped);
    let EmulatorLog { hops, lateness, realtime, .. } = log;
    let hop = hops.into_iter().nth(usize::from(LAST.0)).unwrap_or_default();
    let lateness = lateness.summary();
    Ok(Outcome { began, ended: period.end, hop, bulk, probes, fetches, lateness, realtime, doubts })
}

/// Time for the interfaces to come up before anything is measured.
const SETTLE: Span = Span::from_millis(100);

const PROBE_PORT: u16 = 5001;
const FETCH_PORT: u16 = 5002;
/// Of the first bulk download; the others follow.
const BULK_PORT: u16 = 5201;

/// The models, with the interfaces of their nodes.
fn segments(spec: &Spec, taps: Vec<Vec<Tap>>) -> Result<Vec<Segment>> {
    let mut taps = taps.into_iter();
    let mut ports = || taps.next().ok_or_else(|| LabError::Spec("a hop without interfaces".into()));
    let wire = Wire::new(Node(0), Node(1), spec.wire_down, spec.wire_up);
    let last = match &spec.hop {
        LastHop::Wired { down, up } => Model::Star(Star::new(spec.stations, *down, *up)),
    };
    Ok(vec![
        Segment { model: Model::Wire(wire), ports: ports()?, logged: false },
        Segment { model: last, ports: ports()?, logged: true },
    ])
}

/// Everything that generates packets.
struct Traffic {
    bulk: Vec<Flow>,
    probes: Option<Probes>,
    fetches: Option<Fetches>,
    period: Period,
}

/// A bulk download.
enum Flow {
    Own(Bulk),
    /// To be started by the run's own thread when its time has come.
    Due(Time, SocketAddr),
    Iperf3(Iperf3),
}

/// What traffic measured.
struct Harvest {
    bulk: Vec<FlowLog>,
    probes: Vec<Probe>,
    fetches: Vec<Fetch>,
}

impl Traffic {
    fn start(spec: &Spec, hosts: &Hosts, period: &Period) -> Result<Traffic> {
        let server = |port| SocketAddr::new(address::ip(spec.family, WIRE, Node(0)), port);
        let station = |n: usize| address::ip(spec.family, LAST, Node(n as u16 + 1));
        let mut bulk = Vec::new();
        for (n, flow) in spec.bulk.iter().enumerate() {
            let (start, at) = (period.start + flow.start, server(BULK_PORT + n as u16));
            let own = Period { start, ..period.clone() };
            let to = &hosts.stations[usize::from(flow.station)];
            bulk.push(match flow.program {
                Program::Own => {
                    Flow::Own(Bulk::start(&hosts.server, to, at, &flow.congestion, spec.sample_every, &own)?)
                }
                Program::Iperf3 => Flow::Due(start, at),
            });
        }
        let probes = spec.probes.map(|probes| {
            let address = |n| SocketAddr::new(station(n), PROBE_PORT);
            let to: Vec<_> = hosts.stations.iter().enumerate().map(|(n, host)| (host, address(n))).collect();
            Probes::start(&hosts.server, &to, probes.every, probes.payload.get() as usize, period)
        });
        let fetches = spec.fetches.as_ref().map(|fetches| {
            let by: Vec<_> = hosts.stations.iter().collect();
            let at = server(FETCH_PORT);
            Fetches::start(&hosts.server, &by, at, &fetches.congestion, fetches.size, fetches.every, period)
        });
        let (probes, fetches) = (probes.transpose()?, fetches.transpose()?);
        Ok(Traffic { bulk, probes, fetches, period: period.clone() })
    }

    /// Starts the programs whose time has come.
    fn start_due_programs(&mut self, spec: &Spec, hosts: &Hosts) -> Result<()> {
        let now = self.period.clock.now();
        for (flow, wanted) in self.bulk.iter_mut().zip(&spec.bulk) {
            if let Flow::Due(start, at) = *flow
                && now >= start
            {
                let station = &hosts.stations[usize::from(wanted.station)];
                let lasts = self.period.end.since(now);
                *flow = Flow::Iperf3(Iperf3::start(&hosts.server, station, at, &wanted.congestion, lasts)?);
            }
        }
        Ok(())
    }

    /// Waits for the end of all of it.
    fn finish(self) -> Result<Harvest> {
        let finish = |flow| {
            Ok(match flow {
                Flow::Own(bulk) => FlowLog::Own(bulk.finish()?),
                Flow::Iperf3(test) => FlowLog::Iperf3(test.finish(&self.period)?),
                Flow::Due(..) => return Err(LabError::Stopped),
            })
        };
        let bulk: Result<Vec<FlowLog>> = self.bulk.into_iter().map(finish).collect();
        let probes = self.probes.map(Probes::finish).transpose();
        let fetches = self.fetches.map(Fetches::finish).transpose();
        Ok(Harvest { bulk: bulk?, probes: probes?.unwrap_or_default(), fetches: fetches?.unwrap_or_default() })
    }
}

/// What makes a run unreliable.
fn doubts(log: &EmulatorLog, interface_drops: u64) -> Vec<Doubt> {
    let p99 = log.lateness.summary().p99;
    let found = [
        (p99 > LATEST).then_some(Doubt::Late(p99)),
        (interface_drops > 0).then_some(Doubt::InterfaceDrops(interface_drops)),
        (log.refused > 0).then_some(Doubt::Refused(log.refused)),
        (log.unread_reports > 0).then_some(Doubt::UnreadReports(log.unread_reports)),
    ];
    found.into_iter().flatten().collect()
}
