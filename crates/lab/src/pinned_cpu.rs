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
pub(crate) struct CpuClaim {
    pinned_cpu: PinnedCpu,
    /// The claim: a name that the kernel frees when the socket closes, however the process ends.
    _claim: Option<UnixDatagram>,
}

/// The processor of an emulator, for the threads that belong beside it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PinnedCpu {
    processor: Option<usize>,
}

/// Of threads that measure: below the emulator's, above everything at normal priority.
const BESIDE: i32 = 20;

impl CpuClaim {
    /// Claims the last processor that this process may use and that no other emulator has: interrupts tend to go to
    /// the first. Without a free one the kernel decides where the emulator runs.
    pub(crate) fn claim() -> CpuClaim {
        let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
        let processors = (0..CpuSet::count()).rev().filter(|cpu| allowed.is_set(*cpu) == Ok(true));
        let claimed = processors.filter_map(|cpu| Some((cpu, name(cpu)?))).next();
        match claimed {
            Some((cpu, claim)) => CpuClaim { pinned_cpu: PinnedCpu { processor: Some(cpu) }, _claim: Some(claim) },
            None => CpuClaim { pinned_cpu: PinnedCpu::default(), _claim: None },
        }
    }

    pub(crate) fn pinned_cpu(&self) -> PinnedCpu {
        self.pinned_cpu
    }
}

impl PinnedCpu {
    /// Binds the calling thread, which must have real-time priority: at normal priority it is better off where there is
    /// room.
    pub(crate) fn pin(self) {
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
            self.pin();
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
    fn emulators_never_share_a_cpu_and_a_released_one_is_reused() {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let claims: Vec<CpuClaim> = (0..processors + 2).map(|_| CpuClaim::claim()).collect();
        let mut taken: Vec<usize> = claims.iter().filter_map(|claim| claim.pinned_cpu().processor()).collect();
        let count = taken.len();
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len(), count, "one was given twice");
        // Emulators of other programs may have some of them.
        assert!(count <= processors);
        assert!(claims.iter().skip(processors).all(|claim| claim.pinned_cpu() == PinnedCpu::default()));
        let Some(pinned_cpu) =
            claims.iter().map(CpuClaim::pinned_cpu).find(|pinned_cpu| pinned_cpu.processor().is_some())
        else {
            return;
        };
        drop(claims);
        let again: Vec<CpuClaim> = (0..processors).map(|_| CpuClaim::claim()).collect();
        assert!(again.iter().any(|claim| claim.pinned_cpu() == pinned_cpu), "{pinned_cpu:?} is not free again");
    }
}
