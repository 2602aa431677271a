//! What a cell is made of. Plain data with public fields: [`Params::validate`] turns it into a [`Plan`].
//! Source:     3GPP TS 36.211 and 36.213 (bandwidths, tables), 36.331 (the timer of secondary carriers), 36.133 section 7.7 (how
//!             long it takes to activate one).
//! Deviations: what the standard leaves to the cell has the defaults that are named at each field.
//! Checked by: tests::*, and the scenario files that must be refused

use super::background::CONTROL_PRB;
use super::mcs::{Cqi, Mcs, Tables};
use crate::wired;
use lasthop_units::{Bytes, Rate, Span, Time};

/// The most carriers that a terminal can use at once (36.331: five serving cells).
pub const MOST_CARRIERS: usize = 5;
/// PRB pairs of the narrowest and the widest carrier (36.211 section 6.2.1).
pub(super) const PRBS: (u8, u8) = (6, 110);

/// The way from a terminal to the base station where nothing else is said.
///
/// LTE was asked for both (3GPP TR 25.913): less than 5 ms one way for a small packet in a cell without load, and 50 Mbit/s at
/// best over 20 MHz.
pub const UPLINK: wired::Params =
    wired::Params { rate: Rate::from_mbit(50), delay: Span::from_millis(5), queue_packets: 1000 };

/// A base station with its stations.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// PRB pairs of each carrier, in the order in which they are activated; every station has the first.
    pub carriers: Vec<u8>,
    /// How resource blocks are shared out.
    pub scheduler: Scheduler,
    /// Gives away what does not divide evenly as well: the last resource block group of a carrier, where it is short, and with
    /// round robin the groups that remain after equal shares. ns-3's schedulers leave both unused.
    pub use_remainder: bool,
    /// Subframes from a decision to its transmission: 2 in ns-3, and what a base station needs to build and encode a block. At
    /// most 4: it must have heard of a failed block by then.
    pub lead: u8,
    /// What the base station holds for each station. A packet counts with its PDCP header, and less what has been sent of it.
    pub queue: Bytes,
    /// [`lasthop_signals::Node`]`(i + 1)` is `stations[i]`. Node 0 is the base station.
    pub stations: Vec<StationParams>,
    /// Traffic of terminals that are no nodes.
    pub background: Vec<Background>,
    /// When a station gets another carrier, and when it loses it.
    pub aggregation: Aggregation,
}

/// Which terminals are given resource block groups.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Scheduler {
    /// First the terminal that can have most, measured by what it had lately.
    ProportionalFair {
        /// Time constant of that average, in subframes; ns-3 has 99.
        window: u32,
    },
    /// Equal numbers of groups for all terminals for which something waits, as far as each needs them.
    RoundRobin,
}

impl Scheduler {
    /// Proportional fair with ns-3's time constant.
    pub const PROPORTIONAL_FAIR: Scheduler = Scheduler::ProportionalFair { window: 99 };
}

/// A station of the cell.
#[derive(Clone, Debug, PartialEq)]
pub struct StationParams {
    /// Its channel over time: the first step at zero, times rising.
    pub channel: Vec<Step>,
    /// Its tables.
    pub tables: Tables,
    /// Blocks that it receives at once, 1 or 2.
    pub layers: u8,
    /// Carriers that it can use, at least 1; more than the cell has are none.
    pub carriers: u8,
    /// Its way to the base station.
    pub uplink: wired::Params,
    /// It decodes the whole control channel of every carrier: [`lasthop_signals::Signal::Subframe`] tells what it sees.
    pub decodes: bool,
}

impl StationParams {
    /// One layer up to 64QAM at a constant quality without errors, on every carrier; it decodes the control channel.
    pub fn new(cqi: Cqi) -> StationParams {
        StationParams {
            channel: vec![Step { at: Time::ZERO, cqi, errors: BlockError::NONE }],
            tables: Tables::Qam64,
            layers: 1,
            carriers: MOST_CARRIERS as u8,
            uplink: UPLINK,
            decodes: true,
        }
    }

