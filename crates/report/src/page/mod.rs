//! Pages that runs leave behind: what the paper says, what came out, and whether it is met.

mod bars;
mod chart;
mod draft;
mod figures;
mod legend;
mod map;
mod provenance;
mod section;
mod stack;
mod table;

pub use bars::Bars;
pub use chart::{Chart, Curve, MEANS};
pub use draft::Draft;
pub use figures::Figures;
pub use map::{Map, Place};
pub use provenance::Ran;
pub use section::{Check, Picture, Section};
pub use stack::Stack;
pub use table::Table;

use crate::Estimate;
use std::path::Path;
use std::{fs, io};

/// An estimate as people read it: three significant digits and the half width of its interval.
pub fn shown(estimate: &Estimate) -> String {
    let Some(mean) = estimate.mean else { return "–".into() };
    match estimate.half_ci() {
        // Less is rounding.
        Some(half) if half >= 5e-7 => format!("{} ± {}", digits(mean), digits(half)),
        _ => digits(mean),
    }
}

/// The mean of an estimate; NaN, which meets nothing, where there is none.
pub fn mean(of: &Estimate) -> f64 {
    of.mean.unwrap_or(f64::NAN)
}

/// Three significant digits.
pub fn digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let places = (2 - value.abs().log10().floor() as i32).clamp(0, 6) as usize;
    format!("{value:.places$}")
}

/// Writes a file so that whoever reads it finds the old text or the new one, never half of it.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let beside = path.with_file_name(name);
    let done = fs::write(&beside, text).and_then(|()| fs::rename(&beside, path));
    done.inspect_err(|_| drop(fs::remove_file(&beside)))
}
