//! Any signal at all: what worlds show, what drivers that restart and stations that lie show, and what no law expects.

use lasthop_signals::{
    Ack, Arrival, Block, Bounds, CellCapacity, CellSubframe, ChannelTime, Dci, DeliverySample, FlowId, FlowReport,
    FrameSource, HopReport, Loss, Lost, MacAddress, MonitorEvent, Node, Notice, PathDelay, Received, ReceivedFrame,
    Rnti, SackRanges, Segment, Sent, Signal, SocketReport, StationFeedback, StationReport, StreamReport, Way,
};
use lasthop_units::{Bytes, Rate, Span, Time};
use proptest::prelude::*;

/// Payload of a full segment.
pub const MSS: u64 = 1448;

/// What happens, as long after what came before.
pub fn history(most: usize) -> impl Strategy<Value = Vec<(Span, Signal)>> {
    let gap = prop_oneof![4 => span(), 1 => Just(Span::from_millis(500))];
    prop::collection::vec((gap, signal()), 0..most)
}

fn signal() -> impl Strategy<Value = Signal> {
    prop_oneof![
        4 => sender(),
        2 => hop(),
        2 => segment(),
        3 => feedback(),
        2 => (node(), count(), amount(), any::<bool>()).prop_map(|(station, packets, bytes, waiting)| {
            Signal::Stream(StreamReport { station, packets, bytes, waiting })
        }),
        1 => node().prop_map(Signal::Idle),
        3 => receiver(),
        2 => terminal(),
        2 => path(),
        3 => cell(),
        1 => Just(Signal::FlowGone(FlowId(3))),
        2 => Just(Signal::Wakeup),
    ]
}

/// What an ATP receiver meets, and what it tells.
fn path() -> impl Strategy<Value = Signal> {
    prop_oneof![
        span().prop_map(Signal::Stamp),
        span().prop_map(Signal::RoundTrip),
        (0usize..40).prop_map(Signal::Holes),
        (span(), span()).prop_map(|(average, epoch)| Signal::PathDelay(PathDelay { average, epoch })),
    ]
}

