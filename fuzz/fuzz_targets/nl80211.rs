//! What the kernel tells of a wireless interface, of any bytes: nothing panics, and what is read is in the bytes.
#![no_main]

use lasthop_wire::nl80211::{Interface, Station, Survey, family};
use lasthop_wire::nla::Attributes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    assert!(Attributes::new(bytes).count() <= bytes.len() / 4 + 1);
    let _ = (family(bytes), Interface::parse(bytes), Survey::parse(bytes));
    if let Ok(Some(station)) = Station::parse(bytes) {
        assert!(bytes.windows(6).any(|six| six == station.address));
    }
});
