//! A page that grows section by section: what is done is on the disk, whatever ends the run.

use super::{Section, replace};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// A page in the making. It is `NAME-incomplete.md` until it is finished, so that the last whole page stays as it is until then.
#[derive(Debug)]
pub struct Draft {
    preface: String,
    sections: Vec<Section>,
    dir: PathBuf,
    name: String,
    /// Sections that it will have.
    wanted: usize,
    /// The file names of the pictures beside it.
    pictures: Vec<String>,
}

/// What an unfinished page says: so many of so many things.
pub(super) fn warning(done: usize, wanted: usize, things: &str) -> String {
    format!("**Not complete: {done} of {wanted} {things}. Either it is still being made, or its run was ended early.**")
}

impl Draft {
    /// A page of `wanted` sections, to become `NAME.md` in `dir`. Nothing is written yet.
    pub fn new(dir: &Path, name: &str, preface: &str, wanted: usize) -> Draft {
        Draft {
            preface: preface.trim().to_owned(),
            sections: Vec::new(),
            dir: dir.to_owned(),
            name: name.to_owned(),
            wanted,
            pictures: Vec::new(),
        }
    }

    /// Where the page is so far; `None` while it has no section.
    pub fn path(&self) -> Option<PathBuf> {
        (!self.sections.is_empty()).then(|| self.file(&self.incomplete()))
    }

    /// Adds a section, and writes the page with what it has.
    ///
    /// # Errors
    /// What the disk says.
    pub fn add(&mut self, section: Section) -> io::Result<()> {
        let incomplete = self.incomplete();
        let beside = self.dir.join(&incomplete);
        fs::create_dir_all(&beside)?;
        for (file, svg) in section.svgs() {
            replace(&beside.join(&file), &svg)?;
            self.pictures.push(file);
        }
        self.sections.push(section);
        let warning = warning(self.sections.len(), self.wanted, "sections");
        let text = self.markdown(&format!("{}\n\n{warning}", self.preface), &incomplete);
        replace(&self.file(&incomplete), &text)
    }

    /// Puts the page in its place, and says where it and its pictures are.
    ///
    /// # Errors
    /// What the disk says. The text of the page is still there as it was, not complete; some pictures may be in their places.
    pub fn finish(self) -> io::Result<Vec<PathBuf>> {
        let incomplete = self.incomplete();
        let (from, to) = (self.dir.join(&incomplete), self.dir.join(&self.name));
        fs::create_dir_all(&to)?;
        let path = self.file(&self.name);
        let mut written = vec![path.clone()];
        for picture in &self.pictures {
            fs::rename(from.join(picture), to.join(picture))?;
            written.push(to.join(picture));
        }
        replace(&path, &self.markdown(&self.preface, &self.name))?;
        // What is left of it has done its duty. Pictures of an earlier run that was ended early are not ours to remove.
        let _ = fs::remove_file(self.file(&incomplete));
        let _ = fs::remove_dir(&from);
        Ok(written)
    }

    /// The page with its pictures beside it under `pictures`.
    fn markdown(&self, preface: &str, pictures: &str) -> String {
        let sections = self.sections.iter().map(|section| format!("\n\n{}", section.part(pictures)));
        format!("{preface}{}\n", sections.collect::<String>())
    }

    fn incomplete(&self) -> String {
        format!("{}-incomplete", self.name)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}.md"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Chart;
    use super::*;

    fn section(title: &str) -> Section {
        let chart = Chart::over_time(title, title, "value", Vec::new());
        Section { title: title.into(), charts: vec![chart], ..Section::default() }
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
    fn an_early_end_keeps_the_draft_and_the_last_page() {
        let dir = tempfile::tempdir().expect("a directory");
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).expect("a page");
        fs::write(dir.path().join("page.md"), "the last whole one").expect("written");
        let mut draft = Draft::new(dir.path(), "page", "# A page", 3);
        assert_eq!(draft.path(), None);
        draft.add(section("one")).expect("written");
        draft.add(section("two")).expect("written");
        assert_eq!(draft.path(), Some(dir.path().join("page-incomplete.md")));
        drop(draft);
        assert_eq!(read("page.md"), "the last whole one");
        let left = read("page-incomplete.md");
        for part in ["**Not complete: 2 of 3 sections.", "## one", "## two", "(page-incomplete/two.svg)"] {
            assert!(left.contains(part), "{part} in {left}");
        }
        let pictures = ["page-incomplete/one.svg", "page-incomplete/two.svg"];
        assert_eq!(files(dir.path()), ["page-incomplete.md", pictures[0], pictures[1], "page.md"]);
    }

    #[test]
    fn a_whole_page_replaces_the_last_one() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("page.md"), "the last whole one").expect("written");
        let mut draft = Draft::new(dir.path(), "page", "# A page", 2);
        for title in ["one", "two"] {
            draft.add(section(title)).expect("written");
        }
        let written = draft.finish().expect("written");
        let place = |name: &str| dir.path().join(name);
        assert_eq!(written, [place("page.md"), place("page/one.svg"), place("page/two.svg")]);
        let text = fs::read_to_string(&written[0]).expect("a page");
        assert!(text.starts_with("# A page\n\n## one\n") && text.contains("(page/two.svg)"), "{text}");
        assert!(!text.contains("Not complete"), "{text}");
        assert_eq!(files(dir.path()), ["page.md", "page/one.svg", "page/two.svg"]);
    }
}
