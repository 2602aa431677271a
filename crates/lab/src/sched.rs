//! How the kernel schedules our threads and children.

pub use lasthop_system::sched::{become_realtime, sharpen_timers};

use nix::sys::signal::Signal;
use std::io;

/// For `Command::pre_exec`: the child dies when the thread that started it ends, even if that is killed.
pub(crate) fn die_with_parent(parent: nix::unistd::Pid) -> io::Result<()> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    // The parent may have died before the request.
    if nix::unistd::getppid() == parent { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
}
