//! The rules of language of code and documentation that can be counted. Most readers are network engineers, and most
//! of them are not native speakers of English.
//!
//! | rule | counted |
//! | --- | --- |
//! | who | lines of comment with who, whom or whose: words for people, but no list can tell people from things |
//! | names | names of functions with 60 letters or more |
//! | foreign | citations of what is not in the repository: see [`foreign`] |
//! | pages | pages longer than their limit, and the words of `docs/` |
//! | terms | terms that the glossary defines twice |
//! | old | files, modules, types and public functions under a name that has been given up |
//! | lines | lines of prose longer than 100 columns: not tables, code or the targets of links |
//!
//! `tests/language.toml` holds a ceiling for each rule. Ceilings only go down: a count below its ceiling fails too,
//! until the ceiling is lowered. What the rules do not see: block comments of Rust, text in the assets of reports,
//! and scenarios (but for what they cite).

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Names of functions are shorter.
const LONGEST_NAME: usize = 60;
/// Lines of prose end by this column.
const WIDTH: usize = 100;
/// All pages of `docs/` together, in thousands of words. A ceiling need not go below it.
const THOUSANDS: usize = 90;
/// How many findings of a rule are printed.
const SHOWN: usize = 20;

/// A file below the root of the repository.
struct File {
    path: String,
    text: String,
}

/// Something that a rule counts.
#[derive(Debug, PartialEq)]
struct Finding {
    path: String,
    line: usize,
    what: String,
    right: String,
}

impl Finding {
    fn new(file: &File, line: usize, what: impl Into<String>, right: impl Into<String>) -> Finding {
        Finding { path: file.path.clone(), line, what: what.into(), right: right.into() }
    }
}

// The rules.

#[test]
fn comments_say_who_of_people_only() {
    hold("who", tree().iter().flat_map(who).collect());
}

#[test]
fn names_of_functions_are_short() {
    hold("names", tree().iter().flat_map(long_names).collect());
}

#[test]
fn citations_are_of_what_is_here() {
    let here = |path: &str| root().join(path).is_file();
    hold("foreign", tree().iter().flat_map(|file| foreign(file, &here)).collect());
}

#[test]
fn pages_keep_their_limits() {
    hold("pages", pages().flat_map(|page| long_page(page, &limits())).collect());
    for (path, limit) in &limits().own {
        let page = pages().find(|page| page.path == *path);
        let page = page.unwrap_or_else(|| panic!("tests/language.toml has a limit for {path}, which is not there"));
        // A tenth of slack: a sentence less is no reason to touch the limit.
        let words = words(&page.text);
        let near = words.next_multiple_of(100);
        assert!(words + words / 10 + 100 > *limit, "{path} has {words} words: lower its limit to {near}");
    }
}

#[test]
fn the_book_is_short() {
    let all: usize = pages().filter(|page| page.path.starts_with("docs/")).map(|page| words(&page.text)).sum();
    let (thousands, ceiling) = (all.div_ceil(1000).max(THOUSANDS), ceiling("thousands_of_words"));
    verdict(thousands, ceiling).unwrap_or_else(|why| panic!("docs/ has {all} words: {why}"));
}

#[test]
fn the_glossary_defines_each_term_once() {
    let glossary = tree().iter().find(|file| file.path == "docs/glossary.md").expect("a glossary");
    hold("terms", terms_twice(glossary));
}

#[test]
fn old_names_are_gone() {
    let old = old_names(&settings());
    hold("old", tree().iter().flat_map(|file| old_names_in(file, &old)).collect());
}

#[test]
fn lines_of_prose_are_short() {
    hold("lines", pages().flat_map(long_lines).collect());
}

/// What was reached, which no later change of the settings may give up.
const REACHED: [(&str, usize); 7] = [
    ("who", 100),
    ("names", 0),
    ("foreign", 0),
    ("pages", 0),
    ("thousands_of_words", THOUSANDS),
    ("terms", 0),
    ("old", 0),
];
/// Names that had been given up then.
const OLD_NAMES: usize = 48;

