//! Which of a cell's terminals is the own one, and how the decoder's clock differs from ours.
//! Source:     own; the paper's authors align clocks by the least distance over candidate offsets, which this does by likeness.
//! Equations:  r(k, o) = Pearson's correlation of the bits that came in bins of 10 ms and those that k was given, o later on its clock
//! Symbols:    k, an RNTI; o, an offset -> `Own::ahead_ns`; r -> `Own::likeness`
//! Deviations: an offset holds what the radio and the host need from a DCI to the packet: some ms, and 8 ms more for each repeat.
//! Validity:   traffic that comes and goes. Steady or periodic traffic is like itself at many offsets, and is not found.
//!             Checked by: tests::*
//!
//! A terminal must have been given what has come. The own one is that with the assignments most like what came, if no
//! other is nearly as much, and no other offset. Once the offset is known, later windows look for the RNTI only near
//! it, so that a new number after a handover is found within a window.

use lasthop_signals::{Dci, Rnti};
use lasthop_units::{Bytes, Span, Time};
use std::collections::BTreeMap;

/// Looks at so much at a time.
const WINDOW_NS: i64 = 3_000_000_000;
/// And then so much later.
const STEP_NS: i64 = 1_000_000_000;
const BIN_NS: i64 = 10_000_000;
/// Offsets are tried in steps of a bin, and near the best one in these.
const FINE_NS: i64 = 1_000_000;
/// Offsets that differ less are the same.
const NEAR_NS: i64 = 50_000_000;
/// Bins with traffic that a window has at least.
const BINS: usize = 20;
/// A likeness that is less is none.
const LIKE: f64 = 0.6;
/// Another terminal, or another offset, is less alike by this.
const APART: f64 = 0.15;
/// DCIs are missed: so much of what came was given at least.
const CARRIED: f64 = 0.7;

/// What came, and what was given.
#[derive(Clone, Debug)]
pub struct Align {
    most_ns: i64,
    came: Vec<(i64, f64)>,
    given: BTreeMap<Rnti, Vec<(i64, f64)>>,
}

/// The own terminal from some moment on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Own {
    /// From when on, on our clock.
    pub from: Time,
    /// Its number.
    pub rnti: Rnti,
    /// By so many nanoseconds the decoder's clock is ahead of ours; negative: behind.
    pub ahead_ns: i64,
    /// How alike what came and what it was given are, up to 1.
    pub likeness: f64,
}

/// Why the own terminal was not found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unfound {
    /// Hardly anything came.
    #[error("too little came to know it by: at least 20 times in 3 s are needed")]
    Quiet,
    /// No terminal was given what came.
    #[error(
        "no terminal of the log was given what came at the times when it came: another cell or carrier, another time, or clocks that differ by more than is looked for"
    )]
    Nobody,
    /// Several were, or one at several offsets.
    #[error("several terminals or offsets fit equally well: the traffic is too steady; fetch something in bursts")]
    Ambiguous,
}

impl Align {
    /// Looks for offsets up to `most`.
    pub fn new(most: Span) -> Align {
        let most_ns = i64::try_from(most.as_nanos()).unwrap_or(i64::MAX / 4).min(i64::MAX / 4);
        Align { most_ns, came: Vec::new(), given: BTreeMap::new() }
    }

    /// A packet has come to this host. Packets come in order.
    pub fn on_arrival(&mut self, at: Time, len: Bytes) {
        let at = ns(at);
        if self.came.last().is_none_or(|(last, _)| *last <= at) {
            self.came.push((at, len.get() as f64 * 8.0));
        }
    }

    /// A slot of the log. Slots come in order.
    pub fn on_slot(&mut self, at: Time, dcis: &[Dci]) {
        for dci in dcis.iter().filter(|dci| dci.is_possible()) {
            let new = dci.blocks.iter().flatten().filter(|block| !block.is_repeat());
            let bits: f64 = new.map(|block| f64::from(block.bits)).sum();
            let given = self.given.entry(dci.rnti).or_default();
            let at = ns(at).max(given.last().map_or(0, |(last, _)| *last));
            if bits > 0.0 {
                given.push((at, bits));
            }
        }
    }

    /// The own terminal: each number that it had, from when on, in order.
    ///
    /// # Errors
    /// [`Unfound`] if it never was.
    pub fn find(&self) -> Result<Vec<Own>, Unfound> {
        let (Some((first, _)), Some((last, _))) = (self.came.first(), self.came.last()) else {
            return Err(Unfound::Quiet);
        };
        let windows = || (0..).map(|n| first + n * STEP_NS).take_while(|from| from <= last);
        let mut why = Unfound::Quiet;
        let mut offset = None;
        for from in windows() {
            match self.look(from, (-self.most_ns, self.most_ns)) {
                Ok(own) => {
                    offset = Some(own.ahead_ns);
                    break;
                }
                Err(other) => why = worse(why, other),
            }
        }
        let mut near = offset.ok_or(why)?;
        let mut found: Vec<Own> = Vec::new();
        for from in windows() {
            let Ok(own) = self.look(from, (near - NEAR_NS, near + NEAR_NS)) else { continue };
            near = own.ahead_ns;
            if found.last().is_none_or(|before| before.rnti != own.rnti) {
                found.push(Own { from: self.first(&own, from), ..own });
            }
        }
        if found.is_empty() { Err(Unfound::Ambiguous) } else { Ok(found) }
    }

