//! A server of HTTP: a file, the same back, and one that does not end.

use super::support::netns::Netns;
use std::collections::BTreeSet;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

/// Octets of the file `/short`, with which [`FILE`] begins.
pub const SHORT: usize = 200_000;

/// A file with octets that do not repeat within its length.
pub static FILE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let octets = (0..1_000_000).flat_map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state ^ state >> 33).to_le_bytes()
    });
    octets.take(6_000_007).collect()
});

/// What a server has seen.
#[derive(Default)]
struct Seen {
    last: String,
    begun: BTreeSet<String>,
    failed: BTreeSet<String>,
}

/// A server, there for as long as the test program is.
pub struct Server(Arc<Mutex<Seen>>);

impl Server {
    pub fn start(at: &Netns, address: &str) -> Server {
        let listener = at.within(|| TcpListener::bind(address)).expect("a listener");
        let seen = Arc::new(Mutex::new(Seen::default()));
        let noted = Arc::clone(&seen);
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let seen = Arc::clone(&noted);
                std::thread::spawn(move || serve(socket, &seen));
            }
        });
        Server(seen)
    }

    /// The last caller.
    pub fn seen_last(&self) -> String {
        self.0.lock().expect("no panic").last.clone()
    }

    /// True once somebody has been sent 100 kB of that.
    pub fn has_begun(&self, path: &str) -> bool {
        self.0.lock().expect("no panic").begun.contains(path)
    }

    /// True once sending that has failed.
    pub fn has_failed(&self, path: &str) -> bool {
        self.0.lock().expect("no panic").failed.contains(path)
    }
}

fn serve(socket: TcpStream, seen: &Mutex<Seen>) {
    let Ok(from) = socket.peer_addr() else { return };
    seen.lock().expect("no panic").last = from.ip().to_string();
    let mut path = String::new();
    if answer(&socket, &mut path, seen).is_err() {
        seen.lock().expect("no panic").failed.insert(path);
    }
}

fn answer(mut socket: &TcpStream, path: &mut String, seen: &Mutex<Seen>) -> io::Result<()> {
    socket.set_read_timeout(Some(Duration::from_secs(120)))?;
    let mut lines = BufReader::new(socket);
    let (mut request, mut length) = (String::new(), 0);
    lines.read_line(&mut request)?;
    let mut words = request.split(' ');
    let method = words.next().unwrap_or_default().to_owned();
    *path = words.next().unwrap_or_default().to_owned();
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some(octets) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = octets.trim().parse().map_err(io::Error::other)?;
        }
        if line.to_ascii_lowercase().starts_with("expect: 100-continue") {
            socket.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
    }
    let reply = |mut socket: &TcpStream, body: &[u8]| {
        socket.write_all(
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len()).as_bytes(),
        )?;
        socket.write_all(body)
    };
    match (method.as_str(), path.as_str()) {
        ("PUT", _) => {
            let mut body = vec![0; length];
            lines.read_exact(&mut body)?;
            reply(socket, if body == *FILE { b"the same" } else { b"something else" })
        }
        (_, "/short") => reply(socket, &FILE[..SHORT]),
        (_, "/endless") => {
            socket.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")?;
            let mut sent = 0;
            loop {
                socket.write_all(&FILE[..10_000])?;
                sent += 10_000;
                if sent >= 100_000 {
                    seen.lock().expect("no panic").begun.insert(path.clone());
                }
                // Bounded: some 5 Mbit/s.
                std::thread::sleep(Duration::from_millis(15));
            }
        }
        _ => reply(socket, &FILE),
    }
}
