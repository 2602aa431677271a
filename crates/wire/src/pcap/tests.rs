use super::*;

type Came = (Time, Vec<u8>, u32, usize);

/// All packets of a file, and how its reading ended.
fn read(bytes: &[u8]) -> (Vec<Came>, Result<bool, Error>) {
    let (mut stream, mut came) = (Stream::of(bytes), Vec::new());
    loop {
        match stream.packet() {
            Ok(Some(Packet { at, bytes, original, interface, .. })) => {
                came.push((at, bytes.to_vec(), original, interface))
            }
            Ok(None) => return (came, stream.finish()),
            Err(error) => return (came, Err(error)),
        }
    }
}

fn classic(magic: u32, big_endian: bool, extra: usize) -> Vec<u8> {
    let word = |value: u32| if big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut bytes = Vec::new();
    for value in [magic, 0x0002_0004, 0, 0, 128, LINK_RADIOTAP] {
        bytes.extend_from_slice(&word(value));
    }
    for n in 0..2u8 {
        for value in [5, 7, 3, 1_000] {
            bytes.extend_from_slice(&word(value));
        }
        bytes.extend(std::iter::repeat_n(0, extra));
        bytes.extend_from_slice(&[n, n, n]);
    }
    bytes
}

/// A block of pcapng; the body is padded.
fn block(kind: u32, body: &[u8], big_endian: bool) -> Vec<u8> {
    let word = |value: u32| if big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
    let body = [body, &[0; 3][..body.len().next_multiple_of(4) - body.len()]].concat();
    let len = word(12 + body.len() as u32);
    [&word(kind)[..], &len, &body, &len].concat()
}

const SHB: u32 = 0x0a0d_0d0a;

fn section(big_endian: bool) -> Vec<u8> {
    let word = |value: u32| if big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
    block(SHB, &[&word(0x1a2b_3c4d)[..], &[0; 4], &[0xff; 8]].concat(), big_endian)
}

/// An interface with a clock of so many ticks (as the format codes them) and an offset of one second.
fn interface(link: u16, resolution: u8) -> Vec<u8> {
    let name = [2, 0, 4, 0, b'm', b'o', b'n', b'0'];
    let clock = [9, 0, 1, 0, resolution, 0, 0, 0, 14, 0, 8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    block(1, &[&link.to_le_bytes()[..], &[0, 0], &128u32.to_le_bytes(), &name, &clock].concat(), false)
}

fn packet(interface: u32, ticks: u32, bytes: &[u8]) -> Vec<u8> {
    let head = [interface, 0, ticks, bytes.len() as u32, 1_000].map(u32::to_le_bytes).concat();
    block(6, &[&head[..], bytes].concat(), false)
}

#[test]
fn both_byte_orders_and_all_variants_of_pcap_are_read() {
    for (magic, extra, fraction) in [(0xa1b2_c3d4, 0, 7_000), (0xa1b2_3c4d, 0, 7), (0xa1b2_cd34, 8, 7_000)] {
        for big_endian in [false, true] {
            if big_endian && extra > 0 {
                continue;
            }
            let bytes = classic(magic, big_endian, extra);
            let mut stream = Stream::of(&bytes);
            stream.packet().expect("a pcap file").expect("a packet");
            let head = &stream.interfaces()[0];
            assert_eq!((head.link, head.snap), (LINK_RADIOTAP, 128));
            let at = Time::from_nanos(5_000_000_000 + fraction);
            let (packets, ended) = read(&bytes);
            assert_eq!((packets.len(), &packets[1], ended), (2, &(at, vec![1, 1, 1], 1_000, 0), Ok(false)));
        }
    }
}

#[test]
fn a_cut_file_is_read_to_the_cut() {
    let ng = [section(false), interface(127, 6), packet(0, 7, &[1, 2]), packet(0, 8, &[3])].concat();
    for (bytes, packets) in [(classic(0xa1b2_c3d4, false, 0), 2), (ng, 2)] {
        for cut in [1, 3, 10] {
            let (found, ended) = read(&bytes[..bytes.len() - cut]);
            assert_eq!((found.len(), ended), (packets - 1, Ok(true)));
        }
        assert_eq!(read(&bytes).1, Ok(false));
    }
}

#[test]
fn what_is_no_capture_or_damaged_is_named() {
    assert_eq!(read(b"#!/bin/sh").1, Err(Error::PcapMagic(0x2321_2f62)));
    assert_eq!(read(&[1]).1, Err(Error::Truncated { needed: 24, got: 1 }));
    assert_eq!(read(&section(false)).1, Err(Error::PcapngEmpty));
    let mut wild = classic(0xa1b2_c3d4, false, 0);
    wild[32..36].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(read(&wild).1, Err(Error::PcapLength { packet: 1, .. })));
    let stranger = [section(false), interface(127, 6), packet(3, 7, &[1])].concat();
    assert_eq!(read(&stranger).1, Err(Error::PcapngInterface { packet: 1, interface: 3 }));
    // Its packet is longer than the block: no more octets would help.
    let mut liar = [section(false), interface(127, 6), packet(0, 7, &[1, 2, 3, 4])].concat();
    let at = liar.len() - 16;
    liar[at..at + 4].copy_from_slice(&99u32.to_le_bytes());
    assert_eq!(read(&liar).1, Err(Error::PcapngBlock { block: 3 }));
    let short = [section(false), 6u32.to_le_bytes().to_vec(), 4u32.to_le_bytes().to_vec()].concat();
    assert_eq!(read(&short).1, Err(Error::PcapngBlock { block: 2 }));
}

#[test]
fn each_interface_of_a_pcapng_has_its_link_type_and_its_clock() {
    let ticks = 3 << 20;
    let file = [
        section(false),
        interface(127, 9),
        // A power of two.
        interface(1, 0x80 | 20),
        packet(0, 5, &[1, 2, 3]),
        packet(1, ticks, &[4]),
        // A packet without a time, and a block that nobody knows.
        block(3, &[&2u32.to_le_bytes()[..], &[5, 5]].concat(), false),
        block(0x7000_0000, &[9; 5], false),
        // Another section begins to count interfaces anew, here in the other byte order.
        section(true),
        block(1, &[0, 127, 0, 0, 0, 0, 0, 128], true),
        block(6, &[[0, 0, 2, 1, 1].map(u32::to_be_bytes).concat(), vec![6]].concat(), true),
    ]
    .concat();
    let mut stream = Stream::of(&file);
    let mut came = Vec::new();
    while let Some(packet) = stream.packet().expect("a pcapng file") {
        came.push((packet.at.as_nanos(), packet.bytes.to_vec(), packet.interface));
    }
    assert_eq!(came, [(1_000_000_005, vec![1, 2, 3], 0), (4_000_000_000, vec![4], 1), (2_000, vec![6], 2)]);
    let links: Vec<_> = stream.interfaces().iter().map(|one| (one.link, one.name.as_deref())).collect();
    assert_eq!(links, [(127, Some("mon0")), (1, Some("mon0")), (127, None)]);
    assert_eq!((stream.untimed(), stream.finish()), (1, Ok(false)));
}
