//! Traffic between any two hosts: what arrives, and which station's figures it counts for.

use crate::support;

use lasthop_report::{Direction, Key, RunRecord};
use support::{parse, simulate, value};

/// Two stations on cables of 10 Mbit/s behind a wire, and a host of its own 20 ms beyond the access point.
fn scenario(traffic: &str) -> String {
    format!(
        r#"
title = "Any to any"
duration = "10 s"
warm-up = "2 s"
seeds = 1
[wire]
rate = "1 Gbit/s"
delay = "5 ms"
[hop.wired]
rate = "10 Mbit/s"
queue = {{ kind = "fifo", limit = "100 packets" }}
uplink-queue = "100 packets"
[[station]]
name = "sofa"
[[station]]
name = "desk"
[[host]]
name = "far"
[[link]]
between = ["ap", "far"]
rate = "100 Mbit/s"
delay = "20 ms"
[laws.cubic]
sender = "cubic"
{traffic}
"#
    )
}

fn traffic(kind: &str, from: &str, to: &str) -> String {
    format!("[[traffic]]\nkind = \"{kind}\"\nfrom = \"{from}\"\nto = \"{to}\"\n")
}

fn stream(record: &RunRecord, name: &str, key: Key) -> f64 {
    let found = record.streams.iter().find(|stream| stream.info.name == name);
    let found = found.unwrap_or_else(|| panic!("no stream {name}"));
    found.figures[&key].value().unwrap_or_else(|| panic!("{name}: no {}", key.name()))
}

#[test]
fn bulk_traffic_ends_when_it_is_told_to() {
    // Half of the time that is measured, and what its queue holds then.
    let half = 10.0 * 1448.0 / 1500.0 * 4.0 / 8.0;
    for (size, law) in [("", "cubic"), ("size = \"1 GB\"\n", "cubic"), ("", "tahoe")] {
        let traffic = traffic("bulk", "server", "sofa") + size + "stop = \"6 s\"\n";
        let record = simulate(&parse(&scenario(&traffic)), law, 1);
        let goodput = stream(&record, "bulk server to sofa", Key::Throughput);
        assert!((half * 0.97..half * 1.04).contains(&goodput), "{size}{law}: {goodput}");
    }
}

#[test]
fn every_direction_fills_its_bottleneck() {
    // Payload of full segments on a link of 10 Mbit/s.
    let full = 10.0 * 1448.0 / 1500.0;
    for (from, to, direction) in [
        ("server", "sofa", Direction::Down),
        ("sofa", "server", Direction::Up),
        ("sofa", "desk", Direction::Across),
        ("far", "sofa", Direction::Down),
        ("sofa", "far", Direction::Up),
    ] {
        let record = simulate(&parse(&scenario(&traffic("bulk", from, to))), "cubic", 1);
        let rate = value(&record, Key::Throughput);
        assert!((0.93 * full..=1.001 * full).contains(&rate), "{from} to {to}: {rate} of {full} Mbit/s");
        assert_eq!(record.streams[0].info.direction, direction);
    }
    // Between wired hosts no station is concerned, and the link is faster.
    let record = simulate(&parse(&scenario(&traffic("bulk", "server", "far"))), "cubic", 1);
    let rate = value(&record, Key::Throughput);
    assert!(rate > 85.0, "{rate}");
    assert_eq!(record.streams[0].info.direction, Direction::Wired);
}

#[test]
fn probes_and_fetches_take_the_delay_of_their_way() {
    let both = ["probe", "fetch"].map(|kind| traffic(kind, "sofa", "far") + &traffic(kind, "far", "sofa")).concat();
    let record = simulate(&parse(&scenario(&both)), "cubic", 1);
    for way in ["sofa to far", "far to sofa"] {
        let delay = stream(&record, &format!("probe {way}"), Key::ProbeDelayP95);
        // 20 ms, and at most a burst of the fetches before it.
        assert!((20.0..45.0).contains(&delay), "{way}: {delay} ms one way");
        // A handshake, a request, and slow start of 100 kB: five round trips and 80 ms of serialisation at most.
        let fetch = stream(&record, &format!("fetch {way}"), Key::FetchP50);
        assert!((160.0..330.0).contains(&fetch), "{way}: {fetch} ms");
    }
}

