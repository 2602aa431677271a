//! What an end of a session knows of cells.

use lasthop_laws::Why;
use lasthop_signals::CellCapacity;
use lasthop_units::{Bytes, Rate};

/// What is told of cells, either way.
#[derive(Clone, Debug, Default)]
pub(super) struct Cells {
    /// What this end tells.
    pub(super) tells: Option<CellCapacity>,
    /// What the other end has told last, and in which packet.
    pub(super) heard: Option<(u64, CellCapacity)>,
    /// This end goes by it.
    pub(super) followed: bool,
}

/// What an end goes by that is told of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellFigures {
    /// What the other end has told last; [`CellCapacity::UNKNOWN`] before it has.
    pub told: CellCapacity,
    /// How fast IP packets leave.
    pub rate: Rate,
    /// Octets of IP packets that may be in the network.
    pub window: Bytes,
    /// Why.
    pub why: Why,
}
