//! The program's ring of events, read.

use super::abi::{Event, from_bytes};
use crate::service::Error;
use libbpf_rs::{AsRawLibbpf, MapCore, RingBuffer, RingBufferBuilder, libbpf_sys};
use std::sync::{Arc, Mutex, PoisonError};

/// Octets of the ring where a law wants segments: some 8 700 events. A hop of 1 Gbit/s that loses all makes 350 in an interval of 4 ms.
pub(super) const RING_LEN: u32 = 1 << 20;

/// Events that the ring holds, with 8 octets of the kernel's before each.
const MOST: usize = RING_LEN as usize / (size_of::<Event>() + 8);

/// Times that the ring is read again while an event in it is still being written: that takes a processor less than a microsecond.
const PATIENCE: usize = 64;

/// A reader of the ring.
pub(super) struct Events {
    ring: RingBuffer<'static>,
    read: Arc<Mutex<Vec<Event>>>,
}

impl Events {
    pub(super) fn open(map: &dyn MapCore) -> Result<Events, Error> {
        let read = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&read);
        let mut builder = RingBufferBuilder::new();
        let keep = move |bytes: &[u8]| {
            kept.lock().unwrap_or_else(PoisonError::into_inner).extend(from_bytes::<Event>(bytes));
            0
        };
        builder.add(map, keep).map_err(Error::map)?;
        Ok(Events { ring: builder.build().map_err(Error::map)?, read })
    }

    /// Takes all events that had begun to be written when it was called; false if one of them is not written to its end by now.
    pub(super) fn take(&self, into: &mut Vec<Event>) -> Result<bool, Error> {
        // SAFETY: the ring lives as long as `self`, and has one map, number 0.
        let ring = unsafe { libbpf_sys::ring_buffer__ring(self.ring.as_libbpf_object().as_ptr(), 0) };
        // SAFETY: as above; both only read positions that the kernel shares.
        let (begun, taken) =
            (|| unsafe { libbpf_sys::ring__producer_pos(ring) }, || unsafe { libbpf_sys::ring__consumer_pos(ring) });
        let wanted = begun();
        let mut all = false;
        for _ in 0..PATIENCE {
            // No more than the ring holds, however fast it fills again.
            let failed = self.ring.consume_raw_n(MOST);
            if failed < 0 {
                return Err(Error::map(libbpf_rs::Error::from_raw_os_error(-failed)));
            }
            // The positions wrap where a long has 32 bits.
            all = taken().wrapping_sub(wanted).cast_signed() >= 0;
            if all {
                break;
            }
            std::hint::spin_loop();
        }
        into.append(&mut self.read.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(all)
    }
}
