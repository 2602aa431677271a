//! What files say of a cell and its stations.

use super::power::Dbm;
use crate::problem::Kind;
use crate::quantity::{Decibels, Hertz, Packets, show};
use crate::read::{At, Context, Quantity, Read, Trace, Value};
use crate::read::{inline_schema, step, table, words};
use lasthop_units::{Bytes, Rate, Span};
use schemars::json_schema;

table! {
    /// An LTE cell (FDD): the base station has a queue for each station and schedules carriers
    /// each millisecond.
    CellHop {
        /// Bandwidths: 1.4, 3, 5, 10, 15 or 20 MHz, or 6 to 110 PRB pairs. A station has its
        /// `primary-carrier` and gets the next ones in turn.
        required carriers: Vec<Bandwidth>,
        /// How resource blocks are shared out.
        default("\"proportional-fair\"") scheduler: CellScheduler,
        /// `proportional-fair`: time constant of the rate average. Default: 99 ms, as in ns-3.
        optional fairness_window: Quantity<Span>,
        /// Also assign a carrier's short last resource block group and, with `round-robin`, groups
        /// left from equal shares; ns-3 does neither.
        default("true") use_remainder: bool,
        /// Bytes queued for each station; drop-tail.
        default("\"750 kB\"") queue: Quantity<Bytes>,
        /// Data rate of each station's own uplink.
        default("\"50 Mbit/s\"") uplink_rate: Quantity<Rate>,
        /// Delay of each station's uplink.
        default("\"5 ms\"") uplink_delay: Quantity<Span>,
        /// Packets that may wait at each station.
        default("\"1000 packets\"") uplink_queue: Quantity<Packets>,
        /// A station gets the next carrier when assigned this share of its PRBs.
        default("0.8") activate_share: f64,
        /// Time over which that share is measured.
        default("\"100 ms\"") activate_window: Quantity<Span>,
        /// From then to the carrier's first subframe (3GPP TS 36.133, 7.7.2).
        default("\"24 ms\"") activation_delay: Quantity<Span>,
        /// A station loses its last carrier after no assignment for so long
        /// (sCellDeactivationTimer).
        default("\"320 ms\"") deactivate_after: Quantity<Span>,
        /// For `rsrp-trace`: receivers' noise figure (3GPP TR 36.942).
        default("\"9 dB\"") noise_figure: Quantity<Decibels>,
        /// For `rsrp-trace`: noise plus interference of other cells, over noise.
        default("\"3 dB\"") interference_margin: Quantity<Decibels>,
        /// Terminals served beside the stations.
        default("[]") background: Vec<CellBackground>,
    }
}

words! {
    /// How a cell's resource blocks are assigned.
    CellScheduler {
        /// First to the highest achievable rate over recent rate; equal channels get whole
        /// subframes in turn.
        ProportionalFair = "proportional-fair",
        /// Equal parts of each subframe to all with data, as far as needed.
        RoundRobin = "round-robin",
    }
}

table! {
    /// Traffic to terminals that are no stations.
    CellBackground {
        /// What it is.
        required kind: CellLoad,
        /// Mean bursts, or signalling terminals, a second (Poisson).
        required per_second: f64,
        /// The carrier, counted from 1.
        default("1") carrier: u64,
        /// CQI of its terminals, 1 to 15.
        default("10") cqi: u64,
        /// `data`: length of a burst, or its mean. Default: 100 kB.
        optional size: Quantity<Bytes>,
        /// `data`: distribution of burst lengths. Default: `exponential`.
        optional sizes: BurstSizes,
        /// `data`: as of a station. Default: 0.
        optional bit_error_rate: f64,
        /// `data`: layers received at once, 1 to 4. Default: 1.
        optional layers: u64,
        /// `data`: its tables. Default: `"64qam"`.
        optional modulation: Modulation,
    }
}

words! {
    /// Traffic to terminals that are no stations.
    CellLoad {
        /// One terminal that gets bursts of data.
        Data = "data",
        /// Terminals with one signalling block each, in four PRB pairs.
        Control = "control",
    }
}

words! {
    /// Distribution of burst lengths.
    BurstSizes {
        /// Exponential.
        Exponential = "exponential",
        /// All alike.
        Fixed = "fixed",
    }
}

words! {
    /// CQI and MCS tables (3GPP TS 36.213).
    Modulation {
        /// Up to 64QAM.
        Qam64 = "64qam",
        /// Up to 256QAM.
        Qam256 = "256qam",
    }
}

