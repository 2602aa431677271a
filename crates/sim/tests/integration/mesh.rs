//! Meshes: stations that forward each other's packets, and ATP over them.

use crate::support;

use lasthop_report::Key;
use support::{parse, simulate, value};

/// A chain along a line, 100 m from node to node: the access point, then `hops` stations. Each hears its neighbours only.
fn chain(hops: u32, rate: &str, rest: &str) -> String {
    let stations: String = (1..=hops)
        .map(|n| format!("[[station]]\nname = \"n{n}\"\nrate = \"{rate}\"\nposition = [\"{} m\", \"0 m\"]\n", 100 * n))
        .collect();
    format!(
        "title = \"Chain\"\nduration = \"20 s\"\nwarm-up = \"5 s\"\n[wire]\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n[hop.wifi]\n\
         standard = \"802.11a\"\nqueue = {{ kind = \"fifo\", limit = \"100 packets\" }}\nuplink-queue = \"100 packets\"\n\
         mesh = {{ range = \"110 m\" }}\n{stations}{rest}[laws.cubic]\nsender = \"cubic\"\n[laws.atp]\nsender = \"atp\"\n"
    )
}

fn bulk(from: &str, to: &str) -> String {
    format!("[[traffic]]\nkind = \"bulk\"\nfrom = \"{from}\"\nto = \"{to}\"\n")
}

/// Throughput in Mbit/s, and the mean delay over one hop in ms.
fn run(text: &str, law: &str) -> (f64, f64) {
    let record = simulate(&parse(text), law, 1);
    (value(&record, Key::Throughput), value(&record, Key::HopDelayMean))
}

#[test]
fn packets_go_from_node_to_node_and_over_the_gateway() {
    for (from, to) in [("n1", "n4"), ("n4", "n1"), ("n4", "server"), ("server", "n4"), ("n3", "ap")] {
        let (rate, _) = run(&chain(4, "24 Mbit/s", &bulk(from, to)), "cubic");
        assert!(rate > 0.5, "{from} to {to}: {rate} Mbit/s");
    }
}

#[test]
fn packets_take_the_routes_of_the_file() {
    // All three decode each other; the routes lead over the middle one.
    let text = chain(2, "24 Mbit/s", &bulk("n2", "ap")).replace("110 m", "210 m");
    let route = |at: &str, to: &str| format!("[[route]]\nat = \"{at}\"\nto = \"{to}\"\nvia = \"n1\"\n");
    let around = text.replace("[laws.cubic]", &(route("n2", "ap") + &route("ap", "n2") + "[laws.cubic]"));
    let ((direct, _), (two_hops, _)) = (run(&text, "cubic"), run(&around, "cubic"));
    assert!((0.4..0.6).contains(&(two_hops / direct)), "{two_hops} of {direct} Mbit/s");
}

#[test]
fn atp_fills_a_hop_and_keeps_its_queue_short() {
    let text = chain(1, "24 Mbit/s", &bulk("n1", "ap"));
    let (rate, _) = run(&text, "atp");
    // 1444 octets in 682 us: 16.9 Mbit/s, and S = 1 / (T + Q) with even arrivals uses most of it.
    assert!((0.75..1.0).contains(&(rate / 16.9)), "{rate} Mbit/s");
}

#[test]
fn atp_crosses_hops_that_hide_each_other() {
    for hops in [2, 3, 4] {
        let (rate, _) = run(&chain(hops, "24 Mbit/s", &bulk(&format!("n{hops}"), "ap")), "atp");
        assert!(rate > 1.0, "{hops} hops: {rate} Mbit/s");
    }
}
