//! The page that a reproduction leaves behind: what the paper says, what came out, and whether it is met.

mod bars;
mod chart;
mod draft;
mod legend;
mod map;
mod provenance;
mod stack;

pub use bars::Bars;
pub use chart::{Chart, Curve, MEANS};
pub use draft::Draft;
pub use map::{Map, Place};
pub use provenance::Ran;
pub use stack::Stack;

use crate::Estimate;
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

/// One figure's part of the page.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Its heading.
    pub title: String,
    /// What was run, and how the paper is read.
    pub text: String,
    /// The scenarios that it comes from.
    pub ran: Ran,
    /// Numbers.
    pub tables: Vec<Table>,
    /// What is required, and whether it is so.
    pub checks: Vec<Check>,
    /// Curves.
    pub charts: Vec<Chart>,
    /// Other pictures.
    pub pictures: Vec<Picture>,
}

/// A picture.
#[derive(Clone, Debug, Default)]
pub struct Picture {
    /// Name of its file, without extension.
    pub file: String,
    /// What it shows.
    pub title: String,
    /// The picture itself.
    pub svg: String,
    /// What its marks are; stands below it.
    pub note: String,
}

/// A table of text.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Headings.
    pub head: Vec<String>,
    /// Lines.
    pub rows: Vec<Vec<String>>,
}

/// One requirement.
#[derive(Clone, Debug)]
pub struct Check {
    /// What is required.
    pub what: String,
    /// The paper's number, or the or specification's.
    pub paper: String,
    /// Ours.
    pub ours: String,
    /// Whether it is met; `None` where nothing is required.
    pub met: Option<bool>,
    /// True for what the system is known for: the table of all systems has it.
    pub headline: bool,
}

/// Where a preface has the result in short.
const RESULT: &str = "{result}";

/// The page.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// What stands before the sections, with `{result}` where the result in short belongs.
    pub preface: String,
    /// One a figure.
    pub sections: Vec<Section>,
}

impl Check {
    /// A requirement on an estimate.
    pub fn new(what: &str, paper: &str, ours: impl Into<String>, met: impl Into<Option<bool>>) -> Check {
        Check { what: what.into(), paper: paper.into(), ours: ours.into(), met: met.into(), headline: false }
    }

    /// The same as what the system is known for.
    pub fn headline(self) -> Check {
        Check { headline: true, ..self }
    }
}

impl Table {
    /// A table with these headings.
    pub fn new(head: &[&str]) -> Table {
        Table { head: head.iter().map(|cell| (*cell).to_owned()).collect(), rows: Vec::new() }
    }
}

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

impl Page {
    /// The page as Markdown, with pictures beside it under `pictures`.
    pub fn markdown(&self, pictures: &str) -> String {
        let mut text = self.preface.trim().replace(RESULT, &self.result());
        for section in &self.sections {
            let _ = write!(text, "\n\n## {}\n\n{}\n", section.title, section.text.trim());
            if !section.ran.is_empty() {
                let _ = writeln!(
                    text,
                    "\nScenarios, under `scenarios/{}/`, and what was changed in them:\n{}",
                    section.ran.folder(),
                    section.ran
                );
            }
            if !section.checks.is_empty() {
                text.push_str("\n| what | paper or requirement | ours | |\n| --- | --- | --- | --- |\n");
            }
            for check in &section.checks {
                let verdict = match check.met {
                    Some(true) => "met",
                    Some(false) => "**not met**",
                    None => "",
                };
                let _ = writeln!(text, "| {} | {} | {} | {verdict} |", check.what, check.paper, check.ours);
            }
            for table in &section.tables {
                let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
                let rule: Vec<String> = table.head.iter().map(|_| "---".to_owned()).collect();
                let _ = write!(text, "\n{}\n{}\n", line(&table.head), line(&rule));
                for row in &table.rows {
                    let _ = writeln!(text, "{}", line(row));
                }
            }
            let charts = section.charts.iter().map(|chart| (&chart.title, &chart.file, &chart.note));
            let others = section.pictures.iter().map(|picture| (&picture.title, &picture.file, &picture.note));
            for (title, file, note) in charts.chain(others) {
                let _ = write!(text, "\n![{title}]({pictures}/{file}.svg)\n");
                if !note.is_empty() {
                    let _ = write!(text, "\n*{note}*\n");
                }
            }
        }
        text.push('\n');
        text
    }

    /// How many requirements are met, and which are not.
    fn result(&self) -> String {
        let all = self.required();
        let mut text = format!("{all} statements have a requirement; of these met: {}.", all - self.unmet().count());
        if self.unmet().next().is_some() {
            text.push_str(" **Not met:**\n");
        }
        for (Section { title, .. }, Check { what, ours, .. }) in self.unmet() {
            let _ = write!(text, "\n- [{title}](#{}): {what}: {ours}", anchor(title));
        }
        text
    }

    /// How many statements have a requirement; the others only stand beside ours.
    pub fn required(&self) -> usize {
        self.sections.iter().flat_map(|section| &section.checks).filter(|check| check.met.is_some()).count()
    }

    /// Requirements that are not met.
    pub fn unmet(&self) -> impl Iterator<Item = (&Section, &Check)> {
        let all = self.sections.iter().flat_map(|section| section.checks.iter().map(move |check| (section, check)));
        all.filter(|(_, check)| check.met == Some(false))
    }
}

/// What a heading is called in a link within the page.
fn anchor(title: &str) -> String {
    let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// Writes a file so that whoever reads it finds the old text or the new one, never half of it.
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
    fn the_result_in_short_counts_requirements_and_leads_to_those_that_are_not_met() {
        let check = |what: &str, met| Check::new(what, "more", "less", met);
        let section = Section {
            title: "Figure 1(b): short, with a comma".into(),
            checks: vec![check("high", Some(false)), check("low", Some(true)), check("none", None)],
            ..Section::default()
        };
        let page = Page { preface: "# Page\n\n{result}\n\nEnd.".into(), sections: vec![section] };
        let text = page.markdown("pictures");
        let line = "- [Figure 1(b): short, with a comma](#figure-1b-short-with-a-comma): high: less";
        let result = format!("2 statements have a requirement; of these met: 1. **Not met:**\n\n{line}\n\nEnd.");
        assert!(text.starts_with(&format!("# Page\n\n{result}")), "{text}");
        let met = Page { preface: RESULT.into(), ..Page::default() };
        assert_eq!(met.markdown("pictures").trim(), "0 statements have a requirement; of these met: 0.");
    }
}
