//! NG-Scope's logs in JSON, as a variant of it writes them: an array of objects with strings as their only values.
//!
//! The variant ends its array with every object, and writes over that end with the next: a program that follows a log
//! reads brackets where commas should be. So what stands between objects is not looked at. `cell_dl_prb` or
//! `cell_ul_prb` tells which way a log is for. A subframe without a DCI has an object with RNTI 0.

use super::{Direction, Item, LONGEST_ROW, Reader, Record, Unread, Why, block, of_micros, of_tti, prb, process, rnti};
use lasthop_signals::Dci;
use serde_json::{Map, Value};

/// Reads them.
#[derive(Clone, Debug, Default)]
pub struct NgScopeJson {
    /// An object that has not come to its end; empty between objects.
    begun: Vec<u8>,
    state: State,
    count: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    #[default]
    Between,
    Object,
    String,
    /// Behind a backslash in a string.
    Escaped,
}

impl Reader for NgScopeJson {
    fn push(&mut self, bytes: &[u8], each: &mut dyn FnMut(Item)) {
        for byte in bytes {
            self.octet(*byte, each);
        }
    }

    fn finish(&mut self, each: &mut dyn FnMut(Item)) {
        if self.state != State::Between {
            self.end(Some(Why::CutShort), each);
        }
    }
}

impl NgScopeJson {
    fn octet(&mut self, byte: u8, each: &mut dyn FnMut(Item)) {
        use State::{Between, Escaped, Object, String};
        let (old, new) = match (self.state, byte) {
            (Between, b'{') => (Between, Object),
            (Between, _) => return,
            // Neither objects nor strings hold a brace: where one stands, the end of the last object is missing.
            (Object | String, b'{') => {
                self.end(Some(Why::CutShort), each);
                (Between, Object)
            }
            (Object, b'}') => (Object, Between),
            (Object, b'"') => (Object, String),
            (String, b'\\') => (String, Escaped),
            // No string holds a line feed: where one stands, its end is missing.
            (String, b'"' | b'\n') => (String, Object),
            (Escaped, _) => (Escaped, String),
            (same, _) => (same, same),
        };
        self.begun.push(byte);
        self.state = new;
        if old == Object && new == Between {
            self.end(None, each);
        } else if self.begun.len() > LONGEST_ROW {
            self.end(Some(Why::TooLong), each);
        }
    }

    fn end(&mut self, wrong: Option<Why>, each: &mut dyn FnMut(Item)) {
        self.count += 1;
        self.state = State::Between;
        let found = wrong.map_or_else(|| record(&self.begun), Err);
        self.begun.clear();
        each(match found {
            Ok(record) => Item::Record(record),
            Err(why) => Item::Unread(Unread { unit: "object", place: self.count, why }),
        });
    }
}

/// The directions, each with the member that only its logs have.
const DIRECTIONS: [(&str, Direction); 2] = [("cell_dl_prb", Direction::Down), ("cell_ul_prb", Direction::Up)];

