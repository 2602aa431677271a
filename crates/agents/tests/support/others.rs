//! What else the machine did during a test: figures in wall-clock time are the test's own only where that is little.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::time::{Duration, Instant};

/// The part of all processors' time that others may take from a test that judges figures: with 0.13, a download was
/// once 5 % slower.
const MOST: f64 = 0.1;

/// A look at the machine, to be compared with a later one.
pub struct Others {
    at: Instant,
    own: Duration,
    all: Duration,
}

impl Others {
    pub fn look() -> Others {
        Others { at: Instant::now(), own: own(), all: busy() }
    }

    /// True if others, the host among them, took so little since that figures in wall-clock time are the test's own. Otherwise says that
    /// `what` is not judged.
    pub fn were_quiet(&self, what: &str) -> bool {
        let processors = std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64);
        let lasted = self.at.elapsed().as_secs_f64() * processors;
        let took = (busy() - self.all).saturating_sub(own() - self.own).as_secs_f64() / lasted;
        println!("others took {took:.2} of the processors");
        if took > MOST {
            use std::io::Write as _;
            let _ = writeln!(std::io::stderr(), "SKIPPED: {what}: others took {took:.2} of the processors");
        }
        took <= MOST
    }
}

/// Processor time of this process, and of the children that it has waited for.
fn own() -> Duration {
    let of = |who| {
        let usage = getrusage(who).expect("it is always there");
        Duration::from_micros((usage.user_time() + usage.system_time()).num_microseconds() as u64)
    };
    of(UsageWho::RUSAGE_SELF) + of(UsageWho::RUSAGE_CHILDREN)
}

/// Time in which processors were not idle, stolen time included (`/proc/stat`, proc(5): ticks of 10 ms).
fn busy() -> Duration {
    let text = std::fs::read_to_string("/proc/stat").expect("Linux");
    let ticks: Vec<u64> = text
        .lines()
        .next()
        .into_iter()
        .flat_map(|line| line.split_whitespace().skip(1))
        .filter_map(|field| field.parse().ok())
        .collect();
    // user, nice, system, idle, iowait, irq, softirq, steal
    let busy = [0, 1, 2, 5, 6, 7].iter().filter_map(|place| ticks.get(*place)).sum::<u64>();
    Duration::from_millis(busy * 10)
}
