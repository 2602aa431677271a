//! What a scenario file makes of an LTE cell.

use lasthop_radio::LastHop;
use lasthop_radio::cell::mcs::{Cqi, Tables};
use lasthop_radio::cell::{
    Background, BlockError, Bursts, DecoderErrors, Handovers, Params, Scheduler, StationParams, UPLINK,
};
use lasthop_scenario::Scenario;
use lasthop_signals::Node;
use lasthop_units::{Bytes, Span, Time};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

fn parse(text: &str) -> Scenario {
    Scenario::parse("test", text, Path::new(".")).unwrap_or_else(|error| panic!("{}", error.plain()))
}

fn params(scenario: &Scenario) -> &Params {
    match scenario.hop() {
        LastHop::Cell(plan) => plan.params(),
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
    assert_eq!(*params, Params { truth: true, ..Params::new(vec![50], vec![station; 2]) });
    assert_eq!(scenario.hop().plan().queue(), None);
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
layers = 3
modulation = "256qam"
[[hop.cell.background]]
kind = "control"
per-second = 400
[[station]]
name = "phone"
cqi-trace = [{ at = "0 s", cqi = 15 }, { at = "4 s", cqi = 0 }]
bit-error-rate = 3e-6
layers = 4
modulation = "256qam"
primary-carrier = 3
carriers = 2
missed-dci = 0.05
false-dci = 0.01
handovers = ["2 s", "7.5 s"]
handover-interruption = "30 ms"
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
            Background::Data {
                carrier: 1,
                layers: 3,
                tables: Tables::Qam256,
                cqi: cqi(7),
                errors: errors(1e-6),
                rate: 2.5,
                bursts
            },
            Background::Control { carrier: 0, cqi: cqi(10), rate: 400.0 },
        ]
    );
    let station = &params.stations[0];
    assert_eq!((station.layers, station.tables, station.carriers, station.primary), (4, Tables::Qam256, 2, 2));
    assert_eq!(station.decoder, DecoderErrors { missed: 0.05, spurious: 0.01 });
    let (at, interruption) = (vec![2_000, 7_500], Span::from_millis(30));
    let at = at.into_iter().map(|ms| Time::ZERO + Span::from_millis(ms)).collect();
    assert_eq!(station.handovers, Handovers { at, interruption });
    assert_eq!((station.uplink.delay, station.uplink.rate), (Span::from_millis(8), UPLINK.rate));
    let steps: Vec<_> = station.channel.iter().map(|step| (step.at, step.cqi, step.errors)).collect();
    assert_eq!(steps, [(Time::ZERO, cqi(15), errors(3e-6)), (Time::ZERO + Span::from_secs(4), cqi(0), errors(3e-6))]);
}

/// The station's qualities of a scenario beside a file with a trace.
fn of_trace(file: &str, keys: &str) -> Result<Vec<(Time, Cqi)>, String> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("powers").join(number.to_string());
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("walk.csv"), file).expect("a file");
    let head = "title = \"T\"\nduration = \"10 s\"\n[wire]\nrate = \"1 Gbit/s\"\ndelay = \"10 ms\"\n[hop.cell]\ncarriers = [50]\n";
    let text = format!("{head}{keys}[[station]]\nname = \"a\"\nrsrp-trace = \"walk.csv\"\n{REST}");
    let scenario = Scenario::parse("test", &text, &folder).map_err(|error| error.plain().to_string())?;
    Ok(params(&scenario).stations[0].channel.iter().map(|step| (step.at, step.cqi)).collect())
}

#[test]
fn a_power_over_time_becomes_qualities() {
    let at = |ms| Time::ZERO + Span::from_millis(ms);
    let cqi = |number| Cqi::new(number).expect("in range");
    let file = "# a comment\nat_s,rsrp_dbm\n0,-140\n1,-140\n1.01,-90\n";
    // -174 + 41.76 + 9 + 3 dB: -90 dBm are 30.2 dB above it, which is enough for the best.
    assert_eq!(of_trace(file, ""), Ok(vec![(at(0), cqi(0)), (at(1010), cqi(15))]));
    // 23 dB more of interference leave 7.2 dB: MCS 8 in ns-3's vectors, which is CQI 5.
    assert_eq!(of_trace(file, "interference-margin = \"26 dB\"\n"), Ok(vec![(at(0), cqi(0)), (at(1010), cqi(5))]));
    assert_eq!(
        of_trace(file, "noise-figure = \"16 dB\"\ninterference-margin = \"19 dB\"\n").map(|all| all[1].1),
        Ok(cqi(5))
    );
}

#[test]
fn a_power_that_cannot_be_is_refused_with_its_line() {
    for (file, what) in [
        ("at_s,rsrp\n0,-90\n", "at_s,rsrp_dbm"),
        ("at_s,rsrp_dbm\n", "the trace is empty"),
        ("at_s,rsrp_dbm\n0,-90 dBm\n", "`-90 dBm` is not a number of dBm"),
        ("at_s,rsrp_dbm\n0,90\n", "90 dBm is outside -156 dBm to -30 dBm"),
        ("at_s,rsrp_dbm\n0,-90\n0,-91\n", "put the steps in order"),
        ("at_s,rsrp_dbm\n0,-90,7\n", "two columns"),
    ] {
        let error = of_trace(file, "").expect_err(what);
        assert!(error.contains(what), "{error}");
    }
}
