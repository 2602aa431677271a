//! What a terminal can have of its cell, in bits a subframe, as the physical layer counts them.
//! Source:     \[pbe\], equations 1 to 3.
//! Equations:  C_f = sum of R_w P_cell / N;   C_p = sum of R_w (P_a + P_idle / N);   P_idle = P_cell - sum of P_a of
//!             all terminals
//! Symbols:    R_w, bits of a PRB pair -> `rate`; P_a -> `own`; P_idle -> `idle`; sums are over carriers, each with an
//!             N of its own; all are averages over the last round trip's subframes
//! Deviations: a DCI with a block that was sent before says nothing of R_w. Without blocks of its own in the window a
//!             terminal has the R_w of all others but system
//!             information and paging, without those its own last one, and failing that the middle of the
//!             CQI table; then the estimate is marked coarse. A DCI with more bits than its PRB can carry is none, and
//!             no terminal has more PRB than there are.
//! Validity:   a PRB is a pair, one for each slot of the subframe. What was not decoded looks idle.     Checked by:
//!             tests::*

use super::filter::{SHARED, Users};
use lasthop_signals::{CellSubframe, Dci, Rnti};
use lasthop_units::{Span, Time};
use std::collections::{BTreeMap, VecDeque};

/// Subframes that terminals are counted over, at least.
const USERS: u64 = 40;
/// CQI 7 of 15 is 1.4766 bits a resource element (3GPP TS 36.213, table 7.2.3-1), of which a pair has some 120 beside control and
/// reference signals.
const MIDDLE: f64 = 1.4766 * 120.0;
/// A carrier of which nothing was heard for so long is none of the terminal's any more.
pub(super) const SILENT: Span = Span::from_millis(200);

/// All carriers of a terminal.
#[derive(Clone, Debug, Default)]
pub(super) struct Capacity {
    carriers: BTreeMap<u8, Carrier>,
    /// R_w of a terminal of which none is known, before the middle of the CQI table.
    assumed: Option<f64>,
}

/// What a terminal can have, all its carriers together.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Estimate {
    /// C_p, bits a subframe.
    pub(super) available: f64,
    /// C_f, bits a subframe.
    pub(super) fair: f64,
    /// What it has of full queues beside it: its part of the PRBs that no block is sent in again, and those of its own that one is.
    pub(super) least: f64,
    /// R_w of some carrier is not from own blocks.
    pub(super) coarse: bool,
    /// It is the middle of the CQI table.
    pub(super) guessed: bool,
    /// PRB pairs a subframe: what the terminal has, what its fair shares are, what nobody has, and all there are.
    pub(super) own: f64,
    /// Its fair shares.
    pub(super) share: f64,
    /// What nobody has.
    pub(super) idle: f64,
    /// All there are.
    pub(super) all: f64,
    /// Mean length of its new blocks in bits; zero if there were none.
    pub(super) block: f64,
}

impl Capacity {
    /// Folds in a subframe of one carrier; averages are over `length` of them. True if a carrier has come beside others.
    pub(super) fn on_subframe(&mut self, now: Time, subframe: &CellSubframe, length: u64) -> bool {
        let others = self.carriers.iter().any(|(carrier, seen)| *carrier != subframe.carrier && seen.is_active(now));
        let carrier = self.carriers.entry(subframe.carrier).or_default();
        let was_active = carrier.is_active(now);
        carrier.on_subframe(now, subframe, length.max(1));
        others && !was_active && carrier.is_active(now)
    }

    /// What the terminal can have; `None` if no carrier is its own. `filter`: a user that has only had control messages
    /// does not share.
    pub(super) fn estimate(&self, now: Time, filter: bool) -> Option<Estimate> {
        let mut active = self.carriers.values().filter(|carrier| carrier.is_active(now)).peekable();
        active.peek()?;
        let mut sum = Estimate::default();
        let (mut bits, mut blocks) = (0, 0);
        for carrier in active {
            carrier.add_to(&mut sum, filter, self.assumed);
            bits += carrier.sums.own.bits;
            blocks += carrier.sums.own.blocks;
        }
        sum.block = if blocks > 0 { bits as f64 / f64::from(blocks) } else { 0.0 };
        Some(sum)
    }

