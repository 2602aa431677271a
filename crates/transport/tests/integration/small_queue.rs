//! What a connection leaves to its host's queue under a limit, and without one.

use crate::harness;

use harness::net::law_called;
use lasthop_laws::{Bounds, Decision, SenderLaw, Why};
use lasthop_signals::Signal;
use lasthop_transport::{Config, Connection, SmallQueue};
use lasthop_units::{Bytes, Rate, Span, Time};

const MSS: Bytes = Bytes::new(1448);
const PACKET: Bytes = Bytes::new(1500);
const RTT: Span = Span::from_millis(20);

/// Asks for the same thing forever.
#[derive(Clone)]
struct Fixed {
    pacing: Option<Rate>,
    why: Why,
}

impl SenderLaw for Fixed {
    fn sense(&mut self, _now: Time, _signal: &Signal) {}

    fn decide(&self, _now: Time) -> Decision {
        let cwnd = Some(Bounds { lower: MSS, upper: MSS * 40 });
        Decision { cwnd, pacing: self.pacing, ..Decision::unlimited(self.why) }
    }
}

/// A connection that stands, with a round trip of 20 ms and endless data, and the moment at which it does.
fn standing(pacing: Option<Rate>, why: Why, limit: Option<SmallQueue>) -> (Connection, Time) {
    let config = Config::default();
    let mut a = Connection::connect(Time::ZERO, config, Box::new(Fixed { pacing, why }));
    let mut b = Connection::accept(Time::ZERO, config, law_called("reno"));
    a.set_small_queue(limit);
    let syn = a.poll_transmit(Time::ZERO).expect("a SYN");
    let now = Time::ZERO + RTT;
    b.on_segment(now, &syn);
    let answer = b.poll_transmit(now).expect("a SYN and an ACK");
    a.on_segment(now, &answer);
    let ack = a.poll_transmit(now).expect("an ACK");
    b.on_segment(now, &ack);
    a.write_forever();
    (a, now)
}

/// Hands the host what there is; how many packets that was.
fn hand_over(connection: &mut Connection, now: Time) -> u64 {
    let mut packets = 0;
    while packets < 2000 && connection.poll_transmit(now).is_some() {
        connection.on_queued(PACKET);
        packets += 1;
    }
    packets
}

#[test]
fn without_a_limit_the_window_leaves_at_once() {
    let (mut connection, now) = standing(None, Why::CongestionAvoidance, None);
    assert_eq!(hand_over(&mut connection, now), 40);
}

#[test]
fn the_host_holds_a_time_at_the_rate_of_the_window() {
    // 40 segments of 1448 octets in 20 ms are 2.896 MB/s; 1/128 s of 1.2 times that is 27 150 octets, or 18.1 packets.
    for (why, packets) in [(Why::CongestionAvoidance, 19), (Why::SlowStart, 31)] {
        let (mut connection, now) = standing(None, why, Some(SmallQueue::WIFI));
        assert_eq!(hand_over(&mut connection, now), packets, "{why:?}");
        assert_eq!(connection.queued(), PACKET * packets);
        assert_eq!(hand_over(&mut connection, now), 0);
        // What the host gets rid of makes room for as much.
        connection.on_taken(PACKET * 6);
        assert_eq!(hand_over(&mut connection, now), 6);
    }
}

#[test]
fn the_host_holds_two_packets_and_one_at_the_least() {
    let limit = SmallQueue { time: Span::from_nanos(1), cap: Bytes::new(1 << 20) };
    let (mut connection, now) = standing(None, Why::CongestionAvoidance, Some(limit));
    assert_eq!(hand_over(&mut connection, now), 3);
}

#[test]
fn the_cap_holds_who_is_not_paced() {
    let limit = SmallQueue { time: Span::from_secs(1), cap: PACKET * 5 };
    let (mut connection, now) = standing(None, Why::CongestionAvoidance, Some(limit));
    assert_eq!(hand_over(&mut connection, now), 6);
    let (mut connection, now) = standing(Some(Rate::MAX), Why::CongestionAvoidance, Some(limit));
    assert_eq!(hand_over(&mut connection, now), 40);
}

#[test]
fn a_held_back_connection_goes_on_when_its_host_has_room() {
    let limit = SmallQueue { time: Span::from_nanos(1), cap: Bytes::new(1 << 20) };
    let (mut connection, now) = standing(None, Why::CongestionAvoidance, Some(limit));
    let mut packets = hand_over(&mut connection, now);
    while packets < 40 {
        connection.on_taken(PACKET);
        let more = hand_over(&mut connection, now);
        assert_eq!(more, 1, "after {packets}");
        packets += more;
    }
    connection.on_taken(PACKET);
    assert_eq!(hand_over(&mut connection, now), 0, "the window is full");
}
