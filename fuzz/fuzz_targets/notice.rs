//! Terminals' notices of any bytes: nothing panics, and what is understood survives being written and read again.
#![no_main]

use lasthop_wire::notice;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(read) = notice::decode(bytes) {
        assert_eq!(notice::encode(&read), bytes);
    }
});
