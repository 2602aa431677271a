//! The regulated hop in the lab: kernel TCP, iperf3 and fetches through the edge proxy and the stations' agents, which read the
//! radio's frames off their monitor interfaces.

use lasthop_tests::{
    PATIENCE, ends_within, eventually, inside, json, lab, lab_run, lasthop, leavings, reliable, scenario,
};
use serde_json::Value;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Runs a scenario in the lab and gives its run.json, `None` if the machine was too busy; `command` is for one run, with its seed.
fn reliable_run(folder: &Path, command: impl Fn(&str) -> Command) -> Option<Value> {
    reliable(|number| {
        let seed = (number + 1).to_string();
        let child = command(&seed).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let id = child.id();
        ends_within(child, PATIENCE * 5).succeeded();
        assert_eq!(leavings(id), [""; 0]);
        folder.to_path_buf()
    })
}

#[test]
fn all_traffic_passes_the_proxy_and_frames_are_seen() {
    let Some(_lab) = lab() else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let command = |seed: &str| {
        let mut command = lab_run("regulated", "regulated", folder.path());
        command.args(["--seed", seed]);
        command
    };
    let Some(info) = reliable_run(folder.path(), command) else { return };
    let run = &info["runs"][0];
    let result = json(&folder.path().join("result.json"));
    let figures = &result["laws"]["regulated"];
    let mean = |figures: &serde_json::Value, key: &str| figures[key]["mean"].as_f64();
    // Fetches and, of station two, iperf3 reach their servers only through the tunnel.
    assert!(mean(figures, "fetch_p50_ms").is_some(), "no fetch came through: {figures}");
    let stations = run["regulated"].as_array().expect("one account a station");
    assert_eq!(stations.len(), 2, "{run}");
    for account in stations {
        let number = |key: &str| account[key].as_f64().unwrap_or_else(|| panic!("{key} is unknown: {account}"));
        let name = account["station"].as_str().expect("a name");
        let throughput = mean(&result["stations"]["regulated"][name], "throughput_mbit_s").expect("a bulk download");
        // Half a second a slot.
        assert!(number("slots") >= 8.0, "{account}");
        assert!(throughput > 2.0, "{name}: {throughput} Mbit/s");
        // The rate allowed includes headers, and is used.
        assert!(
            number("rate_mbit_s") > throughput && number("rate_mbit_s") < 3.0 * throughput,
            "{account}: {throughput}"
        );
        // What the station counted on its monitor interface against what the emulator sent. The rates still change, and the account
        // is a mean over slots: where slots hold n frames each, the mean of 1/n is never below 1 over the mean of n.
        let (counted, sent) = (number("interval_ms"), number("frame_interval_ms"));
        assert!(counted > 0.8 * sent && counted < 100.0, "{account}");
        assert!(number("aggregation_packets") > 1.0 && number("target_packets") > 1.0, "{account}");
        assert!(number("looks_over_bound") < 0.03, "{account}");
    }
}

/// What the regulator is for: stations at 175.5, 117 and 87.75 Mbit/s, a target of 10 ms, kernel TCP through the proxy.
#[test]
fn three_stations_get_the_target_levels_and_equal_airtime() {
    let Some(_lab) = lab() else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let command = |seed: &str| {
        let mut command = lasthop(["run", "--world", "lab", "--law", "regulated", "--seed", seed, "--out"]);
        command.arg(folder.path()).arg(scenario("aggregation/lab-three-stations"));
        command
    };
    let Some(info) = reliable_run(folder.path(), command) else { return };
    let accounts = info["runs"][0]["regulated"].as_array().expect("one account a station");
    let of = |key: &str| -> Vec<f64> {
        accounts.iter().map(|account| account[key].as_f64().unwrap_or_else(|| panic!("{key}: {account}"))).collect()
    };
    eprintln!(
        "{:.2?} ms, {:.1?} packets, airtime {:.3?}",
        of("interval_ms"),
        of("aggregation_packets"),
        of("airtime_share")
    );
    // What waits at the proxy is within its bound, but for moments after a rate has fallen.
    assert!(of("looks_over_bound").iter().all(|share| *share < 0.01), "{accounts:?}");
    assert!(of("backlog_over_bound").iter().all(|most| *most < 2.0), "{accounts:?}");
    // Required: 10 ms within 20 %, airtime equal within 10 %; packets near 44, 30 and 22, which is read as within 15 %.
    assert!(of("interval_ms").iter().all(|interval| (8.0..=12.0).contains(interval)), "{accounts:?}");
    let airtime = of("airtime_share");
    let mean = airtime.iter().sum::<f64>() / airtime.len() as f64;
    assert!(airtime.len() == 3 && airtime.iter().all(|share| (share / mean - 1.0).abs() <= 0.1), "{accounts:?}");
    for (level, want) in of("aggregation_packets").iter().zip([44.0, 30.0, 22.0]) {
        assert!((level / want - 1.0).abs() <= 0.15, "{level} for {want}: {accounts:?}");
    }
}

