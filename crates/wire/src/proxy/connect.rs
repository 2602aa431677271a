//! HTTP CONNECT: the request line and its header, of which only the end matters here.
//! Source: RFC 9110 section 9.3.6, RFC 9112 sections 2 and 3.2.3.

use super::{Parsed, Target};
use crate::Error;
use crate::tunnel::OpenResult;

/// Octets of the longest request that is read to its end.
pub const MAX_REQUEST: usize = 16 * 1024;

/// The answer to a connection that stands.
pub const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// The request, with its header up to and including the empty line.
///
/// # Errors
/// [`Error::ProxyRequest`] if this is not a CONNECT that can be carried out, or longer than [`MAX_REQUEST`].
pub fn request(bytes: &[u8]) -> Parsed<Target> {
    const METHOD: &[u8] = b"CONNECT ";
    let common = bytes.len().min(METHOD.len());
    if bytes[..common] != METHOD[..common] {
        return Err(Error::ProxyRequest("neither SOCKS5 nor HTTP CONNECT"));
    }
    let looked_at = &bytes[..bytes.len().min(MAX_REQUEST)];
    let Some(end) = looked_at.windows(4).position(|four| four == b"\r\n\r\n") else {
        return match bytes.len() < MAX_REQUEST {
            true => Ok(None),
            false => Err(Error::ProxyRequest("a header longer than 16 KiB")),
        };
    };
    let line_end = looked_at.windows(2).position(|two| two == b"\r\n").unwrap_or(end);
    let line =
        str::from_utf8(&bytes[METHOD.len()..line_end]).map_err(|_| Error::ProxyRequest("the host is not text"))?;
    let (authority, version) = line.split_once(' ').ok_or(Error::ProxyRequest("no HTTP version"))?;
    if !matches!(version, "HTTP/1.1" | "HTTP/1.0") {
        return Err(Error::ProxyRequest("an HTTP version other than 1.0 and 1.1"));
    }
    let (host, port) = authority.rsplit_once(':').ok_or(Error::ProxyRequest("no port"))?;
    let host = host.strip_prefix('[').map_or(Some(host), |rest| rest.strip_suffix(']'));
    let host = host.ok_or(Error::ProxyRequest("a bracket that is not closed"))?;
    if !port.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Error::ProxyRequest("a port that is no number"));
    }
    let port = port.parse().map_err(|_| Error::ProxyRequest("a port that is no number below 65536"))?;
    Ok(Some((Target::new(host, port)?, end + 4)))
}

/// The answer to a request that has not come whole in time (RFC 9110 section 15.5.9).
pub const TIMED_OUT: &[u8] = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// The answer that tells how opening a stream went.
pub fn answer(result: OpenResult) -> &'static [u8] {
    match result {
        OpenResult::Connected => ESTABLISHED,
        OpenResult::Forbidden => b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n",
        OpenResult::TimedOut => b"HTTP/1.1 504 Gateway Timeout\r\ncontent-length: 0\r\n\r\n",
        _ => b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n",
    }
}

/// The answer to what is not a request that can be carried out: another method than CONNECT, or a wrong one.
pub fn refusal(said: &[u8]) -> &'static [u8] {
    let method = said.split(|octet| *octet == b' ').next().unwrap_or_default();
    match !method.is_empty() && method != b"CONNECT" && method.iter().all(u8::is_ascii_uppercase) {
        true => NOT_IMPLEMENTED,
        false => b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n",
    }
}

/// RFC 9110 section 15.6.2.
const NOT_IMPLEMENTED: &[u8] =
    b"HTTP/1.1 501 Not Implemented\r\ncontent-type: text/plain\r\ncontent-length: 54\r\n\r\n\
    CONNECT only: use this as a proxy for https, or SOCKS5";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_curl_sends_is_understood() {
        let text = b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\nUser-Agent: curl\r\n\r\nmore";
        let wanted = Target { host: "example.org".into(), port: 443 };
        assert_eq!(request(text), Ok(Some((wanted, text.len() - 4))));
        for cut in 0..text.len() - 4 {
            assert_eq!(request(&text[..cut]), Ok(None), "{cut}");
        }
        let wanted = Target { host: "2001:db8::1".into(), port: 80 };
        let text = b"CONNECT [2001:db8::1]:80 HTTP/1.0\r\n\r\n";
        assert_eq!(request(text), Ok(Some((wanted, text.len()))));
    }

    #[test]
    fn what_is_no_connect_is_refused() {
        let refused = [
            "GET http://example.org/ HTTP/1.1\r\n\r\n",
            "CONNECT example.org HTTP/1.1\r\n\r\n",
            "CONNECT example.org:0 HTTP/1.1\r\n\r\n",
            "CONNECT example.org:+80 HTTP/1.1\r\n\r\n",
            "CONNECT example.org:70000 HTTP/1.1\r\n\r\n",
            "CONNECT :80 HTTP/1.1\r\n\r\n",
            "CONNECT [::1:80 HTTP/1.1\r\n\r\n",
            "CONNECT example.org:80 HTTP/2\r\n\r\n",
        ];
        for text in refused {
            assert!(request(text.as_bytes()).is_err(), "{text}");
        }
        let endless = [b"CONNECT a:1 HTTP/1.1\r\nx: ".as_slice(), &[b'x'; MAX_REQUEST]].concat();
        assert!(request(&endless).is_err());
    }

    #[test]
    fn another_method_is_told_so() {
        let refused = |text: &str| std::str::from_utf8(refusal(text.as_bytes())).expect("text");
        let said = refused("GET http://example.org/ HTTP/1.1\r\n\r\n");
        assert!(said.starts_with("HTTP/1.1 501 "), "{said}");
        let (header, body) = said.split_once("\r\n\r\n").expect("a header and a body");
        assert!(header.ends_with(&format!("content-length: {}", body.len())), "{said}");
        for wrong in ["CONNECT example.org HTTP/1.1\r\n\r\n", "", "get / HTTP/1.1\r\n", "\u{16}\u{3}\u{1} x"] {
            assert!(refused(wrong).starts_with("HTTP/1.1 400 "), "{wrong:?}");
        }
    }
}
