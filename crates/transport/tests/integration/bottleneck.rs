//! One bulk flow over 50 Mbit/s, 20 ms and a FIFO of 1000 packets, beside what a Linux 6.18 kernel did there.
//!
//! The kernel's figures were taken over an emulated link, ten seconds a run: goodput 47.1 to 47.9 Mbit/s for CUBIC and
//! 47.9 for the others; mean and maximum queueing delay 182 and 240 ms (CUBIC), 4 and 46 ms (BBR), 125 and 240 ms
//! (Reno); 50 to 60, 0 and about 1000 retransmissions. The half-second means were taken later on the same machine, with
//! a sender that only connects and writes. CUBIC's kernel figures scatter with the moment at which HyStart ends slow
//! start: at 125 segments in quiet runs, as here, and as late as 270 when the host's timing tears ACK trains apart.

use crate::harness;

use harness::{BOTTLENECK, World};
use lasthop_units::{Rate, Span, Time};

/// The payload share of the link, which nothing can exceed: 1448 octets of every 1500.
const CEILING_MBIT: f64 = 50.0 * 1448.0 / 1500.0;

/// Mean queueing delay, in milliseconds, in successive half seconds of kernel runs; the first begins at 0 s, 2.5 s and
/// 2.5 s. (BBR's runs differ in when they probe; these are the quiet ones.)
const KERNEL_CUBIC: [f64; 4] = [17.4, 41.9, 66.7, 91.7];
const KERNEL_BBR: [f64; 15] = [3.1, 3.5, 3.6, 3.4, 4.6, 3.4, 3.3, 3.3, 3.5, 3.5, 3.3, 3.4, 3.2, 3.3, 3.4];
const KERNEL_RENO: [f64; 15] =
    [111.9, 112.8, 113.7, 114.6, 115.5, 116.4, 116.8, 117.6, 118.6, 119.5, 119.9, 121.0, 121.7, 122.6, 123.4];

struct Run {
    world: World,
    goodput_mbit: f64,
    mean_ms: f64,
    max_ms: f64,
    retransmissions: u64,
    timeouts: u64,
}

fn ten_seconds_of(law: &str) -> Run {
    let mut world = World::new(law, BOTTLENECK, 1);
    world.sender.write_forever();
    let length = Span::from_secs(10);
    world.run_until(Time::ZERO + length);
    let (mean_ms, max_ms) = world.queue(Time::ZERO..world.now());
    let stats = world.sender.stats();
    let run = Run {
        goodput_mbit: Rate::of(world.receiver.received(), length).expect("ten seconds").as_mbit_f64(),
        mean_ms,
        max_ms,
        retransmissions: stats.segments_retransmitted,
        timeouts: stats.timeouts,
        world,
    };
    println!(
        "{law}: {:.2} Mbit/s, queue mean {:.1} ms, max {:.1} ms, {} retransmissions",
        run.goodput_mbit, run.mean_ms, run.max_ms, run.retransmissions
    );
    assert!(run.goodput_mbit <= CEILING_MBIT);
    assert!(run.max_ms <= 240.0 + 0.24, "1000 packets are 240 ms: {}", run.max_ms);
    run
}

/// Asserts that each half second from `from` on has the kernel's mean queueing delay, give or take 1.5 ms.
fn assert_course(run: &Run, from: Time, kernel_ms: &[f64]) {
    let half = Span::from_millis(500);
    // The kernel's clock started with its first full packet; ours has a handshake before it.
    let mut start = from + Span::from_millis(20);
    for kernel in kernel_ms {
        let (ours, _) = run.world.queue(start..start + half);
        assert!((ours - kernel).abs() <= 1.5, "{ours:.1} ms from {start:?} on; the kernel had {kernel}");
        start += half;
    }
}

/// Within 20 % or 2 ms, whichever is more.
fn agrees(delay_ms: f64, kernel_ms: f64) -> bool {
    (delay_ms - kernel_ms).abs() <= (kernel_ms * 0.2).max(2.0)
}

#[test]
fn cubic_fills_the_queue_as_the_kernel_does() {
    let run = ten_seconds_of("cubic");
    assert!((run.goodput_mbit / 47.5 - 1.0).abs() < 0.02);
    assert!(agrees(run.mean_ms, 182.0), "{}", run.mean_ms);
    assert!(agrees(run.max_ms, 240.0), "{}", run.max_ms);
    assert_course(&run, Time::ZERO, &KERNEL_CUBIC);
    assert!((45..=66).contains(&run.retransmissions), "{}", run.retransmissions);
    assert_eq!(run.timeouts, 0);
}

#[test]
fn bbr_keeps_the_queue_short_as_the_kernel_does() {
    let run = ten_seconds_of("bbr");
    assert!((run.goodput_mbit / 47.9 - 1.0).abs() < 0.02);
    assert!(agrees(run.mean_ms, 4.0), "{}", run.mean_ms);
    assert!(agrees(run.max_ms, 46.0), "{}", run.max_ms);
    assert_course(&run, Time::ZERO + Span::from_millis(2500), &KERNEL_BBR);
    assert_eq!((run.retransmissions, run.timeouts), (0, 0));
}

#[test]
fn reno_overshoots_once_and_saws_as_the_kernel_does() {
    let run = ten_seconds_of("reno");
    assert!((run.goodput_mbit / 47.9 - 1.0).abs() < 0.02);
    assert!(agrees(run.mean_ms, 125.0), "{}", run.mean_ms);
    assert!(agrees(run.max_ms, 240.0), "{}", run.max_ms);
    assert_course(&run, Time::ZERO + Span::from_millis(2500), &KERNEL_RENO);
    assert!((800..=1200).contains(&run.retransmissions), "{}", run.retransmissions);
    assert_eq!(run.timeouts, 0);
}

#[test]
fn equal_seeds_give_equal_runs() {
    let run = || {
        let mut world = World::new("bbr", BOTTLENECK, 7);
        world.sender.write_forever();
        world.run_until(Time::ZERO + Span::from_secs(2));
        (world.log.queue_ms, world.sender.stats())
    };
    assert_eq!(run(), run());
}
