//! Any bytes as a log of a cell in NG-Scope's JSON: nothing panics, and the meter tells of no more than the carrier has.
#![no_main]

#[path = "../../crates/laws/tests/dci/log.rs"]
mod log;

use lasthop_wire::dci::Format;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    log::play(Format::NgScopeJson, bytes);
});
