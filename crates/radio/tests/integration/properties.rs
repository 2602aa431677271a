//! What must hold for any topology, load, noise and queue.

use lasthop_radio::queue::{Aql, FqCodelParams, Kind, QdiscParams};
use lasthop_radio::star::Star;
use lasthop_radio::wifi::{
    Air, Amsdu, Background, Band, Beacons, Db, Fading, GuardInterval, Link, LinkParams, Load, Mcs, NodeParams, Params,
    PathLoss, Phy, PpduKind, PpduRecord, RateChoice, Reach, Reception, Role, Snr, Standard, Width, Wifi,
};
use lasthop_radio::{AccessClass, Completion, Dest, Drop, Ecn, Hop, NextEvent, Outbox, Packet, RxInfo, wired};
use lasthop_signals::{Node, Signal};
use lasthop_units::{Bytes, Rate, Seed, Span, Time};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// What became of each packet, and everything else in order, as text to compare runs.
#[derive(Default)]
struct Fate {
    delivered: BTreeMap<u32, u32>,
    dropped: BTreeMap<u32, u32>,
    /// Payloads in order of delivery per source, receiver and class, group packets apart.
    order: BTreeMap<(u16, u16, AccessClass, bool), Vec<u32>>,
    /// What each node sends: no node sends two PPDUs at once.
    sending_until: BTreeMap<u16, Time>,
    broken: Option<String>,
    last: Time,
    log: String,
}

impl Outbox<u32> for Fate {
    fn deliver(&mut self, at: Time, to: Node, packet: Packet<u32>, rx: &RxInfo) {
        *self.delivered.entry(packet.payload).or_default() += 1;
        let link = (packet.src.0, to.0, packet.class, packet.dst == Dest::Group);
        self.order.entry(link).or_default().push(packet.payload);
        self.see(at, format!("deliver {} {to:?} {rx:?}\n", packet.payload));
        if packet.dst != Dest::Node(to) && packet.dst != Dest::Group || packet.src == to || rx.queued_at > at {
            self.broken = Some(format!("{packet:?} delivered to {to:?} at {at:?}, queued {:?}", rx.queued_at));
        }
    }

    fn dropped(&mut self, at: Time, packet: Packet<u32>, why: Drop) {
        *self.dropped.entry(packet.payload).or_default() += 1;
        self.see(at, format!("drop {} {why:?}\n", packet.payload));
    }

    fn wants_completions(&self) -> bool {
        true
    }

    fn completed(&mut self, at: Time, completion: &Completion) {
        if completion.queued_at > completion.head_at || completion.head_at > at {
            self.broken = Some(format!("{completion:?} at {at:?}"));
        }
        self.see(at, format!("{completion:?}\n"));
    }

    fn driver(&mut self, at: Time, of: Node, signal: &Signal) {
        self.see(at, format!("{of:?} {signal:?}\n"));
    }
}

impl Air<u32> for Fate {
    fn received(&mut self, at: Time, to: Node, reception: &Reception) {
        self.see(at, format!("{to:?} {reception:?}\n"));
    }

    fn ppdu(&mut self, at: Time, ppdu: &PpduRecord) {
        let until = self.sending_until.entry(ppdu.from.0).or_default();
        if ppdu.start < *until
            || ppdu.start + ppdu.duration != at
            || ppdu.received > ppdu.mpdus
            || ppdu.kind == PpduKind::Data && ppdu.packets < ppdu.mpdus
        {
            self.broken = Some(format!("{ppdu:?} at {at:?}, sending until {until:?}"));
        }
        // DSSS and CCK frames end by their length, all others by their duration.
        let dsss = [1_000_000, 2_000_000, 5_500_000, 11_000_000].contains(&ppdu.rate.as_bps());
        let legal = if dsss { ppdu.psdu <= Bytes::new(4_095) } else { ppdu.duration <= Span::from_micros(5_484) };
        if ppdu.kind == PpduKind::Data && !legal {
            self.broken = Some(format!("too long: {ppdu:?}"));
        }
        *until = at;
        self.see(at, format!("{ppdu:?}\n"));
    }
}

impl Fate {
    fn see(&mut self, at: Time, line: String) {
        if at < self.last {
            self.broken = Some(format!("time ran backwards to {at:?}: {line}"));
        }
        self.last = at;
        self.log.push_str(&line);
    }
}

/// In place of a receiver: everybody. A world has fewer nodes.
const GROUP: u16 = 7;

