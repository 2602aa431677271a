//! What a loss class is predicted from: one vector for each station and moment, from what was known by then.
//! Source:     \[oal\], the sampling table and Table 2.
//! Equations:  rate of a counter c over w:  (c(t) - c(s)) / (t - s),  s = newest sample with s <= t - w
//!             drain = sum_i 8 backlog_i airtime_i / bytes_i     (over 100 ms; 8 backlog_i / R_i of a link that sent nothing)
//! Symbols:    c -> a field of `Counters` or of `Sample`, t - s -> the driver's own clock where it has one, R -> `phy_rate`
//! Deviations: the paper's qdisc numbers (queues 1 to 5, requeues) and its beacons do not exist in today's drivers' reports; what
//!             senders have in flight and what is forwarded stand in their place. Its 100 ms are kept for what is rare only: what
//!             decides within a round trip is looked at over 4 and 20 ms, too.
//! Validity:   counters are cumulative. One that went back begins anew; a rate that would span a gap or a restart is missing (NaN).
//! Checked by: tests::*, tests/integration/oal_props.rs (what comes later changes nothing)

use lasthop_signals::{FlowId, FlowReport, HopReport, Node, QueueReport, StationReport};
use lasthop_units::{Rate, Span, Time};
use std::collections::{BTreeMap, VecDeque};

/// A feature as files and reports name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    /// Its name.
    pub name: &'static str,
    /// Its unit; `1` for a share.
    pub unit: &'static str,
    /// What it is.
    pub meaning: &'static str,
}

