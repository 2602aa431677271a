//! The users that share a cell, and what it has left, from a log of its control channel.
//! Source:     \[pbe\], section 4.2.1, reconstructed (see [`super`]).
//! Equations:  those of `capacity` and `filter`, by their code
//! Symbols:    N, C_f, C_p -> `Sight::sharing`, `fair`, `available`
//! Deviations: a log has no terminal of its own. N counts one that joins then, and C_f and C_p are what it would have; where
//!             nobody has a new block within 40 ms, at the mean rate of a PRB that users have had so far. Which
//!             terminals are false is no part of the paper; see [`Class`].
//! Validity:   slots in order. What was not decoded looks idle.     Checked by: tests::*, fuzz::tests::*, tests/integration/dci.rs
//!
//! A slot of LTE is a subframe.

#[cfg(test)]
mod tests;

use super::Params;
use super::capacity::Capacity;
use super::filter::SHARED;
use super::translate::{self, Repeats};
use lasthop_signals::{CellSubframe, Dci, Rnti};
use lasthop_units::{Rate, Span, Time};
use std::collections::BTreeMap;

/// The window that terminals are counted and averages are taken over, as the paper's.
const WINDOW: Span = Span::from_millis(40);
/// A terminal that is not seen again within this time is none, as NG-Scope's tracker of terminals has it.
const AGAIN: Span = Span::from_millis(500);
/// A silence that is longer is no idle cell.
const LONGEST_SILENCE: Span = Span::from_secs(3600);
/// Stands for a terminal that joins: no terminal has this number (3GPP TS 36.321 section 7.1).
const JOINING: Rnti = Rnti(0);
/// In LTE, the last number of those that answer random accesses (3GPP TS 36.321 section 7.1).
const RANDOM_ACCESS: Rnti = Rnti(0x3c);

/// What is known of a cell beforehand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cell {
    /// How long a slot is.
    pub slot: Span,
    /// PRB pairs of the carrier.
    pub prb: u16,
    /// LTE, not NR: its RNTIs up to 60 are those of random access.
    pub lte: bool,
    /// Slots without a row were idle; otherwise they were not decoded.
    pub leaves_out_idle: bool,
}

/// What an RNTI stands for, as far as a log shows it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// The own terminal, or one that has passed the paper's filter at least once.
    User,
    /// A terminal that has only had control messages.
    Control,
    /// No terminal's: system information, paging, random access.
    Shared,
    /// Never seen twice within half a second with an assignment that can be: a false DCI, or a terminal of which the log has
    /// nothing else.
    Ghost,
}

/// What a log has shown of an RNTI.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Terminal {
    /// DCIs that can be.
    pub dcis: u64,
    /// DCIs that give no PRB.
    pub empty: u64,
    /// DCIs with a block that is longer than their PRB can carry.
    pub impossible: u64,
    /// PRB pairs, added up over slots.
    pub prb: u64,
    /// Bits of blocks that were sent for the first time.
    pub bits: u64,
    /// Blocks, and those of them that were sent before.
    pub blocks: u64,
    /// Blocks that were sent before.
    pub repeats: u64,
    /// Slots at which it was among the users.
    pub passed: u64,
    /// The number of the slot of its first and of its last DCI that can be.
    pub first: u64,
    /// The last one's.
    pub last: u64,
    again: bool,
}

/// What is known of a cell at a slot, over the last 40 ms.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CellSnapshot {
    /// The slot.
    pub number: u64,
    /// PRB pairs that were given in it, and those of them to terminals that pass the filter.
    pub given: u32,
    /// Those of them that users were given.
    pub to_users: u32,
    /// Terminals that pass the filter, and the own one.
    pub users: u32,
    /// All RNTIs of terminals.
    pub active: u32,
    /// N: terminals that share the cell if this one, or one that joins, wants its part.
    pub sharing: u32,
    /// PRB pairs a slot that nobody had, on average.
    pub idle: f64,
    /// C_f: what is one N-th of the cell, as the physical layer counts it.
    pub fair: Rate,
    /// C_p: what there is for it now.
    pub available: Rate,
    /// C_f as TCP has it.
    pub fair_tcp: Rate,
    /// The rate of a PRB is that of other terminals, or a guess.
    pub coarse: bool,
    /// No user has had a new block so far: it is a guess.
    pub guessed: bool,
}