    /// When it was given something first in the window that begins at `from`: another may have been the own one until then.
    fn first(&self, own: &Own, from: i64) -> Time {
        let given = self.given.get(&own.rnti).map_or(&[][..], Vec::as_slice);
        let begin = from.saturating_add(own.ahead_ns);
        let first = given.get(given.partition_point(|(at, _)| *at < begin));
        first.map_or(own.from, |(at, _)| time(at - own.ahead_ns))
    }

    /// The own terminal in the window that begins at `from`, at an offset between these two.
    fn look(&self, from: i64, (least, most): (i64, i64)) -> Result<Own, Unfound> {
        let came = bins(&self.came, from, 0);
        if came.iter().filter(|bits| **bits > 0.0).count() < BINS {
            return Err(Unfound::Quiet);
        }
        let needed = CARRIED * came.iter().sum::<f64>();
        let mut best: Option<Own> = None;
        // The most alike of all others: terminals, and offsets of the best one.
        let mut other = f64::NEG_INFINITY;
        for (rnti, given) in &self.given {
            let Some((likeness, ahead_ns, elsewhere)) = alike(&came, needed, given, from, (least, most)) else {
                continue;
            };
            other = other.max(elsewhere);
            match &mut best {
                Some(best) if best.likeness >= likeness => other = other.max(likeness),
                _ => {
                    other = other.max(best.map_or(f64::NEG_INFINITY, |best| best.likeness));
                    best = Some(Own { from: time(from), rnti: *rnti, ahead_ns, likeness });
                }
            }
        }
        let best = best.filter(|best| best.likeness >= LIKE).ok_or(Unfound::Nobody)?;
        if best.likeness - other < APART { Err(Unfound::Ambiguous) } else { Ok(best) }
    }
}

/// How alike a terminal's assignments are at best, at which offset, and how alike at best at offsets that are not near it.
fn alike(
    came: &[f64],
    needed: f64,
    given: &[(i64, f64)],
    from: i64,
    (least, most): (i64, i64),
) -> Option<(f64, i64, f64)> {
    let begin = given.partition_point(|(at, _)| *at < from.saturating_add(least));
    let end = given.partition_point(|(at, _)| *at < from.saturating_add(most + WINDOW_NS));
    if given[begin..end].iter().map(|(_, bits)| bits).sum::<f64>() < needed {
        return None;
    }
    let at = |offset: i64| {
        let given = bins(given, from, offset);
        if given.iter().sum::<f64>() < needed { None } else { correlation(came, &given) }
    };
    let best_of = |offsets: &mut dyn Iterator<Item = i64>| {
        let all = offsets.filter_map(|offset| at(offset).map(|likeness| (likeness, offset)));
        all.max_by(|one, other| one.0.total_cmp(&other.0))
    };
    let coarse = || (0..).map(move |n| least + n * BIN_NS / 2).take_while(move |offset| *offset <= most);
    let (_, around) = best_of(&mut coarse())?;
    let fine = (-10..=10).map(|n| around + n * FINE_NS).filter(|offset| (least..=most).contains(offset));
    let (likeness, offset) = best_of(&mut { fine })?;
    let elsewhere = best_of(&mut coarse().filter(|other| (other - offset).abs() > NEAR_NS));
    Some((likeness, offset, elsewhere.map_or(f64::NEG_INFINITY, |(likeness, _)| likeness)))
}

/// What lies in each bin of the window that begins `offset` after `from`.
fn bins(all: &[(i64, f64)], from: i64, offset: i64) -> Vec<f64> {
    let begin = from.saturating_add(offset);
    let mut bins = vec![0.0; (WINDOW_NS / BIN_NS) as usize];
    let first = all.partition_point(|(at, _)| *at < begin);
    for (at, bits) in &all[first..] {
        match bins.get_mut(((at - begin) / BIN_NS) as usize) {
            Some(bin) => *bin += bits,
            None => break,
        }
    }
    bins
}

/// Pearson's correlation; `None` if one of them does not vary.
fn correlation(one: &[f64], other: &[f64]) -> Option<f64> {
    let count = one.len() as f64;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / count;
    let (x, y) = (mean(one), mean(other));
    let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
    for (a, b) in one.iter().zip(other) {
        xx += (a - x) * (a - x);
        yy += (b - y) * (b - y);
        xy += (a - x) * (b - y);
    }
    (xx > 0.0 && yy > 0.0).then(|| xy / (xx * yy).sqrt())
}

