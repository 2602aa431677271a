//! Whatever the report writes, docs/reference/report.md explains: figures, fields of both JSON files, series, columns.

use lasthop_report::{
    Direction, Figure, Group, Key, Lateness, Recorder, Regulated, Run, RunInfo, RunStatus, SeriesKind, StreamInfo,
    Summary, Window, World, write_packets, write_series,
};
use lasthop_signals::Node;
use lasthop_units::{Bytes, Time};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/report.md")
}

fn page() -> String {
    let path = path();
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The page with what stands between the marks `name` replaced.
fn with(page: &str, name: &str, table: &str) -> String {
    let [begin, end] = ["begin", "end"].map(|mark| format!("<!-- {mark} {name} -->\n"));
    let (before, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("the page has no `{}`", begin.trim()));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("the page has no `{}`", end.trim()));
    [before, &begin, table, &end, after].concat()
}

fn figures(group: Group) -> String {
    let of_group = Key::ALL.into_iter().filter(|key| key.column().group == group);
    of_group.map(|key| format!("- `{}`: {}\n", key.name(), key.meaning())).collect()
}

fn series() -> String {
    let row = |kind: SeriesKind| {
        let table = kind.series();
        format!("| `{}` | {} | {} | {} |\n", table.name, table.unit, table.of, kind.meaning())
    };
    let head = "| series | unit | of | what it shows |\n|---|---|---|---|\n".to_owned();
    std::iter::once(head).chain(SeriesKind::ALL.map(row)).collect()
}

/// `LASTHOP_BLESS=1` writes the page's tables.
#[test]
fn the_tables_of_figures_and_series_are_up_to_date() {
    let committed = page();
    let wanted = with(&committed, "figures of what is served", &figures(Group::Served));
    let wanted = with(&wanted, "figures of cost", &figures(Group::Cost));
    let wanted = with(&wanted, "series", &series());
    if std::env::var_os("LASTHOP_BLESS").is_some() {
        std::fs::write(path(), &wanted).expect("writable");
    }
    assert!(page() == wanted, "docs/reference/report.md: run LASTHOP_BLESS=1 cargo test -p lasthop-report");
}

/// A run with everything that a report can say of one, and one figure of each kind.
fn everything() -> (Vec<Run>, RunInfo) {
    let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
    let run = |seed: u64| {
        let mut recorder = Recorder::new(Window { warm_up: at(0), end: at(100) }, [(Node(1), "desk".to_owned())]);
        recorder.keep_packets();
        recorder.set_streams(vec![StreamInfo {
            name: "bulk server to desk".into(),
            kind: "bulk".into(),
            from: "server".into(),
            to: "desk".into(),
            direction: Direction::Down,
            station: Node(1),
        }]);
        recorder.hop_delivery(at(20 + seed), at(10), Node(1), Bytes::new(1500));
        // A note, for a node that nobody knows.
        recorder.hop_delivery(at(20), at(10), Node(7), Bytes::new(1500));
        let mut record = recorder.finish();
        record.figures.insert(Key::FetchP95, Figure::at_least(9.0));
        Run { law: "cubic".into(), seed, record }
    };
    let regulated = Regulated {
        interval_ms: Some(1.0),
        interval_aim_ms: Some(1.0),
        frame_interval_ms: Some(1.0),
        aggregation_packets: Some(1.0),
        target_packets: Some(1.0),
        round_overhead_ms: Some(1.0),
        rate_mbit_s: Some(1.0),
        backlog_over_bound: Some(1.0),
        looks_over_bound: Some(1.0),
        pacing_error_us_p99: Some(1.0),
        ..Regulated::default()
    };
    let status = RunStatus {
        lateness: [("delivery".to_owned(), Lateness::default())].into(),
        regulated: vec![regulated],
        repeated: 1,
        ..RunStatus::default()
    };
    (vec![run(1), run(2)], RunInfo { git_revision: Some("1".into()), runs: vec![status], ..RunInfo::default() })
}

/// The names of all fields in `value`, but not those that are data: laws, stations, figures, kinds of events.
fn fields(value: &Value, data: &[&str], into: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => object.iter().for_each(|(name, value)| {
            if !data.contains(&name.as_str()) {
                into.insert(name.clone());
            }
            fields(value, data, into);
        }),
        Value::Array(values) => values.iter().for_each(|value| fields(value, data, into)),
        _ => {}
    }
}

#[test]
fn every_field_of_both_json_files_is_named() {
    let (page, (runs, info)) = (page(), everything());
    let result = Summary::of(World::Lab, "all", &["cubic".to_owned()], &runs).to_json();
    let mut data: Vec<&str> = Key::ALL.iter().map(|key| key.name()).collect();
    data.extend(["cubic", "desk", "delivery", "bulk server to desk"]);
    let mut named = BTreeSet::new();
    for text in [result, info.to_json()] {
        fields(&serde_json::from_str(&text).expect("JSON"), &data, &mut named);
    }
    // What makes the collection worth something: fields that are only there if there is something to say.
    for rare in
        ["at_least", "absent", "notes", "pacing_error_us_p99", "git_revision", "reasons", "direction", "repeated"]
    {
        assert!(named.contains(rare), "{rare} is not among {named:?}");
    }
    for name in &named {
        assert!(page.contains(&format!("`{name}`")), "the field `{name}` is not explained");
    }
}

#[test]
fn every_column_of_both_tables_is_named() {
    let (page, (runs, _)) = (page(), everything());
    let columns = |write: &dyn Fn(&mut (dyn std::io::Write + Send)) -> std::io::Result<()>| {
        let mut file = tempfile::tempfile().expect("a file");
        write(&mut file).expect("written");
        let reader = parquet::file::serialized_reader::SerializedFileReader::new(file).expect("Parquet");
        let metadata = parquet::file::reader::FileReader::metadata(&reader).file_metadata();
        let columns = metadata.schema_descr().columns().iter();
        columns.map(|column| column.name().to_owned()).collect::<Vec<String>>()
    };
    let (series, packets) = (columns(&|to| write_series(&runs, to)), columns(&|to| write_packets(&runs, to)));
    assert!(series.len() >= 8 && packets.len() >= 5, "{series:?} {packets:?}");
    for name in series.iter().chain(&packets) {
        assert!(page.contains(&format!("`{name}`")), "the column `{name}` is not explained");
    }
}
