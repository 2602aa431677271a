use super::*;
use crate::tcp::{Flags, TcpOptions, Timestamps};
use proptest::prelude::*;

fn octets(datagram: &Datagram<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    datagram.encode(&mut out).expect("options that fit");
    out
}

fn open() -> Open {
    let mut cookie = [6; 32];
    cookie[31] = 7;
    let transport = Transport::Atp(Variant::Adaptive);
    Open { connection: 0x0102_0304, delay: Span::from_micros(9), transport, nonce: [5; 16], size: 1 << 40, cookie }
}

fn segment(payload: &[u8]) -> Datagram<'_> {
    let header = TcpHeader {
        source_port: 0,
        destination_port: 0,
        seq: 1,
        ack: 2,
        flags: Flags::ACK,
        window: 3,
        options: TcpOptions { timestamps: Some(Timestamps { val: 4, ecr: 5 }), ..TcpOptions::default() },
        payload_len: payload.len() as u32,
    };
    Datagram::Segment { connection: 7, delay: Span::from_micros(8), header, payload }
}

#[test]
fn octets_stand_where_the_table_says() {
    let bytes = octets(&Datagram::Open(open()));
    assert_eq!(bytes[..16], [0x19, 0, 0, 0, 0, 0, 0, 9, 1, 2, 3, 4, 0, 2, 0, 0]);
    assert_eq!(bytes[16..40], [[5; 16].as_slice(), &[0, 0, 1, 0, 0, 0, 0, 0]].concat());
    assert_eq!((bytes[40], bytes[71], bytes.len()), (6, 7, 72));
    let close = Close { connection: 1, reason: Reason::Failed, octets: 2 };
    let bytes = octets(&Datagram::Close(close));
    assert_eq!(bytes, [0x1b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    let bytes = octets(&segment(b"x"));
    assert_eq!((bytes[0], bytes[7], bytes[11], bytes[19], bytes.last()), (0x18, 8, 7, 1, Some(&b'x')));
}

#[test]
fn whatever_is_written_is_read() {
    let challenge = Challenge { connection: 3, delay: Span::from_micros(7), keyed: true, cookie: [8; 32] };
    let close = Close { connection: 4, reason: Reason::Kept, octets: u64::MAX };
    for datagram in [Datagram::Open(open()), Datagram::Challenge(challenge), Datagram::Close(close), segment(b"abc")] {
        assert_eq!(Datagram::decode(&octets(&datagram)), Ok(datagram));
    }
    let tcp = Open { transport: Transport::Tcp, ..open() };
    assert_eq!(Datagram::decode(&octets(&Datagram::Open(tcp))), Ok(Datagram::Open(tcp)));
}

#[test]
fn an_answer_to_a_stranger_is_shorter_than_the_question() {
    let challenge = Challenge { connection: 3, delay: Span::from_micros(7), keyed: true, cookie: [8; 32] };
    assert!(octets(&Datagram::Challenge(challenge)).len() < octets(&Datagram::Open(open())).len());
}

#[test]
fn what_is_no_datagram_is_refused() {
    let bytes = octets(&Datagram::Open(open()));
    for len in 0..bytes.len() {
        assert!(matches!(Datagram::decode(&bytes[..len]), Err(Error::Truncated { .. })), "{len} octets");
    }
    let with = |at: usize, octet: u8| {
        let mut other = bytes.clone();
        other[at] = octet;
        Datagram::decode(&other).map(|_| ()).expect_err("refused").to_string()
    };
    assert!(with(0, 0x29).contains("version of a datagram: 2"));
    assert!(with(0, 0x1f).contains("kind of a datagram: 15"));
    assert!(with(12, 2).contains("transport: 2"));
    assert!(with(13, 4).contains("variant of ATP: 4"));
    assert!(with(2, 1).contains("zero"));
    assert!(Datagram::decode(&[&bytes[..], &[0]].concat()).is_err());
}

#[test]
fn a_relay_changes_what_no_code_covers() {
    let mut bytes = octets(&segment(b"payload"));
    let sign = |parts: [&[u8]; 2]| {
        let sum = parts.concat().iter().fold(0u8, |sum, octet| sum.wrapping_mul(31).wrapping_add(*octet));
        [sum; sealed::TAG_LEN]
    };
    sealed::seal(&mut bytes, 0, 77, sign);
    for (own, raised, stands) in [(1, true, 1000), (5, true, 5000), (2, false, 5000)] {
        assert_eq!(raise_delay(&mut bytes, Span::from_millis(own)), raised);
        let open = sealed::open(&bytes).expect("long enough");
        assert_eq!((open.number, sign(open.covered)), (77, open.tag));
        let Ok(Datagram::Segment { delay, payload, .. }) = Datagram::decode(open.body) else { panic!("a segment") };
        assert_eq!((delay, payload), (Span::from_micros(stands), &b"payload"[..]));
    }
    bytes[20] ^= 1;
    let open = sealed::open(&bytes).expect("long enough");
    assert_ne!(sign(open.covered), open.tag);
    assert!(sealed::open(&bytes[..31]).is_err());
}

proptest! {
    #[test]
    fn any_octets_are_refused_or_mean_the_same_when_written_again(
        mut bytes in prop::collection::vec(any::<u8>(), 0..130), kind in 0u8..16, zeros: bool,
    ) {
        if let [first, ..] = &mut bytes[..] {
            *first = 0x10 | kind;
        }
        if zeros && bytes.len() >= 16 {
            bytes[1..4].fill(0);
            bytes[12..16].fill(0);
            let len = match kind { 9 => 72, 10 => 48, 11 => 24, _ => bytes.len() };
            bytes.resize(len, 0);
        }
        if let Ok(read) = Datagram::decode(&bytes) {
            let again = octets(&read);
            prop_assert_eq!(Datagram::decode(&again), Ok(read));
        }
        let before = bytes.clone();
        if raise_delay(&mut bytes, Span::from_millis(3)) {
            prop_assert_eq!(&bytes[..4], &before[..4]);
            prop_assert_eq!(&bytes[8..], &before[8..]);
        } else {
            prop_assert_eq!(bytes, before);
        }
    }
}
