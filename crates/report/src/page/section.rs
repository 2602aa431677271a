//! One part of a page, or the page of one figure.

use super::bars::DEVIATIONS;
use super::{Chart, MEANS, Ran, Table, table, wrapped};
use std::fmt::Write as _;

/// One part of a page, or the page of one figure.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Its heading.
    pub title: String,
    /// What was run, and how the paper is read.
    pub text: String,
    /// Why what is missed is missed: shown if something is.
    pub reason: String,
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

/// One requirement.
#[derive(Clone, Debug)]
pub struct Check {
    /// What is required.
    pub what: String,
    /// The paper's number, or this project's own requirement.
    pub paper: String,
    /// Ours.
    pub ours: String,
    /// Whether it is met; `None` where nothing is required.
    pub met: Option<bool>,
    /// True for what the system is known for: the table of all systems has it.
    pub headline: bool,
}

/// More statements than this are a CSV file, and those that are missed or are headlines stand on the page.
const MOST: usize = 6;

impl Check {
    /// A requirement on an estimate.
    pub fn new(what: &str, paper: &str, ours: impl Into<String>, met: impl Into<Option<bool>>) -> Check {
        Check { what: what.into(), paper: paper.into(), ours: ours.into(), met: met.into(), headline: false }
    }

    /// The same as what the system is known for.
    #[must_use]
    pub fn headline(self) -> Check {
        Check { headline: true, ..self }
    }

    fn row(&self, [met, missed]: [&str; 2]) -> Vec<String> {
        let verdict = self.met.map_or("", |is| if is { met } else { missed });
        vec![self.what.clone(), self.paper.clone(), self.ours.clone(), verdict.to_owned()]
    }
}

/// What a link to a file beside the page of that name is called.
fn label<'f>(name: &str, file: &'f str) -> &'f str {
    let stem = file.trim_end_matches(".csv");
    stem.strip_prefix(name).and_then(|rest| rest.strip_prefix('-')).unwrap_or("table")
}

/// The words of a verdict on a page, and in a file.
const BOLD: [&str; 2] = ["met", "**not met**"];
const PLAIN: [&str; 2] = ["met", "not met"];

impl Section {
    /// Requirements: how many, and how many of them are met.
    pub(super) fn counts(&self) -> (usize, usize) {
        let met = |wanted| self.checks.iter().filter(move |check| check.met == Some(wanted)).count();
        (met(true) + met(false), met(true))
    }

