//! Two ends with clocks that differ: what is found of the difference, and delays without it.

use lasthop_transport::tunnel::{Config, Delay, Endpoint};
use lasthop_units::{Bytes, Rate, Seed, Span, Time};
use proptest::prelude::*;
use rand::RngExt;
use std::collections::BTreeMap;

/// What the station finds: the offset that it applies and its bound, and the delays of the last second.
struct Found {
    ahead: i64,
    error: Span,
    delays: Vec<Told>,
}

/// A delay that the station tells.
struct Told {
    told: Span,
    truly: Span,
    /// The offset that the station applied just before and just after the packet: it moves when a better sample comes.
    applied: [(i64, Span); 2],
}

/// To which end, number, when it left, packet.
type UnderWay = (usize, u64, Time, Vec<u8>);

/// Runs both ends for five seconds, the proxy's clock `ahead` ms ahead, with at least `down` and `up` on the way and up to `jitter` more.
fn run(ahead: i64, down: Span, up: Span, jitter: Span, seed: u64) -> Found {
    let mut ends = [Endpoint::new(Config::station()), Endpoint::new(Config::proxy())];
    ends[1].set_pacing(Time::ZERO, Rate::from_mbit(10), Bytes::new(1 << 20));
    let stream = ends[0].open("host", 80);
    let began = Time::from_nanos(10_000_000_000_000);
    let by_clock = |end: usize, now: Time| {
        if end == 0 { now } else { Time::from_nanos(now.as_nanos().saturating_add_signed(ahead * 1_000_000)) }
    };
    let mut random = Seed(seed).stream("path");
    let mut under_way: BTreeMap<(Time, u64), UnderWay> = BTreeMap::new();
    let (mut packet, mut count, mut now, mut pinged) = (Vec::new(), 0, began, began);
    let mut delays = Vec::new();
    while now.since(began) < Span::from_secs(5) {
        for (end, one) in ends.iter_mut().enumerate() {
            while let Some(departure) = one.poll_transmit(by_clock(end, now), &mut packet) {
                let most = jitter.as_nanos();
                let least = if end == 1 { down } else { up };
                let delay = least + Span::from_nanos(random.random_range(0..=most));
                count += 1;
                under_way.insert((now + delay, count), (1 - end, departure.number, now, packet.clone()));
            }
        }
        now += Span::from_micros(500);
        while let Some(entry) = under_way.first_entry().filter(|entry| entry.key().0 <= now) {
            let (to, number, left, packet) = entry.remove();
            let offset =
                |end: &Endpoint| end.clock_offset(by_clock(to, now)).map_or((0, Span::MAX), |o| (o.ahead, o.error));
            let before = offset(&ends[to]);
            ends[to].on_packet(by_clock(to, now), number, &packet).expect("an honest peer");
            let applied = [before, offset(&ends[to])];
            let late = now.since(began) > Span::from_secs(4);
            for delay in ends[to].delays().filter(|_| to == 0 && late) {
                if let Delay::Hop(span) = delay {
                    delays.push(Told { told: span, truly: now.since(left), applied });
                }
            }
        }
        for (end, one) in ends.iter_mut().enumerate() {
            one.on_timeout(by_clock(end, now));
            while one.next_event().is_some() {}
        }
        if now.since(pinged) >= Span::from_millis(100) {
            pinged = now;
            ends[0].ping();
            let there = by_clock(1, now);
            ends[1].write(stream, b"something", there);
        }
    }
    let found = ends[0].clock_offset(now).expect("acknowledgements came");
    Found { ahead: found.ahead, error: found.error, delays }
}

/// What must hold of a run with clocks that differ by `ahead` ms.
fn check(ahead: i64, [down, up, jitter]: [u64; 3], seed: u64) -> Result<(), TestCaseError> {
    let us = Span::from_micros;
    let found = run(ahead, us(down), us(up), us(jitter), seed);
    let off = |applied: i64| applied.abs_diff(ahead * 1_000_000);
    // What is applied and the truth both lie within half the round trip of the best sample, and each look takes up to 0.5 ms.
    prop_assert!(off(found.ahead) <= found.error.as_nanos(), "{} ns off, bound {}", off(found.ahead), found.error);
    prop_assert!(found.error <= us(down + up) + us(1_600) + us(jitter), "{}", found.error);
    prop_assert!(found.delays.len() > 5);
    for Told { told, truly, applied } in found.delays {
        let wrong = told.as_nanos().abs_diff(truly.as_nanos());
        for (ahead, error) in applied {
            prop_assert!(off(ahead) <= error.as_nanos(), "{} ns off, bound {}", off(ahead), error);
        }
        let most = applied.map(|(ahead, _)| off(ahead)).into_iter().max().unwrap_or(0);
        prop_assert!(wrong <= most + 1000, "{} instead of {}, {} ns off", told, truly, most);
    }
    Ok(())
}

#[test]
fn an_offset_may_improve_after_a_delay_was_told() -> Result<(), TestCaseError> {
    // A better sample comes in the last second: delays told before it are right to what was applied then.
    check(-7, [1_854, 408, 5_496], 15_951_253_813_378_613_605)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn the_clock_offset_and_delays_are_within_their_bound(
        ahead in -3_600_000i64..3_600_000, down in 100u64..8_000, up in 100u64..8_000, jitter in 0u64..10_000, seed: u64,
    ) {
        check(ahead, [down, up, jitter], seed)?;
    }

    #[test]
    fn delays_between_clocks_that_agree_are_left_as_they_are(
        down in 100u64..8_000, up in 100u64..8_000, jitter in 0u64..10_000, seed: u64,
    ) {
        let us = Span::from_micros;
        let found = run(0, us(down), us(up), us(jitter), seed);
        prop_assert_eq!(found.ahead, 0);
        prop_assert!(found.delays.iter().all(|delay| delay.told == delay.truly));
    }
}
