//! A room may use only rooms on floors below its own (`docs/explanation/architecture.md`). A crate's dependencies are its walls,
//! so the manifests are what is checked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// From the ground up. Rooms on one floor do not know each other.
const FLOORS: &[&[&str]] = &[
    &["units"],
    &["signals"],
    &["wire"],
    &["laws"],
    &["transport", "radio"],
    &["scenario", "report"],
    &["sim", "lab", "agents"],
    &["experiment"],
    &["cli"],
];

/// Measuring tools and comparisons may look across: a test of one room may use another room as its stand-in for the
/// world. Such arrows are dev-dependencies and are not checked.
const CHECKED: &str = "dependencies";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the workspace").to_path_buf()
}

fn floor_of(room: &str) -> Option<usize> {
    FLOORS.iter().position(|rooms| rooms.contains(&room))
}

/// Room name to the rooms that its manifest depends on.
fn arrows() -> BTreeMap<String, Vec<String>> {
    let crates = std::fs::read_dir(root().join("crates")).expect("crates/ exists");
    crates
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.join("Cargo.toml").exists())
        .map(|path| {
            let room = path.file_name().expect("named").to_string_lossy().into_owned();
            let text = std::fs::read_to_string(path.join("Cargo.toml")).expect("readable manifest");
            let manifest: toml::Table = text.parse().expect("valid manifest");
            let used = manifest.get(CHECKED).and_then(toml::Value::as_table).into_iter().flat_map(|table| table.keys());
            let used = used.filter_map(|name| name.strip_prefix("lasthop-")).map(str::to_owned).collect();
            (room, used)
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
    for (room, used) in arrows() {
        let own = floor_of(&room).expect("checked above");
        for other in used {
            let theirs = floor_of(&other).unwrap_or_else(|| panic!("{room} uses unknown room {other}"));
            assert!(theirs < own, "crates/{room} (floor {own}) must not use crates/{other} (floor {theirs})");
        }
    }
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
