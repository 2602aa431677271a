//! What a station of a cell is: its channel over time, what it can receive, what it sees of the control channel, and when it
//! changes its cell.
//! Source:     3GPP TS 36.213 and 36.331; TR 36.881 (interruption of a handover).
//! Deviations: what the standard leaves to the cell has the defaults that are named at each field.
//! Checked by: tests::*, and the scenario files that must be refused

use super::codewords::{self, MOST_LAYERS};
use super::error::{Error, within};
use super::mcs::{Cqi, Mcs, Tables};
use super::numbers::MOST_CARRIERS;
use crate::wired;
use lasthop_units::{Rate, Span, Time};

/// The way from a terminal to the base station where nothing else is said.
///
/// LTE was asked for both (3GPP TR 25.913): less than 5 ms one way for a small packet in a cell without load, and 50 Mbit/s at
/// best over 20 MHz.
pub const UPLINK: wired::Params =
    wired::Params { rate: Rate::from_mbit(50), delay: Span::from_millis(5), queue_packets: 1000 };

/// A station of the cell.
#[derive(Clone, Debug, PartialEq)]
pub struct StationParams {
    /// Its channel over time: the first step at zero, times rising.
    pub channel: Vec<Step>,
    /// Its tables.
    pub tables: Tables,
    /// Layers that it receives at once, 1 to 4: one codeword on one layer, two on more.
    pub layers: u8,
    /// Its primary carrier, by its place in [`super::Params::carriers`].
    pub primary: u8,
    /// Carriers that it can use, at least 1: its primary carrier and those that follow it, in a circle. More than the cell has
    /// are none.
    pub carriers: u8,
    /// Its way to the base station.
    pub uplink: wired::Params,
    /// It decodes the whole control channel of every carrier: [`lasthop_signals::Signal::Subframe`] tells what it sees.
    pub decodes: bool,
    /// What that decoder gets wrong.
    pub decoder: DecoderErrors,
    /// When it changes its cell.
    pub handovers: Handovers,
}

/// Errors of a decoder of control channels. They change what [`lasthop_signals::Signal::Subframe`] shows, and nothing that is sent.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct DecoderErrors {
    /// Probability that it misses a DCI, each by itself.
    pub missed: f64,
    /// Probability that it takes noise for one DCI more, for each subframe and carrier.
    pub spurious: f64,
}

/// When a station changes its cell. The cell that it comes to is like the one that it leaves, and serves the same others.
#[derive(Clone, PartialEq, Debug)]
pub struct Handovers {
    /// When it leaves, rising.
    pub at: Vec<Time>,
    /// How long nothing is sent to it, and nothing leaves it.
    pub interruption: Span,
}

impl Handovers {
    /// 49.5 ms is typical for LTE (TR 36.881, cited from memory), in whole subframes.
    pub const INTERRUPTION: Span = Span::from_millis(50);
    /// The most of a station's: each takes a number that no other terminal has.
    const MOST: usize = 50;
}

impl Default for Handovers {
    fn default() -> Handovers {
        Handovers { at: Vec::new(), interruption: Handovers::INTERRUPTION }
    }
}

impl StationParams {
    /// One layer up to 64QAM at a constant quality without errors, on every carrier, in one cell; it decodes the control channel, and
    /// rightly.
    pub fn new(cqi: Cqi) -> StationParams {
        StationParams {
            channel: vec![Step { at: Time::ZERO, cqi, errors: BlockError::NONE }],
            tables: Tables::Qam64,
            layers: 1,
            primary: 0,
            carriers: MOST_CARRIERS as u8,
            uplink: UPLINK,
            decodes: true,
            decoder: DecoderErrors::default(),
            handovers: Handovers::default(),
        }
    }

    /// The most that a carrier of `prb` PRB pairs carries to it at the best quality that it has, headers and repeats included: new blocks
    /// in every subframe and codeword.
    pub fn most(&self, prb: u8) -> Rate {
        let bits = |step: &Step| {
            let mcs = Mcs::for_cqi(step.cqi, self.tables)?;
            let blocks = codewords::layers_of_codewords(self.layers).iter();
            blocks.map(|layers| codewords::bits(mcs, self.tables, prb, *layers)).sum::<Option<u32>>()
        };
        let most = self.channel.iter().filter_map(bits).max().unwrap_or(0);
        Rate::from_bps(u64::from(most) * 1000)
    }

    pub(super) fn check(&self, key: &str, carriers: usize) -> Result<(), Error> {
        let name = |part: &str| format!("{key}.{part}");
        within(&name("layers"), f64::from(self.layers), (1.0, f64::from(MOST_LAYERS)))?;
        within(&name("primary"), f64::from(self.primary), (0.0, (carriers - 1) as f64))?;
        within(&name("carriers"), f64::from(self.carriers), (1.0, MOST_CARRIERS as f64))?;
        within(&name("uplink.rate"), self.uplink.rate.as_bps() as f64, (1.0, f64::MAX))?;
        within(&name("decoder.missed"), self.decoder.missed, (0.0, 1.0))?;
        within(&name("decoder.spurious"), self.decoder.spurious, (0.0, 1.0))?;
        let first = self.channel.first().is_some_and(|step| step.at == Time::ZERO);
        if !first || !self.channel.is_sorted_by(|a, b| a.at < b.at) {
            return Err(Error::Steps(key.to_owned()));
        }
        self.channel.iter().try_for_each(|step| probabilities(&name("channel.errors"), step.errors))?;
        let Handovers { at, interruption } = &self.handovers;
        within(&name("handovers.interruption"), interruption.as_millis_f64(), (0.0, 10_000.0))?;
        within(&name("handovers.at"), at.len() as f64, (0.0, Handovers::MOST as f64))?;
        // A handover ends before the next, and the station has been in a cell before the first.
        let apart = at.windows(2).all(|pair| pair[0] + *interruption < pair[1]);
        if apart && at.first().is_none_or(|first| *first > Time::ZERO) {
            return Ok(());
        }
        Err(Error::Handovers(key.to_owned()))
    }
}

