use super::*;
use proptest::prelude::*;

fn ms(n: u64) -> Time {
    Time::from_nanos(n * 1_000_000)
}

fn recorder() -> Recorder {
    let names = [(Node(1), "near".to_string()), (Node(3), "far".to_string())];
    Recorder::new(Window { warm_up: ms(1000), end: ms(3000) }, names)
}

fn value(record: &RunRecord, key: Key) -> Option<f64> {
    record.figure(key).value()
}

#[test]
fn a_run_without_events_has_no_figures_and_every_reason() {
    let record = recorder().finish();
    assert_eq!(record.figures.len(), Key::ALL.len());
    for (key, figure) in &record.figures {
        assert!(matches!(figure, Figure::Absent(why) if !why.is_empty()), "{key}: {figure:?}");
    }
}

#[test]
fn throughput_counts_the_window_and_fairness_the_stations() {
    let mut r = recorder();
    r.bulk_flow(ms(0), FlowId(0), Node(1), "a");
    r.bulk_flow(ms(0), FlowId(1), Node(3), "b");
    r.goodput(ms(500), FlowId(0), Node(1), Bytes::new(9_000_000));
    r.goodput(ms(1500), FlowId(0), Node(1), Bytes::new(750_000));
    r.goodput(ms(2500), FlowId(1), Node(3), Bytes::new(250_000));
    r.goodput(ms(3000), FlowId(1), Node(3), Bytes::new(9_000_000));
    let record = r.finish();
    // 1 MB in 2 s.
    assert_eq!(value(&record, Key::Throughput), Some(4.0));
    assert_eq!(record.stations[0].figures[&Key::Throughput].value(), Some(3.0));
    // (3 + 1)^2 / (2 (9 + 1)).
    assert_eq!(value(&record, Key::Jain), Some(0.8));
    // Flow b had nothing until 2500, flow a nothing from 1500 on: both 1500 ms.
    assert_eq!(value(&record, Key::StallMax), Some(1500.0));
}

#[test]
fn a_starved_station_counts_in_the_fairness_index() {
    let mut r = recorder();
    r.bulk_flow(ms(0), FlowId(0), Node(1), "fed");
    r.bulk_flow(ms(0), FlowId(1), Node(3), "starved");
    r.goodput(ms(1500), FlowId(0), Node(1), Bytes::new(1000));
    let record = r.finish();
    assert_eq!(value(&record, Key::Jain), Some(0.5));
    assert_eq!(value(&record, Key::StallMax), Some(2000.0));
    assert_eq!(record.stations[1].figures[&Key::Throughput].value(), Some(0.0));
}

#[test]
fn hop_delay_pools_stations_and_skips_the_warm_up() {
    let mut r = recorder();
    r.hop_delivery(ms(900), ms(0), Node(1), Bytes::new(1500));
    r.hop_delivery(ms(1010), ms(1000), Node(1), Bytes::new(1500));
    r.hop_delivery(ms(1030), ms(1000), Node(3), Bytes::new(64));
    let record = r.finish();
    assert_eq!(value(&record, Key::HopDelayMean), Some(20.0));
    assert_eq!(record.stations[1].figures[&Key::HopDelayMean].value(), Some(30.0));
    assert_eq!(record.hop_delays.count(), 2);
    let near =
        record.tracks.iter().find(|t| t.kind == SeriesKind::HopDelay && t.entity == Entity::Station("near".into()));
    let hop = record.tracks.iter().find(|t| t.kind == SeriesKind::HopDelay && t.entity == Entity::Hop);
    assert_eq!(hop.expect("a track").values[50..52], [Some(10.0), Some(30.0)]);
    assert_eq!(near.expect("a track").values[45], Some(900.0), "the warm-up is drawn though not counted");
}

#[test]
fn a_probe_belongs_to_the_window_by_when_it_was_sent() {
    let mut r = recorder();
    r.probe(ms(990), ms(1500), Node(1));
    r.probe(ms(2990), ms(3040), Node(1));
    r.probe_lost(ms(2000), Node(3));
    let record = r.finish();
    assert_eq!(record.stations[0].figures[&Key::ProbeDelayP95], Figure::Exact(50.0));
    assert_eq!(record.figure(Key::ProbeDelayP95), Figure::AtLeast(50.0));
    assert_eq!(value(&record, Key::ProbeLossRatio), Some(0.5));
}

