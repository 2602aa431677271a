//! The command lines of the edge proxy and the stations' agents that the lab starts: what operators would type. What is in
//! braces is filled in by the lab.

use crate::agent;
use lasthop_lab::TunnelSpec;
use lasthop_laws::Choice;
use lasthop_signals::FrameSource;
use std::path::PathBuf;

/// `program pair`, `program proxy` with the law's parameters, and `program station`.
pub fn commands(program: PathBuf, choice: &Choice, frames: FrameSource) -> TunnelSpec {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<String>>();
    // Stations report in the slots of the law.
    let slot = choice.values().into_iter().find(|(param, _)| param.key == "interval");
    let mut proxy = words("proxy --listen {proxy} --keys {keys} --log {log}");
    proxy.extend(agent::flags(choice));
    // A station has a machine of its own. Here its agent shares the processors with proxy and emulator, which are real-time.
    let mut station = words("station --proxy {proxy} --key {key} --listen {door} --log {station_log} --realtime");
    if frames == FrameSource::Radiotap {
        station.extend(words("--monitor {monitor}"));
    }
    station.extend(slot.into_iter().flat_map(|(_, slot)| ["--slot".to_owned(), slot.to_string()]));
    TunnelSpec {
        program,
        pair: words("pair --proxy {keys} --station {station} --out {key}"),
        proxy,
        station,
        forward: words("--forward {local}={target}"),
    }
}
