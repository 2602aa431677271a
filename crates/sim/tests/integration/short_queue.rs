//! Queues that have no room for what a round brings, and traffic that takes its part of every round.

use crate::support;

use lasthop_report::Key;
use support::{against, edited, simulate, value};

const SEEDS: u64 = 2;

/// Throughput and p95 delay of the regulator as multiples of CUBIC's, and losses per million of both.
fn lost(scenario: &lasthop_scenario::Scenario, seed: u64) -> ((f64, f64), [f64; 2]) {
    let [ours, cubic] = ["regulator", "cubic"].map(|law| simulate(scenario, law, seed));
    (against(&ours, &cubic), [&ours, &cubic].map(|run| value(run, Key::Losses)))
}

/// Before the interval gave way one packet in nine was lost, and sent again to be lost again.
#[test]
fn a_queue_without_room_for_a_round_gets_shorter_ones() {
    for packets in [100, 150, 250] {
        let scenario = edited("aggregation/short-queue.toml", &[("100 packets\"", &format!("{packets} packets\""))]);
        for seed in 1..=SEEDS {
            let ((used, delay), lost) = lost(&scenario, seed);
            eprintln!(
                "{packets} packets, seed {seed}: {used:.3} of CUBIC's throughput, p95 {delay:.3}, lost per million {lost:.0?}"
            );
            assert!(used >= 0.99, "seed {seed}: {used}");
            // Behind 250 packets the target loses one in a hundred in a slot of four, so that it takes a while to be found out: single runs lose as much as
            // CUBIC, all together do not (the page of reproductions).
            let most = if packets == 250 { 1.5 } else { 1.0 };
            assert!(delay < 1.0 && lost[0] < most * lost[1], "seed {seed}: {delay} {lost:?}");
        }
    }
}

/// As long as what others send was not counted, the loops did not know that rounds were longer by it, and swung: 22 packets in a thousand were
/// lost at 150 Mbit/s.
#[test]
fn what_others_send_to_a_station_is_part_of_every_round() {
    for mbit in [60, 100, 150, 180] {
        let scenario = edited("aggregation/beside.toml", &[("150 Mbit/s\"\n", &format!("{mbit} Mbit/s\"\n"))]);
        for seed in 1..=SEEDS {
            let ((used, delay), lost) = lost(&scenario, seed);
            eprintln!(
                "{mbit} Mbit/s, seed {seed}: {used:.3} of CUBIC's throughput, p95 {delay:.3}, lost per million {lost:.0?}"
            );
            assert!(used >= 0.99 && delay < 0.5 && lost[0] < 100.0, "seed {seed}: {used} {delay} {lost:?}");
        }
    }
}
