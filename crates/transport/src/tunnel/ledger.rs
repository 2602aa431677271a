//! Packets that have been sent and not yet accounted for.
//! Source:     RFC 9002 sections 5 and 6.
//! Equations:  lost: number + 3 <= largest acknowledged, or sent at least 9/8 max(srtt, latest RTT) ago and below it
//! Symbols:    kPacketThreshold -> `PACKETS`, kTimeThreshold -> `TIME_EIGHTHS`
//! Deviations: none.     Validity: numbers are given out in order.     Checked by: tests::*, tests/tunnel.rs

use super::frames::Content;
use crate::rtt::RttEstimator;
use lasthop_units::{Bytes, Span, Time};
use lasthop_wire::tunnel::AckRange;
use std::collections::VecDeque;

/// What was sent, by number.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Number of the next packet.
    next: u64,
    /// Packets that ask for an acknowledgement, in order: the first waits for it.
    sent: VecDeque<Sent>,
    largest_acked: Option<u64>,
    in_flight: Bytes,
    latest_rtt: Span,
    last_eliciting: Time,
    /// A round is over when this number or a later one is acknowledged.
    round_end: u64,
    /// Least round trip, the other side's delay included.
    min_rtt: Option<Span>,
}

/// One packet.
#[derive(Debug)]
pub(super) struct Sent {
    number: u64,
    pub(super) at: Time,
    /// Its length as an IP packet.
    pub(super) len: Bytes,
    /// What it carried; `None` once it is accounted for.
    pub(super) content: Option<Content>,
}

/// What an acknowledgement brought.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Contents that have arrived.
    pub(super) delivered: Vec<Content>,
    /// Their packets' length in all.
    pub(super) delivered_len: Bytes,
    /// The RTT of the newest packet that is newly acknowledged, less the other side's delay.
    pub(super) rtt: Option<Span>,
    /// When the packet with the largest number was sent, if that is newly acknowledged.
    pub(super) largest_sent: Option<Time>,
    /// True if something that was sent after the last round's end has been acknowledged: a round is over.
    pub(super) round_over: bool,
}

/// Numbers by which a later packet may overtake an earlier one.
const PACKETS: u64 = 3;
/// Eighths of the RTT by which it may.
const TIME_EIGHTHS: u64 = 9;
/// Timers are no finer than this.
const GRANULARITY: Span = Span::from_millis(1);

impl Ledger {
    /// The number of the next packet.
    pub(super) fn next_number(&self) -> u64 {
        self.next
    }

    /// Packets that are remembered: those that wait for an acknowledgement, and some between them.
    pub(super) fn len(&self) -> usize {
        self.sent.len()
    }

    /// Notes the packet with the next number. One that asks for nothing, whose content is `None`, is not waited for and leaves
    /// nothing but its number: the other end decides how many there are.
    pub(super) fn on_sent(&mut self, at: Time, len: Bytes, content: Option<Content>) {
        if content.is_some() {
            self.in_flight += len;
            self.last_eliciting = at;
            self.sent.push_back(Sent { number: self.next, at, len, content });
        }
        self.next += 1;
    }

    /// What the other side says to have. Numbers that were never sent are ignored.
    pub(super) fn on_ack(&mut self, now: Time, delay: Span, ranges: &[AckRange]) -> Outcome {
        let (mut outcome, mut newest) = (Outcome::default(), None);
        let next = self.next_number();
        let Some(largest) = ranges.first().map(|range| range.last).filter(|largest| *largest < next) else {
            return outcome;
        };
        for range in ranges {
            let first = self.sent.partition_point(|sent| sent.number < range.first);
            for sent in self.sent.range_mut(first..).take_while(|sent| sent.number <= range.last) {
                let Some(content) = sent.content.take() else { continue };
                self.in_flight = self.in_flight.saturating_sub(sent.len);
                outcome.delivered_len += sent.len;
                outcome.delivered.push(content);
                newest = newest.max(Some(sent.at));
                if sent.number == largest {
                    outcome.largest_sent = Some(sent.at);
                }
            }
        }
        if let Some(sent_at) = newest {
            let whole = now.since(sent_at);
            self.min_rtt = Some(self.min_rtt.map_or(whole, |min| min.min(whole)));
            self.latest_rtt = whole.saturating_sub(delay);
            outcome.rtt = Some(self.latest_rtt);
            outcome.round_over = largest >= self.round_end;
            if outcome.round_over {
                self.round_end = next;
            }
        }
        self.largest_acked = Some(self.largest_acked.map_or(largest, |before| before.max(largest)));
        self.forget();
        outcome
    }

    /// Takes out what is lost by now; its contents must be sent again.
    pub(super) fn take_lost(&mut self, now: Time, rtt: &RttEstimator, lost: &mut Vec<Content>) -> Bytes {
        let Some(largest) = self.largest_acked else { return Bytes::ZERO };
        let patience = self.patience(rtt);
        let mut lost_len = Bytes::ZERO;
        for sent in self.sent.iter_mut().take_while(|sent| sent.number < largest) {
            if sent.content.is_none() {
                continue;
            }
            if sent.number + PACKETS <= largest || sent.at + patience <= now {
                lost.extend(sent.content.take());
                lost_len += sent.len;
            } else {
                // Those behind were sent later.
                break;
            }
        }
        self.in_flight = self.in_flight.saturating_sub(lost_len);
        self.forget();
        lost_len
    }

