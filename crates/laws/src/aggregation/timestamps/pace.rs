//! How long a packet takes on the air, from when packets were sent and when they came.
//! Source:     own. That it can be told at all follows from the model of \[aggregation\] (`T_air = T_oh + w N`); to
//!             seek the line that keeps between bounds, rather than the one nearest to points, is how clock skew is
//!             told from one-way delays (Moon, Skelly and Towsley, Infocom 1999).
//! Equations:  s_last(k) <= S(k) < s_first(k + 1),   a(k) = S(k) + p + w N(k)
//!             so a(k) - s_first(k + 1) < p + w N(k) <= a(k) - s_last(k);   w is where these are violated least:
//!             V(w) = sum over slots of min_p sum_k max{0, lower - p - w N} + max{0, p + w N - upper}
//!             result = max{w, g},   g = sum (last stamp - first stamp) / sum (N - 1)
//! Symbols:    S(k) -> when frame k began (not known), s -> when its packets were sent, a -> the first stamp of its packets, N -> its
//!             packets, p -> whatever is the same for all frames of a slot (clocks, path, preamble, the host), w -> seconds a packet
//! Deviations: * A frame takes up what waits when it begins: its last packet had been sent by then, and the first of the next frame had
//!               not.
//!             * Of a frame that is handed up whole the first stamp is its end, which moves by w with every packet.
//!             * A host that hands up every MPDU as it ends stamps the first one when the frame has begun: that gives w = 0, and there
//!               the packets of a frame are w apart. Elsewhere that is only what a packet costs the host, which is below w, or the host
//!               would not keep up; so the larger of both is it.
//!             * The least delays would give the same if many were without any jitter; sums of violations bear outliers.
//!             * The mean of the delays is of no use: frames are long because a packet came just before they began.
//! Validity:   packets that are sent one by one, evenly, and wait nowhere but for their station's turn: no queue stands, and frames
//!             are put together when the channel is theirs. Where an access point does that one frame earlier, or MPDUs are lost
//!             so often that most frames have packets of the one before, what comes out is wrong or not known. It is never more than
//!             what the station's own frames leave room for.
//! Checked by: pace::tests::*, crates/sim/tests/integration/timestamps.rs (held-out traces)

use std::collections::VecDeque;

/// A frame with plain borders, all times in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Whole {
    /// Its packets.
    pub packets: f64,
    /// From when the next frame's first packet was sent to its own first stamp; and from when its own last packet was sent. Clocks
    /// may be any constant apart.
    pub bounds: (f64, f64),
    /// From its first stamp to its last.
    pub spread: f64,
    /// What came before it, if that was plain too: the packets of that frame, and the time between both first stamps.
    pub before: Option<(f64, f64)>,
}

impl Whole {
    /// False for a frame that lacks packets because an MPDU before them was lost, and for the next one, which brings them. Of
    /// longer frames the time between them grows by no more than what they have in excess (ΔN x w, with x w < 1): then N - x Δa
    /// has the sign of -ΔN, or is a packet or so. Where packets wait for a lost one, ΔN is all there is of it.
    fn is_in_order(&self) -> bool {
        let width = self.bounds.1 - self.bounds.0;
        let Some((packets, apart)) = self.before.filter(|_| width > 0.0) else { return false };
        let (change, excess) = (self.packets - packets, self.packets - apart / width);
        change.abs() < SHIFT || excess * change < 0.3 * change * change
    }
}

/// Fewer packets more or less than in the frame before are the rhythm of packets and frames.
const SHIFT: f64 = 3.0;

/// The frames of the last slots.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    /// With the number of the slot that each came in.
    frames: VecDeque<(u64, Whole)>,
    slot: u64,
}

/// Time of a packet on the air.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacketTime {
    /// Microseconds.
    pub micros: f64,
    /// Standard error of that, from parts of the frames.
    pub error: f64,
}

