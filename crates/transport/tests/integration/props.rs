//! Whatever the network does short of losing everything, the stream arrives whole, once and in order.

use crate::harness;

use harness::net::{Net, Network, Way, law_called};
use lasthop_laws::tcp::LAWS;
use lasthop_transport::Config;
use lasthop_units::{Bytes, Rate, Seed, Span, Time};
use lasthop_wire::tcp::Flags;
use proptest::prelude::*;
use rand::Rng;

/// What a network does to segments, each way.
#[derive(Clone, Debug)]
struct Abuse {
    seed: u64,
    /// Of 100 segments, how many are lost and how many doubled.
    lost: u64,
    doubled: u64,
    delay_ms: u64,
    /// Each segment is delayed by up to this much more, which reorders them.
    jitter_ms: u64,
    /// A middle box cuts the window to a random value of at least two segments, anew for every ACK.
    narrow: bool,
}

fn abuse() -> impl Strategy<Value = Abuse> {
    (any::<u64>(), 0u64..25, 0u64..15, 1u64..60, prop_oneof![Just(0), 1u64..5, 1u64..60], any::<bool>()).prop_map(
        |(seed, lost, doubled, delay_ms, jitter_ms, narrow)| Abuse { seed, lost, doubled, delay_ms, jitter_ms, narrow },
    )
}

fn network(abuse: Abuse) -> Network {
    let mut random = Seed(abuse.seed).stream("network");
    let mut scale = 0;
    Box::new(move |_, way, segment| {
        let mut draw = |below: u64| random.next_u64() % below;
        if way == Way::ToA && segment.flags.contains(Flags::SYN) {
            scale = segment.options.window_scale.unwrap_or(0);
        } else if way == Way::ToA && abuse.narrow {
            let least = (2 * 1448u16).div_ceil(1 << scale);
            segment.window = segment.window.min(least + draw(100) as u16);
        }
        let delay = |extra: u64| Span::from_micros(1000 * abuse.delay_ms + extra);
        let jitter = |draw: &mut dyn FnMut(u64) -> u64| draw(1000 * abuse.jitter_ms + 1);
        match draw(100) {
            x if x < abuse.lost => vec![],
            x if x < abuse.lost + abuse.doubled => vec![delay(jitter(&mut draw)), delay(jitter(&mut draw))],
            _ => vec![delay(jitter(&mut draw))],
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn every_octet_arrives_once_and_both_ends_close(
        abuse in abuse(),
        law in prop::sample::select(LAWS.iter().map(|law| law.name).collect::<Vec<_>>()),
        initial_seq in prop_oneof![any::<u32>(), u32::MAX - 200_000..=u32::MAX],
        len in prop_oneof![0u64..5_000, 0u64..400_000],
        read in prop_oneof![Just(None), (200_000u64..5_000_000).prop_map(Some)],
        small_buffer in any::<bool>(),
    ) {
        let a = Config { initial_seq, ..Config::default() };
        let mut b = Config { initial_seq: !initial_seq, read_rate: read.map(Rate::from_bps), ..Config::default() };
        if small_buffer {
            (b.rmem_default, b.rmem_max) = (Bytes::new(16_384), Bytes::new(32_768));
        }
        let mut net = Net::new(law_called(law), a, b, network(abuse));
        net.a.write(Bytes::new(len));
        net.a.close();
        // Nothing that the network does here may take longer: a stall shows as a timeout of this test.
        let end = Time::ZERO + Span::from_secs(900);
        net.run_until(end, |net| net.b.peer_closed());
        net.b.close();
        net.run_until(end, |net| net.a.is_closed() && net.b.is_closed());
        prop_assert!(!net.a.is_aborted() && !net.b.is_aborted(), "given up at {:?}", net.now);
        prop_assert!(net.a.is_closed() && net.b.is_closed(), "stalled: {:?} {:?}", net.a.stats(), net.b.stats());
        net.check_complete(Bytes::new(len));
        prop_assert_eq!(net.a.acked(), Bytes::new(len));
    }
}

#[test]
fn sequence_numbers_wrap_in_the_middle_of_a_transfer() {
    let a = Config { initial_seq: u32::MAX - 3_000_000, ..Config::default() };
    let b = Config { initial_seq: u32::MAX, ..Config::default() };
    let mut lost = 0;
    let network: Network = Box::new(move |_, _, segment| {
        lost += 1;
        if lost % 97 == 0 && segment.payload_len > 0 { vec![] } else { vec![Span::from_millis(10)] }
    });
    let mut net = Net::new(law_called("cubic"), a, b, network);
    net.a.write(Bytes::new(10_000_000));
    net.run_until(Time::ZERO + Span::from_secs(120), |net| net.b.received() == Bytes::new(10_000_000));
    net.check_complete(Bytes::new(10_000_000));
    assert_eq!(net.a.stats().timeouts, 0);
}
