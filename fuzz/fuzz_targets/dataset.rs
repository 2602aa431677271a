//! Data sets of any bytes: nothing panics past the reader, and what is understood holds what it must.
#![no_main]

use lasthop_dataset::DataSet;
use libfuzzer_sys::fuzz_target;
use std::path::Path;
use std::sync::Once;

fuzz_target!(|bytes: &[u8]| {
    static QUIET: Once = Once::new();
    // The Parquet library may panic on damaged files; the reader makes an error of that. Here it must not end the process.
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    let read = DataSet::parse(Path::new("fuzz"), bytes.to_vec().into()).and_then(|set| set.load());
    for row in read.into_iter().flatten() {
        assert!(row.copies > 0 && row.lost <= row.copies);
    }
});
