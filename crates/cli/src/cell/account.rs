//! All that a log has shown.

use super::choice::Choice;
use super::timeline::{Part, Timeline};
use lasthop_laws::pbe::{CellSnapshot, Class, Meter, Own, Terminal, Totals};
use lasthop_signals::Rnti;
use lasthop_units::{Span, Time, count};
use lasthop_wire::dci::{Counts, Item, Order, Slot};

/// Rows that could not be read, of which so many are told.
const TOLD: usize = 3;

/// The own terminal's number from some time on.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// From when on, by the log's clock.
    pub from: Time,
    /// The number.
    pub rnti: Rnti,
    /// How it was found; `None`: it was said.
    pub found: Option<Own>,
}

impl Known {
    /// One that was said.
    pub fn said(rnti: u16) -> Known {
        Known { from: Time::ZERO, rnti: Rnti(rnti), found: None }
    }
}

/// Rows that were looked at, and others.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rows {
    /// Could not be read.
    pub unread: u64,
    /// Names of columns, beside the first.
    pub headers: u64,
    /// Of the other direction, or of another carrier.
    pub other: u64,
}

/// An interval that is over, or has begun.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// Counts intervals.
    pub number: u64,
    /// What was in it.
    pub part: Part,
}

/// Folds in a log.
pub struct Account {
    /// What is looked at.
    pub choice: Choice,
    /// What was like what, when.
    pub timeline: Timeline,
    /// Rows.
    pub rows: Rows,
    /// The own terminal's numbers, in order.
    pub owns: Vec<Known>,
    /// Length of intervals, if they are wanted.
    pub interval: Option<Span>,
    /// The largest assignment was larger than all before it, so many times after the beginning: what was told until then was of a smaller
    /// carrier.
    pub grown: u64,
    order: Order,
    meter: Meter,
    current: Interval,
    done: Vec<Interval>,
    wrong: Vec<String>,
    times: Option<(Time, Time)>,
    last: u64,
}

impl Account {
    /// Nothing yet.
    pub fn new(choice: Choice, window: Span, interval: Option<Span>, owns: Vec<Known>) -> Account {
        let order = choice.order(window);
        let slot = order.slot();
        Account {
            choice,
            timeline: Timeline::new((1_000_000_000 / slot.as_nanos()).max(1)),
            rows: Rows::default(),
            owns,
            interval,
            grown: 0,
            meter: Meter::new(choice.cell(slot)),
            order,
            current: Interval::default(),
            done: Vec::new(),
            wrong: Vec::new(),
            times: None,
            last: 0,
        }
    }

    /// Folds in what a reader has found.
    pub fn take(&mut self, item: Item) {
        let record = match item {
            Item::Record(record) if self.choice.is_of(&record) => record,
            Item::Record(_) => {
                self.rows.other += 1;
                return;
            }
            Item::Header => {
                self.rows.headers += 1;
                return;
            }
            Item::Unread(unread) => {
                self.rows.unread += 1;
                if self.wrong.len() < TOLD {
                    self.wrong.push(unread.to_string());
                }
                return;
            }
        };
        if let Some(before) = self.choice.guessed.filter(|before| record.reach() > *before) {
            let most = record.reach().max(before);
            self.choice.guessed = Some(most);
            let size = self.choice.next_size(most);
            if size > self.choice.prb {
                self.choice.prb = size;
                self.meter.set_prb(size);
                self.grown += 1;
            }
        }
        let mut slots = Vec::new();
        self.order.push(&record, &mut |slot| slots.push(slot));
        slots.iter().for_each(|slot| self.slot(slot));
    }

    /// There is no more.
    pub fn finish(&mut self) {
        let mut slots = Vec::new();
        self.order.finish(&mut |slot| slots.push(slot));
        slots.iter().for_each(|slot| self.slot(slot));
        if self.interval.is_some() && self.current.part.slots > 0 {
            self.done.push(std::mem::take(&mut self.current));
        }
    }

