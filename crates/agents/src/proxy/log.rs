//! The controller's log: one JSON object for every slot that a station has reported. What it holds: docs/reference/logs.md.

use super::control::Control;
use super::session::Session;
use crate::tunnel::clock;
use crate::tunnel::log::Log;
use lasthop_signals::{FrameSource, StationFeedback};
use lasthop_units::{Span, Time};
use serde_json::{Value, json};

pub(super) fn slot(log: &mut Log, now: Time, control: &Control, session: &mut Session, feedback: &StationFeedback) {
    let nanos = |span: Option<Span>| span.map(Span::as_nanos);
    let view = control.view(session.station);
    let rate = session.decided.rate;
    let stats = &session.stats;
    let micros = |q| stats.pacing.quantile(q).map(|span| span.as_nanos() as f64 / 1e3);
    let mut line = json!({
        "t_ns": clock::monotonic(now).as_nanos(),
        "slot": feedback.slot,
        "station": session.station.0,
        "law": control.name(),
        "mu_n": view.map(|(view, ..)| view.level),
        "interval_s": view.map(|(view, ..)| view.interval).filter(|interval| interval.is_finite()),
        "target": view.map(|(view, ..)| view.target_level),
        "aim_s": view.map(|(view, ..)| view.target_interval),
        "active": view.map(|(view, ..)| view.active),
        "c_s": view.map(|(_, overhead, _)| overhead),
        "nu": view.map(|(.., set_point)| set_point),
        "x_pps": rate.as_bps() as f64 / 12_000.0,
        "rate_bps": rate.as_bps(),
        "why": format!("{:?}", session.decided.why),
        "station_report": report(feedback),
        "sent_packets": stats.packets,
        "sent_bytes": stats.octets,
        "waiting": session.waiting,
        "backlog_bytes": stats.backlog.get(),
        "bound_bytes": stats.bound.get(),
        "over_bound": f64::from(stats.over) / f64::from(stats.looks.max(1)),
        "pacing_error_us_p50": micros(0.5),
        "pacing_error_us_p99": micros(0.99),
    });
    line["refused_reports"] = json!(stats.doubted.count);
    line["refused_why"] = json!(stats.doubted.why.map(|why| why.to_string()));
    let (size, unsent) = (session.path.size(), session.path.unsent().count);
    let packet_bytes = size.ip_len(size.datagram());
    let endpoint = session.endpoint();
    line["unacknowledged_bytes"] = json!(endpoint.backlog().unacknowledged.get());
    line["packet_bytes"] = json!(packet_bytes);
    line["unsent_packets"] = json!(unsent);
    line["min_rtt_ns"] = json!(nanos(endpoint.min_rtt()));
    line["srtt_ns"] = json!(nanos(endpoint.srtt()));
    line["lost_packets"] = json!(endpoint.lost_packets());
    line["streams"] = json!(endpoint.stream_count());
    log.line(&line);
}

fn report(feedback: &StationFeedback) -> Value {
    json!({
        "span_ns": feedback.end.since(feedback.start).as_nanos(),
        "frames": feedback.frames,
        "packets": feedback.packets,
        "packets_squared": feedback.packets_squared,
        "min_packets": feedback.min_packets,
        "max_packets": feedback.max_packets,
        "inverse_rate_sum": feedback.inverse_rate_sum,
        "received": feedback.received,
        "lost": feedback.lost,
        "delay_mean_ns": feedback.delay_mean.map(Span::as_nanos),
        "delay_max_ns": feedback.delay_max.map(Span::as_nanos),
        "source": match feedback.source {
            FrameSource::Radiotap => "radiotap",
            FrameSource::Timestamps => "timestamps",
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::config::Rule;
    use super::super::session::tests::session;
    use super::*;
    use crate::documented::{PROXY, lines, lists_exactly};
    use lasthop_laws::aggregation::{Control as Law, Params};
    use lasthop_signals::{Doubt, Node};

    #[test]
    fn the_page_on_logs_lists_every_field_and_no_other() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("proxy.log");
        let mut log = Log::create(&path, |_| {}).expect("writable");
        let (start, mut session) = (Time::from_nanos(1_000_000_000_000), session());
        let end = start + Span::from_millis(500);
        let (delay_mean, delay_max) = (Some(Span::from_millis(2)), Some(Span::from_millis(3)));
        let feedback = StationFeedback { delay_mean, delay_max, ..StationFeedback::empty(Node(1), 7, start, end) };
        let mut control = Control::new(&Rule::Law(Law::Aggregation(Params::default()))).expect("the default");
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
