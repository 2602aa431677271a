//! Giving up what is not needed any more.

use super::error::Error;
use nix::unistd::{Gid, Uid, User, getresgid, getresuid, setgroups, setresgid, setresuid};
use std::io;
use std::path::Path;

/// May change network configuration: attach filters.
pub(crate) const NET_ADMIN: u32 = 12;
/// May do everything that has no capability of its own; what eBPF needed before Linux 5.8.
pub(crate) const SYS_ADMIN: u32 = 21;
/// Permits eBPF programs with loops that the verifier refuses without it, for fear of speculation (Linux 5.8).
pub(crate) const PERFMON: u32 = 38;
/// May use eBPF (Linux 5.8).
pub(crate) const BPF: u32 = 39;

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
pub(crate) fn has(capability: u32) -> bool {
    get().is_ok_and(|words| words[capability as usize / 32].effective >> (capability % 32) & 1 == 1)
}

/// True if the calling thread may load any eBPF program.
#[cfg(feature = "bpf")]
pub(crate) fn may_load() -> bool {
    has(SYS_ADMIN) || has(BPF) && has(PERFMON)
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

/// Makes the process another user's, if one is named, and leaves the calling thread with at most `keep`, which that user does not lack then.
///
/// # Errors
/// [`Error::Become`], [`Error::Privileges`].
pub(crate) fn become_with(account: Option<&Account>, keep: &[u32]) -> Result<(), Error> {
    // Else the change of user would take what is permitted.
    nix::sys::prctl::set_keepcaps(true).map_err(|error| Error::Privileges(error.into()))?;
    account.map_or(Ok(()), Account::assume)?;
    drop_all_but(keep)
}

/// Makes the process that of `user`, if there is one, and leaves the calling thread without any privilege, for good.
///
/// # Errors
/// [`Error::Become`], [`Error::Privileges`].
pub(crate) fn drop_all(user: Option<&Account>) -> Result<(), Error> {
    user.map_or(Ok(()), Account::assume)?;
    drop_all_but(&[])
}

/// The user that the process is to become, found while nothing has been opened yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    name: String,
    uid: Uid,
    gid: Gid,
}

impl Account {
    /// The user of a name or number.
    ///
    /// # Errors
    /// [`Error::NoUser`].
    pub(crate) fn find(name: &str) -> Result<Account, Error> {
        let by_name = User::from_name(name).ok().flatten();
        let by_number = || User::from_uid(Uid::from_raw(name.parse().ok()?)).ok().flatten();
        let user = by_name.or_else(by_number).ok_or_else(|| Error::NoUser { name: name.to_owned() })?;
        Ok(Account { name: name.to_owned(), uid: user.uid, gid: user.gid })
    }

    /// Makes a file this user's.
    ///
    /// # Errors
    /// What the kernel refuses: only root may give files away.
    pub(crate) fn own(&self, path: &Path) -> io::Result<()> {
        std::os::unix::fs::chown(path, Some(self.uid.as_raw()), Some(self.gid.as_raw()))
    }

    /// Makes the process, with all its threads, this user's, for good, and a member of that user's own group alone. Files that are
    /// open stay so.
    ///
    /// # Errors
    /// [`Error::Become`].
    pub(crate) fn assume(&self) -> Result<(), Error> {
        let failed = |errno: nix::Error| Error::Become { name: self.name.clone(), source: errno.into() };
        let (user, group) = (getresuid().map_err(failed)?, getresgid().map_err(failed)?);
        let is = |of: [u32; 3], wanted: u32| of.iter().all(|id| *id == wanted);
        let already = is([user.real, user.effective, user.saved].map(Uid::as_raw), self.uid.as_raw())
            && is([group.real, group.effective, group.saved].map(Gid::as_raw), self.gid.as_raw());
        if already {
            return Ok(());
        }
        // After the change of user the process may not do the other two any more.
        setgroups(&[self.gid]).map_err(failed)?;
        setresgid(self.gid, self.gid, self.gid).map_err(failed)?;
        setresuid(self.uid, self.uid, self.uid).map_err(failed)
    }
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
    fn users_are_found_by_name_and_by_number_and_nobody_is_made_up() {
        let root = Account::find("root").expect("there is always root");
        assert_eq!((root.uid, root.gid), (Uid::from_raw(0), Gid::from_raw(0)));
        assert_eq!(Account::find("0").expect("the same").uid, root.uid);
        for wrong in ["", "no such user", "-1", "4294967294"] {
            let error = Account::find(wrong).expect_err(wrong).to_string();
            assert!(error.contains("no user"), "{error}");
        }
    }

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