macro_rules! features {
    ($($id:ident = $name:literal, $unit:literal, $meaning:literal;)*) => {
        /// A feature, by its place in a [`Vector`].
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum FeatureId { $(#[doc = $meaning] $id,)* }

        /// Every feature, in the order of a [`Vector`].
        pub const FEATURES: &[Feature] = &[$(Feature { name: $name, unit: $unit, meaning: $meaning },)*];
    };
}

features! {
    Backlog = "backlog", "packets", "Packets that wait for the station.";
    HopBacklog = "hop-backlog", "packets", "Packets that wait for all stations.";
    HeadWait = "head-wait", "s", "How long the oldest packet for the station has waited.";
    Drain = "drain", "s", "Airtime that all waiting packets take at what their links carried lately.";
    HopDrops4 = "hop-drops-4ms", "packets/s", "Packets that the hop's queues refused, over 4 ms.";
    HopDrops20 = "hop-drops-20ms", "packets/s", "The same over 20 ms.";
    Drops100 = "drops-100ms", "packets/s", "Packets for the station that queues refused, over 100 ms.";
    Busy20 = "busy-20ms", "1", "Share of time in which the channel was busy, over 20 ms.";
    HopFlows100 = "hop-flows-100ms", "flows", "TCP connections to all stations that were sent data within 100 ms.";
    HopSent20 = "hop-sent-20ms", "bit/s", "What all stations were sent and acknowledged, over 20 ms.";
    HopForwarded20 = "hop-forwarded-20ms", "bit/s", "TCP payload forwarded to all stations, over 20 ms.";
    HopInFlight = "hop-in-flight", "B", "TCP payload forwarded to all stations, not yet acknowledged.";
    InFlight = "in-flight", "B", "TCP payload forwarded to the station, not yet acknowledged.";
    Recovering = "recovering", "1", "Share of the station's TCP connections with data within 100 ms that repair losses.";
    DropShare100 = "drop-share-100ms", "1", "Share of the station's packets that queues refused, of those and the delivered ones, over 100 ms.";
    SinceDrop = "since-drop", "s", "How long ago the hop's queues refused a packet last.";
}

/// The features of one station at one moment, in the order of [`FEATURES`]; NaN: missing.
pub type Vector = [f32; FEATURES.len()];

/// Those that tell what queues dropped.
pub const DROPS: [FeatureId; 5] =
    [FeatureId::HopDrops4, FeatureId::HopDrops20, FeatureId::Drops100, FeatureId::DropShare100, FeatureId::SinceDrop];

/// A number that stands for the list: a tree that was trained with another one is refused.
pub const SCHEMA: u64 = schema(FEATURES);

/// FNV-1a over names and units, each with a zero behind it.
const fn schema(features: &[Feature]) -> u64 {
    const fn add(mut hash: u64, text: &str) -> u64 {
        let (bytes, mut at) = (text.as_bytes(), 0);
        while at <= bytes.len() {
            let byte = if at < bytes.len() { bytes[at] } else { 0 };
            hash = (hash ^ byte as u64).wrapping_mul(0x0100_0000_01b3);
            at += 1;
        }
        hash
    }
    let (mut hash, mut at) = (0xcbf2_9ce4_8422_2325, 0);
    while at < features.len() {
        hash = add(add(hash, features[at].name), features[at].unit);
        at += 1;
    }
    hash
}

/// The windows over which counters are compared.
const WINDOWS: [Span; 3] = [Span::from_millis(4), Span::from_millis(20), Span::from_millis(100)];
/// Their places.
const W4: usize = 0;
const W20: usize = 1;
const W100: usize = 2;
/// A reader that wakes up late by more than this leaves a gap: rates across it are of another moment.
const GAP: Span = Span::from_millis(100);

/// Folds drivers' and flows' reports, and tells the features.
#[derive(Clone, Debug, Default)]
pub struct Sampler {
    samples: VecDeque<Sample>,
    flows: BTreeMap<FlowId, FlowReport>,
    /// TCP payload forwarded, counted from the first report of each flow.
    forwarded: u64,
    /// Counts stations that appeared or began to count anew.
    epochs: u64,
    /// When a queue refused a packet last.
    dropped: Option<Time>,
    vectors: Vec<(Node, Vector)>,
}

/// What was known at one moment.
#[derive(Clone, Debug)]
struct Sample {
    at: Time,
    active: Span,
    busy: Option<Span>,
    forwarded: u64,
    /// By number.
    stations: Vec<Counters>,
    /// Queues before the driver: while there are any, the receivers of waiting and dropped packets are not known.
    queues: Vec<QueueReport>,
}

#[derive(Clone, Copy, Debug)]
struct Counters {
    /// Counters of one epoch can be compared.
    epoch: u64,
    report: StationReport,
}

impl Sampler {
    /// A flow's report; before the driver's of the same interval.
    pub fn flow(&mut self, report: &FlowReport) {
        let before = self.flows.insert(report.flow, *report);
        let grown = before.map_or(0, |before| report.forwarded.get().saturating_sub(before.forwarded.get()));
        self.forwarded = self.forwarded.wrapping_add(grown);
    }

    /// A flow has gone.
    pub fn flow_gone(&mut self, flow: FlowId) {
        self.flows.remove(&flow);
    }

    /// The driver's report at `now`, which ends an interval, and of which features are asked for.
    pub fn hop(&mut self, now: Time, report: &HopReport) {
        self.count(now, report);
        self.compute();
    }

    /// The driver's report at `now`, which ends an interval: the features stay those of the moment before.
    pub fn count(&mut self, now: Time, report: &HopReport) {
        let last = self.samples.back();
        if last.is_some_and(|last| report.channel.active < last.active || report.channel.busy < last.busy) {
            self.samples.clear();
        }
        let mut stations: Vec<Counters> =
            report.stations.iter().map(|report| Counters { epoch: 0, report: *report }).collect();
        stations.sort_by_key(|counters| counters.report.station);
        stations.dedup_by_key(|counters| counters.report.station);
        for counters in &mut stations {
            let before = self.samples.back().and_then(|last| last.station(counters.report.station));
            counters.epoch = match before.filter(|before| !went_back(&before.report, &counters.report)) {
                Some(before) => before.epoch,
                None => {
                    self.epochs += 1;
                    self.epochs
                }
            };
        }
        let refused = |counters: &Counters| {
            let before = self.samples.back().and_then(|last| last.station(counters.report.station));
            before.is_some_and(|before| {
                before.epoch == counters.epoch && before.report.queue_drops < counters.report.queue_drops
            })
        };
        let shared = self.samples.back().is_some_and(|last| queue_drops(&last.queues, &report.queues) > 0);
        if shared || stations.iter().any(refused) {
            self.dropped = Some(now);
        }
        let (active, busy) = (report.channel.active, report.channel.busy);
        self.samples.push_back(Sample {
            at: now,
            active,
            busy,
            forwarded: self.forwarded,
            stations,
            queues: report.queues.clone(),
        });
        // The oldest that is needed: the newest that is as old as the longest window.
        while self.samples.len() > 1 && self.samples[1].at + WINDOWS[W100] <= now {
            self.samples.pop_front();
        }
    }

    /// The features of every station at the last driver's report, in the order of their numbers.
    pub fn vectors(&self) -> &[(Node, Vector)] {
        &self.vectors
    }

    /// The features of one station at the last driver's report.
    pub fn vector(&self, station: Node) -> Option<&Vector> {
        self.vectors.binary_search_by_key(&station, |(station, _)| *station).ok().map(|at| &self.vectors[at].1)
    }

    /// The longest wired round trip of the flows to a station, of those that have one.
    pub fn wired_round_trip(&self, station: Node) -> Option<Span> {
        self.flows.values().filter(|flow| flow.station == station).filter_map(|flow| flow.wired_rtt).max()
    }

    /// [`Sampler::wired_round_trip`] of every station that has one.
    pub fn wired_round_trips(&self) -> BTreeMap<Node, Span> {
        let mut longest = BTreeMap::new();
        for (station, wired) in self.flows.values().filter_map(|flow| Some((flow.station, flow.wired_rtt?))) {
            let of_it = longest.entry(station).or_insert(wired);
            *of_it = wired.max(*of_it);
        }
        longest
    }

    fn compute(&mut self) {
        self.vectors.clear();
        let Some(new) = self.samples.back() else { return };
        let windows = WINDOWS.map(|span| Window::of(&self.samples, new, span));
        let sum = |of: fn(&StationReport) -> u64| new.stations.iter().map(|s| of(&s.report) as f64).sum::<f64>();
        let shared_backlog: u64 = new.queues.iter().map(|queue| u64::from(queue.backlog_packets)).sum();
        let hop_backlog = sum(|s| u64::from(s.backlog_packets)) + shared_backlog as f64;
        let in_flight: f64 = self.flows.values().map(|flow| flow.in_flight.get() as f64).sum();
        // In one pass: a busy access point has many stations, and many flows.
        let mut own_flows: BTreeMap<Node, OwnFlows> = BTreeMap::new();
        for flow in self.flows.values() {
            let own = own_flows.entry(flow.station).or_default();
            own.in_flight += flow.in_flight.get();
            if !flow.forwarded.is_zero() && flow.last_data + WINDOWS[W100] >= new.at {
                own.live += 1;
                own.repairing += u32::from(flow.recovering);
            }
        }
        let flows: u32 = own_flows.values().map(|own| own.live).sum();
        let drain = windows[W100].hop_drain();
        let forwarded = windows[W20].old.map(|old| 8.0 * new.forwarded.wrapping_sub(old.forwarded) as f64);
        let hop = |window: usize, of: fn(&StationReport) -> u64| windows[window].rate(windows[window].grown(of));
        let hop_drops = |window: usize| windows[window].rate(windows[window].dropped());
        let shared = [
            (FeatureId::HopBacklog, Some(hop_backlog)),
            (FeatureId::Drain, drain),
            (FeatureId::HopDrops4, hop_drops(W4)),
            (FeatureId::HopDrops20, hop_drops(W20)),
            (FeatureId::Busy20, windows[W20].busy()),
            (FeatureId::HopFlows100, Some(f64::from(flows))),
            (FeatureId::HopSent20, hop(W20, |s| s.tx_bytes.bits())),
            (FeatureId::HopForwarded20, windows[W20].rate(forwarded)),
            (FeatureId::HopInFlight, Some(in_flight)),
            (FeatureId::SinceDrop, self.dropped.map(|dropped| new.at.since(dropped).as_secs_f64())),
        ];
        let has_own_queues = new.queues.is_empty();
        for station in &new.stations {
            let report = &station.report;
            let long = &windows[W100];
            let own = |of: fn(&StationReport) -> u64| long.pair(station).map(|old| (of(report) - of(old)) as f64);
            let drops = own(|s| s.queue_drops).filter(|_| has_own_queues);
            let offered = drops.zip(own(|s| s.tx_packets)).map(|(drops, sent)| drops + sent);
            let share = drops.zip(offered.filter(|offered| *offered > 0.0)).map(|(drops, offered)| drops / offered);
            let OwnFlows { in_flight, live, repairing } = own_flows.get(&report.station).copied().unwrap_or_default();
            let of_it = [
                (FeatureId::Backlog, has_own_queues.then(|| f64::from(report.backlog_packets))),
                (FeatureId::HeadWait, report.head_wait.map(Span::as_secs_f64)),
                (FeatureId::Drops100, long.rate(drops)),
                (FeatureId::InFlight, Some(in_flight as f64)),
                (FeatureId::Recovering, (live > 0).then(|| f64::from(repairing) / f64::from(live))),
                (FeatureId::DropShare100, share),
            ];
            let mut vector = [f32::NAN; FEATURES.len()];
            for (id, value) in shared.iter().chain(&of_it) {
                vector[*id as usize] = value.map_or(f32::NAN, |value| value as f32);
            }
            self.vectors.push((report.station, vector));
        }
    }
}

/// The flows to one station.
#[derive(Clone, Copy, Default)]
struct OwnFlows {
    in_flight: u64,
    /// Of those that were sent data lately: how many, and how many of them repair losses.
    live: u32,
    repairing: u32,
}

impl Sample {
    fn station(&self, station: Node) -> Option<&Counters> {
        let at = self.stations.binary_search_by_key(&station, |counters| counters.report.station).ok()?;
        self.stations.get(at)
    }
}

/// The newest sample beside one that is a window older.
struct Window<'s> {
    new: &'s Sample,
    old: Option<&'s Sample>,
    seconds: f64,
}

impl<'s> Window<'s> {
    fn of(samples: &'s VecDeque<Sample>, new: &'s Sample, span: Span) -> Window<'s> {
        let recent = |old: &&Sample| new.at.since(old.at) <= span + GAP;
        let old = samples.iter().rev().find(|old| old.at + span <= new.at).filter(recent);
        // The driver's own clock: a reader that wakes up late must not stretch the interval.
        let seconds = old.map_or(0.0, |old| match new.active.saturating_sub(old.active) {
            Span::ZERO => new.at.since(old.at).as_secs_f64(),
            active => active.as_secs_f64(),
        });
        Window { new, old, seconds }
    }

    fn rate(&self, amount: Option<f64>) -> Option<f64> {
        amount.filter(|_| self.seconds > 0.0).map(|amount| amount / self.seconds)
    }

    /// What is known of a station at the window's beginning, if its counters can be compared.
    fn pair(&self, station: &Counters) -> Option<&'s StationReport> {
        let old = self.old?.station(station.report.station)?;
        (old.epoch == station.epoch).then_some(&old.report)
    }

    /// By how much a counter has grown, over all stations with comparable counters.
    fn grown(&self, of: fn(&StationReport) -> u64) -> Option<f64> {
        self.old?;
        let each = self.new.stations.iter().filter_map(|new| Some((of(&new.report) - of(self.pair(new)?)) as f64));
        Some(each.sum())
    }

    /// Packets that the queues of all dropped.
    fn dropped(&self) -> Option<f64> {
        Some(self.grown(|s| s.queue_drops)? + queue_drops(&self.old?.queues, &self.new.queues) as f64)
    }

    fn busy(&self) -> Option<f64> {
        let busy = self.old.and_then(|old| Some(self.new.busy?.saturating_sub(old.busy?).as_secs_f64()));
        self.rate(busy)
    }

    /// Airtime that all that waits takes; `None` if nothing tells how fast a link is. Packets before the driver take what a mean link takes.
    fn hop_drain(&self) -> Option<f64> {
        let own: Option<f64> = self.new.stations.iter().map(|station| self.drain(station)).sum();
        let shared = self.new.queues.iter().map(|queue| queue.backlog_bytes.bits()).sum::<u64>() as f64;
        if shared == 0.0 {
            return own;
        }
        let links: Vec<f64> = self.new.stations.iter().filter_map(|station| self.airtime_a_bit(station)).collect();
        let mean = (!links.is_empty()).then(|| links.iter().sum::<f64>() / links.len() as f64);
        Some(own? + shared * mean?)
    }

    /// Airtime that a station's backlog takes; `None` if nothing tells how fast its link is.
    fn drain(&self, station: &Counters) -> Option<f64> {
        let bits = station.report.backlog_bytes.bits() as f64;
        if bits == 0.0 { Some(0.0) } else { Some(bits * self.airtime_a_bit(station)?) }
    }

    /// Airtime of a bit to a station: by what was sent, or else by the rate of its link.
    fn airtime_a_bit(&self, station: &Counters) -> Option<f64> {
        let new = &station.report;
        let sent = self.pair(station).map(|old| {
            let grown = old.tx_airtime.zip(new.tx_airtime).map(|(old, new)| new.saturating_sub(old));
            let airtime = grown.unwrap_or(Span::ZERO).as_secs_f64();
            (new.tx_bytes.saturating_sub(old.tx_bytes).bits() as f64, airtime)
        });
        match (sent, new.phy_rate) {
            (Some((sent, airtime)), _) if sent > 0.0 && airtime > 0.0 => Some(airtime / sent),
            (_, Rate::ZERO) => None,
            (_, rate) => Some(1.0 / rate.as_bps() as f64),
        }
    }
}

