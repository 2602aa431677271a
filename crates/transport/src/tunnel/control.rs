//! How much may be in the network, and how fast it may leave: set from outside, or decided by a law.

use super::path_pace::PathPace;
use crate::delivery_rate::{DeliveryRate, Snapshot};
use lasthop_laws::{SenderLaw, Why};
use lasthop_signals::{Ack, Loss, Sent, Signal};
use lasthop_units::{Bytes, Rate, Span, Time};

/// What decides the rate.
#[derive(Clone)]
pub(super) enum Control {
    /// A law outside the tunnel that knows the hop.
    Set {
        /// Rate of IP packets.
        rate: Rate,
        /// Octets of the streams that may be held here, sent or not.
        budget: Bytes,
    },
    /// A sender law.
    Law(LawControl),
    /// The delay of the path's slowest hop, as packets bring it.
    Path(Box<PathPace>),
}

/// A law, and what it wants to be told that nobody else needs.
#[derive(Clone)]
pub(super) struct LawControl {
    law: Box<dyn SenderLaw>,
    delivery: DeliveryRate,
    /// When the law wants to be woken.
    wakes: Option<Time>,
    /// Packets sent up to here belong to the current recovery.
    recovery_until: Option<u64>,
    limited: bool,
}

/// Payload that counts as a segment.
const MSS: Bytes = Bytes::new(1500);

impl LawControl {
    pub(super) fn new(law: Box<dyn SenderLaw>) -> LawControl {
        let delivery = DeliveryRate::new(Time::ZERO);
        LawControl { law, delivery, wakes: None, recovery_until: None, limited: false }
    }

    /// Shows the law something.
    pub(super) fn sense(&mut self, now: Time, signal: &Signal) {
        self.law.sense(now, signal);
        self.wakes = self.law.decide(now).revisit;
    }

    /// When the law wants to be woken.
    pub(super) fn timer(&self) -> Option<Time> {
        self.wakes
    }

    pub(super) fn why(&self, now: Time) -> Why {
        self.law.decide(now).why
    }

    pub(super) fn window(&self, now: Time) -> Bytes {
        self.law.decide(now).cwnd.map_or(Bytes::MAX, |bounds| bounds.upper)
    }

    pub(super) fn rate(&self, now: Time) -> Rate {
        self.law.decide(now).pacing.unwrap_or(Rate::MAX)
    }

    /// The window, not the lack of data, has kept something back.
    pub(super) fn on_limited(&mut self) {
        self.limited = true;
    }

    /// A packet leaves that is waited for; `in_flight` with it. What is returned is to be kept with it.
    pub(super) fn on_sent(&mut self, now: Time, len: Bytes, in_flight: Bytes) -> Snapshot {
        let from_idle = in_flight == len;
        let snapshot = self.delivery.on_sent(now, from_idle);
        self.sense(now, &Signal::Sent(Sent { len, in_flight, retransmission: false, from_idle }));
        snapshot
    }

    /// There was nothing to send although something could have left, with so much in flight.
    pub(super) fn on_starved(&mut self, in_flight: Bytes) {
        self.delivery.mark_app_limited(in_flight.get());
    }

    /// Folds one acknowledgement in: `delivered` and `lost` octets of packets, `before` and `after` it in flight.
    pub(super) fn on_ack(&mut self, now: Time, news: &News, rtt: RoundTrips) {
        if self.recovery_until.is_some_and(|until| news.largest >= until) {
            self.recovery_until = None;
            self.sense(now, &Signal::Recovered);
        }
        if !news.lost.is_zero() && self.recovery_until.is_none() {
            self.recovery_until = Some(news.next);
            self.sense(now, &Signal::Loss(self.loss(news)));
        }
        let ack = Ack {
            newly_delivered: news.delivered,
            newly_acked: news.delivered,
            newly_lost: news.lost,
            rtt: news.rtt,
            min_rtt: rtt.least,
            srtt: rtt.smoothed,
            prior_in_flight: news.before,
            in_flight: news.after,
            delivered: self.delivered(),
            delivery: self.delivery.sample(now, rtt.least),
            mss: MSS,
            cwnd_limited: self.limited,
            in_recovery: self.recovery_until.is_some(),
        };
        self.sense(now, &Signal::Ack(ack));
        if news.round_over {
            self.limited = false;
        }
    }

    pub(super) fn on_timeout(&mut self, now: Time, news: &News) {
        self.recovery_until = Some(news.next);
        self.sense(now, &Signal::Timeout(self.loss(news)));
    }

    fn loss(&self, news: &News) -> Loss {
        let News { before, after, lost, .. } = *news;
        Loss { prior_in_flight: before, in_flight: after, lost, delivered: self.delivered(), mss: MSS }
    }

    /// Octets of packets that were delivered.
    fn delivered(&self) -> Bytes {
        Bytes::new(self.delivery.delivered())
    }
}

impl Control {
    /// Where deliveries are counted; `None` where nobody asks for their rate.
    pub(super) fn delivery(&mut self) -> Option<&mut DeliveryRate> {
        match self {
            Control::Law(law) => Some(&mut law.delivery),
            Control::Set { .. } | Control::Path(_) => None,
        }
    }
}

/// What is known of round trips.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrips {
    pub(super) least: Option<Span>,
    pub(super) smoothed: Option<Span>,
}

/// What happened to packets in the network.
#[derive(Clone, Copy, Debug)]
pub(super) struct News {
    pub(super) delivered: Bytes,
    pub(super) lost: Bytes,
    pub(super) before: Bytes,
    pub(super) after: Bytes,
    pub(super) rtt: Option<Span>,
    pub(super) round_over: bool,
    /// Largest number acknowledged.
    pub(super) largest: u64,
    /// The number that the next packet will have.
    pub(super) next: u64,
}
