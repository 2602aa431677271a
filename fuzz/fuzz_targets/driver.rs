//! Driver records of any bytes: nothing panics, and what is understood is written back to what was read.
#![no_main]

use lasthop_wire::driver;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(record) = driver::decode(bytes) {
        let message = driver::encode(&record).expect("as many stations as were read");
        assert_eq!(driver::decode(&message), Ok(record));
    }
    if let Ok(record) = driver::decode_node(bytes) {
        assert!(driver::decode(bytes).is_err(), "a message is of one kind");
        assert_eq!(driver::decode_node(&driver::encode_node(&record)), Ok(record));
    }
});
