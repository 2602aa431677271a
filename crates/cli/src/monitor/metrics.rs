//! What a Prometheus server reads of the connections.
//!
//! Totals are of all connections. A connection has series of its own if it passes the filter, and if there are no more than
//! [`MOST`] that are older: a host that opens thousands of connections a minute must not fill the server with series.

use crate::metrics::Exporter;
use lasthop_agents::host::{Limit, Reading, Totals};
use lasthop_wire::tcp_info::CaState;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;
use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;

/// Connections that have series of their own at most.
const MOST: usize = 200;

/// What the latest look has seen.
#[derive(Default)]
pub struct Seen {
    all: Vec<Option<Limit>>,
    shown: Vec<Reading>,
    totals: Totals,
}

type Labels = Vec<(&'static str, String)>;
type Numbers = Family<Labels, Gauge<f64, AtomicU64>>;

/// Takes the address.
pub fn bind(address: SocketAddr) -> anyhow::Result<Exporter<Seen>> {
    Exporter::bind(address, "lasthop", add)
}

impl Seen {
    /// All connections, and those that are shown.
    pub fn new<'a>(all: &[Reading], shown: impl Iterator<Item = &'a Reading>, totals: Totals) -> Seen {
        let all = all.iter().map(|reading| reading.recent.and_then(|recent| recent.limit)).collect();
        Seen { all, shown: shown.copied().collect(), totals }
    }
}

fn add(seen: &Seen, registry: &mut Registry) {
    add_totals(registry, seen);
    let mut oldest: Vec<&Reading> = seen.shown.iter().collect();
    oldest.sort_by_key(|reading| reading.socket.cookie);
    oldest.truncate(MOST);
    add_connections(registry, &oldest);
}
fn add_totals(registry: &mut Registry, seen: &Seen) {
    let count = |number: usize| ConstGauge::new(i64::try_from(number).unwrap_or(i64::MAX));
    registry.register("connections", "TCP connections of this network namespace", count(seen.all.len()));
    let without = "Connections that pass the filter and are too many";
    registry.register("connections_without_series", without, count(seen.shown.len().saturating_sub(MOST)));
    let limits = Family::<Labels, Gauge>::default();
    for limit in Limit::ALL {
        let count = seen.all.iter().filter(|of| **of == Some(limit)).count();
        limits.get_or_create(&vec![("by", limit.name().to_owned())]).set(i64::try_from(count).unwrap_or(i64::MAX));
    }
    registry.register("connections_limited", "Connections by what held them back between the latest looks", limits);
    let Totals { sent, received, retransmitted, .. } = seen.totals;
    let counters = [
        ("sent_bytes", "Payload acknowledged since the monitor began", sent.get()),
        ("received_bytes", "Payload received since the monitor began", received.get()),
        ("retransmitted_packets", "Segments sent again since the monitor began", retransmitted),
    ];
    counters.into_iter().for_each(|(name, help, value)| registry.register(name, help, ConstCounter::new(value)));
}

