//! Recorded logs of NR through the meter: the numbers that an independent script has of them.

use lasthop_laws::pbe::{Cell, CellSnapshot, Meter};
use lasthop_units::Span;
use lasthop_wire::dci::{Direction, Format, Item, Order, Record, Slot};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Slots of a window.
const WINDOW: u64 = 40;

/// The assignments of the downlink; says so if the log is not there.
fn recorded(name: &str) -> Option<Vec<Record>> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference");
    let root = std::env::var_os("LASTHOP_REFERENCE").map_or_else(beside, PathBuf::from);
    let path = root.join("captures/dci_nrscope_nr").join(name).with_extension("csv");
    let Ok(bytes) = std::fs::read(&path) else {
        // Past the capture of test output.
        let _ = writeln!(std::io::stderr(), "SKIPPED: {} is not there", path.display());
        return None;
    };
    let (mut reader, mut records) = (Format::NrScope.reader(None), Vec::new());
    let mut take = |item: Item| match item {
        Item::Record(record) if record.direction == Direction::Down => records.push(record),
        _ => {}
    };
    reader.push(&bytes, &mut take);
    reader.finish(&mut take);
    Some(records)
}

/// In windows of 40 ms, one behind the other from the first row on, that hold a DCI with PRB: all RNTIs, and those that pass the filter; their means
/// and the most.
#[test]
fn users_of_recorded_logs_match_another_programs_count() {
    for (name, all, most_all, users, most_users) in [
        ("t_mobile1_ueactivity_afternoon_1", 1.2085, 4, 0.4939, 2),
        ("t_mobile1_ueactivity_morning_2_128", 1.3925, 5, 0.6343, 3),
        ("t_mobile2_ueactivity_morning_1", 1.0435, 2, 0.3913, 1),
        ("ue_activity_133", 1.0204, 3, 0.2466, 2),
    ] {
        let Some(records) = recorded(name) else { continue };
        let mut order = Order::new(10, Span::from_secs(1));
        let cell = Cell { slot: order.slot(), prb: 106, lte: false, leaves_out_idle: true };
        let (mut meter, mut seen): (Meter, Vec<(u32, u32)>) = (Meter::new(cell), Vec::new());
        let mut look = |snapshot: &CellSnapshot| {
            if snapshot.number % WINDOW == WINDOW - 1 && snapshot.active > 0 {
                seen.push((snapshot.active, snapshot.users));
            }
        };
        let mut fold = |slot: Slot| meter.on_slot(slot.number, slot.fresh, &slot.dcis, &mut look);
        records.iter().for_each(|record| order.push(record, &mut fold));
        order.finish(&mut fold);
        assert_eq!(order.counts().records, records.len() as u64);
        let mean = |of: fn(&(u32, u32)) -> u32| seen.iter().map(of).sum::<u32>() as f64 / seen.len() as f64;
        let most = |of: fn(&(u32, u32)) -> u32| seen.iter().map(of).max();
        assert!((mean(|seen| seen.0) - all).abs() < 0.002, "{name}: {}", mean(|seen| seen.0));
        assert!((mean(|seen| seen.1) - users).abs() < 0.002, "{name}: {}", mean(|seen| seen.1));
        assert_eq!((most(|seen| seen.0), most(|seen| seen.1)), (Some(most_all), Some(most_users)), "{name}");
    }
}
