//! Short queues at an 802.11 access point by pacing at the edge: the aggregation regulator.
//!
//! An access point serves its stations in rounds, and whatever arrived for a station since its last turn leaves in one
//! frame. The size of the frames therefore tells how long packets wait: μ packets a frame at x packets a second are an
//! interval of μ/x. Stations report the frames that they received ([`lasthop_signals::StationFeedback`]); the law paces
//! what an edge proxy sends to each of them so that the interval between its frames becomes a target.
//!
//! [`Regulator`] is the controller that finds the best the hop can do without being told the overhead of an access,
//! [`LinearPi`] its predecessor, as a baseline. Of what they are made:
//!
//! * [`model`]: the hop as the law sees it; [`allocation`]: the best that such a hop can do;
//! * [`stations`]: the stations' accounts, and when a slot is over; [`activity`]: which of the stations are there;
//! * [`overhead`]: the estimate of the access overhead; [`round_regression`]: what accesses and packets take where no data rates are known;
//! * [`feasible_target`]: what is aimed at where the target cannot be had; [`short_queue`]: a queue at the hop too short for full frames;
//! * [`backhaul`]: the bottleneck is not the hop at all; [`backlog`]: the hop was overrun;
//! * [`meter`]: the stations' side, which makes their accounts; [`timestamps`]: the same where a station cannot see frames, only when
//!   packets arrive.
//!
//! A constant that names no source is our own, set by hand; `scripts/sensitivity` shows what hangs on them.
//!
//! Both controllers are [`crate::HopLaw`]s. The stream paced to station `s` is flow [`flow_of`]`(s)`; its
//! [`crate::Decision::pacing`] counts network-layer octets. The world shows a controller, in this order,
//!
//! * `Signal::Stream` when data begins to wait for a station that had none, and just before `Station` and `Wakeup`;
//! * `Signal::Idle` when nothing has waited for a station, nor was sent to it, for [`REST`];
//! * `Signal::Station` when a station's account of a slot arrives;
//! * `Signal::Wakeup` when `Decision::revisit` has come,
//!
//! and obeys `decide` after each.

pub mod activity;
pub mod allocation;
pub mod backhaul;
pub mod backlog;
pub mod feasible_target;
pub mod meter;
pub mod model;
pub mod overhead;
pub mod round_regression;
pub mod short_queue;
pub mod station;
pub mod stations;
pub mod timestamps;

mod controller;
mod params;
mod pi;

pub use activity::REST;
pub use controller::{Regulator, View};
pub use params::{Allocation, OverheadRule, Params, SLOT};
pub use pi::{LinearPi, PiParams};

use crate::{Entry, Parameters, Place, params};
use lasthop_signals::{FlowId, FrameSource, Node};

/// The number of the stream that is paced to `station`.
pub fn flow_of(station: Node) -> FlowId {
    FlowId(u32::from(station.0))
}

/// The station that a stream is paced to.
fn station_of(flow: FlowId) -> Option<Node> {
    u16::try_from(flow.0).ok().map(Node)
}

/// The regulator's entry in the registry.
pub const LAW: Entry =
    Entry::hop(Place::Proxy, "aggregation", "The aggregation regulator.", Params::TABLE, |settings| {
        Ok(Box::new(Regulator::new(Params::with(settings)?)?))
    });
/// Its predecessor's.
pub const PREDECESSOR: Entry = Entry::hop(
    Place::Proxy,
    "linear-pi",
    "Its predecessor: a linear controller that holds the number of packets a frame.",
    PiParams::TABLE,
    |settings| Ok(Box::new(LinearPi::new(PiParams::with(settings)?)?)),
)
.also(&["pi"]);
/// That of the stations' side, which accounts for the frames of each slot. How long a slot is, the proxy's law says.
pub const FRAMES: Entry = Entry::receiver(
    Place::Station,
    "frames",
    "Reports the frames that a station received in each slot of the proxy's law.",
    StationParams::TABLE,
    station::Station::build,
);

params! {
    /// What may be set of the stations' side.
    pub struct StationParams {
        /// What stations measure frames by.
        measure: FrameSource = "radiotap";
    }
}

crate::word_of! {
    /// How stations know which packets came in one frame.
    FrameSource {
        /// Radiotap headers of a monitor interface, with data rates; needs root.
        Radiotap = "radiotap",
        /// Send and arrival times of packets, as any user reads.
        Timestamps = "timestamps",
    }
}
