//! One second in which a station cannot be reached: afterwards the agent's flows are as fast as without it.

use crate::support;

use lasthop_report::{RunRecord, SeriesKind};
use support::{parse, simulate};

const SILENCE: &str = r#"
title = "A second of silence"
duration = "16 s"
warm-up = "2 s"
seeds = 1

[wire]
rate = "1 Gbit/s"
delay = "17 ms"

[hop.wifi]
standard = "802.11ac"
width = "80 MHz"
retry-limit = 127
queue = { kind = "fifo", limit = "4000 packets" }

[[station]]
name = "phone"
mcs = 7
nss = 1
snr-trace = [
 { at = "0 s", snr = "40 dB" },
 { at = "11.000 s", snr = "0 dB" },
 { at = "12.000 s", snr = "40 dB" },
]

[[traffic]]
kind = "bulk"
to = "phone"

[laws.cubic]
sender = "cubic"

[laws.bbr]
sender = "bbr"

[laws."cubic+ap"]
sender = "cubic"
agent = {}

[laws."bbr+ap"]
sender = "bbr"
agent = {}
"#;

/// Rate of the download in Mbit/s, between two times in seconds.
fn mean(record: &RunRecord, from: f64, to: f64) -> f64 {
    let track = record.tracks.iter().find(|track| track.kind == SeriesKind::Rate).expect("a download");
    let bin = |at: f64| (at / record.bin.as_secs_f64()).round() as usize;
    let values = &track.values[bin(from)..bin(to)];
    values.iter().flatten().sum::<f64>() / values.len() as f64
}

/// When, in seconds after the silence, the 100 ms begin in which the download has 90 % of its rate again.
fn recovered(record: &RunRecord) -> f64 {
    let wanted = 0.9 * mean(record, 6.0, 10.5);
    let steps = (0..195).map(|step| f64::from(step) * 0.02);
    steps.into_iter().find(|after| mean(record, 12.0 + after, 12.1 + after) >= wanted).unwrap_or(f64::INFINITY)
}

#[test]
fn a_silence_leaves_no_mark_on_the_agents_flows() {
    let scenario = parse(SILENCE);
    for law in ["cubic", "bbr"] {
        for seed in 1..=3 {
            let [alone, agent] = [law.to_owned(), format!("{law}+ap")].map(|law| simulate(&scenario, &law, seed));
            let (own, ours) = (recovered(&alone), recovered(&agent));
            let kept = mean(&agent, 12.5, 15.5) / mean(&agent, 6.0, 10.5);
            eprintln!("{law}, seed {seed}: {ours:.2} s, {own:.2} s alone; then {kept:.2} of the rate");
            assert!(ours <= own.max(0.25) && kept >= 0.9, "{law}, seed {seed}: {ours} s, {own} s alone; {kept}");
        }
    }
}
