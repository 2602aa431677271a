//! The decision log: one JSON object a line, enough to replay the law and to plot every flow's window.
//!
//! What each line holds: docs/reference/logs.md.

use super::Error;
use super::abi::Key;
use lasthop_laws::Decision;
use lasthop_signals::{FlowReport, HopReport, StationReport};
use lasthop_units::{Bytes, Time};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// An open log. A write that fails ends the log, not the agent.
pub(super) struct Log {
    path: PathBuf,
    out: BufWriter<File>,
    failed: Option<io::Error>,
}

/// One flow in one interval.
pub(super) struct FlowLine {
    pub report: FlowReport,
    pub window: Option<Bytes>,
    pub decision: Decision,
}

impl Log {
    /// # Errors
    /// [`Error::Log`] if the file cannot be made.
    pub(super) fn create(path: &Path) -> Result<Log, Error> {
        let file = File::create(path).map_err(|source| Error::Log { path: path.to_owned(), source })?;
        Ok(Log { path: path.to_owned(), out: BufWriter::with_capacity(1 << 16, file), failed: None })
    }

    pub(super) fn opened(&mut self, now: Time, key: &Key, report: &FlowReport) {
        let flow = key.downlink();
        let end = |address, port| std::net::SocketAddr::new(address, port).to_string();
        self.line(&json!({ "t_ns": now.as_nanos(), "opened": {
            "flow": report.flow.0,
            "station": report.station.0,
            "station_address": end(flow.destination, flow.destination_port),
            "remote": end(flow.source, flow.source_port),
        }}));
    }

    pub(super) fn gone(&mut self, now: Time, flow: lasthop_signals::FlowId) {
        self.line(&json!({ "t_ns": now.as_nanos(), "gone": flow.0 }));
    }

    pub(super) fn driver(&mut self, now: Time, state: &str) {
        self.line(&json!({ "t_ns": now.as_nanos(), "driver": state }));
    }

    pub(super) fn interval(&mut self, now: Time, hop: &HopReport, flows: &[FlowLine]) {
        let flows: Vec<Value> = flows.iter().map(flow_value).collect();
        self.line(&json!({ "t_ns": now.as_nanos(), "hop": hop_value(hop), "flows": flows }));
    }

    /// Writes everything out; gives the first error that there was, with the log's path.
    pub(super) fn finish(mut self) -> Option<Error> {
        let flushed = self.out.flush();
        let source = self.failed.take().or(flushed.err())?;
        Some(Error::Log { path: self.path, source })
    }

    fn line(&mut self, value: &Value) {
        if self.failed.is_some() {
            return;
        }
        let written = serde_json::to_writer(&mut self.out, value).map_err(io::Error::from);
        if let Err(error) = written.and_then(|()| self.out.write_all(b"\n")) {
            self.failed = Some(error);
        }
    }
}

fn flow_value(line: &FlowLine) -> Value {
    let FlowLine { report, window, decision } = line;
    json!({
        "flow": report.flow.0,
        "station": report.station.0,
        "forwarded": report.forwarded.get(),
        "acked": report.acked.get(),
        "in_flight": report.in_flight.get(),
        "wired_rtt_ns": report.wired_rtt.map(|rtt| rtt.as_nanos()),
        "wireless_rtt_ns": report.wireless_rtt.map(|rtt| rtt.as_nanos()),
        "mss": report.mss.get(),
        "advertised": report.advertised.get(),
        "last_data_ns": report.last_data.as_nanos(),
        "recovering": report.recovering,
        "window": window.map(Bytes::get),
        "target": decision.rwnd.map(Bytes::get),
        "why": format!("{:?}", decision.why),
    })
}

fn hop_value(hop: &HopReport) -> Value {
    let stations: Vec<Value> = hop.stations.iter().map(station_value).collect();
    json!({
        "active_ns": hop.channel.active.as_nanos(),
        "busy_ns": hop.channel.busy.as_nanos(),
        "rx_ns": hop.channel.rx.as_nanos(),
        "tx_ns": hop.channel.tx.as_nanos(),
        "stations": stations,
    })
}

fn station_value(station: &StationReport) -> Value {
    json!({
        "station": station.station.0,
        "backlog_packets": station.backlog_packets,
        "backlog_bytes": station.backlog_bytes.get(),
        "head_wait_ns": station.head_wait.as_nanos(),
        "queue_drops": station.queue_drops,
        "tx_attempts": station.tx_attempts,
        "tx_retries": station.tx_retries,
        "tx_failed": station.tx_failed,
        "tx_packets": station.tx_packets,
        "tx_bytes": station.tx_bytes.get(),
        "rx_packets": station.rx_packets,
        "rx_bytes": station.rx_bytes.get(),
        "tx_airtime_ns": station.tx_airtime.as_nanos(),
        "rx_airtime_ns": station.rx_airtime.as_nanos(),
        "tx_ppdus": station.tx_ppdus,
        "phy_rate_bps": station.phy_rate.as_bps(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documented::{AP_DRIVER, AP_GONE, AP_INTERVAL, AP_OPENED, lines, lists_exactly};
    use lasthop_laws::Why;
    use lasthop_signals::{FlowId, Node};
    use lasthop_units::Span;
    use lasthop_wire::FlowKey;

    #[test]
    fn the_page_on_logs_lists_every_field_and_no_other() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("ap.log");
        let mut log = Log::create(&path).expect("writable");
        let (flow, station, now) = (FlowId(0), Node(1), Time::from_nanos(1));
        let report = FlowReport {
            flow,
            station,
            forwarded: Bytes::new(1),
            acked: Bytes::new(1),
            in_flight: Bytes::ZERO,
            wired_rtt: Some(Span::from_millis(20)),
            wireless_rtt: Some(Span::from_millis(2)),
            mss: Bytes::new(1448),
            advertised: Bytes::new(65_536),
            last_data: now,
            recovering: false,
        };
        let between = FlowKey {
            source: [192, 0, 2, 1].into(),
            destination: [10, 0, 0, 2].into(),
            source_port: 443,
            destination_port: 50_000,
            protocol: lasthop_wire::ip::TCP,
        };
        let window = Some(Bytes::new(30_000));
        let decision = Decision { rwnd: window, ..Decision::unlimited(Why::Tight) };
        let hop = HopReport { stations: vec![StationReport::unseen(station)], ..HopReport::default() };
        log.opened(now, &Key::of_downlink(&between).expect("a TCP flow"), &report);
        log.interval(now, &hop, &[FlowLine { report, window, decision }]);
        log.gone(now, flow);
        log.driver(now, "lost");
        assert!(log.finish().is_none());
        let lines = lines(&path);
        assert_eq!(lines[0]["opened"]["station_address"], "10.0.0.2:50000");
        let kinds = [AP_OPENED, AP_INTERVAL, AP_GONE, AP_DRIVER];
        assert_eq!(lines.len(), kinds.len());
        kinds.iter().zip(&lines).for_each(|(kind, line)| lists_exactly(kind, line));
    }
}
