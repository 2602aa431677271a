//! What an agent on an access point shows of itself while it runs, beside what all agents do.

use lasthop_laws::Model;
use lasthop_signals::{Node, StationReport};
use lasthop_units::Span;
use serde::{Deserialize, Serialize};

/// An agent at one moment.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct State {
    /// The law that decides.
    pub law: String,
    /// How its programs are attached: `tcx` or `clsact`.
    pub method: String,
    /// It changes nothing: windows are those that it would have ordered.
    pub shadow: bool,
    /// Seconds since the driver, or the kernel, told something that could be acted on.
    pub heard_s: f64,
    /// The driver has been silent for longer than reports count: no window is lowered.
    pub driver_lost: bool,
    /// Flows that are managed, by whether windows are tight, are under a ceiling, or have no limit.
    pub flows: Flows,
    /// Flows that carry nothing at present.
    pub resting: usize,
    /// Stations, as the last report had them.
    pub stations: Vec<StationStatus>,
    /// Packets that wait in queues which all stations share.
    pub shared_backlog_packets: u64,
    /// What a law that learns decides by; absent for one that does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelStatus>,
}

/// Flows by what is done to them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Flows {
    /// Their window is their share: the hop is about to lose, or to delay.
    pub tight: usize,
    /// Under a standing limit.
    pub ceiling: usize,
    /// Without a limit.
    pub free: usize,
}

/// One station.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct StationStatus {
    /// Its number.
    pub station: u16,
    /// What it is called: its hardware address, or else its IP address. Only for viewers in the agent's own process:
    /// callers are not told it.
    #[serde(skip)]
    pub address: Option<String>,
    /// Its managed flows.
    pub flows: usize,
    /// Packets that wait for it.
    pub backlog_packets: u32,
    /// Packets that its queue refused so far.
    pub queue_drops: u64,
    /// PHY rate towards it, Mbit/s; 0 if it is not known.
    pub phy_rate_mbit_s: f64,
}

/// The model of a law that learns.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ModelStatus {
    /// What decides: `learned`, the newest model; `given`, that of a file; `rule`, what stands in while there is none.
    pub decider: String,
    /// Version of the newest that was learned and taken; absent before the first.
    pub version: Option<u64>,
    /// Seconds since the newest of the items ended that it was trained with.
    pub age_s: Option<f64>,
    /// From which age on it is not believed, seconds.
    pub age_limit_s: f64,
    /// Items to learn from that were made so far.
    pub items: u64,
}

impl From<Model> for ModelStatus {
    fn from(model: Model) -> ModelStatus {
        ModelStatus {
            decider: model.decider.name().to_owned(),
            version: model.version,
            age_s: model.age.map(Span::as_secs_f64),
            age_limit_s: model.age_limit.as_secs_f64(),
            items: model.items,
        }
    }
}

/// A station's line.
pub(super) fn of_station(
    report: &StationReport,
    flows: impl Fn(Node) -> usize,
    address: Option<String>,
) -> StationStatus {
    StationStatus {
        station: report.station.0,
        address,
        flows: flows(report.station),
        backlog_packets: report.backlog_packets,
        queue_drops: report.queue_drops,
        phy_rate_mbit_s: report.phy_rate.as_mbit_f64(),
    }
}
