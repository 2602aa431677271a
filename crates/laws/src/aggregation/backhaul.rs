//! Whether the hop or the path before it is the bottleneck, and the rate of all streams together that leaves no queue there.
//! Source:     own; the predecessor of \[aggregation\] trained a classifier. To send less than is delivered
//!             until the queue has gone, and to probe briefly, is the Drain and the cycle of BBR.
//! Equations:  missing(g):  short,   y / s < 0.97 g   and   (g s - y) t > 1.5
//!             short:  at least 0.6 of what is sent is of streams with y / s < 0.97 and mu < max{0.6 N_target, 1.05}
//!             q = d - d_least, where stations measure d;   otherwise q = B / C
//!             B' = max{B + (s - y - lost) t, 0};   while free and y / s >= 0.97, B' = max{B/2 + (s - y - lost) t, 0}
//!             d:      mean over the streams of what each is later than its own least, weighted by y
//!             C_0' = max{y, 0.9 C_0}  in every free slot that is not missing(1);   C_0' = y  where a probe that was doubled fails
//!             each:   min{its own x, l} with l such that all together are what the state allows (`level`)
//!
//! ```text
//! state  allows all together                 becomes, after a slot
//! free   anything                            drain with C = y, if it is the third in a row that is missing(1)
//! drain  C max{0.5, min{0.9, 1 - q / 1 s}}   hold, if q <= 20 ms or after 40 slots; C = y, if y > 1.25 C;
//!                                            otherwise drain; C = y, if y > 1.25 C or missing(1)
//! hold   0.95 C                              drain, if q > 40 ms: with C = y, if missing(1);
//!                                            probe with r = 1.05 C and g = y / s, if it is the 8th, or 1.25 C < C_0
//! probe  r                                   drain with C = y, if missing(g) in its second slot, or in its first with a measured q > 40 ms;
//!                                            after the second otherwise the first of these that holds:
//!                                            probe with r' = min{2 r, C_0}, if 1.25 r < C_0 (r is doubled)
//!                                            free, if 1.1 r > 2 s
//!                                            probe with r' = 1.1 r
//! ```
//! Symbols:    x -> `clamp`, s -> `sent`, y -> `arrived`, mu -> `level`, N_target -> `target_level`, C_0 -> `carried`, d -> `delay`,
//!             t -> `seconds`, C -> `capacity`, r -> `Probe::rate`, g -> `whole` (1 at most), q -> `waits`, B -> `missing`
//! Deviations: * Frames are short below 0.6 of the target, not below 0.8: where a fifth of all MPDUs is sent again they
//!               hold 0.6 to 0.8 of it although a queue stands at the hop.
//!             * Where a packet or none is aimed at, frames of one are short all the same: what waits at the hop would meet in them.
//!             * A retreat to 0.95 of the goodput alone would never empty a deep buffer that was filled before, so the
//!               retreat is deeper until the buffer is empty.
//!             * The least delay may rise by 200 us/s, as two clocks may drift, and is forgotten with the stream that it was of.
//!             * After 40 slots of drain, what is left is taken to be the path's; so is what keeps packets late at the hop whatever is
//!               drained there, after 6 slots (`Earliest::drained`).
//!             * A probe is compared with the hold before it, not with 1: packets that any rate loses are no bottleneck.
//!             * One detector for all stations of an access point: they share the path to it, and detectors of their own would each hold
//!               what it happened to have when the path filled.
//!             * A stream that misses packets while most others do not has one of its own: to send more is of no use to it, and costs
//!               the others.
//! Validity:   * A hop that puts packets that wait into one frame.
//!             * Packets of the same stream, counted at both ends, over slots that cover each other but for the path's delay, which is
//!               shorter than a slot.
//!             * Where neither delays nor losses are told, lost packets count as waiting, until the 40 slots.
//! Checked by: tests::*, tests/integration/aggregation_backhaul.rs (the regulator before a buffer of 2 s)

use lasthop_units::Time;

