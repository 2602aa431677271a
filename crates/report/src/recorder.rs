//! The recorder: what a world calls for every packet.
//!
//! Times are those of the events, not of the calls: a late lab still passes true times, and calls may come out of
//! order. Each observation belongs to the window by one time: a delivery by its arrival, a probe by when it was sent, a
//! fetch by when it was started, so that slow probes and fetches at the end are not preferred by being cut off.

use crate::flows::Flow;
use crate::jitter::Jitter;
use crate::series::{Bins, Grid, Held};
use crate::streams::Measured;
use crate::user_latency::Waits;
use crate::{
    Delays, Direction, Entity, Figure, Gauge, Key, PacketDelay, RunRecord, Segments, SeriesKind, StationRecord,
    StreamInfo, StreamRecord, Track,
};
use lasthop_laws::Observation;
use lasthop_signals::{FlowId, Node};
use lasthop_units::stats::{Moments, jain};
use lasthop_units::{Bytes, Rate, Span, Time};
use std::collections::BTreeMap;

/// When a run is measured: from the end of the warm-up, included, to the end, excluded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// When the warm-up is over.
    pub warm_up: Time,
    /// When measuring stops.
    pub end: Time,
}

impl Window {
    /// True if `at` lies inside.
    pub fn contains(&self, at: Time) -> bool {
        self.warm_up <= at && at < self.end
    }

    /// How long it lasts; zero if the warm-up takes everything.
    pub fn span(&self) -> Span {
        self.end.since(self.warm_up)
    }

    /// How much of the time from `from` to `to` lies inside.
    pub fn overlap(&self, from: Time, to: Time) -> Span {
        to.min(self.end).since(from.max(self.warm_up))
    }
}

/// Collects what one run shows. Cheap enough to be called for every packet: a table look-up and a few additions.
///
/// Memory: about 200 kB a station for delays, 24 bytes a bin and series (10 000 bins at most), 8 bytes a probe and
/// fetch; and 24 bytes a packet only after [`Recorder::keep_packets`].
#[derive(Clone, Debug)]
pub struct Recorder {
    window: Window,
    grid: Grid,
    stations: Vec<Station>,
    /// Place in `stations` by node number.
    places: Vec<Option<usize>>,
    flows: BTreeMap<FlowId, Flow>,
    gauges: BTreeMap<Gauge, Bins>,
    packets: Option<Vec<PacketDelay>>,
    strangers: u64,
    streams: Vec<StreamInfo>,
    /// Of each stream.
    measured: Vec<Measured>,
    /// Some stream goes up.
    uploads: bool,
}

/// In place of a station: what concerns none.
pub const NOBODY: Node = Node(u16::MAX);

#[derive(Clone, Debug)]
struct Station {
    node: Node,
    name: String,
    delays: Delays,
    delay_bins: Bins,
    /// Delays of its own packets.
    up: Delays,
    probes: Waits,
    jitter: Jitter,
    fetches: Waits,
    ends: Delays,
    frames: Frames,
    /// Data frames from the station, in the window and over time.
    uplink: u64,
    uplink_bins: Bins,
    /// Packets a frame over time: gauges are looked up by name, and frames are too many for that.
    aggregation: Bins,
    lost: u64,
}

/// What frames to a station were like.
#[derive(Clone, Copy, Debug, Default)]
struct Frames {
    packets: Moments,
    airtime: Span,
}

impl Recorder {
    /// A recorder for `stations`, each with its number on the hop and the name that reports show. Observations of
    /// other nodes are not measured but counted, and the record notes how many there were.
    pub fn new(window: Window, stations: impl IntoIterator<Item = (Node, String)>) -> Recorder {
        let stations: Vec<Station> = stations.into_iter().map(|(node, name)| Station::new(node, name)).collect();
        let mut places = vec![None; stations.iter().map(|s| s.node.index() + 1).max().unwrap_or(0)];
        stations.iter().enumerate().for_each(|(place, s)| places[s.node.index()] = Some(place));
        Recorder {
            window,
            grid: Grid::until(window.end),
            stations,
            places,
            flows: BTreeMap::new(),
            gauges: BTreeMap::new(),
            packets: None,
            strangers: 0,
            streams: Vec::new(),
            measured: Vec::new(),
            uploads: false,
        }
    }

