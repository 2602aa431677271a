//! Sender laws of classic TCP: what kernels run today, and the baselines of every comparison.

pub mod adaptive_pacing;
pub mod bbr;
pub mod copa;
pub mod cubic;
mod hystart;
pub mod newreno;
mod prr;
pub mod reno;
pub mod setup;
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
pub use setup::Setup;
pub use tahoe::Tahoe;
pub use vegas::Vegas;
pub use vivace::Vivace;
pub use westwood::Westwood;

use crate::Entry;

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