/// The detector of an access point's streams, or of one that is alone with what it misses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Detector {
    state: State,
    /// Most packets a second, while the backhaul is the bottleneck.
    clamp: Option<f64>,
    /// Least mean delay of a slot, seconds.
    least: Option<f64>,
    /// Packets that were sent and have neither arrived nor been lost.
    missing: f64,
    /// Packets a second that last arrived whole before the backhaul was the bottleneck.
    carried: f64,
}

/// What the detector is about.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// The backhaul is no bottleneck: slots in a row that looked as if it were one.
    Free { suspicious: u32 },
    /// Its queue drains.
    Drain { capacity: f64, slots: u32 },
    /// Its queue is empty.
    Hold { capacity: f64, slots: u32 },
    /// Does it carry more by now?
    Probe { rate: f64, whole: f64, settled: bool, doubled: bool },
}

/// One slot of one stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stream {
    /// Packets a second that were sent.
    pub sent: f64,
    /// Packets a second that arrived.
    pub arrived: f64,
    /// Packets a second that are known to be lost.
    pub lost: f64,
    /// How long it lasted.
    pub seconds: f64,
    /// Mean packets a frame.
    pub level: f64,
    /// Packets a frame that were aimed at.
    pub target_level: f64,
    /// By how much its packets were later than the earliest slot's, seconds; `None` where that is not measured.
    pub late: Option<f64>,
}

/// One slot of all streams.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slot {
    /// Packets a second that were sent.
    pub sent: f64,
    /// Packets a second that arrived.
    pub arrived: f64,
    /// Packets a second that are known to be lost.
    pub lost: f64,
    /// How long it lasted.
    pub seconds: f64,
    /// True if most of it is of streams that miss packets and have short frames all the same.
    pub short: bool,
    /// Mean delay, seconds, from whatever beginning; `None` where it is not measured.
    pub delay: Option<f64>,
}

/// What one stream's packets are later by than they were at the earliest: clocks of stations are their own.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Earliest {
    /// The least mean delay of a slot, seconds, and when that was.
    least: Option<(f64, Time)>,
    /// Slots in which packets were late whatever was done about it.
    vain: u32,
}

const GOODPUT: f64 = 0.97;
const LEVEL: f64 = 0.6;
/// Frames of fewer packets than this are short, whatever is aimed at.
const SINGLE: f64 = 1.05;
/// A path that all streams share makes most of them miss packets; a stream that misses some alone has reasons of its
/// own.
const MOST: f64 = 0.6;
/// Slots in a row that must look like a bottleneck in the backhaul.
const PATIENCE: u32 = 3;
/// Bounds of the rate while a queue drains, as shares of the capacity: what is delivered meanwhile comes out of the queue.
const RETREAT: (f64, f64) = (0.5, 0.9);
/// A queue of a share of this, seconds, is drained with the same share of the capacity.
const HORIZON: f64 = 1.0;
/// A queue of so many seconds is as good as none: the frames of the hop make packets wait as long.
const NEAR: f64 = 0.02;
/// Share of the account that a slot leaves in which all arrives, while the backhaul is no bottleneck.
const FORGET: f64 = 0.5;
/// Slots after which what seems to wait does not: the path has become longer, or packets are lost that nobody counts.
const LONGEST: u32 = 40;
/// And slots after which what seems to wait at the hop does not: what waits in a second's worth of buffer there leaves it within two or three.
const VAIN: u32 = 6;
/// Share of the capacity between probes, and slots of it.
const STEADY: f64 = 0.95;
const REST: u32 = 8;
/// Share of what the path carried that is remembered from slot to slot.
const FADES: f64 = 0.9;
/// The first probe, as a share of the capacity; and each next one, as a share of one that has arrived whole.
const PROBE: f64 = 1.05;
const CLIMB: f64 = 1.1;
/// What has carried, or carries, so many times as much as is thought was gone for a while, and has returned.
const RETURNS: f64 = 1.25;
/// Packets that are not missing because the slots of both ends do not begin with the same one.
const FEW: f64 = 1.5;
/// By so much may the clocks of both ends drift apart, seconds a second.
const DRIFT: f64 = 200e-6;

impl Default for State {
    fn default() -> State {
        State::Free { suspicious: 0 }
    }
}

