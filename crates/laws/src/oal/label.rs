//! What a tree learns from: the features of a moment, and which share of what entered soon after was lost to congestion.
//! Source:     \[oal\]: the classes of the share that is lost to congestion in the coming 2T seconds.
//! Equations:  l = sum_j congestion_j / sum_j copies_j  over the intervals j between t and the first sample at or after t + h
//!             h = the longer of the wired round trip of the station's flows (2T) and `horizon`;  final once t_last + `repair` has passed
//! Symbols:    l -> `Item::share`, t -> `Item::at`, h -> `horizon`, congestion, copies -> `evidence::Count`
//! Deviations: an item is of one access point and one station (the paper says neither); its label counts the first
//!             copies of that station's flows, whatever else shares their queue, and its features tell of the other
//!             stations' queues, too. The paper waits for no repair: cut after 1.5 round trips, what a timeout repairs
//!             (200 ms or more) would count as carried. `repair` is 1.5 s by default: the longest of 3 round trips of
//!             500 ms and RFC 6298's first timeout of a second.
//! Validity:   a moment without a first copy in its horizon, or with a gap of samples there, makes no item, nor does
//!             one of which segments were missed before its label was known. Moments 4 ms apart make items that are
//!             nearly copies of each other.
//! Checked by: tests::*, tests/integration/oal_props.rs (what comes later changes nothing), crates/sim/tests/integration/oal_labels.rs

use super::air::GivenUp;
use super::evidence::{Count, Evidence};
use super::features::{FeatureId, Sampler, Vector};
use super::predictor::LossClass;
use lasthop_signals::{HopReport, Node, Signal};
use lasthop_units::{Span, Time};
use std::collections::VecDeque;

/// What is learned from one station at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// The moment.
    pub at: Time,
    /// The end of its horizon: the sample at or after what was aimed at.
    pub until: Time,
    /// The station.
    pub station: Node,
    /// What was known then.
    pub features: Vector,
    /// First copies that entered behind the moment and until then, in segments; at least one.
    pub copies: u64,
    /// Those of them that congestion has lost.
    pub lost: u64,
    /// True if windows were tight within the horizon, or less than [`REST`] before it: what would have been lost otherwise is not known.
    pub acted: bool,
}

impl Item {
    /// Share of the first copies that was lost to congestion.
    pub fn share(&self) -> f64 {
        self.lost as f64 / self.copies as f64
    }

    /// The class of that share.
    pub fn class(&self) -> LossClass {
        LossClass::of(self.share())
    }
}

/// How items are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How far a label looks ahead at least: within a short wired round trip a slow station gets so few segments that one loss is a
    /// whole class.
    pub horizon: Span,
    /// How long after its horizon an item waits for losses to be repaired, and so to be told.
    pub repair: Span,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing { horizon: Span::from_millis(50), repair: Span::from_millis(1500) }
    }
}

/// The wire makes a horizon no longer than this: what is to come then is not in the features.
const HORIZON_MAX: Span = Span::from_millis(500);
/// Samples within a horizon are not further apart than this, or it has a gap.
const GAP: Span = Span::from_millis(100);

/// How long senders that were held back go on sending less than they would: some tens of round trips, in which their windows grow.
pub const REST: Span = Span::from_millis(500);

/// Makes items from what an access point observes.
#[derive(Clone, Debug)]
pub struct Collector {
    timing: Timing,
    sampler: Sampler,
    evidence: Evidence,
    pending: VecDeque<Pending>,
    /// For each interval from the first pending one on, whether windows were tight in it.
    acted: VecDeque<bool>,
    /// Number of the first of them.
    first: u64,
    /// The last moment at which windows were tight.
    last_acted: Option<Time>,
    /// What the radio gives up.
    air: GivenUp,
    /// Time between moments that items are made of, and the next one; `None`: every driver's report.
    every: Option<(Span, Time)>,
}

/// An item without a known label yet.
#[derive(Clone, Debug)]
struct Pending {
    at: Time,
    /// The first interval of its horizon.
    interval: u64,
    until: Time,
    station: Node,
    features: Vector,
    /// Windows were tight less than [`REST`] before.
    held: bool,
}

