//! What a law saw and decided, as one typed record: agents write it into their logs as JSON lines, the lab reads it there, and the
//! simulator shows it of its own laws. docs/reference/logs.md lists the fields.
//!
//! What is not known is [`None`], in JSON `null`.

mod access_point;
mod host;
mod proxy;
mod station;

pub use access_point::{Address, Driver, Flow, Gone, Interval, Missed, Opened};
pub use host::{Look, Upload};
pub use proxy::{Carried, Slot};
pub use station::{Account, Delays};

use serde::{Deserialize, Serialize};

/// What a law knows of one flow beside what it decides. A law tells what it has.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Observation {
    /// Aggregation level, measured in the last slot (μ_N), in packets a frame.
    pub mu_n: Option<f64>,
    /// Interval between the station's frames, measured in the last slot, in seconds (μ_N/x).
    pub interval_s: Option<f64>,
    /// Aggregation level that is asked for, in packets a frame.
    pub target: Option<f64>,
    /// Interval between frames that is aimed at, in seconds.
    pub aim_s: Option<f64>,
    /// The station counts in the round.
    pub active: Option<bool>,
    /// Estimated overhead of a round of the active stations, in seconds (ĉ).
    pub c_s: Option<f64>,
    /// The outer loop's set point, in packets a frame (ν).
    pub nu: Option<f64>,
}
