//! A log of JSON lines. A write that fails ends the log, not the agent, which says so.

use super::error::Error;
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Takes, line by line, what the operator should know of a running agent.
pub type Say = fn(&str);

/// An open log.
pub struct Log {
    what: &'static str,
    path: PathBuf,
    out: BufWriter<File>,
    /// Told when it cannot be written any more, which each line shows; `None` for a log of many lines.
    say: Option<Say>,
    failed: Option<Error>,
}

/// Octets of a log of many lines that are written together.
const TOGETHER: usize = 1 << 16;

impl Log {
    /// A new file, or an old one made empty. `say` is told when it cannot be written any more.
    ///
    /// # Errors
    /// [`Error::Log`].
    pub fn create(path: &Path, say: Say) -> Result<Log, Error> {
        Log::open("log", path, Some(say))
    }

    /// As [`Log::create`], for many lines, which are written some at a time. [`Log::finish`] alone tells that it could not be
    /// written. `what` it is, for errors.
    ///
    /// # Errors
    /// [`Error::Log`].
    pub(crate) fn of_many_lines(what: &'static str, path: &Path) -> Result<Log, Error> {
        Log::open(what, path, None)
    }

    fn open(what: &'static str, path: &Path, say: Option<Say>) -> Result<Log, Error> {
        let path = path.to_owned();
        match File::create(&path) {
            Ok(file) => Ok(Log { what, path, out: BufWriter::with_capacity(TOGETHER, file), say, failed: None }),
            Err(source) => Err(Error::Log { what, path, source }),
        }
    }

    /// Writes one line, and out if somebody may be waiting for it.
    pub fn line(&mut self, value: &impl Serialize) {
        if self.failed.is_some() {
            return;
        }
        let written = serde_json::to_writer(&mut self.out, value).map_err(io::Error::from);
        let written = written.and_then(|()| self.out.write_all(b"\n"));
        let at_once = self.say.is_some();
        let written = written.and_then(|()| if at_once { self.out.flush() } else { Ok(()) });
        self.check(written);
    }

    /// The first error that there was, with the log's path.
    pub fn finish(mut self) -> Option<Error> {
        if self.failed.is_none() {
            let flushed = self.out.flush();
            self.check(flushed);
        }
        self.failed
    }

    fn check(&mut self, written: io::Result<()>) {
        if let Err(source) = written {
            let error = Error::Log { what: self.what, path: self.path.clone(), source };
            self.say.inspect(|say| say(&format!("{error}; nothing more is written to it")));
            self.failed = Some(error);
        }
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
