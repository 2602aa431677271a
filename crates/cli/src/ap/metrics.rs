//! What a Prometheus server reads of an access point's agent.

use crate::http;
use anyhow::Context as _;
use lasthop_agents::ap::status::{Status, Viewer};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

/// Serves the status that was shown last.
#[derive(Debug)]
pub struct Exporter {
    listener: TcpListener,
    shown: Mutex<Status>,
}

type Labels = Vec<(&'static str, String)>;

impl Exporter {
    /// Takes the address.
    pub fn bind(address: SocketAddr) -> anyhow::Result<Exporter> {
        let listener = TcpListener::bind(address).with_context(|| format!("--listen {address}"))?;
        Ok(Exporter { listener, shown: Mutex::default() })
    }

    /// Where it listens.
    pub fn address(&self) -> anyhow::Result<SocketAddr> {
        self.listener.local_addr().context("--listen")
    }
}

impl Viewer for Exporter {
    fn serve(&self) {
        http::serve(&self.listener, &|| text(&self.shown.lock().unwrap_or_else(PoisonError::into_inner)));
    }

    fn show(&self, status: &Status) {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone_from(status);
    }
}

/// The metrics in the text format of OpenMetrics.
fn text(status: &Status) -> String {
    let mut registry = Registry::with_prefix("lasthop_ap");
    let gauge = |registry: &mut Registry, name: &str, help: &str, value: f64| {
        let gauge = Gauge::<f64, AtomicU64>::default();
        gauge.set(value);
        registry.register(name, help, gauge);
    };
    gauge(&mut registry, "running_seconds", "Time since the agent began", status.running_s);
    gauge(&mut registry, "heard_seconds", "Time since a report was acted on", status.heard_s);
    let silent = "1 while the driver is silent and no window is lowered";
    gauge(&mut registry, "driver_lost", silent, f64::from(u8::from(status.driver_lost)));
    let shadow = "1 if nothing is changed, and orders are those that would be given";
    gauge(&mut registry, "shadow", shadow, f64::from(u8::from(status.shadow)));
    let waits = "Packets that wait in queues which all stations share";
    gauge(&mut registry, "shared_backlog_packets", waits, status.shared_backlog_packets as f64);
    let flows = Family::<Labels, Gauge>::default();
    let counts = [
        ("tight", status.flows.tight),
        ("ceiling", status.flows.ceiling),
        ("free", status.flows.free),
        ("resting", status.resting),
    ];
    for (state, count) in counts {
        flows.get_or_create(&vec![("state", state.to_owned())]).set(i64::try_from(count).unwrap_or(i64::MAX));
    }
    registry.register("flows", "TCP connections by what is done to them", flows);
    let counter = |registry: &mut Registry, name: &str, help: &str, value: u64| {
        let counter = Counter::<u64>::default();
        counter.inc_by(value);
        registry.register(name, help, counter);
    };
    let done = &status.done;
    counter(&mut registry, "reports", "Reports that were acted on", done.intervals);
    counter(&mut registry, "reports_stale", "Reports that were too old when they came", done.stale_reports);
    counter(&mut registry, "reports_refused", "Reports that could not be true", done.refused_reports);
    counter(&mut registry, "driver_losses", "Times that the driver fell silent", done.driver_losses);
    counter(&mut registry, "flows_managed", "Connections that were taken on", done.flows);
    counter(&mut registry, "orders", "Windows that were ordered or lifted", done.orders);
    if let Some(model) = &status.model {
        let decides = Family::<Labels, Gauge>::default();
        for decider in ["learned", "given", "rule"] {
            let labels = vec![("decider", decider.to_owned())];
            decides.get_or_create(&labels).set(i64::from(decider == model.decider));
        }
        registry.register("model_decides", "1 for what decides: the learned tree, a given one, or none", decides);
        let age = "Time since the newest item of the learned tree ended; absent before the first tree";
        model.age_s.into_iter().for_each(|seconds| gauge(&mut registry, "model_age_seconds", age, seconds));
        let limit = "Age from which on the learned tree does not decide";
        gauge(&mut registry, "model_age_limit_seconds", limit, model.age_limit_s);
        counter(&mut registry, "model_items", "Items to learn from that were made", model.items);
    }
    let backlog = Family::<Labels, Gauge>::default();
    let (drops, rate) = (Family::<Labels, Counter>::default(), Family::<Labels, Gauge<f64, AtomicU64>>::default());
    for station in &status.stations {
        let labels = vec![("station", station.station.to_string())];
        backlog.get_or_create(&labels).set(i64::from(station.backlog_packets));
        drops.get_or_create(&labels).inc_by(station.queue_drops);
        rate.get_or_create(&labels).set(station.phy_rate_mbit_s * 1e6);
    }
    registry.register("station_backlog_packets", "Packets that wait for a station", backlog);
    registry.register("station_queue_drops", "Packets that a station's queue refused", drops);
    registry.register("station_phy_rate_bits_per_second", "PHY rate towards a station; 0 if it is not known", rate);
    let mut out = String::new();
    encode(&mut out, &registry).expect("a string takes everything");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_agents::ap::status::{Done, Flows, ModelStatus, StationStatus};

    #[test]
    fn a_status_is_served_with_its_stations() {
        let station = StationStatus { station: 3, backlog_packets: 17, queue_drops: 4, ..StationStatus::default() };
        let status = Status {
            flows: Flows { tight: 2, ..Flows::default() },
            stations: vec![station],
            model: Some(ModelStatus { decider: "learned".to_owned(), age_s: Some(2.5), ..ModelStatus::default() }),
            done: Done { orders: 9, ..Done::default() },
            ..Status::default()
        };
        let text = text(&status);
        for line in [
            "lasthop_ap_flows{state=\"tight\"} 2",
            "lasthop_ap_station_backlog_packets{station=\"3\"} 17",
            "lasthop_ap_station_queue_drops_total{station=\"3\"} 4",
            "lasthop_ap_orders_total 9",
            "lasthop_ap_model_decides{decider=\"learned\"} 1",
            "lasthop_ap_model_decides{decider=\"rule\"} 0",
            "lasthop_ap_model_age_seconds 2.5",
        ] {
            assert!(text.lines().any(|one| one == line), "{line} is not in:\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }
}
