//! Where the emulator runs, and beside it what measures.
//!
//! Waking a thread on another processor costs an interrupt from one to the other: a few microseconds on bare metal and
//! tens on a virtual machine, unless that processor idles and watches for work. A packet that crosses a hop wakes the emulator, and the
//! emulator wakes its receiver. So the emulator has a processor of its own choice, and the threads that measure what the
//! hops do to single packets (they need next to no time) sit on the same one, at a lower real-time priority: there the
//! next thread starts as soon as the one before it sleeps. Everything else, bulk senders and receivers above all, goes where the
//! kernel puts it.
//!
//! Checked by: `lab.relay.added_rtt_us_*` of `make bench`; docs/decisions tells what it is worth.

use crate::sched;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// A processor that this emulator has claimed; others that run at the same time take others.
#[derive(Debug)]
pub(crate) struct Home {
    seat: Seat,
    /// The claim: a name that the kernel frees when the socket closes, however the process ends.
    _claim: Option<UnixDatagram>,
}

/// The processor of an emulator, for the threads that belong beside it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Seat {
    processor: Option<usize>,
}

/// Of threads that measure: below the emulator's, above everything at normal priority.
const BESIDE: i32 = 20;

impl Home {
    /// Claims the last processor that this process may use and that no other emulator has: interrupts tend to go to
    /// the first. Without a free one the kernel decides where the emulator runs.
    pub(crate) fn claim() -> Home {
        let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
        let processors = (0..CpuSet::count()).rev().filter(|cpu| allowed.is_set(*cpu) == Ok(true));
        let claimed = processors.filter_map(|cpu| Some((cpu, name(cpu)?))).next();
        match claimed {
            Some((cpu, claim)) => Home { seat: Seat { processor: Some(cpu) }, _claim: Some(claim) },
            None => Home { seat: Seat::default(), _claim: None },
        }
    }

    pub(crate) fn seat(&self) -> Seat {
        self.seat
    }
}

impl Seat {
    /// Binds the calling thread, which must have real-time priority: at normal priority it is better off where there is
    /// room.
    pub(crate) fn take(self) {
        let Some(processor) = self.processor else { return };
        let mut only = CpuSet::new();
        // Fails if the processor went away meanwhile: then any other will do.
        let _ = only.set(processor).and_then(|()| sched_setaffinity(Pid::from_raw(0), &only));
    }

    /// Makes the calling thread one that measures: punctual, of real-time priority below the emulator's, and beside it. It
    /// must need little time and block often. Where real-time scheduling is not allowed it stays an ordinary thread.
    pub fn measure_beside(self) {
        sched::sharpen_timers();
        if sched::become_realtime(BESIDE) {
            self.take();
        }
    }

    /// The processor's number; `None` if the kernel decides.
    pub fn processor(self) -> Option<usize> {
        self.processor
    }
}

/// The name that stands for processor `cpu`; `None` if somebody has it.
fn name(cpu: usize) -> Option<UnixDatagram> {
    let address = SocketAddr::from_abstract_name(format!("lasthop-emulator-on-{cpu}")).ok()?;
    UnixDatagram::bind_addr(&address).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_emulators_have_the_same_processor_and_a_left_one_is_free_again() {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let homes: Vec<Home> = (0..processors + 2).map(|_| Home::claim()).collect();
        let mut taken: Vec<usize> = homes.iter().filter_map(|home| home.seat().processor()).collect();
        let count = taken.len();
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len(), count, "one was given twice");
        // Emulators of other programs may have some of them.
        assert!(count <= processors);
        assert!(homes.iter().skip(processors).all(|home| home.seat() == Seat::default()));
        let Some(seat) = homes.iter().map(Home::seat).find(|seat| seat.processor().is_some()) else { return };
        drop(homes);
        let again: Vec<Home> = (0..processors).map(|_| Home::claim()).collect();
        assert!(again.iter().any(|home| home.seat() == seat), "{seat:?} is not free again");
    }
}
