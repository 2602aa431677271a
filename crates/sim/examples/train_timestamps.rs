//! Trains the timestamp estimator on simulated traces and captures, and writes its coefficients:
//! `LASTHOP_REFERENCE=… cargo run --release -p lasthop-sim --example train_timestamps`.
//!
//! Prints what the captures change: the errors of a training without them, of the one that is kept, and of one with the
//! other half of the real capture, each on traces that it has not seen.

#[path = "../tests/arrivals/mod.rs"]
mod arrivals;

use arrivals::capture::{REAL, SYNTHETIC, SYNTHETIC_HELD_OUT, halves, hosted};
use arrivals::judge::{Errors, HEAD, SHORT_SLOT, SLOT, held_out, judge};
use arrivals::training::{PACKETS, REAL_WORTH, SEEDS, SYNTHETIC_WORTH, Samples};
use lasthop_laws::aggregation::timestamps::{Coefficients, FEATURES};
use std::fmt::Write;

const FILE: &str = "../laws/src/aggregation/timestamps/coefficients.rs";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let missing = "training needs the captures of the reference data: set LASTHOP_REFERENCE";
    let simulated = Samples::simulated();
    let kept = simulated.clone().with_captures(0).ok_or(missing)?;
    let (packets, begin) = kept.count();
    println!("{packets} packets, {begin} begin a frame");
    let coefficients = kept.fit();
    println!("{HEAD}");
    report("simulated only", simulated.fit(), None);
    report("with captures (kept)", coefficients, Some(0));
    report("with the other half", simulated.with_captures(1).ok_or(missing)?.fit(), Some(1));
    let Coefficients { intercept, weights } = coefficients;
    let mut text = format!(
        "//! Written by `cargo run --release -p lasthop-sim --example train_timestamps`: do not edit.\n\
         //!\n\
         //! Trained with {packets} packets: {PACKETS} each of the simulated traces of seeds {} to {}; {} of the first half\n\
         //! of `{REAL}`;\n\
         //! {} of `{SYNTHETIC}` behind simulated hosts.\n\n\
         use super::{{Coefficients, FEATURES}};\n\n\
         /// What training found.\n\
         pub const TRAINED: Coefficients = Coefficients {{ intercept: INTERCEPT, weights: WEIGHTS }};\n\n",
        SEEDS.start,
        SEEDS.end - 1,
        REAL_WORTH * u64::from(PACKETS),
        SYNTHETIC_WORTH * u64::from(PACKETS),
    );
    writeln!(text, "const INTERCEPT: f64 = {intercept:.9};")?;
    writeln!(text, "#[rustfmt::skip]\nconst WEIGHTS: [f64; FEATURES] = [")?;
    for weight in &weights {
        writeln!(text, "    {weight:.9},")?;
    }
    text.push_str("];\n");
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    std::fs::write(&path, text)?;
    println!("{FEATURES} weights written: {}", path.display());
    Ok(())
}

/// Errors of one training, `seen` being the half of the real capture that it had.
fn report(name: &str, coefficients: Coefficients, seen: Option<usize>) {
    let slots = held_out(coefficients);
    let line = |of: &str, errors: Option<Errors>| {
        if let Some(errors) = errors {
            println!("{}", errors.line(&format!("{name}: {of}")));
        }
    };
    line("simulated", Errors::of(slots.iter()));
    let early = |slot: &&arrivals::judge::Slot| slot.case.as_ref().is_some_and(|case| case.early);
    line("simulated, handed up whole", Errors::of(slots.iter().filter(|slot| !early(slot))));
    line("simulated, MPDU by MPDU", Errors::of(slots.iter().filter(early)));
    for (half, trace) in halves().iter().flatten().enumerate() {
        let slots = judge(coefficients, None, trace, SLOT);
        let what = if seen == Some(half) { " (trained with)" } else { "" };
        line(&format!("real capture, half {}{what}", half + 1), Errors::of(slots.iter()));
    }
    for path in SYNTHETIC_HELD_OUT {
        let slots: Vec<_> = (1..5)
            .filter_map(|seed| hosted(path, seed))
            .flat_map(|trace| judge(coefficients, None, &trace, SHORT_SLOT))
            .collect();
        line(&format!("`{path}`"), Errors::of(slots.iter()));
    }
}
