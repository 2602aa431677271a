//! What a last hop delivers to one station, or from it, that always has more to send: the recording of a trace.
//! Source:     the saturator of Winstein, Sivaraman, Balakrishnan (NSDI 2013): a window of packets that never runs empty.
//! Deviations: nobody else of the scenario's sends; what the hop itself serves beside (neighbours, a cell's background) is there.

use crate::cargo::{Cargo, Datagram};
use crate::net::{Effect, Effects, Link, Net};
use crate::run::last_hop;
use lasthop_radio::{AccessClass, Dest, Ecn, Packet};
use lasthop_scenario::{Scenario, SetUp};
use lasthop_signals::Node;
use lasthop_units::{Bytes, Seed, Span, Time};

/// Packets that the sender keeps on the hop: two aggregates of the longest kind, and what a slow scheduler's turn holds.
const WINDOW: usize = 1024;
/// Length of each: what an opportunity of a trace carries.
const LEN: Bytes = Bytes::new(1500);
/// How often the caller hears of progress and may stop.
const TELL: Span = Span::from_millis(100);
/// How often the window is filled up again at least.
const LOOK: Span = Span::from_millis(1);

/// When the hop of `scenario` under `law` delivers packets of 1500 bytes to `station`, by its place among them, or from it if `up`, while
/// such packets never run out. `progress` is told the virtual time that has passed and answers whether to go on; `None` if it said no.
pub fn record(
    scenario: &Scenario,
    law: &SetUp,
    seed: Seed,
    (station, up): (usize, bool),
    progress: &mut dyn FnMut(Span) -> bool,
) -> Option<Vec<Time>> {
    let (node, ap) = (Scenario::station_node(station), scenario.access_point_of(station));
    let (from, to) = if up { (node, ap) } else { (ap, node) };
    let stations = scenario.stations().len();
    let carrier = last_hop(scenario.hop_under(law), stations, seed);
    let link = Link { carrier, hosts: Vec::new(), stations, completions: false };
    let mut net = Net { links: vec![link], tables: Vec::new() };
    let (mut effects, mut arrived, mut out) = (Effects::default(), Vec::new(), 0);
    let (end, mut now, mut next_look) = (Time::ZERO + scenario.duration(), Time::ZERO, Time::ZERO);
    while now < end {
        while out < WINDOW {
            net.enqueue(0, now, packet(from, to, now), &mut effects);
            out += 1;
            // A full queue refuses at once: it has enough.
            if settle(&mut effects, to, &mut arrived, &mut out) {
                break;
            }
        }
        now = net.next_event(0).map_or(now + LOOK, |next| next.clamp(now, now + LOOK));
        net.advance(0, now, &mut effects);
        settle(&mut effects, to, &mut arrived, &mut out);
        if now >= next_look {
            if !progress(now.since(Time::ZERO)) {
                return None;
            }
            next_look = now + TELL;
        }
    }
    arrived.retain(|at| *at < end);
    Some(arrived)
}

/// Handles what the hop has produced; true if a packet was lost.
fn settle(effects: &mut Effects, receiver: Node, arrived: &mut Vec<Time>, out: &mut usize) -> bool {
    let mut lost = false;
    while let Some(effect) = effects.pop() {
        match effect {
            Effect::Arrived { at, to, packet, .. } if to == receiver && packet.len == LEN => {
                arrived.push(at);
                *out = out.saturating_sub(1);
            }
            Effect::Lost { .. } => {
                lost = true;
                *out = out.saturating_sub(1);
            }
            _ => {}
        }
    }
    lost
}

fn packet(from: Node, to: Node, now: Time) -> Packet<Datagram> {
    let cargo = Cargo::Udp { source: 0, sent: now, packet: None };
    let payload = Datagram { cargo, from: Scenario::SERVER, to: Scenario::AP_HOST };
    let class = AccessClass::BestEffort;
    Packet { len: LEN, src: from, dst: Dest::Node(to), class, flow_hash: 0, ecn: Ecn::NotEct, payload }
}