    /// The most that a carrier of `prb` PRB pairs carries to it at the best quality that it has, headers and repeats included: new blocks
    /// in every subframe and layer.
    pub fn most(&self, prb: u8) -> Rate {
        let bits = |step: &Step| Mcs::for_cqi(step.cqi, self.tables)?.bits(self.tables, prb);
        let most = self.channel.iter().filter_map(bits).max().unwrap_or(0);
        Rate::from_bps(u64::from(most) * u64::from(self.layers) * 1000)
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

/// Terminals that the cell serves beside the stations.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Background {
    /// One terminal that is sent bursts of data, at the times of a Poisson process. It has one layer, the tables up to 64QAM and
    /// the queue that it needs.
    Data {
        /// On which carrier.
        carrier: u8,
        /// Its quality.
        cqi: Cqi,
        /// Its block errors.
        errors: BlockError,
        /// Mean number of bursts a second.
        rate: f64,
        /// How long they are.
        bursts: Bursts,
    },
    /// Terminals that are sent one block of signalling each, in 4 PRB pairs of one subframe, at the times of a Poisson process.
    Control {
        /// On which carrier.
        carrier: u8,
        /// Their quality.
        cqi: Cqi,
        /// Mean number of terminals a second.
        rate: f64,
    },
}

impl Background {
    fn carrier(self) -> u8 {
        match self {
            Background::Data { carrier, .. } | Background::Control { carrier, .. } => carrier,
        }
    }

    pub(super) fn rate(self) -> f64 {
        match self {
            Background::Data { rate, .. } | Background::Control { rate, .. } => rate,
        }
    }
}

/// How long bursts are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bursts {
    /// All alike.
    Fixed(Bytes),
    /// Exponentially distributed about this mean, a byte at least.
    Exponential(Bytes),
}

/// When a station gets another carrier: when it uses up what it has, however little waits for it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Aggregation {
    /// Its share is measured over this time, which begins anew with each carrier.
    pub window: Span,
    /// From this share of the PRBs of its carriers on it gets the next.
    pub share: f64,
    /// From then to the carrier's first subframe: 24 subframes where the terminal has measured the carrier (36.133 section 7.7.2).
    pub delay: Span,
    /// It loses the last one when nothing was sent there for so long (36.331, sCellDeactivationTimer); `None`: never.
    pub unused: Option<Span>,
}

impl Default for Aggregation {
    /// Four fifths over 100 ms, 24 ms, and a timer of 32 radio frames.
    fn default() -> Aggregation {
        Aggregation {
            window: Span::from_millis(100),
            share: 0.8,
            delay: Span::from_millis(24),
            unused: Some(Span::from_millis(320)),
        }
    }
}

impl Params {
    /// Proportional fair, every PRB used, the buffer of ns-3's reference runs, no background.
    pub fn new(carriers: Vec<u8>, stations: Vec<StationParams>) -> Params {
        Params {
            carriers,
            scheduler: Scheduler::PROPORTIONAL_FAIR,
            use_remainder: true,
            lead: 2,
            queue: Bytes::new(750_000),
            stations,
            background: Vec::new(),
            aggregation: Aggregation::default(),
        }
    }

    /// The description, if a cell can be built from it.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn validate(self) -> Result<Plan, Error> {
        within("carriers", self.carriers.len() as f64, (1.0, MOST_CARRIERS as f64))?;
        for (n, prb) in self.carriers.iter().enumerate() {
            within(&format!("carriers[{n}]"), f64::from(*prb), (f64::from(PRBS.0), f64::from(PRBS.1)))?;
        }
        if let Scheduler::ProportionalFair { window } = self.scheduler {
            within("scheduler.window", f64::from(window), (1.0, 1e6))?;
        }
        within("lead", f64::from(self.lead), (0.0, 4.0))?;
        within("queue", self.queue.get() as f64, (1.0, 1e12))?;
        within("stations", self.stations.len() as f64, (1.0, 1023.0))?;
        for (n, station) in self.stations.iter().enumerate() {
            station.check(&format!("stations[{n}]"))?;
        }
        within("background", self.background.len() as f64, (0.0, 1000.0))?;
        for (n, background) in self.background.iter().enumerate() {
            let key = |name: &str| format!("background[{n}].{name}");
            within(&key("carrier"), f64::from(background.carrier()), (0.0, (self.carriers.len() - 1) as f64))?;
            // More signalling than fits would wait without end.
            let prb = self.carriers[usize::from(background.carrier())];
            let most = match background {
                Background::Control { .. } => 1000.0 * f64::from(prb / CONTROL_PRB),
                Background::Data { .. } => 1e5,
            };
            within(&key("rate"), background.rate(), (1e-6, most))?;
            if let Background::Data { errors, bursts, .. } = background {
                probabilities(&key("errors"), *errors)?;
                let (Bursts::Fixed(size) | Bursts::Exponential(size)) = bursts;
                within(&key("bursts"), size.get() as f64, (1.0, 1e12))?;
            }
        }
        let Aggregation { window, share, delay, unused } = self.aggregation;
        let ms = |span: Span| span.as_millis_f64();
        within("aggregation.window", ms(window), (1.0, 1e6))?;
        within("aggregation.share", share, (1e-3, 1.0))?;
        within("aggregation.delay", ms(delay), (0.0, 1e6))?;
        if let Some(unused) = unused {
            // A repeat must find its carrier.
            within("aggregation.unused", ms(unused), (20.0, 1e9))?;
        }
        Ok(Plan(self))
    }
}

