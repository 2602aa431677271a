//! The production side: agents on real interfaces.

pub mod ap;
mod backoff;
#[cfg(feature = "bpf")]
mod bpf_links;
#[cfg(feature = "bpf")]
mod cgroup;
#[cfg(test)]
mod documented;
pub mod endpoint;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod gateway;
pub mod host;
pub mod learn;
pub mod monitor;
mod netlink;
#[cfg(feature = "bpf")]
mod netns;
pub mod olsr;
pub mod pbe;
pub mod proxy;
pub mod relay;
mod remedy;
#[cfg(feature = "bpf")]
mod said;
pub mod station;
pub mod transparent;
pub mod tunnel;
