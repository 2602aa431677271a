//! Datagrams of any bytes: nothing panics, what is understood means the same when it is written again, a relay changes D alone, and a seal is taken
//! off as it was put on, as is the preamble of a tunnel's datagram.
#![no_main]

use lasthop_units::Span;
use lasthop_wire::datagram::{Datagram, preamble, raise_delay, sealed};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(read) = Datagram::decode(bytes) {
        let mut again = Vec::new();
        if read.encode(&mut again).is_ok() {
            assert_eq!(Datagram::decode(&again), Ok(read));
        }
    }
    let mut raised = bytes.to_vec();
    if raise_delay(&mut raised, Span::from_millis(7)) {
        assert_eq!((&raised[..4], &raised[8..]), (&bytes[..4], &bytes[8..]));
    } else {
        assert_eq!(raised, bytes);
    }
    if let Ok((delay, inner)) = preamble::strip(bytes) {
        assert_eq!([preamble::preamble(delay).as_slice(), inner].concat(), bytes);
    }
    let _ = sealed::open(bytes);
    if bytes.len() >= 8 {
        let mut out = bytes.to_vec();
        sealed::seal(&mut out, 0, 5, |parts| [parts.concat().len() as u8; sealed::TAG_LEN]);
        let open = sealed::open(&out).expect("long enough");
        assert_eq!((open.body, open.number), (bytes, 5));
        assert_eq!(open.tag, [open.covered.concat().len() as u8; sealed::TAG_LEN]);
    }
});
