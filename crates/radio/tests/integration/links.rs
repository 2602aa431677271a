//! Links of their own, and frames that survive others: rates, losses and powers by link.

use lasthop_radio::wifi::{
    Air, Db, GuardInterval, Link, LinkParams, Mcs, NodeParams, Params, PpduKind, PpduRecord, RateChoice, Reach,
    ReachMatrix, Role, Snr, Standard, Width, Wifi,
};
use lasthop_radio::{AccessClass, Dest, Ecn, Hop, NextEvent, Outbox, Packet, RxInfo};
use lasthop_signals::Node;
use lasthop_units::{Bytes, Rate, Seed, Span, Time};
use std::collections::BTreeSet;

/// What arrives at each node, and the rates that it was sent at.
#[derive(Default)]
struct Seen {
    packets: [u64; 4],
    frames: [u64; 4],
    rates: [BTreeSet<Rate>; 4],
}

impl Outbox<()> for Seen {
    fn deliver(&mut self, _at: Time, to: Node, _packet: Packet<()>, _rx: &RxInfo) {
        self.packets[to.index()] += 1;
    }
}

impl Air<()> for Seen {
    fn ppdu(&mut self, _at: Time, ppdu: &PpduRecord) {
        if let (PpduKind::Data, Some(to)) = (ppdu.kind, ppdu.to) {
            self.rates[to.index()].insert(ppdu.rate);
            self.frames[to.index()] += 1;
        }
    }
}

/// Keeps 20 packets waiting on each way for 5 s.
fn saturate(params: Params, ways: &[(Node, Node)]) -> Seen {
    let mut hop: Wifi<()> = Wifi::new(params.validate().expect("legal"), Seed(3));
    let (mut seen, mut now, end) = (Seen::default(), Time::ZERO, Time::ZERO + Span::from_secs(5));
    while now < end {
        for &(src, to) in ways {
            for _ in hop.backlog(src, to)..20 {
                let (dst, class, ecn) = (Dest::Node(to), AccessClass::BestEffort, Ecn::NotEct);
                let packet = Packet { len: Bytes::new(1_500), src, dst, class, flow_hash: 0, ecn, payload: () };
                hop.enqueue(now, packet, &mut seen);
            }
        }
        now = hop.next_event().unwrap_or(end).min(end);
        hop.advance(now, &mut seen);
    }
    seen
}

fn legacy(mbit: u64) -> Mcs {
    Mcs::legacy(Rate::from_mbit(mbit)).expect("an OFDM rate")
}

fn with_snr(from: u16, to: u16, db: f64) -> LinkParams {
    let link = Link { snr: Snr::Trace(vec![(Time::ZERO, Db(db))]), fading: None };
    LinkParams { link: Some(link), ..LinkParams::new(Node(from), Node(to)) }
}

#[test]
fn each_way_of_a_link_has_its_own_rate_and_losses() {
    let station = NodeParams::new(Role::Station { ap: Node(0) }, legacy(54));
    let nodes = vec![NodeParams::new(Role::Ap, legacy(6)), station.clone(), station];
    let mut params = Params::new(Standard::Dot11a, Width::Mhz20, GuardInterval::Ns800, nodes);
    let up = LinkParams::new(Node(1), Node(0));
    params.links = vec![
        LinkParams { rate: Some(RateChoice::Fixed(legacy(12))), mpdu_error: Some(0.5), ..up },
        LinkParams { rate: Some(RateChoice::Fixed(legacy(24))), ..LinkParams::new(Node(0), Node(2)) },
    ];
    let seen = saturate(params, &[(Node(0), Node(1)), (Node(0), Node(2)), (Node(1), Node(0))]);
    let rates =
        [0, 1, 2].map(|node: usize| seen.rates[node].iter().map(|rate| rate.as_bps() / 1_000_000).collect::<Vec<_>>());
    assert_eq!(rates, [vec![12], vec![54], vec![24]]);
    let arrives = [0, 1, 2].map(|node: usize| seen.packets[node] as f64 / seen.frames[node] as f64);
    assert!((arrives[0] - 0.5).abs() < 0.1 && arrives[1] > 0.85 && arrives[2] > 0.85, "{arrives:?}");
}

