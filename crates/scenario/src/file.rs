//! Reading a file that somebody wrote by hand.

use std::fs::File;
use std::io::{self, Error, ErrorKind, Read};
use std::path::Path;

/// No scenario or trace of a station is larger. A device may have no end at all.
const MOST: u64 = 4 << 20;

/// No packet-delivery trace is larger: two minutes at 1 Gbit/s.
const MOST_DELIVERIES: u64 = 64 << 20;

/// The contents of the packet-delivery trace at `path`.
///
/// # Errors
/// If it cannot be read, or is larger than any such file.
pub(crate) fn deliveries(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST_DELIVERIES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_DELIVERIES {
        return Err(Error::new(ErrorKind::FileTooLarge, "it is larger than 64 MiB, two minutes at 1 Gbit/s"));
    }
    Ok(bytes)
}

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
