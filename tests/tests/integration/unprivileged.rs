//! What an ordinary user meets: the simulator without a word too much, and clear answers about the rest.

use lasthop_tests::{Ended, lasthop, own_scenario, run};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian's `nobody`.
const NOBODY: u32 = 65534;

/// A directory of that user's own, with the program and the scenario in it: the workspace may be closed to others.
struct Home {
    folder: tempfile::TempDir,
    program: PathBuf,
    scenario: PathBuf,
}

fn home() -> Home {
    let folder = tempfile::tempdir().expect("a directory");
    let (program, scenario) = (folder.path().join("lasthop"), folder.path().join("short.toml"));
    lasthop_tests::copy_program(&program);
    std::fs::copy(own_scenario("short"), &scenario).expect("copied");
    if nix::unistd::Uid::effective().is_root() {
        let user = Some(nix::unistd::Uid::from_raw(NOBODY));
        nix::unistd::chown(folder.path(), user, None).expect("root may");
    }
    Home { folder, program, scenario }
}

/// `lasthop` as an ordinary user, which it already is if the tests are not run as root.
fn ordinary(home: &Home, arguments: &[&str]) -> Ended {
    let template = lasthop(arguments);
    let mut command = Command::new(&home.program);
    command.args(template.get_args()).current_dir(home.folder.path()).env_remove("COLUMNS").env("NO_COLOR", "1");
    if nix::unistd::Uid::effective().is_root() {
        // The standard library gives up all further groups with the user.
        command.uid(NOBODY).gid(NOBODY);
    }
    run(&mut command)
}

#[test]
fn a_scenario_runs_in_the_simulator_and_says_so() {
    let home = home();
    let ended = ordinary(&home, &["run", &home.scenario.to_string_lossy(), "--law", "cubic", "--out", "results"]);
    let ended = ended.succeeded();
    assert!(ended.err.contains("not root") && ended.err.contains("simulator"), "{}", ended.err);
    assert!(ended.out.contains("simulated in virtual time"), "{}", ended.out);
    let result = lasthop_tests::json(&home.folder.path().join("results/result.json"));
    assert_eq!(result["world"], "sim");
    // A user who asked for the simulator is not told why it is the simulator.
    let asked = ["run", &home.scenario.to_string_lossy(), "--world", "sim", "--law", "cubic", "--out", "results"];
    assert!(!ordinary(&home, &asked).succeeded().err.contains("not root"));
}

#[test]
fn the_lab_is_refused_before_anything_runs() {
    let home = home();
    let out = home.folder.path().join("results");
    let arguments = ["run", &home.scenario.to_string_lossy(), "--world", "lab", "--out", "results"];
    let ended = ordinary(&home, &arguments).failed_saying(&["needs root", "sudo", "simulator"]);
    assert!(!ended.err.contains("run 1 of") && !out.exists(), "{}", ended.err);
    ordinary(&home, &["lab", "--clean"]).failed_saying(&["needs root"]);
    ordinary(&home, &["lab", &home.scenario.to_string_lossy(), "--", "true"]).failed_saying(&["needs root", "sudo"]);
}

#[test]
fn the_agent_says_which_right_it_lacks() {
    let home = home();
    let refused = |arguments: &[&str], says: &[&str]| {
        let ended = ordinary(&home, arguments);
        // A build without the eBPF programs says that, and cannot do more.
        let built = !ended.err.contains("no eBPF programs");
        let ended = ended.failed_saying(if built { says } else { &["rebuild with feature `bpf`"] });
        // One line of its own, and nothing of a library's before it.
        assert!(ended.err.lines().count() == 1 && !ended.err.contains("libbpf"), "{}", ended.err);
        built
    };
    if refused(&["ap", "--iface", "lo", "--driver", "driver.sock"], &["CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN"]) {
        refused(&["ap", "--iface", "lo", "--clean"], &["run as root"]);
    }
    ordinary(&home, &["pair", "--proxy", "proxy.keys", "--station", "1", "--out", "station.key"]).succeeded();
    let station = ["station", "--proxy", "127.0.0.1:9", "--listen", "127.0.0.1:0", "--key", "station.key"];
    let transparent = [&station[..], &["--transparent", "/sys/fs/cgroup"]].concat();
    refused(
        &transparent,
        &["Operation not permitted", "CAP_BPF and CAP_NET_ADMIN", "start as root, with `--user NAME`"],
    );
    let proxy = ["proxy", "--listen", "127.0.0.1:0", "--no-realtime", "--keys", "proxy.keys"];
    let transparent = [&proxy[..], &["--transparent", "lo", "--station", "192.0.2.1=1"]].concat();
    refused(&transparent, &["CAP_NET_ADMIN"]);
}

#[test]
fn the_doctor_says_what_is_missing_and_how_to_get_it() {
    let home = home();
    let ended = ordinary(&home, &["doctor"]);
    assert_eq!(ended.status, 1, "{}", ended.out);
    for part in ["simulator   ok", "root: MISSING", "sudo", "The lab cannot run here.", "The agent cannot run here."] {
        assert!(ended.out.contains(part), "`{part}` is missing in\n{}", ended.out);
    }
    let missing = ended.out.lines().filter(|line| line.contains(": MISSING") || line.contains(": missing"));
    assert_eq!(missing.count(), ended.out.matches("to get it: ").count(), "{}", ended.out);

    let json = ordinary(&home, &["doctor", "--json"]);
    let lines: serde_json::Value = serde_json::from_str(&json.out).expect("JSON");
    let root = lines.as_array().expect("a list").iter().find(|line| line["name"] == "root").expect("a line on root");
    assert_eq!((root["ok"].as_bool(), root["required"].as_bool()), (Some(false), Some(true)));
}

#[test]
fn a_directory_of_somebody_else_is_refused_before_the_run() {
    let home = home();
    let locked = Path::new("/usr/lasthop-results");
    let arguments = ["run", &home.scenario.to_string_lossy(), "--world", "sim", "--out", &locked.to_string_lossy()];
    let ended =
        ordinary(&home, &arguments).failed_saying(&["cannot write results into /usr/lasthop-results", "/usr: "]);
    assert!(!ended.err.contains("run 1 of"), "{}", ended.err);
}
