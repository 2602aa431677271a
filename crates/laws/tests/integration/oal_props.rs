//! Whatever passes the access point: what is told of a moment does not change by what comes later, and no bytes make a tree that
//! cannot be.

use lasthop_laws::oal::features::FEATURES;
use lasthop_laws::oal::label::{Collector, Item, Timing};
use lasthop_laws::oal::predictor::LossClass;
use lasthop_laws::oal::trainer::{Growth, Trainer};
use lasthop_laws::oal::tree::Tree;
use lasthop_signals::{
    ChannelTime, FlowId, FlowReport, HopReport, Node, SackRanges, Segment, Signal, StationReport, Way,
};
use lasthop_units::{Bytes, Rate, Span, Time};
use proptest::collection::vec;
use proptest::prelude::*;

const MSS: u32 = 1448;

/// Something that an access point sees, without its time.
#[derive(Clone, Debug)]
enum Event {
    Data { flow: u32, number: u32, segments: u16 },
    Ack { flow: u32, next: u32, sack: Vec<(u32, u32)> },
    Flow { flow: u32, wired_ms: Option<u64>, forwarded: u64 },
    Gone { flow: u32 },
    Hop { counts: [u64; 3], stations: u16 },
    Acted(bool),
    MacLoss { flow: u32, number: u32 },
}

/// Segments' numbers go up with time, and back to those of a moment ago.
fn event() -> impl Strategy<Value = Event> {
    let flow = || 0u32..3;
    prop_oneof![
        12 => (flow(), 0u32..60, 1u16..4).prop_map(|(flow, number, segments)| Event::Data { flow, number, segments }),
        6 => (flow(), 0u32..60, vec((0u32..60, 1u32..10), 0..4)).prop_map(|(flow, next, sack)| {
            Event::Ack { flow, next, sack: sack.into_iter().map(|(left, len)| (left, left + len)).collect() }
        }),
        1 => (flow(), prop::option::of(0u64..200), 0u64..1 << 30)
            .prop_map(|(flow, wired_ms, forwarded)| Event::Flow { flow, wired_ms, forwarded }),
        1 => flow().prop_map(|flow| Event::Gone { flow }),
        8 => ([0u64..1000, 0u64..1000, 0u64..1000], 0u16..4)
            .prop_map(|(counts, stations)| Event::Hop { counts, stations }),
        1 => any::<bool>().prop_map(Event::Acted),
        1 => (flow(), 0u32..60).prop_map(|(flow, number)| Event::MacLoss { flow, number }),
    ]
}

/// Steps of up to 8 ms, now and then of more.
fn history() -> impl Strategy<Value = Vec<(u64, Event)>> {
    vec((prop_oneof![30 => 0u64..8_000_000, 1 => 0u64..400_000_000], event()), 0..600)
}

/// Items, and the features of each moment as bits, with the time by which they are known.
#[derive(Default)]
struct Told {
    items: Vec<Item>,
    vectors: Vec<(Time, Vec<u32>)>,
}

const TIMING: Timing = Timing { horizon: Span::from_millis(30), repair: Span::from_millis(200) };

fn run(history: &[(u64, Event)]) -> Told {
    let (mut collector, mut told, mut ns) = (Collector::new(TIMING), Told::default(), 0);
    for (gap, event) in history {
        ns += gap;
        let now = Time::from_nanos(ns);
        // 60 segments a 20 ms: the same number is a repeat, or near to it.
        let base = (ns / 20_000_000) as u32 * 30;
        let octet = |number: u32| (base + number).wrapping_mul(MSS).wrapping_add(u32::MAX - 100 * MSS);
        let station = |flow: u32| Node(1 + (flow % 2) as u16);
        let segment = |flow: u32, way, seq, len, count, ack, sack| {
            Signal::Segment(Segment { flow: FlowId(flow), station: station(flow), way, seq, len, count, ack, sack })
        };
        match event {
            Event::Data { flow, number, segments } => {
                let len = u32::from(*segments) * MSS;
                let none = SackRanges::EMPTY;
                collector.sense(now, &segment(*flow, Way::Down, octet(*number), len, *segments, 0, none));
            }
            Event::Ack { flow, next, sack } => {
                let sack = sack.iter().map(|(left, right)| (octet(*left), octet(*right))).collect();
                collector.sense(now, &segment(*flow, Way::Up, 0, 0, 1, octet(*next), sack));
            }
            Event::Flow { flow, wired_ms, forwarded } => collector.sense(
                now,
                &Signal::Flow(FlowReport {
                    flow: FlowId(*flow),
                    station: station(*flow),
                    forwarded: Bytes::new(*forwarded),
                    acked: Bytes::ZERO,
                    in_flight: Bytes::new(forwarded / 2),
                    wired_rtt: wired_ms.map(Span::from_millis),
                    wireless_rtt: None,
                    mss: Bytes::new(u64::from(MSS)),
                    advertised: Bytes::ZERO,
                    last_data: now,
                    recovering: false,
                }),
            ),
            Event::Gone { flow } => collector.sense(now, &Signal::FlowGone(FlowId(*flow))),
            Event::Hop { counts: [one, two, three], stations } => {
                let report = |node| StationReport {
                    backlog_packets: *one as u32,
                    backlog_bytes: Bytes::new(one * 1500),
                    head_wait: Some(Span::from_micros(*two)),
                    queue_drops: ns / 1_000_000 + three,
                    tx_attempts: Some(ns / 10_000 + two),
                    tx_failed: Some(ns / 50_000_000 + one / 500),
                    tx_bytes: Bytes::new(ns / 100),
                    tx_airtime: Some(Span::from_nanos(ns / 2)),
                    phy_rate: Rate::from_mbit(*three),
                    ..StationReport::unseen(Node(node))
                };
                let (active, busy) = (Span::from_nanos(ns), Span::from_nanos(ns / 3));
                let channel = ChannelTime {
                    active,
                    busy: Some(busy),
                    rx: Some(Span::ZERO),
                    tx: Some(busy),
                    ..ChannelTime::default()
                };
                collector.sense(
                    now,
                    &Signal::Hop(HopReport {
                        channel,
                        stations: (1..=*stations).map(report).collect(),
                        ..HopReport::default()
                    }),
                );
                let vectors = collector.sampler().vectors().iter();
                let bits = vectors.flat_map(|(node, vector)| {
                    std::iter::once(u32::from(node.0)).chain(vector.iter().map(|value| value.to_bits()))
                });
                told.vectors.push((now, bits.collect()));
                collector.take(|item| told.items.push(item));
            }
            Event::Acted(acted) => collector.acted(*acted),
            Event::MacLoss { flow, number } => {
                collector.evidence().mac_loss(now, FlowId(*flow), (octet(*number), octet(number + 1)));
            }
        }
    }
    told
}

