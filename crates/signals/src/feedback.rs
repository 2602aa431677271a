//! What a station tells the sender's side about the frames that it received.

use crate::{CellCapacity, Node, PathDelay, Upload};
use lasthop_units::{Bytes, Rate, Span, Time};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a receiver tells the sender's side.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Feedback {
    /// A station's account of one control slot.
    Station(StationFeedback),
    /// The slowest hop of the path.
    Path(PathDelay),
    /// The capacity of the receiver's cell.
    Cell(CellCapacity),
    /// How a terminal's upload goes: what its neighbours are to hear.
    Upload(Upload),
}

/// One station's account of one control slot: what the aggregation regulator needs to know of the radio.
///
/// A *frame* is one A-MPDU (or one lone MPDU); its *packets* are the MSDUs inside, those of A-MSDUs counted one by one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StationFeedback {
    /// Which station.
    pub station: Node,
    /// Number of the slot; the sender's side ignores slots that are not newer than the last it saw.
    pub slot: u32,
    /// When the slot began, on the station's clock.
    #[serde(rename = "start_ns")]
    pub start: Time,
    /// When it ended, on the station's clock.
    #[serde(rename = "end_ns")]
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
    /// Mean one-way delay from sender to station, with what the station does not know of the clocks' offset; `None` if nothing came.
    #[serde(rename = "delay_mean_ns")]
    pub delay_mean: Option<Span>,
    /// Largest one-way delay.
    #[serde(rename = "delay_max_ns")]
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

    /// True if its slot comes after the one of that number: numbers wrap around, and half of them are ahead.
    pub fn is_newer_than(&self, slot: u32) -> bool {
        (1..1 << 31).contains(&self.slot.wrapping_sub(slot))
    }

    /// Mean packets a frame; `None` without frames.
    pub fn mean_packets(&self) -> Option<f64> {
        (self.frames > 0).then(|| self.packets as f64 / f64::from(self.frames))
    }
}

/// Why an account cannot be true, whoever signed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Doubt {
    /// The slot is shorter than 10 ms or longer than a minute, or ends before it begins.
    Span,
    /// More frames than fit into the slot; or none, and something in them.
    Frames,
    /// Packets, their squares, and the fewest and most in a frame do not go together, or are more than fit into the slot.
    Packets,
    /// A mean PHY rate slower or faster than any of 802.11.
    Rate,
    /// A mean delay longer than the longest.
    Delay,
    /// More packets of the tunnel than were sent, or a number that was not given out.
    Sequence,
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Doubt::Span => "a slot must last from 10 ms to 60 s",
            Doubt::Frames => "more frames than fit into the slot, or packets without a frame",
            Doubt::Packets => "counts of packets that do not go together or do not fit into the slot",
            Doubt::Rate => "a mean PHY rate that 802.11 does not have",
            Doubt::Delay => "a mean delay above the largest",
            Doubt::Sequence => "more packets than were sent",
        })
    }
}

impl StationFeedback {
    /// The slowest data rate of 802.11: DSSS with DBPSK (IEEE 802.11-2020, clause 15).
    pub const SLOWEST: Rate = Rate::from_mbit(1);
    /// The fastest: 8 spatial streams in 320 MHz, MCS 13, guard interval 0.8 µs (IEEE 802.11be, clause 36.5), 23 058.8 Mbit/s.
    pub const FASTEST: Rate = Rate::from_mbit(23_059);
    /// The shortest PPDU that carries data: preamble and SIGNAL of an OFDM one (IEEE 802.11-2020, clause 17.3), before its data.
    const SHORTEST: Span = Span::from_micros(20);
    /// Bits of the shortest packet: IPv4 and UDP headers behind LLC/SNAP, in a subframe of an A-MSDU.
    const LEAST_BITS: u64 = 8 * (28 + 8 + 14);

    /// Why the account cannot be true; `None` if it can. `sent`: numbers that were given out in the session that it is of.
    ///
    /// Counts have a slack of one, since slots do not end with frames.
    pub fn doubt(&self, sent: u64) -> Option<Doubt> {
        let span = self.end.since(self.start);
        if self.end < self.start || !(Span::from_millis(10)..=Span::from_secs(60)).contains(&span) {
            return Some(Doubt::Span);
        }
        let (frames, packets, squares) =
            (u128::from(self.frames), u128::from(self.packets), u128::from(self.packets_squared));
        let (min, max) = (u128::from(self.min_packets), u128::from(self.max_packets));
        if frames == 0 && (packets, squares, min, max, self.inverse_rate_sum) != (0, 0, 0, 0, 0.0) {
            return Some(Doubt::Frames);
        }
        // Those that are told by arrival times need not have been frames of 802.11.
        let most_frames = u128::from(span.as_nanos() / Self::SHORTEST.as_nanos()) + 1;
        if self.source == FrameSource::Radiotap && frames > most_frames {
            return Some(Doubt::Frames);
        }
        if frames > 0 {
            // A field that is full says no more than that.
            let saturated = self.max_packets == u16::MAX;
            let squares_go = packets <= squares && (saturated || squares <= packets * max);
            let together = match self.source {
                // The squares are those of frames; Cauchy and Schwarz.
                FrameSource::Radiotap => {
                    packets >= frames * min
                        && (saturated || packets <= frames * max)
                        && packets * packets <= squares * frames
                }
                // How many frames there were, and which packets they held, are two estimates.
                FrameSource::Timestamps => packets >= frames,
            };
            let together = together && squares_go && min <= max;
            let most = Self::FASTEST.bytes_in(span).get() * 8 / Self::LEAST_BITS + 1;
            if !together || self.packets > most {
                return Some(Doubt::Packets);
            }
            // One that is estimated may be none of 802.11's, and is the law's to judge. A quotient is rounded.
            let mean = self.inverse_rate_sum / f64::from(self.frames);
            let inverse = |rate: Rate| 1.0 / rate.as_bps() as f64;
            let believed = inverse(Self::FASTEST) * (1.0 - 1e-9)..=inverse(Self::SLOWEST) * (1.0 + 1e-9);
            let is_read = self.source == FrameSource::Radiotap || mean.is_nan() || mean < 0.0;
            if is_read && mean != 0.0 && !believed.contains(&mean) {
                return Some(Doubt::Rate);
            }
        }
        let delays = self.delay_mean.zip(self.delay_max);
        if self.delay_mean.is_some() != self.delay_max.is_some() || delays.is_some_and(|(mean, max)| mean > max) {
            return Some(Doubt::Delay);
        }
        let told = self.received.saturating_add(self.lost);
        if told > sent || self.received > 0 && self.highest_sequence >= sent {
            return Some(Doubt::Sequence);
        }
        None
    }
}

