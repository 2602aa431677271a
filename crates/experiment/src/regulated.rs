//! What an edge proxy's log says of a run, beside what the emulator saw of the same stations.

use crate::programs::tunnel;
use lasthop_lab::log::HopLog;
use lasthop_lab::{Doubt, Outcome, Spec};
use lasthop_laws::observation::{Account, Carried, Slot};
use lasthop_report::{Recorder, Regulated};
use lasthop_scenario::Scenario;
use lasthop_signals::Node;
use lasthop_units::stats::Moments;
use lasthop_units::{Span, Time};

/// What came of the proxy's law, station by station, in the measuring window: nothing without a proxy. What the controller knew
/// goes to `recorder`, and what stations missed is a doubt about the run.
pub fn of_run(spec: &Spec, outcome: &mut Outcome, recorder: &mut Recorder) -> Vec<Regulated> {
    let Some(log) = outcome.logs.get(tunnel::LOG) else { return Vec::new() };
    let slots = parse(log, outcome.origin);
    for slot in &slots {
        recorder.observed(slot.at, slot.station, &slot.seen);
        recorder.observed_round(slot.at, None, &slot.seen);
    }
    let stations = spec.stations();
    let logs = (0..stations.len()).filter_map(|station| outcome.logs.get(&tunnel::station_log(station)));
    outcome.doubts.extend(doubt(logs.map(|log| missed(log)).sum()));
    let window = (Time::ZERO + spec.warm_up, Time::ZERO + spec.duration);
    let of =
        |(place, name): (usize, &&str)| summarise(name, Scenario::station_node(place), &slots, &outcome.hop, window);
    stations.iter().enumerate().map(of).collect()
}

/// Why a run should not be believed in which stations' agents missed so many frames.
fn doubt(frames: u64) -> Option<Doubt> {
    let says = format!("stations' agents did not read {frames} frames of their monitors in time: the machine was busy");
    (frames > 0).then_some(Doubt::OfPrograms(says))
}

/// Reads the proxy's log, and makes its times the run's own; `origin` is the world's beginning on `CLOCK_MONOTONIC`.
/// Lines of before that, and lines that are none, are left out.
fn parse(log: &str, origin: Time) -> Vec<Slot> {
    let slot = |line: &str| serde_json::from_str::<Slot>(line).ok().filter(|slot| slot.at >= origin);
    let own = |slot: Slot| Slot { at: Time::ZERO + slot.at.since(origin), ..slot };
    log.lines().filter_map(slot).map(own).collect()
}

/// Frames that a station's monitor interface showed and its agent did not read in time, by the last line of its log that says so.
fn missed(log: &str) -> u64 {
    let told = |line: &str| serde_json::from_str::<Account>(line).ok()?.monitor_missed;
    log.lines().rev().find_map(told).unwrap_or(0)
}

