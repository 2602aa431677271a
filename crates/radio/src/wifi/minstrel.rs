//! A rate control that learns from what was acknowledged.
//! Source:     Linux 6.x mac80211, minstrel_ht (F. Fietkau), in its behaviour: statistics of 50 ms, noise filter, throughput
//!             estimate, three best rates and the most probable, retry chain, samples every 20 ms in the order increment,
//!             jump, increment, jump, increment, slow.
//! Equations:  p' = c1 x + c2 p1 + c3 p2 with a = exp(-pi sqrt 2 / 16), c2 = 2 a cos(2 pi sqrt 2 / 16), c3 = -a^2,
//!             c1 = 1 - c2 - c3;   throughput = min(p, 0.9) / (overhead / mean aggregate + duration), 0 below p = 0.1
//! Symbols:    x -> share acknowledged in an interval, p1 and p2 -> `filtered`
//! Deviations: a rate is an MCS and a number of streams at the link's own width and guard interval; a sampled frame is a
//!             lone MPDU; random rates come from the transmitter's stream instead of a fixed table; lengths of retry
//!             chains leave RTS out; no A-MSDU limits.
//! Validity:   up to four streams.     Checked by: tests::*, wifi::tests::*

use lasthop_units::{Span, Stream, Time};
use rand::Rng;

/// What the sampler knows of a rate before it has tried it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// Its index among the modes.
    pub mode: u16,
    pub streams: u8,
    /// Data rate, bit/s.
    pub rate: f64,
    /// What a frame costs beside its data.
    pub overhead: Span,
}

/// How to send the next frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Choice {
    pub mode: u16,
    /// A sample: one MPDU.
    pub probe: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Minstrel {
    /// By streams, then by rate.
    rates: Vec<Rate>,
    stream: Stream,
    updated: Time,
    sampled: Time,
    /// Frames and MPDUs of this interval, and the mean aggregate.
    frames: u32,
    mpdus: u32,
    mean_ampdu: f64,
    /// Best throughput first.
    best: [usize; 3],
    /// Highest probability.
    safest: usize,
    /// Rates to be sampled: increments, jumps, slow ones.
    samples: [Vec<usize>; 3],
    /// Where in `SEQUENCE` the next sample is.
    turn: usize,
    /// The number of streams that has its turn, by kind of sample.
    group: [u8; 2],
}

#[derive(Clone, Debug)]
struct Rate {
    candidate: Candidate,
    overhead_ns: f64,
    /// Time of the data of a mean packet, ns.
    duration_ns: f64,
    attempts: u32,
    successes: u32,
    /// Whether it was ever tried.
    known: bool,
    /// Probability of success, filtered, of the last interval and the one before; `None` before the first.
    filtered: Option<(f64, f64)>,
    probability: f64,
}

const INTERVAL: Span = Span::from_millis(50);
const SAMPLE_INTERVAL: Span = Span::from_millis(20);
/// A packet is taken to have this many bits.
const PACKET_BITS: f64 = 1_200.0 * 8.0;
/// Rates that wait to be sampled, of each kind.
const SAMPLES: usize = 5;
/// A retry chain stays within this, and a rate within this many tries.
const SEGMENT_NS: f64 = 6e6;
const MOST_TRIES: u32 = 7;

const INCREMENT: usize = 0;
const JUMP: usize = 1;
const SLOW: usize = 2;
const SEQUENCE: [usize; 6] = [INCREMENT, JUMP, INCREMENT, JUMP, INCREMENT, SLOW];

impl Minstrel {
    /// A sampler that begins at the lowest rate.
    pub fn new(mut candidates: Vec<Candidate>, stream: Stream) -> Minstrel {
        candidates.sort_by(|a, b| (a.streams, a.rate).partial_cmp(&(b.streams, b.rate)).expect("rates are numbers"));
        let rate = |candidate: Candidate| Rate {
            candidate,
            overhead_ns: candidate.overhead.as_nanos() as f64,
            duration_ns: PACKET_BITS / candidate.rate * 1e9,
            attempts: 0,
            successes: 0,
            known: false,
            filtered: None,
            probability: 0.0,
        };
        let mut minstrel = Minstrel {
            rates: candidates.into_iter().map(rate).collect(),
            stream,
            updated: Time::ZERO,
            sampled: Time::ZERO,
            frames: 0,
            mpdus: 0,
            mean_ampdu: 1.0,
            best: [0; 3],
            safest: 0,
            samples: std::array::from_fn(|_| Vec::with_capacity(SAMPLES)),
            turn: 0,
            group: [0; 2],
        };
        minstrel.refill();
        minstrel
    }

