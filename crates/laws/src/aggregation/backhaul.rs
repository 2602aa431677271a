//! Whether the hop or the path before it is the bottleneck, and the rate of all streams together that leaves no queue there.
//! Source:     aggregation.md C.4, "backhaul detector" (designed there; the predecessor trained a classifier). To send less than is
//!             delivered until the queue has gone, and to probe briefly, is the Drain and the cycle of BBR.
//! Equations:  free:   3 slots with y / s < 0.97 and short frames   =>   C = y, drain
//!             short:  at least 0.6 of what is sent is of streams with y / s < 0.97 and mu < max{0.6 N_target, 1.05}
//!             drain:  x <= C max{0.5, min{0.9, 1 - q / 1 s}};   y / s < 0.97  =>  C = y;   q <= 20 ms  =>  hold
//!             hold:   x <= 0.95 C for 8 slots, then probe at r = 1.05 C;   q > 40 ms  =>  drain
//!             probe:  x <= r for 2 slots; the second has y / s < 0.97 g  =>  C = y, drain;   otherwise  r' = 1.1 r, free once r' > 2 s;
//!             r' = 2 r while that is less than half of what last arrived whole before 3 slots did not
//!             q = d - d_least, where stations measure d;   otherwise q = B / C,   B' = max{B + (s - y - lost) t, 0}, and while free and
//!             y / s >= 0.97, B' = max{B/2 + (s - y - lost) t, 0}
//!             d:      mean over the streams of what each is later than its own least, weighted by y
//!             each:   min{its own x, l} with l such that all together are C, or what the state makes of it (`level`)
//! Symbols:    x -> `clamp`, s -> `sent`, y -> `arrived`, mu -> `level`, N_target -> `target`, d -> `delay`, t -> `seconds`,
//!             C -> `capacity`, r -> `Probe::rate`, g -> `whole` (y / s of the last slot of hold), q -> `waits`, B -> `missing`
//! Deviations: the specification calls frames short below 0.8 of the target; where a fifth of all MPDUs is sent again they hold 0.6 to 0.8 of it
//!             although a queue stands at the hop. It retreats to 0.95 of the goodput at once and does not say how that ends. A deep buffer that was
//!             filled before is then never emptied, so the retreat is deeper until it is. The least delay is let
//!             rise by 200 us/s, as two clocks may drift. After 40 slots of drain, what is left is taken to be the path's.
//!             A probe is compared with the hold before it, not with 1: packets that any rate loses are no bottleneck.
//!             One detector for all stations of an access point: they share the path to it, and detectors of their own would each hold
//!             what it happened to have when the path filled. A stream that misses packets while most others do not has one of its own:
//!             whatever loses them, to send more is of no use to it and costs the others. Where a packet or none is aimed at, frames of one packet are short all
//!             the same: what waits at the hop would meet in them.
//! Validity:   a hop that puts packets that wait into one frame; packets of the same stream counted at both ends, over slots that cover each other but for the path's delay, which is
//!             shorter than a slot. Where neither delays nor losses are told, lost packets count as waiting, until the 40 slots.
//! Checked by: tests::*, tests/aggregation_backhaul.rs (the regulator before a buffer of 2 s)

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
    Probe { rate: f64, whole: f64, settled: bool },
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
    pub target: f64,
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
pub struct Earliest(Option<f64>);