/// How a station knows which packets came in one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What a station says after half a second at 300 Mbit/s.
    fn sound() -> StationFeedback {
        StationFeedback {
            frames: 100,
            packets: 3000,
            packets_squared: 91_000,
            min_packets: 10,
            max_packets: 40,
            inverse_rate_sum: 100.0 / 300e6,
            received: 2990,
            highest_sequence: 8000,
            lost: 3,
            delay_mean: Some(Span::from_millis(5)),
            delay_max: Some(Span::from_millis(9)),
            ..StationFeedback::empty(Node(1), 7, Time::from_nanos(0), Time::from_nanos(500_000_000))
        }
    }

    #[test]
    fn slots_are_newer_than_the_half_of_the_numbers_behind_them() {
        let of = |slot| StationFeedback { slot, ..sound() };
        assert!(of(8).is_newer_than(7) && of(0).is_newer_than(u32::MAX) && of(1 << 31).is_newer_than(1));
        assert!(!of(7).is_newer_than(7) && !of(7).is_newer_than(8) && !of(1 << 31).is_newer_than(0));
    }

    #[test]
    fn what_can_be_is_believed() {
        let (start, end) = (Time::from_nanos(5), Time::from_nanos(10_000_005));
        let at_rate = |rate: f64| StationFeedback { inverse_rate_sum: 100.0 / rate, ..sound() };
        for account in [
            sound(),
            StationFeedback { start, end, ..StationFeedback::empty(Node(1), 0, start, end) },
            at_rate(1e6),
            at_rate(23_058.8e6),
            StationFeedback { inverse_rate_sum: 0.0, ..sound() },
            StationFeedback {
                frames: 25_001,
                packets: 25_001,
                packets_squared: 25_001,
                min_packets: 1,
                max_packets: 1,
                inverse_rate_sum: 0.0,
                ..sound()
            },
            StationFeedback {
                source: FrameSource::Timestamps,
                frames: 100_000,
                packets: 100_000,
                packets_squared: 100_000,
                min_packets: 1,
                max_packets: 1,
                inverse_rate_sum: 0.0,
                ..sound()
            },
            StationFeedback {
                frames: 0,
                packets: 0,
                packets_squared: 0,
                min_packets: 0,
                max_packets: 0,
                inverse_rate_sum: 0.0,
                ..sound()
            },
        ] {
            assert_eq!(account.doubt(8001), None, "{account:?}");
        }
    }

    #[test]
    fn what_cannot_be_is_doubted_and_why() {
        let at_rate = |rate: f64| StationFeedback { inverse_rate_sum: 100.0 / rate, ..sound() };
        for (account, expected) in [
            (StationFeedback { end: Time::ZERO, ..sound() }, Doubt::Span),
            (StationFeedback { start: Time::from_nanos(495_000_000), ..sound() }, Doubt::Span),
            (StationFeedback { end: Time::MAX, ..sound() }, Doubt::Span),
            (StationFeedback { frames: 0, ..sound() }, Doubt::Frames),
            (StationFeedback { frames: 25_002, packets: 30_000, min_packets: 1, ..sound() }, Doubt::Frames),
            (StationFeedback { min_packets: 31, ..sound() }, Doubt::Packets),
            (StationFeedback { min_packets: 41, ..sound() }, Doubt::Packets),
            (StationFeedback { source: FrameSource::Timestamps, frames: 3001, ..sound() }, Doubt::Packets),
            (StationFeedback { max_packets: 29, ..sound() }, Doubt::Packets),
            (StationFeedback { packets: 4001, ..sound() }, Doubt::Packets),
            (StationFeedback { packets_squared: 89_000, ..sound() }, Doubt::Packets),
            (StationFeedback { packets_squared: 130_000, ..sound() }, Doubt::Packets),
            (
                StationFeedback { packets: u64::MAX, packets_squared: u64::MAX, max_packets: u16::MAX, ..sound() },
                Doubt::Packets,
            ),
            (at_rate(0.9e6), Doubt::Rate),
            (at_rate(24e9), Doubt::Rate),
            (StationFeedback { inverse_rate_sum: -1.0, ..sound() }, Doubt::Rate),
            (StationFeedback { inverse_rate_sum: f64::NAN, ..sound() }, Doubt::Rate),
            (StationFeedback { delay_max: None, ..sound() }, Doubt::Delay),
            (StationFeedback { delay_mean: Some(Span::from_secs(1)), ..sound() }, Doubt::Delay),
            (StationFeedback { received: 9000, ..sound() }, Doubt::Sequence),
            (StationFeedback { lost: u64::MAX, ..sound() }, Doubt::Sequence),
            (StationFeedback { highest_sequence: 8001, ..sound() }, Doubt::Sequence),
        ] {
            assert_eq!(account.doubt(8001), Some(expected), "{account:?}");
        }
    }
}
