//! From a run's raw logs to the report's record.

use crate::log::{Crossing, Departure};
use crate::outcome::{Outcome, StreamLog};
use crate::spec::Spec;
use crate::traffic::all;
use crate::traffic::bulk::{BIN, BulkLog};
use crate::traffic::carried::CarriedLog;
use crate::traffic::iperf3::Iperf3Log;
use lasthop_radio::LastHop;
use lasthop_report::{Gauge, HopMeter, NOBODY, Recorder, RunRecord, Segments, SeriesKind, Window};
use lasthop_scenario::{Scenario, Stream, StreamKind};
use lasthop_signals::{FlowId, HostId, Node};
use lasthop_units::{Bytes, Span, Time};
use lasthop_wire::tcp_info::TcpInfo;

impl Outcome {
    /// What the report wants to know of this run of `spec`.
    pub fn record(&self, spec: &Spec) -> RunRecord {
        self.record_into(spec.recorder(), spec)
    }

    /// As [`Outcome::record`], with a recorder of the caller's making.
    pub fn record_into(&self, mut recorder: Recorder, spec: &Spec) -> RunRecord {
        self.record_hop(&mut recorder, spec);
        for (number, (log, stream)) in self.streams.iter().zip(&spec.streams).enumerate() {
            let station = spec.concerned(stream).map_or(NOBODY, Scenario::station_node);
            let flow = FlowId(number as u32);
            match log {
                StreamLog::Bulk(log) => {
                    record_bulk(&mut recorder, flow, station, stream, log);
                    self.record_ends(&mut recorder, (all::port(number), stream.from), station, log);
                }
                StreamLog::Iperf3(log) => record_iperf3(&mut recorder, flow, station, stream, log),
                StreamLog::Carried(log) => record_carried(&mut recorder, flow, station, stream, log),
                StreamLog::Probe(_) | StreamLog::Udp(_) => {}
                StreamLog::Fetch(fetches) => {
                    for fetch in fetches {
                        let finished = fetch.duration.map(|duration| fetch.start + duration);
                        recorder.stream_fetch(stream.number, fetch.start, finished);
                    }
                }
            }
            recorder.belongs(flow, stream.number);
        }
        self.record_datagrams(&mut recorder, spec);
        let mut record = recorder.finish();
        record.notes.extend(self.doubts.iter().map(ToString::to_string));
        if !self.realtime {
            record.notes.push("the emulator was not allowed real-time scheduling (SCHED_FIFO)".into());
        }
        record
    }

    fn record_hop(&self, recorder: &mut Recorder, spec: &Spec) {
        let aps = spec.access_points();
        let (up, down): (Vec<&Crossing>, Vec<&Crossing>) =
            self.hop.crossings.iter().partition(|crossing| aps.contains(&crossing.to));
        for crossing in down {
            recorder.hop_delivery(crossing.at, crossing.queued_at(), crossing.to, crossing.len);
        }
        for crossing in up {
            recorder.uplink_delivery(crossing.at, crossing.queued_at(), crossing.from);
        }
        let station = |node: Node| (1..=spec.stations().len()).contains(&node.index());
        for frame in self.hop.frames.iter() {
            if station(frame.to) {
                recorder.frame(frame.at, frame.to, u32::from(frame.packets), frame.airtime);
            } else if station(frame.from) {
                recorder.uplink_frame(frame.at, frame.from);
            }
        }
        for loss in self.hop.losses.iter().filter(|loss| aps.contains(&loss.from)) {
            if let Some(station) = loss.to {
                recorder.hop_lost(loss.at, station);
            }
        }
        let mut meters = match aps.len() {
            1 => vec![HopMeter::new(matches!(spec.hop, LastHop::Wifi(_)))],
            several => vec![HopMeter::of_one_of_several(); several],
        };
        for (at, of, report) in &self.hop.reports {
            if let Some(place) = aps.iter().position(|ap| ap == of) {
                meters[place].add(recorder, *at, report);
            }
        }
    }