    /// Takes the oldest packet's content, to be sent again as a probe.
    pub(super) fn take_oldest(&mut self) -> Option<Content> {
        let sent = self.sent.iter_mut().find(|sent| sent.content.is_some())?;
        self.in_flight = self.in_flight.saturating_sub(sent.len);
        let content = sent.content.take();
        self.forget();
        content
    }

    /// When something will be lost if it is not acknowledged before.
    pub(super) fn loss_time(&self, rtt: &RttEstimator) -> Option<Time> {
        let largest = self.largest_acked?;
        let waiting = self.sent.iter().take_while(|sent| sent.number < largest).find(|sent| sent.content.is_some())?;
        Some(waiting.at + self.patience(rtt))
    }

    /// When the last packet that asks for an acknowledgement was sent; `None` if none is waited for.
    pub(super) fn waiting_since(&self) -> Option<Time> {
        (!self.in_flight.is_zero()).then_some(self.last_eliciting)
    }

    /// Octets of IP packets that are in the network as far as we know.
    pub(super) fn in_flight(&self) -> Bytes {
        self.in_flight
    }

    /// The least round trip of the session.
    pub(super) fn min_rtt(&self) -> Option<Span> {
        self.min_rtt
    }

    fn patience(&self, rtt: &RttEstimator) -> Span {
        let longest = rtt.srtt().unwrap_or(self.latest_rtt).max(self.latest_rtt);
        (longest * TIME_EIGHTHS / 8).max(longest + GRANULARITY)
    }

    fn forget(&mut self) {
        while self.sent.front().is_some_and(|sent| sent.content.is_none()) {
            self.sent.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Bytes = Bytes::new(1500);

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn sent(count: u64) -> Ledger {
        let mut ledger = Ledger::default();
        (0..count).for_each(|n| ledger.on_sent(at(n), FULL, Some(Content::default())));
        ledger
    }

    fn rtt() -> RttEstimator {
        RttEstimator::new(Span::from_millis(20), Span::from_secs(3), Span::from_millis(300))
    }

    #[test]
    fn three_numbers_below_the_largest_is_lost() {
        let mut ledger = sent(6);
        let outcome = ledger.on_ack(at(40), Span::from_millis(1), &[AckRange { first: 3, last: 3 }]);
        assert_eq!((outcome.delivered.len(), outcome.rtt), (1, Some(Span::from_millis(36))));
        let mut lost = Vec::new();
        assert_eq!(ledger.take_lost(at(40), &rtt(), &mut lost), FULL, "packet 0; 1 and 2 may still come");
        assert_eq!(ledger.in_flight(), FULL * 4);
        assert_eq!(ledger.loss_time(&rtt()), Some(at(1) + Span::from_micros(40_500)));
        assert_eq!(ledger.take_lost(at(43), &rtt(), &mut lost), FULL * 2);
        assert_eq!(ledger.loss_time(&rtt()), None);
    }

    #[test]
    fn an_acknowledgement_of_what_was_never_sent_changes_nothing() {
        let mut ledger = sent(3);
        let outcome = ledger.on_ack(at(9), Span::ZERO, &[AckRange { first: 0, last: 3 }]);
        assert!(outcome.delivered.is_empty());
        assert_eq!(ledger.in_flight(), FULL * 3);
    }

    #[test]
    fn packets_that_ask_for_nothing_are_not_waited_for() {
        let mut ledger = Ledger::default();
        ledger.on_sent(at(0), FULL, None);
        assert_eq!((ledger.next_number(), ledger.in_flight(), ledger.waiting_since()), (1, Bytes::ZERO, None));
    }

    #[test]
    fn packets_that_ask_for_nothing_leave_no_trace_behind_one_that_waits() {
        let mut ledger = sent(1);
        (1..10_000).for_each(|n| ledger.on_sent(at(n), FULL, (n == 5000).then(Content::default)));
        assert_eq!((ledger.sent.len(), ledger.next_number(), ledger.in_flight()), (2, 10_000, FULL * 2));
        // They count where numbers do: 5000 is three below 5003, which asked for nothing.
        ledger.on_ack(at(10_000), Span::ZERO, &[AckRange { first: 5001, last: 5002 }]);
        let mut lost = Vec::new();
        ledger.latest_rtt = Span::from_secs(60);
        assert_eq!(ledger.take_lost(at(10_000), &rtt(), &mut lost), FULL, "packet 0");
        ledger.on_ack(at(10_000), Span::ZERO, &[AckRange { first: 5003, last: 5003 }]);
        assert_eq!(ledger.take_lost(at(10_000), &rtt(), &mut lost), FULL, "packet 5000");
        assert_eq!((ledger.sent.len(), ledger.next_number(), ledger.in_flight()), (0, 10_000, Bytes::ZERO));
        ledger.on_sent(at(10_001), FULL, Some(Content::default()));
        let outcome = ledger.on_ack(at(10_002), Span::ZERO, &[AckRange { first: 7, last: 10_000 }]);
        assert_eq!((outcome.delivered.len(), outcome.largest_sent), (1, Some(at(10_001))));
    }

    #[test]
    fn a_probe_repeats_the_oldest() {
        let mut ledger = sent(2);
        assert!(ledger.take_oldest().is_some() && ledger.take_oldest().is_some() && ledger.take_oldest().is_none());
        assert_eq!((ledger.in_flight(), ledger.next_number()), (Bytes::ZERO, 2));
    }
}
