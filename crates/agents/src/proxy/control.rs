//! The law inside the proxy: it is shown what stations report and what was sent to them, and says how fast each is served.

use super::config::Rule;
use crate::tunnel::Error;
use lasthop_laws::aggregation::{LinearPi, Regulator, View, flow_of};
use lasthop_laws::{Decision, HopLaw, Why};
use lasthop_signals::{Node, Signal, StationFeedback, StreamReport};
use lasthop_units::{Rate, Time};
use std::collections::BTreeMap;

/// Who decides.
pub(super) enum Control {
    Fixed(Rate),
    Aggregation(Box<Regulator>),
    LinearPi(LinearPi),
}

/// What was decided for a station.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Decided {
    pub(super) rate: Rate,
    pub(super) why: Why,
}

impl Control {
    pub(super) fn new(rule: &Rule) -> Result<Control, Error> {
        Ok(match rule {
            Rule::Fixed(rate) => Control::Fixed(*rate),
            Rule::Aggregation(params) => Control::Aggregation(Box::new(Regulator::new(params.clone())?)),
            Rule::LinearPi(params) => Control::LinearPi(LinearPi::new(params.clone())?),
        })
    }

    /// Shows the law one thing, after what has been sent to every station that it concerns.
    pub(super) fn sense(&mut self, now: Time, streams: &[StreamReport], feedback: Option<StationFeedback>) {
        let Some(law) = self.law() else { return };
        streams.iter().for_each(|report| law.sense(now, &Signal::Stream(*report)));
        law.sense(now, &feedback.map_or(Signal::Wakeup, Signal::Station));
    }

    /// Data waits for a station for which none did.
    pub(super) fn begins(&mut self, now: Time, report: StreamReport) {
        if let Some(law) = self.law() {
            law.sense(now, &Signal::Stream(report));
        }
    }

    /// What is decided for each station, and when to ask again if nothing happens before.
    pub(super) fn decide(&self, now: Time, stations: &BTreeMap<Node, u32>) -> (BTreeMap<Node, Decided>, Option<Time>) {
        let law: &dyn HopLaw = match self {
            Control::Fixed(rate) => {
                let decided = Decided { rate: *rate, why: Why::Unmanaged };
                return (stations.keys().map(|station| (*station, decided)).collect(), None);
            }
            Control::Aggregation(law) => law.as_ref(),
            Control::LinearPi(law) => law,
        };
        let (mut decided, mut revisit) = (BTreeMap::new(), None::<Time>);
        law.decide(now, &mut |flow, decision: Decision| {
            let station = stations.keys().find(|station| flow_of(**station) == flow);
            if let (Some(station), Some(rate)) = (station, decision.pacing) {
                decided.insert(*station, Decided { rate, why: decision.why });
            }
            revisit = [revisit, decision.revisit].into_iter().flatten().min();
        });
        (decided, revisit)
    }

    /// What the regulator thinks of a station, with its estimate of a round's overhead in seconds (ĉ) and its set point (ν).
    pub(super) fn view(&self, station: Node) -> Option<(View, f64, f64)> {
        let Control::Aggregation(law) = self else { return None };
        let view = law.views().find(|view| view.station == station)?;
        Some((view, law.overhead(), law.set_point()))
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Control::Fixed(_) => "fixed",
            Control::Aggregation(law) => law.name(),
            Control::LinearPi(law) => law.name(),
        }
    }

    fn law(&mut self) -> Option<&mut dyn HopLaw> {
        match self {
            Control::Fixed(_) => None,
            Control::Aggregation(law) => Some(law.as_mut()),
            Control::LinearPi(law) => Some(law),
        }
    }
}