/// What a cell shows, its numbers out of order and its blocks of any size; and what a receiver tells of it, true or not.
fn cell() -> impl Strategy<Value = Signal> {
    let rnti = || prop_oneof![4 => (0u16..5).prop_map(Rnti), 1 => any::<u16>().prop_map(Rnti)];
    let block = (0u8..32, 0u8..4, any::<bool>(), prop_oneof![0u32..100_000, any::<u32>()])
        .prop_map(|(mcs, redundancy, new_data, bits)| Block { mcs, redundancy, new_data, bits });
    let prb = || prop_oneof![4 => 0u16..=275, 1 => any::<u16>()];
    let dci = (rnti(), prb(), 0u8..8, prop::option::of(block.clone()), prop::option::of(block))
        .prop_map(|(rnti, prb, process, one, other)| Dci { rnti, prb, process, blocks: [one, other] });
    let number = prop_oneof![4 => 0u64..200, 1 => any::<u64>()];
    let carrier = prop_oneof![4 => 0u8..3, 1 => any::<u8>()];
    let dcis = prop::collection::vec(dci, 0..6);
    let subframe =
        (carrier, number, prb(), prop::option::of(rnti()), dcis).prop_map(|(carrier, number, prb, own, dcis)| {
            Signal::Subframe(CellSubframe { carrier, number, prb, own, dcis })
        });
    let told = (rate(), rate(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(available, fair, elsewhere, restart, coarse)| {
            Signal::Cell(CellCapacity { available, fair, elsewhere, restart, coarse })
        },
    );
    let flows = prop_oneof![0u32..4, any::<u32>()].prop_map(Signal::Flows);
    prop_oneof![4 => subframe, 4 => told, 1 => flows]
}

fn rate() -> impl Strategy<Value = Rate> {
    prop_oneof![1 => Just(0), 4 => 1u64..1 << 32, 1 => any::<u64>()].prop_map(Rate::from_bps)
}

/// What a terminal's kernel and its neighbours show, and bounds upon a sender.
fn terminal() -> impl Strategy<Value = Signal> {
    let times = (prop::option::of(span()), prop::option::of(span()));
    let socket = (0u32..6, times, (0u64..1 << 30, 0u64..1 << 30), any::<u64>(), 0u64..3).prop_map(
        |(flow, (rtt, min_rtt), (cwnd, in_flight), delivered, destination)| {
            let [cwnd, in_flight, delivered] = [cwnd, in_flight, delivered].map(Bytes::new);
            Signal::Socket(SocketReport {
                flow: FlowId(flow),
                rtt,
                deviation: rtt.unwrap_or(Span::ZERO) / 3,
                min_rtt,
                mss: Bytes::new(MSS),
                cwnd,
                in_flight,
                delivered,
                queued: (flow % 2 == 0).then_some(in_flight.scale(0.5)),
                destination,
            })
        },
    );
    let notice = (0u64..20, any::<u32>(), any::<u16>(), rate(), any::<bool>()).prop_map(
        |(terminal, sequence, flows, rate, drains)| {
            let bssid = MacAddress([2, 0, 0, 0, 0, 1]);
            Signal::Neighbour(Notice { bssid, terminal, sequence, flows, rate, drains })
        },
    );
    let bounds = prop::option::of((0u64..300, 0u64..300)).prop_map(|bounds| {
        Signal::Bounds(bounds.map(|(one, other)| Bounds {
            lower: Bytes::new(one.min(other) * MSS),
            upper: Bytes::new(one.max(other) * MSS),
        }))
    });
    prop_oneof![2 => socket, 2 => notice, 1 => bounds]
}

fn node() -> impl Strategy<Value = Node> {
    (0u16..6).prop_map(Node)
}

/// What a receiver is shown.
fn receiver() -> impl Strategy<Value = Signal> {
    let monitor = prop::sample::select(vec![MonitorEvent::Down, MonitorEvent::Up, MonitorEvent::Overrun]);
    prop_oneof![
        (0u32..2000, 0u32..2000, any::<bool>(), prop::option::of(0u64..1 << 40)).prop_map(
            |(packets, certain, in_part, bps)| {
                Signal::Frame(ReceivedFrame { packets, certain, in_part, rate: bps.map(Rate::from_bps) })
            }
        ),
        (span(), prop::option::of(span()), amount()).prop_map(|(at, sent, len)| {
            let (at, sent) = (Time::ZERO + at, sent.map(|sent| Time::ZERO + sent));
            Signal::Arrival(Arrival { at, sent, len })
        }),
        (count(), count()).prop_map(|(packets, given)| Signal::Received(Received { packets, given })),
        span().prop_map(Signal::OneWay),
        monitor.prop_map(Signal::Monitor),
    ]
}

/// What a driver and a forwarding path show: counters that need not rise.
fn hop() -> impl Strategy<Value = Signal> {
    let station = (node(), 0u32..2000, count(), amount(), span(), 0u64..1 << 34).prop_map(
        |(station, backlog_packets, count, bytes, airtime, bps)| StationReport {
            backlog_packets,
            backlog_bytes: bytes,
            head_wait: Some(airtime),
            queue_drops: count / 7,
            tx_attempts: Some(count),
            tx_retries: Some(count / 3),
            tx_packets: count,
            tx_bytes: bytes,
            tx_airtime: Some(airtime),
            tx_ppdus: Some(count / 5),
            phy_rate: Rate::from_bps(bps),
            ..StationReport::unseen(station)
        },
    );
    let stations = prop::collection::btree_map(0u16..6, station, 0..5);
    let report = (stations, span(), span()).prop_map(|(stations, active, tx)| {
        let stations = stations.into_iter().map(|(node, report)| StationReport { station: Node(node), ..report });
        let channel =
            ChannelTime { active, busy: Some(tx), rx: Some(Span::ZERO), tx: Some(tx), ..ChannelTime::default() };
        Signal::Hop(HopReport { channel, stations: stations.collect(), ..HopReport::default() })
    });
    let round_trips = (prop::option::of(span()), prop::option::of(span()));
    let flow = (0u32..6, node(), amount(), amount(), round_trips, any::<bool>()).prop_map(
        |(flow, station, acked, in_flight, (wired_rtt, wireless_rtt), recovering)| {
            Signal::Flow(FlowReport {
                flow: FlowId(flow),
                station,
                forwarded: acked + in_flight,
                acked,
                in_flight,
                wired_rtt,
                wireless_rtt,
                mss: Bytes::new(MSS),
                advertised: Bytes::new(1 << 20),
                last_data: Time::ZERO,
                recovering,
            })
        },
    );
    prop_oneof![report, flow]
}

/// A header that passes a middle box: of streams that go on, repeat themselves and jump.
fn segment() -> impl Strategy<Value = Signal> {
    let octet = || prop_oneof![4 => (0u32..40).prop_map(|n| (n * MSS as u32).wrapping_sub(20_000)), 1 => any::<u32>()];
    let len = prop_oneof![6 => Just(MSS as u32), 1 => 0u32..3, 1 => any::<u32>()];
    let sack = prop::collection::vec((octet(), octet()), 0..5);
    (0u32..6, node(), any::<bool>(), octet(), len, any::<u16>(), octet(), sack).prop_map(
        |(flow, station, down, seq, len, count, ack, sack)| {
            let way = if down { Way::Down } else { Way::Up };
            let sack: SackRanges = sack.into_iter().collect();
            Signal::Segment(Segment { flow: FlowId(flow), station, way, seq, len, count, ack, sack })
        },
    )
}

/// Counts of any size, small ones as likely as others.
pub fn count() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1u64..100, 1u64..100_000, any::<u64>()]
}

