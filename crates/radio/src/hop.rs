//! The contract between a hop model and the world that drives it.

use crate::wifi::Dbm;
use crate::{AccessClass, Packet};
use lasthop_signals::phy::TxVector;
use lasthop_signals::{Node, Signal};
use lasthop_units::{Bytes, Rate, Span, Time};

/// A hop model.
///
/// The driver keeps one rule: before it passes a `now` to any method, it has advanced the model past every event that
/// lies before that `now`; `enqueue` does so itself. `now` never goes back. Each event that the model reports carries
/// its own time, so a driver that is late still records true model times.
pub trait Hop<P> {
    /// Advances to `now`, then offers `packet` to the queue of its source node. A packet that the queue refuses comes
    /// back at once through [`Outbox::dropped`].
    fn enqueue(&mut self, now: Time, packet: Packet<P>, out: &mut impl Outbox<P>);

    /// Processes every event up to and including `now`.
    fn advance(&mut self, now: Time, out: &mut impl Outbox<P>);

    /// When something will happen next if nothing is enqueued. To be asked again after every call.
    fn next_event(&self) -> Option<Time>;
}

/// Where a hop model puts what it produces. Only `deliver` must be handled.
pub trait Outbox<P> {
    /// `packet` has arrived at `to`. A group packet is delivered once to each receiver.
    fn deliver(&mut self, at: Time, to: Node, packet: Packet<P>, rx: &RxInfo);

    /// `packet` is lost.
    fn dropped(&mut self, at: Time, packet: Packet<P>, why: Drop) {
        let _ = (at, packet, why);
    }

    /// A PPDU has ended on the air, at `at`.
    fn ppdu(&mut self, at: Time, ppdu: &PpduRecord) {
        let _ = (at, ppdu);
    }

    /// True if [`Outbox::mpdu`] is to be called. Asked once a PPDU, so that nobody pays who does not listen.
    fn wants_mpdus(&self) -> bool {
        false
    }

    /// An MPDU has ended on the air at `at`, and somebody received it, whole or damaged. Those of one PPDU come in their
    /// order, before anything of them is delivered. Called by hops that have MPDUs, if [`Outbox::wants_mpdus`].
    fn mpdu(&mut self, at: Time, mpdu: &MpduRecord<'_, P>) {
        let _ = (at, mpdu);
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
    /// Number of the A-MPDU it came in, unique a run; `None` outside 802.11 aggregation.
    pub ampdu: Option<u32>,
    /// Transmission attempts beyond the first.
    pub retries: u8,
    /// Packets in the MPDU that it came in: more than one in an A-MSDU. 1 outside 802.11.
    pub msdus: u16,
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

/// One PPDU on the air.
#[derive(Clone, Debug, PartialEq)]
pub struct PpduRecord {
    /// When its first symbol left.
    pub start: Time,
    /// How long it occupied the channel.
    pub duration: Span,
    /// Transmitter.
    pub from: Node,
    /// Receiver; `None` for a group frame.
    pub to: Option<Node>,
    /// What it carried.
    pub kind: PpduKind,
    /// PHY rate.
    pub rate: Rate,
    /// MPDUs inside; 0 for control frames.
    pub mpdus: u16,
    /// Packets inside: more than MPDUs with A-MSDUs. 0 for control frames and beacons.
    pub packets: u16,
    /// MPDUs that the receiver decoded.
    pub received: u16,
    /// PSDU length.
    pub psdu: Bytes,
}

/// One MPDU of a data PPDU, as monitors see it.
#[derive(Clone, Debug, PartialEq)]
pub struct MpduRecord<'a, P> {
    /// When the first symbol of its PPDU left.
    pub start: Time,
    /// Transmitter.
    pub from: Node,
    /// Receiver.
    pub to: Node,
    /// Its priority.
    pub class: AccessClass,
    /// Number of its A-MPDU, unique a run; `None` if it came alone, outside any A-MPDU.
    pub ampdu: Option<u32>,
    /// True for the last MPDU of its PPDU.
    pub last: bool,
    /// Sequence number, 0 to 4095, counted for each transmitter, receiver and priority.
    pub sequence: u16,
    /// True if it was sent before.
    pub retry: bool,
    /// True if its receiver found the check sequence right.
    pub received: bool,
    /// Who received its PPDU, the receiver it is meant for among them, in the order of nodes. Who missed the PPDU in a
    /// collision, or cannot tell its format, has nothing to show.
    pub hearers: &'a [Hearing],
    /// How its PPDU was sent.
    pub tx: TxVector,
    /// Its length, from MAC header to check sequence.
    pub len: Bytes,
    /// How long its duration field reserves the channel.
    pub reserves: Span,
    /// Packets inside: more than one in an A-MSDU.
    pub packets: u16,
    /// The packets; none if the receiver has handed them up already, after an earlier attempt, and for background traffic.
    pub payloads: Vec<&'a P>,
}

/// How one node received an MPDU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hearing {
    /// Who.
    pub node: Node,
    /// True if it found the check sequence right.
    pub whole: bool,
    /// Power of the frame and of the noise at its antenna; `None` for a link that has no signal-to-noise ratio.
    pub strength: Option<Strength>,
}

/// What a receiver measures of a frame, over the whole channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Strength {
    /// Power of the frame.
    pub signal: Dbm,
    /// Power of the noise.
    pub noise: Dbm,
}

/// What a PPDU carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PpduKind {
    /// One or more data MPDUs.
    Data,
    /// Ack.
    Ack,
    /// BlockAck.
    BlockAck,
    /// BlockAckReq: the sender moves the receiver's window past frames that it gave up.
    BlockAckReq,
    /// Beacon.
    Beacon,
    /// RTS: announces a data PPDU.
    Rts,
    /// CTS: the answer to an RTS.
    Cts,
}
