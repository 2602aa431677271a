//! The log of a carrier as a stream of octets: a file that grows, a pipe, or standard input.
//!
//! Of a file that is there already, only its end is of interest: what it holds is of the past.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Octets of the end that are read.
const END: u64 = 1 << 16;

/// What was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Got {
    /// So many octets.
    Octets(usize),
    /// Nothing yet.
    Nothing,
    /// Nothing; what comes next is the beginning of another file.
    Anew,
    /// There is no more, and never will be.
    End,
}

/// Where a log comes from.
pub(super) enum Input {
    Grows {
        path: PathBuf,
        file: Option<File>,
        /// Octets that were read of it.
        at: u64,
    },
    /// Read where there is something, so that reading never waits.
    Pipe(File),
}

impl Input {
    /// Opens it. A file may come later, in a directory that is there.
    pub(super) fn open(path: &Path) -> io::Result<Input> {
        if path == Path::new("-") {
            let stdin: OwnedFd = io::stdin().as_fd().try_clone_to_owned()?;
            let file = File::from(stdin);
            let kind = file.metadata()?;
            return Ok(if kind.is_file() {
                Input::Grows { path: "/dev/stdin".into(), file: Some(file), at: 0 }
            } else {
                Input::Pipe(file)
            });
        }
        match std::fs::metadata(path) {
            // Open for writing too, so that it does not end where its writer is started again.
            Ok(found) if found.file_type().is_fifo() => {
                let options = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path)?;
                Ok(Input::Pipe(options))
            }
            Ok(found) if found.is_dir() => Err(io::Error::new(ErrorKind::IsADirectory, "a directory; name a file")),
            Ok(found) if !found.is_file() => Err(io::Error::new(ErrorKind::InvalidInput, "neither a file nor a pipe")),
            Ok(_) => Ok(Input::Grows { path: path.to_owned(), file: Some(File::open(path)?), at: 0 }),
            Err(error) if error.kind() == ErrorKind::NotFound && directory(path).is_dir() => {
                Ok(Input::Grows { path: path.to_owned(), file: None, at: 0 })
            }
            Err(error) => Err(error),
        }
    }

    /// What tells that there is something to read; `None`: it is to be looked for.
    pub(super) fn waits_on(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Input::Grows { .. } => None,
            Input::Pipe(file) => Some(file.as_fd()),
        }
    }

    /// Goes on near the end, if that is far.
    pub(super) fn skip(&mut self) -> io::Result<bool> {
        let Input::Grows { file: Some(file), at, .. } = self else { return Ok(false) };
        let len = file.metadata()?.len();
        let far = len > at.saturating_add(END);
        if far {
            *at = file.seek(SeekFrom::Start(len - END))?;
        }
        Ok(far)
    }

    /// Reads what comes next, and does not wait for it.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<Got> {
        match self {
            Input::Pipe(file) => {
                if !is_ready(file)? {
                    return Ok(Got::Nothing);
                }
                match file.read(buffer) {
                    Ok(0) => Ok(Got::End),
                    Ok(count) => Ok(Got::Octets(count)),
                    Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                        Ok(Got::Nothing)
                    }
                    Err(error) => Err(error),
                }
            }
            Input::Grows { path, file, at } => grown(path, file, at, buffer),
        }
    }
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn is_ready(file: &File) -> io::Result<bool> {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    let mut fds = [PollFd::new(file.as_fd(), PollFlags::POLLIN)];
    match poll(&mut fds, PollTimeout::ZERO) {
        Ok(ready) => Ok(ready > 0),
        Err(nix::Error::EINTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn grown(path: &Path, file: &mut Option<File>, at: &mut u64, buffer: &mut [u8]) -> io::Result<Got> {
    let Some(open) = file else {
        *file = opened(path)?;
        return Ok(if file.is_some() { Got::Anew } else { Got::Nothing });
    };
    match open.read(buffer) {
        Ok(0) => {}
        Ok(count) => {
            *at += count as u64;
            return Ok(Got::Octets(count));
        }
        Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(Got::Nothing),
        Err(error) => return Err(error),
    }
    let here = open.metadata()?;
    if here.len() < *at {
        // It was cut, and is written from its beginning on.
        open.rewind()?;
        *at = 0;
        return Ok(Got::Anew);
    }
    let same = |other: &Metadata| (here.dev(), here.ino()) == (other.dev(), other.ino());
    match std::fs::metadata(path) {
        Ok(other) if !same(&other) => {
            *at = 0;
            *file = opened(path)?;
            Ok(if file.is_some() { Got::Anew } else { Got::Nothing })
        }
        Ok(_) => Ok(Got::Nothing),
        // It was moved away; the next one will come.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Got::Nothing),
        Err(error) => Err(error),
    }
}

fn opened(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn all(input: &mut Input) -> (Vec<u8>, Got) {
        let (mut octets, mut buffer) = (Vec::new(), [0; 1000]);
        loop {
            match input.read(&mut buffer).expect("readable") {
                Got::Octets(count) => octets.extend_from_slice(&buffer[..count]),
                other => return (octets, other),
            }
        }
    }

    #[test]
    fn a_file_is_followed_through_growth_cuts_and_replacement() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("log");
        let mut input = Input::open(&path).expect("it may come later");
        assert_eq!(all(&mut input), (vec![], Got::Nothing));
        std::fs::write(&path, "one\n").expect("written");
        assert_eq!(all(&mut input), (vec![], Got::Anew));
        assert_eq!(all(&mut input), (b"one\n".to_vec(), Got::Nothing));
        let mut file = OpenOptions::new().append(true).open(&path).expect("there");
        file.write_all(b"two\n").expect("written");
        assert_eq!(all(&mut input), (b"two\n".to_vec(), Got::Nothing));
        file.set_len(0).expect("cut");
        assert_eq!(all(&mut input), (vec![], Got::Anew));
        std::fs::rename(&path, folder.path().join("old")).expect("moved");
        assert_eq!(all(&mut input), (vec![], Got::Nothing));
        std::fs::write(&path, "next\n").expect("written");
        assert_eq!(all(&mut input), (vec![], Got::Anew));
        assert_eq!(all(&mut input), (b"next\n".to_vec(), Got::Nothing));
    }

    #[test]
    fn of_what_is_there_already_the_end_is_read() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("log");
        std::fs::write(&path, vec![b'x'; 3 << 16]).expect("written");
        let mut input = Input::open(&path).expect("there");
        assert!(input.skip().expect("a file"));
        assert_eq!(all(&mut input).0.len(), 1 << 16);
        assert!(!input.skip().expect("a file"));
    }

    #[test]
    fn what_is_no_log_is_refused() {
        let folder = tempfile::tempdir().expect("a directory");
        let refused = |path: &Path| Input::open(path).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(refused(folder.path()).contains("a directory"));
        assert!(refused(Path::new("/dev/null")).contains("neither a file nor a pipe"));
        assert!(!refused(&folder.path().join("no/log")).is_empty());
    }
}
