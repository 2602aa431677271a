//! Properties of the tunnel's packets and of requests to a proxy, over arbitrary bytes and arbitrary frames.

use lasthop_signals::{CellCapacity, FrameSource, Node, StationFeedback};
use lasthop_units::{Rate, Span, Time};
use lasthop_wire::Error;
use lasthop_wire::proxy::{Target, connect, socks5};
use lasthop_wire::tunnel::{AckRange, Data, Datagram, Frame, MAX_ACK_RANGES, OpenResult};
use lasthop_wire::tunnel::{
    Grant, MAX_DATAGRAM, MAX_PACKET, PacketSize, SessionId, Wish, challenge_header, initiation_header, open_packet,
    packet_header, sealed_header,
};
use proptest::collection::vec;
use proptest::prelude::*;

fn any_feedback() -> impl Strategy<Value = StationFeedback> {
    let delay = || proptest::option::of((0..u64::MAX).prop_map(Span::from_nanos));
    (any::<[u64; 7]>(), any::<(u16, u16, u16, u32, u32, bool)>(), 0.0..1e3, delay(), delay()).prop_map(
        |(n, (station, min_packets, max_packets, slot, frames, timed), inverse_rate_sum, delay_mean, delay_max)| {
            StationFeedback {
                station: Node(station),
                slot,
                start: Time::from_nanos(n[0]),
                end: Time::from_nanos(n[1]),
                frames,
                packets: n[2],
                packets_squared: n[3],
                min_packets,
                max_packets,
                inverse_rate_sum,
                received: n[4],
                highest_sequence: n[5],
                lost: n[6],
                delay_mean,
                delay_max,
                source: if timed { FrameSource::Timestamps } else { FrameSource::Radiotap },
            }
        },
    )
}

fn any_cell() -> impl Strategy<Value = CellCapacity> {
    let rate = || any::<u32>().prop_map(|kbit| Rate::from_bps(u64::from(kbit) * 1000));
    (rate(), rate(), any::<[bool; 3]>()).prop_map(|(available, fair, [elsewhere, restart, coarse])| CellCapacity {
        available,
        fair,
        elsewhere,
        restart,
        coarse,
    })
}

fn any_ranges() -> impl Strategy<Value = Vec<AckRange>> {
    let steps = vec((1u64..50, 1u64..50), 1..=MAX_ACK_RANGES + 1);
    (steps, 0u64..1 << 40).prop_map(|(steps, base)| {
        let mut last = base + 10_000;
        let range = |(arrived, missing): (u64, u64)| {
            let range = AckRange { first: last - (arrived - 1), last };
            last = range.first - missing - 1;
            range
        };
        steps.into_iter().map(range).collect()
    })
}

/// A frame that owns what it borrows: the second part is host or data.
fn any_frame() -> impl Strategy<Value = (Frame<'static>, Vec<u8>)> {
    let micros = || (0u64..1 << 32).prop_map(Span::from_micros);
    let data = (any::<u32>(), 0u64..1 << 61, micros(), any::<bool>());
    let plain = |frame: Frame<'static>| (frame, Vec::new());
    prop_oneof![
        Just(plain(Frame::Ping)),
        Just(plain(Frame::Close)),
        (micros(), any_ranges()).prop_map(move |(delay, ranges)| plain(Frame::Ack { delay, ranges })),
        (data, vec(any::<u8>(), 0..300)).prop_map(|((stream, offset, age, end), bytes)| {
            (Frame::Data(Data { stream, offset, age, end, bytes: &[] }), bytes)
        }),
        (any::<(u32, u16)>(), "[a-z0-9.:-]{1,60}")
            .prop_map(|((stream, port), host)| (Frame::Open { stream, host: "", port }, host.into_bytes())),
        (any::<u32>(), 0u8..7).prop_map(move |(stream, code)| {
            plain(Frame::Opened { stream, result: OpenResult::of(code).expect("below seven") })
        }),
        any::<(u32, u64)>().prop_map(move |(stream, limit)| plain(Frame::Window { stream, limit })),
        (any::<u32>(), 0u64..1 << 62).prop_map(move |(stream, sent)| plain(Frame::Reset { stream, sent })),
        any::<u64>().prop_map(move |limit| plain(Frame::Budget { limit })),
        any::<[u8; 8]>().prop_map(move |data| plain(Frame::PathChallenge(data))),
        any::<[u8; 8]>().prop_map(move |data| plain(Frame::PathAnswer(data))),
        Just(plain(Frame::Probe)),
        (micros(), micros()).prop_map(move |(average, epoch)| plain(Frame::PathDelay { average, epoch })),
        any_feedback().prop_map(move |feedback| plain(Frame::Feedback(feedback))),
        any_cell().prop_map(move |told| plain(Frame::Cell(told))),
    ]
}

