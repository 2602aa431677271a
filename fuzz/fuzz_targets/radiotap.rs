//! Any bytes as a packet of a monitor interface: nothing panics, and a header that is understood survives being written
//! and read again.
#![no_main]

use lasthop_wire::monitor::Captured;
use lasthop_wire::radiotap::Radiotap;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok((radiotap, len)) = Radiotap::parse(bytes) {
        assert!(len <= bytes.len());
        let mut written = Vec::new();
        radiotap.write(&mut written);
        assert_eq!(Radiotap::parse(&written), Ok((radiotap, written.len())));
        if let Some(tx) = radiotap.tx_vector().filter(|tx| tx.rate().is_some()) {
            let mut other = radiotap;
            other.set_tx_vector(tx);
            assert_eq!(other.tx_vector(), Some(tx));
        }
    }
    for original in [bytes.len(), 4_000] {
        if let Ok(captured) = Captured::parse(bytes, original) {
            assert!(captured.mpdu().is_none_or(|mpdu| mpdu.msdus >= 1 && mpdu.sequence < 4_096));
        }
    }
});
