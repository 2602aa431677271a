use super::*;
use lasthop_units::Bytes;
use lasthop_units::brief::at;

const DELTA: Span = Span::from_millis(500);

fn sent(station: u16, packets: u64) -> StreamReport {
    StreamReport { station: Node(station), packets, bytes: Bytes::new(packets * 1000), waiting: true }
}

/// A slot of half a second with 100 frames of `level` packets.
fn account(station: u16, slot: u32, level: u64) -> StationFeedback {
    StationFeedback {
        frames: 100,
        packets: 100 * level,
        received: 100 * level,
        ..StationFeedback::empty(Node(station), slot, Time::ZERO, at(500))
    }
}

/// Two stations, to which is sent, both at time 0.
fn stations() -> Stations<()> {
    let mut stations = Stations::new(DELTA, false);
    assert!(stations.stream(at(0), &sent(1, 0)));
    assert!(stations.stream(at(0), &sent(2, 0)));
    stations
}

fn close(stations: &mut Stations<()>, ms: u64) -> Vec<Slot> {
    let mut slots = Vec::new();
    stations.close(at(ms), |_, slot| slots.push(*slot));
    slots
}

#[test]
fn a_slot_ends_when_all_reported_but_not_before_half_of_it() {
    let mut stations = stations();
    stations.feedback(at(100), &account(1, 1, 10));
    assert!(!stations.is_due(at(500)), "station 2 is waited for");
    stations.feedback(at(200), &account(2, 1, 10));
    assert!(!stations.is_due(at(249)), "half of it is not over");
    assert!(stations.is_due(at(250)));
}

#[test]
fn a_missing_report_is_awaited_for_a_quarter_of_a_slot() {
    let mut stations = stations();
    stations.feedback(at(100), &account(1, 1, 10));
    assert_eq!(stations.deadline(), Some(at(625)));
    assert!(!stations.is_due(at(624)));
    assert!(stations.is_due(at(625)));
    let slots = close(&mut stations, 625);
    assert!(slots[0].frames.is_some() && slots[1].frames.is_none());
}

#[test]
fn a_late_report_counts_with_the_next_slots_report() {
    let mut stations = stations();
    stations.feedback(at(500), &account(1, 1, 10));
    close(&mut stations, 625);
    stations.feedback(at(650), &account(2, 1, 10));
    stations.feedback(at(1_000), &account(1, 2, 10));
    stations.feedback(at(1_100), &account(2, 2, 30));
    let frames = close(&mut stations, 1_100)[1].frames.expect("it has reported");
    assert_eq!((frames.level, frames.seconds, frames.rate), (20.0, 1.0, 4_000.0));
}

#[test]
fn old_slot_numbers_are_not_counted_and_numbers_wrap() {
    let mut stations = stations();
    let level = |stations: &mut Stations<()>, ms| close(stations, ms)[0].frames.map(|frames| frames.level);
    stations.feedback(at(500), &account(1, u32::MAX, 10));
    assert_eq!(level(&mut stations, 625), Some(10.0));
    // The second copy, and one that was overtaken.
    stations.feedback(at(700), &account(1, u32::MAX, 60));
    stations.feedback(at(700), &account(1, u32::MAX - 5, 60));
    assert_eq!(level(&mut stations, 1_250), None);
    stations.feedback(at(1_300), &account(1, 0, 20));
    assert_eq!(level(&mut stations, 1_875), Some(20.0));
}

#[test]
fn a_silent_station_is_awaited_twice_and_gone_after_ten_slots() {
    let mut stations = stations();
    for slot in 1..=12u32 {
        let start = u64::from(slot - 1) * 500;
        stations.stream(at(start + 400), &sent(2, u64::from(slot) * 100));
        stations.stream(at(start + 400), &sent(1, u64::from(slot) * 100));
        stations.feedback(at(start + 450), &account(1, slot, 10));
        assert_eq!(stations.is_due(at(start + 450)), slot > 2, "slot {slot}: 2 is waited for in two slots");
        close(&mut stations, start + 500);
        let silent = stations.get(Node(2)).expect("known");
        assert_eq!((silent.silent, silent.is_active()), (slot, slot < 10), "slot {slot}");
        assert!(stations.get(Node(1)).expect("known").is_active());
    }
}

#[test]
fn an_idle_station_is_inactive_until_its_first_packet() {
    let mut stations = stations();
    stations.stream(at(400), &StreamReport { waiting: false, ..sent(2, 0) });
    stations.feedback(at(450), &account(2, 1, 10));
    close(&mut stations, 500);
    assert!(!stations.get(Node(2)).expect("known").is_active());
    assert!(stations.stream(at(600), &sent(2, 1)), "it has come back");
    assert!(stations.get(Node(2)).expect("known").is_active());
}

#[test]
fn a_proxy_that_begins_anew_does_not_count_backwards() {
    let mut stations = stations();
    stations.stream(at(500), &sent(1, 5_000));
    assert_eq!(close(&mut stations, 500)[0].sent, Some(10_000.0));
    stations.stream(at(600), &sent(1, 10));
    stations.stream(at(1_100), &sent(1, 1_010));
    let slot = close(&mut stations, 1_100)[0];
    assert_eq!((slot.sent, slot.anew), (Some(2_000.0), true), "and it is said, once");
    stations.stream(at(1_600), &sent(1, 2_010));
    assert!(!close(&mut stations, 1_600)[0].anew);
}

