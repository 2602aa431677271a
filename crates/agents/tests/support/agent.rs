//! What tests of whole agents share: their end, and what they cost.

use lasthop_agents::service::Stop;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::time::Duration;

/// Asks the agent to stop when dropped, so that a test that fails ends too.
pub struct AskAtEnd(pub &'static Stop);

impl Drop for AskAtEnd {
    fn drop(&mut self) {
        self.0.ask();
    }
}

/// Processor time of this thread.
#[allow(dead_code, reason = "not every user of this module asks")]
pub fn busy() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("an account");
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Duration::from_micros(micros.try_into().expect("not negative"))
}