/// Accounts of stations that count backwards, repeat themselves and lie.
pub fn feedback() -> impl Strategy<Value = Signal> {
    let rate = prop_oneof![
        4 => (1e6..2e9f64).prop_map(|rate| 1.0 / rate),
        1 => prop::sample::select(vec![0.0, -1.0, f64::NAN, f64::INFINITY, 1e300, -0.0]),
    ];
    let frames = prop_oneof![Just(0u32), 1u32..10_000, any::<u32>()];
    let delay = || prop::option::of((0u64..1 << 40).prop_map(Span::from_nanos));
    let source = prop_oneof![Just(FrameSource::Radiotap), Just(FrameSource::Timestamps)];
    let seen = (source, count(), delay(), delay());
    (0u16..6, any::<u32>(), count(), count(), frames, count(), rate, count(), seen).prop_map(
        |(station, slot, start, length, frames, packets, inverse, received, (source, lost, delay_mean, delay_max))| {
            Signal::Station(StationFeedback {
                station: Node(station),
                slot: slot % 64,
                start: Time::from_nanos(start % (1 << 40)),
                end: Time::from_nanos((start % (1 << 40)).saturating_add(length % (1 << 40))),
                frames,
                packets,
                packets_squared: packets,
                min_packets: 0,
                max_packets: 64,
                inverse_rate_sum: inverse * f64::from(frames.max(1)),
                received,
                highest_sequence: received,
                lost,
                delay_mean,
                delay_max,
                source,
            })
        },
    )
}

/// Amounts from nothing to a terabyte, small ones as likely as large ones.
fn amount() -> impl Strategy<Value = Bytes> {
    prop_oneof![Just(0), 1u64..3000, 1u64..10_000_000, 1u64..1 << 40].prop_map(Bytes::new)
}

fn span() -> impl Strategy<Value = Span> {
    prop_oneof![Just(0), 1u64..1_000_000, 1u64..1_000_000_000, 1u64..1_000_000_000_000].prop_map(Span::from_nanos)
}

fn sample() -> impl Strategy<Value = DeliverySample> {
    (0u64..1 << 40, span(), amount(), any::<bool>()).prop_map(|(bps, interval, prior_delivered, app_limited)| {
        DeliverySample { rate: Rate::from_bps(bps), interval, prior_delivered, sent_at: Time::ZERO, app_limited }
    })
}

fn ack() -> impl Strategy<Value = Signal> {
    let amounts = (amount(), amount(), amount(), amount(), amount(), amount());
    let rtts = (prop::option::of(span()), prop::option::of(span()), prop::option::of(span()));
    (
        amounts,
        rtts,
        prop::option::of(sample()),
        any::<bool>(),
        any::<bool>(),
        prop::sample::select(vec![536, MSS, 8960]),
    )
        .prop_map(|(amounts, rtts, delivery, cwnd_limited, in_recovery, mss)| {
            Signal::Ack(Ack {
                newly_delivered: amounts.0,
                newly_acked: amounts.1,
                newly_lost: amounts.2,
                rtt: rtts.0,
                min_rtt: rtts.1,
                srtt: rtts.2,
                prior_in_flight: amounts.3,
                in_flight: amounts.4,
                delivered: amounts.5,
                delivery,
                mss: Bytes::new(mss),
                cwnd_limited,
                in_recovery,
            })
        })
}

fn loss() -> impl Strategy<Value = Loss> {
    (amount(), amount(), amount(), amount()).prop_map(|(prior_in_flight, in_flight, lost, delivered)| Loss {
        prior_in_flight,
        in_flight,
        lost,
        delivered,
        mss: Bytes::new(MSS),
    })
}

fn sender() -> impl Strategy<Value = Signal> {
    prop_oneof![
        8 => ack(),
        4 => (amount(), amount(), any::<bool>(), any::<bool>()).prop_map(|(len, in_flight, retransmission, from_idle)| {
            Signal::Sent(Sent { len, in_flight, retransmission, from_idle })
        }),
        1 => loss().prop_map(Signal::Loss),
        1 => (span(), amount()).prop_map(|(sent_at, len)| Signal::Lost(Lost { sent_at: Time::ZERO + sent_at, len })),
        1 => loss().prop_map(Signal::Timeout),
        1 => Just(Signal::Undone),
        1 => Just(Signal::Recovered),
        1 => Just(Signal::Wakeup),
    ]
}
