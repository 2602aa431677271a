//! Subframes of a cell and arrivals of any kind and order: PBE's receiver does not panic, and tells no more than the carriers can carry.
#![no_main]

#[path = "../../crates/laws/tests/dci/history.rs"]
mod history;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    history::play(bytes);
});
