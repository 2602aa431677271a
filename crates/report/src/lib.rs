//! The report room: what a run measured, with its uncertainty, in files that people and programs read.
//!
//! Both worlds feed one [`Recorder`], packet by packet, with times that the world supplies; nothing here reads a clock.
//! [`Recorder::finish`] turns what it saw into a [`RunRecord`]: the figures of one run, its time series and its delay
//! distribution. A run that could not measure a figure says why ([`Figure::Absent`]) instead of reporting zero.
//!
//! ```
//! use lasthop_report::{Recorder, Window};
//! use lasthop_signals::{FlowId, Node};
//! use lasthop_units::{Bytes, Time};
//!
//! let ms = |n: u64| Time::from_nanos(n * 1_000_000);
//! let mut recorder = Recorder::new(Window { warm_up: ms(0), end: ms(1000) }, [(Node(1), "phone".to_string())]);
//! recorder.bulk_flow(ms(0), FlowId(0), Node(1), "download");
//! recorder.hop_delivery(ms(15), ms(10), Node(1), Bytes::new(1500));
//! recorder.goodput(ms(15), FlowId(0), Node(1), Bytes::new(1448));
//! let record = recorder.finish();
//! assert_eq!(record.figure(lasthop_report::Key::HopDelayMean).value(), Some(5.0));
//! ```

pub mod account;
mod columns;
mod combined;
mod delays;
mod doc;
mod estimate;
mod experiment;
mod figure;
mod files;
mod flows;
mod hop;
mod html;
mod jitter;
mod json;
pub mod page;
mod ratios;
mod record;
mod recorder;
mod rows;
mod run;
mod series;
mod streams;
mod summary;
mod table;
mod user_latency;

pub use account::Account;
pub use columns::{has_packets, plain, write_packets, write_series};
pub use combined::combined;
pub use delays::Delays;
pub use estimate::Estimate;
pub use experiment::Report;
pub use figure::{Better, Column, Figure, Group, Key, Needs};
pub use files::{ReportError, write_whole};
pub use flows::Segments;
pub use hop::HopMeter;
pub use record::{PacketDelay, RunRecord, StationRecord};
pub use recorder::{NOBODY, Recorder, Window};
pub use rows::{ColumnKind, RowFile, RowValue};
pub use run::{Lateness, Regulated, Run, RunInfo, RunStatus, Verdict, World};
pub use series::{Chart, Entity, Gauge, Held, Series, SeriesKind, Track, Whole};
pub use streams::{Direction, StreamInfo, StreamRecord};
pub use summary::{Incomplete, StreamSummary, Summary};
pub use table::{Cell, Row, folded};
