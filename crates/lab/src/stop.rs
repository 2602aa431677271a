//! Being asked to stop.

use crate::error::{Doing, Result};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that many threads watch. Copies share it.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    raised: Arc<AtomicBool>,
}

static SIGNALLED: AtomicBool = AtomicBool::new(false);

impl Stop {
    /// Asks everybody who holds a copy to stop.
    pub fn raise(&self) {
        self.raised.store(true, Ordering::Relaxed);
    }

    /// True once somebody asked, or the process was told to end.
    pub fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed) || SIGNALLED.load(Ordering::Relaxed)
    }

    /// From now on Ctrl-C, a hang-up and a polite `kill` raise every `Stop` of this process instead of ending it, so
    /// that a run can take down what it has put up. The second such signal ends the process as usual; what it leaves
    /// behind is removed at the next start. A hang-up that was ignored before, as under `nohup`, stays so.
    pub fn on_signals() -> Result<()> {
        let action = SigAction::new(SigHandler::Handler(note), SaFlags::SA_RESETHAND, SigSet::empty());
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            // SAFETY: the handler only stores to an atomic, which is async-signal-safe.
            let before = unsafe { sigaction(signal, &action) }.doing(|| format!("handling {signal}"))?;
            if signal == Signal::SIGHUP && matches!(before.handler(), SigHandler::SigIgn) {
                // SAFETY: no handler at all.
                unsafe { sigaction(signal, &before) }.doing(|| format!("ignoring {signal}"))?;
            }
        }
        Ok(())
    }
}

extern "C" fn note(_signal: libc::c_int) {
    SIGNALLED.store(true, Ordering::Relaxed);
}
