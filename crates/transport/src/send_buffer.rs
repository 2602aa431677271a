//! The send buffer of a socket: how far an application that always has more can write ahead of what is acknowledged.
//! Source:     Linux 6.18, `tcp_sendmsg_locked`, `sk_stream_is_writeable` and `tcp_stream_alloc_skb`, for a connection
//!             paced below some 24 Mbit/s, with packets that go to the interface two segments at a time
//!             (`tcp_tso_autosize`).
//! Equations:  memory = payload + 960 octets for each two segments;   full at memory >= size, open again at memory <= 2/3 size
//! Deviations: segments that are paced faster share a buffer's head with more others, and would take less.
//! Validity:   sizes of many segments.     Checked by: tests::*, `crates/sim/tests/integration/recorded.rs`

use lasthop_units::Bytes;

/// What the kernel counts for a packet beside its payload: `SKB_TRUESIZE` of a head for TCP's headers.
const HEAD: u64 = 960;
/// Segments that share it.
const SEGMENTS: u64 = 2;

/// The buffer of one socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendBuffer {
    /// Payload that fills it.
    payload: u64,
    /// Where that ends which has been written.
    written: u64,
}

impl SendBuffer {
    /// A buffer of `size`, memory overhead included, for segments of `mss`, of which nothing is written.
    pub fn new(size: Bytes, mss: u64) -> SendBuffer {
        let pair = SEGMENTS * mss;
        let payload = u128::from(size.get()) * u128::from(pair) / u128::from(pair + HEAD);
        SendBuffer { payload: u64::try_from(payload).unwrap_or(u64::MAX).max(1), written: 0 }
    }

    /// Everything up to `una` is acknowledged. Where that ends which is written now.
    pub fn written(&mut self, una: u64) -> u64 {
        // A writer that was stopped by a full buffer is woken when a third of it is free.
        if self.written.saturating_sub(una) <= self.payload / 3 * 2 {
            self.written = una + self.payload;
        }
        self.written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_fills_it_and_waits_until_a_third_is_free() {
        // Two segments of 1448 take 3856 octets of memory.
        let mut buffer = SendBuffer::new(Bytes::new(3_856 * 300), 1_448);
        let full = 2 * 1_448 * 300;
        assert_eq!(buffer.written(0), full);
        assert_eq!(buffer.written(full / 3 - 1), full, "less than a third is free");
        assert_eq!(buffer.written(full / 3), full / 3 + full);
    }
}
