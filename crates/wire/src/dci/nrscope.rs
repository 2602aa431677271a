//! NR-Scope's logs: a comma-separated line a DCI, below a line with the columns' names.
//!
//! Versions differ in their columns, so columns are found by their names. A decoder that is started again writes the names once more.
//! Slots without a DCI have no line.

use super::lines::Lines;
use super::{
    Direction, FRAMES, Item, MOST_PRB, MOST_SLOTS, Reader, Record, Unread, Why, block, number, prb, process, rnti,
    value,
};
use lasthop_signals::Dci;
use lasthop_units::Time;

/// Reads them.
#[derive(Clone, Debug, Default)]
pub struct NrScope {
    lines: Lines,
    /// Where the columns stand; as in the newest version while no line has named them.
    places: Option<Places>,
}

impl Reader for NrScope {
    fn push(&mut self, bytes: &[u8], each: &mut dyn FnMut(Item)) {
        let NrScope { lines, places } = self;
        lines.push(bytes, &mut |number, line| tell(places, number, line, each));
    }

    fn finish(&mut self, each: &mut dyn FnMut(Item)) {
        let NrScope { lines, places } = self;
        lines.finish(&mut |number, line| tell(places, number, line, each));
    }
}

/// The names of the columns that are read, in the order of [`Places`].
const NAMES: [&str; WANTED] = [
    "timestamp",
    "system_frame_index",
    "slot_index",
    "rnti",
    "dci_format",
    "frequency_start",
    "frequency_length",
    "mcs_index",
    "transport_block_size",
    "redundancy_version",
    "new_data_indicator",
    "harq_id",
];
const WANTED: usize = 12;
/// Where they stand in all versions that are known.
const USUAL: [usize; WANTED] = [0, 1, 2, 3, 5, 10, 11, 18, 19, 21, 22, 27];
/// Columns of those versions: 33, then with the antenna ports, then with the number of the carrier, which is the last.
const VERSIONS: std::ops::RangeInclusive<usize> = 33..=35;
const CARRIER: &str = "carrier_index";

/// Where the columns stand.
#[derive(Clone, Debug)]
struct Places {
    wanted: [usize; WANTED],
    carrier: Option<usize>,
    /// All columns.
    count: usize,
}

impl Places {
    /// Those of a line of names.
    fn of(line: &str) -> Result<Places, Why> {
        let names: Vec<&str> = line.split(',').map(str::trim).collect();
        let find = |name: &str| names.iter().position(|column| *column == name);
        let mut wanted = [0; WANTED];
        for (place, name) in wanted.iter_mut().zip(NAMES) {
            *place = find(name).ok_or(Why::Missing(name))?;
        }
        Ok(Places { wanted, carrier: find(CARRIER), count: names.len() })
    }

    /// Those of a line of so many columns that no names stand above.
    fn usual(count: usize) -> Result<Places, Why> {
        if !VERSIONS.contains(&count) {
            return Err(Why::Columns { got: count, want: "a line has 33 to 35, between commas" });
        }
        Ok(Places { wanted: USUAL, carrier: (count == *VERSIONS.end()).then(|| count - 1), count })
    }
}

fn tell(places: &mut Option<Places>, number: u64, line: Result<&str, Why>, each: &mut dyn FnMut(Item)) {
    let item = line.and_then(|line| {
        if line.trim().is_empty() {
            return Ok(None);
        }
        if line.starts_with(NAMES[0]) {
            let named = Places::of(line)?;
            return Ok(places.replace(named).map(|_| Item::Header));
        }
        let count = line.split(',').count();
        let places = match places {
            Some(places) if places.count == count => places,
            Some(_) => {
                return Err(Why::Columns { got: count, want: "the names above have another number" });
            }
            None => places.insert(Places::usual(count)?),
        };
        record(places, line).map(|record| Some(Item::Record(record)))
    });
    match item {
        Ok(Some(item)) => each(item),
        Ok(None) => {}
        Err(why) => each(Item::Unread(Unread { unit: "line", place: number, why })),
    }
}

fn record(places: &Places, line: &str) -> Result<Record, Why> {
    let (mut columns, mut carrier) = ([""; WANTED], "0");
    for (at, column) in line.split(',').enumerate() {
        if let Some(place) = places.wanted.iter().position(|wanted| *wanted == at) {
            columns[place] = column.trim();
        }
        if places.carrier == Some(at) {
            carrier = column.trim();
        }
    }
    let [at, frame, slot, rnti_, format, start, length, mcs, bits, rv, ndi, harq] = columns;
    // Formats 1_0 and 1_1 are assignments of the downlink, 0_0 and 0_1 grants for the uplink (3GPP TS 38.212 section 7.3.1).
    let direction = match format.as_bytes() {
        [b'1', b'_', ..] => Direction::Down,
        [b'0', b'_', ..] => Direction::Up,
        _ => return Err(value("DCI format", format, "0_0, 0_1, 1_0 or 1_1")),
    };
    let start: u16 = number("first PRB", start, 0..=i64::from(MOST_PRB), "a number from 0 to 275")?;
    let prb = prb(length)?;
    let blocks = [Some(block(mcs, rv, bits, ndi)?), None];
    Ok(Record {
        at: of_seconds(at)?,
        frame: number("system frame number", frame, 0..=i64::from(FRAMES - 1), "a number from 0 to 1023")?,
        slot: number("slot", slot, 0..=i64::from(MOST_SLOTS - 1), "a number from 0 to 79")?,
        direction,
        carrier: number("carrier", carrier, 0..=255, "a number from 0 to 255")?,
        dci: Some(Dci { rnti: rnti(rnti_)?, prb, process: process(harq)?, blocks }),
        edge: if prb > 0 { start + prb } else { 0 },
    })
}

