//! Logs of decoders of a cell's control channel: which resource blocks each user was given in each slot.
//! Source:     what NG-Scope (Xie, Jamieson 2022; LTE) and NR-Scope (Wan et al. 2024; NR) write, and recordings of both. No standard describes them.
//! Deviations: PRB pairs that are allocated in all are not read: they are the sum of what was decoded in the slot.
//! Checked by: tests beside each reader, tests/integration/dci.rs, fuzz targets `dci_text`, `dci_json`, `dci_csv`
//!
//! A [`Reader`] makes [`Record`]s of octets that come in pieces of any length. [`detect`] finds out which one a log needs.
//! [`Order`] brings records into the order of slots, drops what is there twice, and counts what cannot be placed.

mod detect;
mod lines;
mod ngscope;
mod ngscope_json;
mod nrscope;
mod order;
mod sizes;
mod write;

pub use detect::{Format, HEAD, NotALog, detect};
pub use ngscope::NgScope;
pub use ngscope_json::NgScopeJson;
pub use nrscope::NrScope;
pub use order::{Counts, LONGEST_WINDOW, Order, Slot};
pub use write::write_ngscope;

use lasthop_signals::{Block, Dci, Rnti};
use lasthop_units::Time;

/// Radio frames that a cell counts before it begins again (3GPP TS 36.331 and 38.331: the system frame number has 10 bits).
pub const FRAMES: u16 = 1024;
/// Slots that a radio frame of 10 ms has at most: those of NR with 120 kHz between subcarriers (3GPP TS 38.211 table 4.3.2-1).
pub const MOST_SLOTS: u8 = 80;

/// Which way an assignment is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Direction {
    /// From the cell to terminals.
    Down,
    /// From a terminal to the cell.
    Up,
}

/// One row of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// When the decoder says that it was: on its own clock, since 1970. It comes late by what the decoder needed.
    pub at: Time,
    /// System frame number, 0 to 1023.
    pub frame: u16,
    /// The slot of the frame, from 0. A slot of LTE is a subframe here.
    pub slot: u8,
    /// Which way it is for.
    pub direction: Direction,
    /// The decoder's number of the carrier, from 0.
    pub carrier: u8,
    /// What was assigned; `None`: the slot was decoded, and nothing was found in it.
    pub dci: Option<Dci>,
    /// One behind the last PRB that was assigned; 0 where the log does not tell where an assignment lies.
    pub edge: u16,
}

/// What a reader has found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Item {
    /// A row.
    Record(Record),
    /// The names of the columns once more: a decoder that was started again goes on in the same file.
    Header,
    /// A row that says nothing that can be understood.
    Unread(Unread),
}

/// A row that was passed over.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{unit} {place}: {why}")]
pub struct Unread {
    /// What the log consists of.
    pub unit: &'static str,
    /// Which of them it is, counted from 1.
    pub place: u64,
    /// What is wrong.
    pub why: Why,
}

/// What is wrong with a row.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Why {
    /// Columns are missing, or there are too many.
    #[error("{got} columns; {want}")]
    Columns {
        /// How many there are.
        got: usize,
        /// How many there should be.
        want: &'static str,
    },
    /// A column that is not what it should be.
    #[error("`{text}` is no {column}: {want}")]
    Value {
        /// What the column is called.
        column: &'static str,
        /// What it holds, shortened.
        text: String,
        /// What would be right.
        want: &'static str,
    },
    /// A column that is not there.
    #[error("it has no `{0}`")]
    Missing(&'static str),
    /// It is longer than any row is.
    #[error("it is longer than {LONGEST_ROW} octets")]
    TooLong,
    /// It ends before it is whole.
    #[error("the log ends within it")]
    CutShort,
    /// It is no JSON object.
    #[error("it is no JSON object: {0}")]
    NoObject(String),
}

/// No row of a log is longer, in octets.
pub const LONGEST_ROW: usize = 4096;

/// Makes records of a log's octets.
pub trait Reader {
    /// Takes the next octets, and tells of every row that is whole with them.
    fn push(&mut self, bytes: &[u8], each: &mut dyn FnMut(Item));

    /// The log is over: tells of a last row that no line feed has ended.
    fn finish(&mut self, each: &mut dyn FnMut(Item));
}

/// A number of a column, within bounds.
fn number<T>(
    column: &'static str,
    text: &str,
    within: std::ops::RangeInclusive<i64>,
    want: &'static str,
) -> Result<T, Why>
where
    T: TryFrom<i64>,
{
    let number = text.parse::<i64>().ok().filter(|number| within.contains(number));
    number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| value(column, text, want))
}

fn value(column: &'static str, text: &str, want: &'static str) -> Why {
    let text: String = text.chars().take(24).collect();
    Why::Value { column, text: text.escape_default().to_string(), want }
}

/// The columns that all formats of a block have.
fn block(mcs: &str, redundancy: &str, bits: &str, new_data: &str) -> Result<Block, Why> {
    let redundancy: i8 = number("redundancy version", redundancy, -1..=4, "a number from -1 to 4")?;
    Ok(Block {
        mcs: number("MCS", mcs, 0..=31, "a number from 0 to 31")?,
        // -1 stands for what the DCI does not say, 4 for a repeat that was asked for without a DCI.
        redundancy: redundancy.clamp(0, 3) as u8,
        bits: number("transport block size", bits, 0..=i64::from(u32::MAX), "a number of bits")?,
        new_data: number::<u8>("new-data indicator", new_data, 0..=1, "0 or 1")? == 1,
    })
}

fn rnti(text: &str) -> Result<Rnti, Why> {
    number("RNTI", text, 0..=0xffff, "a number from 0 to 65535").map(Rnti)
}

fn prb(text: &str) -> Result<u16, Why> {
    number("number of PRB", text, 0..=i64::from(MOST_PRB), "a number from 0 to 275")
}

fn process(text: &str) -> Result<u8, Why> {
    number("HARQ process", text, 0..=31, "a number from 0 to 31")
}

/// PRB that a carrier has at most (3GPP TS 38.211 section 4.4.2).
const MOST_PRB: u16 = 275;

/// The frame and its subframe of LTE's count of subframes.
fn of_tti(text: &str) -> Result<(u16, u8), Why> {
    let most = i64::from(FRAMES) * 10 - 1;
    let tti: u16 = number("TTI", text, 0..=most, "a number from 0 to 10239")?;
    Ok((tti / 10, (tti % 10) as u8))
}

/// A time in microseconds since 1970.
fn of_micros(text: &str) -> Result<Time, Why> {
    let us: u64 = number("time", text, 0..=i64::MAX, "a number of microseconds since 1970")?;
    let ns = us.checked_mul(1000).ok_or_else(|| value("time", text, "a number of microseconds since 1970"))?;
    Ok(Time::from_nanos(ns))
}
