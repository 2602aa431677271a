//! What every sender law is told when it is created.

use lasthop_units::{Bytes, Stream};

/// What every sender law is told when it is created.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Payload of a full segment, until the first ACK tells what was agreed.
    pub mss: Bytes,
    /// Initial window in segments (RFC 6928: 10).
    pub initial_segments: u32,
    /// Links on the way to the peer, as routes say when the connection begins; 1 where nobody knows.
    pub hops: u32,
    /// Where the law draws its random choices from.
    pub random: Stream,
}

impl Setup {
    /// Segments of `mss`, the usual initial window of 10 segments, randomness from `random`.
    pub fn new(mss: Bytes, random: Stream) -> Setup {
        Setup { mss, initial_segments: 10, hops: 1, random }
    }

    pub(crate) fn initial_window(&self) -> Bytes {
        self.mss * u64::from(self.initial_segments.max(1))
    }
}
