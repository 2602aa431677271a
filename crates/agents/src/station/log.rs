//! The station's log: one JSON object for every slot, or every so often one on its cell. What they hold: docs/reference/logs.md.

use super::cell::Cell;
use crate::service::clock;
use crate::service::latency_histogram::LatencyHistogram;
use crate::service::log::Log;
use lasthop_laws::observation::{Account, Delays};
use lasthop_signals::StationFeedback;
use lasthop_transport::tunnel::{ClockOffset, Endpoint};
use lasthop_units::{Rate, Span, Time};
use serde::Serialize;

pub(super) fn slot(
    log: &mut Log,
    now: Time,
    told: &StationFeedback,
    monitor_missed: Option<u64>,
    [hop, data]: [&LatencyHistogram; 2],
    clock: Option<ClockOffset>,
) {
    log.line(&Account {
        at: clock::monotonic(now),
        told: *told,
        mean_packets: told.mean_packets(),
        monitor_missed,
        hop_delay: delays(hop),
        data_delay: delays(data),
        clock_ahead_us: clock.map(|clock| clock.ahead as f64 / 1e3),
        clock_error_us: clock.map(|clock| clock.error.as_nanos() as f64 / 1e3),
    });
}

/// What a station tells of its cell, and what comes of it.
#[derive(Serialize)]
struct Line {
    #[serde(rename = "t_ns")]
    at: Time,
    available_bps: Rate,
    fair_bps: Rate,
    elsewhere: bool,
    restart: bool,
    coarse: bool,
    subframes: u64,
    unread: u64,
    received: u64,
    round_trip_ns: Option<Span>,
    hop_delay: Delays,
    data_delay: Delays,
    clock_ahead_us: Option<f64>,
    clock_error_us: Option<f64>,
}

/// A line on the cell.
pub(super) fn cell(log: &mut Log, now: Time, cell: &Cell, endpoint: &Endpoint, [hop, data]: [&LatencyHistogram; 2]) {
    let (told, (subframes, unread), clock) = (cell.told(), cell.counts(), endpoint.clock_offset(now));
    log.line(&Line {
        at: clock::monotonic(now),
        available_bps: told.available,
        fair_bps: told.fair,
        elsewhere: told.elsewhere,
        restart: told.restart,
        coarse: told.coarse,
        subframes,
        unread,
        received: endpoint.arrived().0,
        round_trip_ns: endpoint.latest_round_trip(),
        hop_delay: delays(hop),
        data_delay: delays(data),
        clock_ahead_us: clock.map(|clock| clock.ahead as f64 / 1e3),
        clock_error_us: clock.map(|clock| clock.error.as_nanos() as f64 / 1e3),
    });
}

fn delays(histogram: &LatencyHistogram) -> Delays {
    let us = |span: Option<Span>| span.map(|span| span.as_nanos() as f64 / 1e3);
    Delays {
        count: histogram.count(),
        mean_us: us(histogram.mean()),
        p50_us: us(histogram.quantile(0.5)),
        p95_us: us(histogram.quantile(0.95)),
        p99_us: us(histogram.quantile(0.99)),
        max_us: us(histogram.largest()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documented::{STATION, STATION_CELL, lines, lists_exactly};
    use crate::pbe::Logs;
    use crate::service::poll::Poll;
    use lasthop_signals::{Node, Rnti};
    use lasthop_transport::tunnel::Config;
    use serde_json::json;

    #[test]
    fn the_page_on_logs_lists_every_field_and_no_other() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("station.log");
        let mut log = Log::create(&path, |_| {}).expect("writable");
        let (start, mut histogram) = (Time::from_nanos(1_000_000_000_000), LatencyHistogram::default());
        histogram.add(Span::from_millis(2));
        let end = start + Span::from_millis(500);
        let feedback = StationFeedback::empty(Node(1), 7, start, end);
        let clock = ClockOffset { ahead: -1, error: Span::from_micros(3) };
        slot(&mut log, end, &feedback, Some(0), [&histogram, &histogram], Some(clock));
        assert!(log.finish().is_none());
        let lines = lines(&path);
        assert_eq!(lines.len(), 1);
        lists_exactly(STATION, &lines[0]);
    }

    #[test]
    fn the_page_on_logs_lists_every_field_of_a_cell_and_no_other() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("station.log");
        let mut log = Log::create(&path, |_| {}).expect("writable");
        let poll = Poll::new().expect("epoll");
        let logs = Logs {
            files: vec![folder.path().join("dci")],
            prb: vec![50],
            slots: None,
            rnti: Rnti(100),
            window: Span::from_millis(1),
        };
        let now = Time::from_nanos(1_000_000_000_000);
        let told = Cell::open(&logs, now, &poll, 0, |_| {}).expect("a log that may come later");
        cell(
            &mut log,
            now,
            &told,
            &Endpoint::new(Config::station()),
            [&LatencyHistogram::default(), &LatencyHistogram::default()],
        );
        assert!(log.finish().is_none());
        let lines = lines(&path);
        assert_eq!((lines.len(), &lines[0]["available_bps"], &lines[0]["coarse"]), (1, &json!(0), &json!(true)));
        lists_exactly(STATION_CELL, &lines[0]);
    }
}
