//! A stop flag that SIGINT and SIGTERM set.

use super::Error;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);

/// Makes SIGINT and SIGTERM set the flag that is given back, instead of killing the process: what is attached is then
/// detached in an orderly way.
///
/// # Errors
/// [`Error::System`].
pub fn stop_on_signals() -> Result<&'static AtomicBool, Error> {
    extern "C" fn set(_: libc::c_int) {
        STOP.store(true, Ordering::Relaxed);
    }
    // Without SA_RESTART: waiting ends at once.
    let action = SigAction::new(SigHandler::Handler(set), SaFlags::empty(), SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        // SAFETY: the handler only stores to an atomic, which is safe in a signal handler.
        unsafe { sigaction(signal, &action) }
            .map_err(|error| Error::System { what: "signal handler", source: error.into() })?;
    }
    Ok(&STOP)
}