    /// Requirements that are not met.
    pub(super) fn missed(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| check.met == Some(false))
    }

    /// Names and texts of its pictures' files.
    pub(super) fn svgs(&self) -> impl Iterator<Item = (String, String)> {
        let charts = self.charts.iter().map(|chart| (&chart.file, chart.svg()));
        let others = self.pictures.iter().map(|picture| (&picture.file, picture.svg.clone()));
        charts.chain(others).map(|(name, svg)| (format!("{name}.svg"), svg))
    }

    /// Its pictures, which are under `folder` (with a slash at its end, or empty). What means and whiskers are is said once, by the overview.
    fn shown_pictures(&self, folder: &str) -> String {
        let charts = self.charts.iter().map(|chart| (&chart.title, &chart.file, &chart.note));
        let others = self.pictures.iter().map(|picture| (&picture.title, &picture.file, &picture.note));
        let mut text = String::new();
        for (title, file, note) in charts.chain(others) {
            let _ = write!(text, "\n![{title}]({folder}{file}.svg)\n");
            if ![MEANS, DEVIATIONS, ""].contains(&note.as_str()) {
                let _ = write!(text, "\n*{note}*\n");
            }
        }
        text
    }

    /// A part of a page, with pictures beside it under `pictures`.
    pub(super) fn part(&self, pictures: &str) -> String {
        let mut text = format!("## {}\n\n{}\n", self.title, self.text.trim());
        for table in &self.tables {
            let _ = write!(text, "\n{}", table.markdown());
        }
        text + &self.shown_pictures(&format!("{pictures}/"))
    }

    /// The page of a figure and the data beside it: names and texts of files. `name` is the page's without its ending, `overview` the page
    /// that leads to it.
    pub(super) fn files(&self, name: &str, overview: &str) -> Vec<(String, String)> {
        let mut text = format!("# {}\n\n{}\n", self.title, wrapped(self.text.trim()));
        let mut data: Vec<(String, String)> = Vec::new();
        if !self.checks.is_empty() {
            let many = self.checks.len() > MOST;
            let stands = |check: &&Check| !many || check.met == Some(false) || check.headline;
            let rows: Vec<Vec<String>> = self.checks.iter().filter(stands).map(|check| check.row(BOLD)).collect();
            let head =
                |verdict: &str| ["statement", "paper or requirement", "ours", verdict].map(str::to_owned).to_vec();
            if !rows.is_empty() {
                let _ = write!(text, "\n{}", table::markdown(&head(""), &rows));
            }
            if rows.len() < self.checks.len() {
                let file = format!("{name}-statements.csv");
                let (required, met) = self.counts();
                let _ = write!(
                    text,
                    "\n[All {} statements]({file}): {met} of {required} requirements met.\n",
                    self.checks.len()
                );
                let rows: Vec<Vec<String>> = self.checks.iter().map(|check| check.row(PLAIN)).collect();
                data.push((file, table::csv(std::iter::once(&head("verdict")).chain(&rows))));
            }
        }
        if !self.reason.is_empty() && self.missed().next().is_some() {
            let _ = write!(text, "\n{}\n", wrapped(&format!("Not met: {}", self.reason.trim())));
        }
        for table in &self.tables {
            let shows = table.markdown();
            if !shows.is_empty() {
                let _ = write!(text, "\n{shows}");
            }
            data.extend(table.file(name).map(|file| (file, table.csv())));
        }
        text.push_str(&self.shown_pictures(""));
        data.extend(self.ran.csv().map(|csv| (format!("{name}-runs.csv"), csv)));
        let runs = if self.ran.is_empty() { String::new() } else { format!("Runs: {}. ", self.ran) };
        let links: Vec<String> = data.iter().map(|(file, _)| format!("[{}]({file})", label(name, file))).collect();
        let links = if links.is_empty() { String::new() } else { format!("Data: {}. ", links.join(", ")) };
        let _ = write!(text, "\n{}\n", wrapped(&format!("{runs}{links}[Overview](../{overview}.md)")));
        data.insert(0, (format!("{name}.md"), text));
        data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(what: &str, met: Option<bool>) -> Check {
        Check::new(what, "more", "less", met)
    }

    #[test]
    fn a_figure_has_its_statements_and_says_why_one_is_missed() {
        let mut section = Section {
            title: "Figure 1".into(),
            text: "What was run.".into(),
            reason: "it is too hard.".into(),
            checks: vec![check("high", Some(false)), check("low", Some(true)), check("none", None)],
            ..Section::default()
        };
        let page = |section: &Section| section.files("figure-1", "paper")[0].clone();
        let (name, text) = page(&section);
        assert_eq!(name, "figure-1.md");
        assert!(text.starts_with("# Figure 1\n\nWhat was run.\n\n| statement |"), "{text}");
        for line in [
            "| high | more | less | **not met** |",
            "| none | more | less |  |",
            "Not met: it is too hard.",
            "(../paper.md)",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        section.checks.remove(0);
        assert!(!page(&section).1.contains("too hard"));
    }

    #[test]
    fn many_statements_become_a_file_but_missed_ones_stay() {
        let met = (0..MOST).map(|place| check(&format!("number {place}"), Some(true)));
        let checks = met.chain([check("high", Some(false)), check("known", None).headline()]).collect();
        let section = Section { checks, ..Section::default() };
        let files = section.files("figure-1", "paper");
        assert!(files[0].1.contains("| high |") && files[0].1.contains("| known |"), "{}", files[0].1);
        assert!(!files[0].1.contains("number 3"), "{}", files[0].1);
        assert!(files[0].1.contains("[All 8 statements](figure-1-statements.csv): 6 of 7 requirements met."));
        assert_eq!(files[1].0, "figure-1-statements.csv");
        assert!(files[1].1.contains("number 3,more,less,met\n") && files[1].1.contains("high,more,less,not met\n"));
    }

    #[test]
    fn tables_that_are_not_wholly_on_the_page_are_beside_it() {
        let mut table = Table::new(&["law", "Mbit/s"]);
        table.rows = vec![vec!["ours".into(), "1".into()], vec!["theirs".into(), "2".into()]];
        let tables = vec![table.clone(), table.clone().only(|row| row[0] == "ours", &[0, 1]).named("rates")];
        let section = Section { tables, ..Section::default() };
        let files = section.files("figure-1", "paper");
        assert_eq!(files.len(), 2);
        assert_eq!(files[1], ("figure-1-rates.csv".to_owned(), "law,Mbit/s\nours,1\ntheirs,2\n".to_owned()));
        assert_eq!(files[0].1.matches("theirs").count(), 1);
        assert!(files[0].1.contains("Data: [rates](figure-1-rates.csv). [Overview](../paper.md)"), "{}", files[0].1);
    }
}
