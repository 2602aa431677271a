//! What cases share: how long they may take, the emulated hop, and being stopped.

use crate::lie::Attended;
use crate::radio::Radio;
use lasthop_lab::Stop;
use std::panic::resume_unwind;
use std::time::{Duration, Instant};

/// The long form or the short one, and what has been built for more than one case.
pub struct Scene {
    whole: bool,
    stop: Stop,
    began: Instant,
    radio: Option<Radio>,
    attended: Option<Attended>,
}

/// What unwinds a case when somebody wants the whole to stop: everything that it has made goes with it.
pub struct Stopped;

/// How soon what is waited for is seen.
const STEP: Duration = Duration::from_millis(2);
/// How long anything may take that does take place, however busy the machine.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// The longest that all cases together may take.
const LONGEST: Duration = Duration::from_secs(600);

impl Scene {
    pub fn new(whole: bool) -> Scene {
        Scene { whole, stop: Stop::default(), began: Instant::now(), radio: None, attended: None }
    }

    /// True in the long form, in which the clock is believed.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// What the long and the short form have each.
    pub fn pick<T>(&self, whole: T, short: T) -> T {
        if self.whole { whole } else { short }
    }

    /// A span of milliseconds in the long and the short form.
    pub fn ms(&self, whole: u64, short: u64) -> Duration {
        Duration::from_millis(self.pick(whole, short))
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.is_raised()
    }

    /// Lets time pass.
    pub fn rest(&self, span: Duration) {
        self.until(span, || false);
    }

    /// Waits until `holds`, for at most `patience`; how long it took.
    pub fn until(&self, patience: Duration, mut holds: impl FnMut() -> bool) -> Option<Duration> {
        let began = Instant::now();
        loop {
            if self.is_stopped() {
                resume_unwind(Box::new(Stopped));
            }
            assert!(self.began.elapsed() < LONGEST, "all cases together take longer than {LONGEST:?}");
            if holds() {
                return Some(began.elapsed());
            }
            if began.elapsed() >= patience {
                return None;
            }
            std::thread::sleep(STEP);
        }
    }

    /// Waits until `holds`, which it does in the end.
    pub fn await_that(&self, what: &str, holds: impl FnMut() -> bool) -> Duration {
        self.until(PATIENCE, holds).unwrap_or_else(|| panic!("after {PATIENCE:?} still not: {what}"))
    }

    /// The emulated hop, with nobody on it.
    pub fn radio(&mut self) -> Radio {
        let kept = self.attended.take().map(Attended::end).or(self.radio.take());
        kept.unwrap_or_else(|| Radio::start(self))
    }

    /// Keeps the hop for the next case.
    pub fn keep(&mut self, radio: Radio) {
        self.radio = Some(radio);
    }

    /// A download over the hop with an agent at work, the same for case after case.
    pub fn attended(&mut self) -> Attended {
        match self.attended.take() {
            Some(attended) => attended,
            None => Attended::start(self),
        }
    }

    /// Keeps the download for the next case.
    pub fn keep_attended(&mut self, attended: Attended) {
        self.attended = Some(attended);
    }

    /// Ends what has been kept: after a failure nobody knows in what state it is.
    pub fn take_down(&mut self) {
        self.attended = None;
        self.radio = None;
    }
}
