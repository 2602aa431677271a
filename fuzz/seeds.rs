//! Runs the function of a fuzz target over its seeds, inputs near them and random bytes. Tests of
//! the crates' `fuzz` modules include this file.
//!
//! `fuzz/seeds/TARGET` holds valid inputs, one a file. libFuzzer begins with them, too.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::TestRunner;
use std::path::{Path, PathBuf};

/// Inputs that are drawn for a target.
const CASES: u32 = 4000;
/// Octets of a random input at most.
const LONGEST: usize = 600;

/// Runs `function` over every seed of `target`, then over [`CASES`] inputs: seeds that are cut,
/// seeds with one wrong bit, random bytes.
///
/// `made` are the seeds that a test makes, each with its file's name. `LASTHOP_BLESS=1` writes
/// them.
///
/// # Panics
/// If the function does, if a seed that is made differs from its file, or if the target does not
/// call this function.
pub fn run(target: &str, function: fn(&[u8]), made: &[(&str, Vec<u8>)]) {
    is_called(target);
    let folder = fuzz().join("seeds").join(target);
    keep(&folder, made);
    let mut paths: Vec<PathBuf> = entries(&folder);
    paths.sort();
    let seeds: Vec<Vec<u8>> = paths.iter().map(|path| read(path)).collect();
    assert!(seeds.iter().all(|seed| !seed.is_empty()) && !seeds.is_empty(), "{}: nothing", folder.display());
    seeds.iter().for_each(|seed| function(seed));

    let cut = (select(seeds.clone()), any::<Index>()).prop_map(|(mut seed, len)| {
        seed.truncate(len.index(seed.len()));
        seed
    });
    let wrong = (select(seeds), any::<Index>(), 0u8..8).prop_map(|(mut seed, at, bit)| {
        let at = at.index(seed.len());
        seed[at] ^= 1 << bit;
        seed
    });
    let input = prop_oneof![2 => cut, 4 => wrong, 1 => vec(any::<u8>(), 0..LONGEST)];
    // What fails is kept as a seed, by hand.
    let config = ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() };
    let done = TestRunner::new(config).run(&input, |bytes| {
        function(&bytes);
        Ok(())
    });
    done.unwrap_or_else(|error| panic!("{target}: {error}"));
}

/// The target is listed, and is one call of the function under test.
fn is_called(target: &str) {
    let call = format!("{}::fuzz::{target}(bytes)", env!("CARGO_PKG_NAME").replace('-', "_"));
    for (file, text) in [
        (format!("fuzz_targets/{target}.rs"), call),
        ("Cargo.toml".to_owned(), format!("name = \"{target}\"")),
        ("README.md".to_owned(), format!("| `{target}` |")),
    ] {
        let path = fuzz().join(file);
        let found = String::from_utf8_lossy(&read(&path)).contains(&text);
        assert!(found, "{}: no `{text}`", path.display());
    }
}

fn keep(folder: &Path, made: &[(&str, Vec<u8>)]) {
    for (name, bytes) in made {
        let path = folder.join(name);
        if std::env::var_os("LASTHOP_BLESS").is_some() {
            std::fs::create_dir_all(folder).expect("a folder");
            std::fs::write(&path, bytes).expect("a seed");
        }
        let same = std::fs::read(&path).is_ok_and(|found| found == *bytes);
        let package = env!("CARGO_PKG_NAME");
        assert!(same, "{}: run LASTHOP_BLESS=1 cargo test -p {package} --lib fuzz", path.display());
    }
}

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.expect("readable").path()).collect()
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
