//! Numbers of a cell: of time, terminals, and what the standard limits.

use lasthop_signals::{Node, Rnti};
use lasthop_units::{Span, Stream, Time};
use rand::Rng;

/// A subframe.
pub(super) const SUBFRAME: Span = Span::from_millis(1);

/// The base station.
pub(super) const BASE: Node = Node(0);
/// RNTIs that terminals may have (36.321 table 7.1-1).
pub(super) const RNTIS: (u16, u16) = (0x003d, 0xfff3);

/// The most carriers that a terminal can use at once (36.331: five serving cells).
pub const MOST_CARRIERS: usize = 5;

/// PRB pairs of a block of signalling.
pub(super) const CONTROL_PRB: u8 = 4;

/// When a subframe begins.
pub(super) fn at(boundary: u64) -> Time {
    Time::ZERO + SUBFRAME * boundary
}

/// The numbers of terminals, in order.
pub(super) fn rnti(place: usize) -> Rnti {
    let place = u16::try_from(place).expect("a plan has at most 1023 stations with 50 handovers each and 1000 sources");
    Rnti(RNTIS.0 + place)
}

/// Between 0 and 1, never either.
pub(super) fn uniform(stream: &mut Stream) -> f64 {
    ((stream.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}
