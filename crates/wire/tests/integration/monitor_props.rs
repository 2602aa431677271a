//! Properties of what reads and writes captured 802.11 frames, over arbitrary bytes and arbitrary headers.

use lasthop_signals::MacAddress;
use lasthop_units::Time;
use lasthop_wire::dot11::{
    self, BlockAck, BlockAckRequest, FrameControl, Header, Kind, QosControl, SequenceControl, Subframes,
};
use lasthop_wire::monitor::Captured;
use lasthop_wire::pcap::{Packet, Stream};
use lasthop_wire::radiotap::{Ampdu, Channel, Eht, Flags, He, Mcs, Radiotap, Timestamp, Usig, Vht};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

fn any_radiotap() -> impl Strategy<Value = Radiotap> {
    let plain = (of(any::<u64>()), of(any::<u8>()), of(any::<u8>()), of(any::<i8>()), of(any::<i8>()), of(any::<u8>()));
    let channel = of(any::<(u16, u16)>().prop_map(|(mhz, flags)| Channel { mhz, flags }));
    let mcs = of(any::<[u8; 3]>().prop_map(|[known, flags, index]| Mcs { known, flags, index }));
    let ampdu = of(any::<(u32, u16, u8)>().prop_map(|(reference, flags, delimiter_crc)| Ampdu {
        reference,
        flags,
        delimiter_crc,
    }));
    let vht = of(any::<((u16, u16), [u8; 4], [u8; 4])>().prop_map(
        |((known, partial_aid), [flags, bandwidth, coding, group], mcs_nss)| Vht {
            known,
            flags,
            bandwidth,
            mcs_nss,
            coding,
            group,
            partial_aid,
        },
    ));
    let stamp = of(any::<(u64, u16, u8, u8)>().prop_map(|(time, accuracy, unit_position, flags)| Timestamp {
        time,
        accuracy,
        unit_position,
        flags,
    }));
    let he = of(any::<[u16; 6]>().prop_map(|data| He { data }));
    let usig = of(any::<[u32; 3]>().prop_map(|[common, value, mask]| Usig { common, value, mask }));
    let eht = of(any::<(u32, [u32; 9], u32)>().prop_map(|(known, data, user)| Eht { known, data, user }));
    (plain, channel, of(any::<u16>()), mcs, ampdu, vht, stamp, (he, usig, eht)).prop_map(
        |(
            (tsft, flags, rate, signal, noise, antenna),
            channel,
            rx_flags,
            mcs,
            ampdu,
            vht,
            timestamp,
            (he, usig, eht),
        )| Radiotap {
            tsft,
            flags: flags.map(Flags),
            rate,
            channel,
            signal,
            noise,
            antenna,
            rx_flags,
            mcs,
            ampdu,
            vht,
            timestamp,
            he,
            usig,
            eht,
        },
    )
}

/// A header with exactly the fields that its frame control promises.
fn any_header() -> impl Strategy<Value = Header> {
    let addresses = any::<[[u8; 6]; 4]>().prop_map(|all| all.map(MacAddress));
    // Data and management, Ack, BlockAck; protocol version 0.
    let control = prop_oneof![
        any::<u16>().prop_map(|bits| bits & 0xfff0 | 0x08),
        any::<u16>().prop_map(|bits| bits & 0xfff0),
        any::<u8>().prop_map(|flags| u16::from(flags) << 8 | FrameControl::ACK),
        any::<u8>().prop_map(|flags| u16::from(flags) << 8 | FrameControl::BLOCK_ACK),
    ];
    (control, any::<u16>(), addresses, 0u16..4_096, 0u8..16, any::<u16>(), any::<u32>()).prop_map(
        |(control, duration, [receiver, transmitter, third, fourth], number, fragment, qos, ht_control)| {
            let control = FrameControl(control);
            let (data, qos_data, management) = match control.kind() {
                Kind::Data { qos } | Kind::NoData { qos } => (true, qos, false),
                Kind::Management(_) => (false, false, true),
                _ => (false, false, false),
            };
            let between = data && control.has(FrameControl::TO_DS | FrameControl::FROM_DS);
            Header {
                control,
                duration,
                receiver,
                transmitter: (control.kind() != Kind::Ack).then_some(transmitter),
                address3: (data || management).then_some(third),
                sequence: (data || management).then_some(SequenceControl { number, fragment }),
                address4: between.then_some(fourth),
                qos: qos_data.then_some(QosControl(qos)),
                ht_control: ((qos_data || management) && control.has(FrameControl::HTC)).then_some(ht_control),
            }
        },
    )
}

