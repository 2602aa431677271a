//! The `lasthop` command where wall-clock time matters: in the lab and in namespaces. A program of its own, for the others of this crate take processors.

mod agent;
mod aggregation_live;
mod gateways;
mod host_agent;
mod lab;
mod lab_cell;
mod mesh_lab;
mod missing;
mod olsr;
mod ordinary_station;
mod pbe_kernel;
mod pbe_tunnel;
mod relay;
mod side_by_side;
mod stopping;
mod streams;
#[path = "../../../crates/agents/tests/support"]
#[allow(dead_code, reason = "part of what the agents' own tests use")]
#[allow(clippy::disallowed_methods, reason = "real time is what is tested")]
mod support {
    pub mod air;
    pub mod cgroup;
    pub mod delay;
    pub mod driver;
    pub use lasthop_tests::machine;
    pub mod monitor;
    pub mod netns;
    pub mod pump;
    pub mod tcp;
    pub mod upload;
}
