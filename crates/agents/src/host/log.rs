//! The log of a host's agent: one JSON object for every look. What it holds: docs/reference/logs.md.

use super::uploads::{Upload, segments};
use crate::service::clock;
use crate::service::log::Log;
use lasthop_laws::{Decision, Why, observation};
use lasthop_signals::FlowId;
use lasthop_units::{Span, Time};
use std::collections::BTreeMap;

pub(super) fn look(
    log: &mut Log,
    now: Time,
    (terminals, drains): (u32, bool),
    (heard, refused): (u64, u64),
    uploads: &[Upload],
    decisions: &BTreeMap<FlowId, Decision>,
) {
    let us = |span: Span| span.as_nanos() as f64 / 1e3;
    let line = |upload: &Upload| {
        let decision = decisions.get(&upload.report.flow);
        let bounds = decision.and_then(|decision| segments(decision, upload));
        observation::Upload {
            flow: upload.report.flow,
            local: upload.local.to_string(),
            peer: upload.peer.to_string(),
            rtt_us: upload.info.rtt.map(us),
            min_rtt_us: upload.info.min_rtt.map(us),
            cwnd_packets: upload.info.cwnd,
            ssthresh_packets: upload.info.ssthresh,
            in_flight_packets: upload.info.in_flight(),
            lower_packets: bounds.map(|bounds| bounds.lower),
            upper_packets: bounds.map(|bounds| bounds.upper),
            why: decision.map_or(Why::Unmanaged, |decision| decision.why),
        }
    };
    let uploads = uploads.iter().map(line).collect();
    log.line(&observation::Look { at: clock::monotonic(now), terminals, drains, heard, refused, uploads });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documented::{HOST, lines, lists_exactly};
    use crate::host::uploads::some_upload;

    #[test]
    fn the_page_on_logs_lists_every_field_and_no_other() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("host.log");
        let mut log = Log::create(&path, |_| {}).expect("writable");
        let upload = some_upload();
        look(&mut log, clock::now(), (3, false), (5, 1), &[upload], &BTreeMap::new());
        assert!(log.finish().is_none());
        let lines = lines(&path);
        assert_eq!(lines.len(), 1);
        assert_eq!((&lines[0]["uploads"][0]["cwnd_packets"], &lines[0]["terminals"]), (&40.into(), &3.into()));
        lists_exactly(HOST, &lines[0]);
    }
}