/// What a channel is like from a time on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Step {
    /// From when on.
    pub at: Time,
    /// Its quality, which the base station knows at once. Out of range: nothing is sent.
    pub cqi: Cqi,
    /// Which blocks are damaged.
    pub errors: BlockError,
}

/// Which transport blocks are damaged.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum BlockError {
    /// Blocks of L bits with probability 1 - (1 - rate)^L.
    BitErrorRate {
        /// Probability that a bit is wrong after decoding, each by itself.
        rate: f64,
        /// Each repeat multiplies the block's probability by this, since the receiver combines it with what it has.
        combining: f64,
    },
    /// Whatever their length.
    Fixed {
        /// Probability for a block that is sent for the first time.
        first: f64,
        /// For a repeat.
        repeat: f64,
    },
}

impl BlockError {
    /// No block is ever damaged.
    pub const NONE: BlockError = BlockError::Fixed { first: 0.0, repeat: 0.0 };
    /// What a repeat leaves of the probability of an error. Link adaptation aims at one first transmission in ten that fails
    /// (36.213 section 7.2.3), and with its repeat at one in a hundred. ns-3's tests lte-harq have 0.07 and 0.25 where every
    /// first transmission fails.
    pub const COMBINING: f64 = 0.1;

    /// The probability that a block is damaged which has been repeated `repeats` times.
    pub(super) fn probability(self, bits: u32, repeats: u8) -> f64 {
        match self {
            // Small rates lose all their digits in 1 - rate.
            BlockError::BitErrorRate { rate, combining } => {
                let first = -f64::exp_m1(f64::from(bits) * f64::ln_1p(-rate));
                first * combining.powi(i32::from(repeats))
            }
            BlockError::Fixed { first, repeat } => {
                if repeats == 0 {
                    first
                } else {
                    repeat
                }
            }
        }
    }

    fn numbers(self) -> [f64; 2] {
        match self {
            BlockError::BitErrorRate { rate, combining } => [rate, combining],
            BlockError::Fixed { first, repeat } => [first, repeat],
        }
    }
}

pub(super) fn probabilities(key: &str, errors: BlockError) -> Result<(), Error> {
    errors.numbers().into_iter().try_for_each(|number| within(key, number, (0.0, 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn station() -> StationParams {
        StationParams::new(Cqi::new(15).expect("in range"))
    }

    #[test]
    fn the_peak_rate_is_a_block_per_layer_at_the_best_cqi() {
        // CQI 15 is MCS 28, with 75 376 bits in 100 PRB pairs (36.213 table 7.1.7.2.1-1).
        assert_eq!(station().most(100), Rate::from_bps(75_376_000));
        let mut two = StationParams { layers: 2, ..station() };
        assert_eq!(two.most(100), Rate::from_bps(150_752_000));
        two.channel.push(Step { at: Time::from_nanos(1), cqi: Cqi::new(1).expect("in range"), ..two.channel[0] });
        assert_eq!(two.most(100), Rate::from_bps(150_752_000), "not that of its worst");
    }

    #[test]
    fn longer_blocks_fail_more_often_and_repeats_less() {
        let errors = BlockError::BitErrorRate { rate: 3e-6, combining: 0.1 };
        // 1 - (1 - 3e-6)^L for blocks of 30, 60 and 100 kbit.
        for (bits, want) in [(30_000, 0.0861), (60_000, 0.1647), (100_000, 0.2592)] {
            assert!((errors.probability(bits, 0) - want).abs() < 1e-4, "{bits}");
        }
        assert!((errors.probability(30_000, 2) - 0.000_861).abs() < 1e-6);
        assert!(BlockError::BitErrorRate { rate: 1.0, combining: 1.0 }.probability(8, 3) > 0.999);
    }

    #[test]
    fn three_and_four_layers_are_blocks_on_two() {
        // 149 776 bits on two layers in 100 PRB pairs (36.213 table 7.1.7.2.2-1).
        let most = |layers| StationParams { layers, ..station() }.most(100).as_bps() / 1000;
        assert_eq!([most(3), most(4)], [75_376 + 149_776, 2 * 149_776]);
    }

    #[test]
    fn handovers_do_not_overlap() {
        let ms = |n| Time::ZERO + Span::from_millis(n);
        let check = |at: &[u64]| {
            let handovers = Handovers { at: at.iter().map(|n| ms(*n)).collect(), ..Handovers::default() };
            StationParams { handovers, ..station() }.check("s", 1)
        };
        assert_eq!((check(&[100, 151]), check(&[])), (Ok(()), Ok(())));
        assert_eq!([check(&[100, 150]), check(&[0])], [(); 2].map(|()| Err(Error::Handovers("s".to_owned()))));
    }
}