    /// The streams of the run: what is recorded of them is told by their place in this list.
    pub fn set_streams(&mut self, streams: Vec<StreamInfo>) {
        self.uploads = streams.iter().any(|stream| matches!(stream.direction, Direction::Up | Direction::Across));
        self.measured = vec![Measured::default(); streams.len()];
        self.streams = streams;
    }

    /// From now on keeps every packet's delay, for `packets.parquet`.
    pub fn keep_packets(&mut self) {
        self.packets.get_or_insert_default();
    }

    /// A downlink packet of any kind that entered the hop's queue at `queued_at` was delivered to `station` at `at`.
    pub fn hop_delivery(&mut self, at: Time, queued_at: Time, station: Node, len: Bytes) {
        let _ = len; // part of the observation; no figure weighs delays by size yet
        let Some(place) = self.place(station) else { return };
        let delay = at.since(queued_at);
        let seen = &mut self.stations[place];
        if self.window.contains(at) {
            seen.delays.add(delay);
        }
        seen.delay_bins.add(&self.grid, at, delay.as_millis_f64());
        if let Some(packets) = &mut self.packets {
            packets.push(PacketDelay { station: place as u16, at, delay });
        }
    }

    /// A packet of `station` that entered its queue at `queued_at` was delivered to the access point at `at`.
    pub fn uplink_delivery(&mut self, at: Time, queued_at: Time, station: Node) {
        if !self.uploads || !self.window.contains(at) {
            return;
        }
        if let Some(place) = self.place(station) {
            self.stations[place].up.add(at.since(queued_at));
        }
    }

    /// The hop lost a downlink packet to `station` at `at`.
    pub fn hop_lost(&mut self, at: Time, station: Node) {
        let Some(place) = self.place(station) else { return };
        self.stations[place].lost += u64::from(self.window.contains(at));
    }

    /// A frame with `packets` packets for `station`, of which it received some, was over at `at`; it was on the air for
    /// `airtime`.
    pub fn frame(&mut self, at: Time, station: Node, packets: u32, airtime: Span) {
        let Some(place) = self.place(station) else { return };
        let seen = &mut self.stations[place];
        if self.window.contains(at) {
            seen.frames.packets.add(f64::from(packets));
            seen.frames.airtime += airtime;
        }
        seen.aggregation.add(&self.grid, at, f64::from(packets));
    }

    /// A data frame of `station` reached the access point at `at`.
    pub fn uplink_frame(&mut self, at: Time, station: Node) {
        let Some(place) = self.place(station) else { return };
        let seen = &mut self.stations[place];
        seen.uplink += u64::from(self.window.contains(at));
        seen.uplink_bins.add(&self.grid, at, 1.0);
    }

    /// What left its sender first at `sent` has reached the application, whole and in order, at
    /// `at`; it counts for `station`.
    pub fn end_delay(&mut self, sent: Time, at: Time, station: Node) {
        let Some(place) = self.place(station) else { return };
        if self.window.contains(at) {
            self.stations[place].ends.add(at.since(sent));
        }
    }

    /// A bulk flow that counts for `station` begins. Optional, but without it a flow that never
    /// delivers anything is invisible: its station is missing from the fairness index, and its stall
    /// from the longest stall.
    pub fn bulk_flow(&mut self, at: Time, flow: FlowId, station: Node, name: &str) {
        let place = self.place(station);
        if place.is_some() || station == NOBODY {
            self.flows.entry(flow).or_insert_with(|| Flow::new(place, name.to_string(), at));
        }
    }

    /// A bulk flow belongs to a stream.
    pub fn belongs(&mut self, flow: FlowId, stream: usize) {
        if let Some(flow) = self.flows.get_mut(&flow) {
            flow.stream = Some(stream);
        }
    }

    /// A datagram of a UDP stream left at `sent` and came at `received`. To be called in the order of arrival.
    pub fn datagram(&mut self, stream: usize, sent: Time, received: Time, payload: Bytes) {
        if let Some(measured) = self.measured.get_mut(stream) {
            measured.datagram(sent, received, payload, &self.window);
        }
    }

    /// A datagram of a UDP stream that left at `sent` never came. Not to be called for one that may still be on its way
    /// when the run ends.
    pub fn datagram_lost(&mut self, stream: usize, sent: Time) {
        if let Some(measured) = self.measured.get_mut(stream) {
            measured.datagram_lost(sent, &self.window);
        }
    }

