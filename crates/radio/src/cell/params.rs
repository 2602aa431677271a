//! What a cell is made of. Plain data with public fields: [`Params::validate`] turns it into a [`Plan`].
//! Source:     3GPP TS 36.211 and 36.213 (bandwidths, tables), 36.331 (the timer of secondary carriers), 36.133 section 7.7 (how
//!             long it takes to activate one).
//! Deviations: what the standard leaves to the cell has the defaults that are named at each field.
//! Checked by: tests::*, and the scenario files that must be refused

use super::codewords::MOST_LAYERS;
use super::error::{Error, within};
use super::mcs::{Cqi, Tables};
use super::numbers::{CONTROL_PRB, MOST_CARRIERS, rnti};
use super::station::{BlockError, StationParams, probabilities};
use lasthop_signals::Rnti;
use lasthop_units::{Bytes, Span};

/// PRB pairs of the narrowest and the widest carrier (36.211 section 6.2.1).
pub(super) const PRBS: (u8, u8) = (6, 110);

/// A base station with its stations.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// PRB pairs of each carrier. A station has its primary carrier from the beginning, and those that follow it, in a circle, as they
    /// are activated.
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
    /// Node 0 tells what was sent on each carrier, as a decoder would that never errs: what stations' decoders are held against.
    pub truth: bool,
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

/// Terminals that the cell serves beside the stations.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Background {
    /// One terminal that is sent bursts of data, at the times of a Poisson process. It has the queue that it needs.
    Data {
        /// On which carrier; it has no other.
        carrier: u8,
        /// Layers that it receives at once, 1 to 4.
        layers: u8,
        /// Its tables.
        tables: Tables,
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
            truth: false,
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
            station.check(&format!("stations[{n}]"), self.carriers.len())?;
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
            if let Background::Data { layers, errors, bursts, .. } = background {
                within(&key("layers"), f64::from(*layers), (1.0, f64::from(MOST_LAYERS)))?;
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

/// A description from which a cell can be built.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan(Params);

impl Plan {
    /// What was validated.
    pub fn params(&self) -> &Params {
        &self.0
    }

    /// The number that a station has until its first handover, by its place in [`Params::stations`].
    ///
    /// # Panics
    /// If a cell cannot have so many.
    pub fn rnti(&self, station: usize) -> Rnti {
        rnti(station)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::Time;

    fn station() -> StationParams {
        StationParams::new(Cqi::new(15).expect("in range"))
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
}
