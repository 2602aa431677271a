//! Frames told apart by the arrival times of packets.
//! Source:     aggregation.md C.4 (after the predecessor's estimator): packets of one frame arrive back to back, frames are at
//!             least a preamble and a channel access apart.
//! Equations:  a packet begins a frame if it came more than 200 us after the one before it
//! Deviations: a fixed threshold; no learned classifier.
//! Validity:   frames that are 200 us and more apart, receivers that hand packets up within a frame's time. It cannot see
//!             rates, and it cannot tell a frame of one packet from a wired path.
//! Checked by: tests::*

use lasthop_signals::{FrameSource, Node, StationFeedback};
use lasthop_units::{Span, Time};

/// Frames of one slot.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    last: Option<Time>,
    /// Packets of the frame that is being received.
    current: u64,
    frames: u32,
    packets: u64,
    squares: u64,
    least: u64,
    most: u64,
}

/// A longer pause than this is one between frames.
const GAP: Span = Span::from_micros(200);

impl Arrivals {
    /// A packet arrived. Times of one clock, not going back by more than the kernel's batching.
    pub fn add(&mut self, at: Time) {
        if self.last.is_some_and(|last| at.since(last) > GAP) {
            self.close();
        }
        self.current += 1;
        self.last = Some(at);
    }

    /// The account of the slot, which is over. A frame that is being received counts in the next one.
    pub fn take(&mut self, station: Node, slot: u32, start: Time, end: Time) -> StationFeedback {
        if self.last.is_some_and(|last| end.since(last) > GAP) {
            self.close();
        }
        let small = |count: u64| u16::try_from(count).unwrap_or(u16::MAX);
        let feedback = StationFeedback {
            station,
            slot,
            start,
            end,
            frames: self.frames,
            packets: self.packets,
            packets_squared: self.squares,
            min_packets: small(self.least),
            max_packets: small(self.most),
            inverse_rate_sum: 0.0,
            received: 0,
            highest_sequence: 0,
            lost: 0,
            delay_mean: None,
            delay_max: None,
            source: FrameSource::Timestamps,
        };
        *self = Arrivals { last: self.last, current: self.current, ..Arrivals::default() };
        feedback
    }

    fn close(&mut self) {
        let size = std::mem::take(&mut self.current);
        if size == 0 {
            return;
        }
        self.least = if self.frames == 0 { size } else { self.least.min(size) };
        self.most = self.most.max(size);
        self.frames += 1;
        self.packets += size;
        self.squares += size * size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_part_frames() {
        let at = |us: u64| Time::from_nanos(us * 1000);
        let mut arrivals = Arrivals::default();
        for us in [0, 5, 9, 1000, 1100, 2500, 9_990] {
            arrivals.add(at(us));
        }
        let slot = arrivals.take(Node(1), 4, at(0), at(10_000));
        assert_eq!((slot.frames, slot.packets, slot.packets_squared), (3, 6, 14));
        assert_eq!((slot.min_packets, slot.max_packets, slot.mean_packets()), (1, 3, Some(2.0)));
        arrivals.add(at(10_050));
        let slot = arrivals.take(Node(1), 5, at(10_000), at(20_000));
        assert_eq!((slot.frames, slot.packets, slot.source), (1, 2, FrameSource::Timestamps), "it began before");
    }
}