#[test]
fn ceilings_stay_below_what_was_reached() {
    for (rule, reached) in REACHED {
        assert!(ceiling(rule) <= reached, "{rule}: the ceiling is {}, and {reached} was reached", ceiling(rule));
    }
    let old = old_names(&settings()).len();
    assert!(old >= OLD_NAMES, "{old} rows of old names, and there were {OLD_NAMES}");
}

// How each rule counts.

/// Lines of comment with who, whom or whose.
fn who(file: &File) -> Vec<Finding> {
    if file.path.ends_with(".toml") {
        return Vec::new();
    }
    let right = "name the thing: \"the station that …\", \"its …\"";
    let lines =
        comments(file).into_iter().filter(|(_, comment)| ["who", "whom", "whose"].iter().any(|w| has(comment, w)));
    lines.map(|(line, comment)| Finding::new(file, line, comment, right)).collect()
}

/// Names of functions that are too long.
fn long_names(file: &File) -> Vec<Finding> {
    let names = code(file).filter_map(|(line, text)| Some((line, defined(text, "fn")?)));
    let long = names.filter(|(_, name)| name.chars().count() >= LONGEST_NAME);
    let right = |name: &str| format!("{} letters: what must hold, in under {LONGEST_NAME}", name.len());
    long.map(|(line, name)| Finding::new(file, line, format!("fn {name}"), right(name))).collect()
}

/// Citations of what a reader of the repository does not have:
///
/// - the folders beside it. Tests read reference data from `../shared/reference` unless `LASTHOP_REFERENCE` says
///   otherwise: that path in code is no citation, nor is the sentence that tells of the variable (within a line of
///   its name);
/// - issues, and readings of papers that are not in the repository, also in strings: `reproduce` writes them into
///   pages;
/// - a Markdown file in a comment that is found neither from the root, nor from the crate, nor beside the file;
/// - a section mark such as "A.5" without the name of a standard on its line: no text in the repository has such
///   sections.
fn foreign(file: &File, here: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    let page = file.path.ends_with(".md");
    let lines: Vec<&str> = file.text.lines().collect();
    let mut cites: Vec<Option<String>> = lines.iter().map(|_| None).collect();
    for (index, line) in lines.iter().enumerate() {
        let path = without_comment(&file.path, line).replace("shared/reference", "");
        let word = ["issue", "issues"].into_iter().find(|word| has(line, word));
        cites[index] = word.or((!page && path.contains("shared/")).then_some("shared/")).map(str::to_owned);
    }
    let read = match page {
        true => lines.iter().enumerate().map(|(index, line)| (index + 1, *line)).collect(),
        false => comments(file),
    };
    for (line, text) in read {
        let near = &lines[line.saturating_sub(2)..lines.len().min(line + 1)];
        let told = near.iter().any(|line| line.contains("LASTHOP_REFERENCE"));
        let text = if told { text.replace("../shared/reference", "") } else { text.to_owned() };
        let unknown = pages_named(&text).find(|name| !page && !found_from(&file.path, name, here));
        let cited = beside(&text).or(unknown).or_else(|| section(&text)).map(str::to_owned);
        cites[line - 1] = cites[line - 1].take().or(cited);
    }
    let right = "cite docs/references.md or a page of docs/, name the requirement, or say it";
    let found = cites.into_iter().enumerate().filter_map(|(index, what)| Some((index + 1, what?)));
    found.map(|(line, what)| Finding::new(file, line, format!("cites {what}"), right)).collect()
}

/// The page, if it is longer than it may be.
fn long_page(page: &File, limits: &Limits) -> Option<Finding> {
    let words = words(&page.text);
    let limit = limits.of(&page.path);
    let what = format!("{words} words");
    match limit {
        None => Some(Finding::new(page, 1, what, "a limit in tests/language.toml")),
        Some(limit) => (words > limit).then(|| Finding::new(page, 1, what, format!("at most {limit}"))),
    }
}