fn record(object: &[u8]) -> Result<Record, Why> {
    let object: Map<String, Value> =
        serde_json::from_slice(object).map_err(|error| Why::NoObject(error.to_string()))?;
    let member = |name: &'static str| match object.get(name) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Number(number)) => Ok(number.to_string()),
        _ => Err(Why::Missing(name)),
    };
    let known = DIRECTIONS.iter().find(|(name, _)| object.contains_key(*name));
    let direction = known.map(|(_, direction)| *direction).ok_or(Why::Missing(DIRECTIONS[0].0))?;
    let part =
        |[mcs, rv, bits, ndi]: [&'static str; 4]| block(&member(mcs)?, &member(rv)?, &member(bits)?, &member(ndi)?);
    let ((frame, slot), at, rnti) =
        (of_tti(&member("tti")?)?, of_micros(&member("timestamp_us")?)?, rnti(&member("rnti")?)?);
    // The uplink's process follows from the subframe and is not told.
    let process = if direction == Direction::Down { process(&member("harq")?)? } else { 0 };
    let first = part(["TB1_mcs", "TB1_rv", "TB1_tbs", "TB1_ndi"])?;
    let names = ["TB2_mcs", "TB2_rv", "TB2_tbs", "TB2_ndi"];
    // Zeros stand for a block that is not there.
    let zeros = names.iter().all(|name| member(name).is_ok_and(|text| text == "0"));
    let second = if zeros { None } else { Some(part(names)?) };
    let dci = Dci { rnti, prb: prb(&member("prb")?)?, process, blocks: [Some(first), second] };
    let dci = (rnti.0 != 0).then_some(dci);
    Ok(Record { at, frame, slot, direction, carrier: 0, dci, edge: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_signals::{Block, Rnti};
    use lasthop_units::Time;

    fn object(members: &[(&str, &str)]) -> String {
        let lines: Vec<String> = members.iter().map(|(name, value)| format!("\"{name}\": \"{value}\"")).collect();
        format!("{{\n{}\n}}", lines.join(",\n"))
    }

    const DOWN: [(&str, &str); 14] = [
        ("tti", "4711"),
        ("rnti", "20001"),
        ("cell_dl_prb", "30"),
        ("prb", "26"),
        ("harq", "5"),
        ("timestamp_us", "1700000000123456"),
        ("TB1_mcs", "17"),
        ("TB1_rv", "0"),
        ("TB1_tbs", "8504"),
        ("TB1_ndi", "1"),
        ("TB2_mcs", "0"),
        ("TB2_rv", "0"),
        ("TB2_tbs", "0"),
        ("TB2_ndi", "0"),
    ];

    fn read(text: &str) -> Vec<Item> {
        let (mut reader, mut items) = (NgScopeJson::default(), Vec::new());
        reader.push(text.as_bytes(), &mut |item| items.push(item));
        reader.finish(&mut |item| items.push(item));
        items
    }

    fn one(text: &str) -> Record {
        match read(text).as_slice() {
            [Item::Record(record)] => *record,
            other => panic!("{other:?}"),
        }
    }

    fn why(text: &str) -> String {
        match read(text).as_slice() {
            [Item::Unread(unread)] => unread.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_object_is_a_dci() {
        let record = one(&format!("[\n{}]", object(&DOWN)));
        assert_eq!((record.frame, record.slot, record.direction), (471, 1, Direction::Down));
        assert_eq!(record.at, Time::from_nanos(1_700_000_000_123_456_000));
        let block = Block { mcs: 17, redundancy: 0, new_data: true, bits: 8504 };
        assert_eq!(record.dci, Some(Dci { rnti: Rnti(20001), prb: 26, process: 5, blocks: [Some(block), None] }));
        let idle = DOWN.map(|(name, value)| if name == "rnti" { (name, "0") } else { (name, value) });
        assert_eq!(one(&object(&idle)).dci, None);
        assert_eq!(one(&object(&DOWN).replace("\"26\"", "26")).dci, record.dci, "numbers are numbers, too");
    }

    #[test]
    fn the_uplink_tells_no_process() {
        let members: Vec<_> = DOWN.iter().copied().filter(|(name, _)| *name != "harq").collect();
        assert_eq!(one(&object(&members).replace("cell_dl", "cell_ul")).direction, Direction::Up);
        assert_eq!(why(&object(&members)), "object 1: it has no `harq`");
    }

    #[test]
    fn a_log_that_is_written_while_it_is_read_is_whole() {
        let (one, two) = (object(&DOWN), object(&DOWN).replace("4711", "4712"));
        let whole = format!("[\n{one},{two}]");
        // The end of the array is read, and stands no longer where it was.
        let followed = format!("[\n{one}]{two}]");
        assert_eq!(read(&followed), read(&whole));
        assert_eq!(read(&whole).len(), 2);
        for at in 0..whole.len() {
            let (mut reader, mut items) = (NgScopeJson::default(), Vec::new());
            for part in [&whole[..at], &whole[at..]] {
                reader.push(part.as_bytes(), &mut |item| items.push(item));
            }
            reader.finish(&mut |item| items.push(item));
            assert_eq!(items, read(&whole), "cut at {at}");
        }
    }

    #[test]
    fn one_damaged_object_costs_no_other() {
        let right = object(&DOWN);
        let open = right.replacen("\"4711\"", "\"4711", 1);
        let halves = (1..right.len()).map(|end| (&right[..end], "the log ends within it"));
        for (damaged, says) in halves.chain([(open.as_str(), "it is no JSON object")]) {
            let items = read(&format!("[{damaged},{right},{right}]"));
            let [Item::Unread(unread), Item::Record(_), Item::Record(_)] = items.as_slice() else {
                panic!("{items:?}");
            };
            assert!(unread.to_string().contains(says), "{unread}");
        }
        assert_eq!(why(&right[..60]), "object 1: the log ends within it");
        let long = format!("{{\"x\": \"{}\"}}{right}", "y".repeat(2 * LONGEST_ROW));
        assert!(matches!(read(&long).as_slice(), [Item::Unread(_), Item::Record(_)]), "{:?}", read(&long));
    }

    #[test]
    fn a_wrong_member_is_named() {
        assert_eq!(why(&object(&DOWN).replace("\"17\"", "\"77\"")), "object 1: `77` is no MCS: a number from 0 to 31");
        assert_eq!(why(&object(&DOWN).replace("TB1_tbs", "TB1_size")), "object 1: it has no `TB1_tbs`");
        assert_eq!(why(&object(&DOWN).replace("cell_dl_prb", "x")), "object 1: it has no `cell_dl_prb`");
    }
}