fn bits(item: &Item) -> (Time, Node, Vec<u32>, u64, u64, bool) {
    let features = item.features.iter().map(|value| value.to_bits()).collect();
    (item.at, item.station, features, item.copies, item.lost, item.acted)
}

/// Classes and features of a few values, some of them missing.
fn labelled() -> impl Strategy<Value = Vec<([f32; FEATURES.len()], LossClass)>> {
    let value = prop_oneof![
        4 => (0u8..6).prop_map(f32::from),
        4 => any::<f32>(),
        1 => prop::sample::select(vec![f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0]),
    ];
    let vector = prop::array::uniform16(value);
    vec((vector, prop::sample::select(LossClass::ALL.to_vec())), 0..200)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn what_comes_later_changes_no_item_and_no_feature(
        before in history(),
        one in history(),
        other in history(),
    ) {
        let end: u64 = before.iter().map(|(gap, _)| gap).sum();
        let run_with = |after: &[(u64, Event)]| run(&[&before[..], after].concat());
        let (alone, one, other) = (run(&before), run_with(&one), run_with(&other));
        for (vectors, later) in [(&alone, &one), (&alone, &other)] {
            prop_assert_eq!(&later.vectors[..vectors.vectors.len()], &vectors.vectors[..], "features");
        }
        // What is final at the end of the shared history has been told the same, whether or not it had been told by then.
        let horizon_max = Span::from_millis(500 + 100);
        let is_final = |item: &&Item| item.at + horizon_max + TIMING.repair <= Time::from_nanos(end);
        let shared = |told: &Told| told.items.iter().filter(is_final).map(bits).collect::<Vec<_>>();
        let (one_shared, other_shared) = (shared(&one), shared(&other));
        let both = one_shared.len().min(other_shared.len());
        prop_assert_eq!(&one_shared[..both], &other_shared[..both], "final items");
        // And what had been told stays as it was told.
        let told: Vec<_> = alone.items.iter().map(bits).collect();
        for later in [one, other] {
            prop_assert_eq!(&later.items.iter().map(bits).collect::<Vec<_>>()[..told.len()], &told[..], "told items");
        }
    }

    #[test]
    fn items_come_in_order_and_lose_no_more_than_entered(history in history()) {
        let told = run(&history);
        prop_assert!(told.items.is_sorted_by(|one, other| (one.at, one.station) < (other.at, other.station)));
        for item in &told.items {
            prop_assert!(item.copies > 0 && item.lost <= item.copies, "{item:?}");
        }
    }

    #[test]
    fn any_items_make_a_tree_that_survives_its_bytes(items in labelled(), leaf in 1usize..30, depth in 0u32..20) {
        let growth = Growth { depth, leaf, weight_max: 10.0, ..Growth::default() };
        let tree = Trainer::new(growth).train(3, items.iter().map(|(vector, class)| (vector, *class)));
        prop_assert_eq!(tree.is_none(), items.is_empty());
        let Some(tree) = tree else { return Ok(()) };
        let read = Tree::decode(&tree.encode());
        prop_assert_eq!(read.as_ref(), Ok(&tree));
        // It says nothing that it was not taught.
        for (vector, _) in &items {
            prop_assert!(items.iter().any(|(_, class)| *class == tree.classify(vector)));
        }
    }

    #[test]
    fn no_bytes_make_a_tree_that_cannot_be(
        items in labelled(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
        noise in vec(any::<u8>(), 0..200),
    ) {
        let tree = Trainer::new(Growth { leaf: 1, ..Growth::default() }).train(3, items.iter().map(|(v, c)| (v, *c)));
        let mut bytes = tree.map_or(noise, |tree| tree.encode());
        for (at, value) in changes {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len() + 1));
        }
        if let Ok(tree) = Tree::decode(&bytes) {
            prop_assert_eq!(tree.encode(), bytes);
            for value in [f32::NAN, -1.0, 0.0, 3.0, f32::INFINITY] {
                tree.classify(&[value; FEATURES.len()]);
            }
        }
    }
}