/// Packets that queues before the driver dropped from one report to another; one that counts anew has no past.
fn queue_drops(old: &[QueueReport], new: &[QueueReport]) -> u64 {
    let grown = |new: &QueueReport| {
        let old = old.iter().find(|old| old.queue == new.queue)?;
        new.drops.checked_sub(old.drops)
    };
    new.iter().filter_map(grown).sum()
}

/// True if any counter that is used here fell: the station came back, or the driver was restarted.
fn went_back(old: &StationReport, new: &StationReport) -> bool {
    new.queue_drops < old.queue_drops
        || new.tx_packets < old.tx_packets
        || new.tx_bytes < old.tx_bytes
        || new.tx_airtime < old.tx_airtime
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_signals::ChannelTime;
    use lasthop_units::Bytes;

    const MS: u64 = 1_000_000;

    fn at(ms: u64) -> Time {
        Time::from_nanos(1000 * MS + ms * MS)
    }

    /// Counters of a driver at `ms`: a station sends 100 packets of 1500 octets a second of virtual time per `scale`.
    fn report(ms: u64, scale: u64) -> HopReport {
        let packets = ms * scale / 10;
        let station = StationReport {
            backlog_packets: 10,
            backlog_bytes: Bytes::new(15_000),
            queue_drops: packets / 10,
            tx_attempts: Some(2 * packets),
            tx_retries: Some(packets),
            tx_packets: packets,
            tx_bytes: Bytes::new(1500 * packets),
            rx_bytes: Bytes::new(ms),
            tx_airtime: Some(Span::from_millis(ms) / 2),
            phy_rate: Rate::from_mbit(100),
            ..StationReport::unseen(Node(1))
        };
        let (active, busy) = (Span::from_millis(ms), Span::from_millis(ms) / 4);
        HopReport {
            channel: ChannelTime {
                active,
                busy: Some(busy),
                rx: Some(Span::ZERO),
                tx: Some(busy),
                ..ChannelTime::default()
            },
            queues: Vec::new(),
            stations: vec![station],
        }
    }

    fn fed(times: impl Iterator<Item = u64>, scale: u64) -> Sampler {
        let mut sampler = Sampler::default();
        times.for_each(|ms| sampler.hop(at(ms), &report(ms, scale)));
        sampler
    }

    fn value(sampler: &Sampler, id: FeatureId) -> f32 {
        sampler.vector(Node(1)).expect("reported")[id as usize]
    }

    #[test]
    fn rates_do_not_depend_on_how_often_is_sampled() {
        let (often, seldom) = (fed((0..=400).step_by(4), 100), fed((0..=400).step_by(20), 100));
        for (id, expected) in [
            (FeatureId::HopSent20, 1500.0 * 8.0 * 10_000.0),
            (FeatureId::HopDrops20, 1000.0),
            (FeatureId::HopDrops4, 1000.0),
            (FeatureId::Drops100, 1000.0),
            (FeatureId::Busy20, 0.25),
            (FeatureId::DropShare100, 100.0 / 1100.0),
            (FeatureId::SinceDrop, 0.0),
            // 15 000 B at what was sent in half of the time: 240 Mbit/s while it sends.
            (FeatureId::Drain, 120_000.0 / 240e6),
        ] {
            for sampler in [&often, &seldom] {
                assert!((value(sampler, id) / expected - 1.0).abs() < 1e-3 || value(sampler, id) == expected, "{id:?}");
            }
        }
    }

    #[test]
    fn what_has_no_past_is_missing() {
        let sampler = fed([0].into_iter(), 100);
        assert!(value(&sampler, FeatureId::HopDrops4).is_nan());
        assert!(value(&sampler, FeatureId::DropShare100).is_nan() && value(&sampler, FeatureId::SinceDrop).is_nan());
        assert_eq!(value(&sampler, FeatureId::Backlog), 10.0);
        assert_eq!(value(&fed([0, 4, 8].into_iter(), 100), FeatureId::HopDrops4), 1000.0);
    }

    #[test]
    fn backlog_above_the_driver_counts_for_the_hop_only() {
        let mut sampler = Sampler::default();
        for ms in (0..=400).step_by(4) {
            let mut report = report(ms, 100);
            report.stations[0].backlog_packets = 0;
            report.stations[0].backlog_bytes = Bytes::ZERO;
            report.stations[0].queue_drops = 0;
            let queue = |queue, each: u64| QueueReport {
                queue,
                backlog_packets: 20,
                backlog_bytes: Bytes::new(30_000),
                drops: each * ms,
                ..QueueReport::default()
            };
            report.queues = vec![queue(1, 1), queue(2, 2)];
            sampler.hop(at(ms), &report);
        }
        for id in [FeatureId::Backlog, FeatureId::Drops100, FeatureId::DropShare100] {
            assert!(value(&sampler, id).is_nan(), "{id:?}");
        }
        for (id, expected) in [
            (FeatureId::HopBacklog, 40.0),
            (FeatureId::HopDrops4, 3000.0),
            (FeatureId::HopDrops20, 3000.0),
            (FeatureId::SinceDrop, 0.0),
            (FeatureId::Drain, 480_000.0 / 240e6),
        ] {
            assert!((value(&sampler, id) - expected).abs() <= 1e-3 * expected, "{id:?}: {}", value(&sampler, id));
        }
    }

    #[test]
    fn it_tells_how_long_ago_the_last_drop_was() {
        let mut sampler = fed((0..=400).step_by(4), 100);
        let last = report(400, 100).stations[0].queue_drops;
        for ms in (404..=1000).step_by(4) {
            let mut calm = report(ms, 100);
            calm.stations[0].queue_drops = last;
            sampler.hop(at(ms), &calm);
        }
        assert!((value(&sampler, FeatureId::SinceDrop) - 0.6).abs() < 1e-6);
        assert_eq!(value(&sampler, FeatureId::DropShare100), 0.0);
    }

    #[test]
    fn a_rate_spans_no_gap() {
        let mut sampler = fed((0..=400).step_by(4), 100);
        sampler.hop(at(1400), &report(1400, 100));
        assert!(value(&sampler, FeatureId::HopDrops4).is_nan() && value(&sampler, FeatureId::Busy20).is_nan());
        sampler.hop(at(1404), &report(1404, 100));
        assert!(!value(&sampler, FeatureId::HopDrops4).is_nan());
    }

    #[test]
    fn a_station_whose_counters_fall_begins_anew() {
        let mut sampler = fed((0..=400).step_by(4), 100);
        let mut restarted = report(404, 100);
        restarted.stations[0] = StationReport { backlog_packets: 3, ..StationReport::unseen(Node(1)) };
        sampler.hop(at(404), &restarted);
        assert!(value(&sampler, FeatureId::Drops100).is_nan());
        assert_eq!(value(&sampler, FeatureId::HopDrops4), 0.0, "the others go on, and there are none");
        assert_eq!(value(&sampler, FeatureId::Busy20), 0.25, "the channel goes on");
        // Faster than before: beyond the old counters within the window, and still not compared with them.
        (408..500).step_by(4).for_each(|ms| sampler.hop(at(ms), &report(ms, 1000)));
        assert!(value(&sampler, FeatureId::Drops100).is_nan());
        (500..520).step_by(4).for_each(|ms| sampler.hop(at(ms), &report(ms, 1000)));
        assert_eq!(value(&sampler, FeatureId::Drops100), 10_000.0);
    }

    #[test]
    fn what_is_forwarded_is_summed_over_flows() {
        let flow = |id: u32, forwarded: u64| FlowReport {
            flow: FlowId(id),
            station: Node(1),
            forwarded: Bytes::new(forwarded),
            acked: Bytes::ZERO,
            in_flight: Bytes::new(1000),
            wired_rtt: Some(Span::from_millis(u64::from(10 * id))),
            wireless_rtt: None,
            mss: Bytes::new(1448),
            advertised: Bytes::ZERO,
            last_data: if id == 1 { at(0) } else { Time::from_nanos(900 * MS) },
            recovering: false,
        };
        let mut sampler = Sampler::default();
        for ms in (0..=40).step_by(4) {
            sampler.flow(&flow(1, 1000 * ms));
            sampler.flow(&flow(2, 2000 * ms));
            sampler.hop(at(ms), &report(ms, 100));
        }
        assert!((value(&sampler, FeatureId::HopForwarded20) / 24e6 - 1.0).abs() < 1e-6);
        assert_eq!((value(&sampler, FeatureId::HopInFlight), value(&sampler, FeatureId::InFlight)), (2000.0, 2000.0));
        assert_eq!(value(&sampler, FeatureId::Recovering), 0.0);
        sampler.flow(&FlowReport { recovering: true, ..flow(1, 40_000) });
        sampler.hop(at(40), &report(40, 100));
        assert_eq!(value(&sampler, FeatureId::Recovering), 1.0, "of those that are sent something");
        assert_eq!(value(&sampler, FeatureId::HopFlows100), 1.0, "the other was sent nothing for 140 ms");
        assert_eq!(sampler.wired_round_trip(Node(1)), Some(Span::from_millis(20)));
        sampler.flow_gone(FlowId(2));
        assert_eq!(sampler.wired_round_trip(Node(1)), Some(Span::from_millis(10)));
    }

    #[test]
    fn names_are_unique_and_short_enough_for_a_column() {
        for (at, feature) in FEATURES.iter().enumerate() {
            assert!(FEATURES[..at].iter().all(|other| other.name != feature.name), "{}", feature.name);
            assert!(feature.name.len() <= 20 && feature.meaning.ends_with('.'));
        }
        assert_ne!(SCHEMA, schema(&FEATURES[1..]));
    }
}
