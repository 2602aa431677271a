//! One bulk flow under Vegas over 10 Mbit/s and 20 ms: what it keeps in the queue of the bottleneck.

use crate::harness;

use harness::World;
use lasthop_laws::tcp::vegas::Params;
use lasthop_laws::tcp::{Setup, Vegas};
use lasthop_radio::wired;
use lasthop_transport::Config;
use lasthop_units::{Bytes, Rate, Seed, Span, Time};

const PATH: wired::Params =
    wired::Params { rate: Rate::from_mbit(10), delay: Span::from_millis(10), queue_packets: 100 };

/// A packet of 1500 octets on the link, in milliseconds.
const PACKET_MS: f64 = 1.2;

/// Twenty seconds under `params`: goodput in Mbit/s of the last ten, packets queued (mean, most) and lost in them.
fn settled(params: Params) -> (f64, f64, f64, u64) {
    let config = Config::default();
    let setup = Setup::new(Bytes::new(u64::from(config.mss)), Seed(1).stream("sender"));
    let law = Box::new(Vegas::new(&setup, params).expect("valid"));
    let mut world = World::with_law(law, PATH, 1, config, config);
    world.sender.write_forever();
    let (half, end) = (Time::ZERO + Span::from_secs(10), Time::ZERO + Span::from_secs(20));
    world.run_until(half);
    let before = world.receiver.received();
    world.run_until(end);
    let goodput = Rate::of(world.receiver.received() - before, Span::from_secs(10)).expect("ten seconds");
    let (mean_ms, max_ms) = world.queue(half..end);
    (goodput.as_mbit_f64(), mean_ms / PACKET_MS, max_ms / PACKET_MS, world.log.dropped)
}

#[test]
fn vegas_keeps_alpha_to_beta_packets_queued_and_fills_the_link() {
    for params in [Params::default(), Params { alpha: 6, beta: 9, gamma: 2 }] {
        let (goodput, mean, most, dropped) = settled(params.clone());
        println!("{params:?}: {goodput:.2} Mbit/s, {mean:.2} packets queued, at most {most:.2}, {dropped} dropped");
        assert!(goodput > 10.0 * 1448.0 / 1500.0 * 0.99, "{goodput} Mbit/s");
        assert!(mean >= f64::from(params.alpha) - 0.5, "{mean} packets are less than alpha");
        assert!(mean <= f64::from(params.beta) + 0.5, "{mean} packets are more than beta");
        assert!(most <= f64::from(params.beta) + 2.0, "{most} packets at once");
        assert_eq!(dropped, 0);
    }
}
