//! How fast a day of the campus is recorded: simulated seconds of all twelve access points a second of CPU time, by a
//! quarter of each third hour, with the day's average of users within 3 %.
//!
//! Prints a `name value unit` line.

use lasthop_dataset::{KEY_LEN, PseudonymKey, Recorder};
use lasthop_experiment::campus::{Day, PART};
use lasthop_experiment::{Observed, observe};
use lasthop_scenario::Scenario;
use lasthop_units::Span;
use nix::time::{ClockId, clock_gettime};
use std::convert::Infallible;
use std::path::Path;

/// Hours from the first to the next.
const EVERY: u32 = 3;
const FIRST: u32 = 1;

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("Linux has this clock");
    time.tv_sec() as f64 + time.tv_nsec() as f64 / 1e9
}

fn main() {
    let (day, key, began) = (Day::new(1), PseudonymKey::new(&[0; KEY_LEN]), cpu_seconds());
    let chosen = |quarter: u32| quarter.is_multiple_of(4) && quarter / 4 % EVERY == FIRST;
    let (mut rows, mut quarters) = (0_u64, 0);
    for part in Day::parts().filter(|part| chosen(part.quarter)) {
        quarters += u64::from(part.channel == 0 && part.floor == 0);
        let Some(world) = day.world(part) else { continue };
        let scenario = Scenario::parse("campus", &world.text, Path::new("/"));
        let scenario = scenario.unwrap_or_else(|error| panic!("{}", error.plain()));
        let of = Observed {
            scenario: &scenario,
            law: &scenario.laws()[0],
            seed: 1,
            names: &world.names,
            timing: Recorder::TIMING,
        };
        observe(&of, &key, (0, Span::ZERO), &mut |_| true, &mut |_| {
            rows += 1;
            Ok::<(), Infallible>(())
        })
        .expect("it can be simulated");
    }
    assert!(rows > 10_000, "{rows} items");
    println!(
        "record.campus_day.simulated_s_per_cpu_s {:.1} s/s",
        (PART * quarters).as_secs_f64() / (cpu_seconds() - began)
    );
}
