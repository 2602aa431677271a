//! Reno, NewReno and SACK without RACK: how many round trips and timeouts it takes to repair the losses of one window.
//!
//! The orders are those of RFC 6582 and of Fall and Floyd, "Simulation-based comparisons of Tahoe, Reno, and SACK TCP", CCR 1996.

use crate::harness;

use harness::net::{Net, Way, law_called};
use lasthop_laws::{Choice, Place};
use lasthop_transport::{Config, Stats};
use lasthop_units::{Bytes, Span, Time};
use lasthop_wire::tcp::TcpHeader;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use std::collections::BTreeSet;

const MSS: u64 = 1448;
const PACKETS: u64 = 200;
const ONE_WAY: Span = Span::from_millis(50);

/// A transfer.
struct Run {
    /// Packets by number, and when they left.
    sent: Vec<(Time, u64)>,
    stats: Stats,
}

impl Run {
    /// The packets that left again, with their times.
    fn again(&self) -> Vec<(Time, u64)> {
        let mut seen = BTreeSet::new();
        self.sent.iter().copied().filter(|(_, packet)| !seen.insert(*packet)).collect()
    }

    fn packets_again(&self) -> Vec<u64> {
        self.again().into_iter().map(|(_, packet)| packet).collect()
    }
}

/// A transfer under `law` over a network that takes 1 ms for a packet and loses each of the copies in `lost` once: as
/// often as a packet stands there.
fn run(law: &str, lost: &[u64]) -> Run {
    run_with(law, lost, |_| {})
}

/// The same where `edit` changes what the receiver sends.
fn run_with(law: &str, lost: &[u64], mut edit: impl FnMut(&mut TcpHeader) + 'static) -> Run {
    let loss_recovery = Choice::named(Place::Sender, law).expect("a law").transport().loss_recovery();
    let config = Config { loss_recovery, delayed_ack: Span::ZERO, ..Config::default() };
    let mut lost = lost.to_vec();
    let (mut first, mut free) = (None, Time::ZERO);
    let network = Box::new(move |now: Time, way: Way, header: &mut TcpHeader| {
        if way == Way::ToA {
            edit(header);
        }
        if way == Way::ToA || header.payload_len == 0 {
            return vec![ONE_WAY];
        }
        let number = u64::from(header.seq.wrapping_sub(*first.get_or_insert(header.seq))) / MSS;
        if let Some(place) = lost.iter().position(|packet| *packet == number) {
            lost.remove(place);
            return Vec::new();
        }
        free = free.max(now) + Span::from_millis(1);
        vec![ONE_WAY + free.since(now)]
    });
    let mut net = Net::new(law_called(law), config, config, network);
    net.a.write(Bytes::new(PACKETS * MSS));
    net.run_until(Time::ZERO + Span::from_secs(300), |net| net.a.acked() == Bytes::new(PACKETS * MSS));
    net.check_complete(Bytes::new(PACKETS * MSS));
    let mut first = None;
    let number = |header: &TcpHeader| u64::from(header.seq.wrapping_sub(*first.get_or_insert(header.seq))) / MSS;
    let mut number = number;
    let sent = net.data_sent().map(|(at, _, header)| (*at, number(header))).collect();
    Run { sent, stats: net.a.stats() }
}

#[test]
fn one_loss_is_repaired_by_one_packet_and_no_timeout() {
    for law in ["classic-reno", "newreno", "sack-reno"] {
        let run = run(law, &[40]);
        assert_eq!((run.packets_again(), run.stats.timeouts, run.stats.recoveries), (vec![40], 0, 1), "{law}");
    }
}

#[test]
fn window_updates_are_no_duplicates() {
    // RFC 5681, section 2: an acknowledgement that announces another window is none, so only the timer finds the loss.
    for law in ["classic-reno", "newreno"] {
        let mut acks = 0;
        let run = run_with(law, &[40], move |header| {
            acks += 1;
            header.window -= acks % 2;
        });
        assert_eq!((run.stats.timeouts, run.stats.recoveries), (1, 0), "{law}");
    }
}

#[test]
fn newreno_repairs_a_hole_each_round_trip() {
    let lost = [40, 42, 44, 46];
    let run = run("newreno", &lost);
    assert_eq!((run.packets_again(), run.stats.timeouts, run.stats.recoveries), (lost.to_vec(), 0, 1));
    for two in run.again().windows(2) {
        let apart = two[1].0.since(two[0].0);
        assert!(apart >= ONE_WAY * 2 && apart < ONE_WAY * 3, "{apart}");
    }
}

#[test]
fn sack_repairs_all_holes_in_one_round_trip() {
    let lost = [40, 42, 44, 46];
    let run = run("sack-reno", &lost);
    assert_eq!((run.packets_again(), run.stats.timeouts, run.stats.recoveries), (lost.to_vec(), 0, 1));
    let again = run.again();
    assert!(again[3].0.since(again[0].0) < ONE_WAY * 2, "{again:?}");
}

#[test]
fn reno_halves_for_each_hole_and_waits_for_the_timer() {
    // Two holes: a recovery each. Four: the window is too small for three duplicates, and the timer must help (Fall and Floyd, section 3).
    let two = run("classic-reno", &[40, 42]);
    assert_eq!((two.packets_again()[..2].to_vec(), two.stats.recoveries), (vec![40, 42], 2));
    let four = run("classic-reno", &[40, 41, 42, 43]);
    assert!(four.stats.timeouts >= 1, "{:?}", four.stats);
    let newreno = run("newreno", &[40, 41, 42, 43]);
    assert_eq!(newreno.stats.timeouts, 0);
}

#[test]
fn a_lost_retransmission_needs_the_timer_and_no_extra_loss() {
    // RFC 6582, section 3.2: after a timeout duplicates of what had been sent before start no recovery.
    for law in ["classic-reno", "newreno", "sack-reno"] {
        let run = run(law, &[40, 40]);
        assert_eq!((run.stats.timeouts, run.stats.recoveries), (1, 1), "{law}");
    }
}

#[test]
fn only_the_first_partial_ack_restarts_the_timer() {
    // Ten holes at a round trip of 0.1 s each outlast the timer of 0.3 s at most: the impatient variant goes back.
    let lost: Vec<u64> = (40..60).step_by(2).collect();
    let run = run("newreno", &lost);
    assert_eq!((run.stats.timeouts, run.stats.recoveries), (1, 1), "{:?}", run.packets_again());
}

#[test]
fn any_losses_are_repaired() {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[19; 32]);
    let mut runner = TestRunner::new_with_rng(ProptestConfig { cases: 60, ..ProptestConfig::default() }, rng);
    let lost = proptest::collection::vec(0..PACKETS, 0..60);
    let law = prop_oneof![Just("classic-reno"), Just("newreno"), Just("sack-reno"), Just("tahoe"), Just("tcp-ap")];
    let result = runner.run(&(law, lost), |(law, lost)| {
        // `run` asserts that everything arrives.
        let run = run(law, &lost);
        prop_assert!(run.stats.timeouts as usize <= lost.len(), "{:?}", run.stats);
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}
