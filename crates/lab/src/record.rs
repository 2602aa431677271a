//! From a run's raw logs to the report's record.

use crate::outcome::{Outcome, StreamLog};
use crate::spec::Spec;
use crate::traffic::bulk::{BIN, BulkLog};
use crate::traffic::iperf3::Iperf3Log;
use crate::traffic::tcp_info::TcpInfo;
use lasthop_report::{Gauge, HopMeter, Recorder, RunRecord, Segments, Window};
use lasthop_scenario::{Hop, Scenario, Stream};
use lasthop_signals::{FlowId, Node};
use lasthop_units::{Bytes, Rate, Span, Time};

impl Outcome {
    /// What the report wants to know of this run of `spec`.
    pub fn record(&self, spec: &Spec) -> RunRecord {
        self.record_into(spec.recorder(), spec)
    }

    /// As [`Outcome::record`], with a recorder of the caller's making.
    pub fn record_into(&self, mut recorder: Recorder, spec: &Spec) -> RunRecord {
        self.record_hop(&mut recorder, spec);
        for (number, (log, stream)) in self.streams.iter().zip(&spec.streams).enumerate() {
            let station = Scenario::station_node(stream.station);
            let flow = FlowId(number as u32);
            match log {
                StreamLog::Bulk(log) => record_bulk(&mut recorder, flow, station, stream, log),
                StreamLog::Iperf3(log) => record_iperf3(&mut recorder, flow, station, stream, log),
                StreamLog::Probe(_) => {}
                StreamLog::Fetch(fetches) => {
                    for fetch in fetches {
                        match fetch.duration {
                            Some(duration) => recorder.fetch(fetch.start, fetch.start + duration, station),
                            None => recorder.fetch_unfinished(fetch.start, station),
                        }
                    }
                }
            }
        }
        self.record_probes(&mut recorder, spec);
        let mut record = recorder.finish();
        record.notes.extend(self.doubts.iter().map(ToString::to_string));
        if !self.realtime {
            record.notes.push("the emulator was not allowed real-time scheduling (SCHED_FIFO)".into());
        }
        record
    }

    fn record_hop(&self, recorder: &mut Recorder, spec: &Spec) {
        for crossing in self.hop.crossings.iter().filter(|crossing| crossing.from == Scenario::AP) {
            recorder.hop_delivery(crossing.at, crossing.queued_at(), crossing.to, crossing.len);
        }
        let mut meter = HopMeter::new(matches!(spec.hop, Hop::Wifi(_)));
        for (at, report) in &self.hop.reports {
            meter.add(recorder, *at, report);
        }
    }

    /// All streams' probes, in the order of their arrival, as jitter wants them.
    fn record_probes(&self, recorder: &mut Recorder, spec: &Spec) {
        // The latest probes may have been on their way when the run ended: of those as young as the oldest arrival
        // was, nothing is known.
        let mut slowest = Span::ZERO;
        let mut arrived = Vec::new();
        let mut missing = Vec::new();
        for (log, stream) in self.streams.iter().zip(&spec.streams) {
            let StreamLog::Probe(probes) = log else { continue };
            for probe in probes {
                match probe.delay {
                    Some(delay) => {
                        slowest = slowest.max(delay);
                        arrived.push((probe.sent + delay, probe.sent, Scenario::station_node(stream.station)));
                    }
                    None => missing.push((probe.sent, Scenario::station_node(stream.station))),
                }
            }
        }
        arrived.sort_unstable();
        for (received, sent, station) in arrived {
            recorder.probe(sent, received, station);
        }
        for (sent, station) in missing {
            if sent + slowest < Time::ZERO + spec.duration {
                recorder.probe_lost(sent, station);
            }
        }
    }
}

impl Spec {
    /// A recorder for the stations and the measuring window of this run.
    pub fn recorder(&self) -> Recorder {
        let window = Window { warm_up: Time::ZERO + self.warm_up, end: Time::ZERO + self.duration };
        let stations = self.stations.iter().enumerate();
        Recorder::new(window, stations.map(|(n, name)| (Scenario::station_node(n), name.clone())))
    }
}

fn record_bulk(recorder: &mut Recorder, flow: FlowId, station: Node, stream: &Stream, log: &BulkLog) {
    recorder.bulk_flow(stream.start, flow, station, &format!("bulk {}", flow.0));
    for (bin, payload) in log.received.iter().enumerate().filter(|(_, payload)| !payload.is_zero()) {
        // A bin's payload came during the bin; its beginning is inside the window exactly if all of it is.
        recorder.goodput(Time::ZERO + BIN * bin as u64, flow, station, *payload);
    }
    recorder.bulk_flow_ended(stream.stop, flow);
    for (at, info) in &log.samples {
        recorder.sample(*at, Gauge::Cwnd(flow), info.cwnd.get() as f64);
        recorder.sample(*at, Gauge::Window(flow), info.peer_window.get() as f64);
        if info.pacing_rate != UNPACED {
            recorder.sample(*at, Gauge::Pacing(flow), info.pacing_rate.as_mbit_f64());
        }
        recorder.segments(*at, flow, segments(info));
    }
    recorder.segments(stream.stop, flow, segments(&log.last));
}

fn record_iperf3(recorder: &mut Recorder, flow: FlowId, station: Node, stream: &Stream, log: &Iperf3Log) {
    recorder.bulk_flow(stream.start, flow, station, &format!("iperf3 {}", flow.0));
    // A test lasts whole seconds, and may end a little after the stream should have.
    let inside = |(start, length, _): &&(Span, Span, Bytes)| stream.start + *start + *length <= stream.stop;
    for (start, _, payload) in log.intervals.iter().filter(inside) {
        recorder.goodput(stream.start + *start, flow, station, *payload);
    }
    recorder.bulk_flow_ended(stream.stop, flow);
}

/// What the kernel reports before the sender has a rate: all ones.
const UNPACED: Rate = Rate::from_bps(u64::MAX);

fn segments(info: &TcpInfo) -> Segments {
    Segments { sent: info.segments.into(), retransmitted: info.retransmitted_segments.into() }
}
