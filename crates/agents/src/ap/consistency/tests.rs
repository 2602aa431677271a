//! Lies of a driver, what is said of them, and what they do to the windows of the law behind.

use super::*;
use lasthop_laws::HopLaw;
use lasthop_laws::oal::{AccessPoint, Params};
use lasthop_signals::{FlowId, FlowReport, Signal};
use proptest::prelude::*;

/// Records are 4 ms apart.
const STEP: u64 = 4_000_000;
/// When the driver began to count.
const BEGAN: u64 = 1_000_000_000_000;

/// Two stations at 390 Mbit/s, each with two exchanges of 20 MPDUs in 4 ms, and packets that wait.
fn truth(n: u64) -> Record {
    let station = |station| StationReport {
        backlog_packets: 100,
        backlog_bytes: Bytes::new(150_000),
        tx_attempts: Some(n * 40),
        tx_packets: n * 40,
        tx_bytes: Bytes::new(n * 40 * 1500),
        tx_airtime: Some(Span::from_micros(n * 2 * 725)),
        tx_ppdus: Some(n * 2),
        phy_rate: Rate::from_mbit(390),
        ..StationReport::unseen(Node(station))
    };
    let (tx, rx) = (Span::from_micros(n * 4 * 693), Span::from_micros(n * 4 * 32));
    let channel = ChannelTime {
        active: Span::from_nanos(n * STEP),
        busy: Some(tx + rx),
        rx: Some(rx),
        tx: Some(tx),
        ..ChannelTime::default()
    };
    let report = HopReport { channel, stations: vec![station(1), station(2)], ..HopReport::default() };
    Record { at: Time::from_nanos(BEGAN + n * STEP), report, addresses: BTreeMap::new() }
}

fn flow(station: u16, at: Time, n: u64) -> Signal {
    Signal::Flow(FlowReport {
        flow: FlowId(u32::from(station)),
        station: Node(station),
        forwarded: Bytes::new(n * 40 * 1448 + 1),
        acked: Bytes::new(n * 40 * 1448),
        in_flight: Bytes::new(100_000),
        wired_rtt: Some(Span::from_millis(20)),
        wireless_rtt: Some(Span::from_millis(1)),
        mss: Bytes::new(1448),
        advertised: Bytes::new(3_000_000),
        last_data: at,
        recovering: false,
    })
}

#[derive(Default)]
struct Outcome {
    /// The first flow's window after each record that was admitted, in kB, from the moment at which the law knew the hop.
    windows: Vec<u64>,
    refused: Vec<Contradiction>,
    /// The most records in a row that were refused.
    longest: u64,
}

impl Outcome {
    fn least(&self) -> u64 {
        self.windows.iter().copied().min().expect("records were admitted")
    }
}

/// 400 records of which `lie` may change what it likes, from the 100th on.
fn play(lie: impl Fn(u64, &mut Record)) -> Outcome {
    let (mut consistency, mut outcome, mut row) = (Consistency::default(), Outcome::default(), 0);
    let mut law = AccessPoint::new(Params::default()).expect("valid parameters");
    for n in 1..=400 {
        let (mut record, now) = (truth(n), truth(n).at);
        if n >= 100 {
            lie(n, &mut record);
        }
        match consistency.admit(now, record) {
            Ok(record) => {
                row = 0;
                (1..=2).for_each(|station| law.sense(now, &flow(station, now, n)));
                law.sense(now, &Signal::Hop(record.report));
                if n > 60 {
                    law.decide(now, &mut |id, decision| {
                        if id == FlowId(1) {
                            outcome.windows.push(decision.rwnd.map_or(u64::MAX, Bytes::get) / 1000);
                        }
                    });
                }
            }
            Err(why) => {
                row += 1;
                outcome.longest = outcome.longest.max(row);
                outcome.refused.push(why);
            }
        }
    }
    outcome
}

fn busy(record: &mut Record) -> &mut Span {
    record.report.channel.busy.as_mut().expect("counted")
}

#[test]
fn the_truth_is_admitted_as_it_is() {
    let outcome = play(|_, _| {});
    assert_eq!(outcome.refused, []);
    assert!((450..=480).contains(&outcome.least()), "{} kB", outcome.least());
    let mut consistency = Consistency::default();
    (1..50).for_each(|n| assert_eq!(consistency.admit(truth(n).at, truth(n)), Ok(truth(n))));
}

#[test]
fn a_busy_time_jump_costs_one_record_and_no_window() {
    let outcome = play(|_, record| *busy(record) += Span::from_secs(100));
    // More than the time on the channel, so for ever.
    assert_eq!(outcome.refused.len(), 301);
    assert!(matches!(outcome.refused[0], Contradiction::Part { part: "busy time", .. }), "{:?}", outcome.refused[0]);
    let outcome = play(|_, record| {
        *busy(record) += Span::from_secs(100);
        record.report.channel.active += Span::from_secs(100);
    });
    assert_eq!((outcome.refused.len(), outcome.longest), (1, 1), "{:?}", outcome.refused);
    assert!((440..=480).contains(&outcome.least()), "{} kB", outcome.least());
}

