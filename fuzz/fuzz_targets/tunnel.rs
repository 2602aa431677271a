//! Datagrams and packets of the tunnel, and requests to a proxy, of any bytes: nothing panics, what is understood survives
//! being written and read again, and an endpoint that is fed them stays within its limits.
#![no_main]

use lasthop_laws::atp::{Average, Params, Rate as PathRate};
use lasthop_laws::{pbe, tcp};
use lasthop_transport::tunnel::{Config, Endpoint, Event};
use lasthop_units::{Bytes, Rate, Seed, Span, Time};
use lasthop_wire::proxy::{connect, socks5};
use lasthop_wire::tunnel::{Datagram, Grant, MAX_PACKET, Wish, open_packet};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(Datagram::Sealed { number, .. }) = Datagram::parse(bytes) {
        assert!(number < 1 << 62);
    }
    assert!(Wish::decode(bytes).is_err() || Wish::decode(bytes).is_ok_and(|wish| wish.encode() == bytes));
    assert!(Grant::decode(bytes).is_err() || Grant::decode(bytes).is_ok_and(|grant| grant.encode() == bytes));
    let _ = (socks5::greeting(bytes), socks5::request(bytes), connect::request(bytes));
    if let Ok((_, frames)) = open_packet(bytes) {
        for frame in frames.flatten() {
            let mut again = vec![0; 8];
            frame.encode(&mut again).expect("it came out of a packet");
            let read: Vec<_> = open_packet(&again).expect("whole").1.collect();
            assert_eq!(read, [Ok(frame)]);
        }
    }
    let mut set = Endpoint::new(Config::proxy());
    set.set_pacing(Time::ZERO, Rate::from_mbit(100), Bytes::new(100_000));
    feed(set, bytes);
    let laws = (PathRate::new(Params::default()), Average::new(Params::default()));
    feed(Endpoint::new(Config::gateway(false)).with_path_pace(Box::new(laws.0), Box::new(laws.1)), bytes);
});

/// Feeds an end packets, and lets it answer.
fn feed(mut end: Endpoint, bytes: &[u8]) {
    let (mut now, mut out) = (Time::ZERO, Vec::new());
    let stream = end.open("host", 80);
    end.write(stream, &[7; 5_000], now);
    // Two octets of length before each packet.
    let mut rest = bytes;
    for number in 0.. {
        let Some((head, tail)) = rest.split_at_checked(2) else { return };
        let len = usize::from(u16::from_be_bytes([head[0], head[1]])).min(tail.len());
        let (packet, tail) = tail.split_at(len);
        rest = tail;
        now += Span::from_micros(700);
        let delay = Span::from_micros(u64::from(head[0]) << (head[1] % 32));
        if end.on_stamped_packet(now, number, packet, delay).is_err() {
            return;
        }
        end.on_timeout(now);
        while let Some(event) = end.next_event() {
            if let Event::Cell(_) = event {
                let setup = tcp::Setup::new(Bytes::new(1500), Seed(1).stream("law"));
                end.follow_cell(now, Box::new(pbe::Pbe::new(pbe::Params::default(), setup)));
            }
        }
        for _ in 0..64 {
            if end.poll_transmit(now, &mut out).is_none() {
                break;
            }
            assert!(out.len() <= MAX_PACKET);
        }
    }
}
