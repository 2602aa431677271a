//! What a Prometheus server reads of an access point's agent.

use crate::metrics;
use lasthop_agents::ap::abi::Counters;
use lasthop_agents::ap::{Tally, status::State};
use lasthop_agents::service::status::Status;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;
use std::sync::atomic::AtomicU64;

type Labels = Vec<(&'static str, String)>;

/// Registers the metrics.
pub fn add(status: &Status<State>, registry: &mut Registry) {
    metrics::add(status, &[Tally::MEANINGS, Counters::MEANINGS].concat(), registry);
    let state = &status.state;
    registry.register("heard_seconds", "Time since a report was acted on", ConstGauge::new(state.heard_s));
    let silent = "1 while the driver is silent and no window is lowered";
    registry.register("driver_lost", silent, ConstGauge::new(f64::from(u8::from(state.driver_lost))));
    let shadow = "1 if nothing is changed, and orders are those that would be given";
    registry.register("shadow", shadow, ConstGauge::new(f64::from(u8::from(state.shadow))));
    let waits = "Packets that wait in queues which all stations share";
    registry.register("shared_backlog_packets", waits, ConstGauge::new(state.shared_backlog_packets as f64));
    let flows = Family::<Labels, Gauge>::default();
    let counts = [
        ("tight", state.flows.tight),
        ("ceiling", state.flows.ceiling),
        ("free", state.flows.free),
        ("resting", state.resting),
    ];
    for (state, count) in counts {
        flows.get_or_create(&vec![("state", state.to_owned())]).set(i64::try_from(count).unwrap_or(i64::MAX));
    }
    registry.register("flows", "TCP connections by what is done to them", flows);
    if let Some(model) = &state.model {
        let decides = Family::<Labels, Gauge>::default();
        for decider in ["learned", "given", "rule"] {
            let labels = vec![("decider", decider.to_owned())];
            decides.get_or_create(&labels).set(i64::from(decider == model.decider));
        }
        registry.register("model_decides", "1 for what decides: the learned tree, a given one, or none", decides);
        let age = "Time since the newest item of the learned tree ended; absent before the first tree";
        if let Some(seconds) = model.age_s {
            registry.register("model_age_seconds", age, ConstGauge::new(seconds));
        }
        let limit = "Age from which on the learned tree does not decide";
        registry.register("model_age_limit_seconds", limit, ConstGauge::new(model.age_limit_s));
        registry.register("model_items", "Items to learn from that were made", ConstCounter::new(model.items));
    }
    let backlog = Family::<Labels, Gauge>::default();
    let (drops, rate) = (Family::<Labels, Counter>::default(), Family::<Labels, Gauge<f64, AtomicU64>>::default());
    for station in &state.stations {
        let labels = vec![("station", station.station.to_string())];
        backlog.get_or_create(&labels).set(i64::from(station.backlog_packets));
        drops.get_or_create(&labels).inc_by(station.queue_drops);
        rate.get_or_create(&labels).set(station.phy_rate_mbit_s * 1e6);
    }
    registry.register("station_backlog_packets", "Packets that wait for a station", backlog);
    registry.register("station_queue_drops", "Packets that a station's queue refused", drops);
    registry.register("station_phy_rate_bits_per_second", "PHY rate towards a station; 0 if it is not known", rate);
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_agents::ap::status::{Flows, ModelStatus, StationStatus};
    use serde_json::json;

    #[test]
    fn a_status_is_served_with_its_stations() {
        let station = StationStatus { station: 3, backlog_packets: 17, queue_drops: 4, ..StationStatus::default() };
        let state = State {
            flows: Flows { tight: 2, ..Flows::default() },
            stations: vec![station],
            model: Some(ModelStatus { decider: "learned".to_owned(), age_s: Some(2.5), ..ModelStatus::default() }),
            ..State::default()
        };
        let done = json!({"orders": 9, "refused_reports": 3, "longest_work_us": 1.5, "evicted": 1});
        let done = done.as_object().cloned().expect("an object");
        let text = metrics::text("lasthop_ap", &Status { state, done, ..Status::default() }, add);
        for line in [
            "lasthop_ap_flows{state=\"tight\"} 2",
            "lasthop_ap_station_backlog_packets{station=\"3\"} 17",
            "lasthop_ap_station_queue_drops_total{station=\"3\"} 4",
            "lasthop_ap_orders_total 9",
            "lasthop_ap_reports_refused_total 3",
            "lasthop_ap_longest_work_us 1.5",
            "lasthop_ap_evicted_total 1",
            "# HELP lasthop_ap_orders Targets that were set or lifted.",
            "lasthop_ap_model_decides{decider=\"learned\"} 1",
            "lasthop_ap_model_decides{decider=\"rule\"} 0",
            "lasthop_ap_model_age_seconds 2.5",
        ] {
            assert!(text.lines().any(|one| one == line), "{line} is not in:\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }
}
