use super::*;

fn ac(width: Width, index: u8, nss: u8, gi: GuardInterval) -> Option<Mode> {
    Mode::data(Standard::Dot11ac, width, gi, Mcs::new(index, nss), Profile::Standard)
}

#[test]
fn legacy_rates_are_those_of_table_17_4() {
    let rate = |i| Mode::data(Standard::Dot11a, Width::Mhz20, GuardInterval::Ns800, Mcs::new(i, 1), Profile::Standard);
    let rates: Vec<u64> = (0..8).map(|i| rate(i).expect("legal").rate().as_bps() / 1_000_000).collect();
    assert_eq!(rates, [6, 9, 12, 18, 24, 36, 48, 54]);
    assert_eq!(rate(8), None);
    assert_eq!(Mcs::legacy(Rate::from_mbit(36)), Some(Mcs::new(5, 1)));
    assert_eq!(Mcs::legacy(Rate::from_mbit(11)), Some(Mcs::new(11, 1)));
    assert_eq!(rate(11), None);
    assert_eq!(Mcs::legacy(Rate::from_mbit(13)), None);
}

#[test]
fn vht_rates_agree_with_the_published_tables() {
    // 21.5, long and short guard interval, in units of 0.1 Mbit/s.
    for (width, index, nss, long, short) in [
        (Width::Mhz20, 8, 1, 780, 866),
        (Width::Mhz20, 9, 3, 2_600, 2_888),
        (Width::Mhz40, 9, 1, 1_800, 2_000),
        (Width::Mhz80, 0, 1, 292, 325),
        (Width::Mhz80, 9, 1, 3_900, 4_333),
        (Width::Mhz80, 9, 2, 7_800, 8_666),
        (Width::Mhz80, 9, 3, 11_700, 13_000),
        (Width::Mhz160, 7, 4, 23_400, 26_000),
        (Width::Mhz160, 9, 4, 31_200, 34_666),
    ] {
        let rate = |gi| ac(width, index, nss, gi).expect("in the table").rate().as_bps() / 100_000;
        assert_eq!((rate(GuardInterval::Ns800), rate(GuardInterval::Ns400)), (long, short), "{width:?} {index} {nss}");
    }
}

#[test]
fn vht_combinations_outside_the_tables_are_refused() {
    // Everything up to four streams that 21.5 leaves out.
    let excluded: Vec<(u16, u8, u8)> = [Width::Mhz20, Width::Mhz40, Width::Mhz80, Width::Mhz160]
        .into_iter()
        .flat_map(|width| (1..=4).flat_map(move |nss| (0..10).map(move |mcs| (width, nss, mcs))))
        .filter(|&(width, nss, mcs)| ac(width, mcs, nss, GuardInterval::Ns800).is_none())
        .map(|(width, nss, mcs)| (width.mhz(), nss, mcs))
        .collect();
    assert_eq!(excluded, [(20, 1, 9), (20, 2, 9), (20, 4, 9), (80, 3, 6), (160, 3, 9)]);
}

#[test]
fn ht_rates_agree_with_the_published_tables() {
    let ht = |width, index, nss, gi| {
        let mode = Mode::data(Standard::Dot11n(Band::Ghz5), width, gi, Mcs::new(index, nss), Profile::Standard);
        mode.map(|mode| mode.rate().as_bps() / 100_000)
    };
    assert_eq!(ht(Width::Mhz20, 7, 1, GuardInterval::Ns800), Some(650));
    assert_eq!(ht(Width::Mhz20, 7, 2, GuardInterval::Ns400), Some(1_444));
    assert_eq!(ht(Width::Mhz40, 7, 4, GuardInterval::Ns400), Some(6_000));
    assert_eq!(ht(Width::Mhz20, 8, 1, GuardInterval::Ns800), None);
}

