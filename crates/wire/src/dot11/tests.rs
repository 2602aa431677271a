use super::*;
use crate::Error;
use lasthop_signals::MacAddress;

fn address(n: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, n])
}

#[test]
fn a_qos_data_frame_is_read_field_by_field() {
    // From the distribution system, repeated, A-MSDU, number 0x19d, +HTC.
    let frame = [
        0x88, 0x8a, 0x3c, 0x00, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 3, 0xd0, 0x19, 0x85, 0x00, 1, 2, 3,
        4, 0xff,
    ];
    let (header, len) = Header::parse(&frame).expect("well formed");
    assert_eq!(len, 30);
    assert_eq!(header.control.kind(), Kind::Data { qos: true });
    assert!(header.control.has(FrameControl::RETRY | FrameControl::FROM_DS));
    assert_eq!(header.sequence, Some(SequenceControl { number: 0x19d, fragment: 0 }));
    let qos = header.qos.expect("QoS data");
    assert_eq!((qos.tid(), qos.is_a_msdu(), header.ht_control), (5, true, Some(0x0403_0201)));
    let mut again = Vec::new();
    header.write(&mut again);
    assert_eq!(again, frame[..30]);
    assert_eq!(Header::parse(&frame[..29]), Err(Error::Truncated { needed: 30, got: 29 }));
}

#[test]
fn the_ends_of_an_msdu_stand_where_the_direction_says() {
    let header = |flags: u16| Header {
        control: FrameControl(FrameControl::DATA | flags),
        duration: 0,
        receiver: address(1),
        transmitter: Some(address(2)),
        address3: Some(address(3)),
        sequence: Some(SequenceControl::default()),
        address4: (flags == FrameControl::TO_DS | FrameControl::FROM_DS).then_some(address(4)),
        qos: None,
        ht_control: None,
    };
    let ends = |flags| header(flags).ends();
    assert_eq!(ends(0), Some((address(1), address(2))));
    assert_eq!(ends(FrameControl::FROM_DS), Some((address(1), address(3))));
    assert_eq!(ends(FrameControl::TO_DS), Some((address(3), address(2))));
    assert_eq!(ends(FrameControl::TO_DS | FrameControl::FROM_DS), Some((address(3), address(4))));
    let mut bytes = Vec::new();
    header(FrameControl::TO_DS | FrameControl::FROM_DS).write(&mut bytes);
    assert_eq!(bytes.len(), 30, "four addresses");
}

#[test]
fn control_frames_have_one_or_two_addresses() {
    let ack = [0xd4, 0, 0, 0, 2, 0, 0, 0, 0, 1];
    let (header, len) = Header::parse(&ack).expect("an Ack");
    assert_eq!((header.control.kind(), header.transmitter, len), (Kind::Ack, None, 10));
    let mut frame = vec![0x94, 0, 0, 0, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    let written = BlockAck { tid: 6, start: 4_095, bitmap: vec![0xff, 0x01, 0, 0, 0, 0, 0, 0x80] };
    written.write(&mut frame);
    let (header, len) = Header::parse(&frame).expect("a BlockAck");
    assert_eq!((header.control.kind(), header.transmitter, len), (Kind::BlockAck, Some(address(2)), 16));
    let read = BlockAck::parse(&frame[len..]).expect("compressed");
    assert_eq!((&read, read.acknowledged()), (&written, 10));
    assert!(BlockAck::parse(&frame[len..len + 8]).is_err(), "half a bitmap");
    assert_eq!(BlockAck::parse(&[0, 0, 0, 0]), Err(Error::BlockAckVariant(0)));
    let mut body = Vec::new();
    BlockAckRequest { tid: 3, start: 77 }.write(&mut body);
    assert_eq!(BlockAckRequest::parse(&body), Ok(BlockAckRequest { tid: 3, start: 77 }));
    let long = BlockAck { tid: 0, start: 1, bitmap: vec![1; 32] };
    body.clear();
    long.write(&mut body);
    assert_eq!(BlockAck::parse(&body), Ok(long));
}

#[test]
fn other_versions_are_refused() {
    assert_eq!(Header::parse(&[0x01, 0, 0, 0]), Err(Error::Dot11Version(1)));
}

#[test]
fn msdus_of_an_a_msdu_are_counted_whole_and_cut() {
    let mut body = Vec::new();
    for n in 1..=3u8 {
        let mut msdu = Vec::new();
        write_snap(&mut msdu, 0x0800);
        msdu.extend(std::iter::repeat_n(n, 101));
        write_subframe(&mut body, 0, address(n), address(9), &msdu);
    }
    let found: Vec<(MacAddress, usize, Option<u16>)> =
        Subframes::new(&body).map(|sub| (sub.destination, sub.msdu.len(), snap_ethertype(sub.msdu))).collect();
    assert_eq!(found, [1, 2, 3].map(|n| (address(n), 109, Some(0x0800))));
    assert_eq!(count_msdus(&body, body.len()), 3);
    // Captured to the middle of the first: the rest is as long.
    assert_eq!(count_msdus(&body[..60], body.len()), 3);
    assert_eq!(count_msdus(&[], 0), 1);
    assert_eq!(count_msdus(&[0; 64], 64), 1, "not subframes");
}