    /// PRB pairs of the last `count` subframes of all carriers that are its own: what it had, its fair shares, what nobody had, and all.
    pub(super) fn lately(&self, now: Time, count: u64, filter: bool) -> [f64; 4] {
        let mut sum = [0.0; 4];
        for carrier in self.carriers.values().filter(|carrier| carrier.is_active(now)) {
            let users = f64::from(carrier.users.count(carrier.own, filter));
            let mut add = |sums: &Sums| {
                let [given, idle, all] = [sums.given, sums.idle, sums.all].map(f64::from);
                [given, all / users, idle, all].iter().zip(&mut sum).for_each(|(part, sum)| *sum += part);
            };
            if carrier.window.front().is_some_and(|(oldest, _)| oldest + count > carrier.number) {
                add(&carrier.sums);
            } else {
                let newest = carrier.window.iter().rev().take_while(|(number, _)| number + count > carrier.number);
                newest.for_each(|(_, sums)| add(sums));
            }
        }
        sum
    }

    /// From now on this is R_w of a terminal of which none is known.
    pub(super) fn assume(&mut self, rate: Option<f64>) {
        self.assumed = rate;
    }

    /// The terminals of a carrier that have been active lately; `None` before its first subframe.
    pub(super) fn users(&self, carrier: u8) -> Option<&Users> {
        self.carriers.get(&carrier).map(|carrier| &carrier.users)
    }
}

/// One carrier.
#[derive(Clone, Debug, Default)]
struct Carrier {
    users: Users,
    window: VecDeque<(u64, Sums)>,
    /// Over the window.
    sums: Sums,
    own: Option<Rnti>,
    /// The last subframe, and when it was.
    number: u64,
    heard: Time,
    /// R_w of own blocks, when there were any.
    known: Option<f64>,
}

/// What subframes have given.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    /// PRB pairs of the terminal, whatever for.
    given: u32,
    idle: u32,
    all: u32,
    /// PRB pairs in which a block was sent again: everybody's, and the terminal's.
    again: u32,
    own_again: u32,
    own: New,
    others: New,
}

/// New blocks: PRB pairs, bits, and how many they are.
#[derive(Clone, Copy, Debug, Default)]
struct New {
    prb: u32,
    bits: u64,
    blocks: u32,
}

impl Carrier {
    fn is_active(&self, now: Time) -> bool {
        self.own.is_some() && now.since(self.heard) < SILENT && !self.window.is_empty()
    }

    fn on_subframe(&mut self, now: Time, subframe: &CellSubframe, length: u64) {
        let other_cell = matches!((self.own, subframe.own), (Some(before), Some(own)) if before != own);
        if other_cell || subframe.number < self.number {
            *self = Carrier::default();
        }
        let (own, number) = (subframe.own, subframe.number);
        if number == self.number && !self.window.is_empty() {
            return;
        }
        (self.own, self.number, self.heard) = (own, number, now);
        self.users.on_subframe(number, &subframe.dcis, length.max(USERS));
        let outside = |seen: u64| number.checked_sub(length).is_some_and(|last| seen <= last);
        while let Some((_, gone)) = self.window.front().copied().filter(|(seen, _)| outside(*seen)) {
            self.window.pop_front();
            self.sums.change(gone, |sum, part| *sum -= part, |sum, part| *sum -= part);
        }
        let sums = Sums::of(subframe);
        self.sums.change(sums, |sum, part| *sum += part, |sum, part| *sum += part);
        self.window.push_back((number, sums));
        self.known = self.sums.own.rate().or(self.known);
    }

    fn add_to(&self, sum: &mut Estimate, filter: bool, assumed: Option<f64>) {
        let subframes = self.window.len().max(1) as f64;
        let (given, idle) = (f64::from(self.sums.given) / subframes, f64::from(self.sums.idle) / subframes);
        let (all, users) = (f64::from(self.sums.all) / subframes, f64::from(self.users.count(self.own, filter)));
        let rate = self.sums.own.rate();
        sum.coarse |= rate.is_none();
        let rate = rate.or_else(|| self.sums.others.rate()).or(self.known).or(assumed);
        sum.guessed |= rate.is_none();
        let rate = rate.unwrap_or(MIDDLE);
        sum.available += rate * (given + idle / users);
        sum.fair += rate * all / users;
        let (again, own_again) = (f64::from(self.sums.again) / subframes, f64::from(self.sums.own_again) / subframes);
        sum.least += rate * ((all - again).max(0.0) / users + own_again);
        sum.own += given;
        sum.share += all / users;
        sum.idle += idle;
        sum.all += all;
    }
}

