//! Which part of a log is looked at, and what is known of its carrier.

use super::Args;
use crate::flag;
use anyhow::bail;
use lasthop_laws::pbe::Cell;
use lasthop_units::{Span, Time};
use lasthop_wire::dci::{Direction, Format, Item, Order, Record};
use std::collections::BTreeMap;

/// What a log has.
#[derive(Default)]
pub struct Survey {
    seen: BTreeMap<(Direction, u8), Seen>,
    /// The last slot of a frame.
    last_slot: u8,
    rows: usize,
    times: Option<(Time, Time)>,
}

#[derive(Clone, Copy, Default)]
struct Seen {
    rows: u64,
    prb: u16,
}

impl Survey {
    /// Looks at a record.
    pub fn add(&mut self, record: &Record) {
        let seen = self.seen.entry((record.direction, record.carrier)).or_default();
        seen.rows += 1;
        seen.prb = seen.prb.max(record.reach());
        self.last_slot = self.last_slot.max(record.slot);
        self.rows += 1;
        let (from, to) = self.times.unwrap_or((record.at, record.at));
        self.times = Some((from.min(record.at), to.max(record.at)));
    }

    /// Looks at what a reader has found.
    pub fn take(&mut self, item: &Item) {
        match item {
            Item::Record(record) => self.add(record),
            _ => self.rows += 1,
        }
    }

    /// Rows that it has looked at.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How far their times reach.
    pub fn span(&self) -> Span {
        self.times.map_or(Span::ZERO, |(from, to)| to.since(from))
    }
}

/// What is looked at.
#[derive(Clone, Copy)]
pub struct Choice {
    /// Which way.
    pub direction: Direction,
    /// The carrier.
    pub carrier: u8,
    /// Slots of a frame.
    pub slots: u8,
    /// PRB pairs of the carrier.
    pub prb: u16,
    /// Nobody has said how many there are: it is the next size that carriers have above this, the largest that was assigned.
    pub guessed: Option<u16>,
    format: Format,
}

impl Choice {
    /// What these arguments look at in this log.
    pub fn of(args: &Args, format: Format, survey: &Survey) -> anyhow::Result<Choice> {
        let direction = args.direction();
        let rows = |direction: Direction| survey.seen.iter().filter(move |((way, _), _)| *way == direction);
        if rows(direction).next().is_none() && !survey.seen.is_empty() {
            let (has, flag) = if args.up { ("downlink", "leave out --up") } else { ("uplink", "add --up") };
            bail!("{} has rows of the {has} alone: {flag}", args.place());
        }
        let largest = rows(direction).max_by_key(|((_, carrier), seen)| (seen.rows, std::cmp::Reverse(*carrier)));
        let carrier = args.carrier.or(largest.map(|((_, carrier), _)| *carrier)).unwrap_or(0);
        let seen = survey.seen.get(&(direction, carrier)).copied();
        if let (None, Some(carrier), false) = (seen, args.carrier, survey.seen.is_empty()) {
            let there: Vec<String> = rows(direction).map(|((_, carrier), _)| carrier.to_string()).collect();
            return Err(flag::Wrong::line(format!(
                "--carrier {carrier}: {} has rows of carrier {} alone",
                args.place(),
                there.join(", ")
            )));
        }
        let slots = match (args.scs, format.is_lte()) {
            (Some(slots), true) if slots != 10 => {
                return Err(flag::Wrong::line(
                    "--scs: subcarriers of LTE are 15 kHz apart; the flag is for logs of NR".into(),
                ));
            }
            (Some(slots), _) => slots,
            (None, true) => 10,
            (None, false) => [10, 20, 40].into_iter().find(|slots| survey.last_slot < *slots).unwrap_or(80),
        };
        let most = seen.map_or(0, |seen| seen.prb);
        if let Some(prb) = args.prb.filter(|prb| *prb < most) {
            return Err(flag::Wrong::line(format!(
                "--prb {prb}: {most} PRB are assigned in {}, so the carrier has at least as many",
                args.place()
            )));
        }
        let guessed = args.prb.is_none().then_some(most);
        let choice = Choice { direction, carrier, slots, prb: args.prb.unwrap_or(0), guessed, format };
        Ok(Choice { prb: args.prb.unwrap_or_else(|| choice.next_size(most)), ..choice })
    }

    /// The next size that a carrier can have.
    pub fn next_size(&self, most: u16) -> u16 {
        self.format.next_size(self.slots, most)
    }

    /// True for rows that are looked at.
    pub fn is_of(&self, record: &Record) -> bool {
        (record.direction, record.carrier) == (self.direction, self.carrier)
    }

    /// Brings them into order.
    pub fn order(&self, window: Span) -> Order {
        Order::new(self.slots, window)
    }

    /// What the meter is to know.
    pub fn cell(&self, slot: Span) -> Cell {
        Cell { slot, prb: self.prb, lte: self.format.is_lte(), leaves_out_idle: self.format.leaves_out_idle() }
    }
}

/// What people call it.
pub const fn name(direction: Direction) -> &'static str {
    match direction {
        Direction::Down => "downlink",
        Direction::Up => "uplink",
    }
}
