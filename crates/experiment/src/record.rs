//! A packet-delivery trace of a scenario's last hop: what it delivers to one station, or from it, that always has more to send.

use crate::runner::doubts;
use crate::{ExperimentError, Place, Progress};
use lasthop_lab::{LabError, Spec, Stop};
use lasthop_radio::AccessClass;
use lasthop_radio::wired;
use lasthop_scenario::graph::{Cable, Medium};
use lasthop_scenario::{Scenario, SetUp, Stream, StreamKind};
use lasthop_units::{Bytes, Rate, Seed, Span, Time};

/// The link that is recorded.
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'a> {
    /// What is run, without its traffic.
    pub scenario: &'a Scenario,
    /// The law that sets the hop's queue.
    pub law: &'a SetUp,
    /// The seed of the hop's draws.
    pub seed: u64,
    /// Place of the station among the scenario's.
    pub station: usize,
    /// From it rather than to it.
    pub up: bool,
}

/// What was recorded.
#[derive(Clone, Debug)]
pub struct Recording {
    /// When the hop delivered packets of 1500 bytes.
    pub times: Vec<Time>,
    /// Why it should not be relied upon; nothing in the simulator.
    pub doubts: Vec<String>,
}

/// UDP payload of a packet of 1500 bytes.
const PAYLOAD: Bytes = Bytes::new(1472);

/// When the hop delivers packets of 1500 bytes. In the lab they come at `rate`, which must be above what the hop carries; in the
/// simulator there are always some.
///
/// # Errors
/// Those of [`crate::run`].
pub fn record(
    of: Recorded<'_>,
    place: Place,
    rate: Rate,
    progress: &dyn Progress,
    stop: &Stop,
) -> Result<Recording, ExperimentError> {
    let Recorded { scenario, law, seed, station, up } = of;
    let total = scenario.duration();
    progress.begun(0, &law.name, seed);
    let recording = match place {
        Place::Sim => {
            let mut told = |done| {
                progress.advanced(0, done, total);
                !stop.is_raised()
            };
            let times = lasthop_sim::record(scenario, law, Seed(seed), (station, up), &mut told);
            Recording { times: times.ok_or(ExperimentError::Stopped)?, doubts: Vec::new() }
        }
        Place::Lab => {
            let spec = loaded(of, rate);
            let failed = |source: LabError| match source {
                LabError::Stopped => ExperimentError::Stopped,
                source => ExperimentError::Lab { law: law.name.clone(), seed, source },
            };
            let outcome = lasthop_lab::run(&spec, |done| progress.advanced(0, done, total), stop).map_err(failed)?;
            let (node, ap) = (Scenario::station_node(station), scenario.access_point_of(station));
            let way = if up { (node, ap) } else { (ap, node) };
            let whole = PAYLOAD + lasthop_scenario::UDP_HEADERS;
            let crossed = outcome.hop.crossings.iter().filter(|seen| (seen.from, seen.to) == way && seen.len == whole);
            Recording { times: crossed.map(|seen| seen.at).collect(), doubts: doubts(&outcome) }
        }
    };
    progress.ended(0);
    Ok(recording)
}

/// The lab's hosts with nothing but datagrams at `rate` over a wire that never holds them up.
fn loaded(Recorded { scenario, law, seed, station, up }: Recorded<'_>, rate: Rate) -> Spec {
    let host = Scenario::station_host(station);
    let (from, to) = if up { (host, Scenario::SERVER) } else { (Scenario::SERVER, host) };
    let wire = wired::Params { rate: Rate::from_mbit(40_000), delay: Span::ZERO, queue_packets: 100_000 };
    let kind = StreamKind::Udp { size: PAYLOAD, rate: Some(rate), periodic: true };
    let (start, stop) = (Time::ZERO, Time::ZERO + scenario.duration());
    let mut graph = scenario.graph();
    graph.links[0].medium = Medium::Cable(Cable::plain(wire));
    let stream = Stream { number: 0, from, to, start, stop, class: AccessClass::BestEffort, kind };
    let spec = Spec { graph, streams: vec![stream], warm_up: Span::ZERO, ..Spec::of(scenario, law, seed) };
    spec.with_named_streams()
}
