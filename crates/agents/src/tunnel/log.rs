//! A log of JSON lines. A write that fails ends the log, not the agent, which says so.

use super::Error;
use crate::service::Say;
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// An open log.
pub struct Log {
    path: PathBuf,
    out: BufWriter<File>,
    say: Say,
    failed: Option<Error>,
}

impl Log {
    /// A new file, or an old one made empty. `say` is told when it cannot be written any more.
    ///
    /// # Errors
    /// [`Error::Log`].
    pub fn create(path: &Path, say: Say) -> Result<Log, Error> {
        let file = File::create(path).map_err(|source| Error::Log { path: path.to_owned(), source })?;
        Ok(Log { path: path.to_owned(), out: BufWriter::new(file), say, failed: None })
    }

    /// Writes one line, and out: lines are few, and somebody may be waiting for them.
    pub fn line(&mut self, value: &impl Serialize) {
        if self.failed.is_some() {
            return;
        }
        let written = serde_json::to_writer(&mut self.out, value).map_err(io::Error::from);
        let written = written.and_then(|()| self.out.write_all(b"\n")).and_then(|()| self.out.flush());
        if let Err(source) = written {
            let error = Error::Log { path: self.path.clone(), source };
            (self.say)(&format!("{error}; nothing more is written to it"));
            self.failed = Some(error);
        }
    }

    /// The first error that there was, with the log's path.
    pub fn finish(self) -> Option<Error> {
        self.failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    static SAID: AtomicU32 = AtomicU32::new(0);

    #[test]
    fn a_full_disk_is_told_at_once_and_once_and_again_at_the_end() {
        let say: Say = |line| {
            assert!(line.contains("log /dev/full: ") && line.contains("make room"), "{line}");
            SAID.fetch_add(1, Ordering::Relaxed);
        };
        let mut log = Log::create(Path::new("/dev/full"), say).expect("every Linux has it");
        assert_eq!(SAID.load(Ordering::Relaxed), 0);
        for n in 0..3 {
            log.line(&serde_json::json!({ "slot": n }));
            assert_eq!(SAID.load(Ordering::Relaxed), 1);
        }
        assert!(matches!(log.finish(), Some(Error::Log { .. })));
    }
}