#[derive(Clone, Debug)]
struct World {
    params: Params,
    seed: u64,
    /// Gap before, source, receiver, class and length.
    packets: Vec<(u64, u16, u16, AccessClass, u64)>,
}

impl World {
    /// Its packets, each with the time when it comes.
    fn arrivals(&self) -> impl Iterator<Item = (Time, Packet<u32>)> {
        let mut now = Time::ZERO;
        self.packets.iter().zip(0..).map(move |(&(gap, src, dst, class, len), payload)| {
            now += Span::from_nanos(gap);
            let (flow_hash, len) = (flow(dst, class, len), Bytes::new(len));
            // One node that never exists stands for the group.
            let dst = if dst == GROUP { Dest::Group } else { Dest::Node(Node(dst)) };
            (now, Packet { len, src: Node(src), dst, class, flow_hash, ecn: Ecn::NotEct, payload })
        })
    }
}

fn standards() -> impl Strategy<Value = (Standard, Width)> {
    prop_oneof![
        Just((Standard::Dot11a, Width::Mhz20)),
        Just((Standard::Dot11g, Width::Mhz20)),
        Just((Standard::Dot11gErp, Width::Mhz20)),
        Just((Standard::Dot11n(Band::Ghz2_4), Width::Mhz20)),
        Just((Standard::Dot11ac, Width::Mhz80)),
        Just((Standard::Dot11ax(Band::Ghz2_4), Width::Mhz40)),
        Just((Standard::Dot11ax(Band::Ghz5), Width::Mhz160)),
    ]
}

fn queues() -> impl Strategy<Value = Kind> {
    let few = FqCodelParams {
        packets: 40,
        target: Span::from_millis(2),
        interval: Span::from_millis(10),
        ..FqCodelParams::default()
    };
    let firmware = FqCodelParams { hardware_aggregates: 0, ..FqCodelParams::default() };
    let tight = Aql { low: Span::from_micros(500), high: Span::from_millis(1), total: Span::from_millis(2) };
    let no_limits = FqCodelParams { aql: None, memory: Some(Bytes::new(60_000)), ..firmware };
    prop_oneof![
        (5usize..200).prop_map(|packets| Kind::Fifo { packets }),
        (5usize..200).prop_map(|packets| Kind::RoundRobin { packets }),
        Just(Kind::FqCodelAirtime(FqCodelParams::default())),
        Just(Kind::FqCodelAirtime(few)),
        Just(Kind::FqCodelAirtime(firmware)),
        Just(Kind::FqCodelAirtime(no_limits)),
        Just(Kind::FqCodelAirtime(FqCodelParams { aql: Some(tight), hardware_aggregates: 1, ..few })),
        Just(Kind::FqCodel(QdiscParams::default())),
        (1usize..40).prop_map(|driver_packets| {
            let target = Span::from_millis(1);
            Kind::FqCodel(QdiscParams { packets: 30, driver_packets, target, ..QdiscParams::default() })
        }),
    ]
}

fn reaches() -> impl Strategy<Value = Reach> {
    prop_oneof![Just(Reach::None), Just(Reach::Interferes), Just(Reach::Senses), Just(Reach::Decodes)]
}

/// Radio conditions, and which rate control goes with them.
fn links() -> impl Strategy<Value = Option<(Link, u8)>> {
    let fading = prop_oneof![
        Just(None),
        (200u64..20_000, 0.0..10.0f64).prop_map(|(us, k)| Some(Fading { coherence: Span::from_micros(us), k })),
    ];
    let at = |ms: u64| Time::ZERO + Span::from_millis(ms);
    let snr = prop_oneof![
        (0.0..40.0f64, 0.0..40.0f64).prop_map(move |(a, b)| Snr::Trace(vec![(at(0), Db(a)), (at(30), Db(b))])),
        (1.0..50.0f64, 1.0..50.0f64)
            .prop_map(move |(a, b)| Snr::Distance { loss: PathLoss::default(), walk: vec![(at(0), a), (at(100), b)] }),
    ];
    prop_oneof![
        Just(None),
        (snr, fading, 0u8..5).prop_map(|(snr, fading, control)| Some((Link { snr, fading }, control)))
    ]
}

fn classes() -> impl Strategy<Value = AccessClass> {
    prop_oneof![
        4 => Just(AccessClass::BestEffort),
        1 => Just(AccessClass::Voice),
        1 => Just(AccessClass::Video),
        1 => Just(AccessClass::Background),
    ]
}

