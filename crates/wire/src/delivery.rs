//! Packet-delivery traces: when a link delivers, as mahimahi records and plays it.
//!
//! A file has one whole number a line: a time in milliseconds from the beginning at which the link delivers
//! [`OPPORTUNITY`] bytes. Times never fall; equal ones are several opportunities at once. The file repeats for ever: its last
//! time is the next lap's beginning, so that it cannot be 0.
//! Source: Netravali et al., Mahimahi, USENIX ATC 2015, and its program `mm-link`, which refuses what is refused here.

use lasthop_units::{Bytes, Rate, Span, Time};
use std::fmt::Write as _;
use std::sync::Arc;

/// What one opportunity carries: a packet of 1500 bytes and the four bytes that stand before it on a TUN interface.
pub const OPPORTUNITY: Bytes = Bytes::new(1504);

/// The highest rate that a trace is made of.
pub const FASTEST: Rate = Rate::from_mbit(100_000);

/// More opportunities than these no trace is made of rates with: 400 MB, a quarter of an hour at 1 Gbit/s.
const MOST: usize = 100_000_000;

/// A trace. Cloning it copies nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryTrace {
    /// Milliseconds, never falling, the last one not 0.
    stamps: Arc<[u32]>,
}

/// What is wrong with a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryError {
    /// There is no line.
    #[error("the trace is empty; it has one time in milliseconds a line")]
    Empty,
    /// A line is no time.
    #[error("line {line} is no whole number of milliseconds: `{text}`")]
    NotATime {
        /// Counted from 1.
        line: usize,
        /// The line, shortened.
        text: String,
    },
    /// A time is before the one on the line above.
    #[error("line {line}: {stamp} ms comes before the {before} ms of the line above; times never fall")]
    Falls {
        /// Counted from 1.
        line: usize,
        /// Its time.
        stamp: u32,
        /// The time above it.
        before: u32,
    },
    /// The last time is 0, so that the trace has no length.
    #[error("the last time is 0 ms; it is where the trace begins again, so it must be later")]
    NoLength,
}

/// Why rates make no trace. Steps are counted from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RatesError {
    /// A rate that no link has.
    #[error("{rate} is too fast; a trace is made of rates up to {FASTEST}, so see whether the unit is right")]
    TooFast {
        /// The step with this rate.
        step: usize,
        /// That rate.
        rate: Rate,
    },
    /// A step that is over too late.
    #[error(
        "its rate holds until {:.3} s after the beginning; times are whole milliseconds below 2^32, so a trace ends within {} s",
        secs(*.ends),
        secs(LAST)
    )]
    TooLate {
        /// Which one it is.
        step: usize,
        /// When it is over, in nanoseconds.
        ends: u128,
    },
    /// More opportunities than a trace is made with.
    #[error("up to here there are more than {most} opportunities; use fewer rows, or several traces")]
    TooMany {
        /// With which one there are.
        step: usize,
        /// How many there may be.
        most: usize,
    },
    /// The trace that they make cannot be.
    #[error(transparent)]
    Trace(#[from] DeliveryError),
}

impl RatesError {
    /// The step that is wrong, if it is a single one.
    pub fn step(&self) -> Option<usize> {
        match self {
            RatesError::TooFast { step, .. } | RatesError::TooLate { step, .. } | RatesError::TooMany { step, .. } => {
                Some(*step)
            }
            RatesError::Trace(_) => None,
        }
    }
}

impl DeliveryTrace {
    /// A trace with these times in milliseconds.
    ///
    /// # Errors
    /// [`DeliveryError`] as for a file with a line each.
    pub fn new(stamps: Vec<u32>) -> Result<DeliveryTrace, DeliveryError> {
        if let Some(i) = (1..stamps.len()).find(|i| stamps[*i] < stamps[i - 1]) {
            return Err(DeliveryError::Falls { line: i + 1, stamp: stamps[i], before: stamps[i - 1] });
        }
        match stamps.last() {
            None => Err(DeliveryError::Empty),
            Some(0) => Err(DeliveryError::NoLength),
            Some(_) => Ok(DeliveryTrace { stamps: stamps.into() }),
        }
    }

    /// A link that carries these rates one after the other, each for its time: an opportunity wherever [`OPPORTUNITY`] bytes have passed
    /// since the one before. Its period ends with the last opportunity, which may be before the last rate's time is over.
    ///
    /// # Errors
    /// [`RatesError`]; [`DeliveryError::Empty`] or [`DeliveryError::NoLength`] if nothing passes, or nothing after the first
    /// millisecond.
    pub fn from_rates(steps: impl IntoIterator<Item = (Span, Rate)>) -> Result<DeliveryTrace, RatesError> {
        DeliveryTrace::with_at_most(MOST, steps)
    }

