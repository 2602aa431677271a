//! How fast the simulator is: whole runs through `lasthop_sim::run`, the record and its quantiles included, by CPU time.
//!
//! Prints `name value unit` lines, each the best of some repetitions of the same run: what disturbs a run only makes it
//! slower, and ns-3's reference is the least CPU time of some repetitions too.

use lasthop_report::RunRecord;
use lasthop_scenario::Scenario;
use nix::time::{ClockId, clock_gettime};
use std::path::Path;

/// Packets a second, all stations together: ns-3's reference carried 750.6 Mbit/s of 1500-byte packets.
const PACKETS_PER_S: f64 = 62_550.0;

/// The scenarios of ns-3's timing reference (S1, S2): 802.11ac, 80 MHz, short guard interval, three streams at MCS 9,
/// 80 % load of constant bit rate, a drop-tail queue of 1000 packets or of 500 a station.
///
/// ns-3's source sits on the access point; ours crosses a wire first, which is more work and changes nothing on the hop.
fn wifi(stations: u32) -> Scenario {
    // A probe recurs no sooner than after 100 us, so one fast source is made of several slow ones.
    let sources_each = 8_u32.div_ceil(stations);
    let gap_ns = f64::from(stations * sources_each) / PACKETS_PER_S * 1e9;
    let mut text = format!(
        r#"
        title = "ns-3 timing reference, {stations} stations"
        duration = "10 s"
        wire = {{ rate = "10 Gbit/s", delay = "1 ms" }}
        laws.cubic.sender = "cubic"
        [hop.wifi]
        standard = "802.11ac"
        width = "80 MHz"
        guard-interval = "400 ns"
        queue = {{ kind = "fifo", limit = "{} packets" }}
        "#,
        1000.max(500 * stations)
    );
    for n in 1..=stations {
        text += &format!("[[station]]\nname = \"s{n}\"\nnss = 3\nmcs = 9\n");
    }
    for _ in 0..sources_each {
        text +=
            &format!("[[traffic]]\nkind = \"probe\"\nto = \"each\"\nsize = \"1472 B\"\nevery = \"{gap_ns:.0} ns\"\n");
    }
    Scenario::parse("wifi.toml", &text, Path::new("")).unwrap_or_else(|error| panic!("{error:?}"))
}

/// The scenario of ns-3's timing reference S3: ten stations upload over 802.11g for a minute.
fn uploads() -> Scenario {
    let text = r#"
        title = "ns-3 timing reference, ten uploads"
        duration = "60 s"
        wire = { rate = "1 Gbit/s", delay = "2 ms" }
        laws.cubic.sender = "cubic"
        [hop.wifi]
        standard = "802.11g"
        beacon-interval = "1024 ms"
        queue = { kind = "fifo", limit = "100 packets" }
        uplink-queue = "100 packets"
        [[station]]
        name = "s"
        count = 10
        rate = "54 Mbit/s"
        [[traffic]]
        kind = "bulk"
        from = "each"
        to = "server"
        "#;
    Scenario::parse("uploads.toml", text, Path::new("")).unwrap_or_else(|error| panic!("{error:?}"))
}

/// A chain of five hops of 802.11a at 24 Mbit/s, as in ns-3's reference S4 (`cs2`): each node decodes its neighbours and senses the
/// nodes behind them. More is offered to its head than it carries, so that every queue and every collision is at work.
fn chain() -> Scenario {
    let mut text = r#"
        title = "chain of five hops"
        duration = "60 s"
        wire = { rate = "1 Gbit/s", delay = "1 ms" }
        laws.cubic.sender = "cubic"
        [hop.wifi]
        standard = "802.11a"
        queue = { kind = "fifo", limit = "100 packets" }
        uplink-queue = "100 packets"
        mesh = { range = "110 m", carrier-sense-range = "210 m" }
        [[traffic]]
        kind = "udp"
        to = "n5"
        rate = "6 Mbit/s"
        "#
    .to_owned();
    for n in 1..=CHAIN_HOPS {
        text += &format!("[[station]]\nname = \"n{n}\"\nrate = \"24 Mbit/s\"\nposition = [\"{n}00 m\", \"0 m\"]\n");
    }
    Scenario::parse("chain.toml", &text, Path::new("")).unwrap_or_else(|error| panic!("{error:?}"))
}

const CHAIN_HOPS: u64 = 5;
/// One packet at 24 Mbit/s over an idle channel: interframe space, mean backoff, frame and acknowledgement.
const CHAIN_EXCHANGE_S: f64 = 681.5e-6;

