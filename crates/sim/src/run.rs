//! From a validated scenario to the record of one run.

use crate::access_point::Agent;
use crate::hop::LastHop;
use crate::proxy::Proxy;
use crate::source::Source;
use crate::station;
use crate::world::{GATEWAY, Parts, SERVER, World};
use lasthop_laws::ParamError;
use lasthop_laws::aggregation::Control;
use lasthop_radio::star::Star;
use lasthop_radio::wifi::Wifi;
use lasthop_radio::wired::Wire;
use lasthop_report::{Recorder, RunRecord, Window};
use lasthop_scenario::{Hop, Law, Scenario, Stream, StreamKind};
use lasthop_units::{Seed, Span, Time};

/// Why a scenario cannot be simulated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// The parameters of the agent or of the regulator make no law.
    #[error("the law on the access point cannot be built")]
    Law(#[from] ParamError),
    /// Traffic that goes as fast as a regulator allows, and none.
    #[error("this law has no regulator, and UDP traffic without a rate needs one")]
    Unregulated,
}

/// How often the caller hears of progress and may stop, in virtual time.
const STEP: Span = Span::from_millis(100);

/// Simulates `scenario` under `law` with `seed`. `progress` is told the virtual time that has passed and answers whether to
/// go on; `None` if it said no.
///
/// # Errors
/// See [`SimError`].
pub fn run(
    scenario: &Scenario,
    law: &Law,
    seed: u64,
    keep_packets: bool,
    progress: &mut dyn FnMut(Span) -> bool,
) -> Result<Option<RunRecord>, SimError> {
    let end = Time::ZERO + scenario.duration();
    let warm_up = Time::ZERO + scenario.warm_up();
    let mut world = build(scenario, law, Seed(seed), keep_packets)?;
    let mut until = Time::ZERO;
    let mut counted = false;
    while until < end {
        until = (until + STEP).min(end);
        if !counted && until >= warm_up {
            // Retransmissions of the warm-up are not counted: tell the recorder what there was at its end.
            world.run_until(warm_up);
            world.count_segments(warm_up);
            counted = true;
        }
        world.run_until(until);
        if !progress(until.since(Time::ZERO)) {
            return Ok(None);
        }
    }
    Ok(Some(world.finish(end).finish()))
}

/// The world of a scenario at its beginning.
///
/// # Errors
/// See [`SimError`].
pub fn build(scenario: &Scenario, law: &Law, seed: Seed, keep_packets: bool) -> Result<World, SimError> {
    let greedy = |stream: &Stream| matches!(stream.kind, StreamKind::Udp { rate: None, .. });
    if law.regulator.is_none() && scenario.streams().iter().any(greedy) {
        return Err(SimError::Unregulated);
    }
    let hop = match scenario.hop_under(law) {
        Hop::Wired(hop) => {
            let stations = u16::try_from(scenario.stations().len()).expect("a validated scenario has few stations");
            LastHop::Wired(Star::new(stations, hop.down, hop.up))
        }
        Hop::Wifi(plan) => LastHop::Wifi(Box::new(Wifi::new(*plan, seed))),
    };
    let stations = scenario.stations().iter().enumerate();
    let stations = stations.map(|(place, name)| (Scenario::station_node(place), name.clone()));
    let window = Window { warm_up: Time::ZERO + scenario.warm_up(), end: Time::ZERO + scenario.duration() };
    let mut recorder = Recorder::new(window, stations);
    if keep_packets {
        recorder.keep_packets();
    }
    Ok(World::new(Parts {
        wire: Wire::new(SERVER, GATEWAY, scenario.wire(), scenario.wire()),
        hop,
        agent: law.agent.as_ref().map(Agent::new).transpose()?,
        proxy: law.regulator.as_ref().map(|control| proxy(scenario, control)).transpose()?,
        sources: scenario.streams_for(seed).into_iter().map(Source::new).collect(),
        law: law.sender.as_str(),
        seed,
        recorder,
    }))
}

/// The edge proxy and the agents of the stations.
fn proxy(scenario: &Scenario, control: &Control) -> Result<(Proxy, Vec<station::Agent>), ParamError> {
    let stations = scenario.stations().len();
    let agent = |place| station::Agent::new(Scenario::station_node(place), control.interval());
    Ok((Proxy::new(control, stations)?, (0..stations).map(agent).collect()))
}
