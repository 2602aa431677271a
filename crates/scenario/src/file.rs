//! Reading a file that somebody wrote by hand.

use std::fs::File;
use std::io::{self, Error, ErrorKind, Read};
use std::path::Path;

/// No scenario or trace is larger. A device may have no end at all.
const MOST: u64 = 4 << 20;

/// The text at `path`.
///
/// # Errors
/// If it cannot be read, is not UTF-8, or is no file that somebody can have meant.
pub(crate) fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MOST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MOST {
        return Err(Error::new(ErrorKind::FileTooLarge, "it is larger than 4 MiB, which no scenario and no trace is"));
    }
    Ok(text)
}
