//! What the emulator saw.

use crate::lateness::Lateness;
use crate::monitor::Shown;
use lasthop_radio::Drop;
use lasthop_signals::{HopReport, Node};
use lasthop_units::{Bytes, Span, Time};

/// A packet that crossed a hop, in model time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    /// When it was delivered.
    pub at: Time,
    /// Its sender on this hop.
    pub from: Node,
    /// Its receiver.
    pub to: Node,
    /// Network-layer length.
    pub len: Bytes,
    /// From entering the hop's queue to delivery.
    pub delay: Span,
}

impl Crossing {
    /// When it entered the hop's queue.
    pub fn queued_at(&self) -> Time {
        self.at.saturating_sub(self.delay)
    }
}

/// A packet that a model dropped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// When.
    pub at: Time,
    /// Its sender on this hop.
    pub from: Node,
    /// The receiver that it was meant for; `None` for a group packet.
    pub to: Option<Node>,
    /// Why.
    pub why: Drop,
}

/// A data frame that its receiver took, in whole or in part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FrameSeen {
    /// When it ended on the air.
    pub at: Time,
    /// Its sender.
    pub from: Node,
    /// Its receiver.
    pub to: Node,
    /// Packets inside.
    pub packets: u16,
    /// How long it occupied the channel.
    pub airtime: Span,
}

/// A TCP segment with payload that left a host for the first of its hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// When.
    pub at: Time,
    /// The sender's port, and the receiver's.
    pub ports: [u16; 2],
    /// Sequence number of its first byte.
    pub seq: u32,
    /// Its payload.
    pub len: u32,
}

/// Everything that happened on one hop.
#[derive(Clone, Debug, Default)]
pub struct HopLog {
    /// Packets that crossed, in the order of their delivery. Kept in blocks, since growing one long vector would
    /// stall the emulator for milliseconds.
    pub crossings: Blocks<Crossing>,
    /// Packets that the model dropped.
    pub losses: Vec<Loss>,
    /// What drivers reported, and of which nodes.
    pub reports: Vec<(Time, Node, HopReport)>,
    /// Data frames between nodes.
    pub frames: Blocks<FrameSeen>,
    /// Segments that entered the hop at the nodes that are watched.
    pub departures: Blocks<Departure>,
    /// What the stations' monitor interfaces showed, in order.
    pub shown: Blocks<Shown>,
}

/// What the emulator thread leaves behind.
#[derive(Clone, Debug, Default)]
pub struct EmulatorLog {
    /// One entry a hop, in the order in which the hops were given.
    pub hops: Vec<HopLog>,
    /// How late everything happened, against its model time.
    pub lateness: Lateness,
    /// True if the thread ran under SCHED_FIFO.
    pub realtime: bool,
    /// Frames for nobody on their hop.
    pub strays: u64,
    /// Frames that a receiving interface refused.
    pub refused: u64,
    /// Driver reports that an agent was too slow to take.
    pub unread_reports: u64,
    /// Subframes of control channels that a reader was too slow to take.
    pub unread_subframes: u64,
}

/// A list that never moves what it holds.
#[derive(Clone, Debug)]
pub struct Blocks<T> {
    full: Vec<Vec<T>>,
    open: Vec<T>,
}

const BLOCK: usize = 16_384;

impl<T> Default for Blocks<T> {
    fn default() -> Blocks<T> {
        Blocks { full: Vec::new(), open: Vec::with_capacity(BLOCK) }
    }
}

impl<T> Blocks<T> {
    /// Appends one.
    pub fn push(&mut self, item: T) {
        if self.open.len() == BLOCK {
            self.full.push(std::mem::replace(&mut self.open, Vec::with_capacity(BLOCK)));
        }
        self.open.push(item);
    }

    /// Appends what there is.
    pub fn extend(&mut self, items: impl IntoIterator<Item = T>) {
        items.into_iter().for_each(|item| self.push(item));
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.full.len() * BLOCK + self.open.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.full.iter().flatten().chain(&self.open)
    }
}
