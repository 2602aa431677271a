//! What the crate promises, tried from outside: one program for all of it.

mod bottleneck;
mod cell_pace;
mod clock;
mod copa;
mod credit;
mod endpoint;
#[path = "../harness/mod.rs"]
mod harness;
mod hostile;
mod lost;
mod newreno;
mod path_pace;
mod pbe;
mod props;
mod small_queue;
mod tahoe;
mod tunnel;
mod unsent;
mod vegas;
mod vivace;
