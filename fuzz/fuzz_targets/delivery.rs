//! Bytes of any kind as a packet-delivery trace: refused with a reason, or a trace that reads back as itself.
#![no_main]

use lasthop_wire::delivery::DeliveryTrace;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(trace) = DeliveryTrace::parse(bytes) {
        assert_eq!(DeliveryTrace::parse(trace.to_text().as_bytes()).as_ref(), Ok(&trace));
        let n = trace.until(trace.opportunity(3 * trace.len() as u64));
        assert!(trace.opportunity(n) > trace.opportunity(n - 1));
    }
});