#[test]
fn busy_time_beyond_elapsed_time_is_refused_without_effect() {
    // As a driver that began long ago could say.
    let outcome = play(|n, record| {
        record.report.channel.active += Span::from_secs(1_000);
        *busy(record) += Span::from_nanos((n - 99) * STEP);
    });
    assert!(outcome.refused.len() > 295, "{}", outcome.refused.len());
    assert!((400..=480).contains(&outcome.least()), "{} kB", outcome.least());
}

#[test]
fn busy_time_that_stands_still_and_comes_back_is_no_neighbour() {
    let stuck = *busy(&mut truth(99));
    let outcome = play(|n, record| {
        if n % 100 < 50 {
            *busy(record) = stuck.max(*busy(&mut truth(n / 100 * 100 - 1)));
        }
    });
    assert!(outcome.longest >= 40, "{}", outcome.longest);
    assert!((430..=500).contains(&outcome.least()), "{} kB", outcome.least());
}

#[test]
fn a_station_twice_is_refused() {
    let outcome = play(|n, record| {
        if n % 2 == 0 {
            let twin = StationReport { phy_rate: Rate::from_mbit(6), ..record.report.stations[0] };
            record.report.stations.push(twin);
        }
    });
    assert!(outcome.refused.iter().all(|why| *why == Contradiction::Twice(Node(1))));
    assert_eq!(outcome.refused.len(), 151);
    assert!((440..=480).contains(&outcome.least()), "{} kB", outcome.least());
}

#[test]
fn a_rate_of_6_mbit_that_the_frames_contradict_does_not_count() {
    let slow = |record: &mut Record| record.report.stations[0].phy_rate = Rate::from_mbit(6);
    // Of a management frame, now and then: the last rate counts, and nobody need hear of it.
    let outcome = play(|n, record| {
        if n % 5 == 0 {
            slow(record);
        }
    });
    assert_eq!(outcome.refused, []);
    assert!((440..=480).contains(&outcome.least()), "{} kB", outcome.least());
    // For good.
    let outcome = play(|_, record| slow(record));
    assert!(outcome.refused.len() > 270 && outcome.longest > 270, "{}", outcome.refused.len());
    assert!(matches!(outcome.refused[0], Contradiction::Faster { station: Node(1), .. }));
    assert!((440..=480).contains(&outcome.least()), "{} kB", outcome.least());
}

#[test]
fn records_without_frames_do_not_speak_for_a_rate() {
    // The frames of two records show in the second, as where an exchange takes longer than a record: in the first, one short
    // frame at most. The lie begins with the one or the other.
    for (short, first) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let played = |rate: u64| {
            play(|n, record| {
                if n % 2 == first {
                    let before = truth(n - 1).report.stations[0];
                    record.report.stations[0] = StationReport {
                        tx_attempts: before.tx_attempts.map(|before| before + short),
                        tx_packets: before.tx_packets + short,
                        tx_bytes: before.tx_bytes + Bytes::new(100 * short),
                        tx_ppdus: before.tx_ppdus.map(|ppdus| ppdus + short),
                        ..before
                    };
                }
                record.report.stations[0].phy_rate = Rate::from_mbit(rate);
            })
        };
        let (honest, lie) = (played(390), played(6));
        assert_eq!(honest.refused, []);
        assert!(lie.longest > 250, "{}", lie.longest);
        assert!(lie.least() * 10 >= honest.least() * 9, "{} kB, {} kB", honest.least(), lie.least());
    }
}

#[test]
fn a_lower_rate_without_frames_counts_after_a_while() {
    let mut consistency = Consistency::default();
    let rates = (1..150).map(|n| {
        let mut record = truth(n);
        if n >= 100 {
            record.report.stations[0] = StationReport { phy_rate: Rate::from_mbit(26), ..truth(99).report.stations[0] };
        }
        consistency.admit(record.at, record).expect("true").report.stations[0].phy_rate.as_bps() / 1_000_000
    });
    // 100 ms are 25 records.
    assert_eq!(rates.skip(99).position(|rate| rate == 26), Some(26));
}

#[test]
fn a_rate_that_falls_counts_once_frames_are_as_slow() {
    let mut consistency = Consistency::default();
    (1..100).for_each(|n| drop(consistency.admit(truth(n).at, truth(n))));
    // From here on one exchange of 4 MPDUs takes the 2 ms of a record at 26 Mbit/s; the first record has the frames of before.
    let mut counted = Vec::new();
    for n in 100..110 {
        let mut record = truth(n);
        let station = &mut record.report.stations[0];
        let base = truth(100).report.stations[0];
        station.phy_rate = Rate::from_mbit(26);
        station.tx_attempts = base.tx_attempts.map(|attempts| attempts + (n - 100) * 4);
        station.tx_packets = base.tx_packets + (n - 100) * 4;
        station.tx_bytes = base.tx_bytes + Bytes::new((n - 100) * 4 * 1500);
        station.tx_ppdus = base.tx_ppdus.map(|ppdus| ppdus + (n - 100));
        station.tx_airtime = base.tx_airtime.map(|airtime| airtime + Span::from_micros((n - 100) * 2_000));
        let told = consistency.admit(record.at, record).expect("true");
        counted.push(told.report.stations[0].phy_rate.as_bps() / 1_000_000);
    }
    assert_eq!(counted, [390, 26, 26, 26, 26, 26, 26, 26, 26, 26]);
}

