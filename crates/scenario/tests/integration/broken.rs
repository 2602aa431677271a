//! Every broken scenario under `broken/` is refused, with all of its problems and nothing else.
//!
//! The expectation stands on the offending line: `#~ key | part of what is wrong | part of what would be right`, once a
//! problem. `#~@ file:line …` expects it in a file that the scenario names.

use lasthop_scenario::{Error, Kind, Problem, Scenario};
use miette::{GraphicalReportHandler, GraphicalTheme};
use std::path::{Path, PathBuf};

struct Expected {
    file: String,
    line: usize,
    key: String,
    what: String,
    remedy: String,
}

fn broken() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken");
    let entries = std::fs::read_dir(dir).expect("readable").map(|entry| entry.expect("readable").path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|ext| ext == "toml")).collect();
    files.sort();
    files
}

fn problems(path: &Path) -> (Error, Vec<Problem>) {
    let Err(error) = Scenario::load(path) else { panic!("{} loads, and is broken on purpose", path.display()) };
    let problems = error.problems().to_vec();
    (error, problems)
}

fn expectations(path: &Path) -> Vec<Expected> {
    let text = std::fs::read_to_string(path).expect("readable");
    let mut expected = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for note in line.split("#~").skip(1) {
            let own = path.file_name().expect("a file").to_string_lossy().into_owned();
            let (place, note) = match note.strip_prefix("@ ") {
                Some(note) => note.split_once(' ').expect("a place, then the key"),
                None => ("", note),
            };
            let (file, line) = match place.split_once(':') {
                Some((file, line)) => (file.to_owned(), line.parse().expect("a line number")),
                None => (own, number + 1),
            };
            let parts: Vec<&str> = note.split(" | ").map(str::trim).collect();
            let [key, what, remedy] = parts[..] else { panic!("{}: expectation without three parts", path.display()) };
            expected.push(Expected {
                file,
                line,
                key: key.to_owned(),
                what: what.to_owned(),
                remedy: remedy.to_owned(),
            });
        }
    }
    expected
}

fn matches(problem: &Problem, expected: &Expected) -> bool {
    problem.file().ends_with(&expected.file)
        && problem.line() == expected.line
        && problem.key() == expected.key
        && problem.what().contains(&expected.what)
        && problem.remedy().contains(&expected.remedy)
}

#[test]
fn every_problem_is_reported_with_its_line_key_and_remedy() {
    let files = broken();
    assert!(files.len() >= 25, "only {} broken scenarios", files.len());
    let mut failures = String::new();
    for path in files {
        let (error, mut problems) = problems(&path);
        let expected = expectations(&path);
        assert!(!expected.is_empty(), "{} expects nothing", path.display());
        for expected in &expected {
            match problems.iter().position(|problem| matches(problem, expected)) {
                Some(found) => drop(problems.remove(found)),
                None => {
                    let Expected { file, line, key, what, remedy } = expected;
                    failures += &format!("not reported: {file}:{line}: {key} | {what} | {remedy}\n");
                }
            }
        }
        if !problems.is_empty() {
            failures += &format!("beyond what is expected, of\n{}\n\n", error.plain());
            problems.iter().for_each(|problem| failures += &format!("    {}:{problem}\n", problem.line()));
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

#[test]
fn every_sort_of_problem_is_covered() {
    let seen: Vec<Kind> = broken().iter().flat_map(|path| problems(path).1).map(|problem| problem.kind()).collect();
    let all = [
        Kind::Syntax,
        Kind::UnknownKey,
        Kind::Missing,
        Kind::WrongType,
        Kind::Unit,
        Kind::UnknownWord,
        Kind::OutOfRange,
        Kind::Impossible,
        Kind::UnknownName,
        Kind::File,
    ];
    for kind in all {
        assert!(seen.contains(&kind), "no broken scenario has a problem of the sort {kind:?}");
    }
}

#[test]
fn errors_show_the_line_the_mistake_and_the_correction() {
    for path in broken() {
        let (error, problems) = problems(&path);
        let mut report = String::new();
        let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor()).with_width(400);
        handler.render_report(&mut report, &error).expect("rendered");
        for problem in problems {
            let place = format!("{}:{}:{}", problem.file(), problem.line(), problem.column());
            for part in [place.as_str(), problem.what(), problem.remedy()] {
                assert!(report.contains(part), "{}: `{part}` is missing in\n{report}", path.display());
            }
        }
    }
}

/// What a remedy sets in backticks.
fn quoted(remedy: &str) -> Vec<&str> {
    remedy.split('`').skip(1).step_by(2).collect()
}

#[test]
fn every_header_and_every_assignment_in_a_remedy_is_toml() {
    let mut headers = 0;
    for problem in broken().iter().flat_map(|path| problems(path).1) {
        let remedy = problem.remedy();
        for toml in quoted(remedy).iter().filter(|text| text.starts_with('[') || text.contains(" = ")) {
            headers += usize::from(toml.starts_with('['));
            assert!(toml.parse::<toml::Table>().is_ok(), "`{toml}` is not TOML: {problem}; {remedy}");
        }
        let plain: String = remedy.split('`').step_by(2).collect();
        assert!(!plain.replace("[ … ]", "").contains('['), "a header without backticks: {remedy}");
    }
    assert!(headers > 15, "only {headers} headers");
}

#[test]
fn a_file_of_another_kind_is_told_in_a_few_problems() {
    let prose = "some words\n".repeat(50);
    let Err(Error::Invalid { problems, .. }) = Scenario::parse("prose.toml", &prose, Path::new(".")) else {
        panic!("no scenario")
    };
    assert_eq!(problems.len(), 3);
    assert!(problems[2].to_string().contains("48 more"), "{}", problems[2]);
    let Err(Error::Invalid { problems, .. }) = Scenario::parse("prose.toml", "x\ny\nz\n", Path::new(".")) else {
        panic!("no scenario")
    };
    assert!(problems.len() == 3 && problems.iter().all(|problem| problem.to_string().contains("not TOML")));
}

#[test]
fn a_missing_file_says_which() {
    let error = Scenario::load("no/such/scenario.toml").expect_err("there is none");
    assert!(error.plain().contains("no/such/scenario.toml"), "{error}");
    assert!(error.problems().is_empty());
}
