//! The regulator where the bottleneck is not the hop but a link before the access point.

use crate::support;

use lasthop_report::{Key, RunRecord, SeriesKind};
use lasthop_scenario::Scenario;
use lasthop_signals::Node;
use lasthop_sim::World;
use lasthop_units::{Seed, Span, Time};
use support::{CUBIC, Wifi, download, regulated, regulator, stations};

/// Three stations at 175.5, 117 and 87.75 Mbit/s behind a link with a FIFO of 1000 packets.
fn behind(link: &str, measure: &str, duration: u64) -> Scenario {
    let backhaul = format!("[backhaul]\ndelay = \"1 ms\"\nqueue = \"1000 packets\"\n{link}\n");
    let station = |(name, mcs)| format!("[[station]]\nname = \"{name}\"\nmcs = {mcs}\n");
    let hop = [("a", 4), ("b", 3), ("c", 2)].map(station).concat();
    let told = format!("target = \"10 ms\", measure = \"{measure}\"");
    let rest = backhaul + &hop + &download("each") + &regulated("regulator", &told) + CUBIC;
    Wifi {
        title: "Behind a slow link",
        times: (&format!("{duration} s"), "1 s"),
        delay: "2 ms",
        queue: "{ kind = \"round-robin\", limit = \"2500 packets\" }",
        rest: &rest,
        ..Wifi::default()
    }
    .scenario()
}

/// Its place among the links of the scenario's graph.
const BACKHAUL: usize = 2;

fn at(s: u64) -> Time {
    Time::ZERO + Span::from_secs(s)
}

/// Runs a law, and gives the packets that wait before the link every 10 ms.
fn watch(scenario: &Scenario, law: &str, seed: u64, end: u64) -> (Vec<(Time, usize)>, RunRecord) {
    let law = scenario.law(law).expect("a law of the scenario");
    let mut world: World = lasthop_sim::build(scenario, &law, Seed(seed), false).expect("valid");
    let (mut seen, mut now) = (Vec::new(), Time::ZERO);
    while now < at(end) {
        now += Span::from_millis(10);
        world.run_until(now);
        seen.push((now, world.cable_backlog(BACKHAUL, Node(0))));
    }
    (seen, world.finish(at(end)).finish())
}

/// Mean packets before the link between two seconds.
fn mean(seen: &[(Time, usize)], (from, to): (u64, u64)) -> f64 {
    let inside: Vec<f64> =
        seen.iter().filter(|(now, _)| (at(from)..at(to)).contains(now)).map(|(_, packets)| *packets as f64).collect();
    inside.iter().sum::<f64>() / inside.len() as f64
}

/// Mean goodput of all downloads between two seconds, Mbit/s.
fn goodput(record: &RunRecord, (from, to): (u64, u64)) -> f64 {
    let bin = record.bin.as_secs_f64();
    let tracks = record.tracks.iter().filter(|track| track.kind == SeriesKind::Rate);
    let of = |track: &lasthop_report::Track| {
        let inside = |place: usize| (from as f64..to as f64).contains(&(place as f64 * bin));
        let values = track.values.iter().enumerate().filter(|(place, _)| inside(*place));
        let values: Vec<f64> = values.map(|(_, value)| value.unwrap_or(0.0)).collect();
        values.iter().sum::<f64>() / values.len().max(1) as f64
    };
    tracks.map(of).sum()
}

/// Of 1500 octets on the link, what is payload of the tunnel.
const PAYLOAD: f64 = 1413.0 / 1500.0;

/// Seconds of queue that the detector lets stand: a drain ends at 20 ms, another begins at 40 ms more than that, and a slot that
/// probes 5 % beyond what the link carries adds 25 ms before anybody knows.
const STANDS: f64 = 0.085;
/// Share of the link that is to be used.
const USED: f64 = 0.9;
const MEASURES: [&str; 2] = ["radiotap", "timestamps"];

/// What a detector finds while the others probe differs from run to run: means over so many seeds, where links change.
const SEEDS: u64 = 5;
/// And where they do not.
const FEW_SEEDS: u64 = 3;

#[test]
fn the_queue_before_a_slow_link_stays_short_and_the_link_full() {
    for measure in MEASURES {
        for mbit in [20.0, 100.0] {
            let scenario = behind(&format!("rate = \"{mbit} Mbit/s\""), measure, 40);
            let (mut queue, mut share) = (0.0, 0.0);
            for seed in 1..=FEW_SEEDS {
                let (seen, record) = watch(&scenario, "regulator", seed, 40);
                queue += mean(&seen, (15, 40)) * 12e-3 / mbit / FEW_SEEDS as f64;
                share += goodput(&record, (15, 40)) / (PAYLOAD * mbit) / FEW_SEEDS as f64;
            }
            eprintln!("{measure} {mbit} Mbit/s: {:.1} ms, {share:.3} of the link", queue * 1e3);
            assert!(queue < STANDS, "{measure} {mbit}: {queue} s in the mean");
            assert!(share >= USED, "{measure} {mbit}: {share} of the link");
        }
    }
    // What it is for.
    let (seen, _) = watch(&behind("rate = \"20 Mbit/s\"", "radiotap", 20), "cubic", 1, 20);
    assert!(mean(&seen, (10, 20)) > 300.0, "{}", mean(&seen, (10, 20)));
}