impl StationParams {
    fn check(&self, key: &str) -> Result<(), Error> {
        within(&format!("{key}.layers"), f64::from(self.layers), (1.0, 2.0))?;
        within(&format!("{key}.carriers"), f64::from(self.carriers), (1.0, MOST_CARRIERS as f64))?;
        within(&format!("{key}.uplink.rate"), self.uplink.rate.as_bps() as f64, (1.0, f64::MAX))?;
        let first = self.channel.first().is_some_and(|step| step.at == Time::ZERO);
        if !first || !self.channel.is_sorted_by(|a, b| a.at < b.at) {
            return Err(Error::Steps(key.to_owned()));
        }
        self.channel.iter().try_for_each(|step| probabilities(&format!("{key}.channel.errors"), step.errors))
    }
}

fn probabilities(key: &str, errors: BlockError) -> Result<(), Error> {
    errors.numbers().into_iter().try_for_each(|number| within(key, number, (0.0, 1.0)))
}

/// Written so that NaN is outside.
fn within(key: &str, got: f64, (min, max): (f64, f64)) -> Result<(), Error> {
    if min <= got && got <= max {
        return Ok(());
    }
    Err(Error::OutOfRange { key: key.to_owned(), got, min, max })
}

/// A value of [`Params`] that no cell can be built from.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A number lies outside its bounds.
    #[error("{key} = {got} is outside {min} to {max}")]
    OutOfRange {
        /// Where in the parameters.
        key: String,
        /// The value found.
        got: f64,
        /// Smallest legal value.
        min: f64,
        /// Largest legal value.
        max: f64,
    },
    /// Steps that do not begin at zero or do not rise.
    #[error("{0}.channel must begin at zero and rise in time")]
    Steps(String),
}

/// A description from which a cell can be built.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan(Params);

impl Plan {
    /// What was validated.
    pub fn params(&self) -> &Params {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn station() -> StationParams {
        StationParams::new(Cqi::new(15).expect("in range"))
    }

    #[test]
    fn a_station_has_at_most_a_block_of_each_layer_at_its_best_quality() {
        // CQI 15 is MCS 28, with 75 376 bits in 100 PRB pairs (36.213 table 7.1.7.2.1-1).
        assert_eq!(station().most(100), Rate::from_bps(75_376_000));
        let mut two = StationParams { layers: 2, ..station() };
        assert_eq!(two.most(100), Rate::from_bps(150_752_000));
        two.channel.push(Step { at: Time::from_nanos(1), cqi: Cqi::new(1).expect("in range"), ..two.channel[0] });
        assert_eq!(two.most(100), Rate::from_bps(150_752_000), "not that of its worst");
    }

    #[test]
    fn what_no_cell_can_have_is_refused_by_name() {
        let good = Params::new(vec![50], vec![station()]);
        assert!(good.clone().validate().is_ok());
        let narrow = Params { carriers: vec![50, 5], ..good.clone() }.validate();
        assert_eq!(narrow.map_err(|error| error.to_string()), Err("carriers[1] = 5 is outside 6 to 110".to_owned()));
        let mut late = good.clone();
        late.stations[0].channel[0].at = Time::from_nanos(1);
        assert_eq!(late.validate(), Err(Error::Steps("stations[0]".to_owned())));
        let mut broken = good.clone();
        broken.stations[0].channel[0].errors = BlockError::BitErrorRate { rate: f64::NAN, combining: 0.1 };
        assert!(matches!(broken.validate(), Err(Error::OutOfRange { key, .. }) if key.ends_with("errors")));
        let data = Background::Control { carrier: 1, cqi: Cqi::new(7).expect("in range"), rate: 1.0 };
        assert!(Params { background: vec![data], ..good }.validate().is_err());
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
}