#[test]
fn an_unfinished_fetch_stays_in_the_percentiles() {
    let mut r = recorder();
    r.fetch(ms(1000), ms(1100), Node(1));
    r.fetch_unfinished(ms(2000), Node(1));
    r.fetch_unfinished(ms(500), Node(1)); // before the window
    let record = r.finish();
    assert_eq!(record.figure(Key::FetchP50), Figure::AtLeast(550.0));
}

#[test]
fn retransmissions_are_those_of_the_window() {
    let mut r = recorder();
    r.bulk_flow(ms(0), FlowId(0), Node(1), "a");
    r.segments(ms(1000), FlowId(0), Segments { sent: 1000, retransmitted: 500, ..Segments::default() });
    r.segments(ms(3000), FlowId(0), Segments { sent: 2000, retransmitted: 520, ..Segments::default() });
    assert_eq!(value(&r.finish(), Key::RetransmissionRatio), Some(0.02));
}

#[test]
fn rate_is_zero_while_a_flow_lives_and_absent_before() {
    let mut r = recorder();
    r.bulk_flow(ms(100), FlowId(7), Node(1), "late");
    r.goodput(ms(205), FlowId(7), Node(1), Bytes::new(2_500));
    r.bulk_flow_ended(ms(300), FlowId(7));
    let record = r.finish();
    let rate = &record.tracks.iter().find(|t| t.kind == SeriesKind::Rate).expect("a rate").values;
    assert_eq!((rate[4], rate[5], rate[10], rate[15]), (None, Some(0.0), Some(1.0), None));
}

#[test]
fn strangers_are_counted_not_measured() {
    let mut r = recorder();
    r.hop_delivery(ms(1500), ms(1400), Node(0), Bytes::new(100));
    r.hop_delivery(ms(1500), ms(1400), Node(900), Bytes::new(100));
    let record = r.finish();
    assert_eq!(record.hop_delays.count(), 0);
    assert!(record.notes[0].starts_with("2 observations"));
}

#[test]
fn packets_are_kept_only_on_demand() {
    let mut r = recorder();
    r.hop_delivery(ms(1500), ms(1400), Node(3), Bytes::new(100));
    assert_eq!(r.clone().finish().packets, None);
    r.keep_packets();
    r.hop_delivery(ms(1600), ms(1400), Node(3), Bytes::new(100));
    let kept = PacketDelay { station: 1, at: ms(1600), delay: Span::from_millis(200) };
    assert_eq!(r.finish().packets, Some(vec![kept]));
}

proptest! {
    #[test]
    fn any_history_gives_finite_figures_within_their_range(
        events in prop::collection::vec((0u8..8, 0u64..4_000, 0u64..4_000, 0u16..5, any::<f64>()), 0..200),
    ) {
        let mut r = recorder();
        for (kind, a, b, node, x) in events {
            let (station, flow) = (Node(node), FlowId(u32::from(node)));
            match kind {
                0 => r.hop_delivery(ms(a), ms(b), station, Bytes::new(a)),
                1 => r.goodput(ms(a), flow, station, Bytes::new(b)),
                2 => r.probe(ms(a), ms(b), station),
                3 => r.probe_lost(ms(a), station),
                4 => r.fetch(ms(a), ms(b), station),
                5 => r.fetch_unfinished(ms(a), station),
                6 => r.segments(ms(a), flow, Segments { sent: a, retransmitted: a.min(b), ..Segments::default() }),
                _ => r.sample(ms(a), Gauge::Flow(SeriesKind::Window, flow), x),
            }
        }
        let record = r.finish();
        for (key, figure) in record.figures.iter().chain(record.stations.iter().flat_map(|s| &s.figures)) {
            let Some(value) = figure.value() else { continue };
            prop_assert!(value.is_finite() && value >= 0.0, "{} = {}", key, value);
            if matches!(key, Key::Jain | Key::ProbeLossRatio) {
                prop_assert!(value <= 1.0 + 1e-12, "{} = {}", key, value);
            }
        }
        for track in &record.tracks {
            prop_assert_eq!(track.values.len(), 150);
            prop_assert!(track.values.iter().flatten().all(|v| v.is_finite()));
        }
    }
}
