//! Segments that have passed since the last interval, for a law that wants them. The eBPF program reports those that cannot be inferred
//! from the counters of their flow; the others are inferred.
//!
//! Nearly all segments are data in order and plain acknowledgements: they move two numbers of their flow, and are told as ranges.
//! Each event carries both numbers as they stood before it, so that what came before it and what came after it is told in that order.
//! A range is counted in segments of the flow's MSS.
//!
//! Whoever gathers reads the flows' numbers first and the events afterwards: then no number is ahead of the events. Numbers that are
//! behind them change nothing.

use super::abi::{Event, Key};
use lasthop_laws::oal::rwnd::Flow;
use lasthop_signals::{FlowId, Node, SackRanges, Segment, Way};
use lasthop_units::Time;
use std::collections::BTreeMap;

/// What is known of all flows' numbers, and what waits to be told.
#[derive(Default)]
pub(super) struct Passing {
    tracks: BTreeMap<Key, Track>,
    flows: BTreeMap<Key, Followed>,
    /// What the program has told since the last interval.
    pub(super) events: Vec<Event>,
    /// When the flows were looked at last: of those that were born later every event is here.
    looked: Option<Time>,
}

/// Up to where a flow has been told.
struct Track {
    born: Time,
    end: u32,
    ack: u32,
}

/// A flow that the law knows, as it was read in this interval.
struct Followed {
    id: FlowId,
    station: Node,
    flow: Flow,
}

/// Segments that a range is told as at most: the count of one told segment has 16 bits.
const MOST: u32 = 1 << 14;

impl Passing {
    /// A flow as it stands.
    pub(super) fn saw(&mut self, key: &Key, id: FlowId, station: Node, flow: &Flow) {
        self.flows.insert(*key, Followed { id, station, flow: *flow });
    }

    /// Events were lost: what is known of the numbers is void, and each flow begins anew where it stands.
    pub(super) fn forget(&mut self) {
        self.tracks.clear();
        self.events.clear();
        self.looked = None;
    }

    /// Tells what has passed by `now` of the flows that were seen, with the time at which it did. `rests` says which of the others are
    /// to be remembered.
    pub(super) fn tell(&mut self, now: Time, rests: impl Fn(&Key) -> bool, mut each: impl FnMut(Time, Segment)) {
        let flows = std::mem::take(&mut self.flows);
        let began = self.looked.replace(now);
        self.tracks.retain(|key, track| match flows.get(key) {
            Some(followed) => followed.flow.born() == track.born,
            None => rests(key),
        });
        for (key, followed) in &flows {
            // Of a flow that was there before, events may have gone by untold.
            if !self.tracks.contains_key(key)
                && let Some(at) = followed.flow.first_octet()
                && began.is_some_and(|began| followed.flow.born() > began)
            {
                self.tracks.insert(*key, Track { born: followed.flow.born(), end: at, ack: at });
            }
        }
        let mut last = began.unwrap_or(Time::ZERO);
        for event in std::mem::take(&mut self.events) {
            let Some(followed) = flows.get(&event.key) else {
                // Of a flow that was opened since the look, maybe.
                if event.at() > now {
                    self.events.push(event);
                }
                continue;
            };
            last = event.at().min(now).max(last);
            let Some(track) = self.tracks.get_mut(&event.key).filter(|track| track.born == event.born()) else {
                continue;
            };
            track.advance(followed, event.max_end, event.highest_ack, |segment| each(last, segment));
            track.tell(followed, &event, |segment| each(last, segment));
        }
        for (key, followed) in &flows {
            let (end, ack) = followed.flow.progress();
            let begins = || Track { born: followed.flow.born(), end, ack };
            let track = self.tracks.entry(*key).or_insert_with(begins);
            track.advance(followed, end, ack, |segment| each(now, segment));
        }
    }
}

impl Track {
    /// Data in order and acknowledgements have moved the numbers to these, if they are not behind.
    fn advance(&mut self, of: &Followed, end: u32, ack: u32, mut each: impl FnMut(Segment)) {
        let mss = of.flow.mss().max(1);
        while before(self.end, end) {
            let len = end.wrapping_sub(self.end).min(mss.saturating_mul(MOST));
            let count = len.div_ceil(mss) as u16;
            each(Segment { len, count, ..of.segment(Way::Down, self.end) });
            self.end = self.end.wrapping_add(len);
        }
        if before(self.ack, ack) {
            self.ack = ack;
            each(Segment { ack, ..of.segment(Way::Up, 0) });
        }
    }

    /// One segment as the program saw it.
    fn tell(&mut self, of: &Followed, event: &Event, mut each: impl FnMut(Segment)) {
        if event.is_up() {
            let sack: SackRanges = event.sack().collect();
            if before(self.ack, event.ack) {
                self.ack = event.ack;
            }
            return each(Segment { ack: event.ack, sack, ..of.segment(Way::Up, 0) });
        }
        let end = event.seq.wrapping_add(event.len);
        if event.len > 0 {
            each(Segment { len: event.len, count: event.count, ..of.segment(Way::Down, event.seq) });
        }
        if before(self.end, end) {
            self.end = end;
        }
    }
}

impl Followed {
    fn segment(&self, way: Way, seq: u32) -> Segment {
        Segment { flow: self.id, station: self.station, way, seq, len: 0, count: 1, ack: 0, sack: SackRanges::EMPTY }
    }
}

/// Whether a sequence number lies before another (RFC 9293, section 3.4).
fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

#[cfg(test)]
#[path = "passing/tests.rs"]
mod tests;
