//! Every scenario that is shipped loads, and what is generated from the declarations is up to date.

use lasthop_laws::{Choice, Place};
use lasthop_radio::LastHop;
use lasthop_radio::queue;
use lasthop_report::{Key, Needs};
use lasthop_scenario::{Scenario, json_schema, reference_page};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn scenario_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).expect("readable") {
        let path = entry.expect("readable").path();
        match path.extension() {
            _ if path.is_dir() => files.extend(scenario_files(&path)),
            Some(extension) if extension == "toml" => files.push(path),
            _ => {}
        }
    }
    files.sort();
    files
}

#[test]
fn every_shipped_scenario_loads() {
    let files = scenario_files(&root().join("scenarios"));
    assert!(files.len() >= 3, "{files:?}");
    for path in files {
        let scenario = Scenario::load(&path).unwrap_or_else(|error| panic!("{}", error.plain()));
        assert!(!scenario.description().is_empty(), "{} does not say what it shows", path.display());
        let first = std::fs::read_to_string(&path).expect("readable").lines().next().unwrap_or_default().to_owned();
        let schema = first.strip_prefix("#:schema ").unwrap_or_else(|| panic!("{} names no schema", path.display()));
        let schema = path.parent().expect("in a directory").join(schema);
        assert!(schema.exists(), "{} names a schema that does not exist", path.display());
    }
}

#[test]
fn the_demo_is_what_its_description_says() {
    let demo = Scenario::load(root().join("scenarios/first-light.toml")).unwrap_or_else(|e| panic!("{}", e.plain()));
    let names: Vec<&str> = demo.laws().iter().map(|law| law.name.as_str()).collect();
    assert_eq!(names, ["cubic", "bbr", "cubic+modern-ap", "cubic+ap"]);
    assert_eq!((demo.stations().len(), demo.streams().len(), demo.seeds().len()), (3, 9, 5));
    let LastHop::Wifi(hop) = demo.hop() else { panic!("the demo has a Wi-Fi hop") };
    let params = hop.params();
    assert_eq!((params.nodes.len(), params.background[0].active.len()), (1 + 3 + 2, 2));
    // All that downloads, probes and fetches yield.
    let yielded = |key: &Key| !matches!(key.column().needs, Needs::Uploads | Needs::Udp);
    assert_eq!(demo.measures(), Key::ALL.into_iter().filter(yielded).collect::<Vec<_>>());
    let modern = demo.law("cubic+modern-ap").expect("in the table");
    assert!(matches!(
        demo.hop_under(&modern).plan().queue(),
        Some(queue::HopQueue::Stations(queue::Kind::FqCodelAirtime(_)))
    ));
    assert!(matches!(demo.hop().plan().queue(), Some(queue::HopQueue::Stations(queue::Kind::Fifo { packets: 1000 }))));
    let agent = Choice::named(Place::AccessPoint, "oal");
    assert_eq!(demo.law("cubic+ap").expect("in the table").agent(), agent.as_ref());
    assert_eq!(demo.law("reno").expect("a sender law").sender("server").name(), "reno");
    assert!(demo.law("kernel:vegas").expect("the kernel's").sender("server").is_kernel());
    let unknown = demo.law("cubik").expect_err("no such law");
    assert_eq!(unknown.known[..5], ["cubic", "bbr", "cubic+modern-ap", "cubic+ap", "reno"]);
}

/// Compares a committed file with what it is generated from; `LASTHOP_BLESS=1` writes it.
fn up_to_date(path: &str, generated: &str) {
    let path = root().join(path);
    if std::env::var_os("LASTHOP_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().expect("in a directory")).expect("directory");
        std::fs::write(&path, generated).expect("writable");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == generated,
        "{} is out of date: run LASTHOP_BLESS=1 cargo test -p lasthop-scenario",
        path.display()
    );
}

#[test]
fn the_committed_schema_is_up_to_date() {
    let mut schema = serde_json::to_string_pretty(&json_schema()).expect("JSON");
    schema.push('\n');
    up_to_date("scenarios/scenario.schema.json", &schema);
}

#[test]
fn the_reference_page_is_up_to_date() {
    up_to_date("docs/reference/scenario.md", &reference_page());
}
