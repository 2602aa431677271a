//! Any bytes as an 802.11 frame: nothing panics, and what is understood survives being written and read again.
#![no_main]

use lasthop_wire::dot11::{BlockAck, BlockAckRequest, Header, Kind, Subframes, count_msdus, snap_ethertype};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok((header, len)) = Header::parse(bytes) else { return };
    let mut written = Vec::new();
    header.write(&mut written);
    assert_eq!(written, bytes[..len], "every field of a header is kept");
    let _ = header.ends();
    let body = &bytes[len..];
    let _ = snap_ethertype(body);
    match header.control.kind() {
        Kind::BlockAck => {
            if let Ok(read) = BlockAck::parse(body) {
                let mut again = Vec::new();
                read.write(&mut again);
                assert_eq!(BlockAck::parse(&again), Ok(read));
            }
        }
        Kind::BlockAckRequest => {
            if let Ok(read) = BlockAckRequest::parse(body) {
                let mut again = Vec::new();
                read.write(&mut again);
                assert_eq!(BlockAckRequest::parse(&again), Ok(read));
            }
        }
        _ => {
            let whole = Subframes::new(body).count();
            assert!(whole <= body.len() / 14 + 1);
            assert!(count_msdus(body, body.len()) >= 1 && count_msdus(body, 12_000) >= 1);
        }
    }
});
