//! How many of the packets that the radio gave up were TCP's: a driver counts all of a station's.
//! Source:     \[oal\] takes MAC losses off the total; here only those of the flow's own data.
//! Equations:  entered = delivered + given up + dropped + waiting
//!             share = sum segments / sum entered      over the last moments, forgotten with time constant `MEMORY`
//! Symbols:    segments -> data of TCP that was forwarded to the station, repeats included
//! Deviations: the driver does not tell which packet it gave up: the share of TCP is taken to be that of what entered.
//! Validity:   a station that has queues of its own; otherwise `entered` lags by what waits before the driver.
//! Checked by: tests::*, crates/sim/tests/integration/oal_labels.rs

use lasthop_signals::{Node, Segment, StationReport, Way};
use lasthop_units::{Span, Time};
use std::collections::BTreeMap;

/// Long enough that an aggregate in the air, which has left the queue and has not arrived, is little beside what enters.
const MEMORY: Span = Span::from_secs(2);
/// To the nearest: most of a packet is told at once, and not when the next one fails. Losses pair off with what failed about then.
const HALF: f64 = 0.5;

/// What the radio gives up, by station.
#[derive(Clone, Debug, Default)]
pub struct GivenUp {
    stations: BTreeMap<Node, Station>,
    /// Segments of TCP that were forwarded since a station's last report.
    passed: BTreeMap<Node, u64>,
}

#[derive(Clone, Copy, Debug)]
struct Station {
    at: Time,
    entered: u64,
    failed: u64,
    /// Lately: all that entered, and segments of TCP.
    recent: (f64, f64),
    /// The part of a packet that has not been told.
    rest: f64,
}

impl GivenUp {
    /// A segment passes.
    pub fn segment(&mut self, segment: &Segment) {
        if segment.way == Way::Down && segment.len > 0 {
            *self.passed.entry(segment.station).or_default() += u64::from(segment.count.max(1));
        }
    }

    /// TCP's among the packets that the radio has given up since the station's last report. A driver that does not count tells none.
    pub fn since_last(&mut self, now: Time, report: &StationReport) -> u64 {
        let segments = self.passed.remove(&report.station).unwrap_or(0);
        let Some(failed) = report.tx_failed else { return 0 };
        let counted = [failed, report.queue_drops, u64::from(report.backlog_packets)];
        let entered = counted.into_iter().fold(report.tx_packets, u64::saturating_add);
        let began = Station { at: now, entered, failed, recent: (0.0, 0.0), rest: HALF };
        let station = self.stations.entry(report.station).or_insert(began);
        let forgotten = (-now.since(station.at).as_secs_f64() / MEMORY.as_secs_f64()).exp();
        let (all, tcp) = station.recent;
        let grown = entered.saturating_sub(station.entered);
        station.recent = (all * forgotten + grown as f64, tcp * forgotten + segments as f64);
        let share = if station.recent.0 > 0.0 { (station.recent.1 / station.recent.0).min(1.0) } else { 1.0 };
        let owed = station.rest + failed.saturating_sub(station.failed) as f64 * share;
        (station.at, station.entered, station.failed, station.rest) = (now, entered, failed, owed.fract());
        owed as u64
    }

    /// Only these stations are there still.
    pub fn retain(&mut self, is_there: impl Fn(Node) -> bool) {
        self.stations.retain(|station, _| is_there(*station));
        self.passed.retain(|station, _| is_there(*station));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_signals::{FlowId, SackRanges};

    fn pass(air: &mut GivenUp, segments: u64) {
        let (flow, sack) = (FlowId(1), SackRanges::EMPTY);
        let one = Segment { flow, station: Node(1), way: Way::Down, seq: 0, len: 1448, count: 1, ack: 0, sack };
        (0..segments).for_each(|_| air.segment(&one));
    }

    /// A second in which a station is sent 1000 packets of which `tcp` are TCP's, a tenth of all fails, and some always wait.
    fn told(tcp: u64) -> u64 {
        let mut air = GivenUp::default();
        let each = |tick: u64| {
            let entered = 4 * tick;
            let failed = entered / 10;
            let waits = (entered - failed).min(40);
            let report = StationReport {
                tx_failed: Some(failed),
                tx_packets: entered - failed - waits,
                backlog_packets: waits as u32,
                ..StationReport::unseen(Node(1))
            };
            pass(&mut air, tcp * u64::from(tick > 0) * 4 / 1000);
            air.since_last(Time::from_nanos(4_000_000 * (1 + tick)), &report)
        };
        (0..=250).map(each).sum()
    }

    #[test]
    fn of_what_fails_tcp_has_its_share() {
        assert_eq!([1000, 0].map(told), [100, 0]);
        let three_quarters = told(750);
        assert!((74..=76).contains(&three_quarters), "{three_quarters}");
    }

    #[test]
    fn a_single_packet_is_told_when_it_fails() {
        let mut air = GivenUp::default();
        let mut told = |tick: u64| {
            let report = StationReport {
                tx_failed: Some(tick / 100),
                tx_packets: 10 * tick - tick / 100,
                ..StationReport::unseen(Node(1))
            };
            // One datagram in a hundred.
            pass(&mut air, if tick % 10 == 5 { 9 } else { 10 });
            air.since_last(Time::from_nanos(4_000_000 * (1 + tick)), &report)
        };
        let all: Vec<u64> = (0..=500).map(&mut told).collect();
        let failed = |tick: usize| u64::from(tick > 0 && tick.is_multiple_of(100));
        assert_eq!(all, (0..=500).map(failed).collect::<Vec<_>>());
    }

    #[test]
    fn who_does_not_count_and_who_counts_anew_tells_none() {
        let mut air = GivenUp::default();
        let report = |failed| StationReport { tx_failed: failed, tx_packets: 50, ..StationReport::unseen(Node(1)) };
        let mut at = 0;
        let mut told = |failed| {
            at += 4_000_000;
            pass(&mut air, 10);
            air.since_last(Time::from_nanos(at), &report(failed))
        };
        assert_eq!([None, Some(7), Some(9), Some(1), Some(2)].map(&mut told), [0, 0, 2, 0, 1]);
        air.retain(|_| false);
        assert!(air.stations.is_empty());
    }
}
