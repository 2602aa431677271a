//! The SHA-256 of a stream (FIPS 180-4).

use ring::digest::{Context, SHA256};

/// Takes octets and tells their digest.
pub struct Digest(Context);

impl Default for Digest {
    fn default() -> Digest {
        Digest(Context::new(&SHA256))
    }
}

impl Digest {
    /// Takes the next octets.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest, as 64 hexadecimal digits.
    pub fn finish(self) -> String {
        self.0.finish().as_ref().iter().map(|octet| format!("{octet:02x}")).collect()
    }
}
