//! Signals for the unit tests of the laws in this room.

use super::Setup;
use crate::SenderLaw;
use lasthop_signals::{Ack, Loss};
use lasthop_units::{Bytes, Seed, Time};

pub(crate) const MSS: Bytes = Bytes::new(1000);

/// Segments of 1000 octets, initial window of 10.
pub(crate) fn setup() -> Setup {
    Setup::new(MSS, Seed(1).stream("law"))
}

/// An ACK for `segments`, with `in_flight` segments in the network before it, of a sender limited by its window.
pub(crate) fn ack(segments: u64, in_flight: u64) -> Ack {
    Ack {
        newly_delivered: MSS * segments,
        newly_acked: MSS * segments,
        newly_lost: Bytes::ZERO,
        rtt: None,
        min_rtt: None,
        srtt: None,
        prior_in_flight: MSS * in_flight,
        in_flight: MSS * in_flight.saturating_sub(segments),
        delivered: Bytes::ZERO,
        delivery: None,
        mss: MSS,
        cwnd_limited: true,
        in_recovery: false,
    }
}

/// A loss event with `in_flight` segments in the network after it.
pub(crate) fn loss(in_flight: u64) -> Loss {
    Loss {
        prior_in_flight: MSS * (in_flight + 1),
        in_flight: MSS * in_flight,
        lost: MSS,
        delivered: Bytes::ZERO,
        mss: MSS,
    }
}

/// What the law lets into the network.
pub(crate) fn cwnd(law: &impl SenderLaw) -> Bytes {
    law.decide(Time::ZERO).cwnd.expect("sets a window").upper
}