/// Fifty nodes of 802.11a at 24 Mbit/s in rows of ten, 60 m apart, with routes that OLSR finds, and a flow of Adaptive
/// ATP from each of the first 32 stations to the one that is 17 further on.
fn mesh() -> Scenario {
    let mut text = format!(
        r#"
        title = "a mesh of fifty nodes"
        duration = "{MESH_S} s"
        wire = {{ rate = "1 Gbit/s", delay = "1 ms" }}
        laws.atp.sender = "atp"
        [hop.wifi]
        standard = "802.11a"
        queue = {{ kind = "fifo", limit = "100 packets" }}
        uplink-queue = "100 packets"
        mesh = {{ range = "90 m", carrier-sense-range = "180 m", routing = "olsr" }}
        "#
    );
    for n in 1..50 {
        let (x, y) = (n % 10 * 60, n / 10 * 60);
        text += &format!("[[station]]\nname = \"n{n}\"\nrate = \"24 Mbit/s\"\nposition = [\"{x} m\", \"{y} m\"]\n");
    }
    for n in 1..=32 {
        text += &format!("[[traffic]]\nkind = \"bulk\"\nfrom = \"n{n}\"\nto = \"n{}\"\nstart = \"20 s\"\n", n + 17);
    }
    Scenario::parse("mesh.toml", &text, Path::new("")).unwrap_or_else(|error| panic!("{error:?}"))
}

/// What the mesh is simulated for, in seconds.
const MESH_S: u64 = 300;

fn shipped(name: &str) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name);
    Scenario::load(&path).unwrap_or_else(|error| panic!("{error:?}"))
}

/// One run, and the CPU seconds that it took.
fn simulate(scenario: &Scenario, law: &str, seed: u64) -> (RunRecord, f64) {
    let law = scenario.law(law).expect("a law of the scenario");
    let began = cpu_seconds();
    let record = lasthop_sim::run(scenario, &law, seed, false, &mut |_| true).expect("valid").expect("not stopped");
    (record, cpu_seconds() - began)
}

/// CPU time of this process.
fn cpu_seconds() -> f64 {
    let spent = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("always there on Linux");
    spent.tv_sec() as f64 + spent.tv_nsec() as f64 / 1e9
}

fn least(seconds: impl Iterator<Item = f64>) -> f64 {
    seconds.min_by(f64::total_cmp).expect("at least one run")
}

fn main() {
    // `cargo test --benches` only wants to see that it works.
    let thorough = std::env::args().any(|argument| argument == "--bench");
    let repetitions = |wanted| if thorough { wanted } else { 1 };

    for stations in [1, 20] {
        let scenario = wifi(stations);
        let offered = PACKETS_PER_S * scenario.duration().as_secs_f64();
        let seconds = least((0..repetitions(7)).map(|_| {
            let (record, seconds) = simulate(&scenario, "cubic", 1);
            // A speed belongs to a result: at 80 % load a hop that works carries all that is offered.
            let share = record.hop_delays.count() as f64 / offered;
            assert!((0.995..1.005).contains(&share), "{stations} stations: {:.1} % delivered", share * 100.0);
            seconds
        }));
        println!("sim.wifi_{stations}sta.packets_per_cpu_s {:.0} packets/s", offered / seconds);
    }
    for (name, file, repeats) in
        [("tcp_50mbit", "wired/bottleneck-50mbit.toml", 15), ("first_light", "first-light.toml", 7)]
    {
        let scenario = shipped(file);
        let seconds = least((0..repetitions(repeats)).map(|_| simulate(&scenario, "cubic", 1).1));
        println!("sim.{name}.simulated_s_per_cpu_s {:.0} s/s", scenario.duration().as_secs_f64() / seconds);
    }
    let scenario = uploads();
    let seconds = least((0..repetitions(3)).map(|_| simulate(&scenario, "cubic", 1).1));
    println!("sim.wifi_11g_10up.cpu_s {seconds:.2} s");
    let scenario = chain();
    let mut carried = 0;
    let seconds = least((0..repetitions(7)).map(|_| {
        let (record, seconds) = simulate(&scenario, "cubic", 1);
        // The stream goes away from the access point: what each hop hands over is a delivery to a station.
        carried = record.hop_delays.count();
        // Of four hops in a row one at a time can succeed, so that a quarter of the channel's time is each one's.
        let most = scenario.duration().as_secs_f64() / CHAIN_EXCHANGE_S / 4.0;
        let passed = carried as f64 / CHAIN_HOPS as f64;
        assert!((most / 2.0..most).contains(&passed), "{passed} packets a hop, and the channel has time for {most}");
        seconds
    }));
    println!("sim.mesh_chain{CHAIN_HOPS}.packets_per_cpu_s {:.0} packets/s", carried as f64 / seconds);
    // Five minutes of fifty nodes are too long for a look at whether it works.
    if thorough {
        let (record, seconds) = simulate(&mesh(), "atp", 1);
        assert!(record.hop_delays.count() > 10_000, "the mesh carries something");
        println!("sim.mesh_50_nodes_32_flows_300s.cpu_s {seconds:.2} s");
    }
}
