//! `lasthop record` and `lasthop dataset`, from a scenario to a study.

use lasthop_tests::{Ended, lasthop, run};
use std::fs;
use std::path::{Path, PathBuf};

/// A small access point that loses: two stations, eight downloads, a short queue.
const WORLD: &str = r#"
title = "A small access point that loses"
world = "sim"
duration = "12 s"
warm-up = "1 s"

[wire]
rate = "100 Mbit/s"
delay = "5 ms"

[hop.wifi]
standard = "802.11n"
channel = 1
queue = { kind = "fifo", limit = "40 packets" }

[[station]]
name = "a"
count = 2
mcs = 3

[[traffic]]
kind = "bulk"
to = "a"
flows = 4

[laws.cubic]
sender = "cubic"

[laws."cubic+threshold"]
sender = "cubic"
agent = {}
"#;

const KEY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n";

struct Folder {
    folder: tempfile::TempDir,
}

impl Folder {
    fn new() -> Folder {
        let folder = tempfile::tempdir().expect("a directory");
        fs::write(folder.path().join("small.toml"), WORLD).expect("writes");
        fs::write(folder.path().join("key"), KEY).expect("writes");
        Folder { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, words: &[&str]) -> Ended {
        run(lasthop(words).current_dir(self.folder.path()))
    }

    fn record(&self, law: &str, seed: &str, out: &str) {
        let words = ["record", "small.toml", "--law", law, "--seed", seed, "--key", "key", "--out", out];
        self.command(&words).succeeded();
    }

    fn info(&self, file: &str) -> serde_json::Value {
        let ended = self.command(&["dataset", "info", "--json", file]).succeeded();
        serde_json::from_str(&ended.out).expect("JSON")
    }
}

fn bytes(path: &Path) -> Vec<u8> {
    fs::read(path).expect("it is there")
}

#[test]
fn a_scenario_is_recorded_merged_parted_and_studied() {
    let folder = Folder::new();
    for (law, seed, out) in
        [("cubic", "1", "a"), ("cubic", "1", "again"), ("cubic", "2", "b"), ("cubic+threshold", "1", "acts")]
    {
        folder.record(law, seed, out);
    }
    assert!(bytes(&folder.path("a")) == bytes(&folder.path("again")), "the same run makes the same file");

    // Nobody acts in shadow, and it loses; an agent acts, and less is lost.
    let (shadow, acts) = (folder.info("a"), folder.info("acts"));
    let of = |info: &serde_json::Value, what: &str| info["recordings"][0][what].as_u64().expect("a number");
    // Two stations, ten moments a second, and 1.6 s at the end of which it is not known what was lost.
    assert!((190..=208).contains(&of(&shadow, "items")), "{shadow}");
    assert_eq!((of(&shadow, "stations"), of(&shadow, "access_points"), of(&shadow, "acted")), (2, 1, 0));
    assert!(of(&acts, "acted") > 100, "{acts}");
    let share = |info| of(info, "lost") as f64 / of(info, "copies") as f64;
    assert!(share(&shadow) > 2.0 * share(&acts), "{} and {}", share(&shadow), share(&acts));
    let a_second = shadow["bytes_a_station_second"].as_f64().expect("a number");
    assert!(a_second < 1500.0, "{a_second} bytes a second and station");

    folder.command(&["dataset", "merge", "a", "b", "acts", "--out", "all"]).succeeded();
    let all = folder.info("all");
    assert_eq!(all["recordings"].as_array().map(Vec::len), Some(3));
    assert_eq!(
        all["items"].as_u64(),
        Some([&shadow, &folder.info("b"), &acts].map(|info| of(info, "items")).iter().sum())
    );
    let twice = folder.command(&["dataset", "merge", "a", "again", "--out", "twice"]);
    twice.failed_saying(&["a and again: both hold the recording", "leave one of them out"]);
    assert!(!folder.path("twice").exists());

    folder
        .command(&["dataset", "split", "all", "--by", "seed", "--hold-out", "2", "--learn", "l", "--ask", "q"])
        .succeeded();
    let recorded = |info: &serde_json::Value| -> Vec<u64> {
        info["recordings"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|one| one["items"].as_u64().expect("a number"))
            .collect()
    };
    let (learn, ask) = (recorded(&folder.info("l")), recorded(&folder.info("q")));
    assert_eq!((learn[1], ask[0], ask[2]), (0, 0, 0), "{learn:?} and {ask:?}");
    assert!(learn[0] > 0 && learn[2] > 0 && ask[1] > 0);
    let wrong = folder.command(&["dataset", "split", "all", "--hold-out", "x", "--learn", "l", "--ask", "q"]);
    assert!(wrong.status == 2 && wrong.err.contains("--hold-out x: there are block 2"), "{}", wrong.err);

    let study = folder.command(&["dataset", "study", "all"]).succeeded().out;
    for said in ["channel utilisation", "0.5413", "paper, Figure 3", "77.00", "Macro-F", "with seed held out", "random"]
    {
        assert!(study.contains(said), "{said} is not in\n{study}");
    }
    let study = folder.command(&["dataset", "study", "--json", "all"]).succeeded().out;
    let study: serde_json::Value = serde_json::from_str(&study).expect("JSON");
    assert_eq!(study["acted"], of(&acts, "acted"), "moments of tight windows are left out");
}

#[test]
fn a_key_makes_the_same_names_and_none_makes_others() {
    let folder = Folder::new();
    folder.record("cubic", "1", "a");
    let record = |out| folder.command(&["record", "small.toml", "--law", "cubic", "--out", out]).succeeded();
    record("one");
    record("other");
    let key = |file: &str| folder.info(file)["recordings"][0]["recording"]["key"].clone();
    assert!(key("a") != key("one") && key("one") != key("other"), "fresh keys");
    // Nothing in the file says what a station is called.
    let has = |file: &str, name: &[u8]| bytes(&folder.path(file)).windows(name.len()).any(|window| window == name);
    assert!(!has("a", b"a-1") && !has("a", b"00112233"));
}

#[test]
fn what_cannot_be_recorded_or_read_is_said() {
    let folder = Folder::new();
    fs::write(folder.path("short"), "0011").expect("writes");
    fs::write(folder.path("wired.toml"), WIRED).expect("writes");
    fs::write(folder.path("left.part"), b"LHITEMS\x01").expect("writes");
    let refused = |status: i32, words: &str, said: &[&str]| {
        let ended = folder.command(&words.split(' ').collect::<Vec<_>>());
        assert_eq!(ended.status, status, "{words}: {}", ended.err);
        said.iter().for_each(|part| assert!(ended.err.contains(part), "`{part}` is missing in\n{}", ended.err));
    };
    refused(1, "record small.toml --key short --out x", &["short: a key is 64 hexadecimal digits"]);
    refused(1, "record wired.toml --out x", &["wired.toml: its last hop is no Wi-Fi", "[hop.wifi]"]);
    refused(1, "record small.toml --law nobody --out x", &["nobody"]);
    let left = ["left.part is left of a recording that did not end", "dataset merge"];
    refused(1, "record small.toml --out left", &left);
    refused(2, "record --campus --hours 3-1 --out x", &["two hours from 0 to 24"]);
    refused(2, "record --campus --hours 2-4 --out x", &["nobody is there then"]);
    refused(2, "record --out x", &["SCENARIO"]);
    refused(1, "dataset info small.toml", &["small.toml: not a Parquet file"]);
    refused(1, "dataset study nowhere", &["cannot read nowhere"]);
    assert!(!folder.path("x").exists() && !folder.path("x.part").exists());
}

const WIRED: &str = r#"
title = "A cable"
world = "sim"
duration = "2 s"
warm-up = "1 s"

[wire]
rate = "100 Mbit/s"
delay = "5 ms"

[hop.wired]
rate = "10 Mbit/s"
queue = { kind = "fifo", limit = "40 packets" }

[[station]]
name = "a"

[[traffic]]
kind = "bulk"
to = "a"

[laws.cubic]
sender = "cubic"
"#;
