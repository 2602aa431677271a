//! Writes what a cell's control channel shows as NG-Scope does: a line for each assignment, or one of zeros.

use super::FRAMES;
use lasthop_signals::{Block, CellSubframe};
use lasthop_units::Time;
use std::fmt::Write;

/// Subframes that a cell counts before it begins again.
const SUBFRAMES: u64 = FRAMES as u64 * 10;

/// Appends the lines of a subframe; `at`: when it was, since 1970. [`super::NgScope`] reads them back: the carrier, its width and which
/// terminal is the own one stand in no line.
pub fn write_ngscope(subframe: &CellSubframe, at: Time, text: &mut String) {
    let (tti, micros) = (subframe.number % SUBFRAMES, at.as_nanos() / 1000);
    let all: u32 = subframe.dcis.iter().map(|dci| u32::from(dci.prb)).sum();
    let mut line = |arguments: std::fmt::Arguments<'_>| {
        // Writing into a string cannot fail.
        let _ = text.write_fmt(arguments);
    };
    if subframe.dcis.is_empty() {
        line(format_args!("{tti}\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t{micros}\t0\t0\t\n"));
    }
    for dci in &subframe.dcis {
        // A single block stands in the first columns, whichever it is.
        let mut blocks = dci.blocks.iter().flatten();
        let mut of = || blocks.next().copied().unwrap_or(Block { mcs: 0, redundancy: 0, new_data: false, bits: 0 });
        let (a, b) = (of(), of());
        line(format_args!("{tti}\t{}\t{all}\t{}\t{}\t{}\t{}\t", dci.rnti.0, dci.prb, a.mcs, a.redundancy, a.bits));
        line(format_args!("{}\t{}\t{}\t{}\t", b.mcs, b.redundancy, b.bits, dci.process));
        line(format_args!("{micros}\t{}\t{}\t\n", u8::from(a.new_data), u8::from(b.new_data)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Direction, Item, NgScope, Reader};
    use super::*;
    use lasthop_signals::{Dci, Rnti};
    use lasthop_units::Span;

    #[test]
    fn what_is_written_is_read_back() {
        let block = |bits| Some(Block { mcs: 20, redundancy: 0, new_data: true, bits });
        let dci = |rnti, blocks| Dci { rnti: Rnti(rnti), prb: 20, process: 3, blocks };
        let (one, two) = (dci(70, [block(8000), None]), dci(71, [block(9000), block(9144)]));
        let subframe = |number, dcis| CellSubframe { carrier: 0, number, prb: 100, own: None, dcis };
        let mut text = String::new();
        let at = Time::ZERO + Span::from_secs(1_700_000_000);
        write_ngscope(&subframe(10_239, vec![one, two]), at, &mut text);
        write_ngscope(&subframe(10_240, vec![]), at + Span::from_millis(1), &mut text);
        let (mut reader, mut read) = (NgScope::default(), Vec::new());
        reader.push(text.as_bytes(), &mut |item| read.push(item));
        let read: Vec<_> = read
            .into_iter()
            .map(|item| match item {
                Item::Record(record) => {
                    assert_eq!(record.direction, Direction::Down);
                    (record.frame, record.slot, record.at, record.dci)
                }
                other => panic!("{other:?}"),
            })
            .collect();
        let after = at + Span::from_millis(1);
        assert_eq!(read, [(1023, 9, at, Some(one)), (1023, 9, at, Some(two)), (0, 0, after, None)]);
        // A second block alone comes back as the first.
        let mut text = String::new();
        write_ngscope(&subframe(1, vec![dci(70, [None, block(8000)])]), at, &mut text);
        reader.push(text.as_bytes(), &mut |item| {
            assert!(matches!(item, Item::Record(record) if record.dci == Some(one)));
        });
    }
}
