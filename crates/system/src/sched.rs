//! How the kernel schedules a thread.

/// Asks for real-time scheduling (SCHED_FIFO) of the calling thread; threads and processes that it starts have none. False if
/// that is not allowed.
///
/// The thread must block regularly: one that spins is throttled for 50 ms in every second and starves the kernel's
/// own threads on its processor.
pub fn become_realtime(priority: i32) -> bool {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: 0 names the calling thread, and the parameters outlive the call.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &parameters) == 0 }
}

/// Makes the calling thread's sleeps end on time: by default the kernel may let them end 50 µs late.
pub fn sharpen_timers() {
    // Refusal costs accuracy, which the lateness shows that each of our programs records.
    let _ = nix::sys::prctl::set_timerslack(1);
}
