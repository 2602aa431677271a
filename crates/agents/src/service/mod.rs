//! What every agent needs, whatever it does: the room below all agents, which knows none of them.

#[cfg(not(feature = "bpf"))]
mod absent;
#[cfg(feature = "bpf")]
pub(crate) mod attach;
pub(crate) mod backoff;
pub mod backoff_listener;
#[cfg(feature = "bpf")]
pub(crate) mod bpf_links;
#[cfg(feature = "bpf")]
pub(crate) mod cgroup;
pub mod clock;
pub mod counters;
pub(crate) mod device;
pub mod driver;
mod error;
#[cfg(feature = "bpf")]
mod filters;
pub(crate) mod fraglist;
pub mod latency_histogram;
pub mod log;
mod method;
#[cfg(feature = "bpf")]
pub(crate) mod netns;
pub(crate) mod owner;
pub(crate) mod privileges;
#[cfg(feature = "bpf")]
pub mod program_info;
mod random;
pub mod rate_limited_log;
pub(crate) mod remedy;
pub(crate) mod run_loop;
#[cfg(feature = "bpf")]
pub(crate) mod said;
#[cfg(feature = "bpf")]
pub(crate) mod shared_memory;
#[cfg(feature = "bpf")]
pub(crate) mod skeleton;
pub mod status;
mod status_socket;
mod stop;

#[cfg(not(feature = "bpf"))]
pub(crate) use absent::absent;
pub(crate) use error::agent_error;
pub use error::{AgentError, Error, address, system};
pub use lasthop_system::{cpu_latency_guard, files, poll, spin_sleeper};
pub use log::Say;
pub use method::{Cleaned, Method};
pub(crate) use random::random;
pub use stop::{Stop, stop_on_signals};
