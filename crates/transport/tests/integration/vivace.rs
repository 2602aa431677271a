//! Vivace over a bottleneck with a buffer of one product of rate and delay: utilisation, queue, fairness, and resilience to
//! random loss.

use crate::harness;

use harness::link::{Link, Path, jain, seconds};
use lasthop_units::{Rate, Span};

const NARROW: Path = Path { rate: Rate::from_mbit(20), delay: Span::from_millis(10), buffer: 1.0 };
/// The paper's.
const WIDE: Path = Path { rate: Rate::from_mbit(100), delay: Span::from_millis(15), buffer: 1.0 };

const SEEDS: std::ops::RangeInclusive<u64> = 1..=3;

/// The share of the link that a flow of this law uses between 5 and 35 s, on average over the seeds.
fn used(law: &str, path: Path, loss: f64) -> f64 {
    let share = |seed| {
        let mut link = Link::new(&[(law, Span::ZERO)], path, loss, seed);
        link.run_until(seconds(5));
        link.goodput(Span::from_secs(30))[0] / path.ceiling()
    };
    SEEDS.map(share).sum::<f64>() / SEEDS.count() as f64
}

#[test]
fn one_flow_uses_nine_tenths_and_keeps_the_buffer_nearly_empty() {
    for (name, path) in [("narrow", NARROW), ("wide", WIDE)] {
        for seed in SEEDS {
            let mut link = Link::new(&[("vivace", Span::ZERO)], path, 0.0, seed);
            link.run_until(seconds(5));
            let dropped = link.dropped;
            let share = link.goodput(Span::from_secs(20))[0] / path.ceiling();
            let (mean, most) = link.queue(seconds(5));
            println!("{name}, seed {seed}: {share:.3} of the link, {mean:.2} ms queued, at most {most:.2}");
            assert!((0.9..=1.0).contains(&share), "{share}");
            // The buffer holds 20 and 30 ms.
            assert!(mean < 2.0 && most < 10.0, "{mean} ms, at most {most}");
            assert_eq!(link.dropped, dropped, "after the start nothing overflows");
        }
    }
}

/// A flow that has had the link for 5 s and one that comes then: the goodputs of each 5 s between 20 and 60 s.
fn together(path: Path, seed: u64) -> Vec<Vec<f64>> {
    let mut link = Link::new(&[("vivace", Span::ZERO), ("vivace", Span::from_secs(5))], path, 0.0, seed);
    link.run_until(seconds(20));
    (0..8).map(|_| link.goodput(Span::from_secs(5))).collect()
}

#[test]
fn two_flows_share_alike_within_fifteen_seconds() {
    for seed in SEEDS {
        for (name, path, shortest) in [("narrow", NARROW, 0.0), ("wide", WIDE, 0.9)] {
            let parts = together(path, seed);
            let sums = [0, 1].map(|flow| parts.iter().map(|part| part[flow]).sum::<f64>());
            let (all, least) = (jain(&sums), parts.iter().map(|part| jain(part)).fold(1.0, f64::min));
            let share = (sums[0] + sums[1]) / parts.len() as f64 / path.ceiling();
            println!(
                "{name}, seed {seed}: Jain {all:.3} over 40 s, {least:.3} in the worst 5 s, {share:.3} of the link"
            );
            assert!(all >= 0.9, "{all}");
            // With 34 packets a round trip, five seconds are too short for it.
            assert!(least >= shortest, "{least}");
            assert!(share >= 0.75, "{share}");
        }
    }
}

#[test]
fn random_loss_costs_less_than_it_costs_cubic() {
    for (name, path, loss, least) in [
        ("narrow", NARROW, 0.01, 0.7),
        ("narrow", NARROW, 0.02, 0.5),
        ("wide", WIDE, 0.01, 0.8),
        ("wide", WIDE, 0.02, 0.7),
    ] {
        let [vivace, cubic] = ["vivace", "cubic"].map(|law| used(law, path, loss));
        println!("{name}, {loss} lost: vivace {vivace:.3} of the link, cubic {cubic:.3}");
        assert!(vivace >= least, "{vivace}");
        assert!(vivace >= 2.0 * cubic, "{vivace} and {cubic}");
    }
}
