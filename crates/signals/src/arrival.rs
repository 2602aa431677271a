//! What a receiver sees of what comes in.

use lasthop_units::{Bytes, Rate, Time};

/// A packet of the sender's flow that has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// When the receiver's kernel stamped it.
    pub at: Time,
    /// When it left the sender, where packets tell: by the sender's clock, which may differ.
    pub sent: Option<Time>,
    /// Its length at the network layer.
    pub len: Bytes,
}

/// What a receiver has of the sender's flow. The counters are cumulative; where they go back, another flow has begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Received {
    /// Packets that have arrived, each once.
    pub packets: u64,
    /// Packets that were sent up to the last in order of number that has arrived, those that have not included.
    pub given: u64,
}

/// A frame that a radio has received: an A-MPDU, or an MPDU that was sent alone.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ReceivedFrame {
    /// Packets that were sent in it, with what is inferred to have been lost.
    pub packets: u32,
    /// The same without anything inferred.
    pub certain: u32,
    /// The conversation is heard in part: nothing that was inferred in it counts.
    pub in_part: bool,
    /// Its PHY data rate; `None` where the radio does not tell.
    pub rate: Option<Rate>,
}

/// What happens to a receiver's monitor interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MonitorEvent {
    /// It is down, or gone: no frames are shown from now on.
    Down,
    /// It shows frames again, the next slot's as the first whole ones.
    Up,
    /// Its socket overran: the slot that is about to end may lack frames.
    Overrun,
}