impl Collector {
    /// A collector that has seen nothing.
    pub fn new(timing: Timing) -> Collector {
        Collector {
            timing,
            sampler: Sampler::default(),
            evidence: Evidence::new(timing.repair),
            pending: VecDeque::new(),
            acted: VecDeque::from([false]),
            first: 0,
            last_acted: None,
            air: GivenUp::default(),
            every: None,
        }
    }

    /// The same, which makes items of the first driver's report at or after each multiple of `span` only.
    #[must_use]
    pub fn every(self, span: Span) -> Collector {
        Collector { every: Some((span, Time::ZERO)), ..self }
    }

    /// The first multiple of `span` behind a moment.
    pub fn moment_after(now: Time, span: Span) -> Time {
        let span = span.as_nanos().max(1);
        Time::from_nanos((now.as_nanos() / span + 1).saturating_mul(span))
    }

    /// Folds in flows' reports, passing segments, and the driver's report, which makes a moment.
    pub fn sense(&mut self, now: Time, signal: &Signal) {
        match signal {
            Signal::Flow(report) => self.sampler.flow(report),
            Signal::Segment(segment) => {
                self.air.segment(segment);
                self.evidence.segment(now, segment);
            }
            Signal::SegmentsMissed => self.evidence.missed(),
            Signal::FlowGone(flow) => {
                self.sampler.flow_gone(*flow);
                self.evidence.gone(*flow);
            }
            Signal::Hop(report) => self.hop(now, report),
            _ => {}
        }
    }

    /// Whether windows are tight from the last moment on.
    pub fn acted(&mut self, acted: bool) {
        if let Some(last) = self.acted.back_mut() {
            *last = acted;
        }
    }

    /// The features of the last moment.
    pub fn sampler(&self) -> &Sampler {
        &self.sampler
    }

    /// First copies and losses so far, for worlds that tell of single MAC losses.
    pub fn evidence(&mut self) -> &mut Evidence {
        &mut self.evidence
    }

    /// Items that wait for their labels.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// The moment of the oldest of them.
    pub fn oldest_pending(&self) -> Option<Time> {
        self.pending.front().map(|item| item.at)
    }

    /// Items with labels that are final by the last moment, each once, in the order of their moments and stations.
    pub fn take(&mut self, mut each: impl FnMut(Item)) {
        self.take_each(|_, _, item| item().into_iter().for_each(&mut each));
    }

    /// As [`Collector::take`], of each moment and station that has become final: the item is made only if it is asked for. `None`: there is
    /// none of that moment.
    pub fn take_each(&mut self, mut each: impl FnMut(Time, Node, &dyn Fn() -> Option<Item>)) {
        while let Some(item) = self.pending.front() {
            let Some(last) = self.last(item) else { break };
            if !self.evidence.is_final(last) {
                break;
            }
            each(item.at, item.station, &|| self.finish(item, last));
            self.pending.pop_front();
        }
        let needed = self.pending.front().map_or(self.evidence.interval(), |item| item.interval);
        while self.first < needed && self.acted.len() > 1 {
            self.acted.pop_front();
            self.first += 1;
        }
    }

    /// How far an item of this station looks ahead.
    pub fn horizon(&self, station: Node) -> Span {
        self.looks_ahead(self.sampler.wired_round_trip(station))
    }

    /// How far, behind a wire of this round trip.
    fn looks_ahead(&self, wired: Option<Span>) -> Span {
        wired.unwrap_or(Span::ZERO).min(HORIZON_MAX).max(self.timing.horizon)
    }

    fn hop(&mut self, now: Time, report: &HopReport) {
        // First: what is final then is not told of what comes now.
        self.evidence.cut(now);
        self.note_failures(now, report);
        let due = self.every.is_none_or(|(_, next)| now >= next);
        if due {
            self.sampler.hop(now, report);
        } else {
            self.sampler.count(now, report);
        }
        // As long as nothing is decided, what held goes on.
        let acted = self.acted.back().copied().unwrap_or(false);
        self.acted.push_back(acted);
        if acted {
            self.last_acted = Some(now);
        }
        let held = self.last_acted.is_some_and(|last| now.since(last) < REST);
        if !due {
            return;
        }
        if let Some((span, next)) = &mut self.every {
            *next = Collector::moment_after(now, *span);
        }
        let (interval, wired) = (self.evidence.interval(), self.sampler.wired_round_trips());
        for (station, features) in self.sampler.vectors() {
            let until = now + self.looks_ahead(wired.get(station).copied());
            self.pending.push_back(Pending { at: now, interval, until, station: *station, features: *features, held });
        }
    }

