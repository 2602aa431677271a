//! Which first copies of data were lost behind the access point, read from the headers that pass it.
//! Source:     \[oal\]: confirmed retransmissions less MAC losses; RFC 2018 (SACK), RFC 2883 (D-SACK).
//! Equations:  lost = r > max(0, d - k)
//!             congestion losses = lost - those of them that pair off with a packet that the radio gave up
//! Symbols:    r, k -> `FirstCopy::repeats` and `FirstCopy::needless`: times that the octets passed again while they were not known to
//!             have arrived, and when they were; d -> `FirstCopy::duplicates`: times that the station told that they came twice
//! Deviations: no payload is compared. A world without payload has none; one with real packets may compare it before it tells of a
//!             repeat. Segments of one octet are left out: they are keep-alives or probes of a closed window. What is below the
//!             highest octet and has not passed yet is a first copy (its sender's first was lost on the way here), and no loss.
//! Validity:   any history, sequence numbers modulo 2^32; what counts is right of flows with SACK: without it a sender repeats after a
//!             timeout what has arrived, and nobody says so. What is remembered is bounded by time, not by number: first copies for
//!             `repair` and a little more, coalesced within an interval. A count is final `repair` after its interval's end.
//! Checked by: tests::*, tests/integration/oal_props.rs, crates/sim/tests/integration/oal_labels.rs (against what the simulator lost)

use super::ranges::Ranges;
use lasthop_signals::{FlowId, Node, Segment, Way};
use lasthop_units::{Span, Time};
use std::collections::{BTreeMap, VecDeque};

/// What entered in one interval for one station, as far as is known by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Count {
    /// First copies, in segments.
    pub copies: u64,
    /// Those of them that were lost behind the access point, without those of which is known that the radio gave them up.
    pub lost: u64,
    /// TCP's packets that entered about then and that the radio is taken to have given up, where no more is known, and that have not paired
    /// off with losses.
    pub mac: u64,
    /// Once the count is final: losses that have not paired off with these. The hop's queues have lost them.
    pub congestion: u64,
}

/// A packet that the radio gave up pairs off with a loss of this much earlier or later: the driver tells neither which it was nor when
/// it entered, and how long the head of the queue has waited differs by the retries of an aggregate or two.
const PAIRING: Span = Span::from_millis(50);
/// How long an interval with a final count can be asked for at least.
const KEEP: Span = Span::from_secs(1);

/// No interval is expected to last longer: of one that does, the first copies are forgotten before its count is final.
const INTERVAL_MAX: Span = Span::from_millis(100);

/// What passed between two samples.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Interval {
    /// When it ended; `None` while it lasts.
    end: Option<Time>,
    counts: BTreeMap<Node, Count>,
    /// Segments that passed before its count was final were not told: the count says nothing.
    void: bool,
}

impl Interval {
    fn begun() -> Interval {
        Interval { end: None, counts: BTreeMap::new(), void: false }
    }
}

/// The account of all flows of an access point.
///
/// Time is cut into intervals, numbered from 0, by [`Evidence::cut`]. What becomes known of a first copy is counted in the interval in
/// which it entered.
#[derive(Clone, Debug)]
pub struct Evidence {
    repair: Span,
    tracks: BTreeMap<FlowId, Track>,
    intervals: VecDeque<Interval>,
    /// Number of the first of them.
    first: u64,
    /// Number of the first interval without a final count.
    open: u64,
}

/// One flow.
#[derive(Clone, Debug)]
struct Track {
    /// Highest octet that has passed, without wrapping: the numbers of octets are those nearest to it.
    highest: u64,
    /// Of what lies below nothing is known any more.
    floor: u64,
    copies: BTreeMap<u64, FirstCopy>,
    acked: u64,
    sacked: Ranges,
    gone: bool,
}

/// Octets that entered as a first copy in one interval, and to which the same has happened since. Stands under its first octet.
#[derive(Clone, Copy, Debug)]
struct FirstCopy {
    end: u64,
    at: Time,
    interval: u64,
    station: Node,
    /// Octets of a segment.
    unit: u32,
    /// How often it passed again while it was not known to have arrived.
    repeats: u16,
    /// How often it passed again when it was.
    needless: u16,
    /// How often the station told that it came twice.
    duplicates: u16,
    /// The radio gave it up.
    mac: bool,
}

impl Evidence {
    /// An account that hears of an interval's first copies until `repair` after its end.
    pub fn new(repair: Span) -> Evidence {
        let intervals = VecDeque::from([Interval::begun()]);
        Evidence { repair, tracks: BTreeMap::new(), intervals, first: 0, open: 0 }
    }