#[test]
fn durations_agree_with_hand_worked_ones() {
    // Ack and BlockAck at 24, 12 and 6 Mbit/s.
    let at = |index, octets| Mode::ofdm(Band::Ghz5, index).duration(Bytes::new(octets)).as_micros();
    assert_eq!((at(4, 14), at(2, 14), at(0, 14)), (28, 32, 44));
    assert_eq!((at(4, 32), at(2, 32), at(0, 32)), (32, 44, 68));
    // 1542 octets at 175.5 Mbit/s: 12358 bits are 18 symbols of 702 bits, 72 us, after 40 us of preamble.
    let long = ac(Width::Mhz80, 4, 1, GuardInterval::Ns800).expect("legal");
    assert_eq!(long.duration(Bytes::new(1542)).as_micros(), 112);
    // Short guard interval: 18 symbols are 64.8 us, sent in 68 us.
    let short = ac(Width::Mhz80, 4, 1, GuardInterval::Ns400).expect("legal");
    assert_eq!(short.duration(Bytes::new(1542)).as_micros(), 108);
    // 802.11g has 6 us of silence after each frame: 1536 octets at 54 Mbit/s are 57 symbols.
    let erp = Mode::data(Standard::Dot11g, Width::Mhz20, GuardInterval::Ns800, Mcs::new(7, 1), Profile::Standard);
    assert_eq!(erp.expect("legal").duration(Bytes::new(1536)).as_micros(), 20 + 57 * 4 + 6);
}

#[test]
fn he_rates_and_durations_match_published_and_worked_values() {
    let he = |band, width, index, nss, gi| {
        Mode::data(Standard::Dot11ax(band), width, gi, Mcs::new(index, nss), Profile::Standard)
    };
    // 27.5, in units of 0.1 Mbit/s, rounded: every width, the three guard intervals.
    for (width, index, nss, rates) in [
        (Width::Mhz20, 0, 1, [86, 81, 73]),
        (Width::Mhz20, 11, 2, [2_868, 2_708, 2_438]),
        (Width::Mhz40, 9, 1, [2_294, 2_167, 1_950]),
        (Width::Mhz80, 11, 1, [6_004, 5_671, 5_104]),
        (Width::Mhz160, 11, 4, [48_039, 45_370, 40_833]),
    ] {
        let got = [GuardInterval::Ns800, GuardInterval::Ns1600, GuardInterval::Ns3200].map(|gi| {
            (he(Band::Ghz5, width, index, nss, gi).expect("in the table").rate().as_bps() + 50_000) / 100_000
        });
        assert_eq!(got, rates, "{width:?} {index} {nss}");
    }
    // 1542 octets in 80 MHz, one stream, MCS 4, 0.8 us: 12 352 bits are 5 symbols of 2940, 68 us, after 43.2 us.
    let mode = he(Band::Ghz5, Width::Mhz80, 4, 1, GuardInterval::Ns800).expect("legal");
    assert_eq!(mode.duration(Bytes::new(1_542)).as_nanos(), 43_200 + 5 * 13_600);
    // 3.2 us, two streams: 36 + 2 * 16 us, then 3 symbols of 16 us.
    let mode = he(Band::Ghz5, Width::Mhz80, 4, 2, GuardInterval::Ns3200).expect("legal");
    assert_eq!(mode.duration(Bytes::new(1_542)).as_nanos(), 68_000 + 3 * 16_000);
    // At 2.4 GHz 6 us of silence follow, and 80 MHz do not exist.
    let mode = he(Band::Ghz2_4, Width::Mhz20, 11, 1, GuardInterval::Ns800).expect("legal");
    assert_eq!(mode.duration(Bytes::new(100)).as_nanos(), 43_200 + 13_600 + 6_000);
    assert_eq!(he(Band::Ghz2_4, Width::Mhz80, 0, 1, GuardInterval::Ns800), None);
    assert_eq!(he(Band::Ghz5, Width::Mhz80, 0, 1, GuardInterval::Ns400), None);
    assert_eq!(he(Band::Ghz5, Width::Mhz80, 12, 1, GuardInterval::Ns800), None);
    // Answers go out at 24 Mbit/s from 16-QAM on.
    let answer = |index| {
        let mode = he(Band::Ghz5, Width::Mhz80, index, 1, GuardInterval::Ns800).expect("legal");
        mode.response(Standard::Dot11ax(Band::Ghz5), Profile::Standard).rate().as_bps() / 1_000_000
    };
    assert_eq!([0, 1, 3, 11].map(answer), [6, 12, 24, 24]);
}

