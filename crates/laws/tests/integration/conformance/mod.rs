//! What holds for every law of the registry, whatever it has been shown.

mod aggregation;
mod signals;

use lasthop_laws::tcp::Setup;
use lasthop_laws::{
    Choice, Decision, Entry, HopLaw, Place, ReceiverLaw, ReceiverSetup, SenderLaw, Settings, Transport, Value, registry,
};
use lasthop_signals::{FlowId, Node, Signal};
use lasthop_units::{Bytes, Seed, Span, Time};
use proptest::prelude::*;
use signals::{MSS, history};

/// A law of any kind.
#[derive(Clone)]
enum Subject {
    Sender(Box<dyn SenderLaw>),
    Hop(Box<dyn HopLaw>),
    Receiver(Box<dyn ReceiverLaw>),
}

impl Subject {
    fn new(entry: &'static Entry, seed: u64) -> Subject {
        let choice = Choice::of(entry).with(settings(entry, seed));
        let interval = Span::from_millis(500);
        let (start, end) = (Time::ZERO, Time::ZERO + interval);
        let idle_slots = seed.is_multiple_of(2).then_some(3);
        let setup = ReceiverSetup { node: Node(1), slot: u32::MAX, start, end, interval, idle_slots };
        None.or_else(|| choice.sender(Setup::new(Bytes::new(MSS), Seed(seed).stream("law"))).ok().map(Subject::Sender))
            .or_else(|| choice.hop().ok().map(Subject::Hop))
            .or_else(|| choice.receiver(setup).ok().map(Subject::Receiver))
            .unwrap_or_else(|| panic!("{} is built by what it is set to", entry.name))
    }

    fn sense(&mut self, now: Time, signal: &Signal) {
        match self {
            Subject::Sender(law) => law.sense(now, signal),
            Subject::Hop(law) => law.sense(now, signal),
            Subject::Receiver(law) => law.sense(now, signal),
        }
    }

    /// What it decides, flow by flow.
    fn decide(&self, now: Time) -> Vec<(FlowId, Decision)> {
        let mut decisions = Vec::new();
        match self {
            Subject::Sender(law) => decisions.push((FlowId(0), law.decide(now))),
            Subject::Hop(law) => law.decide(now, &mut |flow, decision| decisions.push((flow, decision))),
            Subject::Receiver(law) => decisions.push((FlowId(0), law.decide(now))),
        }
        decisions
    }
}

/// What is set of a law: of one that can learn, in every second case that it does.
fn settings(entry: &Entry, seed: u64) -> Settings {
    let mut settings = Settings::default();
    if entry.param("predictor").is_some() && !seed.is_multiple_of(2) {
        settings.set("predictor", Value::Word("learned"));
        settings.set("explore", Value::Number(0.3));
    }
    settings
}

/// A law limits what its place can limit, and leaves what can be used.
fn check(entry: &Entry, decisions: &[(FlowId, Decision)], mss: Bytes) -> Result<(), TestCaseError> {
    let name = entry.name;
    prop_assert!(decisions.is_sorted_by(|(one, _), (other, _)| one < other), "{name}: each flow once, in order");
    for (_, decision) in decisions {
        let Decision { cwnd, pacing, gap, rwnd, feedback, .. } = decision;
        let may = |places: &[Place]| places.contains(&entry.place);
        let sends = may(&[Place::Sender, Place::Proxy, Place::Relay]);
        prop_assert!(cwnd.is_none() || may(&[Place::Sender, Place::Terminal]), "{name}: {decision:?}");
        prop_assert!(pacing.is_none() || sends, "{name}: {decision:?}");
        prop_assert!(rwnd.is_none() || may(&[Place::AccessPoint, Place::Receiver]), "{name}: {decision:?}");
        prop_assert!(feedback.is_none() || may(&[Place::Receiver, Place::Station]), "{name}: {decision:?}");
        prop_assert!(pacing.is_none_or(|rate| !rate.is_zero()), "{name}: paces at nothing");
        prop_assert!(rwnd.is_none_or(|window| window >= mss), "{name}: a receive window of {rwnd:?}");
        prop_assert!(cwnd.is_none_or(|cwnd| cwnd.lower <= cwnd.upper && cwnd.upper >= mss), "{name}: {cwnd:?}");
        let controls = |transport| entry.place == Place::Sender && entry.transport == transport;
        prop_assert!(
            cwnd.is_some() || entry.place != Place::Sender || controls(Transport::Atp),
            "{name}: a congestion control sets a window"
        );
        prop_assert!(gap.is_some() == controls(Transport::Atp), "{name}: {decision:?}");
        prop_assert!(gap.is_none_or(|gap| !gap.is_zero()), "{name}: packets without a gap");
    }
    Ok(())
}

fn entry() -> impl Strategy<Value = &'static Entry> {
    prop::sample::select(registry::all().collect::<Vec<_>>())
}

/// Decisions as text: a report may hold what is no number, which does not equal itself.
fn text(decisions: &[(FlowId, Decision)]) -> String {
    format!("{decisions:?}")
}

#[test]
fn a_law_has_the_name_by_which_it_is_called() {
    for entry in registry::all() {
        if let Subject::Hop(law) = Subject::new(entry, 0) {
            assert_eq!(law.name(), entry.name);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn any_history_gives_a_usable_repeatable_decision(
        entry in entry(),
        seed: u64,
        history in history(300),
    ) {
        let (mut law, mut twin) = (Subject::new(entry, seed), Subject::new(entry, seed));
        let (mut now, mut mss) = (Time::ZERO, Bytes::new(MSS));
        check(entry, &law.decide(now), mss)?;
        for (gap, signal) in &history {
            now += *gap;
            law.sense(now, signal);
            match signal {
                Signal::Ack(ack) if entry.place == Place::Sender => mss = ack.mss,
                Signal::Loss(loss) | Signal::Timeout(loss) if entry.place == Place::Sender => mss = loss.mss,
                _ => {}
            }
            let decisions = law.decide(now);
            check(entry, &decisions, mss)?;
            prop_assert_eq!(text(&decisions), text(&law.decide(now)), "deciding has no effect");
            twin.sense(now, signal);
            prop_assert_eq!(text(&decisions), text(&twin.decide(now)), "the same history gives the same decision");
        }
    }

    #[test]
    fn a_copy_decides_the_same_and_learns_on_its_own(
        entry in entry(),
        seed: u64,
        before in history(60),
        after in history(60),
    ) {
        let (mut law, mut now) = (Subject::new(entry, seed), Time::ZERO);
        for (gap, signal) in &before {
            now += *gap;
            law.sense(now, signal);
        }
        let (untouched, mut copy, at_fork) = (law.clone(), law.clone(), now);
        let decided = text(&law.decide(now));
        for (gap, signal) in &after {
            now += *gap;
            law.sense(now, signal);
            copy.sense(now, signal);
            prop_assert_eq!(text(&law.decide(now)), text(&copy.decide(now)), "the copy has learned the same");
        }
        prop_assert_eq!(text(&untouched.decide(at_fork)), decided, "what others learn is not this copy's");
    }
}
