//! One run of a scenario in the lab, its figures and how far they are to be believed:
//!
//!     cargo run --release -p lasthop-lab --example one_run -- scenarios/first-light.toml cubic 1
//!
//! Needs root.

use lasthop_lab::{Spec, Stop, run};
use lasthop_scenario::Scenario;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which scenario file?")?;
    let law = arguments.next().ok_or("which law?")?;
    let seed = arguments.next().map_or(Ok(1), |seed| seed.parse())?;

    let scenario = Scenario::load(&path)?;
    let spec = Spec::of(&scenario, &scenario.law(&law)?, seed);
    Stop::on_signals()?;
    let outcome = run(&spec, |_| {}, &Stop::default())?;
    let record = outcome.record(&spec);
    for (key, figure) in &record.figures {
        println!("{key:?}: {figure:?}");
    }
    for station in &record.stations {
        println!("{}: {:?}", station.name, station.figures);
    }
    println!("lateness {:?}, real-time {}, doubts {:?}", outcome.lateness, outcome.realtime, outcome.doubts);
    println!(
        "{} crossings, {} losses, notes {:?}",
        outcome.hop.crossings.len(),
        outcome.hop.losses.len(),
        record.notes
    );
    Ok(())
}