const GOODPUT: f64 = 0.97;
const LEVEL: f64 = 0.6;
/// Frames of fewer packets than this are short, whatever is aimed at.
const SINGLE: f64 = 1.05;
/// A path that all streams share makes most of them miss packets; who alone does has reasons of its own.
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
/// Share of the capacity between probes, and slots of it.
const STEADY: f64 = 0.95;
const REST: u32 = 8;
/// The first probe, as a share of the capacity; and each next one, as a share of one that has arrived whole.
const PROBE: f64 = 1.05;
const CLIMB: f64 = 1.1;
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
        // On a hop that is too slow, frames fill up; on a backhaul that is too slow, packets vanish or wait elsewhere.
        let missing = |whole: f64| slot.short && slot.arrived < GOODPUT * whole * slot.sent;
        self.account(slot);
        self.state = match self.state {
            State::Free { .. } if !missing(1.0) => {
                self.carried = slot.arrived;
                State::Free { suspicious: 0 }
            }
            State::Free { suspicious } if suspicious + 1 < PATIENCE => State::Free { suspicious: suspicious + 1 },
            State::Free { .. } => State::Drain { capacity: slot.arrived, slots: 0 },
            State::Drain { capacity, slots } => {
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
            State::Hold { capacity, slots } if slots + 1 < REST => State::Hold { capacity, slots: slots + 1 },
            State::Hold { capacity, .. } => {
                let whole = if slot.sent > 0.0 { (slot.arrived / slot.sent).min(1.0) } else { 1.0 };
                State::Probe { rate: PROBE * capacity, whole, settled: false }
            }
            // In its first slot some of the packets that arrive were sent before.
            State::Probe { rate, whole, settled: false } => State::Probe { rate, whole, settled: true },
            State::Probe { whole, .. } if missing(whole) => State::Drain { capacity: slot.arrived, slots: 0 },
            // After an outage, back to what the path is known to have carried: as a sender begins.
            State::Probe { rate, whole, .. } if 4.0 * rate < self.carried => {
                State::Probe { rate: 2.0 * rate, whole, settled: false }
            }
            State::Probe { rate, .. } if CLIMB * rate > 2.0 * slot.sent.max(1.0) => State::default(),
            State::Probe { rate, whole, .. } => State::Probe { rate: CLIMB * rate, whole, settled: false },
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
        self.arrived < GOODPUT * self.sent && is_short(self.level, self.target)
    }
}

/// True if frames are those of a hop that packets do not reach, by the packets that they hold and those that were aimed at.
pub fn is_short(level: f64, target: f64) -> bool {
    level < (LEVEL * target).max(SINGLE)
}

impl Slot {
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
    pub fn late(&mut self, delay: Option<f64>, seconds: f64) -> Option<f64> {
        let delay = delay.filter(|delay| *delay > 0.0)?;
        let earliest = self.0.map_or(delay, |earliest| delay.min(earliest + DRIFT * seconds));
        self.0 = Some(earliest);
        Some(delay - earliest)
    }
}

/// The most that each may have so that all together have `total`: who wants less gets that. Infinite where there is enough for all.
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

    fn stream(sent: f64, arrived: f64, level: f64) -> Stream {
        Stream { sent, arrived, lost: 0.0, seconds: 0.5, level, target: 40.0, late: None }
    }

    fn slot(sent: f64, arrived: f64, level: f64) -> Slot {
        Slot::of(std::iter::once(stream(sent, arrived, level))).expect("one")
    }

    #[test]
    fn three_slots_of_missing_packets_in_short_frames_are_a_backhaul() {
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
            let slot = Slot::of(std::iter::once(Stream { target: 1.0, ..stream(3_000.0, 80.0, level) })).expect("one");
            (0..3).for_each(|_| detector.update(&slot));
            assert_eq!(detector.clamp().is_some(), found, "{level}");
        }
    }

    #[test]
    fn streams_are_one_and_what_is_missing_in_full_frames_waits_at_the_hop() {
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
        assert_eq!(earliest.late(Some(0.0), 0.5), None, "it is behind");
        assert_eq!(earliest.late(Some(3.02), 0.5), Some(0.0));
        assert!((earliest.late(Some(3.12), 0.5).expect("told") - 0.0999).abs() < 1e-9, "less the drift");
        assert_eq!(earliest.late(Some(3.01), 0.5), Some(0.0));
    }

    #[test]
    fn what_there_is_goes_to_all_alike_and_what_one_does_not_want_to_the_others() {
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
        let slots = (0..).find(|_| carry(&mut detector, 20_000.0) > 10_000.0).expect("it returns");
        // Eight of rest and two for each of ten that double, and then by tenths; by tenths alone it were 140.
        assert!(slots < 50, "{slots}");
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
    fn losses_that_nobody_counts_are_forgotten_while_all_else_arrives() {
        let mut detector = Detector::default();
        (0..400).for_each(|_| detector.update(&slot(10_000.0, 9_800.0, 12.0)));
        (0..3).for_each(|_| detector.update(&slot(10_000.0, 8_000.0, 12.0)));
        // A hundred a slot of which half is forgotten are two hundred; then three thousand: 0.4 s of 8000 a second.
        let clamp = detector.clamp().expect("three slots");
        assert!((clamp - 8_000.0 * 0.6).abs() < 1.0, "{clamp}");
    }

    #[test]
    fn clocks_that_drift_apart_are_no_queue_and_a_queue_that_grows_is_no_drift() {
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
