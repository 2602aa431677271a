//! Packets that have been sent and not yet accounted for.
//! Source:     RFC 9002 sections 5 and 6.
//! Equations:  lost: number + 3 <= largest acknowledged, or sent at least 9/8 max(srtt, latest RTT) ago and below it;
//!             latest RTT = now - departure of the largest acknowledged - delay, if the largest is newly acknowledged (5.1)
//! Symbols:    kPacketThreshold -> `PACKETS`, kTimeThreshold -> `TIME_EIGHTHS`, kGranularity -> `GRANULARITY`,
//!             kInitialRtt -> `INITIAL_RTT`
//! Deviations: the delay is taken away whole, also where that leaves less than the least round trip (5.3 forbids it): a station waits
//!             100 ms, so the least round trip holds that wait. The time threshold is at least GRANULARITY above the RTT, not just
//!             at least GRANULARITY (6.1.2): timers are no finer. Departures of packets that ask for nothing are known of the last
//!             `MOST_QUIET` only: where the largest is an older one there is no sample. Mean and timeout (5.3, 6.2.1) are `rtt`'s.
//! Validity:   numbers are given out in order.     Checked by: tests::*, tests/integration/tunnel.rs

use super::frames::Content;
use crate::delivery_rate::{DeliveryRate, Snapshot};
use crate::rtt::RttEstimator;
use lasthop_units::{Bytes, Span, Time};
use lasthop_wire::tunnel::AckRange;
use std::collections::VecDeque;

/// What was sent, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct SentPackets {
    /// Number of the next packet.
    next: u64,
    /// Packets that ask for an acknowledgement, in order: the first waits for it.
    sent: VecDeque<Sent>,
    /// Number and departure of the last packets that ask for nothing, of those above the largest acknowledged.
    quiet: VecDeque<(u64, Time)>,
    largest_acked: Option<u64>,
    in_flight: Bytes,
    latest_rtt: Option<Span>,
    last_eliciting: Time,
    /// A round is over when this number or a later one is acknowledged.
    round_end: u64,
    /// Least round trip, the other side's delay included.
    min_rtt: Option<Span>,
}

/// One packet.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    number: u64,
    pub(super) at: Time,
    /// Its length as an IP packet.
    pub(super) len: Bytes,
    /// What it carried; `None` once it is accounted for.
    pub(super) content: Option<Content>,
    /// What was delivered when it left, where a law asks for it.
    snapshot: Option<Snapshot>,
}

/// What an acknowledgement brought.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Contents that have arrived.
    pub(super) delivered: Vec<Content>,
    /// Their packets' length in all.
    pub(super) delivered_len: Bytes,
    /// The RTT of the packet with the largest number, less the other side's delay, if that packet is newly acknowledged.
    pub(super) rtt: Option<Span>,
    /// When that packet was sent, if it is newly acknowledged.
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
/// The RTT before there was a sample.
const INITIAL_RTT: Span = Span::from_millis(333);
/// Packets that ask for nothing and have a remembered departure. The other end makes this one send them: 1 KiB. They
/// are acknowledgements for the most part, and the proxy, from which most of them come, sends some ten in the 100 ms
/// that a station waits while that sends 100 Mbit/s.
const MOST_QUIET: usize = 64;

impl SentPackets {
    /// The number of the next packet.
    pub(super) fn next_number(&self) -> u64 {
        self.next
    }

    /// Packets that are remembered: those that wait for an acknowledgement, and some between them.
    pub(super) fn len(&self) -> usize {
        self.sent.len()
    }

    /// Notes the packet with the next number. One that asks for nothing, with `None` as content, is not waited for and
    /// leaves nothing but its number, and its departure for a while: the other end decides how many there are.
    pub(super) fn on_sent(&mut self, at: Time, len: Bytes, content: Option<Content>) {
        if content.is_some() {
            self.in_flight += len;
            self.last_eliciting = at;
            self.sent.push_back(Sent { number: self.next, at, len, content, snapshot: None });
        } else {
            self.quiet.push_back((self.next, at));
            if self.quiet.len() > MOST_QUIET {
                self.quiet.pop_front();
            }
        }
        self.next += 1;
    }

    /// Keeps with the packet that was sent last what was delivered when it left.
    pub(super) fn keep(&mut self, snapshot: Snapshot) {
        if let Some(sent) = self.sent.back_mut() {
            sent.snapshot = Some(snapshot);
        }
    }

