//! What the kernel tells of eBPF programs.

use super::error::{Error, system};
use lasthop_units::Span;
use libbpf_rs::libbpf_sys;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Makes the kernel count runs and run time of eBPF programs for as long as the descriptor is open.
///
/// # Errors
/// [`Error::System`].
pub fn enable_statistics() -> Result<OwnedFd, Error> {
    // SAFETY: takes a number, gives a descriptor or an error.
    let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    if fd < 0 {
        return Err(system("eBPF statistics")(io::Error::from_raw_os_error(-fd)));
    }
    // SAFETY: a fresh descriptor, owned by nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Runs and run time of a program since it was loaded, counted while statistics are on.
///
/// # Errors
/// [`Error::Map`].
pub fn run_time(program: &impl AsFd) -> Result<(u64, Span), Error> {
    let info = program_info(program.as_fd()).map_err(|error| Error::Map { source: error.into() })?;
    Ok((info.run_cnt, Span::from_nanos(info.run_time_ns)))
}

/// All that the kernel tells of a program.
pub(super) fn program_info(fd: BorrowedFd<'_>) -> io::Result<libbpf_sys::bpf_prog_info> {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut len = size_of::<libbpf_sys::bpf_prog_info>() as u32;
    // SAFETY: `info` has room for `len` octets.
    let failed = unsafe { libbpf_sys::bpf_prog_get_info_by_fd(fd.as_raw_fd(), &mut info, &mut len) };
    if failed == 0 { Ok(info) } else { Err(io::Error::from_raw_os_error(-failed)) }
}