#[test]
fn a_slowed_link_is_drained_and_a_recovered_one_is_used() {
    let link = "rate = \"1 Gbit/s\"\nchanges = [{ at = \"15 s\", rate = \"20 Mbit/s\" }, { at = \"45 s\", rate = \"1 Gbit/s\" }]";
    let of = |(seen, record): (Vec<(Time, usize)>, RunRecord)| {
        let rates = [(10, 15), (25, 45), (75, 90)].map(|span| goodput(&record, span));
        let queues = [(15, 25), (25, 45), (75, 90)].map(|span| mean(&seen, span));
        (rates, queues)
    };
    for measure in MEASURES {
        let (mut rates, mut queues) = ([0.0; 3], [0.0; 3]);
        for seed in 1..=SEEDS {
            let (rate, queue) = of(watch(&behind(link, measure, 90), "regulator", seed, 90));
            eprintln!("{measure}, seed {seed}: {rate:.2?} Mbit/s, {queue:.1?} packets");
            // None stays behind for good.
            assert!(rate[2] >= 0.9 * rate[0], "{measure}, seed {seed}: it returns: {rate:?}");
            rates.iter_mut().zip(rate).for_each(|(sum, one)| *sum += one / SEEDS as f64);
            queues.iter_mut().zip(queue).for_each(|(sum, one)| *sum += one / SEEDS as f64);
        }
        eprintln!(
            "{measure}: {rates:.2?} Mbit/s, {queues:.1?} packets, {:.3} of the slow link",
            rates[1] / PAYLOAD / 20.0
        );
        assert!(rates[1] >= USED * PAYLOAD * 20.0 && rates[2] >= 0.9 * rates[0], "{measure}: {rates:?}");
        assert!(queues[1] * 12e-3 / 20.0 < STANDS && queues[2] < 5.0, "{measure}: {queues:?}");
    }
}

#[test]
fn a_very_slow_link_is_drained_and_shared_alike() {
    // A packet in 12 ms is less than one a round, and so are the others' shares.
    for (mbit, count) in [(1.0, 1), (10.0, 8)] {
        let backhaul = format!("[backhaul]\nrate = \"{mbit} Mbit/s\"\nqueue = \"1000 packets\"\n");
        let rest = backhaul + &stations("sta", count, 9) + &download("each") + &regulator("10 ms");
        let title = "A link slower than one packet a round";
        let scenario =
            Wifi { title, times: ("90 s", "60 s"), delay: "2 ms", rest: &rest, ..Wifi::default() }.scenario();
        for seed in 1..=SEEDS {
            let (seen, record) = watch(&scenario, "regulator", seed, 90);
            let queue = mean(&seen, (60, 90)) * 12e-3 / mbit;
            let share = goodput(&record, (60, 90)) / (PAYLOAD * mbit);
            let place = format!("{mbit} Mbit/s, {count}, seed {seed}");
            eprintln!("{place}: {:.1} ms, {share:.3} of the link", queue * 1e3);
            assert!(queue < STANDS && share >= USED, "{place}: {queue} s, {share} of the link");
            if let Some(jain) = record.figure(Key::Jain).value() {
                assert!(jain > 0.95, "{place}: Jain {jain}");
            }
        }
    }
}

#[test]
fn a_path_that_becomes_longer_is_no_queue() {
    for error in [0.0, 0.05] {
        let hop = stations("sta", 3, 7) + &format!("mpdu-error-rate = {error}\n");
        let rest = "[backhaul]\nrate = \"10 Gbit/s\"\n".to_owned() + &hop + &download("each") + &regulator("10 ms");
        let title = "A path that becomes longer";
        let scenario = Wifi { title, times: ("40 s", "1 s"), delay: "2 ms", rest: &rest, ..Wifi::default() }.scenario();
        let law = scenario.law("regulator").expect("a law of the scenario");
        for seed in 1..=FEW_SEEDS {
            let mut world: World = lasthop_sim::build(&scenario, &law, Seed(seed), false).expect("valid");
            world.run_until(at(20));
            world.lengthen(BACKHAUL, Span::from_millis(30));
            world.run_until(at(40));
            let record = world.finish(at(40)).finish();
            let [before, soon, later] = [(10, 20), (24, 30), (30, 40)].map(|span| goodput(&record, span));
            eprintln!("{error}, seed {seed}: {before:.1}, {soon:.1} and {later:.1} Mbit/s");
            assert!(soon >= 0.8 * before && later >= 0.97 * before, "{error}, seed {seed}: {before}, {soon}, {later}");
        }
    }
}

#[test]
fn a_fast_link_changes_nothing_but_the_delay() {
    let scenario = behind("rate = \"10 Gbit/s\"", "radiotap", 20);
    let (seen, record) = watch(&scenario, "regulator", 1, 20);
    assert!(mean(&seen, (5, 20)) < 1.0);
    let delay = record.figure(Key::HopDelayMean).value().expect("measured");
    assert!(delay > 1.0 && delay < 15.0, "{delay}");
    assert!(goodput(&record, (10, 20)) > 90.0);
}
