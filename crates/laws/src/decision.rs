//! What a law may ask of the world.

use lasthop_signals::{Bounds, Feedback};
use lasthop_units::{Bytes, Rate, Span, Time};
use serde::{Deserialize, Serialize};

/// Limits on one flow. A limit that is `None` is not imposed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Decision {
    /// Payload that the sender may have in the network.
    pub cwnd: Option<Bounds<Bytes>>,
    /// How fast payload may leave the sender.
    pub pacing: Option<Rate>,
    /// Time from one packet to the next, however long they are; the longest: none may leave.
    pub gap: Option<Span>,
    /// The largest window that a middle box lets the receiver advertise.
    pub rwnd: Option<Bytes>,
    /// What the receiver is to tell the sender's side, once, because of what it was shown last.
    pub feedback: Option<Feedback>,
    /// The reason, for tests, plots and logs.
    pub why: Why,
    /// When the law wants to be woken if nothing happens before.
    pub revisit: Option<Time>,
}

impl Decision {
    /// No limit at all.
    pub const fn unlimited(why: Why) -> Decision {
        Decision { cwnd: None, pacing: None, gap: None, rwnd: None, feedback: None, why, revisit: None }
    }
}

/// Why a decision is as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Why {
    /// Nothing asks for a limit.
    Unmanaged,
    /// Exponential growth from the start or after a timeout.
    SlowStart,
    /// Growth past a delay-detected slow-start exit (CSS in RFC 9406, or equivalent).
    ConservativeSlowStart,
    /// Steady additive or cubic growth.
    CongestionAvoidance,
    /// Repairing losses.
    Recovery,
    /// BBR: searching the bandwidth exponentially.
    BbrStartup,
    /// BBR: draining the queue that startup built.
    BbrDrain,
    /// BBR: cycling pacing gain to probe for bandwidth.
    BbrProbeBw,
    /// BBR: emptying the path to measure its propagation delay.
    BbrProbeRtt,
    /// Vivace: trying rates around the present one.
    Learning,
    /// A standing ceiling that keeps the window within reach of a tight one.
    Ceiling,
    /// The hop is predicted to lose or delay: window set from the allocated rate.
    Tight,
    /// A tight window is being opened step by step.
    Releasing,
    /// Aggregation regulator: too little is known of the station yet, or nothing is sent to it; a rate that cannot harm.
    Entering,
    /// Aggregation regulator: the rate that holds the interval between the station's frames at the target.
    Regulated,
    /// Aggregation regulator: the same, but no rate can hold the target; the interval that is held is a longer one.
    OutOfReach,
    /// Aggregation regulator: the application sends less than it may; its state is frozen.
    ApplicationLimited,
    /// Aggregation regulator: the station reports no frames; its state is frozen.
    Silent,
    /// Aggregation regulator: the path before the hop carries less.
    Backhaul,
    /// ATP: the path is unknown, and asked for.
    Probing,
    /// ATP: the rate that the answer to a probe stands for.
    QuickStart,
    /// ATP: the slowest hop has become slower, or tells nothing.
    Decrease,
    /// ATP: it has become faster.
    Increase,
    /// ATP: it is as fast as before, or nearly.
    Maintain,
    /// PBE: rising to the fair share of the cell.
    PbeStart,
    /// PBE: the capacity that the receiver tells of its cell.
    PbeWireless,
    /// PBE: draining the queue that has built up outside the cell.
    PbeDrain,
    /// PBE: the narrowest place is not the cell; probing as BBR does, up to the fair share.
    PbeInternet,
    /// Terminal: the number of terminals that send bounds the window.
    Terminals,
    /// Terminal: the round trip, as a multiple of its minimum, bounds the window.
    RoundTrip,
    /// Terminal: what the path holds at the rate that the connection gets bounds the window.
    Model,
    /// Terminal: others fill the hop, and the window is TCP's own. Copa: others fill the queue, and the flow takes its part.
    Competing,
}