impl Sums {
    fn of(subframe: &CellSubframe) -> Sums {
        let mut sums = Sums::default();
        let mut taken = 0;
        for dci in subframe.dcis.iter().filter(|dci| dci.is_possible()) {
            taken += u32::from(dci.prb);
            let own = Some(dci.rnti) == subframe.own;
            let again = if dci.blocks.iter().flatten().any(|block| block.is_repeat()) { u32::from(dci.prb) } else { 0 };
            sums.again += again;
            if own {
                sums.given += u32::from(dci.prb);
                sums.own_again += again;
            }
            match own {
                true => sums.own.add(dci),
                // System information and paging are sent so that the whole cell can decode them.
                false if dci.rnti < SHARED => sums.others.add(dci),
                false => {}
            }
        }
        let all = u32::from(subframe.prb);
        (sums.all, sums.idle) = (all, all.saturating_sub(taken));
        for sum in [&mut sums.given, &mut sums.again, &mut sums.own_again] {
            *sum = (*sum).min(all);
        }
        sums
    }

    fn change(&mut self, by: Sums, count: fn(&mut u32, u32), bits: fn(&mut u64, u64)) {
        count(&mut self.given, by.given);
        count(&mut self.idle, by.idle);
        count(&mut self.all, by.all);
        count(&mut self.again, by.again);
        count(&mut self.own_again, by.own_again);
        for (side, by) in [(&mut self.own, by.own), (&mut self.others, by.others)] {
            count(&mut side.prb, by.prb);
            count(&mut side.blocks, by.blocks);
            bits(&mut side.bits, by.bits);
        }
    }
}

impl New {
    fn add(&mut self, dci: &Dci) {
        let blocks = dci.blocks.iter().flatten();
        if blocks.clone().any(|block| block.is_repeat() || block.bits == 0) {
            return;
        }
        let (count, bits) = blocks.fold((0, 0), |(count, bits), block| (count + 1, bits + u64::from(block.bits)));
        if count > 0 {
            self.prb += u32::from(dci.prb);
            self.bits += bits;
            self.blocks += count;
        }
    }

