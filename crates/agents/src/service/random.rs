//! Numbers that cannot be guessed.

use super::error::{Error, system};
use std::fs::File;
use std::io::Read;

/// Octets of the kernel's random source.
///
/// # Errors
/// [`Error::System`].
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut octets = [0; N];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut octets));
    read.map_err(system("the kernel's random source"))?;
    Ok(octets)
}
