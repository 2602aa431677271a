//! What a last hop delivers to one station, or from it, that always has more to send: the recording of a trace.
//! Source:     the saturator of Winstein, Sivaraman, Balakrishnan (NSDI 2013): a window of packets that never runs empty.
//! Deviations: nobody else of the scenario's sends; what the hop itself serves beside (neighbours, a cell's background) is there.

use crate::net::{Effect, Effects, Link, Net};
use crate::payload::{Address, Datagram, Payload};
use lasthop_radio::{AccessClass, Dest, Packet};
use lasthop_scenario::{Scenario, SetUp};
use lasthop_signals::Node;
use lasthop_units::{Bytes, Seed, Span, Time};

/// Packets that the sender keeps waiting on the hop, beside those that have left: two aggregates of the longest kind, and what a slow
/// scheduler's turn holds.
const WINDOW: usize = 1024;
/// Length of each: what an opportunity of a trace carries.
const LEN: Bytes = Bytes::new(1500);
/// How often the caller hears of progress and may stop.
const TELL: Span = Span::from_millis(100);
/// How often the window is filled up again at least: it lasts longer at any rate that a trace is made of.
const LOOK: Span = Span::from_micros(100);

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
    let model = scenario.hop_under(law).build(stations, seed);
    let link = Link { model, hosts: Vec::new(), stations, completions: false };
    let mut net = Net { links: vec![link], tables: Vec::new() };
    let (mut effects, mut arrived) = (Effects::default(), Vec::new());
    let (end, mut now, mut next_look) = (Time::ZERO + scenario.duration(), Time::ZERO, Time::ZERO);
    while now < end {
        for _ in net.links[0].model.observe().waiting(from, to)..WINDOW {
            net.enqueue(0, now, packet(from, to, now), &mut effects);
            // A full queue refuses at once: it has enough.
            if settle(&mut effects, to, &mut arrived) {
                break;
            }
        }
        now = net.next_event(0).map_or(now + LOOK, |next| next.clamp(now, now + LOOK));
        net.advance(0, now, &mut effects);
        settle(&mut effects, to, &mut arrived);
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
fn settle(effects: &mut Effects, receiver: Node, arrived: &mut Vec<Time>) -> bool {
    let mut lost = false;
    while let Some(effect) = effects.pop() {
        match effect {
            Effect::Arrived { at, to, packet, .. } if to == receiver && packet.len == LEN => {
                arrived.push(at);
            }
            Effect::Lost { .. } => lost = true,
            _ => {}
        }
    }
    lost
}

fn packet(from: Node, to: Node, now: Time) -> Packet<Datagram> {
    let content = Payload::Udp { sent: now, packet: None };
    let hosts = (Scenario::SERVER, Address::nobody(Scenario::AP_HOST));
    let packet = crate::payload::packet(hosts, LEN, AccessClass::BestEffort, 0, content);
    Packet { src: from, dst: Dest::Node(to), ..packet }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::Rate;
    use std::path::Path;

    /// What is recorded after what has been on its way at the beginning has come, in Mbit/s.
    fn recorded(hop: &str, up: bool) -> f64 {
        let text = format!(
            "title = \"T\"\nduration = \"400 ms\"\nwarm-up = \"0 s\"\n[wire]\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n{hop}\
             [[traffic]]\nkind = \"bulk\"\nto = \"phone\"\n[laws.cubic]\nsender = \"cubic\"\n"
        );
        let scenario =
            Scenario::parse("recorded", &text, Path::new(".")).unwrap_or_else(|error| panic!("{}", error.plain()));
        let times = record(&scenario, &scenario.laws()[0], Seed(1), (0, up), &mut |_| true).expect("not stopped");
        let (from, to) = (Time::from_nanos(200_000_000), Time::from_nanos(400_000_000));
        let count = times.iter().filter(|at| (from..to).contains(at)).count() as u64;
        Rate::of(LEN * count, to.since(from)).expect("a time that is not zero").as_mbit_f64()
    }

    /// More packets are on their way than may wait.
    #[test]
    fn what_is_on_its_way_does_not_hold_the_sender_back() {
        let wired = "[hop.wired]\nrate = \"500 Mbit/s\"\ndelay = \"100 ms\"\nqueue = { kind = \"fifo\" }\n\
                     [[station]]\nname = \"phone\"\n";
        let cell = "[hop.cell]\ncarriers = [\"20 MHz\"]\nuplink-rate = \"500 Mbit/s\"\nuplink-delay = \"100 ms\"\n\
                    [[station]]\nname = \"phone\"\ncqi = 12\n";
        for (hop, up) in [(wired, false), (wired, true), (cell, true)] {
            let seen = recorded(hop, up);
            assert!((seen - 500.0).abs() < 0.5, "{seen} of 500 Mbit/s, up: {up}\n{hop}");
        }
    }
}