/// An access point with stations that may be hidden from each other and a neighbouring pair, or a mesh of anything.
fn worlds() -> impl Strategy<Value = World> {
    let head = (standards(), 1u16..5, queues(), 0u8..2, prop_oneof![Just(0.0), 0.0..0.6], any::<u64>());
    let tail = (
        1u8..8,
        prop_oneof![1u16..65, 1u16..257],
        vec(reaches(), 64),
        vec(0u8..8, 8),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
    );
    let packet = (0u64..400_000, 0u16..7, 0u16..GROUP + 1, classes(), 40u64..1_500);
    // Thresholds of RTS, whether the neighbours are of an amendment before the hop's, links and rate controls.
    let gathered = prop_oneof![
        Just(None),
        (3_839u32..11_455, 2u16..9).prop_map(|(octets, packets)| Some(Amsdu { octets, packets })),
    ];
    let more = (
        gathered,
        (queues(), any::<bool>(), vec(any::<bool>(), 8)),
        vec(prop_oneof![Just(None), (0u64..3_000).prop_map(Some)], 8),
        any::<bool>(),
        vec(links(), 8),
    );
    (head, tail, more, vec(packet, 1..400)).prop_map(
        |(
            (kind, stations, queue, gi, error, seed),
            (limit, most, reach, mcs, trace, neighbour, mesh),
            (amsdu, (station_queue, isolation, nodes_report), rts, legacy, links),
            packets,
        )| {
            let (standard, width) = kind;
            let count = stations + 3;
            // Of twelve rates the upper eight: four of OFDM and those of DSSS.
            let first = if standard == Standard::Dot11gErp && !legacy { 4 } else { 0 };
            let index = |i: usize| Mcs::new(first + mcs[i], 1);
            let mut nodes: Vec<NodeParams> = (0..count)
                .map(|i| {
                    let role = match i {
                        _ if mesh => Role::Peer,
                        0 => Role::Ap,
                        _ if i <= stations => Role::Station { ap: Node(0) },
                        _ => Role::Neighbour,
                    };
                    let mut node = NodeParams::new(role, index(usize::from(i)));
                    node.mpdu_error = error;
                    node.rts_threshold = rts[usize::from(i)].map(Bytes::new);
                    if let Some((link, control)) = &links[usize::from(i)] {
                        node.link = Some(link.clone());
                        let nss = if standard.is_qos() && !legacy { 2 } else { 1 };
                        node.rate = match control {
                            0 => node.rate,
                            1 => RateChoice::Ideal { nss },
                            3 if !standard.is_qos() => RateChoice::Arf,
                            4 if !standard.is_qos() => RateChoice::Aarf,
                            _ => RateChoice::Minstrel { nss },
                        };
                    }
                    if role == Role::Neighbour && legacy {
                        node.phy = Some(Phy {
                            standard: if standard.band() == Band::Ghz5 { Standard::Dot11a } else { Standard::Dot11g },
                            width: Width::Mhz20,
                            guard_interval: GuardInterval::Ns800,
                        });
                    }
                    node
                })
                .collect();
            if trace {
                let step = |i: usize| (Time::ZERO + Span::from_millis(7 * i as u64), index(i));
                nodes[1].rate = RateChoice::Trace((0..8).map(step).collect());
            }
            let gi = match standard {
                Standard::Dot11ax(_) if gi > 0 => GuardInterval::Ns3200,
                _ if gi == 0 || !standard.is_qos() => GuardInterval::Ns800,
                _ => GuardInterval::Ns400,
            };
            let mut params = Params::new(standard, width, gi, nodes);
            let (first, second) = (Node(stations + 1), Node(stations + 2));
            // Everything between nodes that are not linked is at random.
            let mut dice = reach.into_iter().cycle();
            for a in 0..count {
                for b in 0..count {
                    let linked = a == 0 && b <= stations || b == 0 && a <= stations || a > stations && b > stations;
                    if a != b && (mesh || !linked) {
                        params.reach.set(Node(a), Node(b), dice.next().expect("endless"));
                    }
                }
            }
            params.amsdu = amsdu;
            params.ap_queue = queue;
            params.retry_limit = limit;
            params.max_ampdu_mpdus = most.min(standard.max_ampdu_mpdus());
            params.station_queue = station_queue;
            params.client_isolation = isolation;
            nodes_report.iter().zip(&mut params.nodes).for_each(|(&reports, node)| node.reports = reports);
            params.beacons = trace.then(Beacons::default);
            params.capture = nodes_report[7];
            let pairs = (0..count).flat_map(|a| (0..count).map(move |b| (Node(a), Node(b))));
            for (from, to) in pairs.filter(|(from, to)| params.capture && from != to) {
                if let Some((link, _)) = &links[(from.index() + to.index()) % 8] {
                    params.links.push(LinkParams { link: Some(link.clone()), ..LinkParams::new(from, to) });
                }
            }
            if neighbour && !mesh {
                params.background = vec![Background {
                    from: first,
                    to: second,
                    class: AccessClass::BestEffort,
                    packet: Bytes::new(1_000),
                    load: if trace { Load::Saturated } else { Load::Offered(Rate::from_mbit(5)) },
                    active: vec![(Time::from_nanos(5_000_000), Time::from_nanos(40_000_000))],
                }];
            }
            World { params, seed, packets }
        },
    )
}

