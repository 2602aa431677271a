//! How well frames are told from the arrival times of packets: on simulated traces that training has not seen, and on
//! captures. Prints the tables of `docs/reference/timestamp-estimator.md`.

use crate::arrivals;

use arrivals::capture::{self, Mpdu, REAL, SYNTHETIC, SYNTHETIC_HELD_OUT};
use arrivals::judge::{Errors, HEAD, HELD_OUT, SHORT_SLOT, SLOT, Slot, held_out, judge};
use arrivals::training::Samples;
use arrivals::{Case, Trace};
use lasthop_laws::aggregation::timestamps::TRAINED;
use lasthop_units::{Span, Time};

#[test]
fn the_mean_error_on_other_seeds_is_within_15_per_cent() {
    let slots = held_out(TRAINED);
    let row = |name: &str, which: &dyn Fn(&Slot, &Case) -> bool| {
        let of = slots.iter().filter(|slot| slot.case.as_ref().is_some_and(|case| which(slot, case)));
        let errors = Errors::of(of).expect("some slots");
        println!("{}", errors.line(name));
        errors
    };
    println!("{HEAD}");
    let all = row("all", &|_, _| true);
    let whole = row("frames handed up whole", &|_, case| !case.early);
    let early = row("MPDUs passed on as they end", &|_, case| case.early);
    row("no MPDU losses", &|_, case| case.error == 0.0);
    row("MPDU losses up to 5 %", &|_, case| case.error > 0.0);
    row("no interrupt moderation", &|_, case| case.moderation.is_zero());
    row("interrupt moderation, 20 to 100 us", &|_, case| !case.moderation.is_zero());
    row("a neighbour on the channel", &|_, case| case.neighbour.is_some());
    row("1 station", &|_, case| case.stations == 1);
    row("2 to 8 stations", &|_, case| case.stations > 1);
    let single = row("one packet a frame", &|slot, _| slot.truth < 1.2);
    row("1.2 to 3", &|slot, _| (1.2..3.0).contains(&slot.truth));
    row("3 to 10", &|slot, _| (3.0..10.0).contains(&slot.truth));
    row("more than 10", &|slot, _| slot.truth >= 10.0);
    let known = row("the estimator says that it knows", &|slot, _| slot.known);
    let unknown = row("that it does not know", &|slot, _| !slot.known);
    for (from, to) in [(0.0, 0.02), (0.02, 0.1), (0.1, 0.2), (0.2, 0.4)] {
        row(&format!("doubt {from} to {to}"), &|slot, _| (from..to).contains(&slot.doubt));
    }
    assert!(all.slots > 350, "{all:?}");
    assert!(all.mean <= 0.15, "{all:?}");
    assert!(whole.mean <= 0.15, "{whole:?}");
    // The hard case, above what is asked of all: 15.5 % with these coefficients. No requirement, but it must not become worse unseen.
    assert!(early.slots > 100 && early.mean <= 0.17, "{early:?}");
    // A regulated stream begins with one packet a frame.
    assert!(single.mean <= 0.15, "{single:?}");
    // It knows nearly always, and where it says that it does not it is right to say so.
    assert!(known.mean <= 0.1 && all.known > 0.9, "{known:?} {all:?}");
    assert!(whole.known > 0.95 && early.known > 0.75 && single.known > 0.9, "{whole:?} {early:?} {single:?}");
    assert!(unknown.mean > 0.3, "{unknown:?}");
}

#[test]
fn the_mean_error_on_unseen_captures_is_within_15_per_cent() {
    println!("{HEAD}");
    let Some([seen, unseen]) = capture::halves() else { return };
    let row = |name: &str, slots: &[Slot]| {
        let errors = Errors::of(slots.iter()).expect("some slots");
        println!("{}", errors.line(name));
        errors
    };
    row("real, first half (trained with)", &judge(TRAINED, None, &seen, SLOT));
    let real = row("real, second half", &judge(TRAINED, None, &unseen, SLOT));
    assert!(real.slots >= 8 && real.mean <= 0.15 && real.known >= 0.75, "{real:?}");
    for path in SYNTHETIC_HELD_OUT {
        // Each behind four hosts.
        let traces = (1..5).filter_map(|seed| capture::hosted(path, seed));
        let slots: Vec<Slot> = traces.flat_map(|trace| judge(TRAINED, None, &trace, SHORT_SLOT)).collect();
        let errors = row(&format!("`{path}`"), &slots);
        assert!(errors.mean <= 0.15 && errors.known >= 0.75, "{path}: {errors:?}");
    }
}

