//! Reports stations with slots that are not as long as the law's.

use lasthop_signals::{Node, StationFeedback};
use lasthop_units::Span;
use std::collections::BTreeMap;

/// The stations that were reported.
pub(super) struct Lengths {
    /// The law's; `None` of a law without slots.
    law: Option<Span>,
    /// The last session of which something was said, by station.
    said: BTreeMap<Node, u32>,
}

/// Slots as long as the law's but for this share, one part in so many, are as long.
const ROUNDING: u64 = 20;

impl Lengths {
    pub(super) fn new(law: Option<Span>) -> Lengths {
        Lengths { law, said: BTreeMap::new() }
    }

    /// What there is to say of a station's report, once a session.
    pub(super) fn look(&mut self, session: u32, feedback: &StationFeedback) -> Option<String> {
        let law = self.law?;
        let own = feedback.end.since(feedback.start);
        let off = own.as_nanos().abs_diff(law.as_nanos());
        if off <= law.as_nanos() / ROUNDING || self.said.insert(feedback.station, session) == Some(session) {
            return None;
        }
        let flag = law.to_string().replace(' ', "");
        Some(format!(
            "station {} reports every {own}, the law's slot is {law}: start `lasthop station` with --slot {flag}",
            feedback.station.0
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::Time;

    fn report(station: u16, slot: u32, length: Span) -> StationFeedback {
        let start = Time::ZERO + Span::from_secs(slot.into());
        StationFeedback::empty(Node(station), slot, start, start + length)
    }

    #[test]
    fn a_slot_of_another_length_is_told_of_once_a_session() {
        let (half, whole) = (Span::from_millis(500), Span::from_secs(1));
        let mut lengths = Lengths::new(Some(half));
        let line = "station 3 reports every 1 s, the law's slot is 500 ms: start `lasthop station` with --slot 500ms";
        assert_eq!(lengths.look(7, &report(3, 1, whole)).as_deref(), Some(line));
        assert_eq!(lengths.look(7, &report(3, 2, whole)), None);
        assert!(lengths.look(8, &report(4, 2, whole)).is_some(), "another station");
        assert_eq!(lengths.look(9, &report(3, 9, whole)).as_deref(), Some(line), "another session");
        assert_eq!(lengths.look(10, &report(5, 1, half + Span::from_micros(1))), None);
        assert_eq!(Lengths::new(None).look(7, &report(3, 1, whole)), None, "a fixed rate has no slot");
    }

    #[test]
    fn the_proxys_law_is_what_stations_are_compared_with() {
        use super::super::config::Rule;
        use super::super::control::Control;
        use lasthop_laws::Choice;
        use lasthop_laws::aggregation::{LAW, PREDECESSOR};
        let second = report(1, 1, Span::from_secs(1));
        let says = |rule| Control::new(&rule).expect("a law").complaint(1, &second).is_some();
        assert!(says(Rule::Law(Choice::of(&LAW))));
        assert!(!says(Rule::Law(Choice::of(&PREDECESSOR))));
        assert!(!says(Rule::Fixed(lasthop_units::Rate::from_mbit(1))));
    }
}
