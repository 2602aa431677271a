//! What is on the air of a carrier, and what must be sent again.
//! Source:     3GPP TS 36.213 section 7.1.7 (reserved MCS), 36.321 section 5.3.2 (processes, new data indicator, redundancy
//!             versions 0, 2, 3, 1).
//! Equations:  process = subframe mod 8;   a repeat follows 8 subframes after the block that failed
//! Deviations: downlink HARQ may repeat later than after 8 subframes and elsewhere; here it keeps to the time and to the number
//!             of PRBs, as most base stations do and as Xie et al. (2020) count. Acknowledgements are never damaged.
//! Checked by: tests::*, tests/integration/cell.rs

use super::mcs::{Mcs, Tables};
use lasthop_signals::{Block, Dci, Rnti};
use std::collections::VecDeque;

/// Processes of a terminal on a carrier, and subframes from a block to its repeat.
pub(super) const PROCESSES: u64 = 8;
/// A block is sent at most so often again.
pub(super) const MOST_REPEATS: u8 = 3;
/// Redundancy versions of a block and of its repeats.
const REDUNDANCY: [u8; 1 + MOST_REPEATS as usize] = [0, 2, 3, 1];

/// One carrier's blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct Harq {
    /// Assignments in the order of their subframes.
    pub air: VecDeque<Assignment>,
    /// Assignments that failed, with the subframes of their repeats, in that order.
    pub repeats: VecDeque<Assignment>,
}

/// What a terminal is sent in a subframe.
#[derive(Clone, Copy, Debug)]
pub(super) struct Assignment {
    pub subframe: u64,
    /// Its place among terminals; `None` for one that is there for this block only.
    pub terminal: Option<u16>,
    pub rnti: Rnti,
    pub prb: u8,
    pub blocks: [Option<Sent>; 2],
}

/// A block on the air.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// Of its content; of no use for a terminal that is there for this block only.
    pub sequence: u64,
    pub bits: u32,
    pub mcs: Mcs,
    pub tables: Tables,
    pub new_data: bool,
    pub repeats: u8,
}

impl Harq {
    /// Assignments of a subframe. Those of earlier ones have been taken off.
    pub fn in_subframe(&self, subframe: u64) -> impl Iterator<Item = &Assignment> {
        self.air.iter().take_while(move |sent| sent.subframe == subframe)
    }

    /// Takes the next assignment off the air that was sent in `subframe`.
    pub fn landed(&mut self, subframe: u64) -> Option<Assignment> {
        self.air.front().filter(|sent| sent.subframe == subframe)?;
        self.air.pop_front()
    }

    /// Notes that these blocks of an assignment have failed and are repeated.
    pub fn repeat(&mut self, assignment: Assignment, failed: [Option<Sent>; 2]) {
        let again = |sent: Sent| Sent { repeats: sent.repeats + 1, ..sent };
        let blocks = failed.map(|sent| sent.map(again));
        self.repeats.push_back(Assignment { subframe: assignment.subframe + PROCESSES, blocks, ..assignment });
    }

    /// Takes the next repeat out that is due in `subframe`.
    pub fn due(&mut self, subframe: u64) -> Option<Assignment> {
        self.repeats.front().filter(|repeat| repeat.subframe == subframe)?;
        self.repeats.pop_front()
    }

    /// Forgets all assignments of the terminal at `place`, those on the air too.
    pub fn forget(&mut self, place: u16) {
        self.air.retain(|sent| sent.terminal != Some(place));
        self.repeats.retain(|repeat| repeat.terminal != Some(place));
    }

    pub fn is_empty(&self) -> bool {
        self.air.is_empty() && self.repeats.is_empty()
    }
}

impl Assignment {
    /// As the control channel has it.
    pub fn dci(&self) -> Dci {
        let process = (self.subframe % PROCESSES) as u8;
        Dci {
            rnti: self.rnti,
            prb: u16::from(self.prb),
            process,
            blocks: self.blocks.map(|sent| sent.map(Sent::block)),
        }
    }
}

impl Sent {
    /// As the control channel has it: of a repeat it tells the modulation only.
    fn block(self) -> Block {
        let redundancy = REDUNDANCY[usize::from(self.repeats)];
        if self.repeats == 0 {
            return Block { mcs: self.mcs.number(), redundancy, new_data: self.new_data, bits: self.bits };
        }
        let reserved = match self.tables {
            Tables::Qam64 => 29,
            Tables::Qam256 => 28,
        };
        let mcs = reserved + self.mcs.modulation(self.tables) / 2 - 1;
        Block { mcs, redundancy, new_data: self.new_data, bits: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(mcs: u8, tables: Tables, repeats: u8) -> Sent {
        let mcs = Mcs::new(mcs, tables).expect("in the table");
        Sent { sequence: 0, bits: 1000, mcs, tables, new_data: true, repeats }
    }

    #[test]
    fn repeats_show_their_modulation_and_their_version() {
        let shown = |mcs, tables, repeats| {
            let block = sent(mcs, tables, repeats).block();
            (block.mcs, block.redundancy, block.bits, block.is_repeat())
        };
        assert_eq!(shown(28, Tables::Qam64, 0), (28, 0, 1000, false));
        assert_eq!(shown(28, Tables::Qam64, 1), (31, 2, 0, true));
        assert_eq!(shown(12, Tables::Qam64, 2), (30, 3, 0, true));
        assert_eq!(shown(0, Tables::Qam64, 3), (29, 1, 0, true));
        assert_eq!(shown(0, Tables::Qam256, 1), (28, 2, 0, true));
        assert_eq!(shown(27, Tables::Qam256, 1), (31, 2, 0, true));
    }

    #[test]
    fn a_repeat_is_due_eight_subframes_later_in_the_same_process() {
        let block = sent(5, Tables::Qam64, 0);
        let assignment =
            Assignment { subframe: 13, terminal: Some(0), rnti: Rnti(61), prb: 4, blocks: [Some(block), None] };
        let mut harq = Harq::default();
        harq.repeat(assignment, assignment.blocks);
        assert!(harq.due(20).is_none());
        let again = harq.due(21).expect("due");
        assert_eq!((again.dci().process, assignment.dci().process), (5, 5));
        assert_eq!(again.blocks[0].map(|sent| sent.repeats), Some(1));
        assert!(harq.is_empty());
    }
}