    /// Bits of a PRB pair.
    fn rate(&self) -> Option<f64> {
        (self.prb > 0).then(|| self.bits as f64 / f64::from(self.prb))
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_cell::{FULL, OWN, dci, repeat, subframe};
    use super::*;
    use lasthop_units::brief::at;

    /// What the terminal can have after these subframes, one a millisecond.
    fn after(length: u64, subframes: impl IntoIterator<Item = CellSubframe>) -> Estimate {
        let (mut capacity, mut now) = (Capacity::default(), Time::ZERO);
        for subframe in subframes {
            now = at(subframe.number);
            capacity.on_subframe(now, &subframe, length);
        }
        capacity.estimate(now, true).expect("a carrier of its own")
    }

    fn near(got: f64, want: f64, part: f64) {
        assert!((got - want).abs() <= part * want, "{got} for {want}");
    }

    #[test]
    fn a_lone_terminal_has_the_whole_carrier() {
        let full = after(40, (0..40).map(|n| subframe(n, vec![dci(OWN, 100, FULL)])));
        assert_eq!((full.fair, full.available, full.coarse), (75_376.0, 75_376.0, false));
        // The same if it asks for a fifth.
        let part = after(40, (0..40).map(|n| subframe(n, vec![dci(OWN, 20, FULL / 5)])));
        near(part.available, 75_376.0, 1e-4);
        assert_eq!((part.own, part.idle), (20.0, 80.0));
    }

    #[test]
    fn idle_prb_are_shared_and_those_of_others_are_not() {
        let other = Rnti(200);
        let seen = after(40, (0..40).map(|n| subframe(n, vec![dci(OWN, 30, 18_000), dci(other, 50, 20_000)])));
        // R_w = 600; 30 + 20 / 2 and 100 / 2.
        assert_eq!((seen.available, seen.fair), (24_000.0, 30_000.0));
        // Whole subframes in turn are the same on average.
        let turns = |n| subframe(n, vec![if n % 2 == 0 { dci(OWN, 100, 60_000) } else { dci(other, 100, 40_000) }]);
        let seen = after(40, (0..40).map(turns));
        assert_eq!((seen.available, seen.fair, seen.own, seen.idle), (30_000.0, 30_000.0, 50.0, 0.0));
    }

    #[test]
    fn repeats_leave_the_rate_of_a_prb() {
        let one_in_ten = |n| subframe(n, vec![if n % 10 == 7 { repeat(OWN, 100) } else { dci(OWN, 100, FULL) }]);
        let seen = after(40, (0..40).map(one_in_ten));
        near(seen.available, 75_376.0, 0.01);
        near(seen.block, 75_376.0, 1e-9);
        // One of two blocks is sent again: the other is not the whole of what the PRB carry.
        let mut two = dci(OWN, 100, FULL);
        two.blocks[1] = two.blocks[0];
        let mut half = two;
        half.blocks[1] = repeat(OWN, 100).blocks[0];
        let seen = after(40, (0..40).map(|n| subframe(n, vec![if n % 5 == 0 { half } else { two }])));
        near(seen.available, 2.0 * 75_376.0, 1e-9);
    }

    #[test]
    fn a_false_dci_in_a_hundred_costs_little() {
        let mut capacity = Capacity::default();
        for n in 0..400 {
            let mut dcis = vec![dci(OWN, 20, FULL / 5)];
            if n % 100 == 17 {
                dcis.push(dci(Rnti(40_000 + n as u16), 44, 9000));
            }
            capacity.on_subframe(at(n), &subframe(n, dcis), 40);
            let seen = capacity.estimate(at(n), true).expect("a carrier");
            assert!(n < 40 || (seen.available / 75_376.0 - 1.0).abs() < 0.05, "{} at {n}", seen.available);
            assert_eq!(seen.share, 100.0, "nobody else counts");
        }
    }

    #[test]
    fn without_own_blocks_those_of_others_are_a_guess() {
        let other = Rnti(200);
        let seen = after(40, (0..40).map(|n| subframe(n, vec![dci(other, 60, 30_000)])));
        assert_eq!((seen.coarse, seen.fair, seen.available), (true, 25_000.0, 10_000.0));
        let empty = after(40, (0..40).map(|n| subframe(n, vec![dci(Rnti(0xffff), 4, 60)])));
        assert_eq!((empty.coarse, empty.guessed, empty.fair), (true, true, 100.0 * MIDDLE));
        assert!(!seen.guessed);
    }

    #[test]
    fn each_carrier_has_an_n_of_its_own() {
        let mut capacity = Capacity::default();
        for n in 0..40 {
            let first = subframe(n, vec![dci(OWN, 25, 15_000), dci(Rnti(1), 25, 9000), dci(Rnti(2), 50, 9000)]);
            let second = CellSubframe {
                carrier: 1,
                prb: 50,
                own: Some(Rnti(7)),
                ..subframe(n, vec![dci(Rnti(7), 10, 5000), dci(Rnti(1), 30, 9000)])
            };
            assert!(!capacity.on_subframe(at(n), &first, 40));
            assert_eq!(capacity.on_subframe(at(n), &second, 40), n == 0, "it comes once");
        }
        let sum = capacity.estimate(at(39), true).expect("two carriers");
        // 600 * 100 / 3 + 500 * 50 / 2;   600 * 25 + 500 * (10 + 10 / 2)
        assert_eq!((sum.fair, sum.available), (20_000.0 + 12_500.0, 15_000.0 + 7500.0));
        // The second is given up: nothing but the first counts.
        for n in 40..80 {
            let second = CellSubframe { carrier: 1, prb: 50, own: None, ..subframe(n, vec![]) };
            assert!(!capacity.on_subframe(at(n), &subframe(n, vec![dci(OWN, 25, 15_000)]), 40));
            assert!(!capacity.on_subframe(at(n), &second, 40));
        }
        assert_eq!(capacity.estimate(at(79), true).expect("one").all, 100.0);
    }

    #[test]
    fn another_cell_begins_anew() {
        let before = (0..40).map(|n| subframe(n, vec![dci(OWN, 10, 1000), dci(Rnti(3), 90, 9000)]));
        let after_it =
            (7..9).map(|n| CellSubframe { own: Some(Rnti(9)), ..subframe(n, vec![dci(Rnti(9), 50, 50_000)]) });
        assert_eq!(after(40, before.chain(after_it)).fair, 100_000.0);
    }
}
