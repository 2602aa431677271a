//! Answers to probes, at no more than a rate.
//!
//! Source:     none: an operator's choice.
//! Equations:  pacing = `rate`
//! Symbols:    none.
//! Deviations: none.     Validity: any rate above zero.
//! Checked by: tests::answers_are_paced_at_what_was_set

use crate::{Decision, Entry, HopLaw, Parameters, Place, Why, params};
use lasthop_signals::{FlowId, Signal};
use lasthop_units::{Rate, Time};

/// Its name.
pub const NAME: &str = "echo";

/// The law's entry in the registry.
pub const LAW: Entry =
    Entry::hop(Place::Relay, NAME, "Answers probes, at no more than a rate.", Params::TABLE, |settings| {
        Ok(Box::new(Echo(Params::with(settings)?)))
    });

params! {
    /// What may be set of the answers.
    pub struct Params {
        /// How fast answers may leave, their IP headers included.
        rate: Rate = "100 kbit/s", |p| !p.rate.is_zero() => "above 0";
    }
}

/// The law.
#[derive(Clone, Debug)]
struct Echo(Params);

impl HopLaw for Echo {
    fn sense(&mut self, _now: Time, _signal: &Signal) {}

    fn decide(&self, _now: Time, each: &mut dyn FnMut(FlowId, Decision)) {
        each(FlowId(0), Decision { pacing: Some(self.0.rate), ..Decision::unlimited(Why::Unmanaged) });
    }

    fn name(&self) -> &'static str {
        NAME
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Choice;

    #[test]
    fn answers_are_paced_at_what_was_set() {
        let params = Params { rate: Rate::from_mbit(3) };
        let law = Choice::of(&LAW).with(params.settings()).hop().expect("a law");
        let mut decided = Vec::new();
        law.decide(Time::ZERO, &mut |_, decision| decided.push(decision.pacing));
        assert_eq!(decided, [Some(Rate::from_mbit(3))]);
    }
}