    /// The rate that it believes best.
    pub fn current(&self) -> u16 {
        self.rates[self.best[0]].candidate.mode
    }

    /// How to send a frame after its predecessors went unanswered `unanswered` times in a row.
    pub fn choose(&mut self, now: Time, unanswered: u32) -> Choice {
        if unanswered == 0
            && now.since(self.sampled) >= SAMPLE_INTERVAL
            && let Some(index) = self.sample(now)
        {
            return Choice { mode: self.rates[index].candidate.mode, probe: true };
        }
        Choice { mode: self.rates[self.stage(unanswered)].candidate.mode, probe: false }
    }

    /// What became of a frame at `mode`: of `mpdus`, so many were acknowledged.
    pub fn report(&mut self, now: Time, mode: u16, mpdus: u32, acknowledged: u32) {
        let Some(rate) = self.rates.iter_mut().find(|rate| rate.candidate.mode == mode) else { return };
        rate.attempts += mpdus;
        rate.successes += acknowledged;
        self.frames += 1;
        self.mpdus += mpdus;
        self.fall_back();
        if now.since(self.updated) > INTERVAL {
            self.update(now);
        }
    }

    /// The rate of the retry chain after so many tries: each rate has its count, and the last goes on to the end.
    fn stage(&self, unanswered: u32) -> usize {
        let mut tries = unanswered;
        for index in self.best {
            let count = self.tries(index);
            if tries < count {
                return index;
            }
            tries -= count;
        }
        self.safest
    }

    /// How often a rate is tried: as often as fits into a segment, with the windows doubling.
    fn tries(&self, index: usize) -> u32 {
        let rate = &self.rates[index];
        if rate.probability < 0.2 {
            return if rate.probability < 0.1 { 1 } else { 2 };
        }
        let once = rate.overhead_ns + rate.duration_ns * self.mean_ampdu;
        let (mut window, mut tries, mut spent) = (15.0, 0, 0.0);
        while tries < MOST_TRIES {
            spent += 9_000.0 * window / 2.0 + once;
            if tries >= 2 && spent > SEGMENT_NS {
                break;
            }
            window = window * 2.0 + 1.0;
            tries += 1;
        }
        tries
    }

    /// The best rates fail outright within an interval: fewer streams at once, without waiting for its end.
    fn fall_back(&mut self) {
        for place in 0..2 {
            let rate = &self.rates[self.best[place]];
            if rate.attempts <= 30 || rate.successes >= rate.attempts / 4 || rate.candidate.streams == 1 {
                continue;
            }
            let fewer = rate.candidate.streams - 1;
            let of_fewer = (0..self.rates.len()).filter(|&index| self.rates[index].candidate.streams == fewer);
            let better = of_fewer.max_by(|&a, &b| self.throughput(a).total_cmp(&self.throughput(b)));
            self.best[place] = better.unwrap_or(self.best[place]);
        }
    }

    fn update(&mut self, now: Time) {
        if self.frames > 0 {
            let mean = f64::from(self.mpdus) / f64::from(self.frames);
            self.mean_ampdu += (mean - self.mean_ampdu) * 0.25;
            (self.frames, self.mpdus) = (0, 0);
        }
        // From the fastest down: an untried rate is at least as good as a faster one of as many streams.
        let mut last = (0, 0.0);
        for rate in self.rates.iter_mut().rev() {
            rate.learn();
            if last.0 != rate.candidate.streams {
                last = (rate.candidate.streams, 0.0);
            }
            if rate.known {
                last.1 = f64::max(last.1, rate.probability);
            } else {
                rate.probability = f64::max(last.1, rate.probability);
            }
        }
        self.rank();
        self.refill();
        (self.updated, self.sampled) = (now, now);
    }