/// The hash of a packet's flow: four to each receiver and class. Golden-ratio hashing keeps small numbers apart, so that
/// no two flows share a bucket of mac80211's table: there a flow could lose its order, as in Linux.
fn flow(dst: u16, class: AccessClass, len: u64) -> u32 {
    16 * u32::from(dst) + 4 * class as u32 + (len % 4) as u32
}

/// Runs a world, stepping from event to event between arrivals, then for `rest`.
fn run(world: &World, rest: Span) -> Result<(Fate, Wifi<u32>), TestCaseError> {
    let plan = world.params.clone().validate().map_err(|error| TestCaseError::fail(error.to_string()))?;
    let mut hop: Wifi<u32> = Wifi::new(plan, Seed(world.seed));
    let mut fate = Fate::default();
    let mut now = Time::ZERO;
    let step_to = |hop: &mut Wifi<u32>, fate: &mut Fate, to: Time| -> Result<(), TestCaseError> {
        while let Some(next) = hop.next_event().filter(|next| *next <= to) {
            hop.advance(next, fate);
            prop_assert!(hop.next_event().is_none_or(|later| later > next), "next event not after {next:?}");
        }
        Ok(())
    };
    for (at, packet) in world.arrivals() {
        now = at;
        step_to(&mut hop, &mut fate, now)?;
        hop.enqueue(now, packet, &mut fate);
    }
    step_to(&mut hop, &mut fate, now + rest)?;
    Ok((fate, hop))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn every_packet_is_delivered_or_dropped_once_or_still_inside(mut world in worlds(), rest_ms in 0u64..400) {
        // Of group packets there may be copies.
        world.packets.iter_mut().filter(|packet| packet.2 == GROUP).for_each(|packet| packet.2 = 0);
        let (fate, hop) = run(&world, Span::from_millis(rest_ms))?;
        prop_assert_eq!(&fate.broken, &None);
        let total = world.packets.len();
        for number in 0..total as u32 {
            let seen = fate.delivered.get(&number).unwrap_or(&0) + fate.dropped.get(&number).unwrap_or(&0);
            prop_assert!(seen <= 1, "packet {} was seen {} times", number, seen);
        }
        let nodes = world.params.nodes.len() as u16;
        let members = |node: u16| !matches!(world.params.nodes[usize::from(node)].role, Role::Neighbour);
        let own = (0..nodes).filter(|&node| members(node));
        let inside: usize = own.map(|a| (0..nodes).map(|b| hop.backlog(Node(a), Node(b))).sum::<usize>()).sum();
        // Between neighbours: packets that this test put there beside the background.
        let beside = world.packets.iter().enumerate().filter(|(number, packet)| {
            let gone = fate.delivered.contains_key(&(*number as u32)) || fate.dropped.contains_key(&(*number as u32));
            packet.1 < nodes && !members(packet.1) && !gone
        });
        prop_assert_eq!(fate.delivered.len() + fate.dropped.len() + inside + beside.count(), total);
    }

    #[test]
    fn packets_of_one_class_between_two_nodes_keep_their_order(mut world in worlds()) {
        // Flows of FQ-CoDel overtake each other on purpose.
        for queue in [&mut world.params.ap_queue, &mut world.params.station_queue] {
            if matches!(queue, Kind::FqCodelAirtime(_) | Kind::FqCodel(_)) {
                *queue = Kind::RoundRobin { packets: 30 };
            }
        }
        let (fate, _) = run(&world, Span::from_millis(300))?;
        for (link, order) in &fate.order {
            prop_assert!(order.is_sorted(), "{:?}: {:?}", link, order);
        }
    }

    #[test]
    fn group_packets_reach_each_member_once_and_never_their_source(mut world in worlds()) {
        world.packets.iter_mut().filter(|packet| packet.4 % 2 == 0).for_each(|packet| packet.2 = GROUP);
        let (fate, _) = run(&world, Span::from_millis(300))?;
        // A packet that comes to its source breaks it.
        prop_assert_eq!(&fate.broken, &None);
        for (link, packets) in &fate.order {
            let different: std::collections::BTreeSet<_> = packets.iter().collect();
            prop_assert_eq!(different.len(), packets.len(), "{:?}: {:?}", link, packets);
            let from_station = matches!(world.params.nodes[usize::from(link.0)].role, Role::Station { .. });
            prop_assert!(!(world.params.client_isolation && from_station && link.3 && link.1 != 0), "{:?}", link);
        }
    }

    #[test]
    fn flows_keep_their_order_in_any_queue(mut world in worlds()) {
        // One flow only.
        world.packets.iter_mut().for_each(|packet| packet.4 = 1_000);
        let (fate, _) = run(&world, Span::from_millis(300))?;
        for (link, order) in &fate.order {
            prop_assert!(order.is_sorted(), "{:?}: {:?}", link, order);
        }
    }

    #[test]
    fn equal_seeds_give_equal_runs_however_the_driver_steps(world in worlds()) {
        let (fate, _) = run(&world, Span::from_millis(100))?;
        // Again, without stops between arrivals.
        let plan = world.params.clone().validate().expect("was legal before");
        let mut hop: Wifi<u32> = Wifi::new(plan, Seed(world.seed));
        let mut again = Fate::default();
        let mut now = Time::ZERO;
        for (at, packet) in world.arrivals() {
            now = at;
            hop.enqueue(now, packet, &mut again);
        }
        hop.advance(now + Span::from_millis(100), &mut again);
        prop_assert_eq!(fate.log, again.log);
    }

    #[test]
    fn a_clone_goes_on_as_its_original_does(world in worlds(), half in 0.0..1.0f64) {
        let plan = world.params.clone().validate().expect("legal");
        let mut hop: Wifi<u32> = Wifi::new(plan, Seed(world.seed));
        let arrivals: Vec<(Time, Packet<u32>)> = world.arrivals().collect();
        let (before, after) = arrivals.split_at((arrivals.len() as f64 * half) as usize);
        for (at, packet) in before {
            hop.enqueue(*at, packet.clone(), &mut Fate::default());
        }
        let goes_on = |mut hop: Wifi<u32>| {
            let mut fate = Fate::default();
            for (at, packet) in after {
                hop.enqueue(*at, packet.clone(), &mut fate);
            }
            hop.advance(arrivals[arrivals.len() - 1].0 + Span::from_millis(100), &mut fate);
            fate.log
        };
        let fork = hop.clone();
        prop_assert_eq!(goes_on(hop), goes_on(fork));
    }
}

