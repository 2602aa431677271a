//! What holds for every sender law, whatever it has been shown.

use lasthop_laws::tcp::{LAWS, Setup, by_name};
use lasthop_laws::{Decision, SenderLaw};
use lasthop_signals::{Ack, DeliverySample, FlowId, HopReport, Loss, Sent, Signal};
use lasthop_units::{Bytes, Rate, Seed, Span, Time};
use proptest::prelude::*;

const MSS: u64 = 1448;

fn subject(name: &str, seed: u64) -> Box<dyn SenderLaw> {
    by_name(name, Setup::new(Bytes::new(MSS), Seed(seed).stream("law"))).expect("a known law")
}

/// Amounts from nothing to a terabyte, small ones as likely as large ones.
fn amount() -> impl Strategy<Value = Bytes> {
    prop_oneof![Just(0), 1u64..3000, 1u64..10_000_000, 1u64..1 << 40].prop_map(Bytes::new)
}

fn span() -> impl Strategy<Value = Span> {
    prop_oneof![Just(0), 1u64..1_000_000, 1u64..1_000_000_000, 1u64..1_000_000_000_000].prop_map(Span::from_nanos)
}

fn sample() -> impl Strategy<Value = DeliverySample> {
    (0u64..1 << 40, span(), amount(), any::<bool>()).prop_map(|(bps, interval, prior_delivered, app_limited)| {
        DeliverySample { rate: Rate::from_bps(bps), interval, prior_delivered, sent_at: Time::ZERO, app_limited }
    })
}

fn ack() -> impl Strategy<Value = Signal> {
    let amounts = (amount(), amount(), amount(), amount(), amount(), amount());
    let rtts = (prop::option::of(span()), prop::option::of(span()), prop::option::of(span()));
    (
        amounts,
        rtts,
        prop::option::of(sample()),
        any::<bool>(),
        any::<bool>(),
        prop::sample::select(vec![536, MSS, 8960]),
    )
        .prop_map(|(amounts, rtts, delivery, cwnd_limited, in_recovery, mss)| {
            Signal::Ack(Ack {
                newly_delivered: amounts.0,
                newly_acked: amounts.1,
                newly_lost: amounts.2,
                rtt: rtts.0,
                min_rtt: rtts.1,
                srtt: rtts.2,
                prior_in_flight: amounts.3,
                in_flight: amounts.4,
                delivered: amounts.5,
                delivery,
                mss: Bytes::new(mss),
                cwnd_limited,
                in_recovery,
            })
        })
}

fn loss() -> impl Strategy<Value = Loss> {
    (amount(), amount(), amount(), amount()).prop_map(|(prior_in_flight, in_flight, lost, delivered)| Loss {
        prior_in_flight,
        in_flight,
        lost,
        delivered,
        mss: Bytes::new(MSS),
    })
}

fn signal() -> impl Strategy<Value = Signal> {
    prop_oneof![
        8 => ack(),
        4 => (amount(), amount(), any::<bool>(), any::<bool>()).prop_map(|(len, in_flight, retransmission, from_idle)| {
            Signal::Sent(Sent { len, in_flight, retransmission, from_idle })
        }),
        1 => loss().prop_map(Signal::Loss),
        1 => loss().prop_map(Signal::Timeout),
        1 => Just(Signal::Undone),
        1 => Just(Signal::Recovered),
        1 => Just(Signal::Wakeup),
        1 => Just(Signal::FlowGone(FlowId(3))),
        1 => Just(Signal::Hop(HopReport::default())),
    ]
}

fn check(name: &str, decision: &Decision, mss: Bytes) -> Result<(), TestCaseError> {
    let cwnd = decision.cwnd.expect("a TCP law sets a window");
    prop_assert!(cwnd.upper >= mss, "{name}: a window of {} with segments of {mss}", cwnd.upper);
    prop_assert!(cwnd.lower <= cwnd.upper);
    prop_assert!(decision.pacing.is_none_or(|rate| !rate.is_zero()), "{name}: paces at nothing");
    prop_assert!(decision.rwnd.is_none(), "{name}: a sender has no say in the receiver's window");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_history_leaves_a_usable_decision_that_is_pure_and_repeatable(
        name in prop::sample::select(LAWS.iter().map(|law| law.name).collect::<Vec<_>>()),
        seed: u64,
        history in prop::collection::vec((span(), signal()), 0..300),
    ) {
        let (mut law, mut twin) = (subject(name, seed), subject(name, seed));
        let (mut now, mut mss) = (Time::ZERO, Bytes::new(MSS));
        check(name, &law.decide(now), mss)?;
        for (gap, signal) in &history {
            now += *gap;
            law.sense(now, signal);
            match signal {
                Signal::Ack(ack) => mss = ack.mss,
                Signal::Loss(loss) | Signal::Timeout(loss) => mss = loss.mss,
                _ => {}
            }
            let decision = law.decide(now);
            check(name, &decision, mss)?;
            prop_assert_eq!(decision, law.decide(now), "deciding has no effect");
            twin.sense(now, signal);
            prop_assert_eq!(decision, twin.decide(now), "the same history gives the same decision");
        }
    }

    #[test]
    fn a_copy_decides_the_same_and_learns_on_its_own(
        name in prop::sample::select(LAWS.iter().map(|law| law.name).collect::<Vec<_>>()),
        seed: u64,
        before in prop::collection::vec((span(), signal()), 0..60),
        after in prop::collection::vec((span(), signal()), 1..60),
    ) {
        let (mut law, mut now) = (subject(name, seed), Time::ZERO);
        for (gap, signal) in &before {
            now += *gap;
            law.sense(now, signal);
        }
        let (untouched, mut copy, at_fork) = (law.clone(), law.clone(), now);
        let decided = law.decide(now);
        for (gap, signal) in &after {
            now += *gap;
            law.sense(now, signal);
            copy.sense(now, signal);
            prop_assert_eq!(law.decide(now), copy.decide(now), "the copy has learned the same");
        }
        prop_assert_eq!(untouched.decide(at_fork), decided, "what others learn is not this copy's");
    }
}