    fn with_at_most(most: usize, steps: impl IntoIterator<Item = (Span, Rate)>) -> Result<DeliveryTrace, RatesError> {
        // Bits, times nanoseconds of a second.
        let whole = u128::from(OPPORTUNITY.get()) * 8 * 1_000_000_000;
        let (mut begins, mut missing, mut stamps) = (0u128, whole, Vec::new());
        for (step, (span, rate)) in steps.into_iter().enumerate() {
            if rate > FASTEST {
                return Err(RatesError::TooFast { step, rate });
            }
            let (rate, ends) = (u128::from(rate.as_bps()), begins + u128::from(span.as_nanos()));
            if ends > LAST {
                return Err(RatesError::TooLate { step, ends });
            }
            // At least as many as there will be: nothing is made before it is known that it fits.
            let coming = (rate * (ends - begins) + whole - missing) / whole;
            if coming > (most - stamps.len()) as u128 {
                return Err(RatesError::TooMany { step, most });
            }
            let mut at = begins;
            while rate > 0 && missing <= rate * (ends - at) {
                at += missing.div_ceil(rate);
                missing = whole;
                stamps.push((at / u128::from(MS)) as u32);
            }
            missing = missing.saturating_sub(rate * (ends - at)).max(1);
            begins = ends;
        }
        Ok(DeliveryTrace::new(stamps)?)
    }

    /// What it carries in each whole span of `every` of a lap. Empty if a lap is shorter.
    ///
    /// # Panics
    /// If `every` is zero.
    pub fn rates(&self, every: Span) -> Vec<Rate> {
        let bins = self.period().as_nanos() / every.as_nanos();
        let mut counts = vec![0u64; usize::try_from(bins).unwrap_or(0)];
        for at in self.lap() {
            if let Some(count) = counts.get_mut((at.as_nanos() / every.as_nanos()) as usize) {
                *count += 1;
            }
        }
        counts.into_iter().filter_map(|count| Rate::of(OPPORTUNITY * count, every)).collect()
    }

    /// The longest time without an opportunity, and when it begins; across the seam of two laps, too.
    pub fn longest_gap(&self) -> (Time, Span) {
        let starts = (0..self.len() as u64).map(|n| (self.opportunity(n), self.opportunity(n + 1)));
        let first = (Time::ZERO, self.opportunity(0));
        let gaps = std::iter::once(first).chain(starts).map(|(from, to)| (from, to.since(from)));
        gaps.max_by_key(|(from, gap)| (*gap, std::cmp::Reverse(*from))).expect("there is an opportunity")
    }

    /// Reads a file's contents. The last line may lack its line feed.
    ///
    /// # Errors
    /// [`DeliveryError`]: the first that is found.
    pub fn parse(file: &[u8]) -> Result<DeliveryTrace, DeliveryError> {
        let lines = file.strip_suffix(b"\n").unwrap_or(file).split(|byte| *byte == b'\n');
        if file.is_empty() {
            return Err(DeliveryError::Empty);
        }
        let stamps = lines.enumerate().map(|(i, line)| stamp(line).ok_or_else(|| not_a_time(i + 1, line)));
        DeliveryTrace::new(stamps.collect::<Result<_, _>>()?)
    }

    /// The file's contents.
    pub fn to_text(&self) -> String {
        let mut text = String::with_capacity(self.stamps.len() * 7);
        for stamp in &*self.stamps {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{stamp}");
        }
        text
    }

    /// Opportunities of one lap; at least one.
    #[expect(clippy::len_without_is_empty, reason = "a trace is never empty")]
    pub fn len(&self) -> usize {
        self.stamps.len()
    }

    /// How long a lap lasts; not zero.
    pub fn period(&self) -> Span {
        Span::from_millis(u64::from(self.stamps[self.stamps.len() - 1]))
    }