    /// Orders the rates by throughput and finds the most probable.
    fn rank(&mut self) {
        let mut best = [0; 3];
        for index in (0..self.rates.len()).rev().filter(|&index| self.throughput(index) > 0.0) {
            let key = |index: usize| (self.throughput(index), self.rates[index].probability);
            if let Some(place) = (0..3).find(|&place| key(index) > key(best[place])) {
                best[place..].rotate_right(1);
                best[place] = index;
            }
        }
        self.best = best;
        let top = &self.rates[best[0]];
        let mut safest = 0;
        for index in 0..self.rates.len() {
            let (rate, kept) = (&self.rates[index], &self.rates[safest]);
            // A faster rate that is less probable than the best is no refuge.
            if rate.duration_ns < top.duration_ns && rate.probability < top.probability {
                continue;
            }
            let better = if rate.probability > 0.75 {
                self.throughput(index) > self.throughput(safest)
            } else {
                rate.probability > kept.probability
            };
            if better {
                safest = index;
            }
        }
        // Fewer streams are the safer refuge, if they carry anything.
        let robust = (0..self.rates.len()).filter(|&index| {
            self.rates[index].candidate.streams < top.candidate.streams && self.rates[index].probability > 0.75
        });
        self.safest = robust.max_by(|&a, &b| self.throughput(a).total_cmp(&self.throughput(b))).unwrap_or(safest);
    }

    /// Mean packets per nanosecond at a rate.
    fn throughput(&self, index: usize) -> f64 {
        let rate = &self.rates[index];
        if rate.probability < 0.1 {
            return 0.0;
        }
        rate.probability.min(0.9) / (rate.overhead_ns / self.mean_ampdu.max(1.0) + rate.duration_ns)
    }

    /// The next rate to sample, if its kind has one.
    fn sample(&mut self, now: Time) -> Option<usize> {
        self.sampled = now;
        let kind = SEQUENCE[self.turn];
        self.turn = (self.turn + 1) % SEQUENCE.len();
        if self.samples[kind].is_empty() { None } else { Some(self.samples[kind].remove(0)) }
    }

    /// Finds rates that are worth a sample after the best have changed.
    fn refill(&mut self) {
        let of = |index: usize| self.rates[index].duration_ns;
        let (first, second, safest) = (of(self.best[0]), of(self.best[1]), of(self.safest));
        let (fast, slow) = (first.min(second).min(safest), first.max(second).max(safest));
        let rates = &self.rates;
        self.samples[INCREMENT].retain(|&index| rates[index].duration_ns < fast);
        self.samples[JUMP].retain(|&index| rates[index].duration_ns < fast);
        self.samples[SLOW].retain(|&index| rates[index].duration_ns > fast && rates[index].duration_ns < slow);
        let groups = self.rates.last().map_or(1, |rate| rate.candidate.streams);
        for _ in 0..groups {
            // The slowest rate of each number of streams that is faster than the best.
            self.group[INCREMENT] = self.group[INCREMENT] % groups + 1;
            let group = self.group[INCREMENT];
            let step = (0..self.rates.len()).find(|&i| self.is_in(i, group) && self.rates[i].duration_ns < first);
            self.keep(INCREMENT, step);
        }
        for _ in 0..SAMPLES * usize::from(groups) {
            // A random one of those that are faster than the slowest in use.
            self.group[JUMP] = self.group[JUMP] % groups + 1;
            let group = self.group[JUMP];
            let random = self.stream.next_u32() as usize;
            let able = (0..self.rates.len()).filter(|&i| self.is_in(i, group) && self.rates[i].duration_ns < slow);
            let count = able.clone().count();
            if count == 0 {
                continue;
            }
            let index = able.clone().nth(random % count);
            let kind = if index.is_some_and(|i| self.rates[i].duration_ns < fast) { JUMP } else { SLOW };
            let certain = index.is_some_and(|i| self.rates[i].probability > 0.95);
            if kind == JUMP || !certain {
                self.keep(kind, index);
            }
        }
    }

    fn is_in(&self, index: usize, group: u8) -> bool {
        self.rates[index].candidate.streams == group
    }

    fn keep(&mut self, kind: usize, index: Option<usize>) {
        let list = &mut self.samples[kind];
        if let Some(index) = index.filter(|index| list.len() < SAMPLES && !list.contains(index)) {
            list.push(index);
        }
    }
}

