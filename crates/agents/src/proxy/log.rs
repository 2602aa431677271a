//! The controller's log: one JSON object for every slot that a station has reported. What it holds: docs/reference/logs.md.

use super::control::Control;
use super::session::Session;
use crate::tunnel::clock;
use crate::tunnel::log::Log;
use lasthop_laws::observation::Slot;
use lasthop_signals::StationFeedback;
use lasthop_units::Time;

pub(super) fn slot(log: &mut Log, now: Time, control: &Control, session: &mut Session, feedback: &StationFeedback) {
    let decided = session.decided;
    let (size, unsent) = (session.path.size(), session.path.unsent().count);
    let endpoint = session.endpoint();
    let (unacknowledged, streams) = (endpoint.backlog().unacknowledged, endpoint.stream_count());
    let (min_rtt, srtt, lost_packets) = (endpoint.min_rtt(), endpoint.srtt(), endpoint.lost_packets());
    let stats = &session.stats;
    let micros = |q| stats.pacing.quantile(q).map(|span| span.as_nanos() as f64 / 1e3);
    log.line(&Slot {
        at: clock::monotonic(now),
        slot: feedback.slot,
        station: session.station,
        law: control.name().to_owned(),
        seen: control.observe(session.station),
        x_pps: decided.rate.as_bps() as f64 / 12_000.0,
        rate: decided.rate,
        why: decided.why,
        station_report: *feedback,
        sent_packets: stats.packets,
        sent_bytes: stats.octets,
        waiting: session.waiting,
        backlog_bytes: stats.backlog.get(),
        bound_bytes: stats.bound.get(),
        over_bound: f64::from(stats.over) / f64::from(stats.looks.max(1)),
        pacing_error_us_p50: micros(0.5),
        pacing_error_us_p99: micros(0.99),
        refused_reports: stats.doubted.count,
        refused_why: stats.doubted.why.map(|why| why.to_string()),
        unacknowledged_bytes: unacknowledged.get(),
        packet_bytes: size.ip_len(size.datagram()),
        unsent_packets: unsent,
        min_rtt,
        srtt,
        lost_packets,
        streams,
    });
}

#[cfg(test)]
mod tests {
    use super::super::config::Rule;
    use super::super::session::tests::session;
    use super::*;
    use crate::documented::{PROXY, lines, lists_exactly};
    use lasthop_laws::Choice;
    use lasthop_laws::aggregation::LAW;
    use lasthop_signals::{Doubt, Node};
    use lasthop_units::Span;
    use serde_json::json;

    #[test]
    fn the_page_on_logs_lists_every_field_and_no_other() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("proxy.log");
        let mut log = Log::create(&path, |_| {}).expect("writable");
        let (start, mut session) = (Time::from_nanos(1_000_000_000_000), session());
        let end = start + Span::from_millis(500);
        let (delay_mean, delay_max) = (Some(Span::from_millis(2)), Some(Span::from_millis(3)));
        let feedback = StationFeedback { delay_mean, delay_max, ..StationFeedback::empty(Node(1), 7, start, end) };
        let mut control = Control::new(&Rule::Law(Choice::of(&LAW))).expect("the default");
        control.sense(end, &[session.report()], Some((7, feedback)));
        session.stats.pacing.add(Span::from_micros(5));
        session.stats.doubted.add(Doubt::Rate);
        slot(&mut log, end, &control, &mut session, &feedback);
        assert!(log.finish().is_none());
        let lines = lines(&path);
        assert_eq!((lines.len(), &lines[0]["law"], lines[0]["mu_n"].is_number()), (1, &json!("aggregation"), true));
        lists_exactly(PROXY, &lines[0]);
    }
}
