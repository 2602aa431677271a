//! The station's log: one JSON object for every slot. What it holds: docs/reference/logs.md.

use crate::tunnel::clock;
use crate::tunnel::log::Log;
use crate::tunnel::spread::Spread;
use lasthop_laws::observation::{Account, Delays};
use lasthop_signals::StationFeedback;
use lasthop_transport::tunnel::ClockOffset;
use lasthop_units::{Span, Time};

pub(super) fn slot(
    log: &mut Log,
    now: Time,
    told: &StationFeedback,
    monitor_missed: Option<u64>,
    [hop, data]: [&Spread; 2],
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

fn delays(spread: &Spread) -> Delays {
    let us = |span: Option<Span>| span.map(|span| span.as_nanos() as f64 / 1e3);
    Delays {
        count: spread.count(),
        mean_us: us(spread.mean()),
        p50_us: us(spread.quantile(0.5)),
        p95_us: us(spread.quantile(0.95)),
        p99_us: us(spread.quantile(0.99)),
        max_us: us(spread.largest()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documented::{STATION, lines, lists_exactly};
    use lasthop_signals::Node;

    #[test]
    fn the_page_on_logs_lists_every_field_and_no_other() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("station.log");
        let mut log = Log::create(&path, |_| {}).expect("writable");
        let (start, mut spread) = (Time::from_nanos(1_000_000_000_000), Spread::default());
        spread.add(Span::from_millis(2));
        let end = start + Span::from_millis(500);
        let feedback = StationFeedback::empty(Node(1), 7, start, end);
        let clock = ClockOffset { ahead: -1, error: Span::from_micros(3) };
        slot(&mut log, end, &feedback, Some(0), [&spread, &spread], Some(clock));
        assert!(log.finish().is_none());
        let lines = lines(&path);
        assert_eq!(lines.len(), 1);
        lists_exactly(STATION, &lines[0]);
    }
}
