//! The agent's end: listens for a learner, hands it lessons, takes its trees.

use super::{Error, MESSAGE_MAX};
use crate::service::Say;
use crate::service::privileges::Account;
use crate::service::rate_limited_log::{LogLimiter, RateLimitedLog};
use lasthop_laws::oal::learned::{Elsewhere, Refused};
use lasthop_laws::oal::lesson::Lesson;
use lasthop_units::{Span, Time, count};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, SockFlag, SockType, UnixAddr, accept4, bind, connect, listen, recv, send, socket,
};
use nix::sys::stat::{Mode, umask};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
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
    /// Comings and goings.
    moves: LogLimiter,
    /// Why trees were refused.
    refusals: RateLimitedLog<String>,
    /// Whether its trees decide, and from which age on they do not.
    decides: (bool, Span),
    /// When they began to, or ceased.
    turns: LogLimiter,
}

impl Desk {
    /// Listens at `path`, for this user alone, or for `learner` (its name or number) and root. A socket that nobody listens to is taken over.
    ///
    /// # Errors
    /// [`Error::Taken`], [`Error::Socket`], [`Error::Learner`], [`Error::Give`].
    pub fn open(path: &Path, learner: Option<&str>, say: Say) -> Result<Desk, Error> {
        let owner = learner.map(Account::find).transpose().map_err(Error::Learner)?;
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
        if let Some(owner) = owner {
            owner.own(path).map_err(Error::Give)?;
        }
        Backlog::new(1).and_then(|backlog| listen(&listener, backlog)).map_err(|error| failed(error.into()))?;
        let (path, buffer) = (path.to_owned(), vec![0; MESSAGE_MAX + 1]);
        // What has changed is told at once, and what changes again and again ever more rarely.
        let [moves, turns] = [Span::ZERO; 2].map(LogLimiter::new);
        let (learner, refusals, decides) = (None, RateLimitedLog::new(), (false, Span::ZERO));
        Ok(Desk(Arc::new(Mutex::new(Inner { path, listener, learner, buffer, say, moves, refusals, decides, turns }))))
    }
}

impl Inner {
    /// Whether a learner wants to be let in, and whether the one that is there has said something, or gone: asked for each interval, so in one call.
    fn waits(&self) -> (bool, bool) {
        let ends = std::iter::once(&self.listener).chain(&self.learner);
        let mut fds: Vec<PollFd> = ends.map(|end| PollFd::new(end.as_fd(), PollFlags::POLLIN)).collect();
        if !poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0) {
            return (false, false);
        }
        let any = |at: usize| fds.get(at).is_some_and(|fd| fd.any().unwrap_or(true));
        (any(0), any(1))
    }

    /// Lets one learner in, and turns further ones away.
    fn admit(&mut self, now: Time) {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let Ok(fd) = accept4(self.listener.as_raw_fd(), flags) else { return };
        // SAFETY: a fresh descriptor, owned by nobody else.
        let learner = unsafe { OwnedFd::from_raw_fd(fd) };
        if self.learner.is_none() {
            self.learner = Some(learner);
            self.moves.goes_on(now);
        }
    }

    /// The next message of the learner; `None` if there is none yet.
    fn read(&mut self, now: Time) -> Option<(Time, Vec<u8>)> {
        match recv(self.learner.as_ref()?.as_raw_fd(), &mut self.buffer, MsgFlags::MSG_DONTWAIT) {
            Err(nix::Error::EAGAIN | nix::Error::EINTR) => None,
            Ok(0) | Err(_) => {
                self.learner = None;
                self.moves.goes_on(now);
                None
            }
            // A tree that is too short or too long is refused as such by whoever reads it.
            Ok(len) => {
                let message = &self.buffer[..len.min(MESSAGE_MAX + 1)];
                let (until, tree) = message.split_first_chunk::<8>().unwrap_or((&[0; 8], &[]));
                Some((Time::from_nanos(u64::from_be_bytes(*until)), tree.to_vec()))
            }
        }
    }

    /// Tells what is due, as it stands by now.
    fn tell(&mut self, now: Time) {
        if self.moves.is_due(now) {
            (self.say)(match self.learner {
                Some(_) => "a learner is connected",
                None => "the learner has gone: its last tree is used until it is too old",
            });
        }
        if self.turns.is_due(now) {
            match self.decides {
                (true, _) => (self.say)("a tree of the learner decides"),
                (false, age_limit) => (self.say)(&format!(
                    "the newest tree of the learner knows nothing of the last {age_limit}: what it ordered is released"
                )),
            }
        }
        if let Some((number, why)) = self.refusals.take(now) {
            let trees = count(number, "tree");
            (self.say)(&format!("{trees} more of the learner refused, the last since: {why}"));
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
        let (comes, says) = inner.waits();
        // In this order: a learner that comes when another has gone is not turned away.
        let next = if says { inner.read(now) } else { None };
        if comes {
            inner.admit(now);
        }
        inner.tell(now);
        next
    }

    fn refused(&mut self, now: Time, why: &Refused) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Where all was well there is nothing to tell apart.
        if matches!(why, Refused::OneClass(_)) {
            return;
        }
        inner.refusals.add(now, why.to_string());
    }

    fn decides(&mut self, now: Time, does: bool, age_limit: Span) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.decides = (does, age_limit);
        inner.turns.goes_on(now);
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
        let mut desk = Desk::open(&path, None, |_| {}).expect("free");
        let mode = std::fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(matches!(Desk::open(&path, None, |_| {}), Err(Error::Taken { .. })));
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
    fn the_socket_is_of_the_learner_that_is_named() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("learn");
        let error = Desk::open(&path, Some("no such user"), |_| {}).err().expect("nobody").to_string();
        assert!(error.contains("no user") && !path.exists(), "{error}");
        let nobody = nix::unistd::User::from_name("nobody").expect("a list of users").expect("there is always nobody");
        match Desk::open(&path, Some("nobody"), |_| {}) {
            Ok(_desk) => {
                let there = std::fs::metadata(&path).expect("there");
                assert_eq!((there.uid(), there.mode() & 0o777), (nobody.uid.as_raw(), 0o600));
            }
            // Only root may give it away.
            Err(error) => assert!(!nix::unistd::geteuid().is_root() && error.to_string().contains("cannot"), "{error}"),
        }
    }

    #[test]
    fn a_socket_that_was_left_behind_is_taken_over() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("learn");
        let left = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
        bind(left.as_raw_fd(), &UnixAddr::new(&path).expect("a short path")).expect("free");
        drop(left);
        assert!(Desk::open(&path, None, |_| {}).is_ok());
    }
}