/// A time in seconds since 1970 with up to nine places behind the point, which are more than a floating-point number holds.
fn of_seconds(text: &str) -> Result<Time, Why> {
    const WANT: &str = "a number of seconds since 1970";
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let parsed = || {
        if whole.is_empty() || !digits(whole) || !digits(part) || part.len() > 9 {
            return None;
        }
        let ns = format!("{part:0<9}").parse::<u64>().ok()?;
        whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(ns)
    };
    parsed().map(Time::from_nanos).ok_or_else(|| value("time", text, WANT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_signals::{Block, Rnti};

    const HEADER: &str = "timestamp,system_frame_index,slot_index,rnti,rnti_type,dci_format,k,mapping,time_start,time_length,\
        frequency_start,frequency_length,nof_dmrs_cdm_groups,beta_dmrs,nof_layers,n_scid,tb_scaling_field,modulation,mcs_index,\
        transport_block_size,code_rate,redundancy_version,new_data_indicator,nof_re,nof_bits,mcs_table,xoverhead,harq_id,\
        downlink_assignment_index,tpc,pucch_resource,harq_feedback,bwp";
    const DOWN: &str = "1700000000.106409,406,5,20001,C-RNTI,1_1,0,A,2,12,40,12,2,1.412538,2,0,0,QPSK,7,672,0.117188,2,1,2880,\
        5760,256qam,0,11,0,0,2,0,1";
    const UP: &str = "1700000000.498326,753,6,20002,C-RNTI,0_1,2,A,0,14,60,3,1,1.000000,1,0,0,256QAM,26,3368,0.895020,0,1,468,\
        3744,256qam,0,0,3,1,0,0,1";

    fn read(text: &str) -> Vec<Item> {
        let (mut reader, mut items) = (NrScope::default(), Vec::new());
        reader.push(text.as_bytes(), &mut |item| items.push(item));
        reader.finish(&mut |item| items.push(item));
        items
    }

    fn records(text: &str) -> Vec<Record> {
        let record = |item| match item {
            Item::Record(record) => record,
            other => panic!("{other:?}"),
        };
        read(text).into_iter().map(record).collect()
    }

    #[test]
    fn rows_say_where_their_assignment_lies() {
        let [down, up] = records(&format!("{HEADER}\n{DOWN}\n{UP}\n")).try_into().expect("two");
        assert_eq!(down.at, Time::from_nanos(1_700_000_000_106_409_000));
        assert_eq!((down.frame, down.slot, down.direction, down.edge), (406, 5, Direction::Down, 52));
        let block = Block { mcs: 7, redundancy: 2, new_data: true, bits: 672 };
        assert_eq!(down.dci, Some(Dci { rnti: Rnti(20001), prb: 12, process: 11, blocks: [Some(block), None] }));
        assert_eq!((up.direction, up.edge), (Direction::Up, 63));
    }

    #[test]
    fn names_may_come_again_and_change() {
        let other = HEADER.replace("bwp", "bwp,ports,carrier_index");
        let text = format!("{HEADER}\n{HEADER}\n{DOWN}\n{other}\n{DOWN},0,3\n{DOWN}\n");
        let items = read(&text);
        assert_eq!((&items[0], &items[2], items.len()), (&Item::Header, &Item::Header, 5));
        let carrier = |item: &Item| if let Item::Record(record) = item { Some(record.carrier) } else { None };
        assert_eq!((carrier(&items[1]), carrier(&items[3])), (Some(0), Some(3)));
        let Item::Unread(unread) = &items[4] else { panic!("{:?}", items[4]) };
        assert!(unread.to_string().starts_with("line 6: 33 columns;"), "{unread}");
        // Columns stand where their names do.
        let turn = |line: &str| {
            let mut columns: Vec<&str> = line.split(',').map(str::trim).collect();
            columns.swap(3, 11);
            columns.join(",")
        };
        assert_eq!(records(&format!("{}\n{}\n", turn(HEADER), turn(DOWN))), records(DOWN));
    }

    #[test]
    fn a_log_that_is_joined_later_is_read_without_names() {
        assert_eq!(records(&format!("{DOWN}\n")), records(&format!("{HEADER}\n{DOWN}\n")));
        let with_carrier = records(&format!("{DOWN},0,2\n"));
        assert_eq!(with_carrier[0].carrier, 2);
    }

    #[test]
    fn a_wrong_line_says_what_is_wrong() {
        let why = |from: &str, to: &str| match read(&DOWN.replacen(from, to, 1)).as_slice() {
            [Item::Unread(unread)] => unread.to_string(),
            other => panic!("{other:?}"),
        };
        assert!(why("1_1", "2_0").contains("`2_0` is no DCI format"));
        assert!(why("1700000000.106409", "17e8").contains("`17e8` is no time: a number of seconds since 1970"));
        assert!(why("406", "1024").contains("`1024` is no system frame number"));
        assert!(why(",5,", ",80,").contains("`80` is no slot"));
        assert!(why("C-RNTI,", "").contains("32 columns; a line has 33 to 35"));
        match read("timestamp,rnti\n").as_slice() {
            [Item::Unread(unread)] => assert_eq!(unread.to_string(), "line 1: it has no `system_frame_index`"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn times_keep_their_places() {
        assert_eq!(of_seconds("1700000000.5"), Ok(Time::from_nanos(1_700_000_000_500_000_000)));
        assert_eq!(of_seconds("7"), Ok(Time::from_nanos(7_000_000_000)));
        for wrong in ["", ".5", "-1", "1.2.3", "99999999999999999999", "18446744074", "1.0000000001", "nan"] {
            assert!(of_seconds(wrong).is_err(), "{wrong}");
        }
    }
}