/// The frame with what it borrows put in.
fn whole<'a>((frame, owned): &'a (Frame<'static>, Vec<u8>)) -> Frame<'a> {
    match frame.clone() {
        Frame::Data(data) => Frame::Data(Data { bytes: owned, ..data }),
        Frame::Open { stream, port, .. } => Frame::Open { stream, port, host: str::from_utf8(owned).expect("ASCII") },
        other => other,
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(frames in vec(any_frame(), 0..8), clock: u64) {
        let mut packet = packet_header(Time::from_nanos(clock)).to_vec();
        for frame in &frames {
            let before = packet.len();
            whole(frame).encode(&mut packet).expect("short enough");
            prop_assert_eq!(packet.len() - before, whole(frame).encoded_len());
        }
        let (sent_at, read) = open_packet(&packet).expect("whole");
        prop_assert_eq!(sent_at, Time::from_nanos(clock));
        let read: Vec<_> = read.map(|frame| frame.expect("whole")).collect();
        prop_assert_eq!(read, frames.iter().map(whole).collect::<Vec<_>>());
    }

    #[test]
    fn a_packet_that_was_cut_is_an_error_or_shorter(frames in vec(any_frame(), 1..4), cut in 0usize..400) {
        let mut packet = packet_header(Time::ZERO).to_vec();
        frames.iter().for_each(|frame| whole(frame).encode(&mut packet).expect("short enough"));
        packet.truncate(packet.len().saturating_sub(1 + cut));
        if let Ok((_, read)) = open_packet(&packet) {
            let whole = read.filter(Result::is_ok).count();
            prop_assert!(whole < frames.len());
        }
    }

    #[test]
    fn any_bytes_are_read_without_panic_and_written_back(bytes in vec(any::<u8>(), 0..200)) {
        let _ = Datagram::parse(&bytes);
        if let Ok((_, frames)) = open_packet(&bytes) {
            for frame in frames.flatten() {
                let mut out = Vec::new();
                frame.encode(&mut out).expect("it came out of a packet");
                let padded = [&[0; 8], out.as_slice()].concat();
                let again: Vec<_> = open_packet(&padded).expect("whole").1.collect();
                prop_assert_eq!(again, vec![Ok(frame)]);
            }
        }
    }

    #[test]
    fn datagrams_keep_their_numbers(session: u32, number in 0u64..1 << 62, station: u16, rest in vec(any::<u8>(), 24..80)) {
        let sealed = [&sealed_header(session, number)[..], &rest].concat();
        prop_assert_eq!(Datagram::parse(&sealed), Ok(Datagram::Sealed { session, number, sealed: &rest }));
        let initiation = [&initiation_header(Node(station))[..], &rest].concat();
        let expected = Datagram::Initiation { station: Node(station), message: &rest };
        prop_assert_eq!(Datagram::parse(&initiation), Ok(expected));
    }

    #[test]
    fn numbers_that_nobody_counts_up_to_are_refused(
        number in prop_oneof![Just(1u64 << 62), Just(u64::MAX), 1u64 << 62..], rest in vec(any::<u8>(), 24..80),
    ) {
        let sealed = [&sealed_header(7, number)[..], &rest].concat();
        prop_assert_eq!(Datagram::parse(&sealed), Err(Error::Unknown { what: "packet number", value: number }));
    }

    #[test]
    fn challenges_are_read_as_they_were_written(session: u32, challenge: [u8; 32], proof: [u8; 32], cut in 0usize..64) {
        let mut bytes = [&challenge_header(session)[..], &challenge, &proof].concat();
        let expected = Datagram::Challenge { session, challenge: &challenge, proof: &proof };
        prop_assert_eq!(Datagram::parse(&bytes), Ok(expected));
        bytes.truncate(8 + cut);
        prop_assert!(Datagram::parse(&bytes).is_err());
    }

    #[test]
    fn wishes_and_grants_round_trip_and_any_bytes_are_handled(
        number: u32, challenge: [u8; 32], id: u64, continued: bool, bytes in vec(any::<u8>(), 0..60),
    ) {
        let wish = Wish { number, challenge, continues: (id > 0).then_some(SessionId(id)) };
        prop_assert_eq!(Wish::decode(&wish.encode()), Ok(wish));
        let grant = Grant { number, continued };
        prop_assert_eq!(Grant::decode(&grant.encode()), Ok(grant));
        if let Ok(wish) = Wish::decode(&bytes) {
            prop_assert_eq!(wish.encode().to_vec(), bytes.clone());
        }
        if let Ok(grant) = Grant::decode(&bytes) {
            prop_assert_eq!(grant.encode().to_vec(), bytes.clone());
        }
    }

    #[test]
    fn requests_to_a_proxy_of_any_bytes_do_not_panic(bytes in vec(any::<u8>(), 0..64), text in "CONNECT [ -~\r\n]{0,60}") {
        let _ = (socks5::greeting(&bytes), socks5::request(&bytes), connect::request(&bytes));
        if let Ok(Some((Target { host, port }, used))) = connect::request(text.as_bytes()) {
            prop_assert!(used <= text.len() && !host.is_empty() && port > 0);
        }
        let socks = [&[5, 1, 0, 3], bytes.as_slice()].concat();
        if let Ok(Some((_, used))) = socks5::request(&socks) {
            prop_assert!(used <= socks.len());
        }
    }

    #[test]
    fn a_socks_request_survives(host in "[a-z0-9.-]{1,255}", port in 1u16.., rest in vec(any::<u8>(), 0..9)) {
        let len = u8::try_from(host.len()).expect("at most 255");
        let mut bytes = [&[5, 1, 0, 3, len], host.as_bytes(), &port.to_be_bytes()].concat();
        let used = bytes.len();
        bytes.extend_from_slice(&rest);
        let wanted = socks5::Request::Connect(Target { host, port });
        prop_assert_eq!(socks5::request(&bytes), Ok(Some((wanted, used))));
    }
}

#[test]
fn full_packets_are_as_long_as_the_path_allows_within_bounds() {
    for (ipv6, mtu, expected) in [
        (false, 1500, 1500),
        (true, 1500, 1500),
        (false, 9000, 1500),
        (true, 1492, 1492),
        (false, 1400, 1400),
        (true, 1280, 1280),
        (false, 1228, 1228),
        (false, 576, 1228),
        (true, 0, 1248),
    ] {
        let size = PacketSize::of_path(ipv6, mtu);
        assert_eq!(size.ip_len(size.datagram()), expected, "IPv6: {ipv6}, MTU {mtu}");
        assert_eq!(size.packet() + 32, size.datagram());
    }
    assert_eq!(PacketSize::of_path(false, 1500), PacketSize::ETHERNET);
    assert_eq!(PacketSize::ETHERNET.packet(), MAX_PACKET);
    // Over a mesh IP packets are as long, and hold eight octets less.
    let mesh = PacketSize::ETHERNET.over_mesh();
    assert_eq!((mesh.packet(), mesh.sealed_ip_len(mesh.packet())), (MAX_PACKET - 8, 1500));
}

#[test]
fn a_full_packet_is_an_ip_packet_of_1500_octets() {
    assert_eq!(MAX_DATAGRAM + 28, 1500);
    assert_eq!(MAX_PACKET + 16 + 16 + 28, 1500);
}

#[test]
fn more_ranges_than_fit_are_the_highest() {
    let ranges: Vec<AckRange> = (0..100).rev().map(|n| AckRange { first: 10 * n + 1, last: 10 * n + 3 }).collect();
    let mut packet = packet_header(Time::ZERO).to_vec();
    Frame::Ack { delay: Span::ZERO, ranges: ranges.clone() }.encode(&mut packet).expect("cut to fit");
    let read: Vec<_> = open_packet(&packet).expect("whole").1.collect();
    let expected = ranges[..=MAX_ACK_RANGES].to_vec();
    assert_eq!(read, [Ok(Frame::Ack { delay: Span::ZERO, ranges: expected })]);
}
