//! What an edge proxy's log says of a run, beside what the emulator saw of the same stations.

use crate::log::HopLog;
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

fn slot(line: &Value, origin: Time) -> Option<Slot> {
    let number = |key: &str| line[key].as_f64();
    let at = Time::from_nanos(line["t_ns"].as_u64()?.checked_sub(origin.as_nanos())?);
    Some(Slot {
        at,
        station: Node(u16::try_from(line["station"].as_u64()?).ok()?),
        level: number("mu_n"),
        target: number("target"),
        overhead: number("c_s"),
        rate: Rate::from_bps(line["rate_bps"].as_u64()?),
        backlog: (number("backlog_bytes")?, number("bound_bytes")?),
        over_bound: number("over_bound")?,
        pacing_p99_us: number("pacing_error_us_p99"),
        interval: number("interval_s"),
    })
}

/// One station over a stretch of a run. Means are over slots, or over frames where that is said.
#[derive(Clone, Debug, PartialEq)]
pub struct Regulated {
    /// Its number.
    pub station: Node,
    /// Slots that it reported.
    pub slots: u64,
    /// Mean of μ_N/x, by the controller's account.
    pub interval: Option<Span>,
    /// Time between its frames on the air, by the emulator's.
    pub frame_interval: Option<Span>,
    /// Packets a frame on the air, mean over frames.
    pub level: Option<f64>,
    /// Packets a frame that the controller aimed at.
    pub target: Option<f64>,
    /// Estimate of a round's overhead.
    pub overhead: Option<Span>,
    /// Rate that the proxy served it at.
    pub rate: Option<Rate>,
    /// Share of the time that its frames occupied the channel.
    pub airtime: f64,
    /// The most that the proxy held for it over the bound at that time: 1 is at the bound.
    pub backlog: Option<f64>,
    /// Share of the looks at the backlog that found more than the bound.
    pub over_bound: Option<f64>,
    /// Worst slot's 99th percentile of how late packets left.
    pub pacing_p99: Option<Span>,
}

/// What `slots` and the frames of `hop` say of `station` from `from` until `to`.
pub fn summarise(station: Node, slots: &[Slot], hop: &HopLog, (from, to): (Time, Time)) -> Regulated {
    let inside = |at: Time| at >= from && at < to;
    let own = || slots.iter().filter(move |slot| slot.station == station && inside(slot.at));
    let mean = |value: &dyn Fn(&Slot) -> Option<f64>| own().filter_map(value).collect::<Moments>().mean();
    let most = |value: &dyn Fn(&Slot) -> Option<f64>| own().filter_map(value).reduce(f64::max);
    let frames = || hop.frames.iter().filter(move |frame| frame.to == station && inside(frame.at));
    let count = frames().count() as u64;
    let airtime: Span = frames().map(|frame| frame.airtime).fold(Span::ZERO, |sum, span| sum + span);
    Regulated {
        station,
        slots: own().count() as u64,
        interval: mean(&|slot| slot.interval).map(Span::from_secs_f64),
        frame_interval: (count > 0).then(|| to.since(from) / count),
        level: frames().map(|frame| f64::from(frame.packets)).collect::<Moments>().mean(),
        target: mean(&|slot| slot.target),
        overhead: mean(&|slot| slot.overhead).map(Span::from_secs_f64),
        rate: mean(&|slot| Some(slot.rate.as_bps() as f64)).map(|bps| Rate::from_bps(bps as u64)),
        airtime: airtime.as_secs_f64() / to.since(from).as_secs_f64(),
        backlog: most(&|slot| (slot.backlog.1 > 0.0).then(|| slot.backlog.0 / slot.backlog.1)),
        over_bound: mean(&|slot| Some(slot.over_bound)),
        pacing_p99: most(&|slot| slot.pacing_p99_us).map(|us| Span::from_secs_f64(us * 1e-6)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::FrameSeen;

    const LINE: &str = r#"{"t_ns":2500000000,"station":1,"mu_n":20.0,"target":25.0,"c_s":0.0004,"rate_bps":24000000,
        "backlog_bytes":900,"bound_bytes":1000,"over_bound":0.0,"pacing_error_us_p99":30.5,"interval_s":0.01}"#;

    #[test]
    fn a_log_is_read_from_the_worlds_beginning_on_and_nonsense_is_left_out() {
        let line = LINE.replace('\n', " ");
        let log = format!("{line}\nnot JSON\n{{}}\n{}\n", line.replace("2500000000", "100"));
        let slots = parse(&log, Time::from_nanos(2_000_000_000));
        assert_eq!(slots.len(), 1, "{slots:?}");
        assert_eq!((slots[0].at, slots[0].station, slots[0].level), (at(500), Node(1), Some(20.0)));
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn a_summary_joins_the_controllers_account_with_the_frames_on_the_air() {
        let line = LINE.replace('\n', " ");
        let slots = parse(&format!("{line}\n{}", line.replace("900", "1100")), Time::from_nanos(1_000_000_000));
        let mut hop = HopLog::default();
        // A frame of 10 packets every 20 ms, 5 ms long; those before 1 s do not count.
        for n in 0..100 {
            let (to, airtime) = (Node(1), Span::from_millis(5));
            hop.frames.push(FrameSeen { at: at(20 * n), to, packets: 10, airtime });
        }
        let summary = summarise(Node(1), &slots, &hop, (at(1000), at(2000)));
        assert_eq!((summary.slots, summary.level), (2, Some(10.0)));
        assert_eq!(summary.frame_interval, Some(Span::from_millis(20)));
        assert_eq!(summary.interval, Some(Span::from_millis(10)));
        assert!((summary.airtime - 0.25).abs() < 1e-9 && summary.backlog == Some(1.1), "{summary:?}");
        assert_eq!(summarise(Node(2), &slots, &hop, (at(1000), at(2000))).level, None);
    }
}
