use super::*;
use lasthop_signals::phy::{Format, GuardInterval, Width};
use proptest::prelude::*;

const AP: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const STATION: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
const OTHER: MacAddress = MacAddress([2, 0, 0, 0, 0, 3]);

fn vht() -> TxVector {
    TxVector { format: Format::Vht, mcs: 4, nss: 1, width: Width::Mhz80, guard_interval: GuardInterval::Ns800 }
}

fn mpdu(reference: u32, last: Option<bool>, sequence: u16) -> ReceivedMpdu {
    ReceivedMpdu {
        transmitter: AP,
        receiver: STATION,
        ampdu: Some(Subframe { reference, last }),
        tid: 0,
        sequence,
        retry: false,
        msdus: 1,
        fcs_good: true,
        tsf: None,
        tx: Some(vht()),
        len: Bytes::new(1_538),
    }
}

fn us(us: u64) -> Time {
    Time::ZERO + Span::from_micros(us)
}

fn frames(mpdus: &[(u64, ReceivedMpdu)]) -> Vec<Frame> {
    grouped(Grouping::Air, mpdus)
}

fn grouped(grouping: Grouping, mpdus: &[(u64, ReceivedMpdu)]) -> Vec<Frame> {
    let (mut meter, mut frames) = (Meter::new(grouping), Vec::new());
    for (at, mpdu) in mpdus {
        meter.receive(us(*at), mpdu, &mut |frame| frames.push(*frame));
    }
    meter.finish(&mut |frame| frames.push(*frame));
    frames
}

fn sizes(mpdus: &[(u64, ReceivedMpdu)]) -> Vec<u32> {
    frames(mpdus).iter().map(|frame| frame.mpdus).collect()
}

#[test]
fn a_frame_is_what_shares_reference_and_transmitter() {
    let other = |sequence| ReceivedMpdu { transmitter: OTHER, ..mpdu(7, Some(false), sequence) };
    let air = [
        (0, mpdu(7, Some(false), 1)),
        (1, other(100)),
        (2, mpdu(7, Some(true), 2)),
        (3, other(101)),
        (500, mpdu(8, Some(true), 3)),
    ];
    assert_eq!(sizes(&air), [2, 1, 2]);
}

#[test]
fn a_lone_mpdu_is_a_frame_and_ends_the_one_before() {
    let lone = ReceivedMpdu { ampdu: None, ..mpdu(0, None, 3) };
    let found = frames(&[(0, mpdu(1, None, 1)), (1, mpdu(1, None, 2)), (900, lone)]);
    let seen: Vec<(u32, bool)> = found.iter().map(|frame| (frame.mpdus, frame.aggregated)).collect();
    assert_eq!(seen, [(2, true), (1, false)]);
}

#[test]
fn a_driver_that_says_0_and_last_of_every_mpdu_makes_no_giant() {
    let air: Vec<(u64, ReceivedMpdu)> = (0..568).map(|n| (u64::from(n) * 200, mpdu(0, Some(true), n))).collect();
    assert_eq!(sizes(&air), [1; 568]);
    // If it stamps the MPDUs of a PPDU alike, they are told by that.
    let stamped: Vec<(u64, ReceivedMpdu)> = (0..12)
        .map(|n: u16| (u64::from(n) * 10, ReceivedMpdu { tsf: Some(us(u64::from(n / 4))), ..mpdu(0, Some(true), n) }))
        .collect();
    assert_eq!(sizes(&stamped), [4, 4, 4]);
}

#[test]
fn a_number_that_comes_again_is_cut_by_time_and_by_sequence() {
    let mut air: Vec<(u64, ReceivedMpdu)> = (0..4).map(|n| (u64::from(n), mpdu(7, None, n))).collect();
    // Sent again, at once; and new ones, much later.
    air.extend([(10, mpdu(7, None, 2)), (11, mpdu(7, None, 3)), (20_000, mpdu(7, None, 4))]);
    assert_eq!(sizes(&air), [4, 2, 1]);
    let counted = grouped(Grouping::Reference, &air);
    assert_eq!(counted.iter().map(|frame| frame.mpdus).collect::<Vec<_>>(), [7], "as others count");
}

#[test]
fn a_driver_that_does_not_count_is_found_out() {
    // Eight PPDUs of one number, told apart by repetitions; then the time stamps of PPDUs decide.
    let stamped = |at: u64, sequence| (at, ReceivedMpdu { tsf: Some(us(at / 1_000)), ..mpdu(0, None, sequence) });
    let mut air: Vec<(u64, ReceivedMpdu)> = (0..20).map(|n| stamped(n * 1_000, 5)).collect();
    air.extend((0..6).map(|n| stamped(20_000 + u64::from(n / 2) * 1_000, 6 + n)));
    assert_eq!(sizes(&air)[20..], [2, 2, 2]);
}