/// Frames that are kept: some slots of a slow station, the last of a fast one.
const KEPT: usize = 480;
/// Slots that are kept: a data rate that has changed shall not be believed for longer.
const SLOTS: u64 = 8;
/// Fewer frames say nothing.
const LEAST: usize = 24;
/// Frames with fewer packets in the mean say nothing either.
const SHORTEST: f64 = 2.0;
/// Parts that are fitted by themselves, to see how much they differ.
const PARTS: usize = 4;
/// An error of more than this share is no knowledge.
const KNOWN: f64 = 0.15;
/// Times of a packet that are thought of, microseconds: from 1500 octets at 12 Gbit/s to 1 Mbit/s.
const TIMES: (f64, f64) = (1.0, 12_500.0);
/// They are searched down to this ratio.
const RATIO: f64 = 1.003;
/// How much more violation than the least, as a share of the bounds' widths, is about as good.
const GOOD: f64 = 0.005;
/// One frame in so many may show lost MPDUs: beyond, too many do so that do not show it.
const LOSSY: usize = 20;
/// With more violation than this share of the bounds' widths, what they assume is not so: a queue stands, or MPDUs are lost.
const OUTSIDE: f64 = 0.1;
/// By so much may a host's stamps vary, microseconds.
const JITTER: f64 = 20.0;
/// What is about as good may lie as far off as this share of the result.
const VAGUE: f64 = 0.5;

impl Pace {
    /// Takes the frames of a slot in that has ended.
    pub fn add(&mut self, frames: impl IntoIterator<Item = Whole>) {
        self.slot += 1;
        let followed = frames.into_iter().filter(|frame| frame.before.is_some());
        let (orderly, others): (Vec<Whole>, Vec<Whole>) = followed.partition(Whole::is_in_order);
        if others.len() * LOSSY <= orderly.len() {
            self.frames.extend(orderly.into_iter().map(|frame| (self.slot, frame)));
        }
        let surplus = self.frames.len().saturating_sub(KEPT);
        self.frames.drain(..surplus);
        while self.frames.front().is_some_and(|(slot, _)| slot + SLOTS <= self.slot) {
            self.frames.pop_front();
        }
    }

    /// What the frames say; `None` if they do not.
    pub fn estimate(&self) -> Option<PacketTime> {
        if self.frames.len() < LEAST {
            return None;
        }
        // Frames of single packets differ by too little, and a stream that sends too little for more may be held back
        // before the hop.
        let packets: f64 = self.frames.iter().map(|(_, frame)| frame.packets).sum();
        if packets < SHORTEST * self.frames.len() as f64 {
            return None;
        }
        let gaps: f64 = self.frames.iter().map(|(_, frame)| (frame.packets - 1.0).max(0.0)).sum();
        let spread: f64 = self.frames.iter().map(|(_, frame)| frame.spread).sum();
        let apart = if gaps > 0.0 { spread / gaps } else { 0.0 };
        let whole = fit(&by_slot(self.frames.iter().copied()));
        let micros = whole.middle().max(apart);
        if (whole.to - whole.from) / 2.0 > VAGUE * micros || whole.outside > OUTSIDE {
            return None;
        }
        // A station's frames are on the air for no longer than it takes until the next ones.
        let befores = || self.frames.iter().filter_map(|(_, frame)| frame.before);
        let (packets, apart) = (befores().map(|before| before.0).sum::<f64>(), befores().map(|before| before.1).sum());
        if micros * packets > apart {
            return None;
        }
        let part = |part: usize| self.frames.iter().skip(part).step_by(PARTS).copied();
        let parts: Vec<f64> = (0..PARTS).map(|number| fit(&by_slot(part(number))).middle()).collect();
        let mean = parts.iter().sum::<f64>() / PARTS as f64;
        let variance = parts.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (PARTS - 1) as f64;
        let found = PacketTime { micros, error: (variance / PARTS as f64).sqrt() };
        (found.error <= KNOWN * found.micros).then_some(found)
    }
}

fn by_slot(frames: impl Iterator<Item = (u64, Whole)>) -> Vec<Vec<Whole>> {
    let mut slots: Vec<(u64, Vec<Whole>)> = Vec::new();
    for (slot, frame) in frames {
        match slots.last_mut().filter(|last| last.0 == slot) {
            Some(last) => last.1.push(frame),
            None => slots.push((slot, vec![frame])),
        }
    }
    slots.into_iter().map(|(_, frames)| frames).collect()
}

/// Times of a packet that are about as good as the best, microseconds.
struct Range {
    from: f64,
    to: f64,
    /// How far frames lie outside of their bounds at best, as a share of what those are apart.
    outside: f64,
}

