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

/// Targets of inline links to files: the path, which is empty for the page itself, and the anchor, if there is one.
fn targets(text: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let local = targets.filter(|target| !target.contains("://") && !target.contains(' '));
    local.map(|target| target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor))))
}

/// Targets of inline links to other files, without anchors.
fn links(text: &str) -> Vec<String> {
    targets(text).map(|(path, _)| path.to_owned()).filter(|path| !path.is_empty()).collect()
}

/// The anchors of a page: its headings, as mdbook and code hosts make them, and elements with an id.
fn anchors(text: &str) -> Vec<String> {
    let heading = |line: &str| {
        let title = line.strip_prefix('#')?.trim_start_matches('#').trim();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        Some(kept.collect::<String>().to_lowercase().replace(' ', "-"))
    };
    let ids = text.split("<a id=\"").skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned);
    text.lines().filter_map(heading).chain(ids).collect()
}

#[test]
fn every_link_leads_to_a_page() {
    for page in pages(&docs()) {
        let text = std::fs::read_to_string(&page).expect("readable page");
        for (link, anchor) in targets(&text) {
            let target = match link {
                "" => page.clone(),
                link => page.parent().expect("a page lies in a folder").join(link),
            };
            assert!(target.exists(), "{}: {link} does not exist", page.display());
            if let Some(anchor) = anchor.filter(|_| target.extension().is_some_and(|kind| kind == "md")) {
                let there = anchors(&std::fs::read_to_string(&target).expect("readable page"));
                assert!(
                    there.iter().any(|known| known == anchor),
                    "{}: {link} has no #{anchor}: {there:?}",
                    page.display()
                );
            }
        }
    }
}

#[test]
fn the_readme_is_short_and_its_links_lead_somewhere() {
    let root = docs().parent().expect("docs/ lies in the workspace").to_path_buf();
    let text = std::fs::read_to_string(root.join("README.md")).expect("readable page");
    let words = text.split_whitespace().count();
    assert!(words <= 700, "README.md has {words} words: a page of docs/ takes what goes beyond 700");
    for link in links(&text) {
        assert!(root.join(&link).exists(), "README.md: {link} does not exist");
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
