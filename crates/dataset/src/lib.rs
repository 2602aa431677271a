//! Data sets of what access points saw, and what they then lost: items of one access point, one station and 100 ms.
//!
//! A [`Recorder`] makes items from what an access point observes; [`PseudonymKey`] hides which devices they are of; a
//! [`Writer`] keeps them as they become final. [`DataSet`] reads what was written and checks it; [`merge`], [`split`]
//! and [`study`] work on what it reads.

mod error;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod groups;
mod journal;
mod merge;
mod meta;
pub mod metrics;
mod observer;
mod pseudonym;
mod read;
mod recorder;
mod row;
pub mod schema;
pub mod split;
pub mod study;
mod write;

pub use error::DataSetError;
pub use merge::merge;
pub use meta::{Meta, Recording, World};
pub use observer::Observer;
pub use pseudonym::{Device, KEY_LEN, Pseudonym, PseudonymKey};
pub use read::DataSet;
pub use recorder::{EVERY, Observed, Recorder};
pub use row::Row;
pub use write::{Take, Writer, Written, part_of, write_file};