/// What `slots` and the frames of `hop` say of the station called `name` from `from` until `to`. Means are over slots, or over
/// frames where that is said.
fn summarise(name: &str, station: Node, slots: &[Slot], hop: &HopLog, (from, to): (Time, Time)) -> Regulated {
    let inside = |at: Time| at >= from && at < to;
    let length = to.since(from);
    let own = || slots.iter().filter(move |slot| slot.station == station && inside(slot.at));
    let mean = |value: &dyn Fn(&Slot) -> Option<f64>| own().filter_map(value).collect::<Moments>().mean();
    let most = |value: &dyn Fn(&Slot) -> Option<f64>| own().filter_map(value).reduce(f64::max);
    let down = || hop.frames.iter().filter(move |frame| frame.to == station && inside(frame.at));
    let up = || hop.frames.iter().filter(move |frame| frame.from == station && inside(frame.at));
    let share = |airtime: Span| airtime.as_secs_f64() / length.as_secs_f64();
    let count = down().count() as u64;
    Regulated {
        station: name.to_owned(),
        slots: own().count() as u64,
        interval_ms: mean(&|slot| slot.seen.interval_s).map(|seconds| seconds * 1e3),
        frame_interval_ms: (count > 0).then(|| (length / count).as_millis_f64()),
        aggregation_packets: down().map(|frame| f64::from(frame.packets)).collect::<Moments>().mean(),
        target_packets: mean(&|slot| slot.seen.target),
        interval_aim_ms: mean(&|slot| slot.seen.aim_s).map(|seconds| seconds * 1e3),
        round_overhead_ms: mean(&|slot| slot.seen.c_s).map(|seconds| seconds * 1e3),
        rate_mbit_s: mean(&|slot| Some(slot.rate.as_mbit_f64())),
        airtime_share: share(down().map(|frame| frame.airtime).fold(Span::ZERO, |sum, span| sum + span)),
        uplink_frames_s: Some(up().count() as f64 / length.as_secs_f64()),
        uplink_airtime_share: Some(share(up().map(|frame| frame.airtime).fold(Span::ZERO, |sum, span| sum + span))),
        backlog_over_bound: most(&|slot| {
            let Carried { backlog_bytes, bound_bytes, .. } = slot.carried;
            (bound_bytes > 0).then(|| backlog_bytes as f64 / bound_bytes as f64)
        }),
        looks_over_bound: mean(&|slot| Some(slot.carried.over_bound)),
        pacing_error_us_p99: most(&|slot| slot.carried.pacing_error_us_p99),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_lab::log::FrameSeen;
    use lasthop_laws::observation::Delays;
    use lasthop_laws::{Observation, Why};
    use lasthop_signals::StationFeedback;
    use lasthop_units::Rate;

    #[test]
    fn a_run_with_late_monitor_reads_is_unreliable() {
        assert_eq!(doubt(0), None);
        let says = doubt(3).expect("a doubt").to_string();
        assert!(says.contains("did not read 3 frames of their monitors"), "{says}");
    }

    /// A line of the proxy's log.
    fn slot(at_ms: u64, backlog_bytes: u64) -> Slot {
        let seen = Observation {
            mu_n: Some(20.0),
            interval_s: Some(0.01),
            target: Some(25.0),
            aim_s: Some(0.012),
            active: Some(true),
            c_s: Some(0.0004),
            nu: Some(25.0),
        };
        Slot {
            at: at(at_ms),
            slot: 1,
            station: Node(1),
            law: "aggregation".into(),
            seen,
            x_pps: 2000.0,
            rate: Rate::from_mbit(24),
            why: Why::Regulated,
            station_report: StationFeedback::empty(Node(1), 1, at(0), at(500)),
            refused_reports: 0,
            refused_why: None,
            carried: Carried {
                waiting: true,
                backlog_bytes,
                bound_bytes: 1000,
                pacing_error_us_p99: Some(30.5),
                packet_bytes: 1500,
                streams: 1,
                ..Carried::default()
            },
        }
    }

    fn written(slots: &[Slot]) -> String {
        slots.iter().map(|slot| serde_json::to_string(slot).expect("a record") + "\n").collect()
    }

    #[test]
    fn a_log_is_read_from_the_start_time_and_bad_lines_skipped() {
        let log = written(&[slot(2500, 900)]) + "not JSON\n{}\n" + &written(&[slot(100, 900)]);
        let slots = parse(&log, at(2000));
        assert_eq!(slots, [slot(500, 900)]);
    }

    #[test]
    fn what_a_monitor_missed_is_what_the_log_says_last() {
        let line = |monitor_missed| {
            let told = StationFeedback::empty(Node(1), 1, at(0), at(500));
            let (hop_delay, data_delay) = (Delays::default(), Delays::default());
            let account = Account {
                at: at(500),
                told,
                mean_packets: None,
                monitor_missed,
                hop_delay,
                data_delay,
                clock_ahead_us: None,
                clock_error_us: None,
            };
            serde_json::to_string(&account).expect("a record") + "\n"
        };
        let cut = line(Some(15));
        assert_eq!(missed(&(line(Some(0)) + &line(Some(7)) + &line(Some(12)) + &cut[..cut.len() / 2])), 12);
        assert_eq!((missed(&line(None)), missed("")), (0, 0), "without a monitor");
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn a_summary_joins_the_controller_account_and_sent_frames() {
        let slots = parse(&written(&[slot(2500, 900), slot(2500, 1100)]), at(1000));
        let mut hop = HopLog::default();
        // A frame of 10 packets every 20 ms, 5 ms long, and an answer of 1 ms to every second; those before 1 s do not count.
        for n in 0..100 {
            let (ap, own) = (Node(0), Node(1));
            let seen =
                |from, to, packets, ms| FrameSeen { at: at(20 * n), from, to, packets, airtime: Span::from_millis(ms) };
            hop.frames.push(seen(ap, own, 10, 5));
            if n.is_multiple_of(2) {
                hop.frames.push(seen(own, ap, 1, 1));
            }
        }
        let of = |station| summarise("near", station, &slots, &hop, (at(1000), at(2000)));
        let summary = of(Node(1));
        assert_eq!((summary.slots, summary.aggregation_packets), (2, Some(10.0)));
        assert_eq!((summary.frame_interval_ms, summary.interval_ms), (Some(20.0), Some(10.0)));
        assert_eq!(summary.interval_aim_ms, Some(12.0));
        assert!((summary.airtime_share - 0.25).abs() < 1e-9, "{summary:?}");
        assert_eq!((summary.backlog_over_bound, summary.uplink_frames_s), (Some(1.1), Some(25.0)));
        assert!(summary.uplink_airtime_share.is_some_and(|share| (share - 0.025).abs() < 1e-9), "{summary:?}");
        assert_eq!(of(Node(2)).aggregation_packets, None);
    }
}