    /// A probe of a stream left at `sent` and came at `received`. To be called in the order of arrival.
    pub fn stream_probe(&mut self, stream: usize, sent: Time, received: Time) {
        // The station's figures are made of its streams' when the run is over.
        self.datagram(stream, sent, received, Bytes::ZERO);
    }

    /// As [`Recorder::probe_lost`], of a stream.
    pub fn stream_probe_lost(&mut self, stream: usize, sent: Time) {
        self.datagram_lost(stream, sent);
    }

    /// A fetch of a stream took from `started` to `finished`; `None`: it had not finished when the run ended.
    pub fn stream_fetch(&mut self, stream: usize, started: Time, finished: Option<Time>) {
        if let Some(info) = self.streams.get(stream) {
            match finished {
                Some(finished) => self.fetch(started, finished, info.station),
                None => self.fetch_unfinished(started, info.station),
            }
        }
        let Some(measured) = self.measured.get_mut(stream).filter(|_| self.window.contains(started)) else { return };
        match finished {
            Some(finished) => measured.waits.ended(finished.since(started)),
            None => measured.waits.still_open(self.window.end.since(started)),
        }
    }

    /// A bulk flow has nothing more to send: silence from `at` on is no stall. The first time counts.
    pub fn bulk_flow_ended(&mut self, at: Time, flow: FlowId) {
        if let Some(flow) = self.flows.get_mut(&flow) {
            flow.ended.get_or_insert(at);
        }
    }

    /// `payload` of a bulk flow that counts for `station` has reached the application, in order. A flow not announced by
    /// [`Recorder::bulk_flow`] is taken to begin now, or with the window if that is later.
    pub fn goodput(&mut self, at: Time, flow: FlowId, station: Node, payload: Bytes) {
        let place = self.place(station);
        if place.is_none() && station != NOBODY {
            return;
        }
        let known = self.flows.entry(flow).or_insert_with(|| Flow::new(place, format!("flow {}", flow.0), at));
        known.goodput(at, payload, &self.window);
        known.arrivals.add(&self.grid, at, payload.get() as f64);
    }

    /// A probe sent at `sent` was received by `station` at `received`. To be called in the order of arrival.
    pub fn probe(&mut self, sent: Time, received: Time, station: Node) {
        let Some(place) = self.place(station) else { return };
        let seen = &mut self.stations[place];
        if self.window.contains(sent) {
            seen.probes.ended(received.since(sent));
        }
        seen.jitter.arrival(sent, received, self.window.contains(received));
    }

    /// A probe sent at `sent` to `station` never arrived. Not to be called for one that may still be on its way when
    /// the run ends.
    pub fn probe_lost(&mut self, sent: Time, station: Node) {
        let Some(place) = self.place(station) else { return };
        if self.window.contains(sent) {
            self.stations[place].probes.never();
        }
    }

    /// A fetch by `station` took from `started` to `finished`.
    pub fn fetch(&mut self, started: Time, finished: Time, station: Node) {
        let Some(place) = self.place(station) else { return };
        if self.window.contains(started) {
            self.stations[place].fetches.ended(finished.since(started));
        }
    }

    /// A fetch that `station` started had not finished when the run ended. It counts as longer than that, in the
    /// proportion in which fetches so long were (Kaplan and Meier); percentiles beyond all that finished say "at least".
    pub fn fetch_unfinished(&mut self, started: Time, station: Node) {
        let Some(place) = self.place(station) else { return };
        if self.window.contains(started) {
            self.stations[place].fetches.still_open(self.window.end.since(started));
        }
    }

    /// The cumulative counters of a bulk flow's sender at `at`. To be called when the warm-up ends and when the run
    /// ends; calls in between do no harm. The sample nearest to the end of the warm-up is the baseline. Ignored for
    /// flows that are not (yet) known as bulk flows.
    pub fn segments(&mut self, at: Time, flow: FlowId, segments: Segments) {
        if let Some(flow) = self.flows.get_mut(&flow) {
            flow.counted(at, segments, &self.window);
        }
    }