/// What says more of two reasons.
fn worse(one: Unfound, other: Unfound) -> Unfound {
    match (one, other) {
        (Unfound::Ambiguous, _) | (_, Unfound::Ambiguous) => Unfound::Ambiguous,
        (Unfound::Nobody, _) | (_, Unfound::Nobody) => Unfound::Nobody,
        _ => Unfound::Quiet,
    }
}

fn ns(at: Time) -> i64 {
    i64::try_from(at.as_nanos()).unwrap_or(i64::MAX / 4).min(i64::MAX / 4)
}

fn time(ns: i64) -> Time {
    Time::from_nanos(u64::try_from(ns).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::super::test_cell::dci;
    use super::*;
    use lasthop_units::{Seed, Stream};
    use rand::RngExt as _;

    const BEGIN_MS: u64 = 1_700_000_000_000;
    const SECONDS: u64 = 12;

    fn at(ms: u64) -> Time {
        Time::from_nanos((BEGIN_MS + ms) * 1_000_000)
    }

    /// Bursts of some ms, and silences between them.
    fn bursts(stream: &mut Stream) -> Vec<bool> {
        let mut on = Vec::new();
        while on.len() < SECONDS as usize * 1000 {
            let (burst, silence) = (stream.random_range(5..80), stream.random_range(20..200));
            on.extend(std::iter::repeat_n(true, burst));
            on.extend(std::iter::repeat_n(false, silence));
        }
        on
    }

    /// A cell of five terminals. Its decoder misses a DCI in twenty and has a clock that is `ahead` ms ahead, and what
    /// came to the one that has number 100, and 104 from 6 s on, if it is there.
    fn cell(ahead: u64, own: bool) -> Align {
        let mut align = Align::new(Span::from_secs(2));
        let mut stream = Seed(7).stream("align");
        let others: Vec<Vec<bool>> = (0..4).map(|_| bursts(&mut stream)).collect();
        let mine = bursts(&mut stream);
        for ms in 0..SECONDS * 1000 {
            let mut dcis = Vec::new();
            for (n, on) in others.iter().enumerate() {
                if on[ms as usize] {
                    dcis.push(dci(Rnti(200 + n as u16), 20, 12_000));
                }
            }
            if mine[ms as usize] {
                if own {
                    dcis.push(dci(Rnti(if ms < 6000 { 100 } else { 104 }), 30, 18_000));
                }
                // 4 ms later, one time in ten 8 ms more.
                let late = if stream.random_bool(0.1) { 12 } else { 4 };
                align.came.push((ns(at(ms + late)), 17_000.0));
            }
            dcis.retain(|_| stream.random_bool(0.95));
            align.on_slot(at(ms + ahead), &dcis);
        }
        align.came.sort_by_key(|(at, _)| *at);
        align
    }

    #[test]
    fn the_own_terminal_is_found_and_followed_to_its_next_number() {
        for ahead in [0, 137, 1500] {
            let found = cell(ahead, true).find().expect("it is there");
            assert_eq!(found.iter().map(|own| own.rnti.0).collect::<Vec<_>>(), [100, 104], "{found:?}");
            for own in &found {
                let off = own.ahead_ns as f64 / 1e6 - (ahead as f64 - 4.0);
                assert!(off.abs() <= 3.0 && own.likeness > 0.8, "{off} ms off: {own:?}");
            }
            // Its first assignment is when the burst after the change begins.
            let change = found[1].from.as_secs_f64() - at(6000).as_secs_f64();
            assert!((-0.01..0.25).contains(&change), "{change}");
        }
    }

    #[test]
    fn one_that_is_not_there_is_not_found() {
        assert_eq!(cell(137, false).find(), Err(Unfound::Nobody));
        // Too far away for where it looks.
        assert_eq!(cell(2500, true).find(), Err(Unfound::Nobody));
    }

    #[test]
    fn steady_traffic_fits_everywhere_and_little_is_too_little() {
        let mut align = Align::new(Span::from_secs(2));
        for ms in 0..SECONDS * 1000 {
            if ms % 20 == 0 {
                align.on_arrival(at(ms + 4), Bytes::new(200));
                align.on_slot(at(ms), &[dci(Rnti(100), 4, 1700)]);
            }
        }
        assert_eq!(align.find(), Err(Unfound::Ambiguous));
        let mut align = Align::new(Span::from_secs(2));
        assert_eq!(align.find(), Err(Unfound::Quiet));
        align.on_arrival(at(0), Bytes::new(1500));
        assert_eq!(align.find(), Err(Unfound::Quiet));
    }
}
