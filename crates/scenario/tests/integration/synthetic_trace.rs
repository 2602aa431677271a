//! The traces of `scenarios/trace` are what this generator makes, so that nobody has to wonder where they come from.
//!
//! `LASTHOP_BLESS=1` writes them.

use lasthop_units::{Seed, Stream};
use lasthop_wire::delivery::DeliveryTrace;
use rand::RngExt;
use std::path::Path;

/// Sprout's model of a cellular link (NSDI 2013, section 3.1): its tick, the wander of its rate, the most that it reaches, and how fast
/// it leaves an outage.
const TICK_S: f64 = 0.02;
const WANDER: f64 = 200.0;
const MOST: f64 = 1000.0;
const LEAVES: f64 = 1.0;
const TICKS: u32 = 1500;

/// Of a normal distribution with mean 0 and deviation 1 (Box and Muller).
fn normal(chance: &mut Stream) -> f64 {
    let (u, v): (f64, f64) = (chance.random(), chance.random());
    (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// 30 s of deliveries with a rate that begins in the middle.
fn synthetic(name: &str) -> DeliveryTrace {
    let mut chance = Seed(1).stream(name);
    let (mut rate, mut out, mut stamps) = (MOST / 2.0, false, Vec::new());
    for tick in 0..TICKS {
        let begins = f64::from(tick) * TICK_S;
        let mut at = begins;
        loop {
            at += -(1.0 - chance.random::<f64>()).ln() / rate.max(1e-9);
            if at >= begins + TICK_S {
                break;
            }
            stamps.push((at * 1000.0) as u32);
        }
        let next = rate + WANDER * TICK_S.sqrt() * normal(&mut chance);
        out = if out { chance.random::<f64>() < (-LEAVES * TICK_S).exp() } else { next <= 0.0 };
        rate = if out { 0.0 } else { next.clamp(0.0, MOST) };
    }
    DeliveryTrace::new(stamps).expect("in order")
}

#[test]
fn the_traces_that_are_shipped_are_those_of_the_generator() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/trace/traces");
    for name in ["synthetic.down", "synthetic.up"] {
        let (file, made) = (folder.join(name), synthetic(name));
        if std::env::var_os("LASTHOP_BLESS").is_some() {
            std::fs::write(&file, made.to_text()).expect("writing a trace");
        }
        let shipped = std::fs::read(&file).expect("a shipped trace");
        assert_eq!(DeliveryTrace::parse(&shipped), Ok(made), "{name}: LASTHOP_BLESS=1 writes it");
    }
}
