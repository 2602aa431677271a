//! What the agent counts.

use crate::service::counters::counters;
use lasthop_units::{Span, serialise};

counters! {
    /// What the loop has done.
    pub struct Tally {
        /// Driver reports that were acted on.
        #[metric("reports")]
        pub intervals: u64,
        /// Driver reports that were too old when they came, and therefore ignored.
        #[metric("reports_stale")]
        pub stale_reports: u64,
        /// Driver reports that were refused: they could not be read, or contradicted themselves, the
        /// one before or the time that had passed.
        #[metric("reports_refused")]
        pub refused_reports: u64,
        /// Flows that were managed.
        #[metric("flows_managed")]
        pub flows: u64,
        /// The most flows at once that belong to stations which neither driver nor operator had
        /// named: they were left alone.
        pub strangers: u64,
        /// The most flows at once with neither timestamps nor a handshake in which no SYN was
        /// repeated: their round trip cannot be told, and they get no window.
        pub untimed: u64,
        /// Flows that left the table since nobody had used them for long.
        pub expired: u64,
        /// Targets that were set or lifted.
        pub orders: u64,
        /// Targets that were not set, since what was in force was near enough.
        #[serde(rename = "orders_spared")]
        pub spared: u64,
        /// Events of the program that were lost before they were read: what was to be learned then
        /// is not.
        pub events_missed: u64,
        /// Times that the driver went silent for longer than the age limit.
        pub driver_losses: u64,
        /// The longest that one interval's work has taken.
        #[serde(rename = "longest_work_us", serialize_with = "serialise::micros")]
        pub longest_work: Span,
        /// How long it took in the end to open the windows that were limited.
        #[serde(rename = "longest_farewell_ms", serialize_with = "serialise::millis")]
        pub farewell: Span,
    }
}
