//! Agents that are killed (SIGKILL) while they are at work.

use crate::case::{Case, Seen};
use crate::lie::settled;
use crate::program::run;
use crate::radio::{Flowed, kb};
use crate::scene::{PATIENCE, Scene};
use crate::tunnel::Tunnel;
use lasthop_tests::bpf;
use nix::sys::signal::Signal;
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

pub const CASES: &[Case] = &[
    Case {
        name: "kill: ap, TCX",
        done: "SIGKILL amid a download whose window is limited",
        right: "the flow goes on as plain TCP without a stall above 1 s; no program, filter, qdisc or pin is left",
        run: |scene| access_point(scene, "tcx"),
    },
    Case {
        name: "kill: ap, clsact",
        done: "SIGKILL amid a download whose window is limited, then --clean",
        right: "as above, but for two filters and their qdisc, which pass everything until --clean removes them",
        run: |scene| access_point(scene, "clsact"),
    },
    Case {
        name: "kill: proxy",
        done: "SIGKILL amid a download through the tunnel; then it is started again",
        right: "the station's agent lives, and says after 3 s that nothing is heard; with the new proxy old connections end at \
                once and new ones pass",
        run: proxy,
    },
    Case {
        name: "kill: transparent proxy",
        done: "SIGKILL while it takes connections over, then --clean",
        right: "new connections are routed as ever; a rule without effect stays until --clean removes it",
        run: transparent,
    },
    Case {
        name: "kill: station",
        done: "SIGKILL amid a download through the tunnel; then it is started again",
        right: "its connections end; the proxy lives; new ones pass once it is back",
        run: station,
    },
];

/// The longest time without an acknowledged octet, in the long form.
const STALL: Duration = Duration::from_secs(1);

fn access_point(scene: &mut Scene, method: &str) -> Seen {
    let radio = scene.radio();
    let pins = pins();
    let mut agent = radio.agent(scene, &["--attach", method]);
    let programs = bpf::programs_of(agent.id());
    let flow = radio.download();
    let limited = settled(scene, &flow).median;
    let before = Flowed::of(scene, &flow, scene.ms(2000, 300));
    agent.signal(Signal::SIGKILL);
    let after = Flowed::of(scene, &flow, scene.ms(4000, 500));
    scene.await_that("the window opens", || flow.info().snd_wnd > limited.saturating_mul(3));
    let open = flow.info().snd_wnd;
    scene.await_that("the agent is gone", || agent.has_ended());
    let is_loaded = || programs.iter().any(|program| bpf::is_loaded(*program));
    let measured = format!(
        "{:.0} Mbit/s with {}, then {:.0} with {}; longest stall {} ms",
        before.mbit_s,
        kb(limited),
        after.mbit_s,
        kb(open),
        after.stall.as_millis()
    );
    let seen = if method == "tcx" {
        // The kernel lets go of links on its own time.
        let gone = scene.until(PATIENCE, || !is_loaded()).is_some();
        Seen::new(measured).must(gone, "a program is left")
    } else {
        let filters = radio.filters().lines().filter(|line| line.contains("rwnd_")).count();
        let (cleaned, said) = run(scene, &radio.ap, &["ap", "--iface", "wlan0", "--clean"]);
        let gone = scene.until(PATIENCE, || !is_loaded()).is_some();
        Seen::new(format!("{measured}; {filters} filters left, then `{said}`"))
            .must(filters == 2, "there were not two filters")
            .must(cleaned && gone, "--clean leaves something")
    };
    let qdiscs = radio.tc("qdisc show dev wlan0");
    let stall = scene.pick(STALL, PATIENCE);
    let seen = seen
        .must(programs.len() >= 2, format_args!("the agent had {} programs", programs.len()))
        .must(!scene.is_whole() || after.mbit_s > 0.8 * before.mbit_s, "the flow became slower")
        .must(after.stall <= stall, "the flow stood still")
        .must(radio.filters().is_empty() && !qdiscs.contains("clsact"), "a filter or qdisc is left")
        .must(self::pins() == pins, "a pin is left");
    drop(flow);
    scene.keep(radio);
    seen
}

