//! The law inside the proxy: it is shown what stations report and what was sent to them, and says how fast each is served.

use super::config::Rule;
use super::slot_length::Lengths;
use crate::service::Error;
use lasthop_laws::aggregation::flow_of;
use lasthop_laws::{Decision, HopLaw, Observation, Why};
use lasthop_signals::{Node, Signal, StationFeedback, StreamReport};
use lasthop_units::{Rate, Time};
use std::collections::BTreeMap;

/// The law, and how it is told of slots.
pub(super) struct Control {
    rule: Decider,
    slots: BTreeMap<Node, Slots>,
    lengths: Lengths,
}

/// What decides the rates.
enum Decider {
    Fixed(Rate),
    Law(Box<dyn HopLaw>),
}

/// What was decided for a station.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Decided {
    pub(super) rate: Rate,
    pub(super) why: Why,
}

/// Stations number slots by their clocks, and the law takes nothing from a slot that is not newer than its last. If a
/// station's clock was set back before it was started again, its slots are counted on from where they were.
#[derive(Clone, Copy, Debug)]
struct Slots {
    session: u32,
    /// What is added to the station's numbers.
    ahead: u32,
    last: u32,
}

impl Slots {
    /// The law's number for a station's slot in a session, after what was `before`.
    fn number(before: Option<Slots>, session: u32, slot: u32) -> Slots {
        let ahead = match before {
            Some(before) if before.session == session => before.ahead,
            Some(before) => before.last.wrapping_add(1).wrapping_sub(slot),
            None => 0,
        };
        Slots { session, ahead, last: slot.wrapping_add(ahead) }
    }
}

impl Control {
    pub(super) fn new(rule: &Rule) -> Result<Control, Error> {
        let (rule, interval) = match rule {
            Rule::Fixed(rate) => (Decider::Fixed(*rate), None),
            Rule::Law(choice) => (Decider::Law(choice.hop()?), choice.interval()),
        };
        Ok(Control { rule, slots: BTreeMap::new(), lengths: Lengths::new(interval) })
    }

    /// Shows the law one thing, after what has been sent to every station that it concerns: what a station has said in a session,
    /// or nothing but that time passes.
    pub(super) fn sense(&mut self, now: Time, streams: &[StreamReport], feedback: Option<(u32, StationFeedback)>) {
        let feedback = feedback.map(|(session, feedback)| {
            let slots = Slots::number(self.slots.get(&feedback.station).copied(), session, feedback.slot);
            self.slots.insert(feedback.station, slots);
            StationFeedback { slot: slots.last, ..feedback }
        });
        let Some(law) = self.law() else { return };
        streams.iter().for_each(|report| law.sense(now, &Signal::Stream(*report)));
        law.sense(now, &feedback.map_or(Signal::Wakeup, Signal::Station));
    }

    /// What there is to say of the length of a station's slot, once a session.
    pub(super) fn complaint(&mut self, session: u32, feedback: &StationFeedback) -> Option<String> {
        self.lengths.look(session, feedback)
    }

    /// Stations for which something has begun to wait, and those for which nothing has waited for as long as the law
    /// wants to know, at one look.
    pub(super) fn moves(&mut self, now: Time, signals: &[Signal]) {
        if let Some(law) = self.law() {
            law.sense_all(now, signals);
        }
    }

    /// Tells `each` what is decided for the session of every station, and returns when to ask again if nothing happens before.
    pub(super) fn decide(
        &self,
        now: Time,
        current: &BTreeMap<Node, u32>,
        mut each: impl FnMut(u32, Decided),
    ) -> Option<Time> {
        let law = match &self.rule {
            Decider::Fixed(rate) => {
                let decided = Decided { rate: *rate, why: Why::Unmanaged };
                current.values().for_each(|session| each(*session, decided));
                return None;
            }
            Decider::Law(law) => law,
        };
        // Flows are told in order, and in the order of their stations.
        let (mut stations, mut revisit) = (current.iter().peekable(), None::<Time>);
        law.decide(now, &mut |flow, decision: Decision| {
            while stations.next_if(|(station, _)| flow_of(**station) < flow).is_some() {}
            if let Some((_, session)) = stations.next_if(|(station, _)| flow_of(**station) == flow)
                && let Some(rate) = decision.pacing
            {
                each(*session, Decided { rate, why: decision.why });
            }
            revisit = [revisit, decision.revisit].into_iter().flatten().min();
        });
        revisit
    }

    /// What the law knows of a station.
    pub(super) fn observe(&self, station: Node) -> Observation {
        match &self.rule {
            Decider::Fixed(_) => Observation::default(),
            Decider::Law(law) => law.observe(flow_of(station)),
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match &self.rule {
            Decider::Fixed(_) => "fixed",
            Decider::Law(law) => law.name(),
        }
    }

    fn law(&mut self) -> Option<&mut Box<dyn HopLaw>> {
        match &mut self.rule {
            Decider::Fixed(_) => None,
            Decider::Law(law) => Some(law),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_go_on_whatever_a_station_says_its_clock_is() {
        let mut slots = Slots::number(None, 1, 7_000);
        assert_eq!(slots.last, 7_000);
        slots = Slots::number(Some(slots), 1, 7_003);
        assert_eq!(slots.last, 7_003, "slots that were lost leave their gap");
        // Started again with the clock set back, then set forward, and over the end of the numbers.
        for (session, first) in [(2, 5), (3, 9_000_000), (4, u32::MAX)] {
            let before = slots.last;
            slots = Slots::number(Some(slots), session, first);
            assert_eq!(slots.last, before + 1);
            slots = Slots::number(Some(slots), session, first.wrapping_add(2));
            assert_eq!(slots.last, before + 3);
        }
    }
}