impl Rate {
    /// Takes an interval's counts into the filter.
    fn learn(&mut self) {
        if self.attempts == 0 {
            return;
        }
        let share = f64::from(self.successes) / f64::from(self.attempts);
        let a = (-std::f64::consts::PI * std::f64::consts::SQRT_2 / 16.0).exp();
        let (second, third) = (2.0 * a * (std::f64::consts::TAU * std::f64::consts::SQRT_2 / 16.0).cos(), -a * a);
        let (value, before) = match self.filtered {
            None => (share, share),
            Some((one, two)) => (((1.0 - second - third) * share + second * one + third * two).clamp(0.0, 1.0), one),
        };
        (self.filtered, self.probability) = (Some((value, before)), value);
        (self.attempts, self.successes, self.known) = (0, 0, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::Seed;

    fn minstrel(seed: u64) -> Minstrel {
        // Two streams of eight rates.
        let rates = [6.5, 13.0, 19.5, 26.0, 39.0, 52.0, 58.5, 65.0];
        let all = (0..16u16).map(|i| {
            let streams = 1 + u8::from(i >= 8);
            let rate = rates[usize::from(i % 8)] * f64::from(streams) * 1e6;
            Candidate { mode: i, streams, rate, overhead: Span::from_micros(120) }
        });
        Minstrel::new(all.collect(), Seed(seed).stream("minstrel"))
    }

    /// Sends a frame each millisecond for a while over a link where mode `i` arrives with probability `arrives(i)`.
    fn drive(minstrel: &mut Minstrel, from_ms: u64, to_ms: u64, arrives: impl Fn(u16) -> f64) -> [u64; 16] {
        let mut used = [0; 16];
        let mut luck = Seed(from_ms).stream("luck");
        let mut unanswered = 0;
        for ms in from_ms..to_ms {
            let now = Time::ZERO + Span::from_millis(ms);
            let choice = minstrel.choose(now, unanswered);
            let mpdus = if choice.probe { 1 } else { 16 };
            used[usize::from(choice.mode)] += 1;
            let lucky = |_: &u32| f64::from(luck.next_u32()) < arrives(choice.mode) * 4_294_967_296.0;
            let acknowledged = u32::try_from((0..mpdus).filter(lucky).count()).expect("at most 16");
            unanswered = if acknowledged == 0 { unanswered + 1 } else { 0 };
            minstrel.report(now, choice.mode, mpdus, acknowledged);
        }
        used
    }

    #[test]
    fn it_climbs_from_the_lowest_rate_to_the_one_that_carries_most() {
        for (works, expected) in [(5, 5), (7, 7), (12, 12), (15, 15)] {
            let mut minstrel = minstrel(3);
            assert_eq!(minstrel.current(), 0);
            // Rates up to `works` arrive, those above do not; of the second group none works before the first does.
            let arrives = |mode: u16| if mode <= works { 0.99 } else { 0.0 };
            drive(&mut minstrel, 0, 3_000, arrives);
            let used = drive(&mut minstrel, 3_000, 6_000, arrives);
            assert_eq!(minstrel.current(), expected);
            // But for samples: one frame in twenty at most.
            assert!(used[usize::from(expected)] > 2_800, "{used:?}");
        }
    }

    #[test]
    fn it_follows_the_link_down_and_up_again() {
        let mut minstrel = minstrel(4);
        let upto = |works: u16| move |mode: u16| if mode <= works { 1.0 } else { 0.0 };
        drive(&mut minstrel, 0, 3_000, upto(15));
        assert_eq!(minstrel.current(), 15);
        drive(&mut minstrel, 3_000, 3_500, upto(3));
        assert!(minstrel.current() <= 3, "{}", minstrel.current());
        drive(&mut minstrel, 3_500, 6_500, upto(11));
        assert!(minstrel.current() == 11 || minstrel.current() == 7, "{}", minstrel.current());
    }

    #[test]
    fn a_faster_rate_that_loses_half_is_left_for_one_that_does_not() {
        let mut minstrel = minstrel(5);
        let arrives = |mode: u16| match mode {
            0..=4 => 1.0,
            5 => 0.5,
            _ => 0.0,
        };
        drive(&mut minstrel, 0, 3_000, arrives);
        // 39 Mbit/s whole against 52 Mbit/s half.
        assert_eq!(minstrel.current(), 4);
    }

    #[test]
    fn retries_go_down_the_chain_to_the_safest() {
        let mut minstrel = minstrel(6);
        drive(&mut minstrel, 0, 2_000, |mode| if mode <= 6 { 1.0 - 0.04 * f64::from(mode) } else { 0.0 });
        let modes: Vec<u16> = (1..30).map(|tries| minstrel.rates[minstrel.stage(tries)].candidate.mode).collect();
        assert_eq!(modes[0], minstrel.current());
        assert_eq!(modes.last(), Some(&minstrel.rates[minstrel.safest].candidate.mode));
        assert!(modes.windows(2).filter(|pair| pair[0] != pair[1]).count() <= 3, "{modes:?}");
    }
}
