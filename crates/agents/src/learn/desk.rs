//! The agent's end: listens for a learner, hands it lessons, takes its trees.

use super::{Error, MESSAGE_MAX};
use crate::tunnel::Say;
use crate::tunnel::rarely::Rarely;
use lasthop_laws::oal::learned::{Elsewhere, Refused};
use lasthop_laws::oal::lesson::Lesson;
use lasthop_units::{Span, Time};
use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, SockFlag, SockType, UnixAddr, accept4, bind, connect, listen, recv, send, socket,
};
use nix::sys::stat::{Mode, umask};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Where a learner may sit down. Copies share it.
#[derive(Clone)]
pub struct Desk(Arc<Mutex<Inner>>);

struct Inner {
    path: PathBuf,
    listener: OwnedFd,
    learner: Option<OwnedFd>,
    buffer: Vec<u8>,
    say: Say,
    /// How often comings and goings are told, and what is refused.
    moves: Rarely,
    refusals: Rarely,
}

/// Messages that are looked at in one interval: a learner that never pauses shall not have the agent.
const BUDGET: usize = 4;
/// Time between two lines of one kind.
const PAUSE: Span = Span::from_secs(10);

impl Desk {
    /// Listens at `path`, for this user alone. A socket that nobody listens to is taken over.
    ///
    /// # Errors
    /// [`Error::Taken`], [`Error::Socket`].
    pub fn open(path: &Path, say: Say) -> Result<Desk, Error> {
        let failed = |source: io::Error| Error::Socket { path: path.to_owned(), source };
        let address = UnixAddr::new(path).map_err(|error| failed(error.into()))?;
        let new = || {
            let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
            socket(AddressFamily::Unix, SockType::SeqPacket, flags, None).map_err(|error| failed(error.into()))
        };
        let listener = new()?;
        match connect(new()?.as_raw_fd(), &address) {
            Ok(()) | Err(nix::Error::EAGAIN) => return Err(Error::Taken { path: path.to_owned() }),
            // Left by one that was killed.
            Err(nix::Error::ECONNREFUSED) => std::fs::remove_file(path).map_err(failed)?,
            // What else is wrong shows when the name is taken.
            Err(_) => {}
        }
        let before = umask(Mode::from_bits_truncate(0o177));
        let bound = bind(listener.as_raw_fd(), &address);
        umask(before);
        bound.map_err(|error| failed(error.into()))?;
        Backlog::new(1).and_then(|backlog| listen(&listener, backlog)).map_err(|error| failed(error.into()))?;
        let (path, buffer) = (path.to_owned(), vec![0; MESSAGE_MAX + 1]);
        let (moves, refusals) = (Rarely::new(PAUSE), Rarely::new(PAUSE));
        Ok(Desk(Arc::new(Mutex::new(Inner { path, listener, learner: None, buffer, say, moves, refusals }))))
    }
}

impl Inner {
    /// Lets one learner in, and turns further ones away.
    fn admit(&mut self, now: Time) {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let Ok(fd) = accept4(self.listener.as_raw_fd(), flags) else { return };
        // SAFETY: a fresh descriptor, owned by nobody else.
        let learner = unsafe { OwnedFd::from_raw_fd(fd) };
        if self.learner.is_none() {
            self.learner = Some(learner);
            self.moved(now, "a learner is connected");
        }
    }

    fn leave(&mut self, now: Time) {
        self.learner = None;
        self.moved(now, "the learner has gone: its last tree is used until it is too old");
    }

    fn moved(&mut self, now: Time, line: &str) {
        self.moves.goes_on(now);
        if self.moves.is_due(now) {
            (self.say)(line);
        }
    }
}

impl Elsewhere for Desk {
    fn hand(&mut self, lesson: &Lesson) {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(learner) = &inner.learner else { return };
        // One that does not read misses lessons; one that has gone shows at the next look for a tree.
        let _ = send(learner.as_raw_fd(), &lesson.encode(), MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL);
    }

