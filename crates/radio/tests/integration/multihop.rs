//! Chains and hidden links against ns-3 3.37 (reference data S4, UDP): what the relation of audibility is for.

use crate::common;

use common::chains;
use lasthop_laws::atp::HopDelay;
use lasthop_radio::wifi::{Air, GuardInterval, Mcs, NodeParams, Params, Role, Standard, Width, Wifi};
use lasthop_radio::{AccessClass, Completion, Dest, Ecn, Hop, NextEvent, Outbox, Packet, RxInfo};
use lasthop_signals::Node;
use lasthop_units::{Bytes, Rate, Seed, Span, Time};

#[test]
fn a_lone_exchange_takes_what_the_standards_timing_gives() {
    for (mbit, us) in [(6, 2_233.5), (24, 681.5)] {
        let nodes = vec![NodeParams::new(Role::Peer, Mcs::legacy(Rate::from_mbit(mbit)).expect("an OFDM rate")); 2];
        let params = Params::new(Standard::Dot11a, Width::Mhz20, GuardInterval::Ns800, nodes);
        let plan = params.validate().expect("legal");
        assert_eq!(plan.lone_exchange(Node(0), Bytes::new(1_500)), Span::from_secs_f64(us * 1e-6));
    }
}

/// Keeps a node's own delay as ATP does, and counts what it was done with.
struct Meter {
    node: HopDelay,
    sum: Span,
    count: u64,
}

impl Outbox<()> for Meter {
    fn deliver(&mut self, _at: Time, _to: Node, _packet: Packet<()>, _rx: &RxInfo) {}
    fn wants_completions(&self) -> bool {
        true
    }
    fn completed(&mut self, at: Time, completion: &Completion) {
        self.node.on_done(at, completion.queued_at, completion.head_at);
        self.sum += self.node.delay(at);
        self.count += 1;
    }
}

impl Air<()> for Meter {}

#[test]
fn a_nodes_own_delay_is_an_exchange_for_each_packet_that_waits() {
    for (mbit, exchange_us) in [(6, 2_233.5), (24, 681.5)] {
        for waiting in [0, 3, 9] {
            let nodes = vec![NodeParams::new(Role::Peer, Mcs::legacy(Rate::from_mbit(mbit)).expect("an OFDM rate")); 2];
            let params = Params::new(Standard::Dot11a, Width::Mhz20, GuardInterval::Ns800, nodes);
            let mut hop: Wifi<()> = Wifi::new(params.validate().expect("legal"), Seed(1));
            let mut out = Meter { node: HopDelay::new(Span::ZERO), sum: Span::ZERO, count: 0 };
            let (mut now, mut given) = (Time::ZERO, 0);
            while out.count < 5_000 {
                while given <= out.count + waiting {
                    given += 1;
                    let (src, dst, class, ecn) = (Node(0), Dest::Node(Node(1)), AccessClass::BestEffort, Ecn::NotEct);
                    let packet = Packet { len: Bytes::new(1_500), src, dst, class, flow_hash: 0, ecn, payload: () };
                    hop.enqueue(now, packet, &mut out);
                }
                now = hop.next_event().expect("it always has something to send");
                hop.advance(now, &mut out);
            }
            let mean = out.sum.as_secs_f64() * 1e6 / out.count as f64;
            let expected = exchange_us * (waiting + 1) as f64;
            assert!(
                (mean / expected - 1.0).abs() < 0.01,
                "{mbit} Mbit/s, {waiting} waiting: {mean} us, not {expected}"
            );
        }
    }
}

#[test]
fn chains_and_stack_agree_with_ns3() {
    let Some(rows) = chains::compare() else { return };
    assert!(rows.len() >= 10, "the reference has been cut: {} rows", rows.len());
    let mut wrong = Vec::new();
    for row in &rows {
        let percent = row.deviation() * 100.0;
        println!("{}: {:.3} Mbit/s, ns-3 {:.3} ({percent:+.1} %)", row.name, row.ours, row.theirs);
        match chains::KNOWN.iter().find(|known| known.name == row.name) {
            None if row.holds() => (),
            None => wrong.push(format!("{}: {percent:+.1} %, {:.1} allowed", row.name, row.allowed * 100.0)),
            Some(_) if row.holds() => wrong.push(format!("{}: inside the rule by now", row.name)),
            Some(known) if (percent - known.percent).abs() > 1.0 => {
                wrong.push(format!("{}: {percent:+.1} %, and it is known for {:+.1}", row.name, known.percent));
            }
            Some(_) => (),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
