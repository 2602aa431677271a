//! Bounds on the windows of a station's own uploads, before the access point drowns in acknowledgements.
//! Source:     Hayakawa, Yamaguchi, Oguchi 2015, as specified in systems/terminal.md B.1 and its second reading.
//! Equations:  see `tables`; a connection's part of the bounds is 1 / k, k connections through which the terminal sends
//! Symbols:    n, terminals that send -> this one and `neighbours`
//! Deviations: the paper gives every connection of a terminal the whole row; here they share it, so that a terminal
//!             with six connections is no six terminals. The minimum round trip is TCP's own of the connection: one that begins in a full queue
//!             takes that for the path, as the paper's does.
//! Validity:   reports of all connections come before the wake-up of the same look; a connection without a round
//!             trip yet is left alone.
//! Checked by: tests::*, tests/conformance

mod tables;

use crate::{Bounds, Decision, Entry, HopLaw, ParamError, Parameters, Place, Why, params, words};
use lasthop_signals::{FlowId, Signal, SocketReport};
use lasthop_units::{Span, Time};
use std::collections::BTreeMap;

/// The name of the law.
pub const NAME: &str = "terminal";
/// Its entry in the registry.
pub const LAW: Entry = Entry::hop(
    Place::Terminal,
    NAME,
    "Bounds on the windows of a station's uploads, by how many terminals send and by how far round trips have grown.",
    Params::TABLE,
    |settings| Ok(Box::new(Terminal::new(Params::with(settings)?)?)),
);

/// How often a terminal that sends tells its neighbours so.
pub const NOTICE_INTERVAL: Span = Span::from_millis(300);
/// A neighbour that has not been heard for so long sends no more: three notices.
const SILENT: Span = Span::from_secs(1);
/// Neighbours that are remembered: more are not told from that many.
const NEIGHBOURS: usize = 1024;

params! {
    /// What may be set of the law.
    pub struct Params {
        /// What the bounds are taken from.
        rule: Rule = "tables";
        /// How often the terminal looks at its connections and sets their bounds anew.
        interval: Span = "500 ms",
            |p| p.interval >= Span::from_millis(10) && p.interval <= Span::from_secs(60) => "from 10 ms to 60 s";
    }
}

words! {
    /// What bounds are taken from.
    pub enum Rule {
        /// The number of terminals and the ratio of round trips (Tables 2 and 3 of the paper).
        Tables = "tables",
        /// The number of terminals alone: the authors' earlier method, which looked every 10 s.
        Count = "count",
    }
}

/// Decides for the connections of one terminal.
#[derive(Clone, Debug)]
pub struct Terminal {
    params: Params,
    /// When each neighbour was last heard.
    neighbours: BTreeMap<u64, Time>,
    flows: BTreeMap<FlowId, Flow>,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    report: SocketReport,
    decision: Decision,
}

impl Terminal {
    /// A terminal that has heard nobody.
    ///
    /// # Errors
    /// Those of [`Params::validate`].
    pub fn new(params: Params) -> Result<Terminal, ParamError> {
        params.validate()?;
        Ok(Terminal { params, neighbours: BTreeMap::new(), flows: BTreeMap::new() })
    }

    /// Terminals that send, this one included: those that were heard since the last look among them.
    pub fn terminals(&self) -> u32 {
        u32::try_from(self.neighbours.len()).unwrap_or(u32::MAX).saturating_add(1)
    }

    fn has_room_for(&self, neighbour: u64) -> bool {
        self.neighbours.len() < NEIGHBOURS || self.neighbours.contains_key(&neighbour)
    }

    /// Sets the bounds of every connection anew.
    fn look(&mut self, now: Time) {
        self.neighbours.retain(|_, heard| now.since(*heard) <= SILENT);
        let (terminals, rule) = (self.terminals(), self.params.rule);
        let sharing = u32::try_from(self.flows.len()).unwrap_or(u32::MAX).max(1);
        for flow in self.flows.values_mut() {
            flow.decision = decide(&flow.report, rule, terminals, sharing);
        }
    }
}

/// The bounds of one of `sharing` connections.
fn decide(report: &SocketReport, rule: Rule, terminals: u32, sharing: u32) -> Decision {
    let (Some(rtt), Some(min_rtt)) = (report.rtt, report.min_rtt) else {
        return Decision::unlimited(Why::Unmanaged);
    };
    let (bounds, by_ratio) = match rule {
        Rule::Tables => tables::by_both(min_rtt, rtt, terminals),
        Rule::Count => (tables::by_terminals(min_rtt, terminals), false),
    };
    let why = if by_ratio { Why::RoundTrip } else { Why::Terminals };
    let (lower, upper) = ((bounds.lower / sharing).max(1), (bounds.upper / sharing).max(2));
    let segments = |packets: u32| report.mss * u64::from(packets);
    Decision { cwnd: Some(Bounds { lower: segments(lower), upper: segments(upper) }), ..Decision::unlimited(why) }
}

