//! The program's table of flows, as memory that it shares with user space.
//!
//! Packets change it at any moment, so every access is atomic by word. A flow is read word by word: its fields may be of
//! moments a few nanoseconds apart, its identity may not. User space writes targets, and clears ways under a set's lock.

use super::abi::{Entry, Key, Set, from_bytes};
use lasthop_laws::oal::rwnd::Flow;
use lasthop_laws::oal::rwnd::ways::WAYS;
use lasthop_units::Time;
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A place in the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Slot(pub u32);

/// The table, mapped.
pub(super) struct Table {
    start: NonNull<u8>,
    len: usize,
    sets: u32,
}

// SAFETY: the memory belongs to no thread, and every access is atomic.
unsafe impl Send for Table {}

/// Words of an entry.
const WORDS: usize = size_of::<Entry>() / 8;
/// Times that a flow is read again which changed hands meanwhile.
const PATIENCE: usize = 3;

impl Table {
    /// Maps the table of `sets` sets behind `map`.
    pub(super) fn map(map: BorrowedFd<'_>, sets: u32) -> io::Result<Table> {
        let len = sets as usize * size_of::<Set>();
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping of a descriptor that is open; the kernel chooses where.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, access, libc::MAP_SHARED, map.as_raw_fd(), 0) };
        match NonNull::new(start.cast()).filter(|_| start != libc::MAP_FAILED) {
            Some(start) => Ok(Table { start, len, sets }),
            None => Err(io::Error::last_os_error()),
        }
    }

    /// Places that are taken, in order.
    pub(super) fn taken(&self) -> impl Iterator<Item = Slot> + '_ {
        (0..self.sets * WAYS as u32).map(Slot).filter(|slot| self.is_taken(*slot))
    }

    pub(super) fn is_taken(&self, slot: Slot) -> bool {
        self.tag(slot).load(Ordering::Acquire) != 0
    }

    /// Tick of the newest packet.
    pub(super) fn used(&self, slot: Slot) -> u32 {
        self.word32(slot, offset_of!(Set, used) + 4 * way(slot)).load(Ordering::Acquire)
    }

    /// What stands in a place; `None` if nothing does.
    pub(super) fn read(&self, slot: Slot) -> Option<(Key, Flow)> {
        for _ in 0..PATIENCE {
            let tag = self.tag(slot).load(Ordering::Acquire);
            if tag == 0 {
                return None;
            }
            let mut bytes = [0; size_of::<Entry>()];
            for (at, octets) in bytes.chunks_exact_mut(8).enumerate() {
                octets.copy_from_slice(&self.word(slot, at).load(Ordering::Relaxed).to_ne_bytes());
            }
            std::sync::atomic::fence(Ordering::Acquire);
            let entry: Entry = from_bytes(&bytes)?;
            if self.tag(slot).load(Ordering::Relaxed) == tag && self.born(slot) == entry.flow.born() {
                return Some((entry.key, entry.flow));
            }
        }
        None
    }

    /// True if the connection that was born then is still there.
    pub(super) fn holds(&self, slot: Slot, born: Time) -> bool {
        self.is_taken(slot) && self.born(slot) == born
    }

    /// Sets the target of the connection that was born then; false if it has gone.
    pub(super) fn set_target(&self, slot: Slot, born: Time, target: u32) -> bool {
        let is_there = || self.holds(slot, born);
        if !is_there() {
            return false;
        }
        let at = self.entry(slot) + offset_of!(Entry, flow) + Flow::TARGET_AT;
        self.word32(slot, at).store(target, Ordering::Relaxed);
        // If another connection has come between, it has a target that nobody meant for it: the agent sees it at its next
        // look, as any other new flow, and says what it shall be.
        is_there()
    }

    /// Clears a place if that connection is still there; the windows that were lowered in it. `None` if it was not, or
    /// if the program is at work on the same set.
    pub(super) fn forget(&self, slot: Slot, born: Time) -> Option<u32> {
        let lock = self.word32(slot, offset_of!(Set, lock));
        lock.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).ok()?;
        let there = self.read(slot).filter(|(_, flow)| flow.born() == born);
        if there.is_some() {
            self.tag(slot).store(0, Ordering::Release);
        }
        lock.store(0, Ordering::Release);
        there.map(|(_, flow)| flow.rewritten())
    }

    fn born(&self, slot: Slot) -> Time {
        let at = (offset_of!(Entry, flow) + Flow::BORN_AT) / 8;
        Time::from_nanos(self.word(slot, at).load(Ordering::Relaxed))
    }

    fn tag(&self, slot: Slot) -> &AtomicU32 {
        self.word32(slot, offset_of!(Set, tags) + 4 * way(slot))
    }

    /// Offset of a place in its set.
    fn entry(&self, slot: Slot) -> usize {
        offset_of!(Set, ways) + way(slot) * size_of::<Entry>()
    }

    fn word(&self, slot: Slot, at: usize) -> &AtomicU64 {
        assert!(at < WORDS);
        let place = self.place(slot, self.entry(slot) + 8 * at);
        // SAFETY: within the mapping, which lives as long as `self`, and aligned; every access is atomic.
        unsafe { AtomicU64::from_ptr(place.cast()) }
    }

    fn word32(&self, slot: Slot, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4));
        let place = self.place(slot, at);
        // SAFETY: within the mapping, which lives as long as `self`, and aligned; every access is atomic.
        unsafe { AtomicU32::from_ptr(place.cast()) }
    }

    fn place(&self, slot: Slot, at: usize) -> *mut u8 {
        let at = slot.0 as usize / WAYS * size_of::<Set>() + at;
        assert!(at + 8 <= self.len);
        // SAFETY: just checked.
        unsafe { self.start.as_ptr().add(at) }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, with this length; nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// Number of a place in its set.
fn way(slot: Slot) -> usize {
    slot.0 as usize % WAYS
}