    /// The driver only counts what the radio gives up: TCP's share of it entered about as long ago as the head of the queue has waited.
    /// Where a driver does not tell that, it is what the backlog takes to drain. One that does not count leaves such losses among those of the queue.
    fn note_failures(&mut self, now: Time, report: &HopReport) {
        self.air.retain(|node| report.stations.iter().any(|station| station.station == node));
        for station in &report.stations {
            let new = self.air.since_last(now, station);
            if new > 0 {
                let drain = self.sampler.vector(station.station).map(|vector| vector[FeatureId::Drain as usize]);
                let drain = drain.filter(|drain| drain.is_finite()).map(|drain| Span::from_secs_f64(f64::from(drain)));
                let waited = station.head_wait.or(drain).unwrap_or(Span::ZERO);
                self.evidence.mac_losses(now, station.station, now.saturating_sub(waited), new);
            }
        }
    }

    /// The last interval of an item's horizon: `None` if it has not ended.
    fn last(&self, item: &Pending) -> Option<u64> {
        (item.interval..self.evidence.interval())
            .find(|interval| self.evidence.end(*interval).is_some_and(|end| end >= item.until))
    }

    fn finish(&self, item: &Pending, last: u64) -> Option<Item> {
        let (mut sum, mut begin) = (Count::default(), item.at);
        for interval in item.interval..=last {
            let end = self.evidence.end(interval)?;
            if end.since(begin) > GAP || !self.evidence.is_whole(interval) {
                return None;
            }
            begin = end;
            let count = self.evidence.count(interval, item.station);
            sum.copies += count.copies;
            sum.congestion += count.congestion;
        }
        let acted = item.held || (item.interval..=last).any(|interval| self.was_acted(interval));
        let Pending { at, station, features, .. } = *item;
        let (until, copies, lost) = (begin, sum.copies, sum.congestion);
        (copies > 0).then_some(Item { at, until, station, features, copies, lost, acted })
    }

    fn was_acted(&self, interval: u64) -> bool {
        let at = interval.checked_sub(self.first).and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| self.acted.get(at)).copied().unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_signals::{ChannelTime, FlowId, FlowReport, SackRanges, Segment, StationReport, Way};
    use lasthop_units::Bytes;
    use std::collections::BTreeMap;

    const STATION: Node = Node(1);

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn hop(ms: u64, failed: u64) -> Signal {
        let station = StationReport {
            backlog_packets: ms as u32,
            tx_failed: Some(failed),
            head_wait: Some(Span::from_millis(6)),
            ..StationReport::unseen(STATION)
        };
        let channel = ChannelTime { active: Span::from_millis(ms), ..ChannelTime::default() };
        Signal::Hop(HopReport { channel, stations: vec![station], ..HopReport::default() })
    }

    fn data(number: u32) -> Signal {
        let (flow, seq) = (FlowId(1), number * 1000);
        let sack = SackRanges::EMPTY;
        Signal::Segment(Segment { flow, station: STATION, way: Way::Down, seq, len: 1000, count: 1, ack: 0, sack })
    }

    fn round_trip(ms: u64) -> Signal {
        Signal::Flow(FlowReport {
            flow: FlowId(1),
            station: STATION,
            forwarded: Bytes::ZERO,
            acked: Bytes::ZERO,
            in_flight: Bytes::ZERO,
            wired_rtt: Some(Span::from_millis(ms)),
            wireless_rtt: None,
            mss: Bytes::new(1000),
            advertised: Bytes::ZERO,
            last_data: Time::ZERO,
            recovering: false,
        })
    }

