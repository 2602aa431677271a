//! A driver with one station and nothing to say of it, 250 times a second.

use lasthop_signals::{HopReport, Node, StationReport};
use lasthop_units::Time;
use lasthop_wire::driver::{self, Record};
use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, SockFlag, SockType, UnixAddr, accept4, bind, listen, send, socket,
};
use nix::time::{ClockId, clock_gettime};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Listens and reports until dropped.
pub struct IdleDriver {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl IdleDriver {
    /// Listens at `path`; `station` is the MAC address of station 1.
    pub fn listen(path: &Path, station: [u8; 6]) -> IdleDriver {
        let fd = listening(path);
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = Some(std::thread::spawn(move || report(&fd, station, &seen)));
        IdleDriver { stop, thread }
    }
}

impl Drop for IdleDriver {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Listens for agents at `path`, without waiting for any.
pub fn listening(path: &Path) -> OwnedFd {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None).expect("a socket");
    bind(fd.as_raw_fd(), &UnixAddr::new(path).expect("a short path")).expect("a free path");
    listen(&fd, Backlog::new(8).expect("a small backlog")).expect("listening");
    fd
}

/// An agent that waits to be let in, if one does.
pub fn admitted(listener: &OwnedFd) -> Option<OwnedFd> {
    let fd = accept4(listener.as_raw_fd(), SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK).ok()?;
    // SAFETY: a fresh descriptor, owned by nobody else.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sends a record to the readers that keep up; the others miss it. Forgets readers that have gone.
pub fn tell(readers: &mut Vec<OwnedFd>, record: &[u8]) {
    let gone = |error| matches!(error, nix::Error::EPIPE | nix::Error::ECONNRESET);
    readers.retain(|reader| !send(reader.as_raw_fd(), record, MsgFlags::MSG_NOSIGNAL).is_err_and(gone));
}

/// What it says now: nothing of one station but its MAC address.
pub fn idle_record(station: [u8; 6]) -> Vec<u8> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("always there");
    let at = Time::from_nanos(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64);
    let report = HopReport { stations: vec![StationReport::unseen(Node(1))], ..HopReport::default() };
    driver::encode(&Record { at, report, addresses: [(Node(1), station)].into() }).expect("one station")
}

fn report(listener: &OwnedFd, station: [u8; 6], stop: &AtomicBool) {
    let mut readers: Vec<OwnedFd> = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        readers.extend(admitted(listener));
        tell(&mut readers, &idle_record(station));
        std::thread::sleep(Duration::from_millis(4));
    }
}
