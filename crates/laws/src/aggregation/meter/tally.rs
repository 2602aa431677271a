//! Sums over frames: what a control slot reports, and what a summary prints.

use super::Frame;
use lasthop_units::{Bytes, Rate, Span};
use std::collections::BTreeMap;

/// What some frames have in common: one conversation, one control slot.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Tally {
    /// Sizes in MPDUs as they were received.
    pub received: Sizes,
    /// Sizes in packets as they were sent ([`Frame::packets`]): what the regulator steers.
    pub packets: Sizes,
    /// A-MPDUs among the frames; the others are lone MPDUs.
    pub aggregates: u64,
    /// MPDUs inferred to have been lost on the air.
    pub missing: u64,
    /// MPDUs received with the retry mark.
    pub retries: u64,
    /// Octets of the MPDUs received.
    pub octets: Bytes,
    /// Time on the air of the frames with a known rate, without contention and answers.
    pub airtime: Span,
    /// The conversation was heard in part: nothing is inferred in any of these sums.
    pub in_part: bool,
    /// What `packets`, `missing` and `airtime` are without anything inferred.
    certain: Certain,
    /// Sum of 1/R over the frames with a known rate, in seconds a bit.
    inverse_rate_sum: f64,
    /// How many those are.
    rated: u64,
}

/// Sums without what was inferred.
#[derive(Clone, PartialEq, Debug, Default)]
struct Certain {
    packets: Sizes,
    missing: u64,
    airtime: Span,
}

/// A distribution of frame sizes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sizes {
    /// Frames by size.
    counts: BTreeMap<u32, u64>,
}

impl Tally {
    /// Adds a frame.
    pub fn add(&mut self, frame: &Frame) {
        let certain = frame.without_inference();
        if frame.in_part && !self.in_part {
            self.in_part = true;
            let Certain { packets, missing, airtime } = self.certain.clone();
            (self.packets, self.missing, self.airtime) = (packets, missing, airtime);
        }
        self.certain.packets.add(certain.packets());
        self.certain.missing += u64::from(certain.missing);
        self.certain.airtime += certain.airtime().unwrap_or_default();
        let frame = if self.in_part { &certain } else { frame };
        self.received.add(frame.mpdus);
        self.packets.add(frame.packets());
        self.aggregates += u64::from(frame.aggregated);
        self.missing += u64::from(frame.missing);
        self.retries += u64::from(frame.retries);
        self.octets += frame.octets;
        if let (Some(rate), Some(airtime)) = (frame.rate(), frame.airtime()) {
            self.inverse_rate_sum += 1.0 / rate.as_bps() as f64;
            self.rated += 1;
            self.airtime += airtime;
        }
    }

    /// Harmonic mean of the frames' PHY rates; `None` if no rate is known.
    pub fn rate(&self) -> Option<Rate> {
        (self.rated > 0).then(|| Rate::from_bps(1).scale(self.rated as f64 / self.inverse_rate_sum))
    }
}

impl Sizes {
    fn add(&mut self, size: u32) {
        *self.counts.entry(size).or_default() += 1;
    }

    /// Frames.
    pub fn frames(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Sum of the sizes.
    pub fn sum(&self) -> u64 {
        self.counts.iter().map(|(&size, count)| u64::from(size) * count).sum()
    }

    /// Sum of the squares of the sizes.
    pub fn sum_of_squares(&self) -> u64 {
        self.counts.iter().map(|(&size, count)| u64::from(size) * u64::from(size) * count).sum()
    }

    /// Mean size; `None` without frames.
    pub fn mean(&self) -> Option<f64> {
        let frames = self.frames();
        (frames > 0).then(|| self.sum() as f64 / frames as f64)
    }

    /// Standard deviation of the sizes; `None` without frames.
    pub fn sd(&self) -> Option<f64> {
        let mean = self.mean()?;
        let variance = self.sum_of_squares() as f64 / self.frames() as f64 - mean * mean;
        Some(variance.max(0.0).sqrt())
    }

    /// Smallest; `None` without frames.
    pub fn min(&self) -> Option<u32> {
        self.counts.keys().next().copied()
    }

    /// Largest; `None` without frames.
    pub fn max(&self) -> Option<u32> {
        self.counts.keys().next_back().copied()
    }

    /// Each size that occurred with its number of frames, rising.
    pub fn histogram(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.counts.iter().map(|(&size, &count)| (size, count))
    }
}
