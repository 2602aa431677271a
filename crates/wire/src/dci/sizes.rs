//! How many PRB a carrier has, as far as a log shows it.

use super::{Format, Record};

/// PRB that carriers of LTE have (3GPP TS 36.101 table 5.6-1).
const LTE: &[u16] = &[6, 15, 25, 50, 75, 100];
/// And of NR with 15, 30, 60 and 120 kHz between subcarriers (3GPP TS 38.101-1 and -2, table 5.3.2-1).
const NR: [&[u16]; 4] = [
    &[15, 25, 52, 79, 106, 133, 160, 188, 216, 242, 270],
    &[11, 24, 38, 51, 65, 78, 92, 106, 119, 133, 162, 189, 217, 245, 273],
    &[11, 18, 24, 31, 38, 44, 51, 58, 65, 79, 93, 107, 121, 135, 264],
    &[32, 66, 132, 264],
];

impl Format {
    /// The least number of PRB of a carrier with so many slots in a frame that holds the `most` that were assigned at
    /// once; `most` itself if none has as many.
    pub fn next_size(self, slots: u8, most: u16) -> u16 {
        let sizes = match slots {
            _ if self.is_lte() => LTE,
            20 => NR[1],
            40 => NR[2],
            80 => NR[3],
            _ => NR[0],
        };
        sizes.iter().copied().find(|size| *size >= most).unwrap_or(most)
    }
}

impl Record {
    /// PRB that a carrier has at least in which there is this assignment; 0 if it says nothing.
    pub fn reach(&self) -> u16 {
        self.dci.map_or(0, |dci| dci.prb.max(self.edge))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_carrier_has_the_next_size() {
        assert_eq!([0, 6, 7, 50, 100, 101].map(|most| Format::NgScope.next_size(10, most)), [6, 6, 15, 50, 100, 101]);
        assert_eq!([10, 20, 40, 80].map(|slots| Format::NrScope.next_size(slots, 52)), [52, 65, 58, 66]);
    }
}
