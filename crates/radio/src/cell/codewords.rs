//! Codewords of a transmission over several layers, and the sizes of their transport blocks.
//! Source:     3GPP TS 36.211 table 6.3.3.2-1 (mapping of codewords to layers); 36.213 (V12) section 7.1.7.2.2 and table
//!             7.1.7.2.2-1 (a codeword on two layers).
//! Equations:  on two layers: TBS(2 N_PRB) for N_PRB <= 55, else the translation of TBS(N_PRB)
//! Symbols:    TBS(N_PRB), one layer -> `tbs::bits`
//! Deviations: none.
//! Validity:   up to four layers. The largest block on two layers is that of UE categories 11 and 12 (36.306 table 4.1-1). For the
//!             seven before it, 152 976 to 187 712 bits, which only 256QAM reaches, no second source was found; that they divide
//!             into equal code blocks (36.212 section 5.1.2) is tested, as it is of all others.
//! Checked by: tests::*

use super::mcs::{Mcs, Tables};
use super::tbs;

/// The most layers that are modelled.
pub const MOST_LAYERS: u8 = 4;
/// From here on the one-layer table has no column for twice as many PRB pairs.
const HALF: u8 = tbs::MOST_PRB / 2;

/// On how many layers each codeword goes; none without a layer, or for more than four.
pub fn layers_of_codewords(layers: u8) -> &'static [u8] {
    match layers {
        1 => &[1],
        2 => &[1, 1],
        3 => &[1, 2],
        4 => &[2, 2],
        _ => &[],
    }
}

/// Bits of the block of a codeword on one or two layers, in `prb` pairs of resource blocks; `None` outside the tables.
pub fn bits(mcs: Mcs, tables: Tables, prb: u8, layers: u8) -> Option<u32> {
    let index = mcs.tbs_index(tables);
    match layers {
        1 => tbs::bits(index, prb),
        2 if prb <= HALF => tbs::bits(index, prb.checked_mul(2)?),
        2 => two_layers(tbs::bits(index, prb)?),
        _ => None,
    }
}

/// The block on two layers that belongs to one of `one` bits on one layer, in more than 55 PRB pairs.
fn two_layers(one: u32) -> Option<u32> {
    let place = TRANSLATION.binary_search_by_key(&one, |(one, _)| *one).ok()?;
    Some(TRANSLATION[place].1)
}

