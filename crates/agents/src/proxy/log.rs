//! The controller's log: one JSON object for every slot that a station has reported, and every so often one for a station that tells of its cell. What they
//! hold: docs/reference/logs.md.

use super::control::Control;
use super::session::Session;
use crate::service::clock;
use crate::service::log::Log;
use lasthop_laws::Why;
use lasthop_laws::observation::{Carried, Slot};
use lasthop_signals::{Node, StationFeedback};
use lasthop_transport::tunnel::CellFigures;
use lasthop_units::{Rate, Time};
use serde::Serialize;

fn carried(session: &mut Session) -> Carried {
    let (size, unsent) = (session.path.size(), session.path.unsent().count);
    let endpoint = session.endpoint();
    let (unacknowledged, streams) = (endpoint.backlog().unacknowledged, endpoint.stream_count());
    let (min_rtt, srtt, lost_packets) = (endpoint.min_rtt(), endpoint.srtt(), endpoint.lost_packets());
    let stats = &session.stats;
    let micros = |q| stats.pacing.quantile(q).map(|span| span.as_nanos() as f64 / 1e3);
    Carried {
        sent_packets: stats.packets,
        sent_bytes: stats.octets,
        waiting: session.waiting,
        backlog_bytes: stats.backlog.get(),
        bound_bytes: stats.bound.get(),
        over_bound: f64::from(stats.over) / f64::from(stats.looks.max(1)),
        pacing_error_us_p50: micros(0.5),
        pacing_error_us_p99: micros(0.99),
        unacknowledged_bytes: unacknowledged.get(),
        packet_bytes: size.ip_len(size.datagram()),
        unsent_packets: unsent,
        min_rtt,
        srtt,
        lost_packets,
        streams,
    }
}

pub(super) fn slot(log: &mut Log, now: Time, control: &Control, session: &mut Session, feedback: &StationFeedback) {
    let decided = session.decided;
    let carried = carried(session);
    let doubted = &session.stats.doubted;
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
        refused_reports: doubted.count,
        refused_why: doubted.why.map(|why| why.to_string()),
        carried,
    });
}

/// A station that tells of its cell.
#[derive(Serialize)]
struct Cell {
    #[serde(rename = "t_ns")]
    at: Time,
    station: Node,
    law: &'static str,
    rate_bps: Rate,
    window_bytes: u64,
    why: Why,
    cell: ReportedCapacity,
    #[serde(flatten)]
    carried: Carried,
}

/// What it has told last.
#[derive(Serialize)]
struct ReportedCapacity {
    available_bps: Rate,
    fair_bps: Rate,
    elsewhere: bool,
    restart: bool,
    coarse: bool,
}

/// A line on a station that tells of its cell.
pub(super) fn cell(log: &mut Log, now: Time, session: &mut Session, figures: &CellFigures) {
    let CellFigures { told, rate, window, why } = *figures;
    let carried = carried(session);
    log.line(&Cell {
        at: clock::monotonic(now),
        station: session.station,
        law: lasthop_laws::pbe::NAME,
        rate_bps: rate,
        window_bytes: window.get(),
        why,
        cell: ReportedCapacity {
            available_bps: told.available,
            fair_bps: told.fair,
            elsewhere: told.elsewhere,
            restart: told.restart,
            coarse: told.coarse,
        },
        carried,
    });
}

#[cfg(test)]
mod tests {
    use super::super::config::Rule;
    use super::super::session::tests::session;
    use super::*;
    use crate::documented::{PROXY, PROXY_CELL, lines, lists_exactly};
    use lasthop_laws::aggregation::LAW;
    use lasthop_laws::tcp::Setup;
    use lasthop_laws::{Choice, Place};
    use lasthop_signals::Doubt;
    use lasthop_units::{Bytes, Seed, Span};
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

    #[test]
    fn the_page_on_logs_lists_every_field_of_a_cell_and_no_other() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("proxy.log");
        let mut log = Log::create(&path, |_| {}).expect("writable");
        let (now, mut session) = (Time::from_nanos(1_000_000_000_000), session());
        assert_eq!((session.cell(now), session.follows()), (None, false));
        let law = Choice::named(Place::Sender, "pbe").expect("a law");
        let setup = Setup::new(Bytes::new(1500), Seed(1).stream("law"));
        session.follow(now, law.sender(setup).expect("the default"));
        assert!(session.follows() && session.begins(now).is_none());
        session.stats.pacing.add(Span::from_micros(5));
        let figures = session.cell(now).expect("it follows");
        cell(&mut log, now, &mut session, &figures);
        assert!(log.finish().is_none());
        let lines = lines(&path);
        assert_eq!((lines.len(), &lines[0]["law"], &lines[0]["cell"]["available_bps"]), (1, &json!("pbe"), &json!(0)));
        lists_exactly(PROXY_CELL, &lines[0]);
    }
}
