//! What a cell's control channel shows to a terminal that decodes it whole, and what a receiver tells of its capacity.
//! Source:     3GPP TS 36.212 section 5.3.3 (DCI), 36.213 section 7.1.
//!
//! A PRB here is a pair: 12 subcarriers for the two slots of a subframe.

use lasthop_units::Rate;

/// Radio network temporary identifier: a terminal's number in one cell.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Rnti(pub u16);

/// The downlink control information of one carrier in one subframe.
#[derive(Clone, PartialEq, Debug)]
pub struct CellSubframe {
    /// The carrier, from 0 in the order in which they are activated.
    pub carrier: u8,
    /// Counts subframes.
    pub number: u64,
    /// PRB pairs of the carrier: up to 110 in LTE, 275 in NR.
    pub prb: u16,
    /// The number that the terminal itself has there; `None` while the carrier is not activated for it.
    pub own: Option<Rnti>,
    /// What was decoded, in no order.
    pub dcis: Vec<Dci>,
}

/// One downlink assignment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Dci {
    /// To which terminal.
    pub rnti: Rnti,
    /// PRB pairs that it is given.
    pub prb: u16,
    /// Its HARQ process.
    pub process: u8,
    /// A block for each layer that is used.
    pub blocks: [Option<Block>; 2],
}

/// The most bits of a block in a PRB pair: 12 subcarriers, 14 symbols, 8 bits (256QAM), 4 layers (3GPP TS 36.211 sections 6.2 and 6.3.3.2).
const MOST_BITS: u32 = 12 * 14 * 8 * 4;

impl Dci {
    /// False if it gives nothing, or a block is longer than its PRBs can carry: then it was not decoded rightly.
    pub fn is_possible(&self) -> bool {
        let most = u32::from(self.prb) * MOST_BITS;
        self.prb > 0 && self.blocks.iter().flatten().all(|block| block.bits <= most)
    }
}

/// A transport block as its assignment describes it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Block {
    /// MCS index: 29 to 31 (28 to 31 with 256QAM) are reserved, and stand for a repeat with the size of the first.
    pub mcs: u8,
    /// Redundancy version, 0 to 3. A block is sent for the first time with 0.
    pub redundancy: u8,
    /// New-data indicator: the bit changes with each new block of a process.
    pub new_data: bool,
    /// Its size in bits; 0 where the decoder cannot tell.
    pub bits: u32,
}

impl Block {
    /// True if the block was sent before: by its redundancy version, or by an MCS that is reserved in both tables.
    pub const fn is_repeat(self) -> bool {
        self.redundancy != 0 || self.mcs >= 29
    }
}

/// What a receiver tells of its cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CellCapacity {
    /// What the transport can have now; zero: it is not known.
    pub available: Rate,
    /// What it can have at least, once it asks: its fair share.
    pub fair: Rate,
    /// The narrowest place of the path is not the cell.
    pub elsewhere: bool,
    /// A carrier has come within the last round trip: the sender begins anew when this becomes true.
    pub restart: bool,
    /// The rate of a PRB is that of other terminals: this one has been given none lately.
    pub coarse: bool,
}

impl CellCapacity {
    /// What a receiver tells that does not know, or does not know any more: its capacity is zero.
    pub const UNKNOWN: CellCapacity =
        CellCapacity { available: Rate::ZERO, fair: Rate::ZERO, elsewhere: false, restart: false, coarse: true };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_no_longer_than_its_prbs_can_carry() {
        let dci = |prb, bits| {
            let block = Block { mcs: 27, redundancy: 0, new_data: true, bits };
            Dci { rnti: Rnti(100), prb, process: 0, blocks: [None, Some(block)] }
        };
        // Four layers of 168 resource elements of 8 bits.
        assert!(dci(1, 5376).is_possible() && !dci(1, 5377).is_possible());
        assert!(dci(275, 275 * 5376).is_possible() && !dci(275, u32::MAX).is_possible());
        assert!(!dci(0, 0).is_possible(), "it gives nothing");
    }
}
