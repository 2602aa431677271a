#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| lasthop_wire::fuzz::nl80211(bytes));
