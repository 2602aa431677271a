//! Windows worked by hand.

use super::*;
use crate::tcp::test_signals::{MSS, ack, cwnd, setup};
use lasthop_units::brief::at;

fn copa(params: Params) -> Copa {
    Copa::new(&setup(), params).expect("in range")
}

/// A packet acknowledged at that time, after this round trip, of a smoothed one of 100 ms.
fn acked(copa: &mut Copa, ms: u64, rtt: u64) -> f64 {
    let (rtt, srtt) = (Some(Span::from_millis(rtt)), Some(Span::from_millis(100)));
    copa.sense(at(ms), &Signal::Ack(Ack { rtt, srtt, ..ack(1, 10) }));
    copa.cwnd
}

/// A flow out of slow start, with this window over a path of 100 ms.
fn settled(packets: f64) -> Copa {
    let mut copa = copa(Params::default());
    acked(&mut copa, 0, 100);
    (copa.cwnd, copa.starting) = (packets, false);
    copa.velocity = Velocity::begun(at(0), packets);
    copa
}

#[test]
fn slow_start_doubles_until_the_queue_is_that_of_the_target() {
    let mut copa = copa(Params::default());
    for _ in 0..10 {
        acked(&mut copa, 100, 100);
    }
    assert_eq!(cwnd(&copa), MSS * 20);
    assert_eq!(copa.decide(at(0)).why, Why::SlowStart);
    // 20 packets: 2 of them queued, which is the target, are 20 d = 2 (100 + d), d = 11.1 ms.
    assert_eq!(acked(&mut copa, 200, 111), 21.0);
    assert_eq!(copa.decide(at(0)).why, Why::SlowStart);
    // 21 * 11 / 111 = 2.08, which is above it, once 100 ms is no standing round trip any more.
    let after = acked(&mut copa, 300, 111);
    assert_eq!(copa.decide(at(0)).why, Why::CongestionAvoidance);
    assert!((after - (21.0 - 2.0 / 21.0)).abs() < 1e-12, "{after}");
}

#[test]
fn an_acked_packet_moves_the_window_by_v_over_delta_cwnd() {
    // 10 packets, 200 ms of which 100 ms are queued: 5 are, where 2 should be.
    let mut copa = settled(10.0);
    assert_eq!(acked(&mut copa, 60, 200), 10.0 - 2.0 / 10.0);
    // 100 ms later the standing round trip has none queued.
    let before = copa.cwnd;
    assert_eq!(acked(&mut copa, 99, 100), before + 2.0 / before);
    // Half of delta moves twice as far.
    let mut other = settled(10.0);
    other.mode = Mode::new(0.25, true);
    assert_eq!(acked(&mut other, 60, 200), 10.0 - 4.0 / 10.0);
}

#[test]
fn velocity_doubles_after_three_rtts_and_resets_on_a_turn() {
    let mut velocity = Velocity::begun(at(0), 10.0);
    let srtt = Span::from_millis(100);
    let mut values = Vec::new();
    for round in 1..=6u64 {
        velocity.towards(Way::Up);
        velocity.on_ack(at(round * 100), srtt, 10.0 + round as f64);
        values.push(velocity.value);
    }
    // The first shows the way; from the fourth on it doubles.
    assert_eq!(values, [1.0, 1.0, 1.0, 2.0, 4.0, 8.0]);
    velocity.towards(Way::Down);
    assert_eq!(velocity.value, 1.0);
}

#[test]
fn no_step_more_than_doubles_the_window_in_a_round_trip() {
    let mut copa = settled(10.0);
    copa.velocity.value = 1e9;
    // v = delta cwnd: a packet moves it by one.
    assert_eq!(acked(&mut copa, 10, 100), 11.0);
}

#[test]
fn unused_windows_do_not_grow_and_the_floor_is_two_packets() {
    let mut copa = settled(10.0);
    let idle = Ack { rtt: Some(Span::from_millis(100)), cwnd_limited: false, ..ack(1, 2) };
    copa.sense(at(10), &Signal::Ack(idle));
    assert_eq!(copa.cwnd, 10.0);
    let mut copa = settled(2.1);
    for n in 0..10 {
        acked(&mut copa, 200 + n, 10_000);
    }
    assert_eq!(copa.cwnd, 2.0);
}

#[test]
fn losses_leave_the_window_and_a_timeout_starts_again() {
    let mut copa = settled(10.0);
    copa.sense(at(1), &Signal::Loss(crate::tcp::test_signals::loss(9)));
    assert_eq!((copa.cwnd, copa.starting), (10.0, false));
    copa.sense(at(1), &Signal::Timeout(crate::tcp::test_signals::loss(0)));
    assert_eq!((copa.cwnd, copa.starting), (2.0, true));
}

#[test]
fn the_pace_is_twice_the_window_in_a_standing_round_trip() {
    let copa = settled(10.0);
    // 10 kB in 100 ms are 800 kbit/s.
    assert_eq!(copa.decide(at(0)).pacing, Some(Rate::from_bps(1_600_000)));
}

#[test]
fn impossible_parameters_are_refused_by_name() {
    let refused = |delta| Copa::new(&setup(), Params { delta, ..Params::default() }).expect_err("refused").to_string();
    assert_eq!(refused(0.0), "delta = 0 must be above 0 and at most 10");
    assert!(refused(f64::NAN).contains("delta"));
}