/// Terms in the first column of the glossary's tables that stand there before.
fn terms_twice(glossary: &File) -> Vec<Finding> {
    let mut seen = Vec::new();
    let mut twice = Vec::new();
    for (index, line) in glossary.text.lines().enumerate() {
        let Some(cell) = line.strip_prefix('|').and_then(|row| row.split('|').next()) else { continue };
        let terms = cell.split(',').map(|term| term.trim().trim_matches('`').to_lowercase());
        for term in terms.filter(|term| term != "term" && !term.trim_matches(['-', ':']).is_empty()) {
            match seen.contains(&term) {
                true => twice.push(Finding::new(glossary, index + 1, term, "one line for each term")),
                false => seen.push(term),
            }
        }
    }
    twice
}

/// A name that is no longer used below some folders.
struct OldName {
    name: String,
    say: String,
    under: Vec<String>,
    /// What must not have it, or anything if it is empty: a file, `mod`, `struct`, `variant`, `pub fn`.
    of: Vec<String>,
}

/// Files, modules, types, variants and public functions of `file` that have an old name.
fn old_names_in(file: &File, old: &[OldName]) -> Vec<Finding> {
    let old: Vec<&OldName> = old.iter().filter(|old| old.under.iter().any(|dir| file.path.starts_with(dir))).collect();
    let mut found = Vec::new();
    let mut look = |line: usize, kind: &str, name: &str| {
        let means = |old: &&&OldName| old.name == name && (old.of.is_empty() || old.of.iter().any(|of| of == kind));
        let right = old.iter().find(means).map(|old| format!("say {}", old.say));
        found.extend(right.map(|right| Finding::new(file, line, format!("{kind} {name}"), right)));
    };
    let stem = Path::new(&file.path).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    look(1, "file", &stem.unwrap_or_default());
    // Indentation of the enum that is being read.
    let mut inside: Option<usize> = None;
    for (line, text) in code(file) {
        let indent = text.len() - text.trim_start().len();
        let kinds = ["mod", "struct", "enum", "trait", "type", "union"];
        let named = kinds.iter().find_map(|kind| Some((*kind, defined(text, kind)?)));
        let public = text.trim_start().starts_with("pub").then(|| Some(("pub fn", defined(text, "fn")?))).flatten();
        let variant = inside.filter(|of| indent == of + 4).and_then(|_| Some(("variant", variant(text)?)));
        for (kind, name) in [named, public, variant].into_iter().flatten() {
            look(line, kind, name);
        }
        if defined(text, "enum").is_some() && text.trim_end().ends_with('{') {
            inside = Some(indent);
        } else if inside == Some(indent) && text.trim() == "}" {
            inside = None;
        }
    }
    found
}

/// Lines of prose that are too long. A line that four spaces begin is code.
fn long_lines(page: &File) -> Vec<Finding> {
    let mut fenced = false;
    let mut long = Vec::new();
    for (index, line) in page.text.lines().enumerate() {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        let prose = !fenced && !fence && !["|", "    ", "![", "<"].iter().any(|start| line.starts_with(start));
        let columns = without_targets(line).chars().count();
        if prose && columns > WIDTH {
            long.push(Finding::new(page, index + 1, format!("{columns} columns"), format!("at most {WIDTH}")));
        }
    }
    long
}

// Reading.

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the workspace").to_path_buf()
}

/// Every file that a rule reads.
fn tree() -> &'static [File] {
    static TREE: OnceLock<Vec<File>> = OnceLock::new();
    TREE.get_or_init(|| {
        let mut files = Vec::new();
        for place in ["crates", "tests", "fuzz", "bpf", "bench", "scripts", "scenarios", "systemd", "docs", ".ci"] {
            gather(&root().join(place), &mut files);
        }
        for page in ["README.md", "CHANGELOG.md", "Makefile", "Cargo.toml"] {
            read(&root().join(page), &mut files);
        }
        // Its examples of what is wrong are none.
        files.retain(|file| !file.path.ends_with("/language.rs") && file.path != "tests/language.toml");
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files
    })
}