#[test]
fn a_driver_restart_costs_one_record_and_counting_goes_on() {
    let outcome = play(|n, record| {
        if n >= 200 {
            let at = record.at;
            *record = Record { at, ..truth(n - 199) };
        }
    });
    assert_eq!(outcome.refused.len(), 1, "{:?}", outcome.refused);
    assert!(matches!(outcome.refused[0], Contradiction::Fell(_)));
    assert!((440..=480).contains(&outcome.least()), "{} kB", outcome.least());
}

#[test]
fn what_a_driver_lacks_is_no_lie_and_no_sign_of_a_full_channel() {
    let lacking: [fn(&mut Record); 4] = [
        |record| record.report.channel.busy = None,
        |record| (record.report.channel.rx, record.report.channel.tx) = (None, None),
        |record| record.report.stations.iter_mut().for_each(|station| station.tx_ppdus = None),
        |record| {
            for station in &mut record.report.stations {
                (station.tx_airtime, station.rx_airtime, station.tx_ppdus) = (None, None, None);
            }
        },
    ];
    for (case, lack) in lacking.into_iter().enumerate() {
        let outcome = play(|_, record| lack(record));
        assert_eq!(outcome.refused, [], "case {case}");
        assert!((400..=700).contains(&outcome.least()), "case {case}: {} kB", outcome.least());
    }
    // Zeros in their place are what nobody can believe: frames take time.
    let outcome = play(|_, record| record.report.stations.iter_mut().for_each(|s| s.tx_airtime = Some(Span::ZERO)));
    assert!(outcome.refused.len() > 290);
}

/// A counter that a lie may change: by its number.
fn tell_a_lie(record: &mut Record, which: usize, by: u64) {
    let Record { at, report, .. } = record;
    let HopReport { channel, stations, .. } = report;
    let (ms, station) = (Span::from_millis(by), &mut stations[0]);
    match which {
        0 => *channel.busy.get_or_insert_default() += ms,
        1 => *channel.tx.get_or_insert_default() += ms,
        2 => channel.active += ms,
        3 => *station.tx_airtime.get_or_insert_default() += ms,
        4 => *station.rx_airtime.get_or_insert_default() += ms,
        5 => *station.tx_attempts.get_or_insert_default() += by,
        6 => *station.tx_ppdus.get_or_insert_default() += by,
        7 => station.tx_bytes += Bytes::new(by * 1000),
        8 => station.phy_rate = Rate::from_mbit(by % 390),
        9 => {
            let twin = *station;
            stations.push(twin);
        }
        10 => *channel.busy.get_or_insert_default() = ms,
        11 => station.tx_airtime = Some(ms),
        12 => *channel.rx.get_or_insert_default() += ms,
        13 => *at += ms,
        _ => *at = at.saturating_sub(ms),
    }
}

/// Counters that a lie may change.
const LIES: usize = 15;

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn no_lie_makes_a_window_a_small_one(
        lies in proptest::collection::vec((100u64..390, 1u64..40, 0..LIES, 60u64..200_000), 1..5),
    ) {
        let outcome = play(|n, record| {
            for (from, len, which, by) in &lies {
                if (*from..from + len).contains(&n) {
                    tell_a_lie(record, *which, *by);
                }
            }
        });
        prop_assert!(outcome.least() > 150, "{} kB: {:?}", outcome.least(), outcome.refused.first());
        let last = outcome.windows.last().copied().expect("records were admitted");
        prop_assert!(last > 300, "{last} kB in the end");
    }

    #[test]
    fn no_record_makes_it_panic(
        times in proptest::collection::vec(any::<u64>(), 8), words in proptest::collection::vec(any::<[u64; 14]>(), 2..20),
    ) {
        let mut consistency = Consistency::default();
        for (n, w) in words.iter().enumerate() {
            let some = |n: usize| (w[n] % 4 != 0).then_some(w[n]);
            let span = |n: usize| some(n).map(Span::from_nanos);
            let station = StationReport {
                tx_attempts: Some(w[4]),
                tx_packets: w[5],
                tx_bytes: Bytes::new(w[6]),
                tx_airtime: span(7),
                rx_airtime: span(8),
                tx_ppdus: some(9),
                phy_rate: Rate::from_bps(w[10]),
                backlog_packets: w[11] as u32,
                ..StationReport::unseen(Node(w[12] as u16 % 3))
            };
            let channel = ChannelTime { active: Span::from_nanos(w[0]), busy: span(1), rx: span(2), tx: span(3), ..ChannelTime::default() };
            let at = Time::from_nanos(times[n % times.len()]);
            let report = HopReport { channel, stations: vec![station; 1 + n % 2], ..HopReport::default() };
            let record = Record { at, report, addresses: BTreeMap::new() };
            drop(consistency.admit(Time::from_nanos(w[13]), record));
        }
    }
}
