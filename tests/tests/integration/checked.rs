//! What the header of a module names under *Checked by* is there: files of tests, modules of tests, tests.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the workspace").to_path_buf()
}

/// Every file of a crate's source.
fn sources(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            sources(&entry, files);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            files.push(entry);
        }
    }
}

/// What follows "Checked by:" in a module's header, with the lines that go on.
fn claims(text: &str) -> Option<String> {
    let mut lines = text.lines().skip_while(|line| !(line.starts_with("//!") && line.contains("Checked by:")));
    let (_, first) = lines.next()?.split_once("Checked by:")?;
    let more = lines.take_while(|line| line.starts_with("//!     ")).map(|line| line.trim_start_matches("//!"));
    Some(std::iter::once(first).chain(more).collect::<Vec<_>>().join(" "))
}

/// Paths and names in `claims`, each with the word before it.
fn words(claims: &str) -> Vec<(String, String)> {
    let part = |c: char| c.is_alphanumeric() || "_/.:*'".contains(c);
    let words = claims.split(|c: char| !part(c)).map(|word| word.trim_matches(|c| c == '.' || c == ':').to_owned());
    let words: Vec<String> = std::iter::once(String::new()).chain(words.filter(|word| !word.is_empty())).collect();
    words.windows(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
}

/// True if `path` is a file of the crate that the word before it names ("the agents' tests/parity.rs"), or else of this one.
fn is_file(root: &Path, crates: &Path, file: &Path, before: &str, path: &str) -> bool {
    let owner = crates.parent().expect("crates/").join(before.trim_end_matches('s').trim_end_matches('\''));
    let owners = [owner, crates.parent().expect("crates/").join(before.trim_end_matches('\''))];
    match owners.iter().find(|owner| before.contains('\'') && owner.is_dir()) {
        Some(owner) => owner.join(path).is_file(),
        None => [crates, root, file.parent().expect("a folder")].iter().any(|base| base.join(path).is_file()),
    }
}

/// True if `name`, such as `tests::*`, `wifi::tests::*` or `tests::a_test`, is in `file` or in that module of its crate.
fn is_test(file: &Path, files: &[PathBuf], name: &str) -> bool {
    let mut parts: Vec<&str> = name.split("::").collect();
    let (test, module) = (parts.pop().unwrap_or_default(), parts.pop().unwrap_or_default());
    let of = |place: &Path| match place.file_name().is_some_and(|name| name == "mod.rs") {
        true => place.parent().expect("a folder").to_path_buf(),
        false => place.with_extension(""),
    };
    let named = |place: &&PathBuf| parts.last().map_or(place.as_path() == file, |owner| of(place).ends_with(owner));
    files.iter().filter(named).any(|place| {
        let text = std::fs::read_to_string(place).expect("readable");
        let beside = std::fs::read_to_string(of(place).join(format!("{module}.rs"))).unwrap_or_default();
        let holds = |text: &str| text.contains(&format!("fn {test}("));
        text.contains(&format!("mod {module}")) && (test == "*" || holds(&text) || holds(&beside))
    })
}

#[test]
fn every_path_and_module_under_checked_by_exists() {
    let (root, mut wrong, mut seen) = (root(), Vec::new(), 0);
    for entry in std::fs::read_dir(root.join("crates")).expect("crates/") {
        let (dir, mut files) = (entry.expect("an entry").path(), Vec::new());
        sources(&dir.join("src"), &mut files);
        for file in &files {
            let Some(claims) = claims(&std::fs::read_to_string(file).expect("readable")) else { continue };
            for (before, word) in words(&claims) {
                let good = match &word {
                    path if path.ends_with(".rs") && path.contains('/') => is_file(&root, &dir, file, &before, path),
                    name if name.contains("tests::") => is_test(file, &files, name),
                    name if name.ends_with("::tests") => is_test(file, &files, &format!("{name}::*")),
                    _ => continue,
                };
                seen += 1;
                if !good {
                    wrong.push(format!("{} names {word}", file.strip_prefix(&root).unwrap_or(file).display()));
                }
            }
        }
    }
    wrong.sort();
    assert!(seen > 80, "the headers are not found any more: {seen}");
    assert!(wrong.is_empty(), "under \"Checked by\":\n{}", wrong.join("\n"));
}
