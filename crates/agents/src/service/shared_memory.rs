//! Words in memory that eBPF programs and user space share.

use std::sync::atomic::{AtomicU32, AtomicU64};

/// A word of a skeleton's data.
pub(crate) fn shared(word: &u64) -> &AtomicU64 {
    // SAFETY: the word lies in memory that the map shares with the kernel for as long as the skeleton lives, aligned to 8,
    // and every access on this side is atomic.
    unsafe { AtomicU64::from_ptr(std::ptr::from_ref(word).cast_mut()) }
}

/// As [`shared`], of 32 bits.
pub(crate) fn shared32(word: &u32) -> &AtomicU32 {
    // SAFETY: as for `shared`, aligned to 4.
    unsafe { AtomicU32::from_ptr(std::ptr::from_ref(word).cast_mut()) }
}
