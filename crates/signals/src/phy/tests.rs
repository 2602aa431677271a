use super::*;
use Format::{Dsss, He, Ht, NonHt, Vht};
use GuardInterval::{Ns400, Ns800, Ns1600, Ns3200};
use Width::{Mhz20, Mhz40, Mhz80, Mhz160};

fn vector(format: Format, mcs: u8, nss: u8, width: Width, guard_interval: GuardInterval) -> TxVector {
    TxVector { format, mcs, nss, width, guard_interval }
}

/// The tables print tenths of a Mbit/s, some rounded and some cut.
fn agrees(vector: TxVector, published: f64) {
    let rate = vector.rate().unwrap_or_else(|| panic!("{vector:?} is in the tables")).as_mbit_f64();
    assert!((rate - published).abs() < 0.1, "{vector}: {rate} Mbit/s here, {published} in the standard");
}

#[test]
fn legacy_rates_are_those_of_802_11b_and_a() {
    let rate = |format, mcs| vector(format, mcs, 1, Mhz20, Ns800).rate().map(Rate::as_bps);
    assert_eq!(
        [0, 1, 2, 3, 4].map(|i| rate(Dsss, i)),
        [1_000_000, 2_000_000, 5_500_000, 11_000_000, 0].map(|bps| (bps > 0).then_some(bps))
    );
    let ofdm: Vec<u64> = (0..8).map(|i| rate(NonHt, i).expect("in the table") / 1_000_000).collect();
    assert_eq!(ofdm, [6, 9, 12, 18, 24, 36, 48, 54]);
    assert_eq!(rate(NonHt, 8), None);
    for mbit in [1, 2, 11, 6, 54] {
        let found = TxVector::legacy(Rate::from_mbit(mbit)).expect("a legacy rate");
        assert_eq!(found.rate(), Some(Rate::from_mbit(mbit)));
    }
    assert_eq!(TxVector::legacy(Rate::from_mbit(13)), None);
}

#[test]
fn ht_rates_are_those_of_clause_19_5() {
    for (mcs, long20, short20, long40, short40) in [
        (0, 6.5, 7.2, 13.5, 15.0),
        (1, 13.0, 14.4, 27.0, 30.0),
        (2, 19.5, 21.7, 40.5, 45.0),
        (3, 26.0, 28.9, 54.0, 60.0),
        (4, 39.0, 43.3, 81.0, 90.0),
        (5, 52.0, 57.8, 108.0, 120.0),
        (6, 58.5, 65.0, 121.5, 135.0),
        (7, 65.0, 72.2, 135.0, 150.0),
    ] {
        for nss in 1..=4 {
            // Each stream adds the rate of the first.
            let per_stream = |width, gi| {
                let rate = vector(Ht, mcs, nss, width, gi).rate().expect("in the table");
                rate.as_mbit_f64() / f64::from(nss)
            };
            for (width, gi, published) in
                [(Mhz20, Ns800, long20), (Mhz20, Ns400, short20), (Mhz40, Ns800, long40), (Mhz40, Ns400, short40)]
            {
                assert!((per_stream(width, gi) - published).abs() < 0.05, "{mcs} {nss} {width:?} {gi:?}");
            }
        }
    }
    agrees(vector(Ht, 7, 4, Mhz40, Ns400), 600.0);
    for nonsense in [
        vector(Ht, 8, 1, Mhz20, Ns800),
        vector(Ht, 0, 5, Mhz20, Ns800),
        vector(Ht, 0, 1, Mhz80, Ns800),
        vector(Ht, 0, 1, Mhz20, Ns1600),
        vector(Ht, 0, 0, Mhz20, Ns800),
    ] {
        assert_eq!(nonsense.rate(), None, "{nonsense}");
    }
}

#[test]
fn vht_rates_are_those_of_clause_21_5() {
    // One stream: long and short guard interval in 20, 40, 80 and 160 MHz.
    let table: [[f64; 8]; 10] = [
        [6.5, 7.2, 13.5, 15.0, 29.3, 32.5, 58.5, 65.0],
        [13.0, 14.4, 27.0, 30.0, 58.5, 65.0, 117.0, 130.0],
        [19.5, 21.7, 40.5, 45.0, 87.8, 97.5, 175.5, 195.0],
        [26.0, 28.9, 54.0, 60.0, 117.0, 130.0, 234.0, 260.0],
        [39.0, 43.3, 81.0, 90.0, 175.5, 195.0, 351.0, 390.0],
        [52.0, 57.8, 108.0, 120.0, 234.0, 260.0, 468.0, 520.0],
        [58.5, 65.0, 121.5, 135.0, 263.3, 292.5, 526.5, 585.0],
        [65.0, 72.2, 135.0, 150.0, 292.5, 325.0, 585.0, 650.0],
        [78.0, 86.7, 162.0, 180.0, 351.0, 390.0, 702.0, 780.0],
        [f64::NAN, f64::NAN, 180.0, 200.0, 390.0, 433.3, 780.0, 866.7],
    ];
    for (mcs, row) in (0..).zip(table) {
        let columns = [Mhz20, Mhz40, Mhz80, Mhz160].into_iter().flat_map(|width| [(width, Ns800), (width, Ns400)]);
        for ((width, gi), published) in columns.zip(row).filter(|(_, published)| !published.is_nan()) {
            agrees(vector(Vht, mcs, 1, width, gi), published);
        }
    }
    for (mcs, nss, width, gi, published) in [
        (9, 3, Mhz20, Ns800, 260.0),
        (9, 3, Mhz20, Ns400, 288.9),
        (9, 3, Mhz80, Ns800, 1_170.0),
        (9, 3, Mhz80, Ns400, 1_300.0),
        (7, 4, Mhz160, Ns800, 2_340.0),
        (9, 8, Mhz160, Ns400, 6_933.3),
    ] {
        agrees(vector(Vht, mcs, nss, width, gi), published);
    }
}