    /// What the other side says to have. Numbers that were never sent are ignored. `rate` counts what is delivered.
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        delay: Span,
        ranges: &[AckRange],
        mut rate: Option<&mut DeliveryRate>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
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
                match (&mut rate, &sent.snapshot) {
                    (Some(rate), Some(snapshot)) => {
                        rate.on_delivered(now, sent.len.get(), sent.number, sent.at, snapshot);
                    }
                    (Some(rate), None) => rate.on_uncounted(now, sent.len.get()),
                    (None, _) => {}
                }
                if sent.number == largest {
                    outcome.largest_sent = Some(sent.at);
                }
            }
        }
        let behind = self.quiet.partition_point(|(number, _)| *number <= largest);
        if let Some((number, at)) = self.quiet.drain(..behind).next_back()
            && number == largest
        {
            outcome.largest_sent = Some(at);
        }
        if outcome.delivered.is_empty() {
            // Nothing that asked for it has an answer: that tells when the other end had something to say, not the way's length.
            outcome.largest_sent = None;
        } else {
            outcome.round_over = largest >= self.round_end;
            if outcome.round_over {
                self.round_end = next;
            }
        }
        if let Some(sent_at) = outcome.largest_sent {
            let whole = now.since(sent_at);
            self.min_rtt = Some(self.min_rtt.map_or(whole, |min| min.min(whole)));
            outcome.rtt = Some(whole.saturating_sub(delay));
            self.latest_rtt = outcome.rtt;
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

    /// The last round trip, without the other side's delay.
    pub(super) fn latest_rtt(&self) -> Option<Span> {
        self.latest_rtt
    }

    /// The least round trip of the session.
    pub(super) fn min_rtt(&self) -> Option<Span> {
        self.min_rtt
    }

    fn patience(&self, rtt: &RttEstimator) -> Span {
        let longest = rtt.srtt().max(self.latest_rtt).unwrap_or(INITIAL_RTT);
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

    fn sent(count: u64) -> SentPackets {
        let mut sent_packets = SentPackets::default();
        (0..count).for_each(|n| sent_packets.on_sent(at(n), FULL, Some(Content::default())));
        sent_packets
    }

    fn rtt() -> RttEstimator {
        RttEstimator::new(Span::from_millis(20), Span::from_secs(3), Span::from_millis(300))
    }

    #[test]
    fn three_numbers_below_the_largest_is_lost() {
        let mut sent_packets = sent(6);
        let outcome = sent_packets.on_ack(at(40), Span::from_millis(1), &[AckRange { first: 3, last: 3 }], None);
        assert_eq!((outcome.delivered.len(), outcome.rtt), (1, Some(Span::from_millis(36))));
        let mut lost = Vec::new();
        assert_eq!(sent_packets.take_lost(at(40), &rtt(), &mut lost), FULL, "packet 0; 1 and 2 may still come");
        assert_eq!(sent_packets.in_flight(), FULL * 4);
        assert_eq!(sent_packets.loss_time(&rtt()), Some(at(1) + Span::from_micros(40_500)));
        assert_eq!(sent_packets.take_lost(at(43), &rtt(), &mut lost), FULL * 2);
        assert_eq!(sent_packets.loss_time(&rtt()), None);
    }

    #[test]
    fn an_acknowledgement_of_what_was_never_sent_changes_nothing() {
        let mut sent_packets = sent(3);
        let outcome = sent_packets.on_ack(at(9), Span::ZERO, &[AckRange { first: 0, last: 3 }], None);
        assert!(outcome.delivered.is_empty());
        assert_eq!(sent_packets.in_flight(), FULL * 3);
    }

    #[test]
    fn packets_that_ask_for_nothing_are_not_waited_for() {
        let mut sent_packets = SentPackets::default();
        sent_packets.on_sent(at(0), FULL, None);
        assert_eq!(
            (sent_packets.next_number(), sent_packets.in_flight(), sent_packets.waiting_since()),
            (1, Bytes::ZERO, None)
        );
    }

    #[test]
    fn packets_without_ack_request_are_not_kept() {
        let mut sent_packets = sent(1);
        (1..10_000).for_each(|n| sent_packets.on_sent(at(n), FULL, (n == 5000).then(Content::default)));
        assert_eq!(
            (sent_packets.sent.len(), sent_packets.next_number(), sent_packets.in_flight()),
            (2, 10_000, FULL * 2)
        );
        // They count where numbers do: 5000 is three below 5003, which asked for nothing.
        sent_packets.on_ack(at(10_000), Span::ZERO, &[AckRange { first: 5001, last: 5002 }], None);
        let mut lost = Vec::new();
        sent_packets.latest_rtt = Some(Span::from_secs(60));
        assert_eq!(sent_packets.take_lost(at(10_000), &rtt(), &mut lost), FULL, "packet 0");
        sent_packets.on_ack(at(10_000), Span::ZERO, &[AckRange { first: 5003, last: 5003 }], None);
        assert_eq!(sent_packets.take_lost(at(10_000), &rtt(), &mut lost), FULL, "packet 5000");
        assert_eq!(
            (sent_packets.sent.len(), sent_packets.next_number(), sent_packets.in_flight()),
            (0, 10_000, Bytes::ZERO)
        );
        sent_packets.on_sent(at(10_001), FULL, Some(Content::default()));
        let outcome = sent_packets.on_ack(at(10_002), Span::ZERO, &[AckRange { first: 7, last: 10_000 }], None);
        assert_eq!((outcome.delivered.len(), outcome.largest_sent), (1, Some(at(10_001))));
    }

    #[test]
    fn only_the_largest_number_gives_a_round_trip_and_only_once() {
        let mut sent_packets = sent(6);
        // Number 5 left at 5 ms and waited 4 ms there.
        let outcome = sent_packets.on_ack(at(30), Span::from_millis(4), &[AckRange { first: 5, last: 5 }], None);
        assert_eq!((outcome.rtt, outcome.largest_sent), (Some(Span::from_millis(21)), Some(at(5))));
        // What was late has come, and the delay that is named is number 5's by now: 26 - 24 - 2 of number 2 would be none at all.
        let late = [AckRange { first: 5, last: 5 }, AckRange { first: 0, last: 2 }];
        let outcome = sent_packets.on_ack(at(50), Span::from_millis(24), &late, None);
        assert_eq!((outcome.delivered.len(), outcome.rtt, outcome.largest_sent), (3, None, None));
        assert_eq!(
            (sent_packets.latest_rtt, sent_packets.min_rtt()),
            (Some(Span::from_millis(21)), Some(Span::from_millis(25)))
        );
    }

    #[test]
    fn an_unasked_largest_gives_an_rtt_if_an_asked_packet_came() {
        let mut sent_packets = sent(1);
        sent_packets.on_sent(at(5), FULL, None);
        let both = [AckRange { first: 0, last: 1 }];
        let outcome = sent_packets.on_ack(at(30), Span::from_millis(3), &both, None);
        assert_eq!((outcome.delivered.len(), outcome.rtt), (1, Some(Span::from_millis(22))));
        sent_packets.on_sent(at(31), FULL, None);
        let outcome = sent_packets.on_ack(at(90), Span::ZERO, &[AckRange { first: 0, last: 2 }], None);
        assert_eq!((outcome.delivered.len(), outcome.rtt), (0, None), "nobody asked");
        // Of many only the last are known: no sample then, and no other one's departure in its place.
        sent_packets.on_sent(at(100), FULL, Some(Content::default()));
        (0..=MOST_QUIET as u64).for_each(|n| sent_packets.on_sent(at(101 + n), FULL, None));
        let outcome = sent_packets.on_ack(at(300), Span::ZERO, &[AckRange { first: 0, last: 4 }], None);
        assert_eq!((outcome.delivered.len(), outcome.rtt), (1, None));
    }

    #[test]
    fn before_there_was_a_round_trip_what_is_late_has_time() {
        let mut sent_packets = sent(1);
        sent_packets.on_sent(at(1), FULL, None);
        sent_packets.on_ack(at(20), Span::ZERO, &[AckRange { first: 1, last: 1 }], None);
        let mut lost = Vec::new();
        assert_eq!(sent_packets.take_lost(at(300), &rtt(), &mut lost), Bytes::ZERO);
        assert_eq!(sent_packets.take_lost(at(400), &rtt(), &mut lost), FULL);
    }

    #[test]
    fn a_probe_repeats_the_oldest() {
        let mut sent_packets = sent(2);
        assert!(
            sent_packets.take_oldest().is_some()
                && sent_packets.take_oldest().is_some()
                && sent_packets.take_oldest().is_none()
        );
        assert_eq!((sent_packets.in_flight(), sent_packets.next_number()), (Bytes::ZERO, 2));
    }
}
