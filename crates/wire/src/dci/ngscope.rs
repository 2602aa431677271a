//! NG-Scope's logs: a line a DCI, columns between tabs.
//!
//! Downlink: TTI, RNTI, PRB of all, PRB, MCS, redundancy version and size of the first and of the second block, HARQ process,
//! time in microseconds, and, in newer versions, the new-data indicators of both blocks. Uplink: the same without the
//! indicators. A subframe without a DCI has a line of zeros with its TTI and its time. Lines may end with a tab.

use super::lines::Lines;
use super::{Direction, Item, Reader, Record, Unread, Why, block, of_micros, of_tti, prb, process, rnti};
use lasthop_signals::Dci;

/// Reads them.
#[derive(Clone, Debug, Default)]
pub struct NgScope {
    lines: Lines,
    /// What the log is of, if it is known; lines with 12 columns are the uplink's otherwise, those with 14 the downlink's.
    direction: Option<Direction>,
}

impl NgScope {
    /// A reader; `direction`: what the log is of, as its name says.
    pub fn new(direction: Option<Direction>) -> NgScope {
        NgScope { direction, ..NgScope::default() }
    }
}

impl Reader for NgScope {
    fn push(&mut self, bytes: &[u8], each: &mut dyn FnMut(Item)) {
        let NgScope { lines, direction } = self;
        lines.push(bytes, &mut |number, line| tell(*direction, number, line, each));
    }

    fn finish(&mut self, each: &mut dyn FnMut(Item)) {
        let NgScope { lines, direction } = self;
        lines.finish(&mut |number, line| tell(*direction, number, line, each));
    }
}

fn tell(direction: Option<Direction>, number: u64, line: Result<&str, Why>, each: &mut dyn FnMut(Item)) {
    match line.and_then(|line| if line.trim().is_empty() { Ok(None) } else { record(direction, line).map(Some) }) {
        Ok(Some(record)) => each(Item::Record(record)),
        Ok(None) => {}
        Err(why) => each(Item::Unread(Unread { unit: "line", place: number, why })),
    }
}

/// Columns of the longest line.
const MOST: usize = 14;

/// The columns of a line and how many there are, without the empty one behind the last tab.
pub(super) fn columns(line: &str) -> ([&str; MOST], usize) {
    let (mut columns, mut count) = ([""; MOST], 0);
    for column in line.strip_suffix('\t').unwrap_or(line).split('\t') {
        if let Some(place) = columns.get_mut(count) {
            *place = column.trim();
        }
        count += 1;
    }
    (columns, count)
}

