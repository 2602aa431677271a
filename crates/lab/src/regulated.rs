//! What an edge proxy's log says of a run, beside what the emulator saw of the same stations.

use crate::log::HopLog;
use lasthop_report::Regulated;
use lasthop_signals::Node;
use lasthop_units::stats::Moments;
use lasthop_units::{Rate, Span, Time};
use serde_json::Value;

/// A line of the proxy's log: what it knew and decided when a station had reported a slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slot {
    /// When, in the run's own time.
    pub at: Time,
    /// Whose.
    pub station: Node,
    /// Packets a frame that the station reported (μ_N); `None` if it received none, or nothing regulates.
    pub level: Option<f64>,
    /// Packets a frame that are aimed at.
    pub target: Option<f64>,
    /// The interval between its frames that is aimed at, in seconds.
    pub aim: Option<f64>,
    /// Estimate of a round's overhead (ĉ), in seconds.
    pub overhead: Option<f64>,
    /// What the proxy may send from now on.
    pub rate: Rate,
    /// The most that the proxy held for the station during the slot, and the bound on it, in octets.
    pub backlog: (f64, f64),
    /// Share of the looks at the backlog that found more than the bound.
    pub over_bound: f64,
    /// 99th percentile of how late packets left, in microseconds.
    pub pacing_p99_us: Option<f64>,
    /// The interval between the station's frames: μ_N over the rate in packets (μ_N/x), in seconds.
    pub interval: Option<f64>,
}

/// Reads the proxy's log; `origin` is the world's beginning on `CLOCK_MONOTONIC`. Lines of before that, and lines that are none, are
/// left out.
pub fn parse(log: &str, origin: Time) -> Vec<Slot> {
    log.lines().filter_map(|line| slot(&serde_json::from_str(line).ok()?, origin)).collect()
}

/// Frames that a station's monitor interface showed and its agent did not read in time, by the last line of its log that says so.
pub fn missed(log: &str) -> u64 {
    let told = |line: &str| serde_json::from_str::<Value>(line).ok()?["monitor_missed"].as_u64();
    log.lines().rev().find_map(told).unwrap_or(0)
}

fn slot(line: &Value, origin: Time) -> Option<Slot> {
    let number = |key: &str| line[key].as_f64();
    let at = Time::from_nanos(line["t_ns"].as_u64()?.checked_sub(origin.as_nanos())?);
    Some(Slot {
        at,
        station: Node(u16::try_from(line["station"].as_u64()?).ok()?),
        level: number("mu_n"),
        target: number("target"),
        aim: number("aim_s"),
        overhead: number("c_s"),
        rate: Rate::from_bps(line["rate_bps"].as_u64()?),
        backlog: (number("backlog_bytes")?, number("bound_bytes")?),
        over_bound: number("over_bound")?,
        pacing_p99_us: number("pacing_error_us_p99"),
        interval: number("interval_s"),
    })
}

/// What `slots` and the frames of `hop` say of the station called `name` from `from` until `to`. Means are over slots, or over
/// frames where that is said.
pub fn summarise(name: &str, station: Node, slots: &[Slot], hop: &HopLog, (from, to): (Time, Time)) -> Regulated {
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
        interval_ms: mean(&|slot| slot.interval).map(|seconds| seconds * 1e3),
        frame_interval_ms: (count > 0).then(|| (length / count).as_millis_f64()),
        aggregation_packets: down().map(|frame| f64::from(frame.packets)).collect::<Moments>().mean(),
        target_packets: mean(&|slot| slot.target),
        interval_aim_ms: mean(&|slot| slot.aim).map(|seconds| seconds * 1e3),
        round_overhead_ms: mean(&|slot| slot.overhead).map(|seconds| seconds * 1e3),
        rate_mbit_s: mean(&|slot| Some(slot.rate.as_mbit_f64())),
        airtime_share: share(down().map(|frame| frame.airtime).fold(Span::ZERO, |sum, span| sum + span)),
        uplink_frames_s: Some(up().count() as f64 / length.as_secs_f64()),
        uplink_airtime_share: Some(share(up().map(|frame| frame.airtime).fold(Span::ZERO, |sum, span| sum + span))),
        backlog_over_bound: most(&|slot| (slot.backlog.1 > 0.0).then(|| slot.backlog.0 / slot.backlog.1)),
        looks_over_bound: mean(&|slot| Some(slot.over_bound)),
        pacing_error_us_p99: most(&|slot| slot.pacing_p99_us),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::FrameSeen;

    const LINE: &str = r#"{"t_ns":2500000000,"station":1,"mu_n":20.0,"target":25.0,"aim_s":0.012,"c_s":0.0004,"rate_bps":24000000,
        "backlog_bytes":900,"bound_bytes":1000,"over_bound":0.0,"pacing_error_us_p99":30.5,"interval_s":0.01}"#;

    #[test]
    fn a_log_is_read_from_the_worlds_beginning_on_and_nonsense_is_left_out() {
        let line = LINE.replace('\n', " ");
        let log = format!("{line}\nnot JSON\n{{}}\n{}\n", line.replace("2500000000", "100"));
        let slots = parse(&log, Time::from_nanos(2_000_000_000));
        assert_eq!(slots.len(), 1, "{slots:?}");
        assert_eq!((slots[0].at, slots[0].station, slots[0].level), (at(500), Node(1), Some(20.0)));
    }

    #[test]
    fn what_a_monitor_missed_is_what_the_log_says_last() {
        let line = |count: &str| format!("{{\"slot\":1,\"monitor_missed\":{count}}}\n");
        assert_eq!(missed(&(line("0") + &line("7") + &line("12") + "{\"slot\":9,\"monitor_mi")), 12);
        assert_eq!((missed(&line("null")), missed("")), (0, 0), "without a monitor");
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn a_summary_joins_the_controllers_account_with_the_frames_on_the_air() {
        let line = LINE.replace('\n', " ");
        let slots = parse(&format!("{line}\n{}", line.replace("900", "1100")), Time::from_nanos(1_000_000_000));
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