fn gather(dir: &Path, files: &mut Vec<File>) {
    for entry in std::fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("readable").path()) {
        let name = entry.file_name().expect("named").to_string_lossy().into_owned();
        if !entry.is_dir() {
            read(&entry, files);
        } else if !["target", "seeds", "corpus", "artifacts"].contains(&name.as_str()) {
            gather(&entry, files);
        }
    }
}

fn read(path: &Path, files: &mut Vec<File>) {
    let path_here = path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned();
    let script = ["scripts/", ".ci/"].iter().any(|dir| path_here.starts_with(dir)) || path_here == "Makefile";
    let kinds = ["rs", "c", "h", "md", "toml", "service"];
    if script || path.extension().is_some_and(|kind| kinds.iter().any(|known| kind == *known)) {
        files.push(File { path: path_here, text: std::fs::read_to_string(path).expect("text") });
    }
}

/// The pages that people read: the book, and the README.
fn pages() -> impl Iterator<Item = &'static File> {
    let page =
        |file: &&File| file.path.ends_with(".md") && (file.path.starts_with("docs/") || file.path == "README.md");
    tree().iter().filter(page)
}

/// What begins a comment that lasts to the end of the line.
fn mark(path: &str) -> Option<&'static str> {
    match Path::new(path).extension().and_then(|kind| kind.to_str()) {
        Some("rs" | "c" | "h") => Some("//"),
        Some("md") => None,
        _ => Some("#"),
    }
}

/// Where in `line` a comment begins, by its mark: not in a string.
fn comment_begin(line: &str, mark: &str) -> Option<usize> {
    let bytes = line.as_bytes();
    let (mut at, mut quoted) = (0, false);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            // The character itself.
            b'\'' if bytes[at..].starts_with(b"'\"'") => at += 2,
            b'"' => quoted = !quoted,
            // In scripts, `$#` and `a#b` are none.
            _ if !quoted
                && bytes[at..].starts_with(mark.as_bytes())
                && (mark != "#" || at == 0 || bytes[at - 1].is_ascii_whitespace()) =>
            {
                return Some(at);
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Lines of comment, counted from 1.
fn comments(file: &File) -> Vec<(usize, &str)> {
    let Some(mark) = mark(&file.path) else { return Vec::new() };
    let blocks = mark == "//" && !file.path.ends_with(".rs");
    let mut block = false;
    let mut found = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let opens = blocks.then(|| comment_begin(line, "/*")).flatten().filter(|_| !block);
        let comment = match (block, opens) {
            (true, _) => Some(line.split("*/").next().unwrap_or(line)),
            (false, Some(at)) => Some(&line[at..]),
            (false, None) => comment_begin(line, mark).map(|at| &line[at..]),
        };
        block = match (block, opens) {
            (true, _) => !line.contains("*/"),
            (false, Some(at)) => !line[at..].contains("*/"),
            (false, None) => false,
        };
        found.extend(comment.map(|text| (index + 1, text.trim())));
    }
    found
}

/// A line of a file, up to the comment at its end.
fn without_comment<'a>(path: &str, line: &'a str) -> &'a str {
    mark(path).and_then(|mark| comment_begin(line, mark)).map_or(line, |at| &line[..at])
}

/// Lines of Rust, counted from 1, without their comments.
fn code(file: &File) -> impl Iterator<Item = (usize, &str)> {
    let rust = file.path.ends_with(".rs").then(|| file.text.lines().enumerate());
    rust.into_iter().flatten().map(|(index, line)| (index + 1, without_comment(&file.path, line)))
}

/// True if `text` has this word, whatever the case. An identifier is one word.
fn has(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|part| part.eq_ignore_ascii_case(word))
}

/// The identifier that follows `keyword` in a line of code.
fn defined<'a>(code: &'a str, keyword: &str) -> Option<&'a str> {
    let starts = code.match_indices(keyword).map(|(at, _)| at);
    let alone = |at: &usize| *at == 0 || !code[..*at].ends_with(|c: char| c.is_alphanumeric() || "_\"'#".contains(c));
    let rest = starts.filter(alone).find_map(|at| code[at + keyword.len()..].strip_prefix(' '))?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    (end > 0).then(|| &rest[..end])
}

