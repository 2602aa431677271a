//! A log of JSON lines. A write that fails ends the log, not the agent.

use super::Error;
use serde_json::Value;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// An open log.
pub struct Log {
    path: PathBuf,
    out: BufWriter<File>,
    failed: Option<io::Error>,
}

impl Log {
    /// A new file, or an old one made empty.
    ///
    /// # Errors
    /// [`Error::Log`].
    pub fn create(path: &Path) -> Result<Log, Error> {
        let file = File::create(path).map_err(|source| Error::Log { path: path.to_owned(), source })?;
        Ok(Log { path: path.to_owned(), out: BufWriter::new(file), failed: None })
    }

    /// Writes one line, and out: lines are few, and somebody may be waiting for them.
    pub fn line(&mut self, value: &Value) {
        if self.failed.is_some() {
            return;
        }
        let written = serde_json::to_writer(&mut self.out, value).map_err(io::Error::from);
        let written = written.and_then(|()| self.out.write_all(b"\n")).and_then(|()| self.out.flush());
        self.failed = written.err();
    }

    /// The first error that there was, with the log's path.
    pub fn finish(mut self) -> Option<Error> {
        let source = self.failed.take()?;
        Some(Error::Log { path: self.path, source })
    }
}
