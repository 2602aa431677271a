//! Giving up what is not needed any more.

use super::Error;
use std::io;

/// May change network configuration: attach filters.
pub(super) const NET_ADMIN: u32 = 12;
/// May do everything that has no capability of its own; what eBPF needed before Linux 5.8.
pub(super) const SYS_ADMIN: u32 = 21;
/// May use eBPF (Linux 5.8).
pub(super) const BPF: u32 = 39;

/// `_LINUX_CAPABILITY_VERSION_3`: two words a set.
const VERSION_3: u32 = 0x2008_0522;

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Word {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// True if the calling thread has a capability in its effective set.
pub(super) fn has(capability: u32) -> bool {
    get().is_ok_and(|words| words[capability as usize / 32].effective >> (capability % 32) & 1 == 1)
}

/// Leaves the calling thread with at most `keep`, for good: no program that it starts can regain anything either.
/// Its user stays the same, so that files of that user stay writable.
///
/// # Errors
/// [`Error::Privileges`].
pub(crate) fn drop_all_but(keep: &[u32]) -> Result<(), Error> {
    let mut words = get().map_err(Error::Privileges)?;
    let mut wanted = [0u32; 2];
    keep.iter().for_each(|capability| wanted[*capability as usize / 32] |= 1 << (capability % 32));
    for (word, wanted) in words.iter_mut().zip(wanted) {
        let left = word.permitted & wanted;
        *word = Word { effective: left, permitted: left, inheritable: 0 };
    }
    let header = Header { version: VERSION_3, pid: 0 };
    // SAFETY: the header names a version with two words a set, and two are there; pid 0 is the calling thread.
    let failed = unsafe { libc::syscall(libc::SYS_capset, &header, words.as_ptr()) };
    if failed != 0 {
        return Err(Error::Privileges(io::Error::last_os_error()));
    }
    nix::sys::prctl::set_no_new_privs().map_err(|error| Error::Privileges(error.into()))
}

fn get() -> io::Result<[Word; 2]> {
    let header = Header { version: VERSION_3, pid: 0 };
    let mut words = [Word::default(); 2];
    // SAFETY: as for capset; the kernel fills both words.
    let failed = unsafe { libc::syscall(libc::SYS_capget, &header, words.as_mut_ptr()) };
    if failed == 0 { Ok(words) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_is_gone_and_only_in_this_thread() {
        let before = has(NET_ADMIN);
        let inside = std::thread::spawn(|| {
            drop_all_but(&[BPF]).expect("dropping is always allowed");
            (has(NET_ADMIN), has(SYS_ADMIN))
        });
        assert_eq!(inside.join().expect("no panic"), (false, false));
        assert_eq!(has(NET_ADMIN), before);
    }
}