#[test]
fn an_ideal_rate_goes_by_the_snr_of_its_link() {
    let ideal = RateChoice::Ideal { nss: 1 };
    let strong = Link { snr: Snr::Trace(vec![(Time::ZERO, Db(40.0))]), fading: None };
    let peer = NodeParams { rate: ideal, link: Some(strong), ..NodeParams::new(Role::Peer, legacy(6)) };
    let mut params = Params::new(Standard::Dot11a, Width::Mhz20, GuardInterval::Ns800, vec![peer; 3]);
    params.links = vec![with_snr(0, 2, 12.0)];
    let seen = saturate(params, &[(Node(0), Node(1)), (Node(0), Node(2))]);
    assert_eq!(seen.rates[1].iter().copied().collect::<Vec<_>>(), [Rate::from_mbit(54)]);
    let far = seen.rates[2].iter().copied().collect::<Vec<_>>();
    assert!(far.len() == 1 && far[0] < Rate::from_mbit(24), "{far:?}");
}

/// 0 sends to 1 at 24 Mbit/s, 2 to 3 all the time; 1 hears 2, and nobody else hears what is not for it. Goodput of the first, Mbit/s.
fn beside(interferer_db: f64, capture: bool) -> f64 {
    let nodes = vec![NodeParams::new(Role::Peer, legacy(24)); 4];
    let mut params = Params::new(Standard::Dot11a, Width::Mhz20, GuardInterval::Ns800, nodes);
    params.reach = ReachMatrix::nobody(4);
    params.reach.set_both(Node(0), Node(1), Reach::Decodes);
    params.reach.set_both(Node(2), Node(3), Reach::Decodes);
    params.reach.set(Node(2), Node(1), Reach::Interferes);
    params.links = vec![with_snr(0, 1, 30.0), with_snr(2, 1, interferer_db)];
    params.capture = capture;
    let seen = saturate(params, &[(Node(0), Node(1)), (Node(2), Node(3))]);
    seen.packets[1] as f64 * 12_000.0 / 5e6
}

#[test]
fn a_frame_survives_what_its_rate_can_bear() {
    // Alone an exchange takes 681.5 us. 24 Mbit/s lose nothing from 16 dB on (`wifi::snr::tests`: 98 % of 2000 octets arrive at 14 dB
    // where the rate is 24 Mbit/s), and 30 dB over an interferer of 10 dB are 19.6.
    let alone = 12_000.0 / 681.5;
    let without = beside(10.0, false);
    assert!(without < alone / 10.0, "no frame is heard beside others: {without}");
    let weak = beside(10.0, true);
    assert!((weak / alone - 1.0).abs() < 0.01, "{weak} Mbit/s, {alone} alone");
    // At 25 dB, 5 dB are left: a preamble is found in all that, the data at 24 Mbit/s are not.
    let strong = beside(25.0, true);
    assert!(strong < alone / 10.0, "{strong} Mbit/s");
    // In between what is lost rises.
    let [most, half, least] = [15.0, 17.5, 20.0].map(|db| beside(db, true));
    assert!(weak >= most && most > half && half > least && least < alone / 2.0, "{most}, {half}, {least}");
}

#[test]
fn links_are_refused_where_there_is_none() {
    let refused = |links: Vec<LinkParams>| {
        let mut params = Params::new(
            Standard::Dot11a,
            Width::Mhz20,
            GuardInterval::Ns800,
            vec![NodeParams::new(Role::Peer, legacy(6)); 3],
        );
        params.reach.set_both(Node(0), Node(2), Reach::Interferes);
        params.links = links;
        params.validate().expect_err("broken on purpose").to_string()
    };
    let lossy = |from, to, p| LinkParams { mpdu_error: Some(p), ..LinkParams::new(Node(from), Node(to)) };
    assert_eq!(refused(vec![lossy(0, 1, 2.0)]), "links[0].mpdu_error = 2 is outside 0 to 1");
    assert!(refused(vec![lossy(0, 2, 0.5)]).starts_with("links[0].to: Node(0) and Node(2) must decode each other"));
    assert_eq!(refused(vec![lossy(0, 7, 0.5)]), "links[0].to = Node(7) is not a node of the hop");
    assert!(
        refused(vec![lossy(0, 1, 0.5), lossy(0, 1, 0.6)]).starts_with("links[1].to = Node(1) is not the end of a link")
    );
}
