//! The regulator behind a path that is slower than the hop and has a deep buffer: does it leave the buffer empty?

use lasthop_laws::HopLaw;
use lasthop_laws::aggregation::model::airtime;
use lasthop_laws::aggregation::{Params, Regulator};
use lasthop_signals::{Node, Signal, StationFeedback, StreamReport};
use lasthop_units::{Bytes, Span, Time};
use std::collections::VecDeque;

const BITS: f64 = 12_000.0;
const SLOT: f64 = 0.5;
/// The fluid that flows into the path goes in pieces of so many seconds.
const STEP: f64 = 0.005;
/// Delay of the path without its queue, and how far the station's clock is ahead, seconds.
const PATH: f64 = 0.02;
const AHEAD: f64 = 3.0;
/// What the buffer holds, in seconds of the path's rate.
const DEEP: f64 = 2.0;
/// Overhead of an access, seconds, and data rate of the hop, bit/s.
const ACCESS: f64 = 200e-6;
const HOP: f64 = 390e6;

/// What the station measures beside its frames.
#[derive(Clone, Copy, PartialEq)]
enum Told {
    Delays,
    Losses,
}

/// A path of `carries` packets a second before the hop of one station.
struct World {
    law: Regulator,
    carries: f64,
    told: Told,
    /// When each piece was sent, and what is left of it.
    fifo: VecDeque<(f64, f64)>,
    at: f64,
    slot: u32,
    sent: f64,
}

/// One slot: seconds of queue in the mean, packets a second that were sent and that arrived.
struct Seen {
    queue: f64,
    rate: f64,
    arrived: f64,
}

impl World {
    fn new(carries: f64, told: Told) -> World {
        let law = Regulator::new(Params::default()).expect("valid");
        let mut world = World { law, carries, told, fifo: VecDeque::new(), at: 0.0, slot: 0, sent: 0.0 };
        world.report();
        world
    }

    fn now(&self) -> Time {
        Time::ZERO + Span::from_secs_f64(self.at)
    }

    fn report(&mut self) {
        let packets = self.sent as u64;
        let stream = StreamReport { station: Node(1), packets, bytes: Bytes::new(packets * 1500), waiting: true };
        self.law.sense(self.now(), &Signal::Stream(stream));
    }

    fn slot(&mut self) -> Seen {
        let mut rate = 0.0;
        self.law.decide(self.now(), &mut |_, decision| {
            rate = decision.pacing.expect("it paces").as_bps() as f64 / BITS;
        });
        let (mut arrived, mut lost, mut delays, mut queue) = (0.0, 0.0, 0.0, 0.0);
        for _ in 0..(SLOT / STEP) as usize {
            let waiting: f64 = self.fifo.iter().map(|piece| piece.1).sum();
            let room = (DEEP * self.carries - waiting).max(0.0);
            let taken = (rate * STEP).min(room);
            lost += rate * STEP - taken;
            self.fifo.push_back((self.at, taken));
            self.at += STEP;
            let mut left = self.carries * STEP;
            while let Some((since, piece)) = self.fifo.front_mut() {
                let part = piece.min(left);
                delays += part * (self.at - STEP - *since + PATH + AHEAD);
                (*piece, left, arrived) = (*piece - part, left - part, arrived + part);
                if *piece > 1e-9 {
                    break;
                }
                self.fifo.pop_front();
            }
            queue += self.fifo.iter().map(|piece| piece.1).sum::<f64>() / self.carries * STEP / SLOT;
        }
        self.sent += rate * SLOT;
        self.slot += 1;
        self.report();
        // The hop: what comes a second fills its frames.
        let w = airtime(1548.0 * 8.0, HOP);
        let level = (ACCESS * arrived / SLOT / (1.0 - w * arrived / SLOT)).clamp(1.0, 64.0);
        let frames = (arrived / level).round();
        let delays = (delays / arrived.max(1e-9)).max(0.0);
        let account = StationFeedback {
            frames: frames as u32,
            packets: (frames * level).round() as u64,
            inverse_rate_sum: frames / HOP,
            received: arrived.round() as u64,
            lost: if self.told == Told::Losses { lost.round() as u64 } else { 0 },
            delay_mean: (self.told == Told::Delays).then(|| Span::from_secs_f64(delays)),
            ..StationFeedback::empty(
                Node(1),
                self.slot,
                self.now().saturating_sub(Span::from_secs_f64(SLOT)),
                self.now(),
            )
        };
        self.law.sense(self.now(), &Signal::Station(account));
        Seen { queue, rate, arrived: arrived / SLOT }
    }

    fn run(&mut self, slots: usize) -> Vec<Seen> {
        (0..slots).map(|_| self.slot()).collect()
    }
}

fn mean(seen: &[Seen], of: impl Fn(&Seen) -> f64) -> f64 {
    seen.iter().map(of).sum::<f64>() / seen.len() as f64
}

/// Mean queue, seconds, and share of what the path carries, from the twentieth second on.
fn kept(carries: f64, told: Told) -> (f64, f64) {
    let mut world = World::new(carries, told);
    world.run(40);
    let seen = world.run(400);
    (mean(&seen, |slot| slot.queue), mean(&seen, |slot| slot.arrived) / carries)
}

#[test]
fn a_deep_buffer_stays_empty_and_the_path_full() {
    for told in [Told::Delays, Told::Losses] {
        for carries in [300.0, 1_000.0, 3_000.0, 10_000.0] {
            let (queue, share) = kept(carries, told);
            eprintln!("{carries} packets/s: {:.1} ms of queue in the mean, {share:.3} of the throughput", queue * 1e3);
            assert!(queue < 0.03, "{carries}: a queue of {queue} s");
            assert!(share >= 0.9, "{carries}: {share} of the throughput");
        }
    }
}

#[test]
fn a_buffer_that_was_full_is_empty_twenty_seconds_later() {
    let mut world = World::new(3_000.0, Told::Delays);
    world.run(100);
    // Somebody else's burst: the buffer is full at once.
    world.fifo.push_front((world.at, DEEP * 3_000.0));
    let drained = world.run(40);
    assert!(drained.last().expect("slots").queue < 0.05);
    assert!(mean(&drained, |slot| slot.arrived) >= 0.9 * 3_000.0, "what waits keeps the path busy");
}

#[test]
fn a_halved_path_is_followed_and_a_doubled_one_is_found() {
    let mut world = World::new(3_000.0, Told::Delays);
    world.run(100);
    world.carries = 1_500.0;
    world.run(60);
    let half = world.run(100);
    assert!(mean(&half, |slot| slot.queue) < 0.03, "{}", mean(&half, |slot| slot.queue));
    assert!(mean(&half, |slot| slot.arrived) >= 0.9 * 1_500.0);
    world.carries = 3_000.0;
    world.run(60);
    let whole = world.run(100);
    assert!(mean(&whole, |slot| slot.queue) < 0.03, "{}", mean(&whole, |slot| slot.queue));
    assert!(mean(&whole, |slot| slot.arrived) >= 0.9 * 3_000.0, "{}", mean(&whole, |slot| slot.arrived));
}

#[test]
fn a_path_faster_than_the_hop_is_left_to_the_hops_own_loop() {
    let mut world = World::new(1e6, Told::Delays);
    world.run(200);
    // The equilibrium of one station at 390 Mbit/s: 334.1 Mbit/s of 1500-octet packets.
    let rate = mean(&world.run(50), |slot| slot.rate) * BITS / 1e6;
    assert!((rate / 334.1 - 1.0).abs() < 0.01, "{rate}");
}