/// Bytes that begin as a capture does, in either byte order: records of pcap, or blocks of pcapng, with anything in them.
fn any_capture() -> impl Strategy<Value = Vec<u8>> {
    let magic = prop::sample::select(vec![0xa1b2_c3d4u32, 0xa1b2_3c4d, 0xa1b2_cd34, 0x0a0d_0d0a, 7]);
    let anything = vec(prop_oneof![5 => Just(0u8), 1 => any::<u8>()], 0..300);
    let classic = (magic, any::<bool>(), anything).prop_map(|(magic, swapped, bytes)| {
        [&if swapped { magic.to_le_bytes() } else { magic.to_be_bytes() }[..], &bytes].concat()
    });
    let kind = prop::sample::select(vec![1u32, 2, 3, 4, 5, 6, 9, 10, 0xbad]);
    let body = vec(prop_oneof![5 => Just(0u8), 1 => any::<u8>()], 0..60);
    let ng = (any::<bool>(), vec((kind, body), 0..8), 0usize..30).prop_map(|(big, blocks, cut)| {
        let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
        let mut file = Vec::new();
        let mut block = |kind: u32, body: &[u8]| {
            let body = [body, &[0; 3][..body.len().next_multiple_of(4) - body.len()]].concat();
            let len = word(12 + body.len() as u32);
            [word(kind).as_slice(), &len, &body, &len].iter().for_each(|part| file.extend_from_slice(part));
        };
        block(0x0a0d_0d0a, &[&word(0x1a2b_3c4d)[..], &[0; 12]].concat());
        blocks.iter().for_each(|(kind, body)| block(*kind, body));
        file.truncate(file.len() - cut);
        file
    });
    prop_oneof![classic, ng]
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(bytes in vec(any::<u8>(), 0..400), original in 0usize..5_000) {
        let _ = Radiotap::parse(&bytes).map(|(radiotap, len)| (radiotap.tx_vector(), len));
        let _ = Header::parse(&bytes);
        let _ = BlockAck::parse(&bytes);
        let _ = BlockAckRequest::parse(&bytes);
        prop_assert!(Subframes::new(&bytes).count() <= bytes.len());
        prop_assert!(dot11::count_msdus(&bytes, original) >= 1);
        let _ = dot11::snap_ethertype(&bytes);
        if let Ok(captured) = Captured::parse(&bytes, original) {
            let _ = captured.mpdu();
        }
    }

    /// Random bytes rarely get past the fixed part: these have a plausible one, with several presence words.
    #[test]
    fn no_presence_words_make_a_reader_panic(
        words in vec(any::<u32>(), 1..5),
        fields in vec(any::<u8>(), 0..120),
        cut in 0usize..8,
        original in 0usize..5_000,
    ) {
        let mut bytes = vec![0, 0, 0, 0];
        let last = words.len() - 1;
        for (at, word) in words.iter().enumerate() {
            let more = if at < last { 1 << 31 } else { 0 };
            bytes.extend_from_slice(&(word & !(1 << 31) | more).to_le_bytes());
        }
        bytes.extend_from_slice(&fields);
        let len = u16::try_from(bytes.len().saturating_sub(cut)).expect("short");
        bytes[2..4].copy_from_slice(&len.to_le_bytes());
        if let Ok((_, found)) = Radiotap::parse(&bytes) {
            prop_assert_eq!(found, usize::from(len));
        }
        if let Ok(captured) = Captured::parse(&bytes, original) {
            prop_assert!(captured.body.len() <= bytes.len());
            let _ = captured.mpdu();
        }
    }

    #[test]
    fn a_radiotap_header_survives_being_written_and_read(radiotap in any_radiotap(), before in 0usize..9, frame in vec(any::<u8>(), 0..20)) {
        let mut bytes = vec![0xee; before];
        radiotap.write(&mut bytes);
        let end = bytes.len();
        bytes.extend_from_slice(&frame);
        let (again, len) = Radiotap::parse(&bytes[before..]).expect("just written");
        prop_assert_eq!((again, len), (radiotap, end - before));
    }

    #[test]
    fn a_rate_survives_the_field_that_tells_it(radiotap in any_radiotap()) {
        if let Some(tx) = radiotap.tx_vector().filter(|tx| tx.rate().is_some()) {
            let mut other = radiotap;
            other.set_tx_vector(tx);
            prop_assert_eq!(other.tx_vector(), Some(tx));
        }
    }

    #[test]
    fn a_mac_header_survives_being_written_and_read(header in any_header(), body in vec(any::<u8>(), 0..20)) {
        let mut bytes = Vec::new();
        header.write(&mut bytes);
        let end = bytes.len();
        bytes.extend_from_slice(&body);
        prop_assert_eq!(Header::parse(&bytes), Ok((header, end)));
        for cut in 0..end {
            prop_assert!(Header::parse(&bytes[..cut]).is_err());
        }
    }

    #[test]
    fn an_a_msdu_survives_being_written_and_read(msdus in vec(vec(any::<u8>(), 1..60), 1..8), cut in 0usize..400) {
        let mut body = Vec::new();
        for (n, msdu) in (0u8..).zip(&msdus) {
            dot11::write_subframe(&mut body, 0, MacAddress([n; 6]), MacAddress([9; 6]), msdu);
        }
        let found: Vec<&[u8]> = Subframes::new(&body).map(|sub| sub.msdu).collect();
        prop_assert_eq!(&found, &msdus.iter().map(Vec::as_slice).collect::<Vec<_>>());
        prop_assert_eq!(usize::from(dot11::count_msdus(&body, body.len())), msdus.len());
        let seen = &body[..cut.min(body.len())];
        prop_assert!(dot11::count_msdus(seen, body.len()) >= 1);
    }

    #[test]
    fn no_bytes_make_the_capture_reader_panic_or_stand_still(file in any_capture()) {
        let mut stream = Stream::of(&file);
        let mut count = 0;
        while let Ok(Some(_)) = stream.packet() {
            count += 1;
            prop_assert!(count <= file.len());
        }
    }

    #[test]
    fn a_capture_in_pieces_is_read_as_one_in_memory(file in any_capture(), piece in 1usize..60) {
        let read = |pieces: &mut dyn Iterator<Item = &[u8]>| {
            let (mut stream, mut came) = (Stream::new(), Vec::new());
            let all = || {
                for piece in pieces {
                    stream.push(piece);
                    while let Some(packet) = stream.packet()? {
                        came.push((packet.at, packet.bytes.to_vec(), packet.original, packet.interface));
                    }
                }
                stream.finish()
            };
            let ended = all();
            (came, ended, stream.interfaces().to_vec(), stream.untimed())
        };
        prop_assert_eq!(read(&mut file.chunks(piece)), read(&mut std::iter::once(&file[..])));
    }

    #[test]
    fn a_capture_is_read_as_it_was_written(
        packets in vec((0u64..u64::from(u32::MAX) * 1_000_000_000, vec(any::<u8>(), 0..50), any::<u32>()), 0..10),
        link in 0u32..1_000,
        cut in 0usize..40,
    ) {
        let mut file = [0xa1b2_3c4d, 0x0004_0002, 0, 0, 65_535, link].map(u32::to_le_bytes).concat();
        for (at, bytes, original) in &packets {
            let [seconds, part] = [at / 1_000_000_000, at % 1_000_000_000].map(|part| part as u32);
            file.extend([seconds, part, bytes.len() as u32, *original].map(u32::to_le_bytes).concat());
            file.extend_from_slice(bytes);
        }
        let is = |found: &Packet<'_>, n: usize| {
            let (at, bytes, original) = &packets[n];
            found.at == Time::from_nanos(*at) && found.bytes == bytes && found.original == *original
        };
        let mut whole = Stream::of(&file);
        for n in 0..packets.len() {
            let found = whole.packet().expect("a pcap file").expect("a packet");
            prop_assert!(found.on.link == link && is(&found, n), "{found:?}");
        }
        prop_assert_eq!(whole.packet(), Ok(None));
        prop_assert_eq!(whole.finish(), Ok(false));
        // A cut file gives a prefix, without an error.
        let cut = &file[..file.len() - cut.min(file.len() - 24)];
        let (mut prefix, mut count) = (Stream::of(cut), 0);
        while let Some(packet) = prefix.packet().expect("cut, not damaged") {
            prop_assert!(is(&packet, count), "{packet:?}");
            count += 1;
        }
    }
}
