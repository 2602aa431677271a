//! ATP headers of any bytes: nothing panics, what is understood survives being written and read again, and a relay raises D or changes nothing.
#![no_main]

use lasthop_units::Span;
use lasthop_wire::atp::{Header, raise_delay};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let read = Header::decode(bytes);
    if let Ok((header, payload)) = &read {
        let mut again = Vec::new();
        header.encode(&mut again);
        again.extend_from_slice(payload);
        assert_eq!(again, bytes);
    }
    let (mut raised, own) = (bytes.to_vec(), Span::from_millis(7));
    raise_delay(&mut raised, own);
    match read {
        Ok((header, _)) => assert_eq!(Header::decode(&raised).expect("still one").0.delay, header.delay.max(own)),
        Err(_) => assert_eq!(raised, bytes),
    }
});