/// All that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Slots, those without a row that were idle among them.
    pub slots: u64,
    /// Slots that were not decoded.
    pub unseen: u64,
    /// DCIs.
    pub dcis: u64,
    /// DCIs that give no PRB.
    pub empty: u64,
    /// DCIs with a block that is longer than their PRB can carry.
    pub impossible: u64,
    /// Slots in which more was given than there is.
    pub overfull: u64,
    /// PRB pairs that were given, at most what there is in each slot.
    pub given: u64,
}

/// Folds in a log, slot by slot.
#[derive(Clone, Debug)]
pub struct Meter {
    cell: Cell,
    own: Option<Rnti>,
    params: Params,
    capacity: Capacity,
    repeats: Repeats,
    terminals: BTreeMap<Rnti, Terminal>,
    totals: Totals,
    last: Option<u64>,
    /// PRB pairs and bits of new blocks of users.
    learnt: (u64, u64),
    snapshot: Option<CellSnapshot>,
}

impl Meter {
    /// A meter that has seen nothing.
    ///
    /// # Panics
    /// If a slot has no length.
    pub fn new(cell: Cell) -> Meter {
        assert!(!cell.slot.is_zero(), "a slot has a length");
        Meter {
            cell,
            own: None,
            params: Params::default(),
            capacity: Capacity::default(),
            repeats: Repeats::default(),
            terminals: BTreeMap::new(),
            totals: Totals::default(),
            last: None,
            learnt: (0, 0),
            snapshot: None,
        }
    }

    /// From now on the own terminal has this number; `None`: it has none.
    pub fn set_own(&mut self, own: Option<Rnti>) {
        if self.own != own {
            self.own = own;
            self.repeats = Repeats::default();
        }
    }

    /// From now on the carrier is known to have so many PRB pairs.
    pub fn set_prb(&mut self, prb: u16) {
        self.cell.prb = prb;
    }

    /// Folds in a slot, and tells what is known at it, and at those before it that have no row because they were idle. `fresh`: nothing
    /// connects it with the one before. A number that is not above the last one is passed over.
    pub fn on_slot(&mut self, number: u64, fresh: bool, dcis: &[Dci], each: &mut dyn FnMut(&CellSnapshot)) {
        let before = self.last.filter(|_| !fresh);
        if before.is_some_and(|last| number <= last) {
            return;
        }
        if fresh {
            self.capacity = Capacity::default();
            self.capacity.assume(self.rate());
        }
        if let Some(last) = before {
            self.pass(last + 1..number, each);
        }
        self.last = Some(number);
        self.count(number, dcis);
        self.fold(number, dcis);
        self.snapshot.iter().for_each(each);
    }

    /// Slots without a row.
    fn pass(&mut self, between: std::ops::Range<u64>, each: &mut dyn FnMut(&CellSnapshot)) {
        let count = between.end - between.start;
        let longest = LONGEST_SILENCE.as_nanos() / self.cell.slot.as_nanos();
        if !self.cell.leaves_out_idle || count > longest {
            self.totals.unseen += count;
            return;
        }
        self.totals.slots += count;
        let length = self.length();
        for number in between.clone() {
            // Behind a window nothing changes any more.
            if number < between.start + length || number + 1 == between.end {
                self.fold(number, &[]);
            } else if let Some(snapshot) = &mut self.snapshot {
                snapshot.number = number;
            }
            self.snapshot.iter().for_each(&mut *each);
        }
    }

    fn length(&self) -> u64 {
        (WINDOW.as_nanos() / self.cell.slot.as_nanos()).max(1)
    }

