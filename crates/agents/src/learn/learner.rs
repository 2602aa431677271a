//! The other process: reads lessons, trains each second, sends trees.

use super::{Error, MESSAGE_MAX};
use crate::service::backoff::Backoff;
use crate::service::clock::monotonic_now;
use crate::service::{Say, Stop, privileges};
use lasthop_laws::oal::learned::RETRAIN;
use lasthop_laws::oal::lesson::{LESSON_LEN, Lesson, School};
use lasthop_laws::oal::trainer::{Growth, Trainer};
use lasthop_laws::oal::tree::Tree;
use lasthop_units::{Span, Time};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr, connect, recv, send, socket};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// How a learner runs.
#[derive(Clone, Debug)]
pub struct Config {
    /// The agent's socket (`lasthop ap --learn`).
    pub socket: PathBuf,
    /// Where the newest tree is kept, if anywhere.
    pub out: Option<PathBuf>,
    /// Splits on the longest way of a tree.
    pub depth: u32,
    /// Receives messages about what happens.
    pub say: Say,
}

/// What a learner has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Lessons that it has had.
    pub lessons: u64,
    /// Messages that were no lessons.
    pub refused: u64,
    /// Trees that it has sent.
    pub trees: u64,
    /// The longest that training has taken.
    pub longest_training: Span,
}

/// The longest that is waited for a lesson: so soon a stop is seen.
const BREATH: Span = Span::from_millis(50);
/// Messages read in one turn.
const BUDGET: usize = 1024;

/// Learns until `stop` is asked. Gives up every privilege first. An agent that is not there, or goes, is waited for.
///
/// # Errors
/// [`Error::Out`], [`Error::Service`].
pub fn run(config: &Config, stop: &Stop) -> Result<Summary, Error> {
    privileges::drop_all(None)?;
    if nix::unistd::geteuid().is_root() {
        (config.say)(
            "learning as root, without capabilities: `lasthop ap --learner USER` lets another user's `lasthop learn` in",
        );
    }
    let mut school = School::new(Trainer::new(Growth { depth: config.depth, ..Growth::default() }));
    let mut summary = Summary::default();
    let (mut agent, mut backoff, mut trained) = (None, Backoff::new(), monotonic_now());
    let mut waits = false;
    while !stop.is_asked() {
        let Some(socket) = &agent else {
            if backoff.may_try(monotonic_now()) {
                agent = reach(&config.socket).ok();
                match &agent {
                    Some(_) => (config.say)(&format!("the agent at {} is connected", config.socket.display())),
                    None if !waits => (config.say)(&format!("no agent at {} yet: waiting", config.socket.display())),
                    None => {}
                }
                waits = agent.is_none();
            }
            if agent.is_none() {
                std::thread::sleep(backoff.next().since(monotonic_now()).min(BREATH).into());
            }
            continue;
        };
        if hear(socket, &mut school, &mut summary).is_err() {
            agent = None;
            (config.say)("the agent has gone");
            continue;
        }
        backoff.succeeded();
        let began = monotonic_now();
        if began.since(trained) < RETRAIN {
            continue;
        }
        trained = began;
        // Milliseconds of the clock: a learner that comes after another goes on above its numbers.
        let Some((newest, tree)) = school.train(began.as_nanos() / 1_000_000) else { continue };
        summary.longest_training = summary.longest_training.max(monotonic_now().since(began));
        if tell(socket, newest, &tree) {
            summary.trees += 1;
        }
        if let Some(out) = &config.out {
            keep(out, &tree).map_err(|source| Error::Out { path: out.clone(), source })?;
        }
    }
    Ok(summary)
}

fn reach(path: &Path) -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)?;
    connect(fd.as_raw_fd(), &UnixAddr::new(path)?)?;
    Ok(fd)
}

