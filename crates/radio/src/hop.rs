//! The contract between a hop model and the world that drives it.
//!
//! It holds what every hop has. What only some hops have, such as the frames of 802.11, a hop hands out through a trait
//! of its own beside [`Outbox`], which its outbox must implement as well: [`crate::wifi::Air`].

use crate::{AccessClass, Dest, Packet};
use lasthop_signals::{Node, Signal};
use lasthop_units::{Bytes, Rate, Time};

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

    /// True if [`Outbox::completed`] is to be called. Asked once a transmission, so that it costs nothing if nothing
    /// listens.
    fn wants_completions(&self) -> bool {
        false
    }

    /// A transmitter is done with a packet since `at`. Called if [`Outbox::wants_completions`], also for traffic that the
    /// model makes up by itself; not for a packet that a queue has refused or dropped. A wire, for which the end of a
    /// transmission is no event, may call it later than `at`, though never later than the packet arrives.
    fn completed(&mut self, at: Time, completion: &Completion) {
        let _ = (at, completion);
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

/// What a transmitter knows of a packet when it is done with it (a transmit completion).
///
/// The packet waited from `queued_at` to `head_at`, and was served from there to the completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The transmitter: of a group packet that an access point sends out again, the access point.
    pub from: Node,
    /// The packet's destination.
    pub dst: Dest,
    /// Its network-layer length.
    pub len: Bytes,
    /// Its priority.
    pub class: AccessClass,
    /// Its flow's hash.
    pub flow_hash: u32,
    /// When it entered the transmitter's queue.
    pub queued_at: Time,
    /// When it came to the head of the line: first became the packet that its transmitter tries to send. On a wire that
    /// is when its first bit leaves. On 802.11 without a BlockAck agreement it is when contention for its frame begins: at
    /// the end of the exchange before, or when it is queued, if that is later. With one it is when the first A-MPDU with
    /// it is built, which is when contention ends.
    pub head_at: Time,
    /// How it ended.
    pub outcome: Outcome,
}

/// How a packet's transmission ended, for all that its transmitter knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver has acknowledged it.
    Acknowledged,
    /// It is sent, and nobody acknowledges such packets: on a wire, or to a group.
    Sent,
    /// It was given up after the last retry. If only acknowledgements were lost, it is delivered all the same.
    GivenUp,
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
    /// It was damaged on a wire, and its receiver threw it away.
    Damaged,
    /// Its destination is not in reach.
    Unreachable,
}