impl Range {
    fn middle(&self) -> f64 {
        f64::midpoint(self.from, self.to)
    }
}

/// The times of a packet that violate the bounds little more than the best.
fn fit(slots: &[Vec<Whole>]) -> Range {
    let mut values = Vec::new();
    let mut cost = |micros: f64| -> f64 { slots.iter().map(|frames| violation(frames, micros, &mut values)).sum() };
    // Convex in the time, so without a second valley in its logarithm.
    let (mut from, mut to) = TIMES;
    while to / from > RATIO {
        let (left, right) = (from * (to / from).powf(GOLDEN), to / (to / from).powf(GOLDEN));
        if cost(left) <= cost(right) { to = right } else { from = left }
    }
    let best = (from * to).sqrt();
    let widths: f64 = slots.iter().flatten().map(|frame| frame.bounds.1 - frame.bounds.0 + JITTER).sum();
    let least = cost(best);
    let good = least + GOOD * widths;
    let mut edge = |outside: f64| {
        let (mut inside, mut outside) = (best, outside);
        if cost(outside) <= good {
            return outside;
        }
        while (inside / outside).max(outside / inside) > RATIO {
            let between = (inside * outside).sqrt();
            if cost(between) <= good { inside = between } else { outside = between }
        }
        inside
    };
    Range { from: edge(TIMES.0), to: edge(TIMES.1), outside: least / widths }
}

/// 1 less the golden ratio's inverse.
const GOLDEN: f64 = 0.381_966_011_250_105;

