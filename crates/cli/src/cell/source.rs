//! Where a log's octets come from.

use crate::input::{self, Pipe};
use anyhow::{Context as _, bail};
use lasthop_agents::service::{Stop, stop_on_signals};
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, IsTerminal as _, Read as _, Seek as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What was read.
pub enum Got {
    /// So many octets.
    Octets(usize),
    /// Nothing yet.
    Nothing,
    /// Nothing; what comes next is the beginning of another file.
    Anew,
    /// There is no more.
    End,
}

/// A file, standard input, or a file that grows.
pub enum Source {
    File(File),
    Pipe(Pipe),
    Followed(Followed),
}

impl Source {
    /// Opens it.
    pub fn open(path: &Path, follow: bool) -> anyhow::Result<Source> {
        if path == Path::new("-") {
            if follow {
                bail!("standard input is read until it ends, without --follow; leave it out");
            }
            if io::stdin().is_terminal() {
                bail!("a log cannot be typed: name a file, or send one here, as with `tail -F LOG | lasthop cell -`");
            }
            return Ok(Source::Pipe(Pipe::open()?));
        }
        let file = input::file(path, "the log", "name a file");
        if follow {
            let stop = stop_on_signals()?;
            // It may come later.
            let missing = |error: &anyhow::Error| {
                error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::NotFound)
            };
            let file = match file {
                Err(error) if missing(&error) => None,
                file => Some(file?),
            };
            // A pipe ends with its writer, and has no beginning to go back to.
            if let Some(file) =
                file.as_ref().filter(|file| file.metadata().is_ok_and(|file| file.file_type().is_fifo()))
            {
                return Ok(Source::File(file.try_clone()?));
            }
            return Ok(Source::Followed(Followed { path: path.to_owned(), file, at: 0, stop }));
        }
        let file = file?;
        if file.metadata().with_context(|| format!("cannot read {}", path.display()))?.is_dir() {
            bail!("{} is a directory: name a file", path.display());
        }
        Ok(Source::File(file))
    }

    /// True if it can be read twice.
    pub fn is_regular(&self) -> bool {
        matches!(self, Source::File(file) if file.metadata().is_ok_and(|file| file.is_file()))
    }

    /// True if it is read while it grows.
    pub fn is_followed(&self) -> bool {
        matches!(self, Source::Followed(_))
    }

    /// Reads what comes next.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<Got> {
        let octets = |count: usize| if count == 0 { Got::End } else { Got::Octets(count) };
        match self {
            Source::File(file) => loop {
                match file.read(buffer) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    read => return read.map(octets),
                }
            },
            Source::Pipe(pipe) => pipe.read(buffer).map(octets),
            Source::Followed(followed) => followed.read(buffer),
        }
    }
}

/// A file that grows, may be cut, and may be another one by the same name tomorrow.
pub struct Followed {
    path: PathBuf,
    file: Option<File>,
    /// Octets that have been read of it.
    at: u64,
    stop: &'static Stop,
}

/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(50);

impl Followed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<Got> {
        if self.stop.is_urgent() {
            return Ok(Got::End);
        }
        let Some(file) = &mut self.file else {
            self.file = opened(&self.path)?;
            return if self.file.is_none() { Ok(self.wait()) } else { Ok(Got::Anew) };
        };
        match file.read(buffer) {
            Ok(0) => {}
            Ok(count) => {
                self.at += count as u64;
                return Ok(Got::Octets(count));
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(Got::Nothing),
            Err(error) => return Err(error),
        }
        let here = file.metadata()?;
        if here.len() < self.at {
            // It was cut, and is written from its beginning on.
            file.rewind()?;
            self.at = 0;
            return Ok(Got::Anew);
        }
        let same = |other: &Metadata| (here.dev(), here.ino()) == (other.dev(), other.ino());
        match std::fs::metadata(&self.path) {
            Ok(other) if same(&other) => {}
            Ok(_) => {
                self.at = 0;
                self.file = opened(&self.path)?;
                return Ok(if self.file.is_some() { Got::Anew } else { Got::Nothing });
            }
            // It was moved away; the next one will come.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(self.wait())
    }

    /// There is nothing more for now: for good, if it was asked to stop.
    fn wait(&self) -> Got {
        if self.stop.is_asked() {
            return Got::End;
        }
        std::thread::sleep(LOOK);
        Got::Nothing
    }
}

fn opened(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
