//! What the wall-clock rooms, the lab and the agents, ask of Linux in the same way: to wait for files or for a moment to the
//! nanosecond, and to run on time. Nothing here knows packets or laws.

pub mod files;
pub mod poll;
pub mod punctual;
pub mod sched;
pub mod wakeful;
