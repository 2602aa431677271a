//! A stream arrives whole, once and in order, over a network that loses, reorders and doubles datagrams, whatever transport carries it.

use crate::harness;

use harness::abuse::{AT_ONCE, Abuse, LAWS, Law, Reader, ends, random_data, run, secs};
use lasthop_laws::atp::Variant;
use lasthop_units::Span;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

#[test]
fn four_megabytes_arrive_intact_for_any_transport_and_loss() {
    let data = random_data(4 << 20, 1);
    for law in LAWS {
        for lost in [0, 50, 200] {
            let abuse = Abuse { seed: 3, lost, doubled: 20, jitter: Span::from_millis(3), turned: 0 };
            let run = run(ends(law, 5), &data, abuse, AT_ONCE, secs(3_000));
            assert!(run.done, "{law:?} at {lost}: {} octets after {}", run.got.len(), run.took);
            assert!(run.got == data, "{law:?} at {lost}: other octets");
            let packets = data.len() as u64 / 1400;
            println!("{law:?} at {lost}: {} of {packets} sent again, {}", run.resent, run.took);
        }
    }
}

#[test]
fn what_is_short_or_empty_arrives_too() {
    for law in LAWS {
        for len in [0, 1, 1443, 1444, 1445, 5000] {
            let (data, abuse) = (random_data(len, 2), Abuse { seed: 4, lost: 100, ..Abuse::default() });
            let run = run(ends(law, 6), &data, abuse, AT_ONCE, secs(600));
            assert!(run.done && run.got == data, "{law:?}, {len} octets: {}", run.got.len());
        }
    }
}

#[test]
fn a_slow_reader_bounds_what_waits_and_what_is_sent() {
    let data = random_data(4 << 20, 7);
    // 100 kB/s, a twentieth of what the hop carries.
    let reader = Reader { most: 10_000, every: Span::from_millis(100) };
    for variant in [Variant::Default, Variant::Adaptive] {
        let run = run(ends(Law::Atp(variant), 8), &data, Abuse::default(), reader, secs(20));
        assert!(data.starts_with(&run.got) && run.got.len() > 1_500_000, "{variant:?}: {}", run.got.len());
        // The sender hears how long a packet takes the application, and follows: all would else wait but what was read.
        assert!(run.unread < 1_000_000, "{variant:?}: {} waited", run.unread);
        let late = run.left.iter().filter(|left| **left > secs(15)).count();
        // 14.44 ms a packet: 346 in five seconds.
        assert!(late < 400, "{variant:?}: {late} packets in five seconds");
    }
}

#[test]
fn a_flipped_bit_of_d_does_not_stop_or_speed_up_a_stream() {
    let runner = ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new_with_rng(runner, TestRng::from_seed(RngAlgorithm::ChaCha, &[9; 32]));
    let data = random_data(400_000, 3);
    let cases = (any::<u64>(), 0..3usize, 1u64..300, 0u64..100);
    let property = |(seed, law, turned, lost)| {
        let abuse = Abuse { seed, lost, turned, ..Abuse::default() };
        let run = run(ends(LAWS[law], 5), &data, abuse, AT_ONCE, secs(3_000));
        prop_assert!(run.done && run.got == data, "{:?}: {} octets after {}", LAWS[law], run.got.len(), run.took);
        // The least D that the law believes is 10 us, and a sender that wakes late catches up with a millisecond.
        let fastest = run.left.windows(202).map(|some| some[201].since(some[0])).min();
        prop_assert!(fastest.is_none_or(|fastest| fastest >= Span::from_millis(1)), "{:?}", fastest);
        Ok(())
    };
    runner.run(&cases, property).expect("holds");
}
