//! End-to-end tests that take minutes (`make test-long`).

mod learn;
mod recorded_links;
mod regulated;
mod streams_long;
mod streets;
mod ten_terminals;
mod worlds;
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
