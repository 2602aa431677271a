//! The command lines of the edge proxy and the stations' agents that the lab starts: what operators would type. What is in
//! braces is filled in by the lab.

use lasthop_lab::TunnelSpec;
use lasthop_laws::aggregation::{Allocation, Control, OverheadRule};
use lasthop_scenario::quantity;
use lasthop_signals::FrameSource;
use std::path::PathBuf;

/// `program pair`, `program proxy` with the law's parameters, and `program station`.
pub fn commands(program: PathBuf, control: &Control, frames: FrameSource) -> TunnelSpec {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<String>>();
    let slot = quantity::show(control.interval());
    let mut proxy = words("proxy --listen {proxy} --keys {keys} --log {log}");
    proxy.extend(flags(control));
    // A station has a machine of its own. Here its agent shares the processors with proxy and emulator, which are real-time.
    let mut station = words("station --proxy {proxy} --key {key} --listen {door} --log {station_log} --realtime");
    if frames == FrameSource::Radiotap {
        station.extend(words("--monitor {monitor}"));
    }
    station.extend(["--slot".to_owned(), slot]);
    TunnelSpec {
        program,
        pair: words("pair --proxy {keys} --station {station} --out {key}"),
        proxy,
        station,
        forward: words("--forward {local}={target}"),
    }
}

/// The law's parameters as flags of `lasthop proxy`.
pub fn flags(control: &Control) -> Vec<String> {
    let flags = match control {
        Control::Aggregation(params) => {
            let allocation = match params.allocation {
                Allocation::Exact => "exact",
                Allocation::Paper => "paper",
            };
            let rule = match params.overhead_rule {
                OverheadRule::Access => "access",
                OverheadRule::Round => "round",
            };
            vec![
                ("--law", "aggregation".to_owned()),
                ("--slot", quantity::show(params.interval)),
                ("--target", quantity::show(params.target)),
                ("--allocation", allocation.to_owned()),
                ("--k1", params.k1.to_string()),
                ("--k2", params.k2.to_string()),
                ("--beta", params.beta.to_string()),
                ("--max-packets", params.max_packets.to_string()),
                ("--aim-packets", params.aim_packets.to_string()),
                ("--overhead", quantity::show(params.overhead)),
                ("--overhead-rule", rule.to_owned()),
            ]
        }
        Control::LinearPi(params) => vec![
            ("--law", "pi".to_owned()),
            ("--slot", quantity::show(params.interval)),
            ("--aim-packets", params.aim_packets.to_string()),
            ("--integral", params.integral.to_string()),
            ("--proportional", params.proportional.to_string()),
        ],
    };
    flags.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]).collect()
}
