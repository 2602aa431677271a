//! The command lines of the edge proxy and the stations' agents that the lab starts: what operators would type.
//!
//! The proxy runs in the access point's namespace: at the access point's end of the wire, as in the simulator. Programs of a
//! station ask the agent beside them for connections.

use super::Wanted;
use super::agent::{flags, words};
use lasthop_lab::{DOOR, ProgramSpec, Ready, Spec};
use lasthop_scenario::Scenario;
use lasthop_signals::FrameSource;
use std::net::SocketAddr;

/// The proxy's port.
const PORT: u16 = 4800;
/// The name of the proxy's log.
pub const LOG: &str = "proxy.log";

/// The name of the log of a station's agent.
pub fn station_log(station: usize) -> String {
    format!("station-{}.log", Scenario::station_node(station).0)
}

/// `program pair` for each station, `program proxy` with the law's parameters, and `program station` on each. The agents and the
/// proxy find each other once the hop is alive.
pub(super) fn add(Wanted { program, law, .. }: Wanted<'_>, spec: &mut Spec) {
    let Some(choice) = law.regulator() else { return };
    let of = |name: String, host, arguments| ProgramSpec::new(name, host, program.to_owned(), arguments);
    let ap = Scenario::AP_HOST;
    let stations: Vec<String> = spec.stations().into_iter().map(str::to_owned).collect();
    let nodes = || (0..stations.len()).map(|station| Scenario::station_node(station).0);
    for node in nodes() {
        let line = format!("pair --proxy {{file:keys}} --station {node} --out {{file:station-{node}.key}}");
        let pair = of(format!("pairing station {node}"), ap, words(&line));
        spec.programs.push(ProgramSpec { ready: Ready::Ended, ..pair });
    }
    let at = SocketAddr::new(spec.address(ap, ap), PORT);
    let mut proxy = words(&format!("proxy --listen {at} --keys {{file:keys}} --log {{log}}"));
    proxy.extend(flags(choice));
    let proxy = of("the edge proxy".to_owned(), ap, proxy);
    spec.programs.push(ProgramSpec { log: Some(LOG.to_owned()), outlives: true, ..proxy });
    // Stations report in the slots of the law.
    let slot = choice.values().into_iter().find(|(param, _)| param.key == "interval");
    for ((station, name), node) in stations.iter().enumerate().zip(nodes()) {
        // A station has a machine of its own. Here its agent shares the processors with proxy and emulator, which are real-time.
        let line =
            format!("station --proxy {at} --key {{file:station-{node}.key}} --listen {DOOR} --log {{log}} --realtime");
        let mut arguments = words(&line);
        if law.frames() == FrameSource::Radiotap {
            arguments.extend(words("--monitor {monitor}"));
        }
        arguments.extend(slot.iter().flat_map(|(_, slot)| ["--slot".to_owned(), slot.to_string()]));
        spec.programs.push(ProgramSpec {
            forward: words("--forward {local}={target}"),
            log: Some(station_log(station)),
            ready: Ready::Listening(DOOR),
            ..of(format!("the agent of station {name}"), Scenario::station_host(station), arguments)
        });
    }
}
