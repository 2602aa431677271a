//! The decision log: one JSON object a line, enough to replay the law and to plot every flow's window.
//!
//! What each line holds: docs/reference/logs.md.

use super::abi::Key;
use crate::service::{Error, log};
use lasthop_laws::observation::{Address, Driver, Flow, Gone, Interval, Missed, Opened};
use lasthop_signals::{FlowId, FlowReport, HopReport};
use lasthop_units::Time;
use std::path::Path;

/// An open log. A write that fails ends the log, not the agent.
pub(super) struct Log(log::Log);

impl Log {
    /// # Errors
    /// [`Error::Log`] if the file cannot be made.
    pub(super) fn create(path: &Path) -> Result<Log, Error> {
        log::Log::of_many_lines("decision log", path).map(Log)
    }

    pub(super) fn opened(&mut self, at: Time, key: &Key, report: &FlowReport) {
        let flow = key.downlink();
        let end = |address, port| std::net::SocketAddr::new(address, port).to_string();
        let opened = Address {
            flow: report.flow,
            station: report.station,
            station_address: end(flow.destination, flow.destination_port),
            remote: end(flow.source, flow.source_port),
        };
        self.0.line(&Opened { at, opened });
    }

    pub(super) fn gone(&mut self, at: Time, gone: FlowId) {
        self.0.line(&Gone { at, gone });
    }

    pub(super) fn driver(&mut self, at: Time, state: &str) {
        self.0.line(&Driver { at, driver: state.to_owned() });
    }

    pub(super) fn missed(&mut self, at: Time, events_missed: u64) {
        self.0.line(&Missed { at, events_missed });
    }

    pub(super) fn interval(&mut self, at: Time, hop: &HopReport, flows: Vec<Flow>) {
        self.0.line(&Interval { at, hop: hop.clone(), flows });
    }

    /// Writes everything out; gives the first error that there was, with the log's path.
    pub(super) fn finish(self) -> Option<Error> {
        self.0.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documented::{AP_DRIVER, AP_GONE, AP_INTERVAL, AP_MISSED, AP_OPENED, lines, lists_exactly};
    use lasthop_laws::Why;
    use lasthop_signals::{Node, QueueReport, StationReport};
    use lasthop_units::{Bytes, Span};
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
        let hop = HopReport {
            stations: vec![StationReport::unseen(station)],
            queues: vec![QueueReport::default()],
            ..HopReport::default()
        };
        log.opened(now, &Key::of_downlink(&between).expect("a TCP flow"), &report);
        log.interval(now, &hop, vec![Flow { report, window, target: window, why: Why::Tight }]);
        log.gone(now, flow);
        log.driver(now, "lost");
        log.missed(now, 3);
        assert!(log.finish().is_none());
        let lines = lines(&path);
        assert_eq!(lines[0]["opened"]["station_address"], "10.0.0.2:50000");
        let kinds = [AP_OPENED, AP_INTERVAL, AP_GONE, AP_DRIVER, AP_MISSED];
        assert_eq!(lines.len(), kinds.len());
        kinds.iter().zip(&lines).for_each(|(kind, line)| lists_exactly(kind, line));
    }
}