#[test]
fn lost_mpdus_are_counted_by_their_sequence_numbers() {
    let known = |reference, numbers: &[u16], last: u16| -> Vec<(u64, ReceivedMpdu)> {
        let at = u64::from(reference) * 1_000;
        numbers.iter().map(|&n| (at, mpdu(reference, Some(n == last), n))).collect()
    };
    let again = |(at, mpdu): (u64, ReceivedMpdu)| (at, ReceivedMpdu { retry: true, ..mpdu });
    // 10 to 13 come; of 14 to 19 the inner 16 and the last 18 and 19 are lost; those come again with 20.
    let mut air = known(1, &[10, 11, 12, 13], 13);
    air.extend(known(2, &[14, 15, 17], 19));
    air.extend(known(3, &[16, 18, 19], 20).into_iter().map(again));
    air.extend(known(3, &[20], 20));
    let found = frames(&air);
    let counted: Vec<(u32, u32)> = found.iter().map(|frame| (frame.mpdus, frame.missing)).collect();
    assert_eq!(counted, [(4, 0), (3, 3), (4, 0)]);
    assert_eq!(found[1].packets(), 6);
    assert_eq!(found[2].retries, 3);
}

#[test]
fn an_mpdu_with_a_bad_fcs_counts_but_not_its_addresses() {
    let bad = |reference| ReceivedMpdu { transmitter: OTHER, fcs_good: false, ..mpdu(reference, Some(false), 999) };
    let air = [(0, bad(1)), (1, mpdu(1, Some(false), 1)), (2, bad(1)), (3, mpdu(1, Some(true), 4)), (900, bad(2))];
    let found = frames(&air);
    assert_eq!(found.len(), 1, "nobody knows who sent the second PPDU");
    assert_eq!((found[0].transmitter, found[0].mpdus, found[0].missing), (AP, 2, 2));
}

#[test]
fn what_a_bystander_missed_counts_once_where_damage_shows() {
    // 10 to 17 are sent; the bystander finds 12 damaged, the receiver does not, so 12 never comes again.
    let damaged = (0, ReceivedMpdu { fcs_good: false, ..mpdu(2, Some(false), 0) });
    let mut air: Vec<(u64, ReceivedMpdu)> = vec![(0, mpdu(1, Some(true), 9))];
    air.extend([(1, mpdu(2, Some(false), 10)), (1, mpdu(2, Some(false), 11)), damaged, (1, mpdu(2, Some(true), 13))]);
    air.extend((14..18).map(|n| (u64::from(n) * 1_000, mpdu(u32::from(n), Some(true), n))));
    let missing: Vec<u32> = frames(&air).iter().map(|frame| frame.missing).collect();
    assert_eq!(missing, [0, 1, 0, 0, 0, 0]);
    // Where damage does not show, the transmitter is taken to have sent it again.
    air.retain(|(_, mpdu)| mpdu.fcs_good);
    let missing: Vec<u32> = frames(&air).iter().map(|frame| frame.missing).collect();
    assert_eq!(missing, [0, 1, 1, 1, 1, 0]);
}

#[test]
fn of_a_conversation_heard_in_part_only_what_came_is_counted() {
    // A-MPDUs of four, of which this radio hears the second and third MPDU, or nothing; lost ones never come to it again.
    let heard = |n: u16| {
        [(1, false), (2, false)].map(|(at, last)| (u64::from(n) * 1_000, mpdu(n.into(), Some(last), 4 * n + at)))
    };
    let air: Vec<(u64, ReceivedMpdu)> = (0..60).filter(|n| n % 3 > 0).flat_map(heard).collect();
    let (found, mut tally) = (frames(&air), Tally::default());
    found.iter().for_each(|frame| tally.add(frame));
    assert_eq!(found[found.len() - 1], Frame { missing: 0, in_part: true, ..found[found.len() - 1] });
    assert_eq!((tally.in_part, tally.missing, tally.packets.sum()), (true, 0, 80));
    assert_eq!(tally.packets, tally.received, "what had been inferred before it was known is taken back");
    let certain: Span = found.iter().filter_map(|frame| frame.without_inference().airtime()).sum();
    assert_eq!(tally.airtime, certain);
}