#[test]
fn vht_leaves_out_ten_combinations() {
    let widths = [Mhz20, Mhz40, Mhz80, Mhz160];
    let all = widths.into_iter().flat_map(|w| (1..=8).flat_map(move |nss| (0..10).map(move |mcs| (w, nss, mcs))));
    let out: Vec<(u16, u8, u8)> = all
        .filter(|&(width, nss, mcs)| vector(Vht, mcs, nss, width, Ns800).rate().is_none())
        .map(|(width, nss, mcs)| (width.mhz(), nss, mcs))
        .collect();
    let expected = [(20, 1), (20, 2), (20, 4), (20, 5), (20, 7), (20, 8)].map(|(mhz, nss)| (mhz, nss, 9)).into_iter();
    assert_eq!(out, expected.chain([(80, 3, 6), (80, 6, 9), (80, 7, 6), (160, 3, 9)]).collect::<Vec<_>>());
    assert_eq!(vector(Vht, 10, 1, Mhz80, Ns800).rate(), None);
}

#[test]
fn he_rates_are_those_of_clause_27_5() {
    // One stream, guard intervals of 0.8, 1.6 and 3.2 us, in 20 and 80 MHz.
    let table: [[f64; 6]; 12] = [
        [8.6, 8.1, 7.3, 36.0, 34.0, 30.6],
        [17.2, 16.3, 14.6, 72.1, 68.1, 61.3],
        [25.8, 24.4, 21.9, 108.1, 102.1, 91.9],
        [34.4, 32.5, 29.3, 144.1, 136.1, 122.5],
        [51.6, 48.8, 43.9, 216.2, 204.2, 183.8],
        [68.8, 65.0, 58.5, 288.2, 272.2, 245.0],
        [77.4, 73.1, 65.8, 324.3, 306.3, 275.6],
        [86.0, 81.3, 73.1, 360.3, 340.3, 306.3],
        [103.2, 97.5, 87.8, 432.4, 408.3, 367.5],
        [114.7, 108.3, 97.5, 480.4, 453.7, 408.3],
        [129.0, 121.9, 109.7, 540.4, 510.4, 459.4],
        [143.4, 135.4, 121.9, 600.5, 567.1, 510.4],
    ];
    for (mcs, row) in (0..).zip(table) {
        let columns = [Mhz20, Mhz80].into_iter().flat_map(|width| [Ns800, Ns1600, Ns3200].map(|gi| (width, gi)));
        for ((width, gi), published) in columns.zip(row) {
            agrees(vector(He, mcs, 1, width, gi), published);
        }
    }
    agrees(vector(He, 11, 1, Mhz40, Ns800), 286.8);
    agrees(vector(He, 11, 2, Mhz80, Ns800), 1_201.0);
    agrees(vector(He, 11, 2, Mhz160, Ns800), 2_402.0);
    agrees(vector(He, 11, 8, Mhz160, Ns800), 9_607.8);
    assert_eq!(vector(He, 12, 1, Mhz80, Ns800).rate(), None);
    assert_eq!(vector(He, 0, 1, Mhz80, Ns400).rate(), None);
    assert_eq!(vector(He, 0, 9, Mhz80, Ns800).rate(), None);
}

#[test]
fn preambles_are_the_sums_of_their_fields() {
    let us = |format, nss, gi| vector(format, 0, nss, Mhz20, gi).preamble().as_nanos();
    assert_eq!(us(NonHt, 1, Ns800), 20_000);
    assert_eq!([us(Ht, 1, Ns800), us(Ht, 2, Ns400), us(Ht, 3, Ns800)], [36_000, 40_000, 48_000]);
    assert_eq!([us(Vht, 1, Ns800), us(Vht, 3, Ns400)], [40_000, 52_000]);
    // 36 us of fields that all HE SU preambles have, and one HE-LTF of 7.2, 8 or 16 us.
    assert_eq!([us(He, 1, Ns800), us(He, 1, Ns1600), us(He, 2, Ns3200)], [43_200, 44_000, 68_000]);
}

#[test]
fn a_vector_says_what_a_person_would() {
    assert_eq!(vector(Vht, 9, 3, Mhz80, Ns800).to_string(), "VHT MCS 9 NSS 3 80 MHz GI 800 ns");
    assert_eq!(vector(He, 11, 2, Mhz160, Ns1600).to_string(), "HE MCS 11 NSS 2 160 MHz GI 1.6 us");
    assert_eq!(vector(NonHt, 4, 1, Mhz20, Ns800).to_string(), "OFDM 24 Mbit/s");
}