impl Detector {
    /// Folds one slot in.
    pub fn update(&mut self, slot: &Slot) {
        self.account(slot);
        // On a hop that is too slow, frames fill up; on a backhaul that is too slow, packets vanish or wait elsewhere.
        let missing = |whole: f64| slot.short && slot.misses(whole);
        self.state = match self.state {
            State::Free { .. } if !missing(1.0) => {
                // What was carried before a slot or two in which hardly anything was sent, too.
                self.carried = slot.arrived.max(FADES * self.carried);
                State::Free { suspicious: 0 }
            }
            State::Free { suspicious } if suspicious + 1 < PATIENCE => State::Free { suspicious: suspicious + 1 },
            State::Free { .. } => State::Drain { capacity: slot.arrived, slots: 0 },
            State::Drain { capacity, slots } => {
                // What waits leaves as fast as the path carries it.
                let capacity = if slot.arrived > RETURNS * capacity { slot.arrived } else { capacity };
                if slots < LONGEST && self.waits(slot, capacity) > NEAR {
                    let capacity = if missing(1.0) { slot.arrived } else { capacity };
                    State::Drain { capacity, slots: slots + 1 }
                } else {
                    // Whatever is left is not a queue.
                    self.missing = 0.0;
                    self.least = slot.delay.or(self.least);
                    State::Hold { capacity, slots: 0 }
                }
            }
            State::Hold { capacity, .. } if self.waits(slot, capacity) > 2.0 * NEAR => {
                State::Drain { capacity: if missing(1.0) { slot.arrived } else { capacity }, slots: 0 }
            }
            State::Hold { capacity, slots } if slots + 1 < REST && !self.returns(capacity) => {
                State::Hold { capacity, slots: slots + 1 }
            }
            State::Hold { capacity, .. } => {
                let whole = if slot.sent > 0.0 { (slot.arrived / slot.sent).min(1.0) } else { 1.0 };
                State::Probe { rate: PROBE * capacity, whole, settled: false, doubled: false }
            }
            // In its first slot some of the packets that arrive were sent before, but late ones wait.
            State::Probe { rate, whole, settled, doubled }
                if missing(whole) && (settled || slot.delay.is_some() && self.waits(slot, rate) > 2.0 * NEAR) =>
            {
                if doubled {
                    self.carried = slot.arrived;
                }
                State::Drain { capacity: slot.arrived, slots: 0 }
            }
            State::Probe { rate, whole, settled: false, doubled } => {
                State::Probe { rate, whole, settled: true, doubled }
            }
            // After an outage, back to what the path is known to have carried: as a sender begins.
            State::Probe { rate, whole, .. } if self.returns(rate) => {
                State::Probe { rate: (2.0 * rate).min(self.carried), whole, settled: false, doubled: true }
            }
            State::Probe { rate, .. } if CLIMB * rate > 2.0 * slot.sent.max(1.0) => State::default(),
            State::Probe { rate, whole, .. } => {
                State::Probe { rate: CLIMB * rate, whole, settled: false, doubled: false }
            }
        };
        self.clamp = match self.state {
            State::Free { .. } => None,
            State::Drain { capacity, .. } => {
                let share = 1.0 - self.waits(slot, capacity) / HORIZON;
                Some(capacity * share.clamp(RETREAT.0, RETREAT.1))
            }
            State::Hold { capacity, .. } => Some(STEADY * capacity),
            State::Probe { rate, .. } => Some(rate),
        };
    }

    fn account(&mut self, slot: &Slot) {
        // While all arrives, what did not is forgotten: it was lost, and nobody has counted it.
        if matches!(self.state, State::Free { .. }) && slot.arrived >= GOODPUT * slot.sent {
            self.missing *= FORGET;
        }
        self.missing = (self.missing + (slot.sent - slot.arrived - slot.lost) * slot.seconds).max(0.0);
        if let Some(delay) = slot.delay {
            self.least = Some(self.least.map_or(delay, |least| delay.min(least + DRIFT * slot.seconds)));
        }
    }

