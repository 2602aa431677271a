//! The last hop of a world, whichever it is.

use crate::cargo::Cargo;
use lasthop_radio::star::Star;
use lasthop_radio::wifi::Wifi;
use lasthop_radio::{Hop, Outbox, Packet};
use lasthop_units::Time;

/// A hop model. Node 0 is the access point, stations follow.
#[derive(Debug)]
pub enum LastHop {
    /// A cable to each station.
    Wired(Star<Cargo>),
    /// A radio channel.
    Wifi(Box<Wifi<Cargo>>),
}

impl Hop<Cargo> for LastHop {
    #[inline(always)]
    fn enqueue(&mut self, now: Time, packet: Packet<Cargo>, out: &mut impl Outbox<Cargo>) {
        match self {
            LastHop::Wired(hop) => hop.enqueue(now, packet, out),
            LastHop::Wifi(hop) => hop.enqueue(now, packet, out),
        }
    }

    #[inline]
    fn advance(&mut self, now: Time, out: &mut impl Outbox<Cargo>) {
        match self {
            LastHop::Wired(hop) => hop.advance(now, out),
            LastHop::Wifi(hop) => hop.advance(now, out),
        }
    }

    #[inline]
    fn next_event(&self) -> Option<Time> {
        match self {
            LastHop::Wired(hop) => hop.next_event(),
            LastHop::Wifi(hop) => hop.next_event(),
        }
    }
}