    fn tree(&mut self, now: Time) -> Option<(Time, Vec<u8>)> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let inner = &mut *inner;
        inner.admit(now);
        let mut newest = None;
        for _ in 0..BUDGET {
            let Some(learner) = &inner.learner else { break };
            match recv(learner.as_raw_fd(), &mut inner.buffer, MsgFlags::MSG_DONTWAIT) {
                Err(nix::Error::EAGAIN | nix::Error::EINTR) => break,
                Ok(0) | Err(_) => {
                    inner.leave(now);
                    break;
                }
                // A tree that is too short or too long is refused as such by whoever reads it.
                Ok(len) => {
                    let message = &inner.buffer[..len.min(MESSAGE_MAX + 1)];
                    let (until, tree) = message.split_first_chunk::<8>().unwrap_or((&[0; 8], &[]));
                    newest = Some((Time::from_nanos(u64::from_be_bytes(*until)), tree.to_vec()));
                }
            }
        }
        newest
    }

    fn refused(&mut self, now: Time, why: &Refused) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Where all was well there is nothing to tell apart.
        if matches!(why, Refused::OneClass(_)) {
            return;
        }
        inner.refusals.goes_on(now);
        if inner.refusals.is_due(now) {
            (inner.say)(&format!("a tree of the learner is refused: {why}"));
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_laws::oal::features::FEATURES;
    use lasthop_laws::oal::predictor::LossClass;
    use std::os::unix::fs::PermissionsExt;

    fn connected(path: &Path) -> OwnedFd {
        let fd = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
        connect(fd.as_raw_fd(), &UnixAddr::new(path).expect("a short path")).expect("somebody listens");
        fd
    }

    #[test]
    fn lessons_go_out_and_trees_come_in_and_neither_end_waits() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("learn");
        let mut desk = Desk::open(&path, |_| {}).expect("free");
        let mode = std::fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(matches!(Desk::open(&path, |_| {}), Err(Error::Taken { .. })));
        let now = Time::from_nanos(1_000_000_000_000);
        let lesson = Lesson { until: now, abstained: true, class: LossClass::Bad, features: [0.5; FEATURES.len()] };
        desk.hand(&lesson);
        assert!(desk.tree(now).is_none(), "nobody is there");
        let learner = connected(&path);
        assert!(desk.tree(now).is_none(), "it has not said anything");
        desk.hand(&lesson);
        let mut buffer = [0; 256];
        let len = recv(learner.as_raw_fd(), &mut buffer, MsgFlags::empty()).expect("a lesson");
        assert_eq!(&buffer[..len], lesson.encode());
        let mut message = 77u64.to_be_bytes().to_vec();
        message.extend_from_slice(b"tree");
        send(learner.as_raw_fd(), &message, MsgFlags::empty()).expect("room");
        assert_eq!(desk.tree(now), Some((Time::from_nanos(77), b"tree".to_vec())));
        send(learner.as_raw_fd(), b"x", MsgFlags::empty()).expect("room");
        assert_eq!(desk.tree(now), Some((Time::ZERO, Vec::new())), "to be refused");
        // One that reads nothing: the agent goes on.
        (0..100_000).for_each(|_| desk.hand(&lesson));
        drop(learner);
        assert!(desk.tree(now).is_none());
        let again = connected(&path);
        assert!(desk.tree(now).is_none());
        desk.hand(&lesson);
        assert!(recv(again.as_raw_fd(), &mut buffer, MsgFlags::empty()).expect("a lesson") > 0);
        drop(desk);
        assert!(!path.exists());
    }

    #[test]
    fn a_socket_that_was_left_behind_is_taken_over() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("learn");
        let left = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
        bind(left.as_raw_fd(), &UnixAddr::new(&path).expect("a short path")).expect("free");
        drop(left);
        assert!(Desk::open(&path, |_| {}).is_ok());
    }
}
