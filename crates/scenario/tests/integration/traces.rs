//! Steps from a CSV file are those of a list, from snr.csv too, which is as a spreadsheet writes it.

use lasthop_radio::LastHop;
use lasthop_scenario::Scenario;
use std::path::Path;

fn scenario(mcs: &str, snr: &str, walk: &str) -> LastHop {
    let text = format!(
        r#"
title = "Traces"
duration = "10 s"
[wire]
rate = "1 Gbit/s"
delay = "10 ms"
[hop.wifi]
standard = "802.11ac"
queue = {{ kind = "fifo" }}
[[station]]
name = "a"
mcs-trace = {mcs}
[[station]]
name = "b"
mcs = 3
snr-trace = {snr}
[[station]]
name = "c"
rate-control = "minstrel"
walk = {walk}
[[traffic]]
kind = "bulk"
to = "each"
[laws.cubic]
sender = "cubic"
"#
    );
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    Scenario::parse("some.toml", &text, &base).unwrap_or_else(|error| panic!("{}", error.plain())).hop().clone()
}

#[test]
fn every_trace_is_a_list_or_a_file_of_the_same_steps() {
    let listed = scenario(
        r#"[{ at = "0 s", mcs = 7 }, { at = "2250 ms", mcs = 3 }]"#,
        r#"[{ at = "0 s", snr = "30 dB" }, { at = "4 s", snr = "18.5 dB" }]"#,
        r#"[
            { at = "0 s", distance = "3 m" },
            { at = "3.5 s", distance = "12.25 m" },
            { at = "5 s", distance = "12.25 m" },
            { at = "9 s", distance = "3 m" },
        ]"#,
    );
    let read = scenario(r#""traces/mcs.csv""#, r#""traces/snr.csv""#, r#""traces/walk.csv""#);
    assert_eq!(read, listed);
}