#[test]
fn each_host_of_a_radio_hop_takes_its_time() {
    let delay = |own: &str| {
        let hop = format!(
            "[hop.wifi]\nstandard = \"802.11a\"\nhost-delay = \"{own}\"\nqueue = {{ kind = \"fifo\", limit = \"100 packets\" }}\n"
        );
        let stations = ["sofa", "desk"].map(|name| format!("[[station]]\nname = \"{name}\"\nrate = \"54 Mbit/s\"\n"));
        let text = format!(
            "title = \"Hosts\"\nduration = \"10 s\"\nwarm-up = \"2 s\"\n[wire]\nrate = \"1 Gbit/s\"\ndelay = \"5 ms\"\n{hop}{}{}\
             [laws.cubic]\nsender = \"cubic\"\n",
            stations.concat(),
            traffic("probe", "sofa", "desk"),
        );
        stream(&simulate(&parse(&text), "cubic", 1), "probe sofa to desk", Key::ProbeDelayP95)
    };
    // The access point sends the packet on, and the other station takes it: two hosts.
    let (none, usual, long) = (delay("0 s"), delay("20 us"), delay("5 ms"));
    assert!((none + 9.9..none + 10.1).contains(&long), "{none} and {long} ms");
    assert!(usual > none, "{none} and {usual} ms: besides two host delays, the access point draws a backoff");
}

#[test]
fn a_call_is_no_download_and_has_figures_of_its_own() {
    let call = traffic("udp", "server", "each") + "rate = \"500 kbit/s\"\nsize = \"1100 B\"\n";
    let text = scenario(&(traffic("bulk", "server", "each") + &call));
    let record = simulate(&parse(&text), "cubic", 1);
    let (total, udp) = (value(&record, Key::Throughput), value(&record, Key::UdpThroughput));
    assert!(value(&record, Key::Jain) > 0.99);
    // 1100 of 1128 octets of each packet are payload.
    assert!((udp - 2.0 * 0.5 * 1100.0 / 1128.0).abs() < 0.05, "{udp} Mbit/s of UDP beside {total}");
    assert!((17.0..18.5).contains(&total), "{total}");
    let queue = value(&record, Key::HopDelayP95);
    let delay = value(&record, Key::UdpDelayP95);
    assert!(delay > 5.0 && delay < queue + 40.0, "{delay} ms beside a queue of {queue}");
    assert!(value(&record, Key::UdpLossRatio) < 0.05);
    assert!(stream(&record, "udp server to sofa", Key::UdpJitter) > 0.0);
}

#[test]
fn equal_sources_share_a_full_queue() {
    // Three loads of 8 Mbit/s to one station with a cable that carries 10.
    let one = traffic("udp", "server", "sofa") + "rate = \"8 Mbit/s\"\n";
    let record = simulate(&parse(&scenario(&one.repeat(3))), "cubic", 1);
    for name in ["udp server to sofa", "udp server to sofa #2", "udp server to sofa #3"] {
        let rate = stream(&record, name, Key::UdpThroughput);
        assert!((2.9..3.7).contains(&rate), "{name}: {rate} of 3.3 Mbit/s");
    }
}

#[test]
fn a_route_of_the_file_is_taken() {
    // A second way from the server to the far host, slow and direct.
    let detour = "[[link]]\nbetween = [\"server\", \"far\"]\nrate = \"1 Mbit/s\"\n";
    let routes = "[[route]]\nat = \"server\"\nto = \"far\"\nvia = \"ap\"\n";
    let text = scenario(&(traffic("bulk", "server", "far") + detour));
    let direct = value(&simulate(&parse(&text), "cubic", 1), Key::Throughput);
    let routed = value(&simulate(&parse(&(text + routes)), "cubic", 1), Key::Throughput);
    assert!(direct < 1.0 && routed > 30.0, "{direct} and {routed} Mbit/s");
}
