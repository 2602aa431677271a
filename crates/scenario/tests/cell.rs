//! What a scenario file makes of an LTE cell.

use lasthop_radio::cell::mcs::{Cqi, Tables};
use lasthop_radio::cell::{Background, BlockError, Bursts, Params, Scheduler, StationParams, UPLINK};
use lasthop_scenario::{Hop, Scenario};
use lasthop_signals::Node;
use lasthop_units::{Bytes, Span, Time};
use std::path::Path;

fn parse(text: &str) -> Scenario {
    Scenario::parse("test", text, Path::new(".")).unwrap_or_else(|error| panic!("{}", error.plain()))
}

fn params(scenario: &Scenario) -> &Params {
    match scenario.hop() {
        Hop::Cell(plan) => plan.params(),
        other => panic!("a cell, not {other:?}"),
    }
}

const REST: &str = r#"
[[traffic]]
kind = "bulk"
to = "each"
[laws.cubic]
sender = "cubic"
"#;

fn scenario(hop: &str) -> Scenario {
    let head = "title = \"T\"\nduration = \"10 s\"\n[wire]\nrate = \"1 Gbit/s\"\ndelay = \"10 ms\"\n";
    parse(&format!("{head}{hop}{REST}"))
}

#[test]
fn a_short_file_makes_a_whole_cell() {
    let scenario =
        scenario("[hop.cell]\ncarriers = [\"10 MHz\"]\n[[station]]\nname = \"phone\"\ncount = 2\ncqi = 15\n");
    let params = params(&scenario);
    let station = StationParams { carriers: 1, ..StationParams::new(Cqi::new(15).expect("in range")) };
    assert_eq!(*params, Params::new(vec![50], vec![station; 2]));
    assert_eq!(scenario.hop().queue(), None);
    let graph = scenario.graph();
    // Server and base station on the wire; the base station and two stations on the hop.
    assert_eq!(graph.links[1].ends.len(), 3);
    assert_eq!(scenario.access_point_of(1), Node(0));
}

#[test]
fn every_key_arrives() {
    let text = r#"
[hop.cell]
carriers = ["20 MHz", 40, "1.4 MHz"]
scheduler = "round-robin"
use-remainder = false
queue = "300 kB"
uplink-delay = "8 ms"
activate-share = 0.5
activate-window = "200 ms"
activation-delay = "34 ms"
deactivate-after = "1.28 s"
[[hop.cell.background]]
kind = "data"
per-second = 2.5
carrier = 2
cqi = 7
size = "20 kB"
sizes = "fixed"
bit-error-rate = 1e-6
[[hop.cell.background]]
kind = "control"
per-second = 400
[[station]]
name = "phone"
cqi-trace = [{ at = "0 s", cqi = 15 }, { at = "4 s", cqi = 0 }]
bit-error-rate = 3e-6
layers = 2
modulation = "256qam"
carriers = 2
"#;
    let scenario = scenario(text);
    let params = params(&scenario);
    assert_eq!(params.carriers, [100, 40, 6]);
    assert_eq!((params.scheduler, params.use_remainder), (Scheduler::RoundRobin, false));
    assert_eq!(params.queue, Bytes::new(300_000));
    let aggregation = params.aggregation;
    assert_eq!((aggregation.share, aggregation.window), (0.5, Span::from_millis(200)));
    assert_eq!((aggregation.delay, aggregation.unused), (Span::from_millis(34), Some(Span::from_millis(1280))));
    let cqi = |number| Cqi::new(number).expect("in range");
    let errors = |rate| BlockError::BitErrorRate { rate, combining: BlockError::COMBINING };
    let bursts = Bursts::Fixed(Bytes::new(20_000));
    assert_eq!(
        params.background,
        [
            Background::Data { carrier: 1, cqi: cqi(7), errors: errors(1e-6), rate: 2.5, bursts },
            Background::Control { carrier: 0, cqi: cqi(10), rate: 400.0 },
        ]
    );
    let station = &params.stations[0];
    assert_eq!((station.layers, station.tables, station.carriers), (2, Tables::Qam256, 2));
    assert_eq!((station.uplink.delay, station.uplink.rate), (Span::from_millis(8), UPLINK.rate));
    let steps: Vec<_> = station.channel.iter().map(|step| (step.at, step.cqi, step.errors)).collect();
    assert_eq!(steps, [(Time::ZERO, cqi(15), errors(3e-6)), (Time::ZERO + Span::from_secs(4), cqi(0), errors(3e-6))]);
}