    fn count(&mut self, number: u64, dcis: &[Dci]) {
        let again = AGAIN.as_nanos() / self.cell.slot.as_nanos();
        self.totals.slots += 1;
        let mut given = 0;
        for dci in dcis {
            let terminal = self.terminals.entry(dci.rnti).or_default();
            self.totals.dcis += 1;
            if dci.prb == 0 {
                terminal.empty += 1;
                self.totals.empty += 1;
                continue;
            }
            if !dci.is_possible() {
                terminal.impossible += 1;
                self.totals.impossible += 1;
                continue;
            }
            given += u64::from(dci.prb);
            let seen_before = terminal.dcis > 0 && terminal.last < number;
            terminal.again |= seen_before && number - terminal.last <= again;
            if terminal.dcis == 0 {
                terminal.first = number;
            }
            terminal.last = number;
            terminal.dcis += 1;
            terminal.prb += u64::from(dci.prb);
            for block in dci.blocks.iter().flatten() {
                terminal.blocks += 1;
                terminal.repeats += u64::from(block.is_repeat());
                terminal.bits += if block.is_repeat() { 0 } else { u64::from(block.bits) };
            }
        }
        let all = u64::from(self.cell.prb);
        self.totals.overfull += u64::from(given > all);
        self.totals.given += given.min(all);
    }

    fn fold(&mut self, number: u64, dcis: &[Dci]) {
        let own = self.own.unwrap_or(JOINING);
        let now = Time::from_nanos(number.saturating_mul(self.cell.slot.as_nanos()));
        let subframe = CellSubframe { carrier: 0, number, prb: self.cell.prb, own: Some(own), dcis: dcis.to_vec() };
        self.capacity.on_subframe(now, &subframe, self.length());
        self.repeats.on_subframe(&subframe);
        let (Some(seen), Some(users)) = (self.capacity.estimate(now, true), self.capacity.users(0)) else { return };
        let passing: Vec<Rnti> = users.passing(true).collect();
        for rnti in &passing {
            if let Some(terminal) = self.terminals.get_mut(rnti) {
                terminal.passed += 1;
            }
        }
        let possible = || dcis.iter().filter(|dci| dci.is_possible());
        let prb = |dci: &Dci| u32::from(dci.prb);
        let is_user = |dci: &&Dci| Some(dci.rnti) == self.own || passing.binary_search(&dci.rnti).is_ok();
        let others = passing.iter().filter(|rnti| Some(**rnti) != self.own).count() as u32;
        let per_second = 1.0 / self.cell.slot.as_secs_f64();
        let rate = |bits: f64| Rate::from_bps(1).scale(bits * per_second);
        self.snapshot = Some(CellSnapshot {
            number,
            given: possible().map(prb).sum(),
            to_users: possible().filter(is_user).map(prb).sum(),
            users: others + u32::from(self.own.is_some()),
            active: users.passing(false).count() as u32,
            sharing: others + 1,
            idle: seen.idle,
            fair: rate(seen.fair),
            available: rate(seen.available),
            fair_tcp: rate(translate::transport(
                (self.params.translation, self.params.overhead),
                &self.repeats,
                seen.block,
                seen.fair,
            )),
            coarse: seen.coarse,
            guessed: seen.guessed,
        });
        self.learn(dcis, &passing);
    }

    /// New blocks of users tell what a PRB carries for a terminal that joins while nobody has any.
    fn learn(&mut self, dcis: &[Dci], users: &[Rnti]) {
        for dci in dcis.iter().filter(|dci| dci.is_possible() && users.binary_search(&dci.rnti).is_ok()) {
            let bits: u64 = dci.blocks.iter().flatten().map(|block| u64::from(block.bits)).sum();
            if bits > 0 && !dci.blocks.iter().flatten().any(|block| block.is_repeat() || block.bits == 0) {
                self.learnt = (self.learnt.0 + u64::from(dci.prb), self.learnt.1 + bits);
            }
        }
        self.capacity.assume(self.rate());
    }

    /// Bits of a PRB pair in new blocks of users, all together.
    pub fn rate(&self) -> Option<f64> {
        let (prb, bits) = self.learnt;
        (prb > 0).then(|| bits as f64 / prb as f64)
    }

    /// All that came so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Every RNTI that was seen.
    pub fn terminals(&self) -> impl Iterator<Item = (Rnti, Class, &Terminal)> {
        self.terminals.iter().map(|(rnti, terminal)| (*rnti, self.class(*rnti, terminal), terminal))
    }

    fn class(&self, rnti: Rnti, terminal: &Terminal) -> Class {
        if rnti >= SHARED || self.cell.lte && rnti <= RANDOM_ACCESS {
            Class::Shared
        } else if terminal.passed > 0 || Some(rnti) == self.own {
            Class::User
        } else if terminal.again {
            Class::Control
        } else {
            Class::Ghost
        }
    }
}
