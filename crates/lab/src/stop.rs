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
    /// Asks all holders of a copy to stop.
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

    /// As [`Stop::on_signals`], for a process that runs a program of the user's own at the same
    /// terminal ([`exec`](crate::exec())). While the program runs, a Ctrl-C that the terminal
    /// sends is the program's affair: a shell or an editor goes on after it. One that another
    /// process sends raises every `Stop` as before.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn on_signals_beside_a_program() -> Result<()> {
        Stop::on_signals()?;
        let action = SigAction::new(SigHandler::SigAction(note_unless_shared), SaFlags::empty(), SigSet::empty());
        // SAFETY: the handler only loads and stores atomics and restores a default action, which
        // is async-signal-safe.
        unsafe { sigaction(Signal::SIGINT, &action) }.doing(|| "handling SIGINT".into())?;
        Ok(())
    }
}

/// A program has the terminal, too, as long as the value lives: what the user's keys send (Ctrl-C,
/// Ctrl-\) does not end this process.
#[derive(Debug)]
pub(crate) struct SharedTerminal {
    /// What Ctrl-\ did before.
    quit: Option<SigAction>,
}

/// True while a [`SharedTerminal`] lives.
static SHARED: AtomicBool = AtomicBool::new(false);

impl SharedTerminal {
    pub(crate) fn begin() -> SharedTerminal {
        SHARED.store(true, Ordering::Relaxed);
        // A handler, since a program would inherit that a signal is ignored.
        let action = SigAction::new(SigHandler::Handler(nothing), SaFlags::SA_RESTART, SigSet::empty());
        // SAFETY: the handler does nothing.
        SharedTerminal { quit: unsafe { sigaction(Signal::SIGQUIT, &action) }.ok() }
    }
}

impl Drop for SharedTerminal {
    fn drop(&mut self) {
        SHARED.store(false, Ordering::Relaxed);
        if let Some(before) = &self.quit {
            // SAFETY: it was in force before.
            let _ = unsafe { sigaction(Signal::SIGQUIT, before) };
        }
    }
}

extern "C" fn nothing(_signal: libc::c_int) {}

extern "C" fn note_unless_shared(signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // The terminal driver sends with the kernel's own code, `kill` with the user's (sigaction(2)).
    // SAFETY: a handler that was installed with SA_SIGINFO gets a valid description of its signal.
    let of_terminal = unsafe { (*info).si_code } == libc::SI_KERNEL;
    if of_terminal && SHARED.load(Ordering::Relaxed) {
        return;
    }
    note(signal);
    // The second one ends the process.
    // SAFETY: signal(2) is async-signal-safe.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

extern "C" fn note(_signal: libc::c_int) {
    SIGNALLED.store(true, Ordering::Relaxed);
}
