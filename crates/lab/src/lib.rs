//! The wall-clock world: real Linux stacks over emulated hops.
//!
//! Every host of a run is a network namespace, every interface a TAP device with one emulator thread at the other end.
//! That thread drives the same hop models as the simulator, by `CLOCK_MONOTONIC`, and records how late it was.

pub mod address;
mod cgroup;
mod child;
mod classify;
mod clean;
mod clock;
mod congestion;
mod control_channel;
pub mod doctor;
mod doubts;
pub mod driver;
pub mod emulator;
mod error;
mod exec;
pub mod frame;
mod histogram;
mod lateness;
pub mod log;
pub mod monitor;
mod netlink;
mod netns;
mod outcome;
mod pinned_cpu;
mod processes;
mod program;
mod programs;
mod record;
mod run_dir;
pub mod sched;
mod spec;
mod stop;
mod tap;
pub mod topology;
pub mod traffic;
mod world;

pub use clean::{Cleaned, clean};
pub use clock::Clock;
pub use congestion::registered as congestion_controls;
pub use error::{LabError, Result};
pub use exec::{Exec, Exited, Setting, exec};
pub use histogram::{Histogram, Summary};
pub use lateness::{Kind as LatenessKind, Lateness};
pub use netns::Namespace;
pub use outcome::{Doubt, LATEST, Outcome, StreamLog};
pub use pinned_cpu::PinnedCpu;
pub use run_dir::{PREFIX, RunDir};
pub use spec::{AccountSpec, CarrierSpec, Cause, DOOR, ProgramSpec, Ready, Spec};
pub use stop::Stop;
pub use tap::{MTU, Tap};
pub use world::run;
