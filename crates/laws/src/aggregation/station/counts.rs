//! Sums over the frames of a slot.

use lasthop_signals::{Node, ReceivedFrame, StationFeedback};
use lasthop_units::Time;

/// Frames by their packets, and what their rates come to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    frames: u32,
    sizes: Sizes,
    /// The same without anything inferred.
    certain: Sizes,
    in_part: bool,
    /// Frames with a known rate, and the sum of 1/R over them, in seconds a bit.
    rated: u32,
    inverse_rate_sum: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sizes {
    sum: u64,
    squares: u64,
    /// [`None`] before the first.
    range: Option<(u32, u32)>,
}

impl Counts {
    /// Adds a frame.
    pub(super) fn add(&mut self, frame: &ReceivedFrame) {
        self.in_part |= frame.in_part;
        self.frames = self.frames.saturating_add(1);
        self.sizes.add(frame.packets);
        self.certain.add(frame.certain);
        if let Some(rate) = frame.rate.filter(|rate| !rate.is_zero()) {
            self.inverse_rate_sum += 1.0 / rate.as_bps() as f64;
            self.rated = self.rated.saturating_add(1);
        }
    }

    /// The account of these frames. Everything that the frames do not show is left empty.
    pub(super) fn feedback(&self, station: Node, slot: u32, start: Time, end: Time) -> StationFeedback {
        // What was inferred before it was known that the conversation is heard in part is taken back.
        let sizes = if self.in_part { &self.certain } else { &self.sizes };
        let (least, most) = sizes.range.unwrap_or_default();
        let narrow = |packets: u32| u16::try_from(packets).unwrap_or(u16::MAX);
        // Frames of unknown rate are taken to be like the others.
        let all = if self.rated > 0 { f64::from(self.frames) / f64::from(self.rated) } else { 0.0 };
        StationFeedback {
            frames: self.frames,
            packets: sizes.sum,
            packets_squared: sizes.squares,
            min_packets: narrow(least),
            max_packets: narrow(most),
            inverse_rate_sum: self.inverse_rate_sum * all,
            ..StationFeedback::empty(station, slot, start, end)
        }
    }
}

impl Sizes {
    fn add(&mut self, packets: u32) {
        let size = u64::from(packets);
        self.sum = self.sum.saturating_add(size);
        self.squares = self.squares.saturating_add(size * size);
        let (least, most) = self.range.unwrap_or((packets, packets));
        self.range = Some((least.min(packets), most.max(packets)));
    }
}
