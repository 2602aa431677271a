#![no_main]

libfuzzer_sys::fuzz_target!(
    // The reader makes an error of a panic of the Parquet library: it must not end the process.
    init: std::panic::set_hook(Box::new(|_| {})),
    |bytes: &[u8]| lasthop_dataset::fuzz::dataset(bytes)
);
