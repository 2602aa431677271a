//! What libbpf says when something fails: part of our own error, and not on standard error before it.

use super::error::Error;
use super::privileges;
use libbpf_rs::{ErrorKind, PrintLevel};
use std::sync::{Mutex, PoisonError};

/// What libbpf would have written to standard error, kept for an error message instead.
///
/// libbpf's printer is one for the process: text of two threads that load at once may mix. Nothing is printed after this has gone,
/// either.
pub(crate) struct Captured(());

static SAID: Mutex<String> = Mutex::new(String::new());

impl Captured {
    pub(crate) fn begin() -> Captured {
        fn keep(_: PrintLevel, text: String) {
            let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
            // A verifier's log may have megabytes; its end says what is wrong.
            if said.len() + text.len() > 65_536 {
                said.clear();
            }
            said.push_str(&text);
        }
        SAID.lock().unwrap_or_else(PoisonError::into_inner).clear();
        libbpf_rs::set_print(Some((PrintLevel::Warn, keep)));
        Captured(())
    }

    /// The end of what was said: a verifier's log says last what it stumbled over.
    pub(crate) fn text(&self) -> String {
        const LINES: usize = 40;
        let said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<&str> = said.trim().lines().collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }

    /// Why programs could not be loaded: for want of a right, or with all that was said.
    pub(crate) fn refusal(&self, error: libbpf_rs::Error) -> Error {
        // The verifier refuses with EACCES too: only the capabilities tell.
        match privileges::may_load() {
            true => Error::Load { source: error.into(), said: self.text() },
            false => Error::Permission { what: "eBPF" },
        }
    }

    /// Why programs could not be loaded: the kernel's reason, and what to do about it or what was said.
    pub(crate) fn explain(&self, error: &libbpf_rs::Error) -> String {
        explain(error, &self.text())
    }
}

fn explain(error: &libbpf_rs::Error, said: &str) -> String {
    // The verifier refuses with EACCES too, but gives a log. Where a right is missing libbpf guesses, and guesses wrong.
    if error.kind() == ErrorKind::PermissionDenied && !said.contains("PROG LOAD LOG") {
        return format!("{error:#}; CAP_BPF and CAP_NET_ADMIN are needed: start as root, with `--user NAME`");
    }
    format!("{error:#}\n{said}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use libbpf_rs::ObjectBuilder;

    #[test]
    fn what_libbpf_says_is_kept() {
        let said = Captured::begin();
        let error = ObjectBuilder::default().open_memory(b"no program").expect_err("no ELF file");
        assert!(said.text().starts_with("libbpf: "), "{}", said.text());
        let told = said.explain(&error);
        assert!(told.starts_with(&format!("{error:#}\nlibbpf: ")), "{told}");
    }

    #[test]
    fn a_missing_permission_differs_from_a_verifier_refusal() {
        let [eperm, eacces] = [libc::EPERM, libc::EACCES].map(libbpf_rs::Error::from_raw_os_error);
        let told = explain(&eperm, "libbpf: Couldn't load trivial BPF program.");
        assert!(told.starts_with("Operation not permitted") && told.ends_with("with `--user NAME`"), "{told}");
        let log = "libbpf: prog 'x': -- BEGIN PROG LOAD LOG --\nR1 invalid mem access\n-- END PROG LOAD LOG --";
        assert_eq!(explain(&eacces, log), format!("{eacces:#}\n{log}"));
    }
}
