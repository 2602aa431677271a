//! How an agent is told to stop: by SIGINT, SIGTERM, or whoever holds its [`Stop`].

use super::error::{Error, system};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::sync::atomic::{AtomicU32, Ordering};

static STOP: Stop = Stop::new();

/// Asks an agent to stop. Asked once, it opens windows in steps before it detaches; asked twice, it detaches at once.
#[derive(Debug, Default)]
pub struct Stop(AtomicU32);

impl Stop {
    /// Nobody has asked yet.
    pub const fn new() -> Stop {
        Stop(AtomicU32::new(0))
    }

    /// Asks, or asks again.
    pub fn ask(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// True if the agent is to stop.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// True if it is not to take its time.
    pub fn is_urgent(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 1
    }
}

/// Makes SIGINT and SIGTERM ask the agent that is given this, instead of killing the process.
///
/// # Errors
/// [`Error::System`].
pub fn stop_on_signals() -> Result<&'static Stop, Error> {
    extern "C" fn ask(_: libc::c_int) {
        STOP.ask();
    }
    // Without SA_RESTART: waiting ends at once.
    let action = SigAction::new(SigHandler::Handler(ask), SaFlags::empty(), SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        // SAFETY: the handler only adds to an atomic, which is safe in a signal handler.
        unsafe { sigaction(signal, &action) }.map_err(system("signal handler"))?;
    }
    Ok(&STOP)
}
