//! What a terminal reports of its channel, and how the cell sends then.
//! Source:     3GPP TS 36.213 (V12): tables 7.2.3-1 and 7.2.3-2 (CQI), 7.1.7.1-1 and 7.1.7.1-1A (MCS).
//! Equations:  efficiency = bits a symbol * code rate
//! Symbols:    CQI, 0 to 15 -> `Cqi`; MCS, 0 to 28 -> `Mcs`; I_TBS -> `Mcs::tbs_index`
//! Deviations: the standard leaves it to the cell which MCS it takes for a CQI. Here it is the one with block sizes
//!             made for the CQI's efficiency (3GPP R1-081483), as ns-3 has it: every second MCS up to 64QAM.
//! Checked by: tests::*

use super::tbs;

/// Which tables a terminal and its cell use: what the connection's set-up decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Tables {
    /// Up to 64QAM.
    #[default]
    Qam64,
    /// Up to 256QAM.
    Qam256,
}

/// Channel quality indicator, 0 to 15; 0: out of range.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Cqi(u8);

/// Modulation and coding scheme, 0 to 28 (27 with 256QAM).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Mcs(u8);

/// Bits a symbol, and 1024 times the code rate, from CQI 1 on.
type Row = (u8, u16);

const CQI_64: [Row; 15] = [
    (2, 78),
    (2, 120),
    (2, 193),
    (2, 308),
    (2, 449),
    (2, 602),
    (4, 378),
    (4, 490),
    (4, 616),
    (6, 466),
    (6, 567),
    (6, 666),
    (6, 772),
    (6, 873),
    (6, 948),
];
const CQI_256: [Row; 15] = [
    (2, 78),
    (2, 193),
    (2, 449),
    (4, 378),
    (4, 490),
    (4, 616),
    (6, 466),
    (6, 567),
    (6, 666),
    (6, 772),
    (6, 873),
    (8, 711),
    (8, 797),
    (8, 885),
    (8, 948),
];
const INDEX_64: [u8; 29] =
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 10, 11, 12, 13, 14, 15, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26];
const INDEX_256: [u8; 28] =
    [0, 2, 4, 6, 8, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 27, 28, 29, 30, 31, 32, 33];
/// Where each modulation begins: 4, 6 and 8 bits a symbol.
const BEGINS_64: [u8; 2] = [10, 17];
const BEGINS_256: [u8; 3] = [5, 11, 20];
/// The scheme for each CQI from 1 on.
const FOR_CQI_64: [u8; 15] = [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28];
const FOR_CQI_256: [u8; 15] = [0, 2, 4, 6, 8, 10, 11, 13, 15, 17, 19, 21, 23, 25, 27];

impl Cqi {
    /// No scheme is good enough.
    pub const OUT_OF_RANGE: Cqi = Cqi(0);

    /// All that are in range, the lowest first.
    pub fn all() -> impl DoubleEndedIterator<Item = Cqi> {
        (1..=15).map(Cqi)
    }

    /// The report of this number; `None` above 15.
    pub const fn new(number: u8) -> Option<Cqi> {
        if number <= 15 { Some(Cqi(number)) } else { None }
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Bits an element that arrive with at most one block in ten damaged; 0 out of range.
    pub fn efficiency(self, tables: Tables) -> f64 {
        let rows = match tables {
            Tables::Qam64 => &CQI_64,
            Tables::Qam256 => &CQI_256,
        };
        let row = usize::from(self.0).checked_sub(1).map(|row| rows[row]);
        row.map_or(0.0, |(bits, rate)| f64::from(bits) * f64::from(rate) / 1024.0)
    }
}

impl Mcs {
    /// The scheme of this number; `None` if the tables have none.
    pub fn new(number: u8, tables: Tables) -> Option<Mcs> {
        (usize::from(number) < count(tables)).then_some(Mcs(number))
    }

