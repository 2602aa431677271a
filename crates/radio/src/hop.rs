//! The contract between a hop model and the world that drives it.
//!
//! It holds what every hop has. What only some hops have, such as the frames of 802.11, a hop hands out through a trait
//! of its own beside [`Outbox`], which its outbox must implement as well: [`crate::wifi::Air`].

use crate::Packet;
use lasthop_signals::{Node, Signal};
use lasthop_units::{Rate, Time};

/// When something happens next in a model.
pub trait NextEvent {
    /// When something will happen next if nothing is enqueued; `None` for never. To be asked again after every call.
    fn next_event(&self) -> Option<Time>;
}

/// A hop model that hands what it produces to outboxes of type `O`.
///
/// The driver keeps one rule: before it passes a `now` to any method, it has advanced the model past every event that
/// lies before that `now`; `enqueue` does so itself. `now` never goes back. Each event that the model reports carries
/// its own time, so a driver that is late still records true model times.
pub trait Hop<P, O: Outbox<P>>: NextEvent {
    /// Advances to `now`, then offers `packet` to the queue of its source node. A packet that the queue refuses comes
    /// back at once through [`Outbox::dropped`].
    fn enqueue(&mut self, now: Time, packet: Packet<P>, out: &mut O);

    /// Processes every event up to and including `now`.
    fn advance(&mut self, now: Time, out: &mut O);
}

/// Where a hop model puts what it produces. Only `deliver` must be handled.
pub trait Outbox<P> {
    /// `packet` has arrived at `to`. A group packet is delivered once to each receiver.
    fn deliver(&mut self, at: Time, to: Node, packet: Packet<P>, rx: &RxInfo);

    /// `packet` is lost.
    fn dropped(&mut self, at: Time, packet: Packet<P>, why: Drop) {
        let _ = (at, packet, why);
    }

    /// What the driver of node `of` would report now.
    fn driver(&mut self, at: Time, of: Node, signal: &Signal) {
        let _ = (at, of, signal);
    }
}

/// How a packet was received.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RxInfo {
    /// When the packet entered the hop's queue: its delay over the hop is the delivery time less this.
    pub queued_at: Time,
    /// PHY or link rate of the transmission that succeeded.
    pub rate: Rate,
}

/// Why a packet was lost on the hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Drop {
    /// The queue was full.
    QueueFull,
    /// Active queue management took it out.
    QueueManagement,
    /// The retry limit was reached.
    RetryLimit,
    /// Its destination is not in reach.
    Unreachable,
}
