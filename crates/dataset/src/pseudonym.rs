//! Names that say nothing of the device that has them, and are the same for the same device as long as the key is.
//! Source:     RFC 2104 (HMAC), with SHA-256 (FIPS 180-4).
//! Equations:  pseudonym = the first 64 bits of HMAC(key, kind 0x00 name)
//! Deviations: none. Validity: with 3300 devices two have the same pseudonym with a probability of 3e-13. A holder of
//!             the key can try names; without it nobody can.
//! Checked by: tests::*

use crate::DataSetError;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;
use std::path::Path;

/// Octets of a key.
pub const KEY_LEN: usize = 32;

/// A device's name in a data set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Pseudonym(pub u64);

impl Pseudonym {
    /// The pseudonym that these 16 hexadecimal digits are.
    pub fn parse(text: &[u8]) -> Option<Pseudonym> {
        let digit = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
        let valid = text.len() == 16 && text.iter().all(digit);
        valid.then(|| {
            std::str::from_utf8(text).ok().and_then(|text| u64::from_str_radix(text, 16).ok()).map(Pseudonym)
        })?
    }
}

impl fmt::Display for Pseudonym {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// What is named.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Device {
    /// An access point.
    AccessPoint,
    /// A station.
    Station,
}

/// The secret from which pseudonyms follow.
pub struct PseudonymKey(hmac::Key);

impl PseudonymKey {
    /// A key of these octets.
    pub fn new(octets: &[u8; KEY_LEN]) -> PseudonymKey {
        PseudonymKey(hmac::Key::new(hmac::HMAC_SHA256, octets))
    }

    /// A fresh one, that nobody can have again.
    ///
    /// # Errors
    /// [`DataSetError::Random`] if the system gives no random octets.
    pub fn random() -> Result<PseudonymKey, DataSetError> {
        let mut octets = [0; KEY_LEN];
        SystemRandom::new().fill(&mut octets).map_err(|_| DataSetError::Random)?;
        Ok(PseudonymKey::new(&octets))
    }

    /// The key in a file if one is named, or else a fresh one.
    ///
    /// # Errors
    /// See [`PseudonymKey::load`] and [`PseudonymKey::random`].
    pub fn of(file: Option<&Path>) -> Result<PseudonymKey, DataSetError> {
        file.map_or_else(PseudonymKey::random, PseudonymKey::load)
    }

    /// The key in a file: 64 hexadecimal digits, and white space around them.
    ///
    /// # Errors
    /// [`DataSetError::Open`] and [`DataSetError::Key`].
    pub fn load(path: &Path) -> Result<PseudonymKey, DataSetError> {
        let text = std::fs::read(path).map_err(|source| DataSetError::Open { path: path.to_owned(), source })?;
        let wrong = || DataSetError::Key { path: path.to_owned() };
        let text = std::str::from_utf8(&text).map_err(|_| wrong())?.trim();
        let mut octets = [0; KEY_LEN];
        if text.len() != 2 * KEY_LEN || !text.is_ascii() {
            return Err(wrong());
        }
        for (octet, at) in octets.iter_mut().zip((0..text.len()).step_by(2)) {
            *octet = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| wrong())?;
        }
        Ok(PseudonymKey::new(&octets))
    }

    /// The pseudonym of a device that is called so: a MAC address on an access point, a name in a scenario.
    pub fn pseudonym(&self, device: Device, name: &[u8]) -> Pseudonym {
        let kind: &[u8] = match device {
            Device::AccessPoint => b"access point\0",
            Device::Station => b"station\0",
        };
        Pseudonym(self.tag(kind, name))
    }

    /// Eight hexadecimal digits by which recordings with the same key are known.
    pub fn fingerprint(&self) -> String {
        format!("{:08x}", self.tag(b"fingerprint\0", b"") >> 32)
    }

    fn tag(&self, kind: &[u8], name: &[u8]) -> u64 {
        let tag = hmac::sign(&self.0, &[kind, name].concat());
        tag.as_ref().iter().take(8).fold(0, |bits, octet| bits << 8 | u64::from(*octet))
    }
}

impl fmt::Debug for PseudonymKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PseudonymKey({})", self.fingerprint())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_hmac_sha_256() {
        // RFC 4231, test case 2, gives HMAC-SHA-256 of a short key: here only that keys are taken as they are and cut to 64 bits.
        let mut key = [0; KEY_LEN];
        key[..4].copy_from_slice(b"Jefe");
        // Zeros behind a key are no part of it (RFC 2104, section 2).
        let tag = hmac::sign(&PseudonymKey::new(&key).0, b"what do ya want for nothing?");
        assert_eq!(tag.as_ref()[..8], [0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e]);
    }

    #[test]
    fn names_are_the_same_under_one_key_only_and_by_kind() {
        let (one, other) = (PseudonymKey::new(&[1; KEY_LEN]), PseudonymKey::new(&[2; KEY_LEN]));
        let of = |key: &PseudonymKey, device| key.pseudonym(device, b"a-1");
        assert_eq!(of(&one, Device::Station), of(&PseudonymKey::new(&[1; KEY_LEN]), Device::Station));
        assert_ne!(of(&one, Device::Station), of(&other, Device::Station));
        assert_ne!(of(&one, Device::Station), of(&one, Device::AccessPoint));
        assert_ne!(one.fingerprint(), other.fingerprint());
        let shown = of(&one, Device::Station).to_string();
        assert_eq!(Pseudonym::parse(shown.as_bytes()), Some(of(&one, Device::Station)));
        for wrong in ["", "0123456789abcde", "0123456789abcdef0", "0123456789ABCDEF", "+123456789abcdef"] {
            assert_eq!(Pseudonym::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn a_key_file_holds_64_digits() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("key");
        std::fs::write(&path, format!("{}\n", "07".repeat(KEY_LEN))).expect("writes");
        assert_eq!(
            PseudonymKey::load(&path).expect("a key").fingerprint(),
            PseudonymKey::new(&[7; KEY_LEN]).fingerprint()
        );
        for wrong in ["", "07", &"0g".repeat(KEY_LEN), &"é".repeat(KEY_LEN)] {
            std::fs::write(&path, wrong).expect("writes");
            let error = PseudonymKey::load(&path).expect_err("no key").to_string();
            assert!(error.contains("64 hexadecimal digits"), "{error}");
        }
    }
}