#[test]
fn delays_are_weighted_by_packets_and_losses_counted_a_second() {
    let mut stations = stations();
    let delay = |ms| Some(Span::from_millis(ms));
    stations.feedback(at(500), &StationFeedback { delay_mean: delay(10), lost: 20, ..account(1, 1, 10) });
    stations.feedback(at(510), &StationFeedback { delay_mean: delay(50), lost: 30, ..account(1, 2, 30) });
    let frames = close(&mut stations, 625)[0].frames.expect("it has reported");
    assert_eq!(frames.lost, 50.0);
    assert!((frames.delay.expect("told") - 0.04).abs() < 1e-9);
}

#[test]
fn rates_that_no_hardware_has_are_not_believed() {
    let mut stations = stations();
    let of = |rate: f64, slot| StationFeedback { inverse_rate_sum: 100.0 / rate, ..account(1, slot, 10) };
    for (slot, (rate, believed)) in (1u32..).zip([(390e6, true), (1e4, false), (1e12, false)]) {
        stations.feedback(at(u64::from(slot) * 500), &of(rate, slot));
        let frames = close(&mut stations, u64::from(slot) * 500)[0].frames.expect("it has reported");
        assert_eq!(frames.inverse_rate.is_some(), believed, "{rate}");
    }
}

#[test]
fn packets_without_frame_counts_freeze_a_station_but_keep_it() {
    let mut stations = stations();
    for slot in 1..=30u32 {
        stations.stream(at(u64::from(slot) * 500), &sent(1, u64::from(slot) * 100));
        let blind = StationFeedback { frames: 0, packets: 0, ..account(1, slot, 1) };
        stations.feedback(at(u64::from(slot) * 500), &blind);
        assert_eq!(close(&mut stations, u64::from(slot) * 500)[0].frames, None);
        assert!(stations.get(Node(1)).expect("known").is_active(), "slot {slot}");
    }
    assert!(stations.get(Node(1)).expect("known").silent >= FROZEN_AFTER);
}

#[test]
fn rates_are_of_the_frames_that_have_any() {
    let mut stations = stations();
    stations.feedback(at(100), &StationFeedback { inverse_rate_sum: 100.0 / 50e6, ..account(1, 1, 10) });
    stations.feedback(at(200), &account(1, 2, 10));
    let slots = close(&mut stations, 625);
    let inverse = slots[0].frames.and_then(|frames| frames.inverse_rate).expect("known of half the frames");
    assert!((inverse * 50e6 - 1.0).abs() < 1e-12, "{inverse}");
    stations.feedback(at(700), &account(1, 3, 10));
    assert_eq!(close(&mut stations, 1_250)[0].frames.expect("frames").inverse_rate, None);
}

/// Two stations, of which the second has said nothing for ten slots in which it was sent to.
fn without_the_second() -> Stations<()> {
    let mut stations = stations();
    for slot in 1..=10u32 {
        let start = u64::from(slot - 1) * 500;
        stations.stream(at(start + 400), &sent(2, u64::from(slot) * 100));
        stations.stream(at(start + 400), &sent(1, u64::from(slot) * 100));
        stations.feedback(at(start + 450), &account(1, slot, 10));
        close(&mut stations, start + 500);
    }
    assert!(!stations.get(Node(2)).expect("known").is_active());
    stations
}

#[test]
fn a_gone_station_returns_when_it_reports_frames_or_packets() {
    let nothing = StationFeedback { frames: 0, packets: 0, received: 0, ..account(2, 11, 1) };
    for returns in [account(2, 12, 10), StationFeedback { frames: 0, packets: 0, ..account(2, 12, 1) }] {
        let mut stations = without_the_second();
        assert!(!stations.stream(at(5_100), &sent(2, 2_000)), "to be sent to is no sign of life");
        assert!(!stations.feedback(at(5_200), &nothing), "nor is an account of nothing");
        assert!(!stations.get(Node(2)).expect("known").is_active());
        assert!(stations.feedback(at(5_300), &returns), "{returns:?}");
        let back = stations.get(Node(2)).expect("known");
        assert_eq!((back.is_active(), back.silent), (true, 0));
    }
}

#[test]
fn who_was_sent_nothing_for_long_has_not_fallen_silent() {
    let mut stations = stations();
    for slot in 1..=20u32 {
        let now = u64::from(slot) * 500;
        stations.stream(at(now - 100), &sent(1, u64::from(slot) * 100));
        stations.feedback(at(now - 50), &account(1, slot, 10));
        stations.stream(at(now - 100), &StreamReport { waiting: false, ..sent(2, 0) });
        close(&mut stations, now);
        assert_eq!(stations.get(Node(2)).expect("known").silent, 0, "slot {slot}");
    }
    assert!(stations.stream(at(10_100), &sent(2, 1)), "so it returns with the first packet for it");
}