    /// The smoothed round-trip time of a bulk flow's sender stood at `rtt` at `at`.
    pub fn round_trip_at(&mut self, at: Time, flow: FlowId, rtt: Span) {
        if let Some(flow) = self.flows.get_mut(&flow).filter(|_| self.window.contains(at)) {
            flow.round_trips.add(rtt);
        }
        self.sample(at, Gauge::Flow(SeriesKind::RoundTrip, flow), rtt.as_millis_f64());
    }

    /// `gauge` stood at `value` (in its unit) at `at`.
    pub fn sample(&mut self, at: Time, gauge: Gauge, value: f64) {
        self.gauges.entry(gauge).or_default().add(&self.grid, at, value);
    }

    /// What a law knew of a station at `at`.
    pub fn observed(&mut self, at: Time, station: Node, seen: &Observation) {
        if seen.active == Some(true) {
            self.known(at, Gauge::Station(SeriesKind::AggregationTarget, station), seen.target);
            self.known(at, Gauge::Station(SeriesKind::IntervalAim, station), seen.aim_s.map(|aim| aim * 1e3));
        }
    }

    /// What a law knew of the rounds of a station's access point at `at`, or, without a station, of the hop's.
    pub fn observed_round(&mut self, at: Time, station: Option<Node>, seen: &Observation) {
        let overhead = SeriesKind::Overhead;
        let gauge = station.map_or(Gauge::Hop(overhead), |station| Gauge::Station(overhead, station));
        self.known(at, gauge, seen.c_s.map(|overhead| overhead * 1e6));
    }

    fn known(&mut self, at: Time, gauge: Gauge, value: Option<f64>) {
        value.into_iter().for_each(|value| self.sample(at, gauge, value));
    }

    /// Closes the books.
    pub fn finish(mut self) -> RunRecord {
        for station in self.stations.iter().filter(|station| !station.aggregation.is_empty()) {
            self.gauges
                .entry(Gauge::Station(SeriesKind::Aggregation, station.node))
                .or_default()
                .merge(&station.aggregation);
        }
        let everywhere = self.figures(None);
        let stations = self.stations.iter().enumerate().map(|(place, station)| StationRecord {
            node: station.node,
            name: station.name.clone(),
            figures: self.figures(Some(place)),
            hop_delays: station.delays.clone(),
        });
        let stations = stations.collect();
        let notes = match self.strangers {
            0 => Vec::new(),
            n => vec![format!("{n} observations concerned nodes that are not stations of this run and were left out")],
        };
        RunRecord {
            window: self.window,
            figures: everywhere,
            stations,
            streams: self.stream_records(),
            hop_delays: self.pooled_delays(),
            bin: self.grid.width,
            tracks: self.tracks(),
            packets: self.packets,
            notes,
        }
    }

    fn place(&mut self, station: Node) -> Option<usize> {
        let place = self.places.get(station.index()).copied().flatten();
        self.strangers += u64::from(place.is_none() && station != NOBODY);
        place
    }

    /// The probe streams that count for a station.
    fn probes_of(&self, station: Node) -> impl Iterator<Item = &Measured> {
        let own = move |info: &StreamInfo| info.station == station && info.kind == "probe";
        self.streams.iter().zip(&self.measured).filter(move |(info, _)| own(info)).map(|(_, measured)| measured)
    }

    fn pooled_delays(&self) -> Delays {
        let mut pooled = Delays::default();
        self.stations.iter().for_each(|station| pooled.merge(&station.delays));
        pooled
    }

