//! As much of HTTP/1.1 as a scraper of metrics needs: `GET /metrics`, answered and closed.
//!
//! One request is served at a time. It has 4 KiB and 2 s; whoever needs more is refused, and keeps others waiting no longer.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

const REQUEST: usize = 4096;
const PATIENCE: Duration = Duration::from_secs(2);

/// The content type of the text format of OpenMetrics.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// Answers for ever. What goes wrong with one request does not concern the next.
pub fn serve(listener: &TcpListener, metrics: &dyn Fn() -> String) {
    for stream in listener.incoming() {
        match stream {
            Ok(stream) => drop(answer(stream, metrics)),
            // Without descriptors there is none a moment later either.
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

fn answer(mut stream: TcpStream, metrics: &dyn Fn() -> String) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    let (status, kind, body) = match request(&mut stream, deadline)? {
        Request::Metrics => ("200 OK", OPEN_METRICS, metrics()),
        Request::OtherPath => ("404 Not Found", TEXT, "there is /metrics\n".to_owned()),
        Request::OtherMethod => ("405 Method Not Allowed", TEXT, "only GET\n".to_owned()),
        Request::TooLong => ("431 Request Header Fields Too Large", TEXT, "at most 4 KiB\n".to_owned()),
        Request::Nonsense => ("400 Bad Request", TEXT, "not HTTP/1.1\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let whole = [head.as_bytes(), body.as_bytes()].concat();
    // The kernel's buffer takes what a slow reader leaves, or the write times out piece by piece.
    let mut rest = &whole[..];
    while !rest.is_empty() {
        stream.set_write_timeout(Some(left(deadline)?))?;
        rest = &rest[stream.write(rest)?..];
    }
    Ok(())
}

#[derive(PartialEq, Eq, Debug)]
enum Request {
    Metrics,
    OtherPath,
    OtherMethod,
    TooLong,
    Nonsense,
}

/// Reads a request up to the blank line.
fn request(stream: &mut TcpStream, deadline: Instant) -> io::Result<Request> {
    let mut head = [0; REQUEST];
    let mut len = 0;
    loop {
        stream.set_read_timeout(Some(left(deadline)?))?;
        let got = stream.read(&mut head[len..])?;
        len += got;
        let ends = head[..len].windows(4).any(|end| end == b"\r\n\r\n");
        if ends || got == 0 {
            return Ok(understand(&head[..len], ends));
        }
        if len == REQUEST {
            return Ok(Request::TooLong);
        }
    }
}

fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn understand(head: &[u8], ends: bool) -> Request {
    let line = head.split(|octet| *octet == b'\r').next().unwrap_or_default();
    let words: Vec<&[u8]> = line.split(|octet| *octet == b' ').collect();
    let [method, target, version] = words[..] else { return Request::Nonsense };
    if !ends || !version.starts_with(b"HTTP/1.") {
        return Request::Nonsense;
    }
    let path = target.split(|octet| *octet == b'?').next().unwrap_or_default();
    match (method, path) {
        (b"GET", b"/metrics") => Request::Metrics,
        (b"GET", _) => Request::OtherPath,
        _ => Request::OtherMethod,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Shutdown};

    /// What is answered to these octets; empty if nothing is.
    fn ask(request: &[u8]) -> String {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
        let mut client = TcpStream::connect(listener.local_addr().expect("bound")).expect("listening");
        client.write_all(request).expect("connected");
        client.shutdown(Shutdown::Write).expect("connected");
        let (stream, _) = listener.accept().expect("connected");
        let served = std::thread::spawn(|| answer(stream, &|| "x 1\n".repeat(500_000)));
        let mut text = Vec::new();
        // What is refused unread is reset.
        let _ = client.read_to_end(&mut text);
        let _ = served.join().expect("no panic");
        String::from_utf8(text).expect("UTF-8")
    }

    #[test]
    fn a_scrape_gets_all_metrics() {
        for path in ["/metrics", "/metrics?name=x"] {
            let answer = ask(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes());
            let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("Content-Length: 2000000\r\n"), "{head}");
            assert_eq!(body.len(), 2_000_000);
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for (request, status) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], "404"),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
            (b"GET /metrics\r\n\r\n", "400"),
            (b"GET /metrics HTTP/1.1\r\nHost: loc", "400"),
            (b"\xff\xfe\r\n\r\n", "400"),
            (b"", "400"),
            (&[b'x'; REQUEST], "431"),
        ] {
            let answer = ask(request);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{status}: {answer}");
        }
    }

    #[test]
    fn whoever_takes_too_long_gets_nothing() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
        let _client = TcpStream::connect(listener.local_addr().expect("bound")).expect("listening");
        let (mut stream, _) = listener.accept().expect("connected");
        let error = request(&mut stream, Instant::now() + Duration::from_millis(20)).expect_err("nothing came");
        assert!(matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock), "{error}");
    }
}