    /// The scheme for a channel of this quality; `None` out of range.
    pub fn for_cqi(cqi: Cqi, tables: Tables) -> Option<Mcs> {
        let place = usize::from(cqi.0).checked_sub(1)?;
        Some(Mcs(match tables {
            Tables::Qam64 => FOR_CQI_64[place],
            Tables::Qam256 => FOR_CQI_256[place],
        }))
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// The row of the table of block sizes.
    pub fn tbs_index(self, tables: Tables) -> u8 {
        match tables {
            Tables::Qam64 => INDEX_64[usize::from(self.0)],
            Tables::Qam256 => INDEX_256[usize::from(self.0)],
        }
    }

    /// Bits a symbol: 2, 4, 6 or 8.
    pub fn modulation(self, tables: Tables) -> u8 {
        let begins: &[u8] = match tables {
            Tables::Qam64 => &BEGINS_64,
            Tables::Qam256 => &BEGINS_256,
        };
        2 + 2 * begins.iter().filter(|begin| self.0 >= **begin).count() as u8
    }

    /// Bits of a block in `prb` pairs of resource blocks; `None` for none or more than 110.
    pub fn bits(self, tables: Tables, prb: u8) -> Option<u32> {
        tbs::bits(self.tbs_index(tables), prb)
    }
}

/// How many schemes the tables have.
fn count(tables: Tables) -> usize {
    match tables {
        Tables::Qam64 => INDEX_64.len(),
        Tables::Qam256 => INDEX_256.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn efficiencies_are_those_of_the_standard() {
        let of = |number, tables| (Cqi(number).efficiency(tables) * 1e4).round() / 1e4;
        assert_eq!([1, 7, 10, 15].map(|cqi| of(cqi, Tables::Qam64)), [0.1523, 1.4766, 2.7305, 5.5547]);
        assert_eq!([2, 4, 12, 15].map(|cqi| of(cqi, Tables::Qam256)), [0.3770, 1.4766, 5.5547, 7.4063]);
        assert_eq!((of(0, Tables::Qam64), Cqi::new(16)), (0.0, None));
    }

    #[test]
    fn modulations_begin_where_the_standard_has_them() {
        let of = |tables| (0..count(tables) as u8).map(|mcs| Mcs(mcs).modulation(tables)).collect::<Vec<_>>();
        let (low, high) = (of(Tables::Qam64), of(Tables::Qam256));
        assert_eq!([low[9], low[10], low[16], low[17], low[28]], [2, 4, 4, 6, 6]);
        assert_eq!([high[4], high[5], high[10], high[11], high[19], high[20], high[27]], [2, 4, 4, 6, 6, 8, 8]);
    }

    #[test]
    fn blocks_that_are_known_from_elsewhere() {
        let bits = |mcs, prb| Mcs(mcs).bits(Tables::Qam64, prb);
        assert_eq!([bits(28, 48), bits(12, 48), bits(28, 100)], [Some(35_160), Some(9_528), Some(75_376)]);
        assert_eq!(Mcs(27).bits(Tables::Qam256, 100), Some(97_896));
        assert_eq!(Mcs::new(29, Tables::Qam64), None);
    }

    #[test]
    fn each_mcs_has_the_modulation_of_its_cqi() {
        for (tables, rows) in [(Tables::Qam64, &CQI_64), (Tables::Qam256, &CQI_256)] {
            let all: Vec<Mcs> = (1..=15).map(|cqi| Mcs::for_cqi(Cqi(cqi), tables).expect("in range")).collect();
            assert!(all.is_sorted(), "{tables:?}: {all:?}");
            for (mcs, (bits, _)) in all.iter().zip(rows) {
                // At the edge between two modulations either may be taken.
                let apart = mcs.modulation(tables).abs_diff(*bits);
                assert!(apart == 0 || apart == 2 && mcs.number() == 10, "{tables:?}: {mcs:?} for {bits} bits");
            }
        }
        assert_eq!(Mcs::for_cqi(Cqi(0), Tables::Qam64), None);
        // Reference data S5.
        assert_eq!([15, 7].map(|cqi| Mcs::for_cqi(Cqi(cqi), Tables::Qam64)), [Some(Mcs(28)), Some(Mcs(12))]);
    }
}