    /// The figures of one station, or of all together.
    fn figures(&self, only: Option<usize>) -> BTreeMap<Key, Figure> {
        let chosen = || self.stations.iter().enumerate().filter(move |(i, _)| only.is_none_or(|o| o == *i));
        let flows = || self.flows.values().filter(move |flow| only.is_none_or(|o| Some(o) == flow.station));
        let (mut delays, mut probes, mut fetches) = (Delays::default(), Waits::default(), Waits::default());
        let mut up = Delays::default();
        let mut jitter = Moments::default();
        let (mut ends, mut lost, mut airtime, mut uplink) = (Delays::default(), 0, Span::ZERO, 0);
        for (_, station) in chosen() {
            ends.merge(&station.ends);
            lost += station.lost;
            uplink += station.uplink;
            airtime += station.frames.airtime;
            delays.merge(&station.delays);
            up.merge(&station.up);
            probes.merge(&station.probes);
            fetches.merge(&station.fetches);
            let mut levels: Moments = station.jitter.mean_ms().into_iter().collect();
            for measured in self.probes_of(station.node) {
                probes.merge(&measured.waits);
                measured.jitter.mean_ms().into_iter().for_each(|ms| levels.add(ms));
            }
            levels.mean().into_iter().for_each(|ms| jitter.add(ms));
        }
        let no_delay = "no packet was delivered over the hop in the measuring window";
        let no_end = "no data reached an application in the measuring window";
        let no_frame = "no frame was seen in the measuring window";
        // Stations count alike: a mean over frames would favour those that have many small ones.
        let window = self.window.span().as_secs_f64();
        let over = |value: &dyn Fn(&Moments) -> Option<f64>| {
            chosen().filter_map(|(_, station)| value(&station.frames.packets)).collect::<Moments>().mean()
        };
        let no_uplink = "no frame of a station was seen in the measuring window";
        let interval = |frames: &Moments| (frames.count() > 0).then(|| window * 1e3 / frames.count() as f64);
        let entered = delays.count() + lost;
        let share = (airtime > Span::ZERO).then(|| airtime.as_secs_f64() / window);
        let mut figures = BTreeMap::from([
            (Key::Throughput, self.throughput(flows())),
            (Key::FlowRate, self.flow_rate(flows())),
            (Key::HopDelayMean, Figure::or_absent(delays.mean_ms(), no_delay)),
            (Key::HopDelayP95, Figure::or_absent(delays.quantile_ms(0.95), no_delay)),
            (Key::HopDelayP99, Figure::or_absent(delays.quantile_ms(0.99), no_delay)),
            (Key::ProbeDelayP95, probes.quantile(0.95, "probes")),
            (Key::FetchP50, fetches.quantile(0.5, "fetches")),
            (Key::FetchP95, fetches.quantile(0.95, "fetches")),
            (Key::Jitter, Figure::or_absent(jitter.mean(), "no two probes arrived in the measuring window")),
            (Key::RetransmissionRatio, self.retransmissions(flows())),
            (Key::StallMax, self.longest_stall(flows())),
            (
                Key::ProbeLossRatio,
                Figure::or_absent(probes.open_share(), "there were no probes in the measuring window"),
            ),
            (Key::EndDelayMean, Figure::or_absent(ends.mean_ms(), no_end)),
            (Key::EndDelayP95, Figure::or_absent(ends.quantile_ms(0.95), no_end)),
            (Key::Aggregation, Figure::or_absent(over(&Moments::mean), no_frame)),
            (Key::AggregationSd, Figure::or_absent(over(&Moments::sd), no_frame)),
            (Key::FrameInterval, Figure::or_absent(over(&interval), no_frame)),
            (Key::Airtime, Figure::or_absent(share, no_frame)),
            (Key::Losses, Figure::or_absent((entered > 0).then(|| lost as f64 * 1e6 / entered as f64), no_delay)),
            (Key::UplinkFrames, Figure::or_absent((uplink > 0).then(|| uplink as f64 / window), no_uplink)),
            (Key::RttMean, self.round_trip(flows(), |of| of.round_trip_sum)),
            (Key::RttP95, round_trip_p95(flows())),
            (Key::RttVariationMean, self.round_trip(flows(), |of| of.deviation_sum)),
            (Key::Recoveries, self.recoveries(flows())),
            (Key::UplinkDelayMean, Figure::or_absent(up.mean_ms(), NO_UPLOAD)),
            (Key::UplinkDelayP95, Figure::or_absent(up.quantile_ms(0.95), NO_UPLOAD)),
        ]);
        for (key, wanted) in [(Key::ThroughputDown, Direction::Down), (Key::ThroughputUp, Direction::Up)] {
            let of = |flow: &&Flow| flow.stream.is_some_and(|stream| self.streams[stream].direction == wanted);
            let figure = if self.uploads { self.throughput(flows().filter(of)) } else { Figure::absent(NO_UPLOAD) };
            figures.insert(key, figure);
        }
        let of_udp = |(_, stream): &(usize, &StreamInfo)| {
            stream.kind == UDP && only.is_none_or(|place| self.stations[place].node == stream.station)
        };
        let udp: Vec<usize> = self.streams.iter().enumerate().filter(of_udp).map(|(place, _)| place).collect();
        figures.extend(self.udp(&udp));
        if only.is_none() {
            figures.insert(Key::Jain, self.fairness());
            figures.extend(self.utility());
        }
        figures
    }

