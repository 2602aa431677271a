//! The retransmission timer of a simulated sender: losses are repaired without timeouts that send a whole window again.

use crate::support;

use lasthop_report::Key;
use support::{parse, values};

/// A FIFO of 500 ms before a link of 5 Mbit/s, with a probe beside the download.
const SLOW_LINK: &str = r#"
title = "10 Mbit/s source, 5 Mbit/s link, 100 ms RTT, queue of 500 ms"
duration = "40 s"
warm-up = "10 s"
seeds = 1

[wire]
rate = "10 Mbit/s"
delay = "50 ms"

[hop.wired]
rate = "5 Mbit/s"
queue = { kind = "fifo", limit = "208 packets" }

[[station]]
name = "sub"

[[traffic]]
kind = "bulk"
to = "sub"

[[traffic]]
kind = "probe"
to = "sub"

[laws.cubic]
sender = "cubic"
"#;

#[test]
fn a_full_queue_costs_few_repetitions() {
    let scenario = parse(SLOW_LINK);
    // Kernel CUBIC sends 0.26 to 0.29 % again on this path.
    for (seed, again) in values(&scenario, "cubic", Key::RetransmissionRatio, 1..=20).iter().enumerate() {
        assert!(*again <= 0.005, "seed {}: {:.2} %", seed + 1, again * 100.0);
    }
}
