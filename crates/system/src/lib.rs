//! What the wall-clock rooms, the lab and the agents, ask of Linux in the same way: to wait for files or for a moment to the
//! nanosecond, to run on time, and to answer over netlink. Nothing here knows packets or laws.

pub mod cpu_latency_guard;
pub mod files;
pub mod netlink;
pub mod poll;
pub mod sched;
pub mod spin_sleeper;
