//! What is to be run: scenario files, parsed, validated whole and composed from each room's parameters.
//!
//! [`Scenario::load`] reads a TOML file. Either all of it is right, or [`Error`] holds every problem that was found,
//! each with its place, what stands there and what would be right; miette renders them with the source excerpt.
//! [`json_schema`] and [`reference_page`] are generated from the same declarations as the reader.

mod bounds;
mod cable;
mod check;
mod file;
pub mod graph;
mod group;
mod hop;
mod hosts;
mod laws;
mod load;
mod measures;
mod model;
mod over_time;
mod problem;
mod queue;
mod read;
mod schema;
mod seeds;
mod set_up;
mod station;
mod tables;
mod traffic;

pub use hop::wifi::table::{MeshRouting, Standard};
pub use lasthop_radio::LastHop;
pub use lasthop_units::quantity;
pub use model::{REQUEST, Scenario, Stream, StreamKind, UDP_HEADERS, UnknownHost, UnknownLaw, stream_infos};
pub use problem::{Error, Kind, Problem};
pub use schema::{json_schema, reference_page};
pub use set_up::{Hosts, Part, SetUp};
pub use tables::World;
pub use traffic::table::Program;
