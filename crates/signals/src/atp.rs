//! What an ATP receiver tells its sender.

use lasthop_units::Span;

/// The slowest hop of a path, as its receiver knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathDelay {
    /// Its delay, averaged over packets.
    pub average: Span,
    /// How long it is until the receiver tells the next time.
    pub epoch: Span,
}
