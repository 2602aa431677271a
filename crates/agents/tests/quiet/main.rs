//! Figures of throughput and queues in wall-clock time, which nobody judges while others take the processors: nothing runs beside this program.

mod backlog;
mod backlog_anew;
mod backlog_transparent;
#[path = "../support/mod.rs"]
mod support;
mod wired_bottleneck;