    /// The number of the interval that lasts.
    pub fn interval(&self) -> u64 {
        self.first + self.intervals.len() as u64 - 1
    }

    /// Makes final what is old enough, ends the interval that lasts, begins the next one, and forgets what is too old.
    pub fn cut(&mut self, now: Time) {
        // What has become final by this cut can be asked for until the next one, however late that comes.
        let last_cut = self.intervals.iter().rev().find_map(|interval| interval.end);
        let (kept, asked) = (self.repair + KEEP, last_cut.unwrap_or(Time::ZERO));
        while self.first < self.open && self.intervals[0].end.is_some_and(|end| end + kept < asked) {
            self.intervals.pop_front();
            self.first += 1;
        }
        while self.end(self.open).is_some_and(|end| end + self.repair <= now) {
            self.pair_off(self.open);
            self.open += 1;
        }
        if let Some(last) = self.intervals.back_mut() {
            last.end = Some(now);
        }
        self.intervals.push_back(Interval::begun());
        let memory = self.repair + INTERVAL_MAX;
        let old = |at: Time| at + memory < now;
        self.tracks.retain(|_, track| {
            track.forget(old);
            !(track.gone && track.copies.is_empty())
        });
    }

    /// When an interval ended; `None` if it lasts, or has been forgotten.
    pub fn end(&self, interval: u64) -> Option<Time> {
        self.get(interval)?.end
    }

    /// What is known of an interval's first copies for a station.
    pub fn count(&self, interval: u64, station: Node) -> Count {
        self.get(interval).and_then(|interval| interval.counts.get(&station)).copied().unwrap_or_default()
    }

    /// False if segments were missed before the interval's count was final: it then says nothing.
    pub fn is_whole(&self, interval: u64) -> bool {
        self.get(interval).is_some_and(|interval| !interval.void)
    }

    /// Segments have passed that were not told: of what is not final by now nothing is known, and flows begin anew.
    pub fn missed(&mut self) {
        let open = self.open.saturating_sub(self.first) as usize;
        self.intervals.range_mut(open..).for_each(|interval| interval.void = true);
        self.tracks.clear();
    }

    /// True if an interval's count does not change any more.
    pub fn is_final(&self, interval: u64) -> bool {
        interval < self.open
    }

    /// A segment passes.
    pub fn segment(&mut self, now: Time, segment: &Segment) {
        let interval = self.interval();
        let mut counts = Counts::open(&mut self.intervals, self.first, now, self.repair);
        match segment.way {
            Way::Down if segment.len > 1 => {
                let track = self.tracks.entry(segment.flow).or_insert_with(|| Track::new(segment.seq));
                track.down((now, interval), segment, &mut counts);
            }
            Way::Down => {}
            Way::Up => {
                if let Some(track) = self.tracks.get_mut(&segment.flow) {
                    track.up(segment, &mut counts);
                }
            }
        }
    }

    /// The radio gave up these octets of a flow, from `left` (included) to `right` (excluded): for a world that tells of each.
    pub fn mac_loss(&mut self, now: Time, flow: FlowId, (left, right): (u32, u32)) {
        let mut counts = Counts::open(&mut self.intervals, self.first, now, self.repair);
        if let Some(track) = self.tracks.get_mut(&flow) {
            let (left, right) = (track.extend(left), track.extend(right));
            track.change((left, right), &mut counts, |copy| copy.mac = true);
        }
    }

    /// The radio gave up so many of TCP's packets for a station, of those that entered about `entered`: for a world that tells no more.
    pub fn mac_losses(&mut self, now: Time, station: Node, entered: Time, packets: u64) {
        let ended = |interval: &Interval| interval.end.is_some_and(|end| end < entered);
        let at = self.intervals.partition_point(ended);
        let mut counts = Counts::open(&mut self.intervals, self.first, now, self.repair);
        if let Some(count) = counts.of(self.first + at as u64, station) {
            count.mac += packets;
        }
    }

    /// A flow will not be seen again.
    pub fn gone(&mut self, flow: FlowId) {
        if let Some(track) = self.tracks.get_mut(&flow) {
            track.gone = true;
        }
    }

    /// Whether the first copy of an octet counts as lost by now; `None` if it has not passed, or is forgotten.
    pub fn is_lost(&self, flow: FlowId, seq: u32) -> Option<bool> {
        let track = self.tracks.get(&flow)?;
        let octet = track.extend(seq);
        let (_, copy) = track.copies.range(..=octet).next_back()?;
        (octet < copy.end).then(|| copy.is_lost())
    }

