//! How the kernel schedules our threads and children.

use nix::sys::signal::Signal;
use std::io;

/// Asks for real-time scheduling (SCHED_FIFO) of the calling thread; false if that is not allowed.
///
/// The thread must block regularly: one that spins is throttled for 50 ms in every second and starves the kernel's
/// own threads on its processor.
pub fn become_realtime(priority: i32) -> bool {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: 0 names the calling thread, and the parameters outlive the call.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) == 0 }
}

/// Makes the calling thread's sleeps end on time: by default the kernel may let them end 50 µs late.
pub fn sharpen_timers() {
    // Refusal costs accuracy, which the run's lateness shows.
    let _ = nix::sys::prctl::set_timerslack(1);
}

/// For `Command::pre_exec`: the child dies when the thread that started it ends, even if that is killed.
pub(crate) fn die_with_parent(parent: nix::unistd::Pid) -> io::Result<()> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    // The parent may have died before the request.
    if nix::unistd::getppid() == parent { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
}
