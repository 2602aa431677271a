//! How much faster than life one CUBIC flow is simulated: 50 Mbit/s, 20 ms, a FIFO of 1000 packets.

#[path = "../tests/harness/mod.rs"]
mod harness;

use harness::{BOTTLENECK, World};
use lasthop_units::{Span, Time};
use std::time::Instant;

const SIMULATED: Span = Span::from_secs(60);
const RUNS: usize = 5;

// A benchmark is the one place that must read a clock.
#[allow(clippy::disallowed_methods)]
fn main() {
    // `cargo test --benches` passes `--test`: then once and briefly, to see that it still runs.
    let testing = std::env::args().any(|arg| arg == "--test");
    let (simulated, runs) = if testing { (Span::from_secs(1), 1) } else { (SIMULATED, RUNS) };
    let mut speeds: Vec<f64> = (0..runs)
        .map(|_| {
            let mut world = World::new("cubic", BOTTLENECK, 1);
            world.sender.write_forever();
            let began = Instant::now();
            world.run_until(Time::ZERO + simulated);
            simulated.as_secs_f64() / began.elapsed().as_secs_f64()
        })
        .collect();
    // One thread that never waits: wall-clock time is CPU time, disturbances aside, and the median discards those.
    speeds.sort_by(f64::total_cmp);
    println!("sim.tcp_50mbit.simulated_s_per_cpu_s {:.0} s/s", speeds[speeds.len() / 2]);
}