    /// True if the path has carried far more than `rate`, and nothing has shown since that it does not.
    fn returns(&self, rate: f64) -> bool {
        RETURNS * rate < self.carried
    }

    /// Seconds that packets wait in the path's queue.
    fn waits(&self, slot: &Slot, capacity: f64) -> f64 {
        match (slot.delay, self.least) {
            (Some(delay), Some(least)) => delay - least,
            _ => self.missing / capacity.max(1.0),
        }
    }

    /// Most packets a second that the path before the hop carries; `None` while it is not the bottleneck.
    pub fn clamp(&self) -> Option<f64> {
        self.clamp
    }
}

impl Stream {
    /// It misses packets, and they are not those that wait at the hop: these would have met in its frames.
    fn is_short(&self) -> bool {
        self.arrived < GOODPUT * self.sent && is_short(self.level, self.target_level)
    }
}

/// True if frames are those of a hop that packets do not reach, by the packets that they hold and those that were aimed at.
pub fn is_short(level: f64, target_level: f64) -> bool {
    level < (LEVEL * target_level).max(SINGLE)
}

impl Slot {
    /// True if fewer packets than that share of what was sent have arrived.
    fn misses(&self, share: f64) -> bool {
        self.arrived < GOODPUT * share * self.sent && (share * self.sent - self.arrived) * self.seconds > FEW
    }

    /// The slot of all `streams` together; `None` where there are none.
    pub fn of(streams: impl Iterator<Item = Stream>) -> Option<Slot> {
        let mut all = Slot { sent: 0.0, arrived: 0.0, lost: 0.0, seconds: 0.0, short: false, delay: None };
        let (mut short, mut late, mut timed, mut count) = (0.0, 0.0, 0.0, 0.0);
        for stream in streams {
            let Stream { sent, arrived, lost, seconds, .. } = stream;
            if stream.is_short() {
                short += sent;
            }
            if let Some(by) = stream.late {
                (late, timed) = (late + by * arrived, timed + arrived);
            }
            (all.sent, all.arrived, all.lost) = (all.sent + sent, all.arrived + arrived, all.lost + lost);
            (all.seconds, count) = (all.seconds + seconds, count + 1.0);
        }
        all.seconds /= count;
        all.short = short > 0.0 && short >= MOST * all.sent;
        all.delay = (timed > 0.0).then(|| late / timed);
        (count > 0.0).then_some(all)
    }
}

impl Earliest {
    /// By how much a slot's packets were later, in the mean. `delay`: their mean delay, seconds, clock offset included; zero is
    /// what is told where the station's clock is behind the sender's, and says nothing.
    pub fn late(&mut self, delay: Option<f64>, now: Time) -> Option<f64> {
        let delay = delay.filter(|delay| *delay > 0.0)?;
        let least = self.least.map_or(delay, |(least, at)| delay.min(least + DRIFT * now.since(at).as_secs_f64()));
        self.least = Some((least, now));
        Some(delay - least)
    }

    /// Says whether packets of that slot were later than frames explain, and if so, whether the hop was given less to let them leave it. If they
    /// are late after so many slots of that, it is not there that they wait: the path has become longer, or a clock was set. True in that slot.
    pub fn drained(&mut self, late: bool, drains: bool) -> bool {
        self.vain = if late { self.vain + u32::from(drains) } else { 0 };
        let vain = self.vain >= VAIN;
        if vain {
            *self = Earliest::default();
        }
        vain
    }
}