/// What is pinned in the file system of eBPF.
fn pins() -> BTreeSet<std::path::PathBuf> {
    std::fs::read_dir("/sys/fs/bpf").into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn proxy(scene: &mut Scene) -> Seen {
    let tunnel = Tunnel::new();
    let proxy = tunnel.proxy(scene, &[]);
    let mut station = tunnel.station(scene, &[]);
    let (download, _) = tunnel.download(scene);
    let before = download.rate(scene, scene.ms(1500, 300));
    proxy.signal(Signal::SIGKILL);
    drop(proxy);
    // For all that the station's agent knows, the proxy may be heard again. After 3 s it says so.
    let waiting = tunnel.connect().expect("the station's agent listens");
    let told = scene.is_whole().then(|| scene.await_that("it says so", || station.has_said("nothing heard from")));
    let again = tunnel.proxy(scene, &[]);
    let ended = scene.await_that("old connections end", || download.has_ended() && waiting.has_ended());
    let (new, took) = tunnel.download(scene);
    let after = new.rate(scene, scene.ms(1500, 300));
    let told = told.map_or("not awaited".to_owned(), |told| format!("{:.1} s", told.as_secs_f64()));
    let seen = Seen::new(format!(
        "{before:.0} Mbit/s; said after: {told}; old connections end {} ms after the new start; a new one passes {} ms later, at \
         {after:.0} Mbit/s",
        ended.as_millis(),
        took.as_millis(),
    ))
    .must(!station.has_ended(), "the station's agent has ended")
    .must(!scene.is_whole() || ended + took < Duration::from_secs(5), "new connections do not pass soon")
    .must(!scene.is_whole() || after > 0.8 * before, "slower than before");
    drop((new, station, again));
    seen
}

fn transparent(scene: &mut Scene) -> Seen {
    let tunnel = Tunnel::new();
    let row = &tunnel.row;
    // The station is reached without a proxy, too, and has a service that says which address calls it.
    row.proxy.within(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").expect("our own namespace"));
    row.server.ip("route add 10.93.2.0/24 via 10.93.1.2");
    row.station.ip("route add default via 10.93.2.1");
    let service = row.station.within(|| TcpListener::bind("10.93.2.2:8080")).expect("a free port");
    std::thread::spawn(move || {
        while let Ok((mut socket, from)) = service.accept() {
            let _ = socket.write_all(from.ip().to_string().as_bytes());
        }
    });
    let called = || {
        let to: SocketAddr = "10.93.2.2:8080".parse().expect("an address");
        let mut socket = row.server.within(|| TcpStream::connect_timeout(&to, Duration::from_secs(2))).ok()?;
        socket.set_read_timeout(Some(Duration::from_secs(2))).expect("a socket");
        let mut text = String::new();
        socket.read_to_string(&mut text).ok().filter(|len| *len > 0).map(|_| text)
    };
    let rules = || {
        let output = std::process::Command::new("ip").args(["-n", row.proxy.name(), "rule"]).output();
        String::from_utf8_lossy(&output.expect("iproute2").stdout).into_owned()
    };
    const SERVER: &str = "10.93.1.1";
    let plain = called();
    let proxy = tunnel.proxy(scene, &["--transparent", "p0", "--station", "10.93.2.2=1"]);
    let station = tunnel.station(scene, &["--serve", "8080"]);
    // Its agent on the same machine calls the service from the station's own address.
    scene.await_that("connections are taken over", || called().is_some_and(|from| from != SERVER));
    let programs = bpf::programs_of(proxy.id());
    proxy.signal(Signal::SIGKILL);
    drop(proxy);
    let took = scene.await_that("connections are routed as ever", || called().as_deref() == Some(SERVER));
    let gone = scene.until(PATIENCE, || !programs.iter().any(|program| bpf::is_loaded(*program))).is_some();
    let stays = rules().contains("0x4c48");
    let (cleaned, said) = run(scene, &row.proxy, &["proxy", "--clean"]);
    let routed = called();
    drop(station);
    Seen::new(format!("routed as ever after {} ms; rule left, then `{said}`", took.as_millis()))
        .must(plain.as_deref() == Some(SERVER), "the service cannot be reached without a proxy")
        .must(!programs.is_empty() && gone, "a program is left")
        .must(stays, "there was no rule")
        .must(cleaned && !rules().contains("0x4c48"), "--clean leaves the rule")
        .must(routed.as_deref() == Some(SERVER), "not routed as ever after --clean")
}

fn station(scene: &mut Scene) -> Seen {
    let tunnel = Tunnel::new();
    let mut proxy = tunnel.proxy(scene, &[]);
    let station = tunnel.station(scene, &[]);
    let (download, _) = tunnel.download(scene);
    let before = download.rate(scene, scene.ms(1500, 300));
    station.signal(Signal::SIGKILL);
    drop(station);
    let ended = scene.await_that("its connection ends", || download.has_ended());
    let refused = tunnel.connect().is_none();
    let again = tunnel.station(scene, &[]);
    let (new, took) = tunnel.download(scene);
    let after = new.rate(scene, scene.ms(1500, 300));
    let seen = Seen::new(format!(
        "{before:.0} Mbit/s; the connection ends after {} ms; a new one passes {} ms after the new start, at {after:.0} Mbit/s",
        ended.as_millis(),
        took.as_millis()
    ))
    .must(!proxy.has_ended(), "the proxy has ended")
    .must(refused, "somebody still listens")
    .must(!scene.is_whole() || took < Duration::from_secs(5), "new connections do not pass soon")
    .must(!scene.is_whole() || after > 0.8 * before, "slower than before");
    drop((new, again));
    seen
}