/// Three cables, loaded from both ends.
fn cables() -> Star<wired::Wire<u32>> {
    let down = wired::Params { rate: Rate::from_mbit(9), delay: Span::from_millis(3), queue_packets: 10 };
    Star::new(3, down, wired::Params { rate: Rate::from_mbit(4), ..down })
}

#[test]
fn a_clone_of_cables_goes_on_as_its_original_does() {
    let packet = |n: u32| {
        let (src, dst) = if n.is_multiple_of(2) { (0, 1 + n % 3) } else { (1 + n % 3, 0) };
        let (src, dst, class) = (Node(src as u16), Dest::Node(Node(dst as u16)), AccessClass::BestEffort);
        let len = Bytes::new(100 + u64::from(n * 37 % 1_400));
        Packet { len, src, dst, class, flow_hash: n, ecn: Ecn::NotEct, payload: n }
    };
    let at = |n: u32| Time::ZERO + Span::from_micros(300) * u64::from(n);
    let mut hop = cables();
    (0..200).for_each(|n| hop.enqueue(at(n), packet(n), &mut Fate::default()));
    let goes_on = |mut hop: Star<wired::Wire<u32>>| {
        let mut fate = Fate::default();
        (200..400).for_each(|n| hop.enqueue(at(n), packet(n), &mut fate));
        hop.advance(at(800), &mut fate);
        fate.log
    };
    let fork = hop.clone();
    let log = goes_on(hop);
    assert!(log.lines().count() > 200, "{log}");
    assert_eq!(log, goes_on(fork));
}
