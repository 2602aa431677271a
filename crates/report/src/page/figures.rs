//! The pages of a reproduction: an overview with the verdicts, and a page a figure. What is done is on the disk, whatever ends the run.

use super::draft::warning;
use super::{Check, Section, replace, table, wrapped};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Where a preface has the verdicts.
const RESULT: &str = "{result}";
/// More of what a figure misses are on its page alone.
const NAMED: usize = 2;

/// Pages in the making. They are `NAME-incomplete.md` and what is beside it in `NAME-incomplete` until all are finished, so that the last whole
/// ones stay as they are until then.
#[derive(Debug)]
pub struct Figures {
    preface: String,
    figures: Vec<Figure>,
    dir: PathBuf,
    name: String,
    /// Figures that there will be.
    wanted: usize,
    /// Names of the files that are moved when all is finished: pictures and data.
    files: Vec<String>,
}

/// A figure's page.
#[derive(Debug)]
struct Figure {
    /// Its name without its ending.
    name: String,
    section: Section,
}

impl Figures {
    /// Pages of `wanted` figures: `NAME.md` in `dir`, with `{result}` where its verdicts belong, and the others under `NAME`. Nothing is
    /// written yet.
    pub fn new(dir: &Path, name: &str, preface: &str, wanted: usize) -> Figures {
        let (dir, name, preface) = (dir.to_owned(), name.to_owned(), preface.trim().to_owned());
        Figures { preface, figures: Vec::new(), dir, name, wanted, files: Vec::new() }
    }

    /// How many are done.
    pub fn done(&self) -> usize {
        self.figures.len()
    }

    /// Where the overview is so far; `None` while there is no figure.
    pub fn path(&self) -> Option<PathBuf> {
        (!self.figures.is_empty()).then(|| self.file(&self.incomplete()))
    }

    /// How many statements have a requirement, and how many of these are met; the others only stand beside ours.
    pub fn counts(&self) -> (usize, usize) {
        let counts = self.figures.iter().map(|figure| figure.section.counts());
        counts.fold((0, 0), |(all, met), (of_one, met_of_one)| (all + of_one, met + met_of_one))
    }

    /// Adds the page of the figure of this id, its pictures and its data, and writes the overview with what it has.
    ///
    /// # Errors
    /// What the disk says.
    pub fn add(&mut self, id: &str, section: Section) -> io::Result<()> {
        let incomplete = self.incomplete();
        let beside = self.dir.join(&incomplete);
        fs::create_dir_all(&beside)?;
        let figure = Figure { name: format!("figure-{id}"), section };
        for (file, text) in figure.section.svgs().chain(figure.section.files(&figure.name, &incomplete)) {
            replace(&beside.join(&file), &text)?;
            self.files.push(file);
        }
        self.figures.push(figure);
        let warning = warning(self.figures.len(), self.wanted, "figures");
        replace(&self.file(&incomplete), &self.overview(&incomplete, &format!("\n{warning}\n")))
    }

    /// Puts all in their places, and says where: the overview first.
    ///
    /// # Errors
    /// What the disk says. The overview is still there as it was, not complete; some of the others may be in their places.
    pub fn finish(&self) -> io::Result<Vec<PathBuf>> {
        let incomplete = self.incomplete();
        let (from, to) = (self.dir.join(&incomplete), self.dir.join(&self.name));
        fs::create_dir_all(&to)?;
        let path = self.file(&self.name);
        let mut written = vec![path.clone()];
        for file in &self.files {
            fs::rename(from.join(file), to.join(file))?;
            written.push(to.join(file));
        }
        // They lead to another overview now.
        for Figure { name, section } in &self.figures {
            for (file, text) in section.files(name, &self.name).into_iter().take(1) {
                replace(&to.join(file), &text)?;
            }
        }
        replace(&path, &self.overview(&self.name, ""))?;
        // What is left of it has done its duty. Files of an earlier run that was ended early are not ours to remove.
        let _ = fs::remove_file(self.file(&incomplete));
        let _ = fs::remove_dir(&from);
        Ok(written)
    }

    /// The overview. Its figures are under `folder`.
    fn overview(&self, folder: &str, warning: &str) -> String {
        format!("{}\n{warning}", wrapped(&self.preface).replace(RESULT, &self.result(folder)))
    }

    /// How many requirements are met, by figure, and what is missed.
    fn result(&self, folder: &str) -> String {
        let (all, met) = self.counts();
        let link = |Figure { name, section }: &Figure| format!("[{}]({folder}/{name}.md)", section.title);
        let row = |figure: &Figure| {
            let (all, met) = figure.section.counts();
            vec![link(figure), if all == 0 { "–".to_owned() } else { format!("{met} of {all}") }]
        };
        let rows: Vec<Vec<String>> = self.figures.iter().map(row).collect();
        let table = table::markdown(&["figure", "met"].map(str::to_owned), &rows);
        let mut text = format!("{met} of {all} statements with a requirement are met.\n\n{}", table.trim_end());
        if met < all {
            text.push_str("\n\nMissed, required / ours:\n\n");
        }
        for figure in &self.figures {
            let missed: Vec<String> = figure.section.missed().map(in_short).collect();
            if missed.is_empty() {
                continue;
            }
            let _ = writeln!(text, "- {}:", link(figure));
            for line in missed.iter().take(NAMED) {
                let _ = writeln!(text, "  - {line}");
            }
            let more = missed.len().saturating_sub(NAMED);
            if more > 0 {
                let _ = writeln!(text, "  - {more} more.");
            }
        }
        text.trim_end().to_owned()
    }