/// The variant that a line within an enum begins.
fn variant(code: &str) -> Option<&str> {
    let code = code.trim();
    let end = code.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(code.len());
    let begins =
        code.starts_with(char::is_uppercase) && [",", "(", " {", " ="].iter().any(|s| code[end..].starts_with(s));
    begins.then(|| &code[..end])
}

/// Markdown files that `text` names.
fn pages_named(text: &str) -> impl Iterator<Item = &str> {
    let words =
        text.split(|c: char| !c.is_alphanumeric() && !"_-./".contains(c)).map(|word| word.trim_end_matches('.'));
    // What a program writes has no folder.
    let written = ["page.md", "page-incomplete.md", "cell.md", "NAME.md", "NAME-incomplete.md"];
    words.filter(move |word| word.len() > 3 && word.ends_with(".md") && !written.contains(word))
}

/// True if `name` in the comments of the file at `path` is found from a folder that holds the file: from the root,
/// its crate, or beside it.
fn found_from(path: &str, name: &str, here: &dyn Fn(&str) -> bool) -> bool {
    let folders = Path::new(path).ancestors().skip(1);
    folders.map(|folder| folder.join(name)).any(|path| here(&path.to_string_lossy()))
}

/// The folder of the machine on which the project is developed: no path in the tree leads through it.
const DEVELOPERS: &str = "work";

/// A folder beside the repository, or a reading of a paper, that `text` names.
fn beside(text: &str) -> Option<&'static str> {
    let names = ["shared/", "second reading", "second-reading", "third reading", "third-reading"];
    let text = text.to_lowercase();
    let through = text.contains(&format!("/{DEVELOPERS}/"));
    through.then_some(DEVELOPERS).or_else(|| names.into_iter().find(|name| text.contains(name)))
}

/// A mark like `A.5` in `text`, a letter up to E, a dot and a number, unless a standard is named.
fn section(text: &str) -> Option<&str> {
    let lower = text.to_lowercase();
    let standard = ["rfc", "appendix", "annex", "802.11", " ts ", "itu"].iter().any(|name| lower.contains(name));
    let is_mark = |word: &&str| {
        let number = word.strip_prefix(|c| ('A'..='E').contains(&c)).and_then(|rest| rest.strip_prefix('.'));
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '.').map(|word| word.trim_end_matches('.'));
    words.find(is_mark).filter(|_| !standard)
}