/// The most that each may have so that all together have `total`: one that wants less gets what it wants. Infinite
/// where there is enough for all.
pub fn level(total: f64, wanted: impl Iterator<Item = f64>) -> f64 {
    let mut wanted: Vec<f64> = wanted.collect();
    wanted.sort_by(f64::total_cmp);
    let (mut left, mut others) = (total, wanted.len() as f64);
    for wants in wanted {
        if wants * others > left {
            return left / others;
        }
        (left, others) = (left - wants, others - 1.0);
    }
    f64::INFINITY
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::Span;

    fn stream(sent: f64, arrived: f64, level: f64) -> Stream {
        Stream { sent, arrived, lost: 0.0, seconds: 0.5, level, target_level: 40.0, late: None }
    }

    fn slot(sent: f64, arrived: f64, level: f64) -> Slot {
        Slot::of(std::iter::once(stream(sent, arrived, level))).expect("one")
    }

    fn at(seconds: f64) -> Time {
        Time::ZERO + Span::from_secs_f64(seconds)
    }

    #[test]
    fn three_slots_missing_packets_in_short_frames_are_a_backhaul() {
        let mut detector = Detector::default();
        for n in 0..3 {
            assert_eq!(detector.clamp(), None, "after {n}");
            detector.update(&slot(10_000.0, 8_000.0, 12.0));
        }
        // 3000 packets wait, 0.375 s of them.
        assert_eq!(detector.clamp(), Some(8_000.0 * (1.0 - 0.375)));
    }

    #[test]
    fn full_frames_or_whole_streams_are_not() {
        let mut detector = Detector::default();
        for _ in 0..10 {
            detector.update(&slot(10_000.0, 8_000.0, 48.0));
            detector.update(&slot(10_000.0, 9_900.0, 12.0));
        }
        assert_eq!(detector.clamp(), None);
        // Two bad slots and a good one, again and again, are not three in a row.
        for _ in 0..10 {
            detector.update(&slot(10_000.0, 8_000.0, 12.0));
            detector.update(&slot(10_000.0, 8_000.0, 12.0));
            detector.update(&slot(10_000.0, 10_000.0, 12.0));
        }
        assert_eq!(detector.clamp(), None);
    }

    #[test]
    fn single_packets_are_short_where_no_more_are_aimed_at() {
        for (level, found) in [(1.0, true), (1.3, false)] {
            let mut detector = Detector::default();
            let slot =
                Slot::of(std::iter::once(Stream { target_level: 1.0, ..stream(3_000.0, 80.0, level) })).expect("one");
            (0..3).for_each(|_| detector.update(&slot));
            assert_eq!(detector.clamp().is_some(), found, "{level}");
        }
    }

    #[test]
    fn streams_add_up_and_only_short_frames_count_as_missing() {
        let (short, full, whole) =
            (stream(1_000.0, 800.0, 12.0), stream(3_000.0, 2_000.0, 48.0), stream(900.0, 900.0, 12.0));
        let of = |streams: &[Stream]| Slot::of(streams.iter().copied()).expect("some");
        let all = of(&[short, full, whole]);
        assert_eq!((all.sent, all.arrived, all.short), (4_900.0, 3_700.0, false));
        assert!(of(&[short, short, whole]).short && !of(&[short, whole]).short, "who alone misses some");
        assert!(of(&[Stream { level: 12.0, ..full }, whole, short]).short);
        let late = |arrived, late| Stream { late, ..stream(1_000.0, arrived, 12.0) };
        let delay = Slot::of([late(900.0, Some(0.1)), late(300.0, Some(0.02)), late(500.0, None)].into_iter());
        assert!((delay.and_then(|all| all.delay).expect("told") - 0.08).abs() < 1e-12);
        assert_eq!(Slot::of(std::iter::empty()), None);
    }

    #[test]
    fn clocks_of_stations_are_their_own() {
        let mut earliest = Earliest::default();
        assert_eq!(earliest.late(Some(0.0), at(0.5)), None, "it is behind");
        assert_eq!(earliest.late(Some(3.02), at(1.0)), Some(0.0));
        assert!((earliest.late(Some(3.12), at(1.5)).expect("told") - 0.0999).abs() < 1e-9, "less the drift");
        assert_eq!(earliest.late(Some(3.01), at(2.0)), Some(0.0));
        // An hour in which nothing was heard counts in full.
        assert_eq!(earliest.late(Some(3.5), at(3602.0)), Some(0.0));
        assert!((earliest.late(Some(3.6), at(3602.5)).expect("told") - 0.0999).abs() < 1e-9);
    }

    #[test]
    fn what_stays_late_however_much_is_drained_is_the_paths() {
        let mut earliest = Earliest::default();
        assert_eq!(earliest.late(Some(3.0), at(0.0)), Some(0.0));
        // A queue that leaves the hop again and again is a queue.
        for slot in 0..100 {
            let queued = slot % VAIN != 0;
            let late = earliest.late(Some(if queued { 3.03 } else { 3.0 }), at(0.001 * f64::from(slot)));
            assert_eq!(late.expect("told") > 0.02, queued, "{slot}");
            earliest.drained(queued, true);
        }
        earliest.drained(false, false);
        // 30 ms more on the path stay.
        for slot in 0..VAIN {
            assert!(earliest.late(Some(3.03), at(0.2)).expect("told") > 0.02, "{slot}");
            // In every other one frames are short, so that nobody asks.
            earliest.drained(true, false);
            earliest.drained(true, true);
        }
        assert_eq!(earliest.late(Some(3.03), at(0.3)), Some(0.0));
    }

    #[test]
    fn capacity_is_shared_by_water_filling() {
        let of = |total, wanted: &[f64]| level(total, wanted.iter().copied());
        assert_eq!(of(90.0, &[100.0, 50.0, 40.0]), 30.0);
        assert_eq!(of(90.0, &[100.0, 10.0, 70.0]), 40.0);
        assert_eq!(of(90.0, &[20.0, 10.0, 60.0]), f64::INFINITY);
        assert_eq!(of(90.0, &[]), f64::INFINITY);
    }

    #[test]
    fn a_path_that_recovers_is_found_again() {
        let mut detector = Detector::default();
        (0..3).for_each(|_| detector.update(&slot(10_000.0, 5_000.0, 12.0)));
        let mut slots = 0;
        while let Some(clamp) = detector.clamp() {
            // It carries 10 000 a second again, and first what has waited: 7500 packets.
            let arrived = if slots == 0 { 10_000.0 } else { clamp.min(10_000.0) + detector.missing / 0.5 };
            detector.update(&slot(clamp.min(10_000.0), arrived.min(10_000.0), 30.0));
            slots += 1;
            assert!(slots < 60, "{clamp}");
        }
    }

    #[test]
    fn an_outage_is_over_soon_after_it_is_over() {
        let mut detector = Detector::default();
        let carry = |detector: &mut Detector, rate: f64| {
            let sent = detector.clamp().unwrap_or(20_000.0).min(20_000.0);
            detector.update(&Slot { delay: Some(0.02), ..slot(sent, sent.min(rate), 12.0) });
            sent
        };
        (0..10).for_each(|_| assert!(carry(&mut detector, 20_000.0) > 19_999.0));
        (0..6).for_each(|_| assert!(carry(&mut detector, 20.0) > 0.0));
        let slots = (0..60).find(|_| carry(&mut detector, 20_000.0) > 10_000.0).expect("it returns");
        // Two for each of ten that double; by tenths alone it were 140.
        assert!(slots < 25, "{slots}");
    }

    #[test]
    fn a_fast_drain_shows_that_the_path_has_recovered() {
        let mut detector = Detector::default();
        detector.update(&slot(20_000.0, 20_000.0, 12.0));
        (0..3).for_each(|_| detector.update(&Slot { delay: Some(1.0), ..slot(10_000.0, 20.0, 12.0) }));
        detector.least = Some(0.02);
        detector.update(&Slot { delay: Some(1.0), ..slot(10.0, 2_000.0, 12.0) });
        assert!(detector.clamp().is_some_and(|clamp| clamp >= 1_000.0), "{detector:?}");
    }

    #[test]
    fn a_path_that_stays_slow_is_tried_with_the_double_once() {
        let mut detector = Detector::default();
        (0..10).for_each(|_| detector.update(&Slot { delay: Some(0.02), ..slot(20_000.0, 20_000.0, 12.0) }));
        let (mut queue, mut doubles, mut before) = (0.0, 0, 0.0);
        for _ in 0..400 {
            // 100 packets a second, and a buffer that is deep.
            let sent = detector.clamp().unwrap_or(20_000.0).min(20_000.0);
            let arrived = (sent + 2.0 * queue).min(100.0);
            queue = (queue + (sent - arrived) / 2.0).min(500.0);
            doubles += u32::from(sent > 1.9 * before && sent > 150.0 && sent < 20_000.0);
            before = sent;
            detector.update(&Slot { delay: Some(0.02 + queue / 100.0), ..slot(sent, arrived, 12.0) });
        }
        assert!(doubles <= 1, "{doubles}");
        assert_eq!(detector.clamp().map(|clamp| clamp < 150.0), Some(true), "{detector:?}");
    }

    #[test]
    fn a_packet_on_the_border_of_two_slots_is_not_missing() {
        let mut detector = Detector::default();
        (0..10).for_each(|_| detector.update(&slot(10.0, 8.0, 1.0)));
        assert_eq!(detector.clamp(), None);
        (0..3).for_each(|_| detector.update(&slot(10.0, 6.0, 1.0)));
        assert!(detector.clamp().is_some(), "two of five are");
    }

    #[test]
    fn losses_that_no_rate_avoids_do_not_bring_it_down() {
        let mut detector = Detector::default();
        let mut least = f64::INFINITY;
        for _ in 0..400 {
            let sent = detector.clamp().unwrap_or(10_000.0).min(10_000.0);
            detector.update(&Slot { delay: Some(0.02), ..slot(sent, 0.9 * sent, 12.0) });
            least = least.min(sent);
        }
        assert!(least > 7_500.0, "{least}");
    }

    #[test]
    fn uncounted_losses_are_forgotten_while_packets_arrive() {
        let mut detector = Detector::default();
        (0..400).for_each(|_| detector.update(&slot(10_000.0, 9_800.0, 12.0)));
        (0..3).for_each(|_| detector.update(&slot(10_000.0, 8_000.0, 12.0)));
        // A hundred a slot of which half is forgotten are two hundred; then three thousand: 0.4 s of 8000 a second.
        let clamp = detector.clamp().expect("three slots");
        assert!((clamp - 8_000.0 * 0.6).abs() < 1.0, "{clamp}");
    }

    #[test]
    fn clock_drift_is_no_queue_and_a_growing_queue_is_no_drift() {
        let three = |detector: &mut Detector, delay: f64| {
            (0..3).for_each(|_| detector.update(&Slot { delay: Some(delay), ..slot(10_000.0, 8_000.0, 12.0) }));
            detector.clamp().expect("three slots") / 8_000.0
        };
        // 100 us a second for 4000 seconds, and then 10 ms of queue: as good as none.
        let mut detector = Detector::default();
        let mut delay = 0.02;
        for _ in 0..8_000 {
            delay += 50e-6;
            detector.update(&Slot { delay: Some(delay), ..slot(10_000.0, 10_000.0, 12.0) });
        }
        assert_eq!(three(&mut detector, delay + 0.01), RETREAT.1);
        // In 3 s a queue of 0.3 s has grown: the least delay has risen by a millisecond at most.
        let mut detector = Detector::default();
        for n in 0..6u32 {
            detector.update(&Slot { delay: Some(0.02 + 0.05 * f64::from(n)), ..slot(10_000.0, 9_900.0, 12.0) });
        }
        let share = three(&mut detector, 0.32);
        assert!((share - 0.7).abs() < 0.002, "{share}");
    }

    #[test]
    fn a_path_that_has_become_longer_is_not_drained_for_ever() {
        let mut detector = Detector::default();
        detector.update(&Slot { delay: Some(0.02), ..slot(1_000.0, 1_000.0, 12.0) });
        (0..3).for_each(|_| detector.update(&Slot { delay: Some(0.2), ..slot(10_000.0, 5_000.0, 12.0) }));
        let mut slots = 0;
        while detector.clamp().is_some_and(|clamp| clamp <= 4_500.0) {
            let clamp = detector.clamp().unwrap_or_default();
            detector.update(&Slot { delay: Some(0.12), ..slot(clamp, clamp, 12.0) });
            slots += 1;
            assert!(slots <= 41, "{detector:?}");
        }
        assert!(slots > 30, "nothing but the bound ends this drain: {slots}");
    }
}