/// Waits for lessons and takes them in; an error if the agent has gone.
fn hear(socket: &OwnedFd, school: &mut School, summary: &mut Summary) -> io::Result<()> {
    let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    match poll(&mut fds, PollTimeout::from((BREATH.as_nanos() / 1_000_000) as u16)) {
        Ok(0) | Err(nix::Error::EINTR) => return Ok(()),
        Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    let mut buffer = [0; LESSON_LEN + 1];
    for _ in 0..BUDGET {
        match recv(socket.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT) {
            Ok(0) => return Err(io::ErrorKind::ConnectionReset.into()),
            Ok(len) => match Lesson::decode(&buffer[..len]) {
                Ok(lesson) => {
                    school.hear(lesson);
                    summary.lessons += 1;
                }
                Err(_) => summary.refused += 1,
            },
            Err(nix::Error::EAGAIN | nix::Error::EINTR) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Sends a tree; false if the agent does not take it.
fn tell(socket: &OwnedFd, newest: Time, tree: &Tree) -> bool {
    let mut message = newest.as_nanos().to_be_bytes().to_vec();
    message.extend_from_slice(&tree.encode());
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
    message.len() <= MESSAGE_MAX && send(socket.as_raw_fd(), &message, flags).is_ok()
}

/// Writes a tree beside its place, and puts it there whole.
fn keep(path: &Path, tree: &Tree) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    std::fs::write(&beside, tree.encode())?;
    std::fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use super::super::Desk;
    use super::*;
    use lasthop_laws::oal::features::FEATURES;
    use lasthop_laws::oal::learned::Elsewhere as _;
    use lasthop_laws::oal::predictor::LossClass;

    fn lesson(n: u64) -> Lesson {
        let class = if n.is_multiple_of(2) { LossClass::Bad } else { LossClass::Good };
        let mut features = [f32::NAN; FEATURES.len()];
        features[0] = if n.is_multiple_of(2) { 100.0 } else { 1.0 };
        Lesson { until: Time::from_nanos(n), abstained: false, class, features }
    }

    /// Hands lessons over, as an agent does each interval, until a tree comes back.
    fn tree(desk: &mut Desk, from: u64) -> (Time, Tree) {
        for n in from..from + 30_000 {
            if let Some((newest, bytes)) = desk.tree(monotonic_now()) {
                return (newest, Tree::decode(&bytes).expect("a tree"));
            }
            desk.hand(&lesson(n));
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        panic!("no tree");
    }

    #[test]
    fn a_new_learner_continues_from_the_newest_kept_tree() {
        let dir = tempfile::tempdir().expect("a directory");
        let (socket, out) = (dir.path().join("learn"), dir.path().join("tree"));
        let config = Config { socket: socket.clone(), out: Some(out.clone()), depth: 16, say: |_| {} };
        let mut desk = None;
        let mut last = 0;
        for round in 0..2 {
            let stop = Stop::new();
            std::thread::scope(|scope| {
                // The first learner comes before the agent, and waits for it.
                let learner = scope.spawn(|| run(&config, &stop));
                let desk = desk.get_or_insert_with(|| Desk::open(&socket, None, |_| {}).expect("free"));
                let (newest, tree) = tree(desk, 1 + round * 100_000);
                let says = |n| tree.classify(&lesson(n).features);
                assert_eq!((says(0), says(1)), (LossClass::Bad, LossClass::Good));
                assert!(newest > Time::ZERO && tree.version() > last, "{} after {last}", tree.version());
                last = tree.version();
                stop.ask();
                let summary = learner.join().expect("no panic").expect("it could write");
                assert!(summary.trees >= 1 && summary.refused == 0 && summary.lessons >= 40, "{summary:?}");
            });
            let kept = Tree::decode(&std::fs::read(&out).expect("kept")).expect("whole");
            assert!(kept.version() >= last);
        }
    }

    #[test]
    fn messages_that_are_no_lessons_are_counted_and_cost_nothing() {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let (here, there) =
            nix::sys::socket::socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags).expect("a pair");
        let mut school = School::new(Trainer::new(Growth::default()));
        let mut summary = Summary::default();
        for message in [&b"nonsense"[..], &lesson(1).encode(), &[7; 4000], &lesson(2).encode()[..LESSON_LEN - 1]] {
            send(there.as_raw_fd(), message, MsgFlags::empty()).expect("room");
        }
        hear(&here, &mut school, &mut summary).expect("the other end is there");
        assert_eq!((summary.lessons, summary.refused), (1, 3));
        drop(there);
        assert!(hear(&here, &mut school, &mut summary).is_err());
    }
}
