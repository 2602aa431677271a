//! A driver that lies: it stands between the lab's driver and the agent, and changes what is said.

use crate::support::driver::{admitted, listening, tell};
use lasthop_units::{Rate, Span};
use lasthop_wire::driver::{self, MAX_LEN, Record};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr, connect, recv, socket};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// What is said instead of the truth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lie {
    /// Busy time is 100 s more than it is, in one record of ten.
    BusyJumps,
    /// All times jump ahead by 100 s, ten times a second.
    TimeJumps,
    /// Channel and busy time grow three times as fast as the clock.
    TimeRuns,
    /// Busy time stands still.
    BusyStands,
    /// The station is listed twice.
    Twice,
    /// The PHY rate is 6 Mbit/s.
    SlowRate,
    /// Every other message is noise.
    Noise,
    /// Every other record lacks its last 40 octets.
    CutShort,
}

/// Passes on records until dropped.
pub struct Liar {
    stop: Arc<AtomicBool>,
    lie: Arc<Mutex<Option<Lie>>>,
    thread: Option<JoinHandle<()>>,
}

impl Liar {
    /// Between the driver at `radio` and agents that look for one at `path`.
    pub fn between(radio: &Path, path: &Path) -> Liar {
        let driver = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
        connect(driver.as_raw_fd(), &UnixAddr::new(radio).expect("a short path")).expect("the lab's driver");
        let listener = listening(path);
        let (stop, lie) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(None)));
        let (seen, told) = (Arc::clone(&stop), Arc::clone(&lie));
        let thread = Some(std::thread::spawn(move || relay(&driver, &listener, &told, &seen)));
        Liar { stop, lie, thread }
    }

    /// What is said from now on; `None` is the truth.
    pub fn tell(&self, lie: Option<Lie>) {
        *self.lie.lock().unwrap_or_else(PoisonError::into_inner) = lie;
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

fn relay(driver: &OwnedFd, listener: &OwnedFd, lie: &Mutex<Option<Lie>>, stop: &AtomicBool) {
    let (mut readers, mut buffer) = (Vec::new(), vec![0; MAX_LEN]);
    let mut lying: Option<Lying> = None;
    while !stop.load(Ordering::Relaxed) {
        let mut fds =
            [PollFd::new(driver.as_fd(), PollFlags::POLLIN), PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
        let _ = poll(&mut fds, PollTimeout::from(50u8));
        readers.extend(admitted(listener));
        let Ok(len) = recv(driver.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT) else { continue };
        if len == 0 {
            return;
        }
        let wanted = *lie.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(wanted) = wanted else {
            lying = None;
            tell(&mut readers, &buffer[..len]);
            continue;
        };
        let record = driver::decode(&buffer[..len]).expect("the lab's driver tells the truth");
        let lying = lying.get_or_insert_with(|| Lying { first: record.clone(), number: 0 });
        tell(&mut readers, &lying.instead_of(wanted, record));
    }
}

/// A lie that is being told.
struct Lying {
    /// The record with which it began.
    first: Record,
    /// Records since.
    number: u64,
}

/// What times jump by.
const JUMP: Span = Span::from_secs(100);
/// Records between two jumps ahead: a tenth of a second.
const PERIOD: u64 = 25;

impl Lying {
    fn instead_of(&mut self, lie: Lie, mut record: Record) -> Vec<u8> {
        self.number += 1;
        let (first, number) = (&self.first.report.channel, self.number);
        let channel = &mut record.report.channel;
        let odd = number % 2 == 1;
        match lie {
            Lie::BusyJumps if number.is_multiple_of(10) => channel.busy = channel.busy.map(|busy| busy + JUMP),
            Lie::BusyJumps => {}
            Lie::TimeJumps => {
                let ahead = JUMP * number.div_ceil(PERIOD);
                channel.active += ahead;
                channel.busy = channel.busy.map(|busy| busy + ahead);
            }
            Lie::TimeRuns => {
                let fast = |from: Span, to: Span| from + to.saturating_sub(from) * 3;
                channel.active = fast(first.active, channel.active);
                channel.busy = channel.busy.zip(first.busy).map(|(busy, from)| fast(from, busy));
            }
            Lie::BusyStands => channel.busy = first.busy,
            Lie::Twice => {
                let again = record.report.stations.clone();
                record.report.stations.extend(again);
            }
            Lie::SlowRate => {
                record.report.stations.iter_mut().for_each(|station| station.phy_rate = Rate::from_mbit(6));
            }
            Lie::Noise if odd => return noise(number),
            Lie::CutShort if odd => {
                let mut message = driver::encode(&record).expect("few stations");
                message.truncate(message.len() - 40);
                return message;
            }
            Lie::Noise | Lie::CutShort => {}
        }
        driver::encode(&record).expect("few stations")
    }
}

/// Octets that mean nothing, others each time (the generator is Marsaglia's xorshift).
pub fn noise(seed: u64) -> Vec<u8> {
    let mut word = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let octet = std::iter::repeat_with(|| {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        word as u8
    });
    octet.take(96 + (seed % 64) as usize).collect()
}
