//! ATP and TCP without SACK over the lab's meshes: `lasthop send` and `recv` for each flow, a relay on each node.
//!
//! Measured by the wall clock: a run that the lab itself marks unreliable is made again, and says nothing in the end.

use lasthop_tests::{json, lab, lasthop, mean, run, scenario};
use std::fs;
use std::io::Write as _;
use std::path::Path;

/// The chain, over two hops, and with this in place of that.
fn chain(folder: &Path, changes: &[(&str, &str)]) -> std::path::PathBuf {
    let path = folder.join("chain.toml");
    let mut text = fs::read_to_string(scenario("atp/chain")).expect("a shipped scenario");
    for (that, this) in
        [("#:schema ../scenario.schema.json", ""), ("from = \"n4\"", "from = \"n2\"")].iter().chain(changes)
    {
        assert!(text.contains(that), "{that}");
        text = text.replace(that, this);
    }
    fs::write(&path, text).expect("written");
    path
}

#[test]
fn flows_of_programs_cross_a_mesh_whose_nodes_have_relays() {
    let Some(_lab) = lab() else { return };
    let doctor = run(&mut lasthop(["doctor"]));
    if !doctor.out.contains("The agent can run here.") {
        let _ = writeln!(std::io::stderr(), "SKIPPED: relays in the lab's meshes: {}", doctor.out);
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    let path = chain(
        folder.path(),
        &[("duration = \"60 s\"", "duration = \"7 s\""), ("warm-up = \"10 s\"", "warm-up = \"2 s\"")],
    );
    let Some(info) = lasthop_tests::figures("lab", &path, &["adaptive", "tahoe"], 1, folder.path()) else { return };
    let result = json(&folder.path().join("result.json"));
    for law in ["adaptive", "tahoe"] {
        let (rate, again) = (mean(&result, law, "throughput_mbit_s"), mean(&result, law, "retransmission_ratio"));
        println!("{law}: {rate} Mbit/s, {again} of them sent again");
        // The hops carry some 7.5 Mbit/s, and the programs begin within the warm-up.
        assert!((1.0..9.0).contains(&rate) && again < 0.1, "{law}: {rate} {again}");
    }
    let runs = info["runs"].as_array().expect("runs");
    let relays =
        |law: &str| runs.iter().find(|run| run["law"] == law).map(|run| run["relays"].clone()).expect("its run");
    assert!(relays("tahoe").is_null(), "{info}");
    let relays = relays("adaptive");
    assert_eq!(relays.as_object().map(serde_json::Map::len), Some(5), "{relays}");
    let stamped =
        |node: &str| relays[node]["devices"][0]["stamped"].as_u64().unwrap_or_else(|| panic!("{node}: {relays}"));
    assert!(stamped("n2") > 100 && stamped("n1") > 100 && stamped("n4") == 0, "{relays}");
}

#[test]
fn what_the_lab_cannot_send_is_refused_with_a_remedy() {
    let folder = tempfile::tempdir().expect("a directory");
    let refused = |path: &Path, law: &str, says: &[&str]| {
        let mut command = lasthop(["run", "--world", "lab", "--law", law, "--out"]);
        run(command.arg(folder.path().join("out")).arg(path)).failed_saying(says);
    };
    if !lasthop_tests::is_root() {
        return;
    }
    refused(&scenario("atp/chain"), "tcp-ap", &["by tcp-ap take no parameters", "--world sim"]);
    let lab = ("world = \"sim\"", "world = \"lab\"");
    let iperf3 = chain(folder.path(), &[lab, ("to = \"ap\"", "to = \"ap\"\nprogram = \"iperf3\"")]);
    refused(&iperf3, "adaptive", &["iperf3 sends over the kernel's TCP", "program = \"own\""]);
    let tuned = chain(folder.path(), &[("variant = \"adaptive\"", "variant = \"adaptive\", packets = 10")]);
    refused(&tuned, "adaptive", &["by atp take no parameters from a scenario but ATP's variant"]);
}