    /// The times of one lap.
    pub fn lap(&self) -> impl ExactSizeIterator<Item = Time> + '_ {
        self.stamps.iter().map(|ms| at(u64::from(*ms)))
    }

    /// When the `n`th opportunity is, counted from 0 over all laps.
    #[inline]
    pub fn opportunity(&self, n: u64) -> Time {
        let count = self.stamps.len() as u64;
        let (lap, place) = (n / count, n % count);
        let stamp = u64::from(self.stamps[place as usize]);
        let before = lap.saturating_mul(self.period().as_nanos());
        Time::from_nanos(before.saturating_add(stamp * MS))
    }

    /// How many opportunities there are up to and including `at`: the number of the first one after it.
    pub fn until(&self, at: Time) -> u64 {
        let period = self.period().as_nanos();
        let (lap, rest) = (at.as_nanos() / period, at.as_nanos() % period);
        let within = self.stamps.partition_point(|stamp| u64::from(*stamp) * MS <= rest);
        lap * self.stamps.len() as u64 + within as u64
    }

    /// What it carries on the mean.
    pub fn mean_rate(&self) -> Rate {
        Rate::of(OPPORTUNITY * self.stamps.len() as u64, self.period()).expect("a lap is not empty")
    }

    /// What it carries on the mean after `from`, up to and including `to`; `None` if that is no time at all.
    pub fn rate_between(&self, from: Time, to: Time) -> Option<Rate> {
        Rate::of(OPPORTUNITY * (self.until(to) - self.until(from)), to.since(from))
    }
}

const MS: u64 = 1_000_000;

/// The last time that a trace can have, in nanoseconds.
const LAST: u128 = u32::MAX as u128 * MS as u128;

fn secs(ns: u128) -> f64 {
    ns as f64 / 1e9
}

fn at(ms: u64) -> Time {
    Time::from_nanos(ms * MS)
}

