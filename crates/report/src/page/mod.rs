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

/// Lines of prose end before this column.
const WIDTH: usize = 100;

/// The same text in lines of prose: rows of tables stay whole, items of lists go on below their text.
fn wrapped(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.starts_with('|') || line.chars().count() < WIDTH {
            lines.push(line.to_owned());
            continue;
        }
        let indent = if line.starts_with("* ") || line.starts_with("- ") { "  " } else { "" };
        let mut now = String::new();
        for word in line.split(' ') {
            if !now.is_empty() && now.chars().count() + 1 + word.chars().count() >= WIDTH {
                lines.push(std::mem::replace(&mut now, format!("{indent}{word}")));
            } else {
                now = if now.is_empty() { word.to_owned() } else { format!("{now} {word}") };
            }
        }
        lines.push(now);
    }
    lines.join("\n")
}

/// Writes a file so that a reader finds the old text or the new one, never half of it.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let beside = path.with_file_name(name);
    let done = fs::write(&beside, text).and_then(|()| fs::rename(&beside, path));
    done.inspect_err(|_| drop(fs::remove_file(&beside)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_wrapped_and_tables_are_not() {
        let words = "word ".repeat(40);
        let text = wrapped(&format!("# Title\n\n* {words}\n| {words} |"));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines[0], lines[1]), ("# Title", ""));
        assert!(lines[2].starts_with("* word") && lines[3].starts_with("  word"), "{text}");
        assert!(lines[..lines.len() - 1].iter().all(|line| line.len() < WIDTH), "{text}");
        assert!(lines[lines.len() - 1].starts_with("| word"), "{text}");
    }
}
