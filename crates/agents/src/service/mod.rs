//! What every agent needs, whatever it does: the room below all agents, which knows none of them.

pub(crate) mod backoff;
pub mod backoff_listener;
#[cfg(feature = "bpf")]
pub(crate) mod bpf_links;
#[cfg(feature = "bpf")]
pub(crate) mod cgroup;
pub mod clock;
pub mod driver;
pub mod latency_histogram;
pub(crate) mod netlink;
#[cfg(feature = "bpf")]
pub(crate) mod netns;
pub mod rate_limited_log;
pub(crate) mod remedy;
#[cfg(feature = "bpf")]
pub(crate) mod said;

pub use lasthop_system::{cpu_latency_guard, files, poll, spin_sleeper};

/// Takes, line by line, what the operator should know of a running agent.
pub type Say = fn(&str);