/// Errors of the data rate: mean size, with sign, and the share of slots in which it is known.
fn rates<'a>(name: &str, slots: impl Iterator<Item = &'a Slot>) -> (f64, f64, f64) {
    let (mut all, mut errors) = (0.0, Vec::new());
    for slot in slots {
        let truth = slot.case.as_ref().expect("simulated").phy().as_bps() as f64;
        all += 1.0;
        errors.extend(slot.inverse_rate.map(|inverse| 1.0 / (inverse * truth) - 1.0));
    }
    let count = errors.len() as f64;
    let mean = errors.iter().map(|error| error.abs()).sum::<f64>() / count;
    let bias = errors.iter().sum::<f64>() / count;
    errors.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    let p90 = errors.get(errors.len() * 9 / 10).map_or(f64::NAN, |error| error.abs());
    let percent = |share: f64| 100.0 * share;
    println!(
        "| {name} | {all} | {:.0} | {:.1} | {:+.1} | {:.1} |",
        percent(count / all),
        percent(mean),
        percent(bias),
        percent(p90)
    );
    (mean, bias, count / all)
}

#[test]
fn the_data_rate_is_told_from_when_packets_were_sent() {
    let slots = held_out(TRAINED);
    println!(
        "| slots | number | known % | mean error % | bias % | p90 of the error % |\n| --- | --- | --- | --- | --- | --- |"
    );
    let row = |name: &str, which: &dyn Fn(&Slot, &Case) -> bool| {
        rates(name, slots.iter().filter(|slot| slot.case.as_ref().is_some_and(|case| which(slot, case))))
    };
    let all = row("all", &|_, _| true);
    let whole = row("frames handed up whole, no MPDU losses", &|_, case| !case.early && case.error == 0.0);
    let early = row("MPDUs passed on as they end, no MPDU losses", &|_, case| case.early && case.error == 0.0);
    let one = row("of both, one station", &|_, case| case.error == 0.0 && case.stations == 1);
    let several = row("of both, 2 to 8 stations", &|_, case| case.error == 0.0 && case.stations > 1);
    let neighbour =
        row("of both, a neighbour on the channel", &|_, case| case.error == 0.0 && case.neighbour.is_some());
    let single = row("of both, up to 3 packets a frame", &|slot, case| case.error == 0.0 && slot.truth < 3.0);
    let more = row("of both, more", &|slot, case| case.error == 0.0 && slot.truth >= 3.0);
    let lossy = row("MPDU losses up to 5 %", &|_, case| case.error > 0.0);
    assert!(whole.0 <= 0.15 && early.0 <= 0.15 && several.0 <= 0.15, "{whole:?} {early:?} {several:?}");
    // Of frames of up to 3 packets this says little: it rests on the one slot of 45 in which a rate is known. In sets of other
    // seeds 2 to 11 % of such slots have one, which is 2 to 38 % off in the mean.
    assert!(single.0 <= 0.15, "{single:?}");
    // An estimator that never says that it knows is never wrong. At most half of what these seeds show, and below every
    // one of eight sets of other seeds: there it is 9 to 15 % of all slots.
    let least = [
        ("all", all, 0.06),
        ("whole", whole, 0.08),
        ("early", early, 0.13),
        ("one station", one, 0.12),
        ("several stations", several, 0.07),
        ("a neighbour", neighbour, 0.1),
        ("more than 3 packets a frame", more, 0.14),
    ];
    for (name, row, least) in least {
        assert!(row.2 >= least, "{name}: {row:?}");
    }
    // Where MPDUs are lost it seldom says that it knows.
    assert!(lossy.2 <= 0.1, "{lossy:?}");
}

/// Training again finds what is in use.
#[test]
fn training_gives_the_coefficients_in_use() {
    let Some(samples) = Samples::simulated().with_captures(0) else { return };
    let again = samples.fit();
    println!("{again:?}");
    let pairs = again.weights.iter().zip(&TRAINED.weights).chain([(&again.intercept, &TRAINED.intercept)]);
    for (again, used) in pairs {
        assert!((again - used).abs() <= 1e-3 * used.abs().max(1e-3), "{again} found, {used} in use: train again");
    }
}

/// Quantiles of gaps between records of a capture: within a frame, and at its border.
fn gaps(mpdus: &[Mpdu], at: impl Fn(&Mpdu) -> Option<Time>) -> [Vec<i64>; 2] {
    let mut gaps = [Vec::new(), Vec::new()];
    for pair in mpdus.windows(2) {
        if let (Some(from), Some(to)) = (at(&pair[0]), at(&pair[1])) {
            let nanos = |time: Time| i64::try_from(time.as_nanos()).expect("some hours");
            gaps[usize::from(pair[0].frame != pair[1].frame)].push((nanos(to) - nanos(from)) / 1_000);
        }
    }
    gaps.iter_mut().for_each(|gaps| gaps.sort_unstable());
    gaps
}