    /// From the departure of each segment at the host `from` to the moment at which the receiving program had read all of it. Of
    /// what the access point sends no departures are known.
    fn record_ends(&self, recorder: &mut Recorder, (port, from): (u16, HostId), station: Node, log: &BulkLog) {
        let mut reads = log.reads.iter().peekable();
        let departures = match from {
            Scenario::SERVER => &self.departures,
            _ => &self.hop.departures,
        };
        for (end, sent) in first_departures(departures.iter().filter(|departure| departure.ports.contains(&port))) {
            while reads.next_if(|(_, total)| total.get() < end).is_some() {}
            let Some((read, _)) = reads.peek() else { break };
            recorder.end_delay(sent, *read, station);
        }
    }

    /// All streams' datagrams, in the order of their arrival, as jitter wants them.
    fn record_datagrams(&self, recorder: &mut Recorder, spec: &Spec) {
        // The latest may have been on their way when the run ended: of those as young as the oldest arrival was, nothing is
        // known.
        let mut slowest = Span::ZERO;
        let (mut arrived, mut missing) = (Vec::new(), Vec::new());
        for (place, (log, stream)) in self.streams.iter().zip(&spec.streams).enumerate() {
            let (StreamLog::Probe(datagrams) | StreamLog::Udp(datagrams)) = log else { continue };
            for datagram in datagrams {
                match datagram.delay {
                    Some(delay) => {
                        slowest = slowest.max(delay);
                        arrived.push((datagram.sent + delay, datagram.sent, place));
                    }
                    None => missing.push((datagram.sent, place)),
                }
            }
            debug_assert!(stream.stop <= Time::ZERO + spec.duration);
        }
        arrived.sort_unstable();
        for (received, sent, place) in arrived {
            let stream = &spec.streams[place];
            match stream.kind {
                StreamKind::Udp { size, .. } => {
                    let station = spec.concerned(stream).map_or(NOBODY, Scenario::station_node);
                    recorder.datagram(stream.number, sent, received, size);
                    recorder.end_delay(sent, received, station);
                }
                _ => recorder.stream_probe(stream.number, sent, received),
            }
        }
        for (sent, place) in missing.into_iter().filter(|(sent, _)| *sent + slowest < Time::ZERO + spec.duration) {
            let stream = &spec.streams[place];
            match stream.kind {
                StreamKind::Udp { .. } => recorder.datagram_lost(stream.number, sent),
                _ => recorder.stream_probe_lost(stream.number, sent),
            }
        }
    }
}

impl Spec {
    /// A recorder for the stations and the measuring window of this run.
    pub fn recorder(&self) -> Recorder {
        let window = Window { warm_up: Time::ZERO + self.warm_up, end: Time::ZERO + self.duration };
        let stations = self.stations().into_iter().enumerate();
        let mut recorder =
            Recorder::new(window, stations.map(|(n, name)| (Scenario::station_node(n), name.to_owned())));
        recorder.set_streams(self.infos.clone());
        recorder
    }
}

