//! What the demo's description says of its capacity, measured on the radio model with saturated queues.

use lasthop_radio::LastHop;
use lasthop_radio::wifi::{Air, Wifi};
use lasthop_radio::{AccessClass, Dest, Drop, Ecn, Hop as _, Outbox, Packet, RxInfo};
use lasthop_scenario::Scenario;
use lasthop_signals::Node;
use lasthop_units::{Bytes, Rate, Seed, Span, Time};
use std::path::Path;

/// Counts what arrives, and what is still queued for each station.
struct Counter {
    delivered: Bytes,
    queued: Vec<usize>,
}

impl Outbox<()> for Counter {
    fn deliver(&mut self, _at: Time, to: Node, packet: Packet<()>, _rx: &RxInfo) {
        self.delivered += packet.len;
        self.queued[to.index()] -= 1;
    }
    fn dropped(&mut self, _at: Time, packet: Packet<()>, _why: Drop) {
        if let Dest::Node(to) = packet.dst {
            self.queued[to.index()] -= 1;
        }
    }
}

impl Air<()> for Counter {}

/// Downlink goodput of each window, with every station's queue kept full enough for whole A-MPDUs.
fn capacity(scenario: &Scenario, window: Span) -> Vec<Rate> {
    let LastHop::Wifi(plan) = scenario.hop() else { panic!("a Wi-Fi hop") };
    let stations = scenario.stations().len();
    let mut hop: Wifi<()> = Wifi::new((**plan).clone(), Seed(1));
    let mut counter = Counter { delivered: Bytes::ZERO, queued: vec![0; stations + 1] };
    let (mut now, mut windows) = (Time::ZERO, Vec::new());
    while now < Time::ZERO + scenario.duration() {
        let end = now + window;
        while now < end {
            for station in 0..stations {
                let to = Scenario::station_node(station);
                while counter.queued[to.index()] < 200 {
                    counter.queued[to.index()] += 1;
                    let packet = Packet {
                        len: Bytes::new(1500),
                        src: Scenario::AP,
                        dst: Dest::Node(to),
                        class: AccessClass::BestEffort,
                        flow_hash: u32::from(to.0),
                        ecn: Ecn::NotEct,
                        payload: (),
                    };
                    hop.enqueue(now, packet, &mut counter);
                }
            }
            now += Span::from_millis(1);
            hop.advance(now, &mut counter);
        }
        windows.push(Rate::of(counter.delivered, window).expect("not zero"));
        counter.delivered = Bytes::ZERO;
    }
    windows
}

#[test]
fn the_demo_changes_manifold_in_seconds_and_is_below_400_mbit() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/first-light.toml");
    let demo = Scenario::load(path).unwrap_or_else(|error| panic!("{}", error.plain()));
    let windows = capacity(&demo, Span::from_millis(500));
    println!("{windows:?}");
    let (least, most) = (windows.iter().min().expect("windows"), windows.iter().max().expect("windows"));
    assert!(*most < Rate::from_mbit(400), "{windows:?}");
    assert!(*least * 3 < *most, "{windows:?}");
}
