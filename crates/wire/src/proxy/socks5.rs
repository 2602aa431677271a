//! SOCKS5: greeting and request. Only CONNECT, and no authentication but none: the listener is for this machine.
//! Source: RFC 1928 sections 3 to 6.

use super::{Parsed, Target};
use crate::tunnel::OpenResult;
use crate::{Error, be16, take};
use std::net::{Ipv4Addr, Ipv6Addr};

/// What a SOCKS5 connection begins with.
pub const VERSION: u8 = 5;
/// "No authentication required", chosen.
pub const GREETING_REPLY: [u8; 2] = [VERSION, 0];
/// "No acceptable methods".
pub const GREETING_REFUSAL: [u8; 2] = [VERSION, 0xff];

const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// The client's greeting; true if it can do without authentication.
///
/// # Errors
/// [`Error::ProxyRequest`] if this is not SOCKS5.
pub fn greeting(bytes: &[u8]) -> Parsed<bool> {
    if bytes.first().is_some_and(|version| *version != VERSION) {
        return Err(Error::ProxyRequest("not SOCKS version 5"));
    }
    let Some([_, count]) = take(bytes, 0) else { return Ok(None) };
    let end = 2 + usize::from(count);
    Ok(bytes.get(2..end).map(|methods| (methods.contains(&0), end)))
}

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A connection.
    Connect(Target),
    /// Something else (BIND, UDP ASSOCIATE): to be answered with [`NOT_SUPPORTED`].
    Other,
    /// An address of a type that RFC 1928 does not know, whatever is to be done with it: to be answered with
    /// [`ADDRESS_NOT_SUPPORTED`]. Where the request ends nobody can tell.
    UnknownAddress,
}

/// The reply to a command that is not supported.
pub const NOT_SUPPORTED: u8 = 7;
/// The reply to a type of address that is not supported.
pub const ADDRESS_NOT_SUPPORTED: u8 = 8;

/// The client's request.
///
/// # Errors
/// [`Error::ProxyRequest`] if it is malformed.
pub fn request(bytes: &[u8]) -> Parsed<Request> {
    if bytes.first().is_some_and(|version| *version != VERSION) {
        return Err(Error::ProxyRequest("not SOCKS version 5"));
    }
    let Some([_, command, _, kind]) = take(bytes, 0) else { return Ok(None) };
    let (host, at) = match kind {
        IPV4 => match take::<4>(bytes, 4) {
            Some(address) => (Ipv4Addr::from(address).to_string(), 8),
            None => return Ok(None),
        },
        IPV6 => match take::<16>(bytes, 4) {
            Some(address) => (Ipv6Addr::from(address).to_string(), 20),
            None => return Ok(None),
        },
        NAME => {
            let Some([len]) = take(bytes, 4) else { return Ok(None) };
            let end = 5 + usize::from(len);
            let Some(name) = bytes.get(5..end) else { return Ok(None) };
            let name = str::from_utf8(name).map_err(|_| Error::ProxyRequest("the host is not text"))?;
            (name.to_owned(), end)
        }
        _ => return Ok(Some((Request::UnknownAddress, bytes.len()))),
    };
    if bytes.len() < at + 2 {
        return Ok(None);
    }
    let port = be16(bytes, at)?;
    let request = match command {
        CONNECT => Request::Connect(Target::new(&host, port)?),
        _ => Request::Other,
    };
    Ok(Some((request, at + 2)))
}

/// The reply to a request. The address that the proxy is bound to is nobody's business: zeros are usual.
pub fn reply(code: u8) -> [u8; 10] {
    [VERSION, code, 0, IPV4, 0, 0, 0, 0, 0, 0]
}

/// The reply that tells how opening a stream went.
pub fn result_reply(result: OpenResult) -> [u8; 10] {
    reply(result.code())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_curl_sends_is_understood() {
        assert_eq!(greeting(&[5, 2, 0, 1, 99]), Ok(Some((true, 4))));
        assert_eq!(greeting(&[5, 1, 2]), Ok(Some((false, 3))));
        let mut by_name = vec![5, 1, 0, 3, 11];
        by_name.extend_from_slice(b"example.org\x01\xbb");
        let wanted = Target { host: "example.org".into(), port: 443 };
        assert_eq!(request(&by_name), Ok(Some((Request::Connect(wanted), by_name.len()))));
        let by_address = [5, 1, 0, 1, 192, 0, 2, 7, 0, 80];
        let wanted = Target { host: "192.0.2.7".into(), port: 80 };
        assert_eq!(request(&by_address), Ok(Some((Request::Connect(wanted), 10))));
        let udp = [5, 3, 0, 1, 0, 0, 0, 0, 0, 0];
        assert_eq!(request(&udp), Ok(Some((Request::Other, 10))));
    }

    #[test]
    fn halves_wait_and_nonsense_does_not() {
        let whole = [5, 1, 0, 4, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 22];
        for cut in 0..whole.len() {
            assert_eq!(request(&whole[..cut]), Ok(None), "{cut}");
        }
        let wanted = Target { host: "2001:db8::1".into(), port: 22 };
        assert_eq!(request(&whole), Ok(Some((Request::Connect(wanted), 22))));
        assert!(greeting(b"GET /").is_err());
        assert_eq!(request(&[5, 1, 0, 9, 0, 0]), Ok(Some((Request::UnknownAddress, 6))));
        assert!(request(&[5, 1, 0, 3, 0, 0, 80]).is_err(), "an empty name");
    }
}