/// A line of Markdown without the targets of its links, and without addresses.
fn without_targets(line: &str) -> String {
    let mut rest = line;
    let mut text = String::new();
    while let Some((before, after)) = rest.split_once("](") {
        text.push_str(before);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    text.push_str(rest);
    let words = text.split(' ').filter(|word| !word.contains("://"));
    words.collect::<Vec<_>>().join(" ")
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

// Ceilings.

fn settings() -> toml::Table {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("language.toml");
    std::fs::read_to_string(path).expect("the ceilings").parse().expect("valid TOML")
}

fn ceiling(rule: &str) -> usize {
    let ceiling = settings()["ceilings"].get(rule).and_then(toml::Value::as_integer);
    ceiling.and_then(|ceiling| usize::try_from(ceiling).ok()).unwrap_or_else(|| panic!("no ceiling for {rule}"))
}

/// How many words each page may have.
struct Limits {
    /// By kind of page, the first that fits: a path, in which `*` stands for anything.
    kinds: Vec<(String, usize)>,
    /// By path. These only go down.
    own: Vec<(String, usize)>,
}

impl Limits {
    fn of(&self, path: &str) -> Option<usize> {
        let own = self.own.iter().find(|(page, _)| page == path);
        own.or_else(|| self.kinds.iter().find(|(kind, _)| fits(kind, path))).map(|(_, limit)| *limit)
    }
}

/// True if `path` is of this kind.
fn fits(kind: &str, path: &str) -> bool {
    match kind.split_once('*') {
        None => kind == path,
        Some((before, after)) => path.strip_prefix(before).is_some_and(|rest| {
            let ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
            ends.into_iter().any(|at| fits(after, &rest[at..]))
        }),
    }
}

fn limits() -> Limits {
    let settings = settings();
    let number =
        |value: &toml::Value| value.as_integer().and_then(|n| usize::try_from(n).ok()).expect("a number of words");
    let kinds = settings["kinds"].as_array().expect("a list of kinds");
    let kind = |kind: &toml::Value| (kind["page"].as_str().expect("a path").to_owned(), number(&kind["words"]));
    let own = settings["pages"].as_table().expect("a table of pages");
    Limits {
        kinds: kinds.iter().map(kind).collect(),
        own: own.iter().map(|(page, limit)| (page.clone(), number(limit))).collect(),
    }
}

fn old_names(settings: &toml::Table) -> Vec<OldName> {
    let rows = settings["old"].as_array().expect("a list of names");
    let words = |list: &toml::Value| -> Vec<String> {
        list.as_array().into_iter().flatten().filter_map(|word| word.as_str().map(str::to_owned)).collect()
    };
    let row = |row: &toml::Value| OldName {
        name: row["name"].as_str().expect("a name").to_owned(),
        say: row["say"].as_str().expect("what to say").to_owned(),
        under: words(&row["under"]),
        of: row.get("of").map(words).unwrap_or_default(),
    };
    rows.iter().map(row).collect()
}

/// Compares a count to its ceiling.
fn verdict(count: usize, ceiling: usize) -> Result<(), String> {
    match count.cmp(&ceiling) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Less => {
            Err(format!("{count} of {ceiling}: lower the ceiling to {count} (tests/language.toml)"))
        }
        std::cmp::Ordering::Greater => Err(format!("{count}, and at most {ceiling} may be (tests/language.toml)")),
    }
}

/// Fails unless a rule's findings are as many as its ceiling says.
fn hold(rule: &str, found: Vec<Finding>) {
    let mut shown = String::new();
    for Finding { path, line, what, right } in found.iter().take(SHOWN) {
        writeln!(shown, "{path}:{line}: {what}: {right}").expect("written");
    }
    if found.len() > SHOWN {
        writeln!(shown, "and {} more", found.len() - SHOWN).expect("written");
    }
    verdict(found.len(), ceiling(rule)).unwrap_or_else(|why| panic!("{rule}: {why}\n{shown}"));
}

// The counters themselves.

fn file(path: &str, text: &str) -> File {
    File { path: path.to_owned(), text: text.to_owned() }
}

/// The lines of findings.
fn lines(found: &[Finding]) -> Vec<usize> {
    found.iter().map(|finding| finding.line).collect()
}

#[test]
fn who_is_found_in_every_kind_of_comment_and_nowhere_else() {
    let rust =
        "//! Who\n/// tells whom.\nlet a = \"// who\"; // whose\nlet who = '\"'; // which\nfn who_is() {} // who_is\n";
    assert_eq!(lines(&who(&file("a.rs", rust))), [1, 2, 3]);
    let c = "/* a\n * who\n */ int who;\nint a; /* whom */ int who;\n// whose\n";
    assert_eq!(lines(&who(&file("a.bpf.c", c))), [2, 4, 5]);
    assert_eq!(lines(&who(&file("scripts/a", "#!/bin/sh\n# who\necho who $# \"# who\"\n"))), [2]);
    assert_eq!(lines(&who(&file("a.md", "who"))), [0_usize; 0]);
}

#[test]
fn a_name_of_sixty_letters_is_too_long() {
    let named = |letters: usize| format!("    async fn {}() {{", "a".repeat(letters));
    assert!(long_names(&file("a.rs", &named(59))).is_empty());
    assert_eq!(lines(&long_names(&file("a.rs", &format!("\n{}", named(60))))), [2]);
    assert!(long_names(&file("a.rs", &format!("// {}", named(60)))).is_empty());
}

#[test]
fn foreign_citations_are_found_and_paths_of_data_are_none() {
    let here = |path: &str| path == "docs/atp.md" || path == "crates/wire/tests/README.md";
    let found = |path: &str, text: &str| foreign(&file(path, text), &here).len();
    let code = "crates/wire/tests/a.rs";
    for wrong in [
        "// see ../shared/reference/a.txt",
        "//! the second reading",
        "// Third-reading, 4",
        &format!("// in /{DEVELOPERS}/notes"),
        "// The issue's bound",
        "let required = \"0.9 (issue)\";",
        "open(\"../shared/notes\")",
        "//! Source: atp.md",
        "//! Source: rule A.7.",
    ] {
        assert_eq!(found(code, wrong), 1, "{wrong}");
    }
    for right in [
        "join(\"../../../shared/reference\")",
        "/// `LASTHOP_REFERENCE`, or else\n/// `../shared/reference`",
        "// docs/atp.md, and README.md",
        "// RFC 9001, appendix B.1",
        "// 10.0.1.1, page.md, a reissue",
    ] {
        assert_eq!(found(code, right), 0, "{right}");
    }
    assert_eq!(found("docs/a.md", "| `issue` |\nby C.2\nsee b.md"), 2);
}

#[test]
fn a_page_is_held_to_its_own_limit_or_its_kinds() {
    let kinds = vec![("docs/a/*-lab.md".to_owned(), 2), ("docs/a/*.md".to_owned(), 3)];
    let limits = Limits { kinds, own: vec![("docs/b.md".to_owned(), 1)] };
    let long = |path: &str| long_page(&file(path, "three words\nhere"), &limits).is_some();
    assert!(long("docs/a/x-lab.md") && !long("docs/a/x.md") && long("docs/b.md"));
    assert!(long("docs/c.md"), "without a limit");
}

#[test]
fn a_term_in_two_rows_is_found() {
    let text = "# Glossary\n| term | meaning |\n| --- | --- |\n| report, account | A. |\n\n| term | meaning |\n|---|---|\n| `Account` | B. |\n";
    assert_eq!(lines(&terms_twice(&file("docs/glossary.md", text))), [8]);
}

#[test]
fn old_names_are_found_where_they_are_defined() {
    let under = || vec!["crates/a/".to_owned()];
    let name = |name: &str, of: &[&str]| OldName {
        name: name.to_owned(),
        say: "new".to_owned(),
        under: under(),
        of: of.iter().map(|of| (*of).to_owned()).collect(),
    };
    let old = [name("Cast", &[]), name("reach", &["file", "mod", "pub fn"]), name("Told", &["variant"])];
    let text = "mod reach;\npub(crate) struct Cast;\nlet reach = Cast::new();\nfn reach() {}\n    pub fn reach() {}\nenum A {\n    Told,\n    B(Told),\n}\n    Told,\n// mod reach\n";
    assert_eq!(lines(&old_names_in(&file("crates/a/src/b.rs", text), &old)), [1, 2, 5, 7]);
    assert_eq!(lines(&old_names_in(&file("crates/a/src/reach.rs", ""), &old)), [1]);
    assert!(old_names_in(&file("crates/b/src/reach.rs", text), &old).is_empty());
}

#[test]
fn long_lines_are_those_of_prose() {
    let long = "a ".repeat(51);
    let text = format!(
        "{long}\n| {long}\n    {long}\n```\n{long}\n```\n[b]({long})\n{long}[b](c)\nhttps://{}\n",
        "a".repeat(99)
    );
    assert_eq!(lines(&long_lines(&file("docs/a.md", &text))), [1, 8]);
}

#[test]
fn a_count_beside_its_ceiling_fails_either_way() {
    assert_eq!(verdict(3, 3), Ok(()));
    assert!(verdict(4, 3).is_err_and(|why| why.contains("at most 3")));
    assert!(verdict(2, 3).is_err_and(|why| why.contains("lower the ceiling to 2")));
}

#[test]
fn every_name_in_the_list_of_old_ones_has_a_folder_that_exists() {
    for old in old_names(&settings()) {
        assert!(!old.under.is_empty(), "{} is old nowhere", old.name);
        for dir in &old.under {
            assert!(root().join(dir).is_dir(), "{}: {dir} is not there", old.name);
        }
    }
}
