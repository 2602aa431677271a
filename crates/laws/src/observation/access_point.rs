//! Lines of the access point's agent.

use crate::Why;
use lasthop_signals::{FlowId, FlowReport, HopReport, Node};
use lasthop_units::{Bytes, Time};
use serde::{Deserialize, Serialize};

/// One interval of the law: what it was told, and what it decided.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Interval {
    /// When the driver's record was taken in.
    #[serde(rename = "t_ns")]
    pub at: Time,
    /// The driver's record.
    pub hop: HopReport,
    /// Every flow that is managed.
    pub flows: Vec<Flow>,
}

/// One flow in one interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Flow {
    /// What the law was told of it.
    #[serde(flatten)]
    pub report: FlowReport,
    /// The limit in force when the interval began.
    pub window: Option<Bytes>,
    /// The limit that the law asks for.
    pub target: Option<Bytes>,
    /// The law's reason.
    pub why: Why,
}

/// A flow is managed from now on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Opened {
    /// When.
    #[serde(rename = "t_ns")]
    pub at: Time,
    /// The flow's number and its ends.
    pub opened: Address,
}

/// A flow by its number and its ends.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Address {
    /// Its number.
    pub flow: FlowId,
    /// Its station.
    pub station: Node,
    /// The station's end: ADDRESS:PORT.
    pub station_address: String,
    /// The other end.
    pub remote: String,
}

/// A flow is not managed any more.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Gone {
    /// When.
    #[serde(rename = "t_ns")]
    pub at: Time,
    /// Which.
    pub gone: FlowId,
}

/// Events of the program were lost before the agent read them.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Missed {
    /// When the agent found that out.
    #[serde(rename = "t_ns")]
    pub at: Time,
    /// How many, since the last such line.
    pub events_missed: u64,
}

/// The driver has fallen silent, or is heard again.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Driver {
    /// When.
    #[serde(rename = "t_ns")]
    pub at: Time,
    /// `lost` or `back`.
    pub driver: String,
}
