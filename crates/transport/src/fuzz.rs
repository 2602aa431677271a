//! What must hold on any bytes, a function for each fuzz target of this crate. A function panics
//! where it does not hold. `fuzz/README.md` says how they are run.

use crate::tunnel::{Config, Endpoint, Event};
use lasthop_laws::atp::{Average, Params, Rate as PathRate};
use lasthop_laws::{pbe, tcp};
use lasthop_units::{Bytes, Rate, Seed, Span, Time};
use lasthop_wire::proxy::{connect, socks5};
use lasthop_wire::tunnel::{Datagram, Grant, MAX_PACKET, Wish, open_packet};

/// Datagrams and packets of the tunnel, requests to a proxy, and packets to an endpoint: nothing
/// panics, frames and the handshake's payloads mean the same when they are written again, packet
/// numbers are below 2^62, and no packet that an endpoint sends is too long.
///
/// The bytes are read as each of these. To an endpoint they are packets, each behind its length
/// (2 octets).
pub fn tunnel(bytes: &[u8]) {
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
}

/// Feeds an end packets, and lets it answer.
fn feed(mut end: Endpoint, bytes: &[u8]) {
    let (mut now, mut out) = (Time::ZERO, Vec::new());
    let stream = end.open("host", 80);
    end.write(stream, &[7; 5_000], now);
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

#[cfg(test)]
#[path = "../../../fuzz/seeds.rs"]
mod seeds;

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_signals::{CellCapacity, Node, StationFeedback};
    use lasthop_wire::tunnel::{
        AckRange, Data, Frame, OpenResult, SessionId, challenge_header, packet_header, sealed_header,
    };

    fn packet(frames: &[Frame<'_>]) -> Vec<u8> {
        let mut out = packet_header(Time::from_nanos(1_000_000)).to_vec();
        frames.iter().for_each(|frame| frame.encode(&mut out).expect("short"));
        out
    }

    /// Packets to an endpoint.
    fn packets(packets: &[Vec<u8>]) -> Vec<u8> {
        let len = |packet: &Vec<u8>| u16::try_from(packet.len()).expect("short").to_be_bytes();
        packets.iter().flat_map(|packet| [&len(packet)[..], packet].concat()).collect()
    }

    #[test]
    fn tunnel() {
        let (rate, delay, age) = (Rate::from_mbit(20), Span::from_micros(300), Span::from_micros(90));
        let cell = CellCapacity { available: rate, fair: rate, elsewhere: false, restart: true, coarse: false };
        let data =
            |stream, offset, end| Frame::Data(Data { stream, offset, age, end, bytes: b"HTTP/1.1 200 OK\r\n\r\n" });
        let ack = |first, last| Frame::Ack { delay, ranges: vec![AckRange { first, last }] };
        let ranges = vec![AckRange { first: 8, last: 9 }, AckRange { first: 3, last: 5 }];
        let frames = packet(&[
            Frame::Ping,
            Frame::Ack { delay, ranges },
            data(1, 0, true),
            Frame::Open { stream: 3, host: "example.org", port: 443 },
            Frame::Opened { stream: 2, result: OpenResult::Connected },
            Frame::Window { stream: 2, limit: 1 << 20 },
            Frame::Budget { limit: 1 << 22 },
            Frame::Reset { stream: 3, sent: 40 },
            Frame::PathChallenge([1; 8]),
            Frame::PathAnswer([2; 8]),
            Frame::Probe,
            Frame::PathDelay { average: delay, epoch: Span::from_millis(40) },
            Frame::Cell(cell),
            Frame::Close,
        ]);
        let slot = StationFeedback::empty(Node(7), 1, Time::ZERO, Time::from_nanos(40_000_000));
        let feedback = packet(&[Frame::Feedback(StationFeedback { frames: 2, packets: 9, received: 9, ..slot })]);
        // As of an end that is answered: the stream that it has opened, and one that is opened to
        // it.
        let session = packets(&[
            packet(&[Frame::Budget { limit: 1 << 22 }, Frame::PathChallenge([1; 8])]),
            packet(&[
                Frame::Opened { stream: 2, result: OpenResult::Connected },
                Frame::Window { stream: 2, limit: 1 << 20 },
                ack(0, 0),
            ]),
            packet(&[Frame::Open { stream: 1, host: "example.org", port: 443 }, data(1, 0, false), ack(0, 2)]),
            packet(&[data(1, 38, true), data(2, 0, false), Frame::Cell(cell)]),
            packet(&[data(1, 19, false), Frame::Reset { stream: 2, sent: 19 }, ack(0, 3)]),
        ]);
        let gateways = packets(&[
            packet(&[Frame::Probe, Frame::Budget { limit: 1 << 24 }]),
            packet(&[Frame::PathDelay { average: delay, epoch: Span::from_millis(40) }, ack(0, 1)]),
            packet(&[Frame::Window { stream: 2, limit: 1 << 20 }, data(1, 0, true)]),
        ]);
        let sealed = [&sealed_header(7, 1 << 40)[..], &[5; 40]].concat();
        let challenge = [&challenge_header(7)[..], &[3; 64]].concat();
        let wish = Wish { number: 7, challenge: [3; 32], continues: Some(SessionId(9)) };
        let seeds = [
            ("frames", frames),
            ("feedback", feedback),
            ("session", session),
            ("gateways", gateways),
            ("sealed", sealed),
            ("challenge", challenge),
            ("wish", wish.encode().to_vec()),
            ("grant", Grant { number: 7, continued: true }.encode().to_vec()),
            ("socks-greeting", vec![5, 2, 0, 2]),
            ("socks-request", [&[5, 1, 0, 3, 11], &b"example.org\x01\xbb"[..]].concat()),
            ("connect", b"CONNECT example.org:443 HTTP/1.1\r\nhost: example.org:443\r\n\r\n".to_vec()),
        ];
        super::seeds::run("tunnel", super::tunnel, &seeds);
    }
}