impl HopLaw for Terminal {
    fn sense(&mut self, now: Time, signal: &Signal) {
        match signal {
            Signal::Socket(report) => {
                let fresh = Flow { report: *report, decision: Decision::unlimited(Why::Unmanaged) };
                self.flows.entry(report.flow).or_insert(fresh).report = *report;
            }
            Signal::FlowGone(flow) => {
                self.flows.remove(flow);
            }
            Signal::Neighbour(notice) if self.has_room_for(notice.terminal) => {
                self.neighbours.insert(notice.terminal, now);
            }
            Signal::Wakeup => self.look(now),
            _ => {}
        }
    }

    fn decide(&self, _now: Time, each: &mut dyn FnMut(FlowId, Decision)) {
        self.flows.iter().for_each(|(flow, known)| each(*flow, known.decision));
    }

    fn name(&self) -> &'static str {
        NAME
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_signals::{MacAddress, Notice};
    use lasthop_units::Bytes;

    const MSS: Bytes = Bytes::new(1448);

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    fn socket(flow: u32, rtt_ms: u64, min_ms: u64) -> Signal {
        let (rtt, min_rtt) = (Some(Span::from_millis(rtt_ms)), Some(Span::from_millis(min_ms)));
        Signal::Socket(SocketReport { flow: FlowId(flow), rtt, min_rtt, mss: MSS })
    }

    fn notice(terminal: u64) -> Signal {
        Signal::Neighbour(Notice { bssid: MacAddress([2, 0, 0, 0, 0, 1]), terminal, sequence: 0, flows: 1 })
    }

    /// Lower and upper bound of a connection in segments.
    fn bounds(law: &Terminal, of: u32) -> Option<(u64, u64)> {
        let mut found = None;
        law.decide(Time::ZERO, &mut |flow, decision| {
            if flow == FlowId(of) {
                found = decision.cwnd.map(|cwnd| (cwnd.lower.get() / MSS.get(), cwnd.upper.get() / MSS.get()));
            }
        });
        found
    }

    fn terminal(rule: Rule) -> Terminal {
        Terminal::new(Params { rule, ..Params::default() }).expect("defaults are valid")
    }

    #[test]
    fn bounds_are_set_at_a_look_and_stand_until_the_next() {
        let mut law = terminal(Rule::Tables);
        law.sense(at(0), &socket(1, 256, 256));
        assert_eq!(bounds(&law, 1), None);
        law.sense(at(0), &Signal::Wakeup);
        assert_eq!(bounds(&law, 1), Some((250, 555)));
        (1..10).for_each(|other| law.sense(at(100), &notice(other)));
        assert_eq!(bounds(&law, 1), Some((250, 555)));
        law.sense(at(500), &Signal::Wakeup);
        assert_eq!(bounds(&law, 1), Some((5, 17)));
        law.sense(at(600), &Signal::FlowGone(FlowId(1)));
        assert_eq!(bounds(&law, 1), None);
    }

    #[test]
    fn a_neighbour_is_counted_once_and_forgotten_after_a_second_of_silence() {
        let mut law = terminal(Rule::Count);
        law.sense(at(0), &socket(1, 2560, 256));
        (0..3).for_each(|_| law.sense(at(0), &notice(7)));
        law.sense(at(300), &notice(8));
        let seen = [1000, 1001, 1300, 1301].map(|ms| {
            law.sense(at(ms), &Signal::Wakeup);
            (law.terminals(), bounds(&law, 1).expect("managed"))
        });
        assert_eq!(seen, [(3, (200, 300)), (2, (300, 400)), (2, (300, 400)), (1, (250, 555))]);
    }

    #[test]
    fn round_trips_that_grow_tighten_the_bounds_by_one_rule_and_not_by_the_other() {
        let why = |rule| {
            let mut law = terminal(rule);
            law.sense(at(0), &socket(1, 1100, 256));
            law.sense(at(0), &Signal::Wakeup);
            let mut why = None;
            law.decide(at(0), &mut |_, decision| why = Some(decision.why));
            (why, bounds(&law, 1).expect("managed"))
        };
        assert_eq!(why(Rule::Tables), (Some(Why::RoundTrip), (5, 10)));
        assert_eq!(why(Rule::Count), (Some(Why::Terminals), (250, 555)));
    }

    #[test]
    fn connections_of_a_terminal_share_its_bounds() {
        let mut law = terminal(Rule::Tables);
        (1..=5).for_each(|flow| law.sense(at(0), &socket(flow, 256, 256)));
        law.sense(at(0), &Signal::Wakeup);
        assert_eq!((1..=5).map(|flow| bounds(&law, flow)).collect::<Vec<_>>(), vec![Some((50, 111)); 5]);
    }

    #[test]
    fn a_connection_without_a_round_trip_is_left_alone() {
        let mut law = terminal(Rule::Tables);
        law.sense(at(0), &Signal::Socket(SocketReport { flow: FlowId(1), rtt: None, min_rtt: None, mss: MSS }));
        law.sense(at(0), &Signal::Wakeup);
        assert_eq!(bounds(&law, 1), None);
    }
}
