//! A predictor that knows what is to come: the world is copied, the copy runs on with nothing tight, and what it loses is the answer.
//! Source:     this project's own: an oracle needs a fork of the world, and a policy under which the future is told
//! Equations:  class in (t, t + h] = class of (first copies that enter in it and are lost to a queue) / (first copies that enter in it)
//! Symbols:    h -> `HORIZON`, t -> whenever [`Oracle::look`] is called
//! Validity:   CoDel loses what stands long: the copy runs for `LATE` beyond the horizon. Only the simulator has copies of the world.
//! Checked by: tests::*

use lasthop_laws::oal::predictor::{LossClass, Predictor, StationState};
use lasthop_signals::Node;
use lasthop_sim::hook::{Forwarded, Hook, Interface, Lost};
use lasthop_sim::{Payload, World};
use lasthop_units::{Span, Time};
use lasthop_wire::FlowKey;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How far it looks, and how often: the default horizon of trees.
pub const HORIZON: Span = Span::from_millis(50);
/// How long after the horizon what entered in it may still be lost.
const LATE: Span = Span::from_millis(100);

/// One for all access points of a world: it stands in their forwarding path, and it is the predictor of each of their laws.
#[derive(Clone, Default)]
pub struct Oracle(Arc<Mutex<Seen>>);

/// A segment: its connection and direction, its first octet, and its timestamp, which a repeat has anew.
type Segment = (FlowKey, u32, u32);

#[derive(Clone, Default)]
struct Seen {
    /// The end of the horizon; `None` outside of a copy of the world.
    until: Option<Time>,
    /// Behind the last octet of each connection that has passed.
    ends: BTreeMap<FlowKey, u32>,
    /// First copies that have entered within the horizon and are not lost.
    entered: BTreeMap<Segment, Node>,
    /// How many have entered and how many of them are lost, by station.
    counts: BTreeMap<Node, (u32, u32)>,
    classes: BTreeMap<Node, LossClass>,
}

impl Oracle {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at what comes after `now` in this world.
    pub fn look(&self, world: &World, now: Time) {
        let mut copy = world.clone();
        copy.without_meters();
        // A copy of the world has the same memory: what it saw is forgotten with it.
        let before = self.seen().clone();
        let classes = self.lived(&mut copy, now);
        *self.seen() = Seen { classes, ..before };
    }

    /// Lets a world run until it is known what first copies of the coming horizon are lost.
    fn lived(&self, world: &mut World, now: Time) -> BTreeMap<Node, LossClass> {
        self.seen().until = Some(now + HORIZON);
        world.run_until(now + HORIZON + LATE);
        let share = |(entered, lost): (u32, u32)| f64::from(lost) / f64::from(entered.max(1));
        self.seen().counts.iter().map(|(station, counts)| (*station, LossClass::of(share(*counts)))).collect()
    }
}

impl Hook for Oracle {
    fn egress(&mut self, forwarded: &mut Forwarded<'_>) {
        let (Payload::Tcp { header, .. }, Some(flow)) = (&forwarded.packet.payload.content, forwarded.key) else {
            return;
        };
        if header.payload_len == 0 {
            return;
        }
        let mut seen = self.seen();
        let end = header.seq.wrapping_add(header.payload_len);
        let last = seen.ends.entry(flow).or_insert(header.seq);
        if end.wrapping_sub(*last).cast_signed() <= 0 {
            return;
        }
        *last = end;
        if seen.until.is_some_and(|until| forwarded.at <= until) {
            let val = header.options.timestamps.map_or(0, |timestamps| timestamps.val);
            seen.entered.insert((flow, header.seq, val), forwarded.beside);
            seen.counts.entry(forwarded.beside).or_default().0 += 1;
        }
    }

    fn lost(&mut self, _: Time, _: Interface, lost: &Lost<'_>) {
        let (Payload::Tcp { header, .. }, Some(flow)) = (lost.payload, lost.key) else { return };
        let mut seen = self.seen();
        let val = header.options.timestamps.map_or(0, |timestamps| timestamps.val);
        if !lost.on_air
            && let Some(station) = seen.entered.remove(&(flow, header.seq, val))
        {
            seen.counts.entry(station).or_default().1 += 1;
        }
    }
}

impl Predictor for Oracle {
    fn predict(&mut self, state: &StationState) -> LossClass {
        let seen = self.seen();
        match seen.until {
            Some(_) => LossClass::Good,
            None => seen.classes.get(&state.station).copied().unwrap_or(LossClass::Good),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::LIBRARY;
    use super::*;
    use lasthop_scenario::Scenario;
    use lasthop_sim::build;
    use lasthop_units::Seed;
    use std::path::Path;

    /// The library when its far stations have come, under CUBIC alone, with an oracle that watches.
    fn library() -> (World, Oracle) {
        let scenario = Scenario::parse(LIBRARY.name, LIBRARY.text, Path::new(".")).expect("a shipped scenario");
        let law = scenario.law("cubic").expect("it has it");
        let mut world = build(&scenario, &law, Seed(1), false).expect("valid parameters");
        let oracle = Oracle::default();
        world.add_hook(Scenario::AP_HOST, Box::new(oracle.clone()));
        world.run_until(Time::from_nanos(12_000_000_000));
        (world, oracle)
    }

    #[test]
    fn what_it_says_comes_true_where_nobody_acts() {
        let (mut world, oracle) = library();
        let mut worst = LossClass::Good;
        for step in 0..20 {
            let now = Time::from_nanos(12_000_000_000) + (HORIZON + LATE) * step;
            oracle.look(&world, now);
            let said = oracle.seen().classes.clone();
            worst = said.values().copied().chain([worst]).max().unwrap_or(worst);
            assert_eq!(oracle.lived(&mut world, now), said, "step {step}");
            let mut seen = oracle.seen();
            *seen = Seen { ends: seen.ends.clone(), ..Seen::default() };
        }
        assert!(worst.acts(), "the far stations' coming loses: {worst:?}");
    }

    #[test]
    fn looking_changes_nothing() {
        let end = Time::from_nanos(13_000_000_000);
        let [looked, not] = [true, false].map(|looks| {
            let (mut world, oracle) = library();
            for step in 0..20 {
                let now = Time::from_nanos(12_000_000_000) + HORIZON * step;
                world.run_until(now);
                if looks {
                    oracle.look(&world, now);
                }
            }
            world.run_until(end);
            world.finish(end).finish()
        });
        assert_eq!(looked, not);
    }
}
