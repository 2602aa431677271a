//! How another process asks an agent that runs for its status: it calls the claim of the interface ([`owner`]), and the
//! agent writes its status and hangs up.

use super::owner;
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, send};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read as _};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long to wait for an agent's answer: it looks for callers twice a second.
const PATIENCE: Duration = Duration::from_secs(3);
/// Octets of an answer that is read at most: a thousand stations have a tenth of this.
const LONGEST: u64 = 4 << 20;

/// Asks the agent of a kind that has claimed the interface with this number; `None` if none has.
///
/// # Errors
/// What the kernel refuses; if it does not answer within three seconds, or not as an agent does.
pub(crate) fn ask<Status: DeserializeOwned>(kind: &str, ifindex: i32) -> io::Result<Option<Status>> {
    owner::call(kind, ifindex)?.map(read).transpose()
}

fn read<Status: DeserializeOwned>(mut stream: UnixStream) -> io::Result<Status> {
    #[allow(clippy::disallowed_methods, reason = "somebody waits for an answer")]
    let now = Instant::now;
    let deadline = now() + PATIENCE;
    let mut text = Vec::new();
    let mut piece = [0; 16_384];
    loop {
        let left = deadline.saturating_duration_since(now());
        if left.is_zero() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "none came within 3 s"));
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(len) if text.len() as u64 + len as u64 <= LONGEST => text.extend_from_slice(&piece[..len]),
            Ok(_) => return Err(io::Error::new(io::ErrorKind::InvalidData, "it does not end")),
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
            Err(error) => return Err(error),
        }
    }
    if text.is_empty() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it answers root and its own user only"));
    }
    serde_json::from_slice(&text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Answers all callers, without waiting for any of them: what does not fit into a socket's buffer is not sent.
pub(crate) fn answer<Status: Serialize>(claim: &owner::Claim, status: impl Fn() -> Status) {
    while let Some(asker) = claim.asker() {
        let Ok(text) = serde_json::to_vec(&status()) else { return };
        let mut rest = &text[..];
        while !rest.is_empty() {
            match send(asker.as_raw_fd(), rest, MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL) {
                Ok(sent) => rest = &rest[sent..],
                Err(Errno::EINTR) => {}
                Err(_) => break,
            }
        }
    }
}