/// Where the fast station's frames are at their limit, at 702 and 87.75 Mbit/s, the optimum serves both more often than the published rule,
/// which lets the slow one's frames grow until both have the target; it carries half as much again.
#[test]
#[ignore = "a minute and a half: scripts/worlds"]
fn the_optimum_beats_the_published_allocation_at_the_cap() {
    let Some(_lab) = lab() else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let path = scenario("aggregation/lab-two-stations");
    if lasthop_tests::figures("lab", &path, &["exact", "paper"], 1, folder.path()).is_none() {
        return;
    }
    let laws = &json(&folder.path().join("result.json"))["laws"];
    let of = |key: &str| ["exact", "paper"].map(|law| laws[law][key]["mean"].as_f64().expect("a figure"));
    let (throughput, delay) = (of("throughput_mbit_s"), of("hop_delay_mean_ms"));
    eprintln!("exact and paper: {throughput:.1?} Mbit/s, {delay:.2?} ms over the hop in the mean");
    assert!(throughput[0] > 1.2 * throughput[1], "{throughput:?} Mbit/s");
    assert!(delay[0] < delay[1], "{delay:?} ms");
}

/// Octets of the page that curl fetches.
const PAGE: usize = 300_000;

/// Serves one page to all clients, in this namespace, as long as the test program lasts; gives the addresses of those
/// clients.
fn serve(namespace: PathBuf) -> Receiver<IpAddr> {
    let (asked, who) = channel();
    std::thread::spawn(move || {
        let file = File::open(namespace).expect("a namespace that is there");
        nix::sched::setns(file, nix::sched::CloneFlags::CLONE_NEWNET).expect("root");
        let listener = TcpListener::bind("0.0.0.0:8080").expect("a port of its own");
        while let Ok((mut socket, from)) = listener.accept() {
            let _ = socket.read(&mut [0; 4096]);
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {PAGE}\r\nConnection: close\r\n\r\n");
            let _ = socket.write_all(&[head.as_bytes(), &[b'x'; PAGE]].concat());
            let _ = asked.send(from.ip());
        }
    });
    who
}

#[test]
fn curl_fetches_through_the_proxy_beside_a_running_scenario() {
    let Some(_lab) = lab() else { return };
    if Command::new("curl").arg("--version").output().is_err() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: curl is not installed");
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    let running = lab_run("regulated", "regulated", folder.path()).args(["--seed", "1"]).spawn().expect("it starts");
    let (id, name) = (running.id(), |host| format!("lasthop-{}-0-{host}", running.id()));
    let (server, station) = (Path::new("/run/netns").join(name("server")), name("sta1"));
    // The agent listens before the run begins.
    let arguments =
        ["-sS", "-m", "5", "-x", "http://127.0.0.1:1080", "-p", "http://10.76.0.1:8080/", "-o", "/dev/null"];
    let is_up = || {
        let mut look =
            inside(&station, Path::new("grep"), &["-q", "0100007F:0438 00000000:0000 0A", "/proc/self/net/tcp"]);
        look.output().is_ok_and(|found| found.status.success())
    };
    let up = eventually(Duration::from_secs(20), is_up);
    let asked = up.then(|| serve(server));
    // The downloads have begun by then, and stations have reported.
    std::thread::sleep(Duration::from_secs(3));
    let mut fetched = String::new();
    let fetch = || {
        let told = ["-w", "%{http_code} %{size_download}"];
        let done = inside(&station, Path::new("curl"), &[&arguments[..], &told].concat()).output().expect("curl runs");
        fetched = String::from_utf8_lossy(&done.stdout).into_owned();
        done.status.success()
    };
    let came = up && eventually(Duration::from_secs(5), fetch);
    // Whatever has come of it, the run ends first.
    ends_within(running, PATIENCE).succeeded();
    assert_eq!(leavings(id), [""; 0]);
    assert!(up, "no agent listens at the station");
    assert!(came, "curl has fetched nothing: {fetched}");
    assert_eq!(fetched, format!("200 {PAGE}"));
    // The server has seen the proxy, which is at the access point, and not the station.
    let who = asked.expect("it serves").try_recv().expect("somebody has asked");
    assert_eq!(who.to_string(), "10.76.0.2");
}
