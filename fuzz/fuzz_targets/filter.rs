//! Filters of connections of any text: nothing panics, and what is understood has an opposite.
#![no_main]

use lasthop_agents::host::Filter;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match text.parse::<Filter>() {
        // One that is as deep as may be has none.
        Ok(_) => drop(format!("not ({text})").parse::<Filter>()),
        Err(error) => assert!(error.to_string().contains('^')),
    }
});
