//! What an access point concludes from headers, beside what the simulator lost: segment by segment, and class by class.

use crate::oal;

use lasthop_laws::oal::label::{Collector, Timing};
use lasthop_laws::oal::predictor::LossClass;
use lasthop_signals::Signal;
use lasthop_units::Span;
use oal::{Run, Score, World, lossy, run, worlds};

/// Of the first copies that are remembered until their count is final.
fn copies(run: &Run, timing: Timing) -> Score {
    let (flows, mut score, mut next) = (run.flows(), Score::default(), 0);
    let mut collector = Collector::new(timing);
    for (now, signal) in &run.signals {
        collector.sense(*now, signal);
        if !matches!(signal, Signal::Hop(_)) {
            continue;
        }
        // Before they are forgotten, and after an interval that may still have lasted then.
        let old = |at| at + timing.repair + Span::from_millis(50) <= *now;
        while let Some(copy) = run.copies.get(next).filter(|copy| old(copy.at)) {
            let flow = flows[&(copy.station, copy.seq)];
            if let Some(said) = collector.evidence().is_lost(flow, copy.seq) {
                score.add(said, copy.lost.is_some());
            } else {
                panic!("{copy:?} is forgotten at {now:?}");
            }
            next += 1;
        }
        collector.take(|_| {});
    }
    assert!(next > 1000);
    score
}

/// Of the items of each class.
fn classes(run: &Run, timing: Timing) -> [Score; 4] {
    let mut scores = [Score::default(); 4];
    for item in run.items(timing) {
        let (copies, lost) = run.truth(item.station, item.at, item.until);
        let is = LossClass::of(lost as f64 / copies.max(1) as f64);
        LossClass::ALL.iter().for_each(|class| scores[*class as usize].add(item.class() == *class, is == *class));
    }
    scores
}

fn show(world: &World, what: &str, score: &Score) {
    let (precision, recall) = (score.precision(), score.recall());
    eprintln!(
        "{}, {what}: {} are, {} said, precision {precision:.4}, recall {recall:.4}",
        world.name, score.are, score.said
    );
}

#[test]
fn first_copies_that_were_lost_are_found() {
    for world in worlds().into_iter().chain([World::library()]) {
        let run = run(&world, 1);
        let score = copies(&run, Timing::default());
        show(&world, "lost segments", &score);
        assert!(score.are > 200, "{}: {} are lost", world.name, score.are);
        assert!(score.precision() >= 0.95 && score.recall() >= 0.95, "{}: {score:?}", world.name);
    }
}

#[test]
fn classes_are_those_that_the_simulator_would_give() {
    for world in worlds().into_iter().chain([World::library()]) {
        let run = run(&world, 2);
        for (class, score) in LossClass::ALL.iter().zip(classes(&run, Timing::default())) {
            show(&world, &format!("{class:?}"), &score);
            assert!(score.are > 100, "{}: {} of class {class:?}", world.name, score.are);
            assert!(score.precision() >= 0.95 && score.recall() >= 0.95, "{}, {class:?}: {score:?}", world.name);
        }
    }
}

/// First copies that items say were lost to congestion, those that were, and all.
fn lost(run: &Run) -> [u64; 3] {
    let each = run.items(Timing::default()).into_iter().map(|item| {
        let (copies, lost) = run.truth(item.station, item.at, item.until);
        [item.lost, lost, copies]
    });
    each.fold([0; 3], |sum, item| std::array::from_fn(|at| sum[at] + item[at]))
}

/// Items say of as many as were lost, to half a percent of all.
fn nearly_right(run: &Run) {
    let [said, are, all] = lost(run);
    let percent = |part: u64| 100.0 * part as f64 / all as f64;
    eprintln!("{:.3} % said, {:.3} % are", percent(said), percent(are));
    assert!(are > 200, "{are} are lost to congestion");
    assert!((percent(said) - percent(are)).abs() < 0.5);
}

#[test]
fn what_the_radio_gives_up_is_no_congestion() {
    let run = run(&lossy(), 1);
    let on_air = run.copies.iter().filter(|copy| copy.lost == Some(true)).count();
    eprintln!("{on_air} of {} lost on the air", run.copies.len());
    assert!(on_air > 200, "{on_air} on the air");
    // The driver counts repeats that the radio gave up as well, and those pair off with losses, too.
    nearly_right(&run);
}

#[test]
fn what_the_radio_gives_up_of_others_hides_no_congestion() {
    nearly_right(&run(&lossy().beside("[[traffic]]\nkind = \"udp\"\nto = \"each\"\nrate = \"12 Mbit/s\"\n"), 1));
}