#[test]
fn msdus_inside_a_msdus_are_packets() {
    let pair = |sequence, last| ReceivedMpdu { msdus: 2, ..mpdu(1, Some(last), sequence) };
    let found = frames(&[(0, pair(1, false)), (1, pair(2, true))]);
    assert_eq!((found[0].mpdus, found[0].packets()), (2, 4));
}

#[test]
fn sums_of_frames_tell_sizes_and_the_harmonic_rate() {
    let fast = TxVector { mcs: 9, ..vht() };
    let mut tally = Tally::default();
    let air = [
        (0, mpdu(1, Some(false), 1)),
        (1, mpdu(1, Some(false), 2)),
        (2, mpdu(1, Some(true), 3)),
        (1_000, ReceivedMpdu { tx: Some(fast), ..mpdu(2, Some(true), 4) }),
        (2_000, ReceivedMpdu { tx: None, ..mpdu(3, Some(true), 5) }),
    ];
    frames(&air).iter().for_each(|frame| tally.add(frame));
    assert_eq!((tally.packets.frames(), tally.packets.sum(), tally.packets.sum_of_squares()), (3, 5, 11));
    assert_eq!((tally.packets.min(), tally.packets.max()), (Some(1), Some(3)));
    // 175.5 and 390 Mbit/s; nothing is known of the third frame.
    let inverse = (1.0 / 175.5e6 + 1.0 / 390e6) / 2.0;
    assert!((tally.rate().expect("known").as_bps() as f64 * inverse - 1.0).abs() < 1e-6);
    assert_eq!(tally.received.histogram().collect::<Vec<_>>(), [(1, 2), (3, 1)]);
    let sd = tally.received.sd().expect("frames");
    assert!((sd - (8.0f64 / 9.0).sqrt()).abs() < 1e-12);
}

#[test]
fn airtime_of_a_full_frame_is_that_of_its_symbols() {
    let mut air: Vec<(u64, ReceivedMpdu)> = (0..63).map(|n| (0, mpdu(1, Some(false), n))).collect();
    air.push((0, mpdu(1, Some(true), 63)));
    let airtime = frames(&air)[0].airtime().expect("the rate is known");
    // 64 subframes of 1544 octets: 790 550 bits with SERVICE and tail are 1127 symbols of 702 bits, after 40 us.
    assert!(airtime.as_micros().abs_diff(40 + 1_127 * 4) <= 4, "{airtime}");
}

fn anything() -> impl Strategy<Value = (u64, ReceivedMpdu)> {
    let station = prop_oneof![Just(AP), Just(STATION), Just(OTHER)];
    let ampdu = prop::option::of((0u32..3, prop::option::of(any::<bool>())));
    let numbers = (0u16..40, 1u16..4, 0u8..2);
    (0u64..8_000, station, ampdu, numbers, any::<bool>(), prop::bool::weighted(0.9), prop::option::of(0u64..3))
        .prop_map(|(gap, transmitter, ampdu, (sequence, msdus, tid), retry, fcs_good, tsf)| {
            let ampdu = ampdu.map(|(reference, last)| Subframe { reference, last });
            let mpdu = ReceivedMpdu {
                transmitter,
                ampdu,
                msdus,
                tid,
                retry,
                fcs_good,
                tsf: tsf.map(us),
                ..mpdu(0, None, sequence)
            };
            (gap, mpdu)
        })
}

proptest! {
    /// Whatever comes in whatever order, no good MPDU is lost or counted twice, and each belongs to its transmitter.
    #[test]
    fn every_good_mpdu_is_in_exactly_one_frame(air in prop::collection::vec(anything(), 0..200)) {
        let mut at = 0;
        let air: Vec<(u64, ReceivedMpdu)> = air.into_iter().map(|(gap, mpdu)| { at += gap; (at, mpdu) }).collect();
        let found = frames(&air);
        for transmitter in [AP, STATION, OTHER] {
            let good = air.iter().map(|(_, mpdu)| mpdu).filter(|mpdu| mpdu.fcs_good && mpdu.transmitter == transmitter);
            let (mut count, mut msdus) = (0, 0);
            good.for_each(|mpdu| { count += 1; msdus += u32::from(mpdu.msdus); });
            let own = found.iter().filter(|frame| frame.transmitter == transmitter);
            prop_assert_eq!(own.clone().map(|frame| frame.mpdus).sum::<u32>(), count);
            prop_assert_eq!(own.map(|frame| frame.msdus).sum::<u32>(), msdus);
        }
        for frame in &found {
            prop_assert!(frame.end.since(frame.start) <= LONGEST && frame.mpdus > 0);
            prop_assert!(frame.packets() >= frame.msdus);
        }
    }
}
