//! Any bytes as a log of a cell's control channel: read, brought into order, and measured.

use crate::pbe::{Cell, CellSnapshot, Meter};
use lasthop_units::Span;
use lasthop_wire::dci::{Format, Item, Order, Record, Slot, detect};

/// Bits of a PRB pair in a slot at most: 12 subcarriers, 14 symbols, 8 bits, 4 layers, two blocks.
const MOST_BITS: f64 = 12.0 * 14.0 * 8.0 * 4.0 * 2.0;
const PRB: u16 = 52;

/// The records of a log of this format, if it is one.
fn records(format: Format, bytes: &[u8]) -> Vec<Record> {
    let (mut reader, mut records) = (format.reader(None), Vec::new());
    let mut take = |item: Item| {
        if let Item::Record(record) = item {
            records.push(record);
        }
    };
    reader.push(bytes, &mut take);
    reader.finish(&mut take);
    records
}

/// Measures the log. How many slots it had.
///
/// # Panics
/// If anything does, or the meter tells of more than the carrier has, or counts what was not
/// there.
pub fn play(format: Format, bytes: &[u8]) -> u64 {
    for whole in [false, true] {
        let _ = detect(bytes, whole);
    }
    let records = records(format, bytes);
    let slots = if format.is_lte() { 10 } else { 20 };
    let mut order = Order::new(slots, Span::from_millis(100));
    let cell = Cell { slot: order.slot(), prb: PRB, lte: format.is_lte(), leaves_out_idle: format.leaves_out_idle() };
    let most = f64::from(PRB) * MOST_BITS / cell.slot.as_secs_f64() * (1.0 + 1e-9);
    let (mut meter, mut last, mut seen) = (Meter::new(cell), None, 0u64);
    let mut check = |snapshot: &CellSnapshot| {
        assert!(last.is_none_or(|last| last < snapshot.number), "{last:?} before {snapshot:?}");
        last = Some(snapshot.number);
        assert!(
            snapshot.to_users <= snapshot.given
                && snapshot.users <= snapshot.active
                && snapshot.sharing == snapshot.users + 1
        );
        assert!((0.0..=f64::from(PRB)).contains(&snapshot.idle), "{snapshot:?}");
        for rate in [snapshot.fair, snapshot.available, snapshot.fair_tcp] {
            assert!(rate.as_bps() as f64 <= most, "{rate} of {most}: {snapshot:?}");
        }
        seen += 1;
    };
    let mut fold = |slot: Slot| meter.on_slot(slot.number, slot.fresh, &slot.dcis, &mut check);
    records.iter().for_each(|record| order.push(record, &mut fold));
    order.finish(&mut fold);
    let totals = meter.totals();
    assert_eq!((totals.slots, order.counts().records), (seen, records.len() as u64));
    let of_all = |terminals: u64, terminal: &crate::pbe::Terminal| {
        terminals + terminal.dcis + terminal.empty + terminal.impossible
    };
    assert_eq!(meter.terminals().map(|(_, _, terminal)| terminal).fold(0, of_all), totals.dcis);
    assert!(totals.given <= totals.slots * u64::from(PRB));
    totals.slots
}
