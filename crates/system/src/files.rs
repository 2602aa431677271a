//! How many files a process may have open.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises the limit to what the administrator allows: the usual one of 1024 is for programs that use `select`, and a connection
/// takes one file or more. Returns the limit, if the kernel says.
pub fn raise_limit() -> Option<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    match setrlimit(Resource::RLIMIT_NOFILE, hard, hard) {
        Ok(()) => Some(hard),
        Err(_) => Some(soft),
    }
}
