//! What has arrived, and when it must be acknowledged.

use crate::ranges::Ranges;
use lasthop_units::{Span, Time};
use lasthop_wire::tunnel::{AckRange, Frame, MAX_ACK_RANGES};

/// When an end acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckRule {
    /// How long an acknowledgement may wait for more to acknowledge.
    pub delay: Span,
    /// Packets that are acknowledged without waiting.
    pub packets: u32,
    /// Time from one acknowledgement to the next that a gap may call for.
    pub between_gaps: Span,
    /// Gaps that are told without waiting even for that.
    pub gaps: u32,
}

impl AckRule {
    /// The station's. Its acknowledgements are accesses to the channel that carries the data, and nothing waits for them: a law,
    /// not their arrival, says how fast the proxy sends. What is missing is told at once, but not for every single loss of many.
    pub const RARE: AckRule =
        AckRule { delay: Span::from_millis(100), packets: 512, between_gaps: Span::from_millis(10), gaps: u32::MAX };
    /// The proxy's. What the station may have under way depends on them. A station in a cell acknowledges so too, since what its law tells is another
    /// thing every subframe, and what the proxy sends depends on that.
    pub const PROMPT: AckRule =
        AckRule { delay: Span::from_millis(1), packets: 64, between_gaps: Span::ZERO, gaps: u32::MAX };
}

/// The packet numbers that have arrived in one session.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    seen: Ranges,
    /// The highest number and when it arrived.
    largest: Option<(u64, Time)>,
    count: u64,
    /// Packets that want an acknowledgement and have none, and when the first of them came.
    owed: u32,
    owed_since: Time,
    /// Something is missing, or was late, of which the last acknowledgement did not tell.
    gap: bool,
    /// How often that was so.
    gaps: u32,
    acknowledged: Time,
}

impl Arrivals {
    /// A packet has arrived for the first time.
    pub(super) fn on_packet(&mut self, now: Time, number: u64, wants_ack: bool) {
        let next = self.largest.map_or(0, |(largest, _)| largest + 1);
        self.seen.insert(number..number + 1, |_| {});
        // The lowest ranges are the oldest: whatever is below has been told often enough.
        self.seen.keep_highest(MAX_ACK_RANGES + 1);
        self.count += 1;
        if self.largest.is_none_or(|(largest, _)| number > largest) {
            self.largest = Some((number, now));
        }
        if wants_ack {
            if self.owed == 0 {
                self.owed_since = now;
            }
            self.owed += 1;
            self.gap |= number != next;
            self.gaps += u32::from(number != next);
        }
    }

    /// When an acknowledgement must leave by itself; `None` if none is owed.
    pub(super) fn due(&self, rule: &AckRule) -> Option<Time> {
        match self.owed {
            0 => None,
            owed if owed >= rule.packets || self.gaps >= rule.gaps => Some(Time::ZERO),
            _ if self.gap => Some((self.owed_since + rule.delay).min(self.acknowledged + rule.between_gaps)),
            _ => Some(self.owed_since + rule.delay),
        }
    }

    /// True if there is something to acknowledge that has not been.
    pub(super) fn is_owed(&self) -> bool {
        self.owed > 0
    }

    /// How often something was missing, or late, of which no acknowledgement has told.
    pub(super) fn gaps(&self) -> usize {
        self.gaps as usize
    }

    /// The acknowledgement, which counts as sent; `None` if nothing has arrived yet.
    pub(super) fn acknowledge(&mut self, now: Time) -> Option<Frame<'static>> {
        let (_, arrived) = self.largest?;
        let ranges = self.seen.iter().rev().map(|range| AckRange { first: range.start, last: range.end - 1 }).collect();
        (self.owed, self.gap, self.gaps, self.acknowledged) = (0, false, 0, now);
        let delay: Span = now.since(arrived);
        Some(Frame::Ack { delay, ranges })
    }

    /// Packets that have arrived.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The highest number that has arrived.
    pub(super) fn largest(&self) -> Option<u64> {
        self.largest.map(|(number, _)| number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::from_nanos(us * 1000)
    }

    #[test]
    fn acknowledgements_wait_a_little_unless_something_is_missing() {
        let rule =
            AckRule { delay: Span::from_millis(1), packets: 64, between_gaps: Span::from_micros(3), gaps: u32::MAX };
        let mut arrivals = Arrivals::default();
        assert_eq!(arrivals.acknowledge(at(0)), None);
        arrivals.on_packet(at(10), 0, true);
        arrivals.on_packet(at(20), 1, true);
        assert_eq!(arrivals.due(&rule), Some(at(10) + rule.delay));
        arrivals.on_packet(at(30), 3, true);
        assert!(arrivals.due(&rule).is_some_and(|due| due <= at(30)), "a gap");
        let ranges = vec![AckRange { first: 3, last: 3 }, AckRange { first: 0, last: 1 }];
        assert_eq!(arrivals.acknowledge(at(35)), Some(Frame::Ack { delay: Span::from_micros(5), ranges }));
        assert_eq!(arrivals.due(&rule), None);
        arrivals.on_packet(at(36), 4, false);
        assert_eq!(arrivals.due(&rule), None, "nobody asked");
        arrivals.on_packet(at(36), 6, true);
        assert_eq!(arrivals.due(&rule), Some(at(38)), "another gap, 1 us after the first was told");
    }

    #[test]
    fn many_gaps_are_told_without_waiting() {
        let rule = AckRule { gaps: 3, between_gaps: Span::from_millis(40), ..AckRule::RARE };
        let mut arrivals = Arrivals::default();
        arrivals.on_packet(at(0), 0, true);
        assert!(arrivals.acknowledge(at(1)).is_some());
        for n in 1..=3u64 {
            assert_ne!(arrivals.due(&rule), Some(Time::ZERO));
            arrivals.on_packet(at(n), 2 * n, true);
        }
        assert_eq!((arrivals.due(&rule), arrivals.gaps()), (Some(Time::ZERO), 3));
        assert!(arrivals.acknowledge(at(5)).is_some() && arrivals.gaps() == 0);
    }

    #[test]
    fn many_packets_are_acknowledged_without_waiting() {
        let rule = AckRule::RARE;
        let mut arrivals = Arrivals::default();
        (1..u64::from(rule.packets)).for_each(|n| arrivals.on_packet(at(n), n - 1, true));
        assert_eq!(arrivals.due(&rule), Some(at(1) + rule.delay));
        arrivals.on_packet(at(600), u64::from(rule.packets) - 1, true);
        assert_eq!(arrivals.due(&rule), Some(Time::ZERO));
    }

    #[test]
    fn only_the_highest_ranges_are_kept() {
        let mut arrivals = Arrivals::default();
        (0..200).for_each(|n| arrivals.on_packet(at(n), 2 * n, true));
        let Some(Frame::Ack { ranges, .. }) = arrivals.acknowledge(at(300)) else { panic!("something arrived") };
        assert_eq!(ranges.len(), MAX_ACK_RANGES + 1);
        assert_eq!(ranges[0], AckRange { first: 398, last: 398 });
    }
}