    /// Ranges of octets that are remembered, over all flows.
    pub fn remembered(&self) -> usize {
        self.tracks.values().map(|track| track.copies.len() + track.sacked.len()).sum()
    }

    /// Pairs the losses of an interval off with what the radio gave up, the earliest first; the rest is congestion.
    fn pair_off(&mut self, interval: u64) {
        let at = (interval - self.first) as usize;
        let Some(end) = self.intervals[at].end else { return };
        let lost: Vec<(Node, u64)> = self.intervals[at]
            .counts
            .iter()
            .filter(|(_, count)| count.lost > 0)
            .map(|(node, count)| (*node, count.lost))
            .collect();
        if lost.is_empty() {
            return;
        }
        let near = |other: &Interval| other.end.is_some_and(|other| other + PAIRING >= end && end + PAIRING >= other);
        let early = self.intervals.range(..at).rev().take_while(|other| near(other)).count();
        let late = self.intervals.range(at..).take_while(|other| near(other)).count();
        for (station, mut rest) in lost {
            let counts =
                self.intervals.range_mut(at - early..at + late).filter_map(|other| other.counts.get_mut(&station));
            for count in counts {
                let paired = rest.min(count.mac);
                (rest, count.mac) = (rest - paired, count.mac - paired);
            }
            if let Some(count) = self.intervals[at].counts.get_mut(&station) {
                count.congestion = rest;
            }
        }
    }

    fn get(&self, interval: u64) -> Option<&Interval> {
        self.intervals.get(usize::try_from(interval.checked_sub(self.first)?).ok()?)
    }
}

/// The counts of all intervals, while a track is changed.
struct Counts<'e> {
    intervals: &'e mut VecDeque<Interval>,
    first: u64,
    /// Counts of intervals that ended by then are final.
    closed: Option<Time>,
}

impl<'e> Counts<'e> {
    fn open(intervals: &'e mut VecDeque<Interval>, first: u64, now: Time, repair: Span) -> Counts<'e> {
        let closed = now.as_nanos().checked_sub(repair.as_nanos()).map(Time::from_nanos);
        Counts { intervals, first, closed }
    }

    /// Of an interval and station; `None` if it is final.
    fn of(&mut self, interval: u64, station: Node) -> Option<&mut Count> {
        let at = usize::try_from(interval.checked_sub(self.first)?).ok()?;
        let interval = self.intervals.get_mut(at)?;
        let is_final = interval.end.is_some_and(|end| self.closed.is_some_and(|closed| end <= closed));
        (!is_final).then(|| interval.counts.entry(station).or_default())
    }
}

impl FirstCopy {
    fn is_lost(&self) -> bool {
        !self.mac && self.repeats > self.duplicates.saturating_sub(self.needless)
    }

    /// Segments of `octets` of it.
    fn segments(&self, octets: u64) -> u64 {
        octets.div_ceil(u64::from(self.unit.max(1)))
    }
}

impl Track {
    /// A flow with this as the first octet to pass.
    fn new(seq: u32) -> Track {
        // Far from zero, so that what is numbered lower has a number, too.
        let begin = (1 << 33) + u64::from(seq);
        Track {
            highest: begin,
            floor: begin,
            copies: BTreeMap::new(),
            acked: begin,
            sacked: Ranges::default(),
            gone: false,
        }
    }

    /// The octet with this sequence number that is nearest to the highest one.
    fn extend(&self, seq: u32) -> u64 {
        let ahead = seq.wrapping_sub(self.highest as u32) as i32;
        self.highest.saturating_add_signed(i64::from(ahead))
    }

    fn forget(&mut self, old: impl Fn(Time) -> bool) {
        while let Some(copy) = self.copies.first_entry().filter(|copy| old(copy.get().at)) {
            self.floor = copy.remove().end;
        }
        self.sacked.remove_below(self.acked.max(self.floor));
    }

    /// Data pass towards the station: what has not passed before is a first copy, the rest a repeat.
    fn down(&mut self, (now, interval): (Time, u64), segment: &Segment, counts: &mut Counts<'_>) {
        let start = self.extend(segment.seq);
        let end = start + u64::from(segment.len);
        let unit = segment.len.div_ceil(u32::from(segment.count.max(1)));
        self.repeat((start, end), counts);
        let station = segment.station;
        let fresh =
            FirstCopy { end, at: now, interval, station, unit, repeats: 0, needless: 0, duplicates: 0, mac: false };
        let mut from = start.max(self.floor);
        // As most come: behind all that has passed, so that there is nothing to look for.
        if start >= self.highest {
            self.enter(start, fresh, counts);
            from = end;
        }
        while from < end {
            // What of it lies before the next octets that have passed.
            if let Some((_, copy)) = self.copies.range(..=from).next_back().filter(|(_, copy)| copy.end > from) {
                from = copy.end;
                continue;
            }
            let to = self.copies.range(from..).next().map_or(end, |(next, _)| end.min(*next));
            self.enter(from, FirstCopy { end: to, ..fresh }, counts);
            from = to;
        }
        self.highest = self.highest.max(end);
    }

