//! What learning on the access point costs: training a tree, evaluating it, and the account of losses. CPU time of the thread.

use lasthop_laws::oal::evidence::Evidence;
use lasthop_laws::oal::features::{FEATURES, Vector};
use lasthop_laws::oal::predictor::LossClass;
use lasthop_laws::oal::trainer::{Growth, Trainer};
use lasthop_laws::oal::tree::Tree;
use lasthop_signals::{FlowId, Node, SackRanges, Segment, Way};
use lasthop_units::{Seed, Span, Time};
use nix::time::{ClockId, clock_gettime};
use rand::Rng;
use std::hint::black_box;
use std::time::Duration;

fn main() {
    // `cargo test --benches` only wants to know whether it runs.
    let measured = std::env::args().any(|arg| arg == "--bench");
    let rounds = if measured { 50 } else { 1 };
    let items = items();
    let mut trainer = Trainer::new(Growth::default());
    let mut train = || trainer.train(1, items.iter().map(|(vector, class)| (vector, *class))).expect("there are items");
    let tree = train();
    let training = median(rounds, || took(|| drop(black_box(train()))));
    println!("oal.train_10000x16_ms {:.2} ms", training * 1e3);
    let classify = median(rounds, || took(|| all(&tree, &items))) / items.len() as f64;
    println!("oal.classify_ns {:.0} ns", classify * 1e9);
    let segments = if measured { 400_000 } else { 4000 };
    println!("oal.segment_ns {:.0} ns", took(|| account(segments)) / f64::from(segments) * 1e9);
}

const ITEMS: usize = 10_000;

/// Items of a class that follows from three features, but for three in ten, which are of any class. The others are
/// noise, one of them of a few values only and one missing now and then.
fn items() -> Vec<(Vector, LossClass)> {
    let mut random = Seed(1).stream("items");
    let mut draw = || random.next_u32() as f32 / u32::MAX as f32;
    let mut item = || {
        let mut vector = [0.0; FEATURES.len()];
        vector.iter_mut().for_each(|value| *value = draw());
        vector[5] = (vector[5] * 4.0).floor();
        if vector[6] < 0.1 {
            vector[6] = f32::NAN;
        }
        let sum = vector[0] + vector[1] * vector[2];
        let rank = (if draw() < 0.3 { draw() } else { sum / 2.0 }) * 4.0;
        (vector, LossClass::ALL[(rank as usize).min(3)])
    };
    (0..ITEMS).map(|_| item()).collect()
}

fn all(tree: &Tree, items: &[(Vector, LossClass)]) {
    items.iter().for_each(|(vector, _)| {
        black_box(tree.classify(vector));
    });
}

/// A flow of which one segment in a hundred passes again, two round trips later.
fn account(segments: u32) {
    let mut evidence = Evidence::new(Span::from_millis(1500));
    let mut segment = |now: Time, way, number: u32, ack: u32, sack: SackRanges| {
        let (seq, flow) = (number.wrapping_mul(1448), FlowId(1));
        let len = if way == Way::Down { 1448 } else { 0 };
        let ack = ack.wrapping_mul(1448);
        evidence.segment(now, &Segment { flow, station: Node(1), way, seq, len, count: 1, ack, sack });
        if way == Way::Down && number.is_multiple_of(160) {
            evidence.cut(now);
        }
    };
    // 40 000 a second.
    let at = |number: u32| Time::from_nanos(u64::from(number) * 25_000);
    for number in 0..segments {
        segment(at(number), Way::Down, number, 0, SackRanges::EMPTY);
        let hole = number.saturating_sub(400) / 100 * 100;
        if number.is_multiple_of(2) {
            let right = number.saturating_sub(200);
            let sack = std::iter::once(((hole + 1).wrapping_mul(1448), right.wrapping_mul(1448)));
            segment(at(number), Way::Up, 0, hole, if right > hole + 1 { sack.collect() } else { SackRanges::EMPTY });
        }
        if number % 100 == 99 && number > 400 {
            segment(at(number), Way::Down, number - 399, 0, SackRanges::EMPTY);
        }
    }
    black_box(evidence.remembered());
}

fn median(rounds: usize, mut round: impl FnMut() -> f64) -> f64 {
    let mut took: Vec<f64> = (0..rounds).map(|_| round()).collect();
    took.sort_by(f64::total_cmp);
    took[took.len() / 2]
}

/// Seconds of CPU time.
fn took(what: impl FnOnce()) -> f64 {
    let began = thread_time();
    what();
    (thread_time() - began).as_secs_f64()
}

/// CPU time that the calling thread has had.
fn thread_time() -> Duration {
    Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("it is always there"))
}
