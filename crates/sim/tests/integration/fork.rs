//! A world that is copied in the middle of a run: the copy goes on as the original would have, and on its own.

use crate::support;

use lasthop_report::RunRecord;
use lasthop_scenario::Scenario;
use lasthop_sim::{World, build};
use lasthop_units::{Seed, Span, Time};
use support::{CUBIC, Wifi, download, regulator, stations};

const FORK: Time = Time::from_nanos(1_700_000_000);
const SEED: Seed = Seed(3);

/// Downloads, uploads, pages and probes under laws of every kind.
fn scenario() -> Scenario {
    let up = "[[traffic]]\nkind = \"bulk\"\nfrom = \"a-1\"\nto = \"server\"\n";
    let page = "[[traffic]]\nkind = \"fetch\"\nto = \"a-2\"\nsize = \"50 kB\"\nevery = \"300 ms\"\n";
    let probe = "[[traffic]]\nkind = \"probe\"\nto = \"a-2\"\nevery = \"20 ms\"\nsize = \"64 B\"\n";
    let laws = "[laws.bbr]\nsender = \"bbr\"\n[laws.reno]\nsender = \"reno\"\n\
                [laws.\"cubic+ap\"]\nsender = \"cubic\"\nagent = {}\n\
                [laws.learned]\nsender = \"cubic\"\nagent = { predictor = \"learned\" }\n\
                [laws.modern]\nsender = \"cubic\"\nqueue = { kind = \"fq-codel-airtime\" }\n";
    let rest = stations("a", 2, 4) + &download("a-1") + &download("a-2") + up + page + probe + CUBIC + laws;
    Wifi { times: ("3 s", "1 s"), rest: &rest, ..Wifi::default() }.scenario()
}

/// Downloads through the edge proxy.
fn proxied() -> Scenario {
    let rest = stations("a", 2, 4) + &download("a-1") + &download("a-2") + &regulator("10 ms");
    Wifi { times: ("3 s", "1 s"), rest: &rest, ..Wifi::default() }.scenario()
}

/// A world under `law`, as it is at `until`.
fn world(scenario: &Scenario, law: &str, until: Time) -> World {
    let law = scenario.law(law).expect("a law of the scenario");
    let mut world = build(scenario, &law, SEED, true).expect("valid parameters");
    let warm_up = Time::ZERO + scenario.warm_up();
    world.run_until(warm_up);
    world.count_segments(warm_up);
    world.run_until(until);
    world
}

/// What a world tells that runs on to the scenario's end.
fn rest(scenario: &Scenario, mut world: World) -> RunRecord {
    let end = Time::ZERO + scenario.duration();
    world.run_until(end);
    world.finish(end).finish()
}

/// Each scenario with each of its laws.
fn each(mut check: impl FnMut(&Scenario, &str)) {
    let scenario = scenario();
    ["cubic", "bbr", "reno", "cubic+ap", "learned", "modern"].into_iter().for_each(|law| check(&scenario, law));
    check(&proxied(), "regulator");
}

#[test]
fn both_sides_of_a_fork_tell_what_an_unforked_run_tells() {
    each(|scenario, law| {
        let expected = rest(scenario, world(scenario, law, FORK));
        let original = world(scenario, law, FORK);
        let fork = original.clone();
        assert!(rest(scenario, fork) == expected, "{law}: the fork differs");
        assert!(rest(scenario, original) == expected, "{law}: the original differs");
    });
}

#[test]
fn a_fork_that_is_changed_leaves_the_original_as_it_was() {
    each(|scenario, law| {
        let expected = rest(scenario, world(scenario, law, FORK));
        let original = world(scenario, law, FORK);
        let mut fork = original.clone();
        fork.lengthen(0, Span::from_millis(30));
        assert!(rest(scenario, fork) != expected, "{law}: a longer wire changes nothing");
        assert!(rest(scenario, original) == expected, "{law}: the original has changed");
    });
}
