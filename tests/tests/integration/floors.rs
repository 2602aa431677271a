//! A room may use only rooms on floors below its own (`docs/explanation/architecture.md`). A crate's dependencies are its walls,
//! so the manifests are what is checked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// From the ground up. Rooms on one floor do not know each other.
const FLOORS: &[&[&str]] = &[
    &["units"],
    &["signals"],
    &["wire"],
    &["laws", "routing"],
    &["transport", "radio", "report"],
    &["scenario", "system", "dataset"],
    &["sim", "lab", "agents"],
    &["experiment"],
    &["reproduce"],
    &["cli"],
];

/// Rooms that do not know each other although their floors would let them: both speak `signals`.
const STRANGERS: &[(&str, &str)] = &[("radio", "laws")];

/// What tests and benchmarks alone may use beyond that, and as what. Whatever is not listed is refused.
const IN_TESTS: &[(&str, &str, &str)] = &[
    ("lab", "agents", "the monitor reader that the lab's monitor interfaces are made for"),
    ("lab", "sim", "the other world, with which the lab must agree"),
    ("radio", "laws", "the meter that counts the aggregates of a model's MPDUs"),
    ("transport", "radio", "the bottleneck that an endpoint is tried over"),
];

/// What needs a dependency.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Use {
    /// The crate itself, or its build script, on any platform.
    Product,
    /// Its tests, benchmarks and examples only.
    Tests,
}

/// The tables of a manifest that hold dependencies, at its top or below `[target.….]`.
const TABLES: &[(&str, Use)] =
    &[("dependencies", Use::Product), ("build-dependencies", Use::Product), ("dev-dependencies", Use::Tests)];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the workspace").to_path_buf()
}

fn floor_of(room: &str) -> Option<usize> {
    FLOORS.iter().position(|rooms| rooms.contains(&room))
}

/// The rooms that a manifest depends on, whatever it calls them.
fn rooms_of(manifest: &toml::Table) -> BTreeSet<(String, Use)> {
    let targets = manifest.get("target").and_then(toml::Value::as_table).into_iter().flat_map(toml::Table::values);
    let places = std::iter::once(manifest).chain(targets.filter_map(toml::Value::as_table));
    let mut rooms = BTreeSet::new();
    for (place, (table, by)) in places.flat_map(|place| TABLES.iter().map(move |table| (place, *table))) {
        for (name, wanted) in place.get(table).and_then(toml::Value::as_table).into_iter().flatten() {
            let package = wanted.get("package").and_then(toml::Value::as_str).unwrap_or(name);
            rooms.extend(package.strip_prefix("lasthop-").map(|room| (room.to_owned(), by)));
        }
    }
    rooms
}

/// Room name to the rooms that its manifest depends on.
fn arrows() -> BTreeMap<String, BTreeSet<(String, Use)>> {
    let crates = std::fs::read_dir(root().join("crates")).expect("crates/ exists");
    crates
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.join("Cargo.toml").exists())
        .map(|path| {
            let room = path.file_name().expect("named").to_string_lossy().into_owned();
            let text = std::fs::read_to_string(path.join("Cargo.toml")).expect("readable manifest");
            let manifest: toml::Table = text.parse().expect("valid manifest");
            (room, rooms_of(&manifest))
        })
        .collect()
}

#[test]
fn every_room_has_a_floor() {
    for room in arrows().keys() {
        assert!(
            floor_of(room).is_some(),
            "crates/{room} stands on no floor: add it to FLOORS and to the architecture page"
        );
    }
}

#[test]
fn no_arrow_runs_upward_or_sideways() {
    let mut excused = BTreeSet::new();
    for (room, used) in arrows() {
        let own = floor_of(&room).expect("checked above");
        for (other, by) in used {
            let theirs = floor_of(&other).unwrap_or_else(|| panic!("{room} uses unknown room {other}"));
            let pair = (room.as_str(), other.as_str());
            if theirs < own && !STRANGERS.contains(&pair) {
                continue;
            }
            let excuse = IN_TESTS.iter().find(|(user, used, _)| by == Use::Tests && (*user, *used) == pair);
            let excuse = excuse.unwrap_or_else(|| {
                panic!(
                    "crates/{room} (floor {own}) must not use crates/{other} (floor {theirs}), which its {by:?} does"
                )
            });
            excused.insert(*excuse);
        }
    }
    assert_eq!(excused, IN_TESTS.iter().copied().collect(), "left: what is used; right: the list of what may be");
}

#[test]
fn no_kind_of_dependency_escapes_the_check() {
    let manifest = "[dependencies]
        lasthop-a = { workspace = true }
        serde = '1'
        [dev-dependencies]
        lasthop-b = '1'
        [build-dependencies]
        other-name = { package = 'lasthop-c', path = '../c' }
        [target.'cfg(unix)'.dependencies]
        lasthop-d = '1'
        [target.'cfg(unix)'.dev-dependencies]
        lasthop-e = '1'";
    let found = rooms_of(&manifest.parse().expect("valid"));
    let wanted = [("a", Use::Product), ("b", Use::Tests), ("c", Use::Product), ("d", Use::Product), ("e", Use::Tests)];
    assert_eq!(found, wanted.into_iter().map(|(room, by)| (room.to_owned(), by)).collect());
}

#[test]
fn the_core_does_not_touch_the_world() {
    // Below the worlds there is no clock, no socket, no thread: only data in and data out.
    let banned = ["Instant::now", "SystemTime", "std::net", "std::thread", "rand::rng("];
    for room in FLOORS.iter().take_while(|rooms| !rooms.contains(&"scenario")).flat_map(|rooms| rooms.iter()) {
        for file in rust_files(&root().join("crates").join(room).join("src")) {
            let text = std::fs::read_to_string(&file).expect("readable source");
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            for (number, line) in code.enumerate() {
                for word in banned {
                    // Addresses are data; sockets are the world.
                    let allowed = word == "std::net" && line.contains("Addr");
                    assert!(allowed || !line.contains(word), "{}: code line {}: {word}", file.display(), number + 1);
                }
            }
        }
    }
}

fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    entries
        .map(|entry| entry.expect("readable").path())
        .flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|ext| ext == "rs"))
        .collect()
}