/// What the stamps of captures are worth: the real one's records are stamped as each MPDU comes, the synthetic ones' at the
/// end of the frame, and no radio's stamps tell the MPDUs of a frame apart.
#[test]
fn only_the_real_captures_records_are_arrival_times() {
    println!(
        "| capture | stamps | gaps | number | 1 % | 5 % | 50 % | 95 % | 99 % |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    );
    for path in [REAL, SYNTHETIC, SYNTHETIC_HELD_OUT[0], SYNTHETIC_HELD_OUT[1]] {
        let Some(mpdus) = capture::read(path) else { return };
        let kernel = gaps(&mpdus, |mpdu| Some(mpdu.at));
        let radio = gaps(&mpdus, |mpdu| mpdu.tsf);
        for (stamps, gaps) in [("record", &kernel), ("radio", &radio)] {
            for (where_, gaps) in ["within a frame", "at a border"].iter().zip(gaps) {
                let quantile = |share: f64| gaps[((gaps.len() - 1) as f64 * share) as usize];
                let [a, b, c, d, e] = [0.01, 0.05, 0.5, 0.95, 0.99].map(quantile);
                println!("| `{path}` | {stamps} | {where_} | {} | {a} | {b} | {c} | {d} | {e} |", gaps.len());
            }
        }
        let median = |gaps: &[Vec<i64>; 2], of: usize| gaps[of][gaps[of].len() / 2];
        assert_eq!(median(&radio, 0), 0, "{path}");
        if path == REAL {
            // MPDUs of 1552 octets at 13 Mbit/s last 955 us; a border is another 400 us and more.
            assert!((900..1_000).contains(&median(&kernel, 0)) && median(&kernel, 1) > 1_300);
        } else {
            assert_eq!(kernel[0].last(), Some(&0), "{path}");
        }
    }
}

/// Traces of cases with frames that are handed up whole, changed by `change`.
fn robust(change: impl Fn(&mut Case)) -> Errors {
    let cases = HELD_OUT.map(Case::draw).filter(|case| !case.early).take(60);
    let slots: Vec<Slot> = cases
        .flat_map(|mut case| {
            change(&mut case);
            judge(TRAINED, Some(&case), &case.trace(), SLOT)
        })
        .collect();
    Errors::of(slots.iter()).expect("some slots")
}

/// Interrupts held back for longer than a frame's interval put several frames into one burst, and no gap shows it.
#[test]
fn frames_handed_up_together_are_taken_for_one() {
    println!("{HEAD}");
    let mut errors = Vec::new();
    for us in [0u64, 100, 250, 500, 1_000, 2_000, 5_000] {
        let found = robust(|case| case.moderation = Span::from_micros(us));
        println!("{}", found.line(&format!("interrupts {us} us apart")));
        errors.push(found);
    }
    assert!(errors[..2].iter().all(|errors| errors.mean <= 0.15 && errors.known > 0.9), "{errors:?}");
    // Never too few: a law that believes it sends less, not more.
    assert!(errors.iter().all(|errors| errors.bias > -0.05), "{errors:?}");
    assert!(errors[2..].windows(2).all(|pair| pair[0].bias < pair[1].bias), "{errors:?}");
}

/// A station that sleeps gets its packets in bursts of frames, one frame right after the other.
#[test]
fn a_station_that_sleeps_is_told_its_frames() {
    println!("{HEAD}");
    for ms in [20u64, 102] {
        let found = robust(|case| case.doze = Some(Span::from_millis(ms)));
        println!("{}", found.line(&format!("asleep {ms} ms at a time")));
        assert!(found.mean <= 0.15 && found.known > 0.9, "{ms} ms: {found:?}");
    }
}

#[test]
fn reordering_holds_packets_behind_a_gap_and_passes_each_once() {
    let mpdu = |ms: u64, sequence: u16, frame: u32| Mpdu {
        at: Time::ZERO + Span::from_millis(ms),
        tsf: None,
        sequence,
        frame,
    };
    let times = |mpdus: &[Mpdu]| -> Vec<(u64, u32)> {
        capture::reordered(mpdus).iter().map(|packet| (packet.at.as_nanos() / 1_000_000, packet.frame)).collect()
    };
    // 4095 is lost in the first frame and comes in the second; 4094 comes twice.
    let hole = [mpdu(0, 4_094, 1), mpdu(0, 0, 1), mpdu(5, 4_094, 2), mpdu(5, 4_095, 2), mpdu(5, 1, 2)];
    assert_eq!(times(&hole), [(0, 1), (5, 2), (5, 1), (5, 2)]);
    // What never comes is waited for 100 ms, or until the window has gone past it.
    assert_eq!(times(&[mpdu(0, 7, 1), mpdu(1, 9, 1), mpdu(300, 10, 2)]), [(0, 1), (101, 1), (300, 2)]);
    assert_eq!(times(&[mpdu(0, 7, 1), mpdu(1, 9, 1), mpdu(50, 72, 2)]), [(0, 1), (50, 1)]);
    let trace = Trace::stamped(&capture::reordered(&hole));
    assert_eq!(trace.begins, [true, true, false, false]);
}
