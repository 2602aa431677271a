//! How fast the network delivers.
//! Source:     [draft-ietf-ccwg-bbr] section 4.1 (formerly draft-cheng-iccrg-delivery-rate-estimation-02, section 3).
//! Equations:  rate = data delivered / max(send interval, ack interval)
//! Symbols:    C.delivered -> `delivered`, C.delivered_time -> `delivered_at`, C.first_sent_time -> `first_sent_at`,
//!             C.app_limited -> `app_limited_until`; P.* -> `Snapshot`
//! Deviations: none.     Validity: a sample over less than the smallest RTT is discarded (section 3.3 of the draft).
//! Checked by: tests::*, and end to end by tests/integration/bottleneck.rs (BBR finds the link's rate)

use lasthop_signals::DeliverySample;
use lasthop_units::{Bytes, Rate, Span, Time};

/// What a segment carries from its departure to its acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Snapshot {
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    app_limited: bool,
}

/// The estimator of one connection.
#[derive(Clone, Debug)]
pub(crate) struct DeliveryRate {
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    /// Samples are application-limited until `delivered` has passed this.
    app_limited_until: Option<u64>,
    newest: Option<Newest>,
}

/// The most recently sent segment among those that the ACK being processed delivers.
#[derive(Clone, Copy, Debug)]
struct Newest {
    sent_at: Time,
    end: u64,
    snapshot: Snapshot,
}

impl DeliveryRate {
    /// An estimator without history.
    pub(crate) fn new(now: Time) -> DeliveryRate {
        DeliveryRate { delivered: 0, delivered_at: now, first_sent_at: now, app_limited_until: None, newest: None }
    }

    /// A segment leaves; the answer is to be kept with it.
    pub(crate) fn on_sent(&mut self, now: Time, from_idle: bool) -> Snapshot {
        if from_idle {
            // Idle time is neither sending nor delivering time.
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        Snapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            app_limited: self.app_limited_until.is_some(),
        }
    }

    /// The segment that ends at `end`, `bytes` of it new, is reported delivered by the ACK being processed.
    pub(crate) fn on_delivered(&mut self, now: Time, bytes: u64, end: u64, sent_at: Time, snapshot: &Snapshot) {
        self.delivered += bytes;
        self.delivered_at = now;
        if self.newest.is_none_or(|newest| (sent_at, end) > (newest.sent_at, newest.end)) {
            self.newest = Some(Newest { sent_at, end, snapshot: *snapshot });
        }
    }

    /// Something is reported delivered that left before anybody asked for the rate.
    pub(crate) fn on_uncounted(&mut self, now: Time, bytes: u64) {
        self.delivered += bytes;
        self.delivered_at = now;
    }

    /// The sample of the ACK with the deliveries that were just reported; `None` if it delivered nothing or cannot be
    /// trusted.
    pub(crate) fn sample(&mut self, now: Time, min_rtt: Option<Span>) -> Option<DeliverySample> {
        if self.app_limited_until.is_some_and(|until| self.delivered > until) {
            self.app_limited_until = None;
        }
        let newest = self.newest.take()?;
        self.first_sent_at = newest.sent_at;
        let send_interval = newest.sent_at.since(newest.snapshot.first_sent_at);
        let ack_interval = now.since(newest.snapshot.delivered_at);
        let interval = send_interval.max(ack_interval);
        if interval < min_rtt? {
            return None;
        }
        Some(DeliverySample {
            rate: Rate::of(Bytes::new(self.delivered - newest.snapshot.delivered), interval)?,
            interval,
            prior_delivered: Bytes::new(newest.snapshot.delivered),
            sent_at: newest.sent_at,
            app_limited: newest.snapshot.app_limited,
        })
    }

    /// The application has nothing to send although the network would take it: what follows until `in_flight` more is
    /// delivered says nothing about the network.
    pub(crate) fn mark_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = Some(self.delivered + in_flight);
    }

    /// Payload delivered so far.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::brief::at;

    #[test]
    fn ten_segments_in_ten_milliseconds_after_a_round_trip() {
        let mut rate = DeliveryRate::new(at(0));
        let first = rate.on_sent(at(0), true);
        rate.on_delivered(at(20), 1000, 1000, at(0), &first);
        let sample = rate.sample(at(20), Some(Span::from_millis(20))).expect("one round trip");
        assert_eq!(sample.rate, Rate::from_bps(400_000));
        assert_eq!(sample.prior_delivered, Bytes::ZERO);

        // Sent at 20 ms, when 1000 octets were delivered; acknowledged at 40 ms with 9000 others: 9000 in 20 ms.
        let later = rate.on_sent(at(20), false);
        rate.on_delivered(at(40), 9000, 10_000, at(20), &later);
        let sample = rate.sample(at(40), Some(Span::from_millis(20))).expect("one round trip");
        assert_eq!(sample.rate, Rate::from_bps(3_600_000));
        assert_eq!(sample.prior_delivered, Bytes::new(1000));
    }

    #[test]
    fn compressed_acks_do_not_exceed_the_rate_of_sending() {
        let mut rate = DeliveryRate::new(at(0));
        let first = rate.on_sent(at(0), true);
        // Its acknowledgement waits somewhere for those behind it.
        rate.on_delivered(at(55), 1000, 1000, at(0), &first);
        rate.sample(at(55), Some(Span::from_millis(20))).expect("valid");
        let last = rate.on_sent(at(60), false);
        rate.on_delivered(at(80), 6000, 7000, at(60), &last);
        // 6000 octets were sent in 60 ms, though acknowledged within 25.
        let sample = rate.sample(at(80), Some(Span::from_millis(20))).expect("valid");
        assert_eq!((sample.rate, sample.interval), (Rate::from_bps(800_000), Span::from_millis(60)));
    }

    #[test]
    fn a_sample_shorter_than_the_path_is_refused() {
        let mut rate = DeliveryRate::new(at(0));
        let sent = rate.on_sent(at(0), true);
        rate.on_delivered(at(5), 1000, 1000, at(0), &sent);
        assert_eq!(rate.sample(at(5), Some(Span::from_millis(20))), None);
    }

    #[test]
    fn the_application_limit_ends_when_the_flight_is_delivered() {
        let mut rate = DeliveryRate::new(at(0));
        rate.mark_app_limited(500);
        let limited = rate.on_sent(at(0), true);
        rate.on_delivered(at(20), 1000, 1000, at(0), &limited);
        assert!(rate.sample(at(20), Some(Span::from_millis(20))).expect("valid").app_limited);
        let free = rate.on_sent(at(20), true);
        rate.on_delivered(at(40), 1000, 2000, at(20), &free);
        assert!(!rate.sample(at(40), Some(Span::from_millis(20))).expect("valid").app_limited);
    }
}