/// How far outside of their bounds frames lie if a packet takes so long, and all else is the best that it can be: the median of the
/// bounds, for as many shall be violated from above as from below.
fn violation(frames: &[Whole], micros: f64, values: &mut Vec<f64>) -> f64 {
    values.clear();
    for Whole { packets, bounds: (lower, upper), .. } in frames {
        values.extend([lower - micros * packets, upper - micros * packets]);
    }
    let middle = values.len() / 2;
    let (_, constant, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let constant = *constant;
    let over = |Whole { packets, bounds: (lower, upper), .. }: &Whole| {
        let there = constant + micros * packets;
        (lower - there).max(0.0) + (there - upper).max(0.0)
    };
    frames.iter().map(over).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A station that is sent a packet every `every` microseconds, one after the other, and gets what waits whenever its turn comes.
    struct World {
        every: f64,
        /// Time of a packet on the air.
        micros: f64,
        /// What others take in between, at most.
        others: f64,
        /// The host stamps each MPDU as it ends, or the whole frame at its end, so far apart.
        early: bool,
        host: f64,
        dice: u64,
    }

    impl World {
        fn new(every: f64, micros: f64, others: f64) -> World {
            World { every, micros, others, early: false, host: 2.0, dice: 1 }
        }

        fn random(&mut self) -> f64 {
            self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.dice >> 40) as f64 / (1u64 << 24) as f64
        }

        fn frames(&mut self, count: usize) -> Vec<Whole> {
            const CLOCKS: f64 = 1e9;
            let (mut begins, mut taken, mut before) = (self.every, 0.0, None);
            let mut frames = Vec::new();
            while frames.len() < count {
                // Packet n leaves at n times `every`.
                let waiting = ((begins / self.every).floor() + 1.0 - taken).min(64.0);
                if waiting < 1.0 {
                    begins += self.every;
                    continue;
                }
                let (last, next) = ((taken + waiting - 1.0) * self.every, (taken + waiting) * self.every);
                let ends = begins + 40.0 + self.micros * waiting;
                let first = if self.early { begins + 40.0 + self.micros } else { ends } + 5.0 + 10.0 * self.random();
                let apart = if self.early { self.micros } else { self.host };
                frames.push(Whole {
                    packets: waiting,
                    bounds: (CLOCKS + first - next, CLOCKS + first - last),
                    spread: apart * (waiting - 1.0),
                    before: before.map(|(packets, at)| (packets, first - at)),
                });
                (taken, before) = (taken + waiting, Some((waiting, first)));
                begins = ends + 60.0 + 135.0 * self.random() + self.others * self.random();
            }
            frames
        }

        fn estimate(&mut self, slots: usize, frames: usize) -> Option<PacketTime> {
            let all = self.frames(slots * frames);
            let mut pace = Pace::default();
            all.chunks(frames).for_each(|slot| pace.add(slot.iter().copied()));
            pace.estimate()
        }
    }

    #[test]
    fn the_time_of_a_packet_is_found_whoever_else_is_served() {
        for (every, micros, others) in [(15.0, 10.6, 0.0), (100.0, 31.8, 2_000.0), (227.0, 70.6, 6_000.0)] {
            let found = World::new(every, micros, others).estimate(6, 60).expect("known");
            assert!((found.micros / micros - 1.0).abs() < 0.1, "{micros}: {found:?}");
            let early = World { early: true, ..World::new(every, micros, others) }.estimate(6, 60).expect("known");
            assert!((early.micros / micros - 1.0).abs() < 0.02, "{micros}: {early:?}");
        }
    }

    #[test]
    fn too_few_frames_and_frames_that_are_all_alike_say_nothing() {
        assert_eq!(World::new(100.0, 31.8, 2_000.0).estimate(1, LEAST), None, "the first has none before it");
        // One packet each: they might take any time.
        assert_eq!(World::new(3_000.0, 31.8, 0.0).estimate(6, 60), None);
    }

    #[test]
    fn frames_stretched_by_the_path_do_not_set_packet_airtime() {
        // Packets come one by one, each takes 70 us, is its frame and waits up to 980 us for its turn. Every fourth waits on the path for the next one, and both are 800 us
        // late: twice the packets, 870 us more.
        let (mut frames, mut left, mut before) = (Vec::new(), 0.0, None);
        let mut world = World::new(1_000.0, 70.6, 0.0);
        for number in 0..240 {
            let (packets, late) = if number % 4 == 3 { (2.0, 800.0) } else { (1.0, 0.0) };
            let last = left + (packets - 1.0) * 1_000.0;
            let first = last + late + 100.0 + 70.6 * packets + 980.0 * world.random();
            frames.push(Whole {
                packets,
                bounds: (first - last - 1_000.0, first - last),
                spread: 2.0 * (packets - 1.0),
                before: before.map(|(packets, at)| (packets, first - at)),
            });
            (left, before) = (last + 1_000.0, Some((packets, first)));
        }
        let mut pace = Pace::default();
        pace.add(frames);
        assert_eq!(pace.estimate(), None);
    }

    #[test]
    fn a_queue_is_not_taken_for_the_air() {
        // More is sent than full frames carry: every packet waits longer than the one before.
        assert_eq!(World::new(20.0, 31.8, 500.0).estimate(6, 60), None);
    }

    #[test]
    fn frames_that_lack_what_the_next_ones_bring_are_left_out() {
        let frames = World::new(100.0, 31.8, 2_000.0).frames(240);
        // An MPDU in the middle of every tenth frame is lost: the rest waits for it, and is handed up with the next frame.
        let mut spoilt = frames.clone();
        for at in (10..230).step_by(10) {
            let held = (spoilt[at].packets / 2.0).floor();
            spoilt[at].packets -= held;
            spoilt[at].bounds = (spoilt[at].bounds.0 + held * 100.0, spoilt[at].bounds.1 + held * 100.0);
            spoilt[at + 1].packets += held;
            for later in [at + 1, at + 2] {
                let packets = spoilt[later - 1].packets;
                spoilt[later].before = spoilt[later].before.map(|(_, apart)| (packets, apart));
            }
        }
        let strange = spoilt.iter().skip(1).filter(|frame| !frame.is_in_order()).count();
        // One of the two at least, unless there was little to hold.
        assert!((20..=44).contains(&strange), "{strange} of 44");
        assert!(frames.iter().skip(1).all(Whole::is_in_order), "and none without losses");
        let mut pace = Pace::default();
        pace.add(spoilt);
        assert_eq!(pace.estimate(), None);
    }

    #[test]
    fn a_changed_rate_is_followed_within_the_kept_slots() {
        let mut pace = Pace::default();
        (0..8).for_each(|n| pace.add(World { dice: n, ..World::new(100.0, 31.8, 2_000.0) }.frames(60)));
        (0..8).for_each(|n| pace.add(World { dice: n, ..World::new(200.0, 63.6, 2_000.0) }.frames(60)));
        let found = pace.estimate().expect("known");
        assert!((found.micros / 63.6 - 1.0).abs() < 0.1, "{found:?}");
    }
}