    /// Ten segments each 4 ms, just after the sample, until 400 ms; the radio gives up `failed` at 60 ms. What was lost of them is
    /// sent again at 440 ms. Returns the items by time.
    fn items(lost: &[u32], failed: u64, repaired: u64) -> BTreeMap<u64, Item> {
        let mut collector = Collector::new(Timing { horizon: Span::from_millis(10), ..Timing::default() });
        let mut items = BTreeMap::new();
        for ms in (0..4000).step_by(4) {
            let now = at(ms);
            collector.sense(now, &round_trip(20));
            collector.sense(now, &hop(ms, if ms >= 60 { failed } else { 0 }));
            collector.acted((200..204).contains(&ms));
            collector.take(|item| {
                assert!(items.insert(item.at.as_nanos() / 1_000_000, item).is_none(), "each once");
            });
            let first = ms as u32 / 4 * 10;
            match ms {
                _ if ms == repaired => lost.iter().for_each(|number| collector.sense(now, &data(*number))),
                0..400 => (first..first + 10).for_each(|number| collector.sense(now, &data(number))),
                _ => {}
            }
        }
        assert!(collector.pending() <= 400);
        items
    }

    #[test]
    fn a_label_is_of_what_entered_behind_its_moment() {
        // Four segments of those that entered between 100 and 104 ms.
        let items = items(&[250, 252, 254, 256], 0, 440);
        for (ms, item) in &items {
            // Sampled every 4 ms, 20 ms ahead: what entered from the sample on, until just before the one 20 ms later.
            let lost = if (84..=100).contains(ms) { 4 } else { 0 };
            let copies = if *ms <= 380 { 50 } else { (400 - ms) / 4 * 10 };
            assert_eq!((item.copies, item.lost), (copies, lost), "{ms} ms");
            assert_eq!(item.features[0], *ms as f32);
            assert_eq!(item.class(), if lost > 0 { LossClass::Poor } else { LossClass::Good });
            // Tight from 200 to 204 ms: within the horizon, or not long enough ago.
            assert_eq!(item.acted, *ms >= 184, "{ms} ms");
        }
        assert_eq!(items.len(), 100, "no item where nothing entered");
    }

    #[test]
    fn what_the_radio_gave_up_is_taken_off() {
        let items = items(&[130, 131], 2, 440);
        // They entered just behind 52 ms, and what was given up by 60 ms had waited for 6 ms.
        assert!(items.values().all(|item| item.lost == 0));
    }

    #[test]
    fn a_repair_that_comes_too_late_is_not_waited_for() {
        // Segments 250 and 251 entered in the interval that ended at 104 ms.
        let lost = |repaired| items(&[250, 251], 0, repaired)[&100].lost;
        assert_eq!((lost(1600), lost(1604)), (2, 0));
    }

    #[test]
    fn samples_that_fail_to_come_make_no_item() {
        let mut collector = Collector::new(Timing::default());
        let mut items = Vec::new();
        for ms in (0..4000u64).step_by(4).filter(|ms| !(300..500).contains(ms)) {
            collector.sense(at(ms), &hop(ms, 0));
            collector.take(|item| items.push(item.at));
            collector.sense(at(ms), &data(ms as u32));
        }
        assert!(items.iter().all(|item| *item < at(248) || *item >= at(500)), "50 ms ahead is no sample");
        assert!(items.contains(&at(244)) && items.contains(&at(500)));
    }

    #[test]
    fn missed_segments_before_a_label_yield_no_item() {
        let timing = Timing { horizon: Span::from_millis(10), repair: Span::from_millis(100) };
        let (mut collector, mut items) = (Collector::new(timing), Vec::new());
        for ms in (0..1000).step_by(4) {
            if ms == 600 {
                collector.sense(at(ms), &Signal::SegmentsMissed);
            }
            collector.sense(at(ms), &hop(ms, 0));
            collector.take(|item| items.push(item.at));
            (0..10).for_each(|n| collector.sense(at(ms), &data(ms as u32 / 4 * 10 + n)));
        }
        // Known by 596 ms is what had entered by 496 ms; what entered from 600 ms on can be learned from again.
        let missing = |time: &Time| *time > at(484) && *time < at(600);
        assert!(!items.iter().any(missing), "{items:?}");
        let expected = (0..=484).chain(600..=884).filter(|ms| ms % 4 == 0).map(at);
        assert_eq!(items, expected.collect::<Vec<_>>());
    }
}