table! {
    /// Keys of a station that only mean something in a cell.
    CellStation {
        /// Cell: CQI, 1 to 15, or 0 for out of range; decides modulation and coding.
        optional cqi: u64,
        /// Cell: in place of `cqi`, over time; CSV columns `at_s,cqi`.
        optional cqi_trace: Trace<CqiStep>,
        /// Cell: in place of `cqi`, RSRP over time, linear between points; CSV columns
        /// `at_s,rsrp_dbm`. The CQI follows by noise and `interference-margin`, as in ns-3.
        optional rsrp_trace: Trace<RsrpStep>,
        /// Cell: times of handover to an equal cell. Undelivered data are sent again; RNTI
        /// changes, only the primary carrier stays.
        optional handovers: Vec<Quantity<Span>>,
        /// Cell: pause in both directions at a handover. Default: 50 ms.
        optional handover_interruption: Quantity<Span>,
        /// Cell: bit error probability p. A block of L bits fails with 1 - (1 - p)^L; up to 3
        /// repeats, 8 ms apart, each fail a tenth as often. Typical: 1e-6 to 5e-6. Default: 0.
        optional bit_error_rate: f64,
        /// Cell: layers received at once, 1 to 4 (one block on 1, otherwise two). Default: 1.
        optional layers: u64,
        /// Cell: its tables. Default: `"64qam"`.
        optional modulation: Modulation,
        /// Cell: first carrier, counted from 1. Default: 1.
        optional primary_carrier: u64,
        /// Cell: carriers it can use, from its primary one on, cyclically. Default: all.
        optional carriers: u64,
        /// Cell: probability that its decoder misses an assignment; its data arrive all the same.
        /// Default: 0.
        optional missed_dci: f64,
        /// Cell: probability, each subframe and carrier, that its decoder sees a random false
        /// assignment. Default: 0.
        optional false_dci: f64,
    }
}

step! {
    /// CQI from `at` on.
    CqiStep {
        /// The CQI from then on.
        cqi: u64,
    } columns "at_s,cqi", such as "2.5,9", by |text| text.parse().map_err(|_| format!("`{text}` is not a CQI"))
}

step! {
    /// Power of the reference signals at `at`.
    RsrpStep {
        /// Power of the reference signals then, such as `"-95 dBm"`.
        rsrp: Dbm,
    } columns "at_s,rsrp_dbm", such as "2.5,-95", by |text| Dbm::parse(text)
}

/// How wide a carrier of a cell is, in PRB pairs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bandwidth(pub u8);

/// Bandwidths with their PRB pairs (3GPP TS 36.101 table 5.6-1), in hertz.
const BANDWIDTHS: [(u64, u8); 6] =
    [(1_400_000, 6), (3_000_000, 15), (5_000_000, 25), (10_000_000, 50), (15_000_000, 75), (20_000_000, 100)];
/// What resource grids have (36.211, 6.2.1).
const PRBS: (u64, u64) = (6, 110);

impl Read for Bandwidth {
    fn read(value: &Value<'_>, at: &At, cx: &mut Context) -> Option<Self> {
        let remedy = "write \"1.4 MHz\", \"3 MHz\", \"5 MHz\", \"10 MHz\", \"15 MHz\" or \"20 MHz\", or a number of PRB pairs from 6 to 110";
        if value.get_ref().is_integer() {
            let prb = u64::read(value, at, cx)?;
            if (PRBS.0..=PRBS.1).contains(&prb) {
                return u8::try_from(prb).ok().map(Bandwidth);
            }
            cx.problem(Kind::OutOfRange, at, format!("LTE has no carrier of {prb} PRB pairs"), remedy);
            return None;
        }
        let Quantity(hertz) = Quantity::<Hertz>::read(value, at, cx)?;
        let known = BANDWIDTHS.into_iter().find(|(width, _)| *width == hertz.0);
        if known.is_none() {
            cx.problem(Kind::OutOfRange, at, format!("LTE has no carrier of {}", show(hertz)), remedy);
        }
        known.map(|(_, prb)| Bandwidth(prb))
    }
}

inline_schema!(Bandwidth, generator => json_schema!({
    "title": "a frequency, or a number of PRB pairs",
    "anyOf": [
        Quantity::<Hertz>::json_schema(generator),
        { "type": "integer", "minimum": PRBS.0, "maximum": PRBS.1 },
    ],
    "examples": ["10 MHz", 50],
}));
