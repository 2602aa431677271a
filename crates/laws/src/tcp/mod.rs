//! Sender laws of classic TCP: what kernels run today, and the baselines of every comparison.

pub mod adaptive_pacing;
pub mod bbr;
pub mod copa;
pub mod cubic;
mod hystart;
pub mod newreno;
mod prr;
pub mod reno;
pub mod tahoe;
#[cfg(test)]
pub(crate) mod test_signals;
pub mod vegas;
pub mod vivace;
pub mod westwood;
mod window;

pub use adaptive_pacing::AdaptivePacing;
pub use bbr::Bbr;
pub use copa::Copa;
pub use cubic::Cubic;
pub use newreno::NewReno;
pub use reno::Reno;
pub use tahoe::Tahoe;
pub use vegas::Vegas;
pub use vivace::Vivace;
pub use westwood::Westwood;

use crate::{Choice, Entry, Place, SenderLaw};
use lasthop_units::{Bytes, Stream};

/// The congestion controls: one line a law.
pub const LAWS: &[Entry] = &[
    reno::LAW,
    cubic::LAW,
    bbr::LAW,
    vegas::LAW,
    copa::LAW,
    tahoe::LAW,
    newreno::CLASSIC_RENO,
    newreno::NEWRENO,
    newreno::SACK_RENO,
    adaptive_pacing::LAW,
    vivace::LAW,
    westwood::LAW,
];

/// Those that Linux has too, by the same names. No kernel has the others.
pub const LINUX: [&str; 5] = ["reno", "cubic", "bbr", "vegas", "westwood"];

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

/// A new instance of the law called `name`, nothing set; `None` if there is no such law.
pub fn by_name(name: &str, setup: Setup) -> Option<Box<dyn SenderLaw>> {
    Choice::of(Place::Sender.law(name)?).sender(setup).ok()
}