    fn throughput<'a>(&self, flows: impl Iterator<Item = &'a Flow>) -> Figure {
        let mut flows = flows.peekable();
        if flows.peek().is_none() {
            return Figure::absent(NO_BULK);
        }
        match Rate::of(flows.map(|flow| flow.payload).sum(), self.window.span()) {
            Some(rate) => Figure::exact(rate.as_mbit_f64()),
            None => Figure::absent("the warm-up leaves no time to measure in"),
        }
    }

    /// A flow's throughput while it lasted, in Mbit/s.
    fn lasting(&self, flow: &Flow) -> Option<f64> {
        let end = flow.ended.unwrap_or(self.window.end).min(self.window.end);
        Some(Rate::of(flow.payload, end.since(flow.began.max(self.window.warm_up)))?.as_mbit_f64())
    }

    fn flow_rate<'a>(&self, flows: impl Iterator<Item = &'a Flow>) -> Figure {
        Figure::or_absent(flows.filter_map(|flow| self.lasting(flow)).collect::<Moments>().mean(), NO_BULK)
    }

    fn retransmissions<'a>(&self, flows: impl Iterator<Item = &'a Flow>) -> Figure {
        let (mut all, mut known) = (0, Segments::default());
        for flow in flows {
            all += 1;
            let Some(flow) = flow.segments(&self.window) else {
                return Figure::absent("a sender's counters were not read at the beginning and end of the window");
            };
            known.sent += flow.sent;
            known.retransmitted += flow.retransmitted;
        }
        match (all, known.sent) {
            (0, _) => Figure::absent(NO_BULK),
            (_, 0) => Figure::absent("nothing was sent in the measuring window"),
            (_, sent) => Figure::exact(known.retransmitted as f64 / sent as f64),
        }
    }

    /// Of what the senders measured, every sample alike.
    fn round_trip<'a>(&self, flows: impl Iterator<Item = &'a Flow>, of: fn(&Segments) -> Span) -> Figure {
        let counted = flows.filter_map(|flow| flow.segments(&self.window));
        let (count, sum) =
            counted.fold((0, Span::ZERO), |(count, sum), segments| (count + segments.round_trips, sum + of(&segments)));
        let mean = (count > 0).then(|| sum.as_millis_f64() / count as f64);
        Figure::or_absent(mean, "no bulk sender measured a round trip in the measuring window")
    }

    /// Fast recoveries for a megabyte that reached the application.
    fn recoveries<'a>(&self, flows: impl Iterator<Item = &'a Flow>) -> Figure {
        let (mut entered, mut payload) = (Some(0), Bytes::ZERO);
        for flow in flows {
            let counted = flow.segments(&self.window).and_then(|segments| segments.recoveries);
            entered = entered.zip(counted).map(|(all, some)| all + some);
            payload += flow.payload;
        }
        match (entered, payload.is_zero()) {
            (_, true) => Figure::absent("no bulk flow delivered anything in the measuring window"),
            (None, _) => Figure::absent("the senders do not tell when they enter fast recovery"),
            (Some(entered), _) => Figure::exact(entered as f64 * 1e6 / payload.get() as f64),
        }
    }

    /// Figures of some streams of UDP.
    fn udp(&self, streams: &[usize]) -> [(Key, Figure); 4] {
        let (mut all, mut jitter) = (Measured::default(), Moments::default());
        for measured in streams.iter().filter_map(|stream| self.measured.get(*stream)) {
            all.merge(measured);
            measured.jitter.mean_ms().into_iter().for_each(|ms| jitter.add(ms));
        }
        let figure = |figure: &dyn Fn() -> Figure| {
            if streams.is_empty() { Figure::absent("there was no UDP at a rate of its own") } else { figure() }
        };
        [
            (Key::UdpThroughput, figure(&|| all.rate(self.window.span()))),
            (Key::UdpDelayP95, figure(&|| all.waits.quantile(0.95, "UDP packets"))),
            (Key::UdpLossRatio, figure(&|| all.loss())),
            (Key::UdpJitter, figure(&|| Figure::or_absent(jitter.mean(), "no two UDP packets arrived"))),
        ]
    }

    /// Figures by stream.
    fn stream_records(&self) -> Vec<StreamRecord> {
        let record = |(place, info): (usize, &StreamInfo)| {
            let measured = &self.measured[place];
            let flows = || self.flows.values().filter(move |flow| flow.stream == Some(place));
            let figures = match info.kind.as_str() {
                UDP => BTreeMap::from(self.udp(&[place])),
                PROBE => BTreeMap::from([
                    (Key::ProbeDelayP95, measured.waits.quantile(0.95, "probes")),
                    (Key::Jitter, Figure::or_absent(measured.jitter.mean_ms(), "no two probes arrived")),
                    (Key::ProbeLossRatio, measured.loss()),
                ]),
                FETCH => BTreeMap::from([
                    (Key::FetchP50, measured.waits.quantile(0.5, "fetches")),
                    (Key::FetchP95, measured.waits.quantile(0.95, "fetches")),
                ]),
                _ => BTreeMap::from([
                    (Key::Throughput, self.throughput(flows())),
                    (Key::FlowRate, self.flow_rate(flows())),
                    (Key::RttMean, self.round_trip(flows(), |of| of.round_trip_sum)),
                    (Key::RttVariationMean, self.round_trip(flows(), |of| of.deviation_sum)),
                    (Key::RetransmissionRatio, self.retransmissions(flows())),
                    (Key::StallMax, self.longest_stall(flows())),
                ]),
            };
            StreamRecord { info: info.clone(), figures }
        };
        self.streams.iter().enumerate().map(record).collect()
    }

    fn longest_stall<'a>(&self, flows: impl Iterator<Item = &'a Flow>) -> Figure {
        let longest = flows.filter_map(|flow| flow.stall(&self.window)).max();
        Figure::or_absent(longest.map(Span::as_millis_f64), NO_BULK)
    }

    /// Jain's index over the stations that have bulk flows. Flows between other hosts are nobody's share of the hop.
    fn fairness(&self) -> Figure {
        let mut shares: BTreeMap<usize, Bytes> = BTreeMap::new();
        for flow in self.flows.values() {
            if let Some(station) = flow.station {
                *shares.entry(station).or_default() += flow.payload;
            }
        }
        let shares: Vec<f64> = shares.into_values().map(|bytes| bytes.get() as f64).collect();
        match shares.len() {
            0 => Figure::absent("no station had a bulk flow in the measuring window"),
            1 => Figure::absent("one station alone has nobody to be fair to"),
            _ => Figure::or_absent(jain(&shares), "no bulk flow delivered anything"),
        }
    }

    /// What all bulk flows together are worth, and how many of them starve.
    fn utility(&self) -> [(Key, Figure); 3] {
        /// A flow that delivers nothing counts as this much: the logarithm of nothing would hide all others.
        const FLOOR_KBIT_S: f64 = 1.0;
        /// The part of an equal share below which a flow starves.
        const STARVED: f64 = 0.1;
        let rates: Option<Vec<f64>> = self.flows.values().map(|flow| Some(self.lasting(flow)? * 1e3)).collect();
        let rates = rates.filter(|rates| rates.len() > 1);
        let figure = |of: &dyn Fn(&[f64]) -> f64| {
            Figure::or_absent(rates.as_deref().map(of), "one flow alone has nobody to share with")
        };
        let sum = |log: fn(f64) -> f64| {
            move |rates: &[f64]| rates.iter().map(|rate| log(rate.max(FLOOR_KBIT_S))).sum::<f64>()
        };
        let starved = |rates: &[f64]| {
            let share = STARVED * rates.iter().sum::<f64>() / rates.len() as f64;
            rates.iter().filter(|rate| **rate < share).count() as f64 / rates.len() as f64
        };
        [
            (Key::LogUtility, figure(&sum(f64::ln))),
            (Key::LogUtility10, figure(&sum(f64::log10))),
            (Key::StarvedShare, figure(&starved)),
        ]
    }

    fn tracks(&self) -> Vec<Track> {
        let mut tracks = Vec::new();
        let mut pooled = Bins::default();
        let mut delays = |entity: Entity, bins: &Bins| {
            let (means, maxima) = (bins.means(&self.grid), bins.maxima(&self.grid));
            tracks.push(Track { kind: SeriesKind::HopDelay, entity: entity.clone(), values: means });
            tracks.push(Track { kind: SeriesKind::HopDelayMax, entity, values: maxima });
        };
        for station in &self.stations {
            pooled.merge(&station.delay_bins);
            delays(Entity::Station(station.name.clone()), &station.delay_bins);
        }
        delays(Entity::Hop, &pooled);
        for station in &self.stations {
            for (kind, bins) in
                [(SeriesKind::Frames, &station.aggregation), (SeriesKind::UplinkFrames, &station.uplink_bins)]
            {
                if !bins.is_empty() {
                    let entity = Entity::Station(station.name.clone());
                    tracks.push(Track { kind, entity, values: bins.rates(&self.grid) });
                }
            }
        }
        // A flow that delivered nothing has a rate too: zero.
        for (id, flow) in &self.flows {
            let values = flow.arrivals.sums(&self.grid).into_iter().enumerate().map(|(bin, bytes)| {
                let (from, to) = (self.grid.start(bin), self.grid.start(bin) + self.grid.length(bin));
                let alive = flow.began < to && flow.ended.is_none_or(|ended| ended > from);
                let rate = bytes * 8.0 / 1e6 / self.grid.length(bin).as_secs_f64();
                (alive || bytes > 0.0).then_some(rate)
            });
            tracks.push(Track { kind: SeriesKind::Rate, entity: self.flow_entity(*id), values: values.collect() });
        }
        for (gauge, bins) in &self.gauges {
            let entity = match *gauge {
                Gauge::Hop(_) => Entity::Hop,
                Gauge::Station(_, node) => self.node_entity(node),
                Gauge::Flow(_, flow) => self.flow_entity(flow),
            };
            let values = match (gauge.kind().series().held, *gauge) {
                (Held::No, _) => bins.means(&self.grid),
                // What these show stands until it changes; a sum of flows would be false where one of them is missing.
                (Held::Yes, Gauge::Flow(_, id)) => {
                    let ended = self.flows.get(&id).and_then(|flow| flow.ended);
                    bins.held(&self.grid, ended.unwrap_or(self.window.end))
                }
                (Held::Yes, _) => bins.held(&self.grid, self.window.end),
            };
            tracks.push(Track { kind: gauge.kind(), entity, values });
        }
        tracks.sort_by(|a, b| (a.kind, &a.entity).cmp(&(b.kind, &b.entity)));
        tracks
    }

    fn node_entity(&self, node: Node) -> Entity {
        let place = self.places.get(node.index()).copied().flatten();
        Entity::Station(place.map_or_else(|| format!("node {}", node.0), |place| self.stations[place].name.clone()))
    }

    fn flow_entity(&self, id: FlowId) -> Entity {
        match self.flows.get(&id) {
            Some(flow) => {
                let station = flow.station.map(|station| self.stations[station].name.clone());
                Entity::Flow { flow: flow.name.clone(), station }
            }
            None => Entity::Flow { flow: format!("flow {}", id.0), station: None },
        }
    }
}

impl Station {
    fn new(node: Node, name: String) -> Station {
        Station {
            node,
            name,
            delays: Delays::default(),
            delay_bins: Bins::default(),
            up: Delays::default(),
            probes: Waits::default(),
            jitter: Jitter::default(),
            fetches: Waits::default(),
            ends: Delays::default(),
            frames: Frames::default(),
            aggregation: Bins::default(),
            uplink: 0,
            uplink_bins: Bins::default(),
            lost: 0,
        }
    }
}

/// Kinds of streams that are measured by packets, not by connections.
const UDP: &str = "udp";
const PROBE: &str = "probe";
const FETCH: &str = "fetch";
const NO_UPLOAD: &str = "no stream goes from a station";
const NO_BULK: &str = "there was no such bulk flow in the measuring window";

/// Of the smoothed round trips of some flows.
fn round_trip_p95<'a>(flows: impl Iterator<Item = &'a Flow>) -> Figure {
    let mut all = Delays::default();
    flows.for_each(|flow| all.merge(&flow.round_trips));
    Figure::or_absent(all.quantile_ms(0.95), "no bulk sender told of a round trip in the measuring window")
}

#[cfg(test)]
mod tests;
