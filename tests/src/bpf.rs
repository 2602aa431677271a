//! eBPF programs that a process holds, and whether the kernel still has them.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::{FromRawFd, OwnedFd};

/// Identifiers of the programs that process `pid` holds, by itself or through links that attach them.
pub fn programs_of(pid: u32) -> BTreeSet<u32> {
    let files = fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten().flatten();
    let texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
    let number = |line: &str| line.strip_prefix("prog_id:")?.trim().parse().ok();
    texts.flat_map(|text| text.lines().filter_map(number).collect::<Vec<u32>>()).collect()
}

/// True if the kernel has program `id`: something holds it, or it is attached.
pub fn is_loaded(id: u32) -> bool {
    const BPF_PROG_GET_FD_BY_ID: libc::c_int = 13;
    // `union bpf_attr`: the identifier stands first, and what is not given is zero.
    let attributes = [id, 0, 0, 0];
    // SAFETY: the kernel reads the attributes, as many bytes as it is told.
    let fd =
        unsafe { libc::syscall(libc::SYS_bpf, BPF_PROG_GET_FD_BY_ID, attributes.as_ptr(), size_of_val(&attributes)) };
    if fd < 0 {
        return false;
    }
    // SAFETY: a fresh descriptor, owned by nobody else; closed at once.
    drop(unsafe { OwnedFd::from_raw_fd(fd as i32) });
    true
}