fn record_bulk(recorder: &mut Recorder, flow: FlowId, station: Node, stream: &Stream, log: &BulkLog) {
    recorder.bulk_flow(stream.start, flow, station, &format!("bulk {}", flow.0));
    for (bin, payload) in log.received.iter().enumerate().filter(|(_, payload)| !payload.is_zero()) {
        // A bin's payload came during the bin; its beginning is inside the window exactly if all of it is.
        recorder.goodput(Time::ZERO + BIN * bin as u64, flow, station, *payload);
    }
    recorder.bulk_flow_ended(stream.stop, flow);
    let (mut round_trips, mut round_trip_sum, mut deviation_sum) = (0, Span::ZERO, Span::ZERO);
    for (at, info) in &log.samples {
        // The smoothed round trip, each time that somebody looked.
        if let Some(rtt) = info.rtt {
            round_trips += 1;
            round_trip_sum += rtt;
            deviation_sum += info.rttvar;
            recorder.round_trip_at(*at, flow, rtt);
        }
        let cwnd = info.mss * u64::from(info.cwnd);
        recorder.sample(*at, Gauge::Flow(SeriesKind::Cwnd, flow), cwnd.get() as f64);
        recorder.sample(*at, Gauge::Flow(SeriesKind::CaState, flow), f64::from(info.ca_state.number()));
        // A kernel before 5.4 does not tell it.
        if let Some(window) = info.snd_wnd {
            recorder.sample(*at, Gauge::Flow(SeriesKind::Window, flow), window.get() as f64);
        }
        if let Some(pacing) = info.pacing_rate {
            recorder.sample(*at, Gauge::Flow(SeriesKind::Pacing, flow), pacing.as_mbit_f64());
        }
        recorder.segments(*at, flow, Segments { round_trips, round_trip_sum, deviation_sum, ..segments(info) });
    }
    recorder.segments(
        stream.stop,
        flow,
        Segments { round_trips, round_trip_sum, deviation_sum, ..segments(&log.last) },
    );
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

fn record_carried(recorder: &mut Recorder, flow: FlowId, station: Node, stream: &Stream, log: &CarriedLog) {
    recorder.bulk_flow(stream.start, flow, station, &format!("bulk {}", flow.0));
    // Its programs were asked to end when it ended: what they say of the time behind that is of no world.
    for bin in log.received.iter().filter(|bin| log.start + bin.start + bin.length <= stream.stop) {
        recorder.goodput(log.start + bin.start, flow, station, bin.payload);
    }
    recorder.bulk_flow_ended(stream.stop, flow);
    let (mut round_trips, mut round_trip_sum) = (0, Span::ZERO);
    for sent in &log.sent {
        let at = (log.start + sent.at).min(stream.stop);
        if let Some(rtt) = sent.round_trip {
            round_trips += 1;
            round_trip_sum += rtt;
            recorder.round_trip_at(at, flow, rtt);
        }
        let (sent, retransmitted) = (sent.packets, sent.again);
        recorder.segments(
            at,
            flow,
            Segments { sent, retransmitted, round_trips, round_trip_sum, ..Segments::default() },
        );
    }
}

/// For every segment that left for the first time: how much of the stream had left with it, and when. Sequence numbers may wrap.
fn first_departures<'a>(departures: impl Iterator<Item = &'a Departure>) -> Vec<(u64, Time)> {
    let (mut firsts, mut total, mut last_end) = (Vec::new(), 0, None);
    for departure in departures {
        let end = departure.seq.wrapping_add(departure.len);
        let new = end.wrapping_sub(*last_end.get_or_insert(departure.seq));
        // What seems to lie more than half of the number space ahead lies behind: it is sent again.
        if new > 0 && new <= 1 << 31 {
            total += u64::from(new);
            last_end = Some(end);
            firsts.push((total, departure.at));
        }
    }
    firsts
}

fn segments(info: &TcpInfo) -> Segments {
    let sent = info.data_segs_out.unwrap_or_default().into();
    Segments { sent, retransmitted: info.total_retrans.into(), ..Segments::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_count_once_despite_repeats_and_any_first_number() {
        let sent =
            |ms: u64, seq: u32, len: u32| Departure { at: Time::ZERO + Span::from_millis(ms), ports: [1, 2], seq, len };
        let start = u32::MAX - 149;
        let history = [
            sent(1, start, 100),
            sent(2, start.wrapping_add(100), 100),
            sent(3, start, 100),
            // A repetition that goes on with new bytes.
            sent(4, start.wrapping_add(100), 150),
            sent(5, start.wrapping_add(250), 10),
        ];
        let firsts: Vec<(u64, u64)> =
            first_departures(history.iter()).into_iter().map(|(end, at)| (end, at.as_nanos() / 1_000_000)).collect();
        assert_eq!(firsts, [(100, 1), (200, 2), (250, 4), (260, 5)]);
    }
}