#[test]
fn the_longest_psdu_fits_and_one_octet_more_does_not() {
    for gi in [GuardInterval::Ns800, GuardInterval::Ns400] {
        for mcs in 0..10 {
            let mode = ac(Width::Mhz80, mcs, 2, gi).expect("legal");
            // Of 3.6 us and of 4 us a symbol, limits of each remainder.
            for limit in (0..10).map(|step| MAX_PPDU - Span::from_nanos(400 * step)) {
                let longest = mode.longest(limit);
                assert!(mode.duration(longest) <= limit, "{gi:?} MCS {mcs}, {limit}");
                assert!(mode.duration(Bytes::new(longest.get() + 1)) > limit, "{gi:?} MCS {mcs}, {limit}");
            }
        }
    }
}

#[test]
fn responses_use_the_highest_basic_rate_below_the_reference() {
    let response = |mcs| {
        let mode = ac(Width::Mhz80, mcs, 3, GuardInterval::Ns800).expect("legal");
        mode.response(Standard::Dot11ac, Profile::Standard).rate().as_bps() / 1_000_000
    };
    assert_eq!([0, 1, 2, 3, 4, 9].map(response), [6, 12, 12, 24, 24, 24]);
}

#[test]
fn dsss_and_cck_frames_last_as_long_as_clause_16_says() {
    let erp = |index| {
        let (width, gi) = (Width::Mhz20, GuardInterval::Ns800);
        Mode::data(Standard::Dot11gErp, width, gi, Mcs::new(index, 1), Profile::Standard)
    };
    let of = |kbps: u64| {
        let mcs = Mcs::legacy(Rate::from_bps(kbps * 1_000)).expect("a rate of an ERP");
        erp(mcs.index).expect("legal")
    };
    // After 192 us of long preamble and header: 14 and 1536 octets, 5.5 and 11 Mbit/s rounded up to microseconds.
    let us = |kbps, octets| of(kbps).duration(Bytes::new(octets)).as_micros();
    assert_eq!([1_000, 2_000, 5_500, 11_000].map(|kbps| us(kbps, 14)), [192 + 112, 192 + 56, 192 + 21, 192 + 11]);
    assert_eq!(
        [1_000, 2_000, 5_500, 11_000].map(|kbps| us(kbps, 1_536)),
        [192 + 12_288, 192 + 6_144, 192 + 2_235, 192 + 1_118]
    );
    // OFDM of the same station has its signal extension, DSSS none.
    assert_eq!(us(54_000, 1_536), 20 + 57 * 4 + 6);
    // Beyond the limit of later formats.
    assert_eq!(of(1_000).max_psdu(), Bytes::new(4_095));
    let limit = Span::from_micros(1_000);
    let longest = of(5_500).longest(limit);
    assert!(of(5_500).duration(longest) <= limit && of(5_500).duration(Bytes::new(longest.get() + 1)) > limit);
    // Answers are of the frame's modulation class, at mandatory rates; ns-3's access points have no basic CCK rates.
    let answers = |profile| {
        [1_000, 2_000, 5_500, 6_000, 9_000, 11_000, 12_000, 18_000, 54_000]
            .map(|kbps| of(kbps).response(Standard::Dot11gErp, profile).rate().as_bps() / 1_000)
    };
    let published = [1_000, 2_000, 5_500, 6_000, 6_000, 11_000, 12_000, 12_000, 24_000];
    assert_eq!(answers(Profile::Standard), published);
    assert_eq!(answers(Profile::Ns3_3_37), [1_000, 2_000, 2_000, 6_000, 6_000, 2_000, 12_000, 12_000, 24_000]);
    assert_eq!(Mode::lowest(Standard::Dot11gErp).rate(), Rate::from_mbit(1));
    assert_eq!((erp(12), erp(11).map(|mode| mode.rate())), (None, Some(Rate::from_mbit(11))));
}
