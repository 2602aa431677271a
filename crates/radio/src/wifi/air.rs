//! What a Wi-Fi hop shows beside deliveries and losses: frames, for monitors.

use super::decibel::Dbm;
use crate::{AccessClass, Outbox};
use lasthop_signals::Node;
use lasthop_signals::phy::TxVector;
use lasthop_units::{Bytes, Rate, Span, Time};

/// What the outbox of a Wi-Fi hop hears of the air. Nothing of it must be handled.
pub trait Air<P>: Outbox<P> {
    /// A PPDU has ended on the air, at `at`.
    fn ppdu(&mut self, at: Time, ppdu: &PpduRecord) {
        let _ = (at, ppdu);
    }

    /// True if [`Air::mpdu`] is to be called. Asked once a PPDU, so that it costs nothing if nothing listens.
    fn wants_mpdus(&self) -> bool {
        false
    }

    /// An MPDU has ended on the air at `at`, and somebody received it, whole or damaged. Those of one PPDU come in their
    /// order, before anything of them is delivered. Called if [`Air::wants_mpdus`].
    fn mpdu(&mut self, at: Time, mpdu: &MpduRecord<'_, P>) {
        let _ = (at, mpdu);
    }

    /// How the packet came that [`Outbox::deliver`] is called with next.
    fn received(&mut self, at: Time, to: Node, reception: &Reception) {
        let _ = (at, to, reception);
    }
}

/// How a delivered packet came over the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reception {
    /// Number of the A-MPDU it came in, unique a run; `None` outside 802.11 aggregation.
    pub ampdu: Option<u32>,
    /// Transmission attempts beyond the first.
    pub retries: u8,
    /// Packets in the MPDU that it came in: more than one in an A-MSDU.
    pub msdus: u16,
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
    /// The nodes that received its PPDU, the receiver it is meant for among them, in the order of nodes. A node that
    /// missed the PPDU in a collision, or cannot tell its format, has nothing to show.
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
    /// The node.
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