    fn slot(&mut self, slot: &Slot) {
        let (from, _) = self.times.unwrap_or((slot.at, slot.at));
        self.times = Some((from, slot.at));
        let known = self.owns.iter().rev().find(|own| own.from <= slot.at).or(self.owns.first());
        self.meter.set_own(known.map(|own| own.rnti));
        self.last = slot.number;
        let (prb, per) = (self.choice.prb, self.interval.map(|interval| self.slots_of(interval)));
        let (timeline, current, done) = (&mut self.timeline, &mut self.current, &mut self.done);
        let mut add = |snapshot: &CellSnapshot| {
            timeline.add(snapshot, prb);
            let Some(per) = per else { return };
            let number = snapshot.number / per;
            if number != current.number {
                // Intervals of which nothing was decoded are left out.
                if current.part.slots > 0 {
                    done.push(std::mem::take(current));
                }
                current.number = number;
            }
            current.part.add(snapshot, prb);
        };
        self.meter.on_slot(slot.number, slot.fresh, &slot.dcis, &mut add);
        self.timeline.give(slot.number, &slot.dcis);
    }

    /// Intervals that are over and were not told yet.
    pub fn over(&mut self) -> Vec<Interval> {
        std::mem::take(&mut self.done)
    }

    /// Slots of so long a time.
    pub fn slots_of(&self, span: Span) -> u64 {
        (span.as_nanos() / self.order.slot().as_nanos()).max(1)
    }

    /// The time of a slot, in seconds from the first on.
    pub fn seconds(&self, slots: u64) -> f64 {
        slots as f64 * self.order.slot().as_secs_f64()
    }

    /// How long the log is, in seconds.
    pub fn length(&self) -> f64 {
        self.seconds(self.last + 1)
    }

    /// When the log's first row was, by its own clock.
    pub fn begins(&self) -> Time {
        self.times.map_or(Time::ZERO, |(from, _)| from)
    }

    /// How long a slot is.
    pub fn slot_length(&self) -> Span {
        self.order.slot()
    }

    /// Slots that were seen.
    pub fn slots(&self) -> u64 {
        self.meter.totals().slots
    }

    /// All that came.
    pub fn totals(&self) -> Totals {
        self.meter.totals()
    }

    /// What has become of rows.
    pub fn counts(&self) -> Counts {
        self.order.counts()
    }

    /// Bits of a PRB pair in new blocks of users.
    pub fn rate(&self) -> Option<f64> {
        self.meter.rate()
    }

    /// RNTIs, those with most PRB first.
    pub fn terminals(&self) -> Vec<(Rnti, Class, Terminal)> {
        let mut all: Vec<_> = self.meter.terminals().map(|(rnti, class, terminal)| (rnti, class, *terminal)).collect();
        all.sort_by_key(|(rnti, _, terminal)| (std::cmp::Reverse(terminal.prb), *rnti));
        all
    }

    /// Part of all PRB that RNTIs of a class were given.
    pub fn share(&self, class: Class) -> f64 {
        let given: u64 =
            self.meter.terminals().filter(|(_, of, _)| *of == class).map(|(_, _, terminal)| terminal.prb).sum();
        given as f64 / self.prb_slots()
    }

    /// Part of all PRB.
    pub fn part_of_all(&self, prb: u64) -> f64 {
        prb as f64 / self.prb_slots()
    }

    fn prb_slots(&self) -> f64 {
        (self.totals().slots as f64 * f64::from(self.choice.prb)).max(1.0)
    }

    /// What was wrong with the log, and what that means.
    pub fn wrong(&self) -> Vec<String> {
        let (Rows { unread, .. }, counts, totals) = (self.rows, self.counts(), self.totals());
        let mut all = Vec::new();
        let mut say = |number: u64, text: String| {
            if number > 0 {
                all.push(text);
            }
        };
        say(unread, format!("{} could not be read: {}", count(unread, "row"), self.wrong.join("; ")));
        say(
            counts.late,
            format!("{} came too late for their slot and do not count; see --window", count(counts.late, "row")),
        );
        say(
            counts.misplaced,
            format!(
                "{} have a time that does not fit the cell's count of slots, and do not count{}",
                count(counts.misplaced, "row"),
                if self.choice.slots < 80 { "; of NR, see --scs" } else { "" }
            ),
        );
        say(counts.strays, format!("{} alone far ahead of all others do not count", count(counts.strays, "row")));
        say(
            counts.crowded,
            format!("{} are more than a slot can have, and do not count", count(counts.crowded, "row")),
        );
        say(counts.restarts, format!("the decoder was started again {}", count(counts.restarts, "time")));
        say(
            totals.overfull,
            format!("in {} more PRB were given than there are: some DCIs are false", count(totals.overfull, "slot")),
        );
        say(
            self.grown,
            "the carrier turned out to be larger while the log was read, and shares until then are of a smaller one; see --prb"
                .into(),
        );
        all
    }
}