/// Bits on one layer, and on two.
#[rustfmt::skip]
const TRANSLATION: [(u32, u32); 120] = [
    (1544, 3112), (1608, 3240), (1672, 3368), (1736, 3496), (1800, 3624), (1864, 3752), (1928, 3880), (1992, 4008),
    (2024, 4008), (2088, 4136), (2152, 4264), (2216, 4392), (2280, 4584), (2344, 4776), (2408, 4776), (2472, 4968),
    (2536, 5160), (2600, 5160), (2664, 5352), (2728, 5544), (2792, 5544), (2856, 5736), (2984, 5992), (3112, 6200),
    (3240, 6456), (3368, 6712), (3496, 6968), (3624, 7224), (3752, 7480), (3880, 7736), (4008, 7992), (4136, 8248),
    (4264, 8504), (4392, 8760), (4584, 9144), (4776, 9528), (4968, 9912), (5160, 10296), (5352, 10680), (5544, 11064),
    (5736, 11448), (5992, 11832), (6200, 12576), (6456, 12960), (6712, 13536), (6968, 14112), (7224, 14688),
    (7480, 14688), (7736, 15264), (7992, 15840), (8248, 16416), (8504, 16992), (8760, 17568), (9144, 18336),
    (9528, 19080), (9912, 19848), (10296, 20616), (10680, 21384), (11064, 22152), (11448, 22920), (11832, 23688),
    (12216, 24496), (12576, 25456), (12960, 25456), (13536, 27376), (14112, 28336), (14688, 29296), (15264, 30576),
    (15840, 31704), (16416, 32856), (16992, 34008), (17568, 35160), (18336, 36696), (19080, 37888), (19848, 39232),
    (20616, 40576), (21384, 42368), (22152, 43816), (22920, 45352), (23688, 46888), (24496, 48936), (25456, 51024),
    (26416, 52752), (27376, 55056), (28336, 57336), (29296, 59256), (30576, 61664), (31704, 63776), (32856, 66592),
    (34008, 68808), (35160, 71112), (36696, 73712), (37888, 76208), (39232, 78704), (40576, 81176), (42368, 84760),
    (43816, 87936), (45352, 90816), (46888, 93800), (48936, 97896), (51024, 101840), (52752, 105528), (55056, 110136),
    (57336, 115040), (59256, 119816), (61664, 124464), (63776, 128496), (66592, 133208), (68808, 137792),
    (71112, 142248), (73712, 146856), (75376, 149776), (76208, 152976), (78704, 157432), (81176, 161760),
    (84760, 169544), (87936, 175600), (90816, 181656), (93800, 187712), (97896, 195816),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The scheduler of the O-RAN software community's o-du-l2 has a table of blocks on two layers for 27 indices. Here: index, and the blocks
    /// of 56 PRB pairs and on, each with the number of columns that it takes. Index 7 ends before 24 264, with which that table stands alone
    /// and which does not divide into code blocks; ours is 22 152 there.
    #[rustfmt::skip]
    const SECOND_SOURCE: [(u8, &[(u32, u8)]); 9] = [
        (0, &[(3112, 1), (3240, 3), (3368, 2), (3496, 2), (3624, 3), (3752, 2), (3880, 2), (4008, 3), (4136, 3), (4264, 2), (4392, 2), (4584, 3), (4776, 4), (4968, 2), (5160, 5), (5352, 2), (5544, 5), (5736, 3), (5992, 5), (6200, 1)]),
        (1, &[(4008, 1), (4136, 2), (4264, 2), (4392, 1), (4584, 2), (4776, 3), (4968, 2), (5160, 4), (5352, 1), (5544, 4), (5736, 3), (5992, 3), (6200, 3), (6456, 4), (6712, 3), (6968, 4), (7224, 3), (7480, 4), (7736, 3), (7992, 3)]),
        (3, &[(6456, 1), (6712, 2), (6968, 2), (7224, 3), (7480, 2), (7736, 2), (7992, 2), (8248, 2), (8504, 2), (8760, 3), (9144, 3), (9528, 4), (9912, 3), (10296, 3), (10680, 4), (11064, 3), (11448, 4), (11832, 4), (12576, 4), (12960, 2)]),
        (5, &[(9912, 2), (10296, 2), (10680, 2), (11064, 2), (11448, 3), (11832, 3), (12576, 3), (12960, 2), (13536, 3), (14112, 3), (14688, 6), (15264, 3), (15840, 3), (16416, 3), (16992, 2), (17568, 4), (18336, 4), (19080, 5)]),
        (7, &[(13536, 1), (14112, 2), (14688, 4), (15264, 2), (15840, 2), (16416, 2), (16992, 2), (17568, 3), (18336, 3), (19080, 3), (19848, 3), (20616, 3), (21384, 3)]),
        (11, &[(22920, 2), (23688, 2), (24496, 2), (25456, 4), (27376, 3), (28336, 3), (29296, 3), (30576, 2), (31704, 3), (32856, 3), (34008, 3), (35160, 3), (36696, 4), (37888, 4), (39232, 4), (40576, 3), (42368, 4), (43816, 3)]),
        (13, &[(29296, 3), (30576, 2), (31704, 2), (32856, 2), (34008, 3), (35160, 2), (36696, 3), (37888, 3), (39232, 3), (40576, 3), (42368, 3), (43816, 3), (45352, 3), (46888, 3), (48936, 3), (51024, 4), (52752, 4), (55056, 4), (57336, 2)]),
        (19, &[(48936, 2), (51024, 3), (52752, 2), (55056, 2), (57336, 2), (59256, 3), (61664, 3), (63776, 2), (66592, 3), (68808, 3), (71112, 3), (73712, 3), (76208, 3), (78704, 3), (81176, 4), (84760, 3), (87936, 4), (90816, 3), (93800, 4)]),
        (26, &[(81176, 1), (84760, 2), (87936, 2), (90816, 2), (93800, 2), (97896, 3), (101840, 2), (105528, 3), (110136, 4), (115040, 3), (119816, 3), (124464, 3), (128496, 3), (133208, 3), (137792, 3), (142248, 3), (146856, 2), (149776, 11)]),
    ];

    #[test]
    fn two_layers_carry_what_a_second_source_has() {
        let mut compared = std::collections::BTreeSet::new();
        for (index, runs) in SECOND_SOURCE {
            let columns = runs.iter().flat_map(|(bits, count)| std::iter::repeat_n(*bits, usize::from(*count)));
            for (prb, want) in (HALF + 1..).zip(columns) {
                let one = tbs::bits(index, prb).expect("in the table");
                assert_eq!(two_layers(one), Some(want), "index {index}, {prb} PRB pairs");
                compared.insert(one);
            }
        }
        // Not compared: 11 064, see above, and the eight that only 256QAM reaches.
        let others: Vec<u32> = TRANSLATION.iter().map(|(one, _)| *one).filter(|one| !compared.contains(one)).collect();
        assert_eq!(others, [11_064, 76_208, 78_704, 81_176, 84_760, 87_936, 90_816, 93_800, 97_896]);
    }

    #[test]
    fn the_translation_has_what_wide_allocations_need_and_no_more() {
        let mut needed: Vec<u32> = (0..=tbs::MOST_INDEX)
            .flat_map(|index| (HALF + 1..=tbs::MOST_PRB).filter_map(move |prb| tbs::bits(index, prb)))
            .collect();
        needed.sort_unstable();
        needed.dedup();
        assert_eq!(needed, TRANSLATION.map(|(one, _)| one));
        assert!(TRANSLATION.is_sorted_by(|(_, a), (_, b)| a <= b));
        for (one, two) in TRANSLATION {
            let ratio = f64::from(two) / f64::from(one);
            assert!((1.96..2.04).contains(&ratio), "{two} for {one}");
        }
    }

    /// 36.212 section 5.1.2: a block with its 24 bits of CRC is cut into code blocks of at most 6144 bits, with 24 more each where
    /// there are several; sizes in the standard's tables leave no bit to fill.
    #[test]
    fn every_block_divides_into_equal_code_blocks() {
        let is_interleavers = |size: u32| match size {
            40..=512 => size.is_multiple_of(8),
            513..=1024 => size.is_multiple_of(16),
            1025..=2048 => size.is_multiple_of(32),
            2049..=6144 => size.is_multiple_of(64),
            _ => false,
        };
        let one =
            (0..=tbs::MOST_INDEX).flat_map(|index| (1..=tbs::MOST_PRB).filter_map(move |prb| tbs::bits(index, prb)));
        for bits in one.chain(TRANSLATION.map(|(_, two)| two)) {
            let whole = bits + 24;
            let (count, all) = match whole.div_ceil(6144) {
                1 => (1, whole),
                _ => (whole.div_ceil(6120), whole + 24 * whole.div_ceil(6120)),
            };
            assert!(all.is_multiple_of(count) && is_interleavers(all / count), "{bits} bits in {count}");
        }
    }

    #[test]
    fn codewords_share_the_layers_as_the_standard_has_it() {
        assert_eq!((1..=4).map(layers_of_codewords).collect::<Vec<_>>(), [&[1][..], &[1, 1], &[1, 2], &[2, 2]]);
        assert!(layers_of_codewords(0).is_empty() && layers_of_codewords(5).is_empty());
        // The largest blocks that UE categories 5, 11 and 12 receive at once (36.306 table 4.1-1).
        let most = |tables, mcs| bits(Mcs::new(mcs, tables).expect("in the table"), tables, 100, 2);
        assert_eq!((most(Tables::Qam64, 28), most(Tables::Qam256, 27)), (Some(149_776), Some(195_816)));
        let narrow = |prb, layers| bits(Mcs::new(28, Tables::Qam64).expect("in the table"), Tables::Qam64, prb, layers);
        assert_eq!((narrow(24, 2), narrow(48, 1)), (Some(35_160), Some(35_160)));
        assert_eq!([narrow(0, 2), narrow(111, 2), narrow(100, 3)], [None; 3]);
    }
}
