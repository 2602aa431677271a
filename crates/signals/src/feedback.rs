//! What a station tells the sender's side about the frames that it received.

use crate::Node;
use lasthop_units::{Bytes, Span, Time};

/// One station's account of one control slot: what the aggregation regulator needs to know of the radio.
///
/// A *frame* is one A-MPDU (or one lone MPDU); its *packets* are the MSDUs inside, those of A-MSDUs counted one by one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StationFeedback {
    /// Which station.
    pub station: Node,
    /// Number of the slot; the sender's side ignores slots that are not newer than the last it saw.
    pub slot: u32,
    /// When the slot began, on the station's clock.
    pub start: Time,
    /// When it ended, on the station's clock.
    pub end: Time,
    /// Frames received in the slot. 0 also where packets came that the source cannot tell the frames of (`received` counts
    /// them all the same).
    pub frames: u32,
    /// Sum over the frames of their packets (sum of N).
    pub packets: u64,
    /// Sum over the frames of the square of their packets (sum of N²).
    pub packets_squared: u64,
    /// Fewest packets in a frame; 0 if there was none.
    pub min_packets: u16,
    /// Most packets in a frame; 0 if there was none.
    pub max_packets: u16,
    /// Sum over the frames of 1/R, R being the PHY data rate: seconds a bit. Over `frames` it gives the inverse of the
    /// harmonic mean rate. 0 where the source does not know rates.
    pub inverse_rate_sum: f64,
    /// Data packets of the sender's flow received in the slot.
    pub received: u64,
    /// Highest sequence number of the sender's flow so far.
    pub highest_sequence: u64,
    /// Packets of the flow that are known lost in the slot.
    pub lost: u64,
    /// Mean one-way delay from sender to station, clock offset included; `None` if nothing came.
    pub delay_mean: Option<Span>,
    /// Largest one-way delay.
    pub delay_max: Option<Span>,
    /// How the frames were told apart.
    pub source: FrameSource,
}

impl StationFeedback {
    /// The account of a slot in which nothing came.
    pub fn empty(station: Node, slot: u32, start: Time, end: Time) -> StationFeedback {
        StationFeedback {
            station,
            slot,
            start,
            end,
            frames: 0,
            packets: 0,
            packets_squared: 0,
            min_packets: 0,
            max_packets: 0,
            inverse_rate_sum: 0.0,
            received: 0,
            highest_sequence: 0,
            lost: 0,
            delay_mean: None,
            delay_max: None,
            source: FrameSource::Radiotap,
        }
    }

    /// Mean packets a frame; `None` without frames.
    pub fn mean_packets(&self) -> Option<f64> {
        (self.frames > 0).then(|| self.packets as f64 / f64::from(self.frames))
    }
}

/// How a station knows which packets came in one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FrameSource {
    /// Radiotap headers of a monitor interface, or the radio model itself.
    #[default]
    Radiotap,
    /// Estimated from the arrival times of packets.
    Timestamps,
}

/// What an edge proxy knows of the stream that it paces to one station. Counters are cumulative since the stream began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamReport {
    /// Which station.
    pub station: Node,
    /// Packets that the proxy has sent to it, repetitions included.
    pub packets: u64,
    /// Their network-layer octets.
    pub bytes: Bytes,
    /// True if data waits for its turn now: pacing, not the application, holds the stream back.
    pub waiting: bool,
}