/// A line's time.
fn stamp(line: &[u8]) -> Option<u32> {
    // A sign would be taken by the standard library's parser.
    let digits = line.iter().all(u8::is_ascii_digit).then_some(line)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn not_a_time(line: usize, text: &[u8]) -> DeliveryError {
    let shown: String = String::from_utf8_lossy(text).chars().take(40).collect();
    DeliveryError::NotATime { line, text: shown.escape_default().to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn times(text: &str, count: u64) -> Vec<u64> {
        let trace = DeliveryTrace::parse(text.as_bytes()).expect("right");
        (0..count).map(|n| trace.opportunity(n).as_nanos() / MS).collect()
    }

    #[test]
    fn laps_follow_each_other_as_mahimahi_plays_them() {
        assert_eq!(times("5\n10\n", 6), [5, 10, 15, 20, 25, 30]);
        assert_eq!(times("0\n10", 6), [0, 10, 10, 20, 20, 30], "one fewer at the first seam");
        assert_eq!(times("0\n0\n0\n1\n", 8), [0, 0, 0, 1, 1, 1, 1, 2]);
    }

    #[test]
    fn what_mahimahi_refuses_is_refused_with_its_line() {
        let wrong = |text: &str| DeliveryTrace::parse(text.as_bytes()).expect_err(text).to_string();
        assert!(wrong("").contains("empty"));
        assert!(wrong("\n").contains("line 1"));
        assert!(wrong("1\n\n2\n").contains("line 2"));
        assert!(wrong("1\n2.5\n").contains("line 2 is no whole number of milliseconds: `2.5`"));
        assert!(wrong("1\r\n2\r\n").contains(r"`1\r`"));
        assert!(wrong("# rates\n1\n").contains("line 1"));
        assert!(wrong("+1\n").contains("line 1") && wrong("-1\n").contains("line 1"));
        assert!(wrong("4294967296\n").contains("line 1"));
        assert!(wrong("3\n2\n").contains("line 2: 2 ms comes before the 3 ms"));
        assert!(wrong("0\n0\n").contains("last time is 0"));
    }

    #[test]
    fn the_mean_counts_1504_bytes_an_opportunity() {
        let trace = DeliveryTrace::new((1..=1000).collect()).expect("right");
        assert_eq!(trace.mean_rate(), Rate::from_bps(1504 * 8 * 1000));
        assert_eq!(trace.rate_between(at(500), at(1500)), Some(Rate::from_bps(1504 * 8 * 1000)));
    }

    #[test]
    fn rates_become_opportunities_and_back() {
        let bits = OPPORTUNITY.get() * 8;
        let (second, half) = (Span::from_secs(1), Span::from_millis(500));
        // 4 a second for half a second, nothing, then 2 a second: the bits that are missing wait.
        let steps = [(half, Rate::from_bps(4 * bits)), (second, Rate::ZERO), (second, Rate::from_bps(2 * bits))];
        let trace = DeliveryTrace::from_rates(steps).expect("something passes");
        assert_eq!(trace.to_text(), "250\n500\n2000\n2500\n");
        assert_eq!(trace.rates(second), [2, 0].map(|n| Rate::from_bps(n * bits)));
        assert_eq!(trace.longest_gap(), (at(500), Span::from_millis(1500)));
        let apart = DeliveryTrace::from_rates([(half, Rate::from_bps(bits)), (half, Rate::from_bps(bits))]);
        assert_eq!(apart.expect("one").to_text(), "1000\n", "half of it from each");
        assert_eq!(DeliveryTrace::from_rates([(second, Rate::ZERO)]), Err(DeliveryError::Empty.into()));
    }

    #[test]
    fn impossible_rates_times_and_counts_are_refused_by_step() {
        let wrong = |steps: &[(Span, Rate)]| DeliveryTrace::from_rates(steps.iter().copied()).expect_err("too much");
        let (second, slow) = (Span::from_secs(1), Rate::from_mbit(1));
        let error = wrong(&[(second, slow), (second, Rate::from_bps(FASTEST.as_bps() + 1))]);
        assert!(error.step() == Some(1) && error.to_string().contains("up to 100 Gbit/s"), "{error}");
        let month = Span::from_secs(30 * 86_400);
        let error = wrong(&[(month, Rate::ZERO), (month, Rate::ZERO), (second, slow)]);
        assert!(error.step() == Some(1) && error.to_string().contains("within 4294967.295 s"), "{error}");
        assert_eq!(wrong(&[(Span::MAX, slow), (Span::MAX, slow)]).step(), Some(0));
        let error = wrong(&[(second, slow), (Span::from_secs(100), FASTEST)]);
        assert!(error.step() == Some(1) && error.to_string().contains("more than 100000000 opportunities"), "{error}");
        // The last moment is a time, too.
        let until = Span::from_millis(u64::from(u32::MAX));
        let one = slow.time_for(OPPORTUNITY).expect("it passes");
        let trace =
            DeliveryTrace::from_rates([(until - one, Rate::ZERO), (one, slow)]).expect("the latest there can be");
        assert_eq!((trace.len(), trace.period()), (1, until));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(file in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = DeliveryTrace::parse(&file);
        }

        #[test]
        fn any_rate_makes_a_trace_that_carries_no_more_or_is_refused(
            steps in proptest::collection::vec((any::<u64>(), 0u32..64, any::<u64>(), 0u32..64), 0..6)
        ) {
            const FEW: usize = 1_000;
            let steps: Vec<(Span, Rate)> = steps
                .into_iter()
                .map(|(ns, fewer, bps, slower)| (Span::from_nanos(ns >> fewer), Rate::from_bps(bps >> slower)))
                .collect();
            let until = |step: usize| steps[..=step].iter().map(|(span, _)| u128::from(span.as_nanos())).sum::<u128>();
            let bits = |(span, rate): &(Span, Rate)| u128::from(rate.as_bps()) * u128::from(span.as_nanos());
            let whole = u128::from(OPPORTUNITY.get()) * 8 * 1_000_000_000;
            match DeliveryTrace::with_at_most(FEW, steps.iter().copied()) {
                Ok(trace) => {
                    let carried = trace.len() as u128 * whole;
                    prop_assert!(trace.len() <= FEW && carried <= steps.iter().map(bits).sum());
                    prop_assert!(u128::from(trace.period().as_nanos()) <= until(steps.len() - 1));
                }
                Err(RatesError::TooFast { step, rate }) => prop_assert!(steps[step].1 == rate && rate > FASTEST),
                Err(RatesError::TooLate { step, ends }) => prop_assert!(until(step) == ends && ends > LAST),
                Err(RatesError::TooMany { step, most }) => {
                    let all: u128 = steps[..=step].iter().map(bits).sum();
                    prop_assert!(most == FEW && all > FEW as u128 * whole);
                }
                Err(RatesError::Trace(error)) => {
                    prop_assert!(matches!(error, DeliveryError::Empty | DeliveryError::NoLength), "{}", error);
                }
            }
        }

        #[test]
        fn counting_and_looking_up_agree(gaps in proptest::collection::vec(0u32..4, 1..30), ns in 0u64..400_000_000) {
            let stamps = gaps.iter().scan(0, |sum, gap| { *sum += gap; Some(*sum) }).collect();
            let Ok(trace) = DeliveryTrace::new(stamps) else { return Ok(()) };
            prop_assert_eq!(DeliveryTrace::parse(trace.to_text().as_bytes()), Ok(trace.clone()));
            let n = trace.until(Time::from_nanos(ns));
            prop_assert!(trace.opportunity(n) > Time::from_nanos(ns));
            prop_assert!(n == 0 || trace.opportunity(n - 1) <= Time::from_nanos(ns));
        }
    }
}
