//! The book hangs together: every page is in its summary, and every link leads somewhere.

use std::path::{Path, PathBuf};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the workspace").join("docs")
}

fn pages(dir: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(dir)
        .expect("readable folder")
        .map(|entry| entry.expect("readable").path())
        .flat_map(|path| if path.is_dir() { pages(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|ext| ext == "md"))
        .collect()
}

/// Targets of inline links that lead to files of the book, without anchors.
fn links(text: &str) -> Vec<String> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let local = targets.filter(|target| !target.contains("://") && !target.starts_with('#') && !target.contains(' '));
    local.map(|target| target.split('#').next().unwrap_or(target).to_owned()).collect()
}

#[test]
fn every_link_leads_to_a_page() {
    for page in pages(&docs()) {
        let text = std::fs::read_to_string(&page).expect("readable page");
        for link in links(&text) {
            let target = page.parent().expect("a page lies in a folder").join(&link);
            assert!(target.exists(), "{}: {link} does not exist", page.display());
        }
    }
}

#[test]
fn the_readme_is_short_and_its_links_lead_somewhere() {
    let root = docs().parent().expect("docs/ lies in the workspace").to_path_buf();
    let text = std::fs::read_to_string(root.join("README.md")).expect("readable page");
    let words = text.split_whitespace().count();
    assert!(words <= 700, "README.md has {words} words: a page of docs/ takes what goes beyond 700");
    for link in links(&text).iter().filter(|link| !link.is_empty()) {
        assert!(root.join(link).exists(), "README.md: {link} does not exist");
    }
}

#[test]
fn every_page_is_in_the_summary() {
    let summary = std::fs::read_to_string(docs().join("SUMMARY.md")).expect("a summary");
    let listed: Vec<PathBuf> = links(&summary).iter().map(|link| docs().join(link)).collect();
    for page in pages(&docs()).into_iter().filter(|page| !page.ends_with("SUMMARY.md")) {
        assert!(listed.contains(&page), "{} is not in docs/SUMMARY.md", page.display());
    }
}