fn record(direction: Option<Direction>, line: &str) -> Result<Record, Why> {
    let (columns, count) = columns(line);
    let [tti, number, _, given, mcs, rv, bits, mcs2, rv2, bits2, harq, at, ndi, ndi2] = columns;
    let direction = match (count, direction) {
        (14, None | Some(Direction::Down)) => Direction::Down,
        (12, direction) => direction.unwrap_or(Direction::Up),
        (14, Some(Direction::Up)) => {
            return Err(Why::Columns { got: count, want: "a line of the uplink has 12, between tabs" });
        }
        _ => return Err(Why::Columns { got: count, want: "a line has 12 or 14, between tabs" }),
    };
    let (ndi, ndi2) = if count == MOST { (ndi, ndi2) } else { ("0", "0") };
    let ((frame, slot), at, rnti) = (of_tti(tti)?, of_micros(at)?, rnti(number)?);
    let first = block(mcs, rv, bits, ndi)?;
    // Zeros stand for a block that is not there.
    let second = [mcs2, rv2, bits2, ndi2].iter().any(|column| *column != "0");
    let second = if second { Some(block(mcs2, rv2, bits2, ndi2)?) } else { None };
    let dci = Dci { rnti, prb: prb(given)?, process: process(harq)?, blocks: [Some(first), second] };
    let dci = (rnti.0 != 0).then_some(dci);
    Ok(Record { at, frame, slot, direction, carrier: 0, dci, edge: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_signals::{Block, Rnti};
    use lasthop_units::Time;

    fn read(direction: Option<Direction>, text: &str) -> Vec<Item> {
        let (mut reader, mut items) = (NgScope::new(direction), Vec::new());
        reader.push(text.as_bytes(), &mut |item| items.push(item));
        reader.finish(&mut |item| items.push(item));
        items
    }

    fn one(direction: Option<Direction>, text: &str) -> Record {
        match read(direction, text).as_slice() {
            [Item::Record(record)] => *record,
            other => panic!("{other:?}"),
        }
    }

    fn why(text: &str) -> String {
        match read(None, text).as_slice() {
            [Item::Unread(unread)] => unread.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_line_of_the_downlink_has_two_blocks() {
        let record = one(None, "6274\t41448\t36\t27\t10\t3\t8248\t30\t1\t0\t1\t1688458602051387\t0\t1\t\n");
        assert_eq!((record.frame, record.slot, record.direction), (627, 4, Direction::Down));
        assert_eq!(record.at, Time::from_nanos(1_688_458_602_051_387_000));
        let first = Block { mcs: 10, redundancy: 3, new_data: false, bits: 8248 };
        let second = Block { mcs: 30, redundancy: 1, new_data: true, bits: 0 };
        let blocks = [Some(first), Some(second)];
        assert_eq!(record.dci, Some(Dci { rnti: Rnti(41448), prb: 27, process: 1, blocks }));
    }

    #[test]
    fn an_idle_subframe_is_a_row_of_zeros() {
        let idle = one(None, "6970\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t1688458592490410\t0\t0\t\n");
        assert_eq!((idle.dci, idle.direction), (None, Direction::Down));
        let idle = one(None, "6970\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t1688458592490410");
        assert_eq!((idle.dci, idle.direction), (None, Direction::Up), "and no line feed");
    }

    #[test]
    fn twelve_columns_are_uplink_unless_known_as_downlink() {
        let line = "474\t20555\t8\t8\t13\t0\t1800\t0\t0\t0\t0\t1688458596234193\t\n";
        assert_eq!(one(None, line).direction, Direction::Up);
        assert_eq!(one(Some(Direction::Down), line).direction, Direction::Down);
        assert_eq!(one(None, line).dci.map(|dci| dci.blocks[1]), Some(None));
    }

    #[test]
    fn what_a_grant_does_not_say_is_no_redundancy_version() {
        let record = one(None, "6225\t7230\t48\t48\t30\t-1\t0\t0\t0\t0\t0\t1688458602022022\t0\t0\t\n");
        let block = record.dci.and_then(|dci| dci.blocks[0]).expect("a block");
        assert!(block.redundancy == 0 && block.is_repeat(), "{block:?}");
    }

    #[test]
    fn a_wrong_line_says_what_is_wrong() {
        let line = |columns: [&str; 14]| columns.join("\t") + "\t\n";
        let right = ["1", "70", "4", "4", "5", "0", "300", "0", "0", "0", "3", "1688458592490410", "1", "0"];
        assert!(matches!(read(None, &line(right)).as_slice(), [Item::Record(_)]));
        for (place, wrong, says) in [
            (0, "10240", "line 1: `10240` is no TTI: a number from 0 to 10239"),
            (1, "65536", "`65536` is no RNTI"),
            (1, "", "`` is no RNTI"),
            (3, "276", "`276` is no number of PRB: a number from 0 to 275"),
            (4, "32", "`32` is no MCS"),
            (5, "5", "`5` is no redundancy version"),
            (6, "-1", "`-1` is no transport block size"),
            (10, "x\u{7}", r"`x\u{7}` is no HARQ process"),
            (11, "now", "`now` is no time: a number of microseconds since 1970"),
            (12, "2", "`2` is no new-data indicator: 0 or 1"),
        ] {
            let mut columns = right;
            columns[place] = wrong;
            let said = why(&line(columns));
            assert!(said.contains(says), "{said}");
        }
        assert_eq!(why("1\t2\t3\n"), "line 1: 3 columns; a line has 12 or 14, between tabs");
    }
}
