//! Terminals' notices of any bytes, signed or not: nothing panics, and what is understood survives being written and read again.
#![no_main]

use lasthop_wire::notice::{self, signed};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(read) = notice::decode(bytes) {
        assert_eq!(notice::encode(&read), bytes);
    }
    if let Ok(read) = signed::decode(bytes) {
        assert_eq!(signed::encode(&read.notice, read.sent_ms, |_| read.tag), bytes);
    }
});
