//! Many processes that write one file at once.

use crate::case::{Case, Seen};
use crate::scene::Scene;
use lasthop_tests::{PATIENCE, ends_within, lasthop};
use std::process::Stdio;

pub const CASES: &[Case] = &[Case {
    name: "pair: all at once",
    done: "lasthop pair for fifty stations (20 in the short form), all at one moment",
    right: "every station has the key that the proxy's file has for it",
    run: all_at_once,
}];

fn all_at_once(scene: &mut Scene) -> Seen {
    let stations = scene.pick(50, 20);
    let folder = tempfile::tempdir().expect("a directory");
    let keys = folder.path().join("proxy.keys");
    let file = |station: usize| folder.path().join(format!("{station}.key"));
    let start = |station: usize| {
        let mut command = lasthop(["pair", "--station"]);
        command.arg(station.to_string()).arg("--proxy").arg(&keys).arg("--out").arg(file(station));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    };
    let children: Vec<_> = (1..=stations).map(start).collect();
    let ended = children.into_iter().map(|child| ends_within(child, PATIENCE));
    let failed = ended.filter(|ended| ended.status != 0).count();
    let text = std::fs::read_to_string(&keys).expect("a file of keys");
    let lines: Vec<&str> = text.lines().collect();
    let kept = (1..=stations)
        .filter(|station| {
            let own = std::fs::read_to_string(file(*station)).unwrap_or_default();
            own.lines().any(|line| !line.starts_with('#') && !line.is_empty() && lines.contains(&line))
        })
        .count();
    Seen::new(format!("{kept} of {stations} keys kept"))
        .must(failed == 0, format_args!("{failed} failed"))
        .must(kept == stations, "keys are lost")
}
