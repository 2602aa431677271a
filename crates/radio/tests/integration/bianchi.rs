//! Saturated 802.11g stations against Bianchi's model of the DCF (IEEE JSAC 18(3), 2000).

use lasthop_radio::wifi::{
    Air, Background, GuardInterval, Load, Mcs, NodeParams, Params, PpduKind, PpduRecord, Role, Standard, Width, Wifi,
};
use lasthop_radio::{AccessClass, Hop, Outbox, Packet, RxInfo};
use lasthop_signals::Node;
use lasthop_units::{Bytes, Seed, Span, Time};

#[derive(Default)]
struct Frames {
    sent: u64,
    lost: u64,
    /// RTS, and CTS that answered them.
    rts: u64,
    cts: u64,
}

impl Outbox<()> for Frames {
    fn deliver(&mut self, _at: Time, _to: Node, _packet: Packet<()>, _rx: &RxInfo) {}
}

impl Air<()> for Frames {
    fn ppdu(&mut self, _at: Time, ppdu: &PpduRecord) {
        match ppdu.kind {
            PpduKind::Data => {
                self.sent += 1;
                self.lost += u64::from(ppdu.received == 0);
            }
            PpduKind::Rts => self.rts += 1,
            PpduKind::Cts => self.cts += 1,
            _ => {}
        }
    }
}

/// Bianchi's fixed point with a retry limit (Wu et al., INFOCOM 2002): the probability that a frame collides.
fn collision_probability(stations: f64, window: f64, doublings: i32, attempts: i32) -> f64 {
    // Mean backoff slots over the attempts of a frame, and mean attempts, at collision probability p.
    let transmit = |p: f64| {
        let (mut slots, mut tries) = (0.0, 0.0);
        for attempt in 0..attempts {
            let reached = p.powi(attempt);
            slots += reached * ((window * 2f64.powi(attempt.min(doublings)) - 1.0) / 2.0 + 1.0);
            tries += reached;
        }
        tries / slots
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let p = f64::midpoint(low, high);
        if 1.0 - (1.0 - transmit(p)).powf(stations - 1.0) > p { low = p } else { high = p }
    }
    low
}

/// Thirty seconds of saturated 802.11g stations.
fn saturated(stations: u16, rts_threshold: Option<Bytes>) -> Frames {
    let mcs = Mcs::new(7, 1);
    let mut nodes = vec![NodeParams::new(Role::Ap, mcs)];
    nodes.extend((0..stations).map(|_| NodeParams::new(Role::Station { ap: Node(0) }, mcs)));
    nodes.iter_mut().for_each(|node| node.rts_threshold = rts_threshold);
    let mut params = Params::new(Standard::Dot11g, Width::Mhz20, GuardInterval::Ns800, nodes);
    params.beacons = None;
    params.background = (1..=stations)
        .map(|station| Background {
            from: Node(station),
            to: Node(0),
            class: AccessClass::BestEffort,
            packet: Bytes::new(1500),
            load: Load::Saturated,
            active: Vec::new(),
        })
        .collect();
    let mut hop: Wifi<()> = Wifi::new(params.validate().expect("legal"), Seed(1));
    let mut frames = Frames::default();
    hop.advance(Time::ZERO + Span::from_secs(30), &mut frames);
    frames
}

#[test]
fn collisions_of_saturated_stations_follow_bianchi() {
    for stations in [2u16, 3, 5, 10, 20] {
        let frames = saturated(stations, None);
        let ours = frames.lost as f64 / frames.sent as f64;
        let theirs = collision_probability(f64::from(stations), 16.0, 6, 7);
        println!("{stations} stations: collision probability {ours:.4}, Bianchi {theirs:.4}");
        // The model ignores that a station which has just sent holds its window at CWmin while others wait (its known
        // error at few stations), so it is an orientation to a tenth, not to a percent.
        assert!((ours / theirs - 1.0).abs() < 0.1, "{stations} stations: {ours} against {theirs}");
    }
}

#[test]
fn with_rts_collisions_and_throughput_follow_bianchi() {
    for stations in [5u16, 20, 50] {
        let frames = saturated(stations, Some(Bytes::ZERO));
        assert_eq!(frames.lost, 0, "everybody hears everybody: no data frame collides");
        assert!(frames.cts - frames.sent <= 1, "one exchange may be under way at the end");
        let p = 1.0 - frames.cts as f64 / frames.rts as f64;
        let n = f64::from(stations);
        let theirs = collision_probability(n, 16.0, 6, 7);
        assert!((p / theirs - 1.0).abs() < 0.1, "{stations} stations: {p} against {theirs}");
        // His throughput, with the attempt rate tau that belongs to that p: p = 1 - (1 - tau)^(n - 1).
        let tau = 1.0 - (1.0 - theirs).powf(1.0 / (n - 1.0));
        let some = 1.0 - (1.0 - tau).powf(n);
        let one = n * tau * (1.0 - tau).powf(n - 1.0) / some;
        // Microseconds at 54 Mbit/s, control frames at 24: RTS, CTS and Ack 34 each, data 254, SIFS 10, DIFS 28, with
        // 6 us of signal extension in each frame. After a collision a station waits for EIFS: SIFS + Ack at 6 Mbit/s more.
        let success = 34.0 + 10.0 + 34.0 + 10.0 + 254.0 + 10.0 + 34.0 + 28.0;
        let collision = 34.0 + 10.0 + 50.0 + 28.0;
        let slot = (1.0 - some) * 9.0 + some * one * success + some * (1.0 - one) * collision;
        let expected = some * one / slot * 1e6;
        let ours = frames.sent as f64 / 30.0;
        println!("{stations} stations with RTS: {ours:.0} frames a second, Bianchi {expected:.0}");
        assert!((ours / expected - 1.0).abs() < 0.03, "{stations} stations: {ours} frames/s against {expected}");
    }
}
