//! Makes items from what an access point observes: one a station each 100 ms.
//! Source:     \[oal\] for what is sampled; [`lasthop_laws::oal::label`].
//! Equations:  moments: the first driver's report at or after n `every`, n = 1, 2, …
//! Symbols:    every -> [`EVERY`]
//! Deviations: the paper samples each 4 ms; items so near to each other are copies. Counters are still read each 4 ms: what decides within
//!             a round trip is in the features. The label looks 100 ms ahead, so that items tile time and what was lost is counted once;
//!             a longer wired round trip makes it look further, and then neighbours overlap.
//! Validity:   a station that no first copy entered for within the horizon has no item of that moment.
//! Checked by: tests::*

use crate::metrics::{Meter, Metrics};
use lasthop_laws::oal::label::{Collector, Item, Timing};
use lasthop_signals::{Node, Signal};
use lasthop_units::{Span, Time};
use std::collections::VecDeque;

/// Time from one moment to the next.
pub const EVERY: Span = Span::from_millis(100);

/// An item, and what was measured beside it.
#[derive(Clone, Copy, Debug)]
pub struct Observed {
    /// The item.
    pub item: Item,
    /// The station's metrics.
    pub metrics: Metrics,
}

/// Makes items of one access point.
#[derive(Clone, Debug)]
pub struct Recorder {
    collector: Collector,
    meter: Meter,
    /// The next moment.
    next: Time,
    /// Metrics of moments with items that are not final.
    moments: VecDeque<(Time, Vec<(Node, Metrics)>)>,
}

impl Recorder {
    /// How items are labelled unless told otherwise.
    pub const TIMING: Timing = Timing { horizon: EVERY, repair: Span::from_millis(1500) };

    /// A recorder that has seen nothing.
    pub fn new(timing: Timing) -> Recorder {
        Recorder {
            collector: Collector::new(timing).every(EVERY),
            meter: Meter::default(),
            next: Time::ZERO,
            moments: VecDeque::new(),
        }
    }

    /// Folds in flows' reports, passing segments and the driver's report, as a law is told of them.
    pub fn sense(&mut self, now: Time, signal: &Signal) {
        self.collector.sense(now, signal);
        if let Signal::Hop(report) = signal
            && now >= self.next
        {
            self.next = Collector::moment_after(now, EVERY);
            self.moments.push_back((now, self.meter.moment(now, report)));
        }
    }

    /// Whether windows are tight from the last driver's report on.
    pub fn acted(&mut self, acted: bool) {
        self.collector.acted(acted);
    }

    /// Items that have become final, each once, in the order of their moments and stations.
    pub fn take(&mut self, mut each: impl FnMut(Observed)) {
        let moments = &mut self.moments;
        self.collector.take(|item| {
            while moments.front().is_some_and(|(at, _)| *at < item.at) {
                moments.pop_front();
            }
            let stations = moments.front().filter(|(at, _)| *at == item.at).map(|(_, stations)| stations);
            let metrics = stations.and_then(|stations| stations.iter().find(|(node, _)| *node == item.station));
            if let Some((_, metrics)) = metrics {
                each(Observed { item, metrics: *metrics });
            }
        });
        // Moments without an item are not waited for.
        let oldest = self.collector.oldest_pending();
        while moments.front().is_some_and(|(at, _)| oldest.is_none_or(|oldest| *at < oldest)) && moments.len() > 1 {
            moments.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_signals::{ChannelTime, FlowId, HopReport, Segment, StationReport, Way};

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn hop(ms: u64) -> Signal {
        let active = Span::from_millis(ms);
        let busy = Some(Span::from_micros(500 * ms));
        let channel = ChannelTime { active, busy, ..ChannelTime::default() };
        let stations = (1..=2).map(|n| StationReport::unseen(Node(n))).collect();
        Signal::Hop(HopReport { channel, stations, ..HopReport::default() })
    }

    /// Station 1 gets a segment each 4 ms, of which those from 1000 to 1100 ms are sent again 200 ms later; station 2 gets nothing.
    fn observed() -> Vec<Observed> {
        let (mut recorder, mut observed) = (Recorder::new(Recorder::TIMING), Vec::new());
        let data = |ms: u64| {
            let (seq, station) = (ms as u32 * 250, Node(1));
            let (flow, way) = (FlowId(1), Way::Down);
            Segment { flow, station, way, seq, len: 1000, count: 1, ack: 0, sack: Default::default() }
        };
        for ms in (0..6000).step_by(4) {
            recorder.sense(at(ms), &hop(ms));
            recorder.acted((3000..3100).contains(&ms));
            recorder.take(|item| observed.push(item));
            recorder.sense(at(ms + 1), &Signal::Segment(data(ms)));
            if (1200..1300).contains(&ms) {
                recorder.sense(at(ms + 2), &Signal::Segment(data(ms - 200)));
            }
            assert!(recorder.moments.len() < 30, "what is not asked for is forgotten");
        }
        observed
    }

    #[test]
    fn an_item_a_station_each_100_ms_tiles_time() {
        let observed = observed();
        let items: Vec<&Item> = observed.iter().map(|observed| &observed.item).collect();
        assert!(items.iter().all(|item| item.station == Node(1)), "nothing entered for the other");
        for pair in items.windows(2) {
            assert_eq!(pair[0].until, pair[1].at, "none is missing, and none overlaps");
            assert_eq!(pair[1].at, pair[0].at + EVERY);
        }
        assert!(items.iter().all(|item| item.copies == 25));
        let lost: Vec<(Time, u64)> =
            items.iter().filter(|item| item.lost > 0).map(|item| (item.at, item.lost)).collect();
        assert_eq!(lost, [(at(1000), 25)]);
        // Tight within the horizon, or not long before.
        let acted: Vec<Time> = items.iter().filter(|item| item.acted).map(|item| item.at).collect();
        assert_eq!((acted[0], acted[acted.len() - 1]), (at(3000), at(3500)));
        assert!(observed.len() > 40);
        assert!(observed[1..].iter().all(|observed| observed.metrics[0] == 0.5), "half of the time busy");
    }
}
