//! What a hop, a host or a kernel lets one see.
//!
//! A [`Signal`] is one observation. Hop models emit them, agents parse kernel and driver state into them, and laws
//! fold them into their model. The moment of the observation travels beside the signal, as the `now` of the law's
//! `sense`, so a recorded log is a list of `(Time, Signal)`.

mod arrival;
mod atp;
mod cell;
mod feedback;
mod hop;
mod mpdu;
pub mod phy;
mod segment;
mod sender;
mod terminal;

pub use arrival::{Arrival, MonitorEvent, Received, ReceivedFrame};
pub use atp::PathDelay;
pub use cell::{Block, CellCapacity, CellSubframe, Dci, Rnti};
pub use feedback::{Doubt, Feedback, FrameSource, StationFeedback, StreamReport};
pub use hop::{ChannelTime, FlowReport, HopReport, NodeDelay, QueueReport, StationReport};
pub use mpdu::{MacAddress, ReceivedMpdu, Subframe};
pub use segment::{SackRanges, Segment, Way};
pub use sender::{Ack, DeliverySample, Loss, Lost, Sent};
pub use terminal::{Bounds, Notice, SocketReport, Upload};

use lasthop_units::{Bytes, Span};
use serde::{Deserialize, Serialize};

/// A transport connection, numbered by the world or agent that watches it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct FlowId(pub u32);

/// A device on a hop: an access point, a station, a mesh router. Numbered densely from 0 by the world.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Node(pub u16);

/// A host of a world: a machine with one or more interfaces, each of which is a [`Node`] of some hop. Numbered densely
/// from 0 by the world.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HostId(pub u16);

impl HostId {
    /// The number as an index into tables that hold one entry a host.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl Node {
    /// The number as an index into tables that hold one entry a node.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One observation. Laws ignore the kinds that they do not use.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Signal {
    /// A sender put a segment on the wire.
    Sent(Sent),
    /// An ACK reached a sender.
    Ack(Ack),
    /// A segment in the network was marked lost. [`Signal::Loss`], [`Signal::Timeout`] or [`Signal::Ack`] follows where there is one.
    Lost(Lost),
    /// A sender entered recovery after marking segments lost (RFC 6675): at most once a window.
    Loss(Loss),
    /// A sender's retransmission timer expired (RFC 6298).
    Timeout(Loss),
    /// The last timeout was spurious: what it took for lost was only late. [`Signal::Recovered`] follows.
    Undone,
    /// Everything outstanding when recovery began has been acknowledged.
    Recovered,
    /// A driver's cumulative counters, sampled at a fixed interval.
    Hop(HopReport),
    /// What a middle box has learned of one flow by watching its headers.
    Flow(FlowReport),
    /// A segment passes a middle box. Told only to a law that wants it, since it comes with every packet.
    Segment(Segment),
    /// Segments have passed that were not told, nobody knows which.
    SegmentsMissed,
    /// A flow will not be reported again.
    FlowGone(FlowId),
    /// A station's account of the frames that it received in one control slot.
    Station(StationFeedback),
    /// What an edge proxy knows of its own stream to a station.
    Stream(StreamReport),
    /// Nothing has waited for an edge proxy's stream to this station, and nothing was sent, for as long as the law wants to be told of.
    Idle(Node),
    /// A packet of the sender's flow has reached its receiver.
    Arrival(Arrival),
    /// What a receiver has of the sender's flow by now.
    Received(Received),
    /// A packet of the sender's flow took so long from its sender to its receiver, as far as their clocks tell.
    OneWay(Span),
    /// A receiver's radio has brought a frame.
    Frame(ReceivedFrame),
    /// What a receiver's radio shows of its frames has changed.
    Monitor(MonitorEvent),
    /// From now on the sender's window stays between these, as far as its congestion control lets it; `None`: it is left alone.
    Bounds(Option<Bounds<Bytes>>),
    /// What a terminal's kernel tells of a connection through which it sends.
    Socket(SocketReport),
    /// A terminal has heard another one of its BSS.
    Neighbour(Notice),
    /// A packet of the flow has come; this is the largest delay of a hop on its way.
    Stamp(Span),
    /// So many holes are in what a receiver has.
    Holes(usize),
    /// A receiver has measured a round trip to the sender.
    RoundTrip(Span),
    /// What the receiver tells of the slowest hop.
    PathDelay(PathDelay),
    /// What a carrier's control channel has shown in a subframe.
    Subframe(CellSubframe),
    /// So many flows of a receiver's station have got data lately, its own among them: they share what the station has.
    Flows(u32),
    /// What a receiver tells of its cell.
    Cell(CellCapacity),
    /// The moment that a law asked for in `Decision::revisit` has come.
    Wakeup,
}