fn add_connections(registry: &mut Registry, readings: &[&Reading]) {
    let labels = |reading: &Reading| -> Labels {
        let socket = &reading.socket;
        vec![
            ("local", socket.local.to_string()),
            ("peer", socket.peer.to_string()),
            ("cc", socket.congestion_control.as_str().to_owned()),
        ]
    };
    let mut add = |name: &str, help: &str, of: &dyn Fn(&Reading) -> Option<f64>| {
        let family = Numbers::default();
        for reading in readings {
            if let Some(value) = of(reading) {
                family.get_or_create(&labels(reading)).set(value);
            }
        }
        registry.register(format!("connection_{name}"), help, family);
    };
    add("cwnd_packets", "Congestion window", &|r| Some(r.info.cwnd.into()));
    add("in_flight_packets", "Segments in the network", &|r| Some(r.info.in_flight().into()));
    add("rtt_seconds", "Smoothed round-trip time", &|r| r.info.rtt.map(|rtt| rtt.as_secs_f64()));
    add("min_rtt_seconds", "Smallest recent round-trip time", &|r| r.info.min_rtt.map(|rtt| rtt.as_secs_f64()));
    add("unsent_bytes", "Payload that waits to be sent", &|r| r.info.notsent.map(|unsent| unsent.get() as f64));
    add("pacing_bits_per_second", "Pacing rate", &|r| r.info.pacing_rate.map(|rate| rate.as_bps() as f64));
    add("delivery_bits_per_second", "Latest sample", &|r| r.info.delivery_rate.map(|rate| rate.as_bps() as f64));
    let mut add = |name: &str, help: &str, of: &dyn Fn(&Reading) -> Option<u64>| {
        let family = Family::<Labels, Counter>::default();
        for reading in readings {
            if let Some(value) = of(reading) {
                family.get_or_create(&labels(reading)).inc_by(value);
            }
        }
        registry.register(format!("connection_{name}"), help, family);
    };
    add("sent_bytes", "Payload acknowledged", &|r| r.info.bytes_acked.map(|bytes| bytes.get()));
    add("received_bytes", "Payload received", &|r| r.info.bytes_received.map(|bytes| bytes.get()));
    add("retransmitted_packets", "Segments sent again", &|r| Some(r.info.total_retrans.into()));
    let entries = |state: CaState| move |r: &Reading| r.entries.map(|entries| entries.of(state).into());
    add("recovery_entries", "Entries into Recovery since the monitor began", &entries(CaState::Recovery));
    add("loss_entries", "Entries into Loss since the monitor began", &entries(CaState::Loss));
}

#[cfg(test)]
mod tests {
    use super::super::view::tests::readings;
    use super::*;
    use crate::metrics::text;
    use lasthop_units::Bytes;
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

    fn seen(shown: Vec<Reading>) -> Seen {
        let all = readings(4).iter().map(|reading| reading.recent.and_then(|recent| recent.limit)).collect();
        Seen { all, shown, totals: Totals { sent: Bytes::new(77), ..Totals::default() } }
    }

    #[test]
    fn connections_and_totals_are_told() {
        let text = text("lasthop", &seen(readings(4)), add);
        for line in [
            "lasthop_connections 4",
            "lasthop_connections_without_series 0",
            "lasthop_connections_limited{by=\"network\"} 1",
            "lasthop_connections_limited{by=\"pacing\"} 0",
            "lasthop_sent_bytes_total 77",
            "lasthop_connection_cwnd_packets{local=\"10.20.130.140:54321\",peer=\"198.51.100.200:443\",cc=\"bbr\"} 1234.0",
            "lasthop_connection_rtt_seconds{local=\"127.0.0.1:631\",peer=\"127.0.0.1:40112\",cc=\"cubic\"} 0.000042",
        ] {
            assert!(text.lines().any(|found| found == line), "no `{line}` in\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn only_so_many_connections_have_series() {
        let one = readings(4)[0];
        let many = (0..MOST as u64 + 30).rev().map(|cookie| {
            let mut reading = one;
            reading.socket.cookie = cookie;
            reading.socket.local.set_port(1000 + cookie as u16);
            reading
        });
        let text = text("lasthop", &seen(many.collect()), add);
        assert_eq!(text.matches("lasthop_connection_cwnd_packets{").count(), MOST);
        // The oldest stay, so that series do not come and go.
        assert!(text.contains("local=\"127.0.0.1:1000\"") && !text.contains("local=\"127.0.0.1:1200\""));
        assert!(text.contains("lasthop_connections_without_series 30\n"));
    }

    #[test]
    fn what_was_published_last_is_served() {
        let exporter = bind(SocketAddr::from(([127, 0, 0, 1], 0))).and_then(Exporter::begin).expect("loopback");
        let address = exporter.address().expect("bound");
        let readings = readings(4);
        exporter.publish(Seen::new(&readings, readings[..1].iter(), Totals::default()));
        let mut stream = TcpStream::connect(address).expect("listening");
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("connected");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer, and the end");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert_eq!(answer.matches("lasthop_connection_cwnd_packets{").count(), 1);
        let taken = bind(address).expect_err("taken");
        assert!(format!("{taken:#}").starts_with(&format!("--listen {address}")), "{taken:#}");
    }
}
