//! What programs say to a proxy: SOCKS5 (RFC 1928) and HTTP CONNECT (RFC 9110 section 9.3.6).
//!
//! Both arrive on a stream, in pieces. Every parser is given all that has come so far and answers `None` while that is
//! not enough; limits on lengths make sure that it cannot go on for ever.

pub mod connect;
pub mod socks5;

use crate::Error;

/// Where a program wants to be connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// A name or an address, as text; at most 255 octets.
    pub host: String,
    /// TCP port; not zero.
    pub port: u16,
}

impl Target {
    /// A target with a host and a port that can be.
    ///
    /// # Errors
    /// [`Error::ProxyRequest`].
    pub fn new(host: &str, port: u16) -> Result<Target, Error> {
        let printable = host.bytes().all(|b| b.is_ascii_graphic());
        match () {
            () if host.is_empty() => Err(Error::ProxyRequest("the host is empty")),
            () if host.len() > super::tunnel::MAX_HOST => Err(Error::ProxyRequest("the host has more than 255 octets")),
            () if !printable => Err(Error::ProxyRequest("the host has characters that no name or address has")),
            () if port == 0 => Err(Error::ProxyRequest("the port is zero")),
            () => Ok(Target { host: host.to_owned(), port }),
        }
    }
}

/// What a parser makes of the octets so far: something, and how many of them it took, or `None` if more must come.
pub type Parsed<T> = Result<Option<(T, usize)>, Error>;
