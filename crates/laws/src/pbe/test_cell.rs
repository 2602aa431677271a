//! Subframes for the unit tests of the laws in this room.

use lasthop_signals::{Block, CellSubframe, Dci, Rnti};

/// The terminal itself.
pub(super) const OWN: Rnti = Rnti(100);
/// 3GPP TS 36.213, table 7.1.7.2.1-1: MCS 28 (I_TBS 26), 100 PRB.
pub(super) const FULL: u32 = 75_376;

/// `prb` PRB pairs for a new block of `bits`.
pub(super) fn dci(rnti: Rnti, prb: u16, bits: u32) -> Dci {
    let block = Block { mcs: 28, redundancy: 0, new_data: true, bits };
    Dci { rnti, prb, process: 0, blocks: [Some(block), None] }
}

/// The same for a block that is sent again.
pub(super) fn repeat(rnti: Rnti, prb: u16) -> Dci {
    let block = Block { mcs: 29, redundancy: 2, new_data: true, bits: 0 };
    Dci { rnti, prb, process: 0, blocks: [Some(block), None] }
}

/// A subframe of the first carrier, of 100 PRB.
pub(super) fn subframe(number: u64, dcis: Vec<Dci>) -> CellSubframe {
    CellSubframe { carrier: 0, number, prb: 100, own: Some(OWN), dcis }
}