    /// A first copy enters.
    fn enter(&mut self, start: u64, copy: FirstCopy, counts: &mut Counts<'_>) {
        if let Some(count) = counts.of(copy.interval, copy.station) {
            count.copies += copy.segments(copy.end - start);
        }
        if let Some((first, before)) = self.copies.range_mut(..start).next_back()
            && before.end == start
            && before.joins(*first, &copy)
        {
            before.end = copy.end;
            return;
        }
        self.copies.insert(start, copy);
    }

    /// Octets pass again, or some of them do. Of what the station is known to have, that says nothing.
    fn repeat(&mut self, (start, end): (u64, u64), counts: &mut Counts<'_>) {
        let end = end.min(self.highest);
        if start >= end {
            return;
        }
        let acked = self.acked.clamp(start, end);
        let missing: Vec<(u64, u64)> = self.sacked.gaps(acked, end).collect();
        let mut from = start;
        for (left, right) in missing {
            self.change((from, left), counts, |copy| copy.needless = copy.needless.saturating_add(1));
            self.change((left, right), counts, |copy| copy.repeats = copy.repeats.saturating_add(1));
            from = right;
        }
        self.change((from, end), counts, |copy| copy.needless = copy.needless.saturating_add(1));
    }

    /// The station acknowledges.
    fn up(&mut self, segment: &Segment, counts: &mut Counts<'_>) {
        let ack = self.extend(segment.ack);
        // Beyond what has passed: a FIN's number, or data that took another way.
        self.acked = self.acked.max(ack.min(self.highest));
        let mut ranges = segment.sack.as_slice().iter().map(|(left, right)| (self.extend(*left), self.extend(*right)));
        let Some(first) = ranges.next() else { return };
        let rest: Vec<(u64, u64)> = ranges.collect();
        let inside = |(left, right): (u64, u64)| left <= first.0 && first.1 <= right;
        // RFC 2883, section 4: it lies below what is acknowledged, or within the next range.
        let duplicate = first.1 <= ack || rest.first().is_some_and(|next| inside(*next));
        if duplicate {
            self.change(first, counts, |copy| copy.duplicates = copy.duplicates.saturating_add(1));
        }
        for (left, right) in rest.into_iter().chain((!duplicate).then_some(first)) {
            self.sacked.insert(left.max(self.acked), right.min(self.highest));
        }
        self.sacked.remove_below(self.acked);
    }

    /// Does something to all that is remembered of these octets, and to no others.
    fn change(&mut self, (start, end): (u64, u64), counts: &mut Counts<'_>, what: impl Fn(&mut FirstCopy)) {
        if start >= end {
            return;
        }
        self.split(start);
        self.split(end);
        for (from, copy) in self.copies.range_mut(start..end) {
            let before = *copy;
            what(copy);
            let segments = copy.segments(copy.end - from);
            let Some(count) = counts.of(before.interval, before.station) else { continue };
            match (before.is_lost(), copy.is_lost()) {
                (false, true) => count.lost += segments,
                (true, false) => count.lost = count.lost.saturating_sub(segments),
                _ => {}
            }
        }
    }

    /// Lets a copy begin at this octet, if it lies within one.
    fn split(&mut self, at: u64) {
        if let Some((_, copy)) = self.copies.range_mut(..at).next_back()
            && copy.end > at
        {
            let behind = *copy;
            copy.end = at;
            self.copies.insert(at, behind);
        }
    }
}

impl FirstCopy {
    /// True if `next`, which begins where this one ends, can be counted with it.
    fn joins(&self, start: u64, next: &FirstCopy) -> bool {
        let whole = (self.end - start).is_multiple_of(u64::from(self.unit.max(1)));
        let untouched = (self.repeats, self.needless, self.duplicates, self.mac) == (0, 0, 0, false);
        whole && untouched && (self.interval, self.station, self.unit) == (next.interval, next.station, next.unit)
    }
}

#[cfg(test)]
mod tests;
