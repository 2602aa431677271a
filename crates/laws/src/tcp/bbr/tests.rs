use super::*;
use crate::tcp::test_signals::{MSS, ack, setup};
use lasthop_signals::DeliverySample;

const RTT: Span = Span::from_millis(20);

/// A path of `rate` and 20 ms that never queues: each round delivers exactly what the rate allows.
struct Path {
    law: Bbr,
    now: Time,
    delivered: Bytes,
}

impl Path {
    fn new() -> Path {
        Path { law: Bbr::new(setup()), now: Time::ZERO, delivered: Bytes::ZERO }
    }

    /// A round at `rate`, in ten ACKs; the law sees `rtt`.
    fn round(&mut self, rate: Rate, rtt: Span) {
        let prior = self.delivered;
        for _ in 0..10 {
            self.now += RTT / 10;
            let part = rate.bytes_in(RTT / 10);
            self.delivered += part;
            let mut signal = ack(1, 10);
            signal.newly_delivered = part;
            signal.newly_acked = part;
            signal.delivered = self.delivered;
            signal.prior_in_flight = rate.bytes_in(rtt);
            signal.in_flight = rate.bytes_in(rtt);
            signal.rtt = Some(rtt);
            signal.srtt = Some(rtt);
            signal.min_rtt = Some(rtt);
            signal.delivery = Some(DeliverySample {
                rate,
                interval: rtt,
                prior_delivered: prior,
                sent_at: self.now.saturating_sub(rtt),
                app_limited: false,
            });
            self.law.sense(self.now, &Signal::Ack(signal));
        }
    }

    fn decision(&self) -> Decision {
        self.law.decide(self.now)
    }
}

#[test]
fn startup_paces_at_the_high_gain_and_ends_when_growth_does() {
    let mut path = Path::new();
    for mbit in [5, 10, 20, 40] {
        path.round(Rate::from_mbit(mbit), RTT);
    }
    assert_eq!(path.decision().why, Why::BbrStartup);
    let pacing = path.decision().pacing.expect("always paces");
    let wanted = Rate::from_mbit(40).scale(2.885 * 0.99);
    assert!(pacing.as_bps().abs_diff(wanted.as_bps()) <= 1, "{pacing} for {wanted}");
    (0..3).for_each(|_| path.round(Rate::from_mbit(40), RTT));
    assert_ne!(path.decision().why, Why::BbrStartup);
    (0..2).for_each(|_| path.round(Rate::from_mbit(40), RTT));
    assert_eq!(path.decision().why, Why::BbrProbeBw);
}

#[test]
fn probing_allows_two_bdp_and_three_bursts() {
    let mut path = Path::new();
    for mbit in [5, 10, 20, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40] {
        path.round(Rate::from_mbit(mbit), RTT);
    }
    // BDP 100 segments; a burst at 0.99 * 40 Mbit/s (gain 1) is 4 segments, up to 6 at gain 1.25; ACK clumps add 8.
    let cwnd = path.decision().cwnd.expect("sets a window").upper;
    assert!(cwnd >= MSS * 212 && cwnd <= MSS * 236, "{cwnd}");
}

#[test]
fn ten_seconds_without_a_lower_rtt_start_a_four_segment_probe() {
    let mut path = Path::new();
    for mbit in [5, 10, 20, 40, 40, 40, 40, 40, 40] {
        path.round(Rate::from_mbit(mbit), RTT);
    }
    (0..510).for_each(|_| path.round(Rate::from_mbit(40), Span::from_millis(25)));
    assert_eq!(path.decision().why, Why::BbrProbeRtt);
    assert_eq!(path.decision().cwnd.expect("sets a window").upper, MSS * 4);
    // With little in flight for 200 ms and a round it goes back to where it was.
    let rounds = (1..100).find(|_| {
        path.round(Rate::from_bps(1_600_000), RTT);
        path.decision().why != Why::BbrProbeRtt
    });
    assert!((11..=13).contains(&rounds.expect("ends")), "{rounds:?}");
    assert_eq!(path.decision().why, Why::BbrProbeBw);
    assert!(path.decision().cwnd.expect("sets a window").upper > MSS * 200);
}

#[test]
fn pacing_starts_from_the_initial_window_and_the_first_rtt() {
    let mut law = Bbr::new(setup());
    let mut first = ack(0, 0);
    first.newly_acked = Bytes::ZERO;
    first.srtt = Some(RTT);
    first.rtt = Some(RTT);
    law.sense(Time::ZERO, &Signal::Ack(first));
    // 10 segments of 1000 octets in 20 ms: 4 Mbit/s, times 2.885, less 1 %.
    let pacing = law.decide(Time::ZERO).pacing.expect("always paces");
    assert!(pacing.as_bps().abs_diff(11_424_600) <= 1, "{pacing}");
}
