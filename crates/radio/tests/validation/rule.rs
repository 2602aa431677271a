//! The rule of the comparison: within 3 % of ns-3 in throughput and mean aggregation, 5 % in delay and in the standard
//! deviation of the aggregation, 10 % in anything at the saturation knee; or within two standard errors of ns-3's own
//! mean where that is more; or, for a standard deviation, within what one PPDU of one more MPDU in one of ns-3's samples
//! would have made of it.

use super::cases::{Case, Row};
use super::meter::Figures;

/// One figure at one point.
#[derive(Clone, Debug)]
pub struct Value {
    pub place: String,
    pub figure: &'static str,
    pub ours: f64,
    pub theirs: f64,
    /// How far apart they may be.
    pub allowed: f64,
    /// The same without the rule's last clause.
    pub without_step: f64,
}

impl Value {
    pub fn holds(&self) -> bool {
        self.is_within(self.allowed)
    }

    /// True if it holds by the rule's last clause alone.
    pub fn holds_by_step(&self) -> bool {
        self.holds() && !self.is_within(self.without_step)
    }

    fn is_within(&self, allowed: f64) -> bool {
        // The reference has six digits.
        (self.ours - self.theirs).abs() <= allowed + 1e-6 * self.theirs
    }

    pub fn deviation(&self) -> f64 {
        self.ours / self.theirs - 1.0
    }
}

/// How ns-3's samples spread: runs with one station, stations of runs with several.
///
/// Stations of one run share its phases, so the error of a mean over both is larger than that of as many independent samples
/// would be. How much larger the reference does not show, which has no deviation between runs: the smaller error is taken.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// Ending of the columns that hold the standard deviations over the samples.
    pub column: &'static str,
    pub samples: f64,
    /// Data PPDUs of a sample.
    pub ppdus: f64,
}

/// A figure's name, its column's stem, what is allowed outside the knee, and ours.
type Column = (&'static str, &'static str, f64, fn(&Figures) -> f64);

/// Name of the figure of which the smallest step counts.
const DEVIATION: &str = "MPDUs, sd";

pub const COLUMNS: [Column; 7] = [
    ("throughput", "throughput_mbps_ip", 0.03, |f| f.throughput),
    ("MPDUs, mean", "mean_mpdus", 0.03, |f| f.mpdus),
    (DEVIATION, "sd_mpdus", 0.05, |f| f.mpdus_sd),
    ("delay, mean", "delay_rx_mean_ms", 0.05, |f| f.delay),
    ("delay, p95", "delay_rx_p95_ms", 0.05, |f| f.delay_p95),
    ("delay to Ack, mean", "delay_ack_mean_ms", 0.05, |f| f.acked),
    ("delay to Ack, p95", "delay_ack_p95_ms", 0.05, |f| f.acked_p95),
];

/// Compares one row.
pub fn compare(case: &Case, place: &str, row: Row, ours: Figures, spread: Spread) -> Vec<Value> {
    let value = |&(figure, stem, share, of): &Column| {
        let theirs = row.number(&format!("{stem}_avg"));
        let error = row.number(&format!("{stem}_{}", spread.column)) / spread.samples.sqrt();
        let share = if case.at_knee() { 0.1 } else { share };
        // A single PPDU that differs by one MPDU has this standard deviation over its run.
        let step = if figure == DEVIATION { 1.0 / spread.ppdus.sqrt() / spread.samples } else { 0.0 };
        let without_step = (share * theirs).max(2.0 * error);
        let allowed = without_step.max(step);
        Value { place: place.to_owned(), figure, ours: of(&ours), theirs, allowed, without_step }
    };
    COLUMNS.iter().map(value).collect()
}

/// A value outside the rule, with the cause that was found.
pub struct Exception {
    pub place: &'static str,
    pub figure: &'static str,
    pub cause: &'static str,
}

/// The exception for a value, if it has one.
pub fn exception(value: &Value) -> Option<&'static Exception> {
    EXCEPTIONS.iter().find(|known| known.place == value.place && known.figure == value.figure)
}

/// Every value that is outside the rule.
pub const EXCEPTIONS: [Exception; 12] = [
    Exception {
        place: "NSS 1 MCS 0 short GI load 0.80",
        figure: DEVIATION,
        cause: "chance of 3 seeds: ns-3 over 14 has 0.2282 (sd of a seed 0.0089)",
    },
    Exception {
        place: "NSS 1 MCS 4 short GI load 0.20",
        figure: DEVIATION,
        cause: "chance of 3 seeds: two PPDUs in 18 000 decide; ns-3 over 20 has 0.0152 (0.0060)",
    },
    Exception { place: "NSS 1 MCS 9 long GI load 1.00", figure: DEVIATION, cause: SHORT_WAIT },
    Exception { place: "NSS 1 MCS 9 short GI load 1.00", figure: DEVIATION, cause: SHORT_WAIT },
    Exception { place: "NSS 3 MCS 4 short GI load 1.00", figure: DEVIATION, cause: SHORT_WAIT },
    Exception { place: FEW_PACKETS, figure: "delay, mean", cause: PHASES },
    Exception { place: FEW_PACKETS, figure: "delay, p95", cause: PHASES },
    Exception { place: FEW_PACKETS, figure: "delay to Ack, mean", cause: PHASES },
    Exception { place: FEW_PACKETS, figure: "delay to Ack, p95", cause: PHASES },
    Exception {
        place: "10 stations, 1 stream, equal_load0.80",
        figure: DEVIATION,
        cause: "chance of 2 seeds: ns-3 over 16 has 0.772 (0.051), ours over 48 0.779",
    },
    Exception {
        place: "10 stations, 1 stream, equal_load0.95",
        figure: DEVIATION,
        cause: "chance of our 12 seeds: over 48 1.102, ns-3 over 24 1.086 (0.143)",
    },
    Exception {
        place: "2 stations, 1 stream, equal_load0.95",
        figure: DEVIATION,
        cause: "chance of 2 seeds: ns-3 over 16 has 2.28 (0.17), ours over 48 2.39",
    },
];

/// See "Few packets and many stations" on the page.
const PHASES: &str = "chance of 2 draws of phases (below)";
const FEW_PACKETS: &str = "10 stations, 1 stream, equal_load0.10";

/// The wait for the address at nominal capacity: after one below 1 ms some PPDUs of the window are not full; none of ns-3's three
/// seeds drew one, nor of 14 more.
const SHORT_WAIT: &str = "one of our 12 seeds draws an ARP wait below 1 ms; none of ns-3's 3, nor of 14 more";
