//! What a proxy's log says of what waited in it.

use serde_json::Value;
use std::path::Path;

/// Segments of 1400 octets, in windows of whole 128: one of them every connection may have on its way whatever is allowed, since with
/// less its sender would wait for timers.
pub const SEGMENT: f64 = 1408.0;
/// Read ahead of their departure.
pub const TWO_PACKETS: f64 = 3000.0;

/// A slot: the most that waited, the bound at that moment, and the share of looks that found more.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    pub backlog: f64,
    pub bound: f64,
    pub over: f64,
}

/// The slots of a log, from the one after the first `skipped` on.
pub fn read(log: &Path, skipped: usize) -> Vec<Slot> {
    let log = std::fs::read_to_string(log).expect("a log");
    let slot = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let number = |key: &str| line[key].as_f64().expect("a number");
        Slot { backlog: number("backlog_bytes"), bound: number("bound_bytes"), over: number("over_bound") }
    };
    log.lines().skip(skipped).map(slot).collect()
}

/// How many slots there are so far.
pub fn count(log: &Path) -> usize {
    std::fs::read_to_string(log).expect("a log").lines().count()
}

/// The slot in which most waited.
pub fn fullest(slots: &[Slot]) -> Slot {
    *slots.iter().max_by(|a, b| a.backlog.total_cmp(&b.backlog)).expect("slots")
}