    fn incomplete(&self) -> String {
        format!("{}-incomplete", self.name)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}.md"))
    }
}

/// What is missed, without intervals.
fn in_short(check: &Check) -> String {
    let mut words = check.ours.split(' ').peekable();
    let mut kept: Vec<String> = Vec::new();
    while let Some(word) = words.next() {
        if word != "±" {
            kept.push(word.to_owned());
            continue;
        }
        // What stands behind the half width belongs to the mean.
        let half = words.next().unwrap_or_default();
        let mark = half.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        kept.last_mut().into_iter().for_each(|mean| mean.push_str(mark));
    }
    format!("{}: {} / {}", check.what, check.paper, kept.join(" "))
}

#[cfg(test)]
mod tests {
    use super::super::{Chart, Table};
    use super::*;

    fn section(title: &str) -> Section {
        let chart = Chart::over_time(title, title, "value", Vec::new());
        let mut table = Table::new(&["law", "value"]);
        table.rows.push(vec!["ours".into(), "1".into()]);
        let checks = vec![
            Check::new("delay", "< 1", "1.5 ± 0.2 ms, 3 ± 1; 4", Some(false)),
            Check::new("rate", "> 1", "2", Some(true)),
            Check::new("losses", "not stated", "0", None),
        ];
        Section { title: title.into(), charts: vec![chart], tables: vec![table.data()], checks, ..Section::default() }
    }

    fn files(dir: &Path) -> Vec<String> {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir).expect("a directory").flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.path().is_dir() {
                names.extend(files(&entry.path()).into_iter().map(|inner| format!("{name}/{inner}")));
            } else {
                names.push(name);
            }
        }
        names.sort();
        names
    }

    #[test]
    fn an_early_end_keeps_the_drafts_and_the_last_pages() {
        let dir = tempfile::tempdir().expect("a directory");
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).expect("a page");
        fs::write(dir.path().join("paper.md"), "the last whole one").expect("written");
        let mut pages = Figures::new(dir.path(), "paper", "# A paper\n\n{result}\n\nEnd.", 3);
        assert_eq!(pages.path(), None);
        pages.add("1", section("one")).expect("written");
        pages.add("2", section("two")).expect("written");
        assert_eq!(pages.path(), Some(dir.path().join("paper-incomplete.md")));
        drop(pages);
        assert_eq!(read("paper.md"), "the last whole one");
        let left = read("paper-incomplete.md");
        for part in ["**Not complete: 2 of 3 figures.", "[two](paper-incomplete/figure-2.md)"] {
            assert!(left.contains(part), "{part} in {left}");
        }
        assert!(read("paper-incomplete/figure-1.md").contains("(../paper-incomplete.md)"));
        let beside = ["figure-1.csv", "figure-1.md", "figure-2.csv", "figure-2.md", "one.svg", "two.svg"];
        let beside = beside.map(|name| format!("paper-incomplete/{name}"));
        assert_eq!(
            files(dir.path()),
            [&["paper-incomplete.md".to_owned()], &beside[..], &["paper.md".to_owned()]].concat()
        );
    }

    #[test]
    fn whole_pages_replace_the_last_ones() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("paper.md"), "the last whole one").expect("written");
        let mut pages = Figures::new(dir.path(), "paper", "# A paper\n\n{result}\n\nEnd.", 1);
        pages.add("1", section("one")).expect("written");
        let written = pages.finish().expect("written");
        assert_eq!(written[0], dir.path().join("paper.md"));
        let text = fs::read_to_string(&written[0]).expect("a page");
        let row = "| [one](paper/figure-1.md) | 1 of 2 |\n\n";
        let missed = "Missed, required / ours:\n\n- [one](paper/figure-1.md):\n  - delay: < 1 / 1.5 ms, 3; 4\n\nEnd.\n";
        assert!(text.starts_with("# A paper\n\n1 of 2 statements with a requirement are met.\n\n| figure |"), "{text}");
        assert!(text.ends_with(&format!("{row}{missed}")), "{text}");
        let figure = fs::read_to_string(dir.path().join("paper/figure-1.md")).expect("a page");
        assert!(figure.contains("(../paper.md)") && figure.contains("[table](figure-1.csv)"), "{figure}");
        assert_eq!(files(dir.path()), ["paper.md", "paper/figure-1.csv", "paper/figure-1.md", "paper/one.svg"]);
        assert_eq!(pages.counts(), (2, 1));
    }
}
