//! What the hop can carry now, read from a driver's counters, as the access-point law sees it.
//! Source:     \[oal\] for C_paper; the rule by airtime is own.
//! Equations:  A = y F,   y <- y + b ((sum_i 8 bytes_i / g_i) / (dt F) - y)
//!             while the hop is not backlogged:  y <- y + f (1 - y)
//!             C_paper = goodput of the newest slot that was used over 60 % and not congested
//! Symbols:    b, f -> time since the last report over `YIELD_HORIZON`, `FORGET_HORIZON`, y -> `yield_`, A -> `airtime()`; g and F are
//!             [`Airtime`]'s
//! Deviations: what the model leaves out (collisions, uplink contention) is learned as the yield y while the hop is backlogged. A hop without
//!             airtime (a wired one) carries what its queue drains at ([`Drain`]), and its yield is 1.
//! Validity:   as [`Airtime`], or as [`Drain`]; without PPDUs the yield is not learned: short exchanges, which small windows make, would be
//!             taken for a slow hop.
//! Checked by: tests::*, sim scenarios

use super::drain::Drain;
use super::predictor::LossClass;
use crate::airtime::{self, Airtime, CONTENTION, grown, pairs, per, went_back};
use lasthop_signals::{HopReport, Node, StationReport};
use lasthop_units::{Bytes, Rate, Span, Time};
use std::collections::{BTreeMap, VecDeque};

/// Time constant of the yield estimate: several windows, so that one burst of collisions is not learned.
const YIELD_HORIZON: Span = Span::from_millis(200);
/// A hop that delivers nothing for this long, four of the longest PPDUs, cannot be reached: that says nothing of its yield.
const SILENCE: Span = Span::from_millis(22);
/// Time constant with which the yield returns to 1 while it cannot be measured. A low yield keeps windows tight, and
/// then no backlog may stand that would show it wrong: without this way back it would stay.
const FORGET_HORIZON: Span = Span::from_secs(1);
/// Bounds of the yield: below, a hop is broken rather than busy; above, the extrapolated goodput was too low.
const YIELD_BOUNDS: (f64, f64) = (0.3, 1.2);
/// The paper's slot, and how long an old one counts.
const SLOT: Span = Span::from_millis(100);
const SLOT_AGE: Span = Span::from_secs(5);
const SLOT_UTILISATION: f64 = 0.6;

/// The estimator.
#[derive(Clone, Debug)]
pub struct Capacity {
    hop: Airtime,
    yield_: f64,
    /// Of a hop without airtime.
    drains: BTreeMap<Node, Drain>,
    slots: Slots,
}

impl Default for Capacity {
    fn default() -> Capacity {
        Capacity { hop: Airtime::default(), yield_: 1.0, drains: BTreeMap::new(), slots: Slots::default() }
    }
}

impl Capacity {
    /// Folds one driver report in. `class` is the loss class that was predicted for the interval it ends.
    pub fn update(&mut self, now: Time, report: &HopReport, class: LossClass) {
        let span = self.hop.update(now, report);
        self.slots.update(now, report, class);
        self.drains.retain(|station, _| report.stations.iter().any(|reported| reported.station == *station));
        if has_no_air(report) {
            for station in &report.stations {
                self.drains.entry(station.station).or_default().update(now, station);
            }
        } else if let Some(span) = span {
            self.learn_yield(span);
        }
    }

    /// As [`Airtime::link`]; of a hop without airtime, bits a second that its queue drains at.
    pub fn link(&self, station: Node, round: Span) -> Option<f64> {
        self.hop.link(station, round).or_else(|| self.drains.get(&station)?.rate())
    }

    /// How long the hop takes to send what waits; stations of unknown rate are left out.
    pub fn drains_in(&self, report: &HopReport, round: Span) -> Span {
        let airtime =
            |station: &StationReport| Some(station.backlog_bytes.bits() as f64 / self.link(station.station, round)?);
        let airtime: f64 = report.stations.iter().filter_map(airtime).sum();
        // The receivers of packets in the queues before the driver are not known: these packets take what a mean link
        // takes.
        let links: Vec<f64> = report.stations.iter().filter_map(|station| self.link(station.station, round)).collect();
        let shared: u64 = report.queues.iter().map(|queue| queue.backlog_bytes.bits()).sum();
        let shared: f64 = links.iter().map(|link| shared as f64 / links.len() as f64 / link).sum();
        Span::from_secs_f64((airtime + shared) / self.airtime())
    }

    /// The fraction of time that this BSS can have for its downlink exchanges, contention included.
    pub fn airtime(&self) -> f64 {
        self.hop.free() * self.yield_
    }

    /// Time in which every active station gets one exchange of a reasonable length; zero if none is active.
    pub fn service_round(&self) -> Span {
        Span::from_secs_f64(self.hop.turns() / self.airtime())
    }

    /// Aggregate goodput of the nearest slot that was not congested (the paper's rule); `None` before there was one.
    pub fn paper(&self) -> Option<Rate> {
        self.slots.capacity()
    }

    /// While packets wait all the time, what is carried is what can be carried: learn what the model leaves out. While
    /// they do not, forget it.
    fn learn_yield(&mut self, span: f64) {
        if self.is_silent() {
            return;
        }
        let reports = self.hop.reports();
        let newest = reports.iter().rev().take(2).map(|(at, _)| *at).collect::<Vec<_>>();
        let passed = newest[0].since(*newest.last().unwrap_or(&newest[0])).as_secs_f64();
        let mut approach = |target: f64, horizon: Span| {
            self.yield_ += (passed / horizon.as_secs_f64()).min(1.0) * (target - self.yield_);
        };
        let backlogged = |(_, report): &(Time, HopReport)| has_backlog(report);
        if !reports.iter().all(backlogged) {
            return approach(1.0, FORGET_HORIZON);
        }
        if self.hop.moved() {
            return;
        }
        let (first, last) = (&reports[0].1, &reports[reports.len() - 1].1);
        let used = |(old, new): (&StationReport, &StationReport)| {
            let packets = new.tx_packets - old.tx_packets;
            let attempts = airtime::attempts(old, new).unwrap_or(packets);
            if (packets, attempts) == (0, 0) {
                return Some(0.0);
            }
            let ppdus = new.tx_ppdus? - old.tx_ppdus?;
            let frames = per(attempts, ppdus)?;
            if packets == 0 {
                // Exchanges that deliver nothing take time from the others all the same.
                return Some(grown(old.tx_airtime, new.tx_airtime)? + ppdus as f64 * CONTENTION.as_secs_f64());
            }
            let bits = (new.tx_bytes - old.tx_bytes).bits() as f64;
            Some(bits / self.hop.exchange(new.station, frames)?)
        };
        // What was sent in exchanges that nobody counted took a time that nobody knows: not none.
        match pairs(first, last).map(used).sum::<Option<f64>>() {
            Some(used) => {
                approach((used / (span * self.hop.free())).clamp(YIELD_BOUNDS.0, YIELD_BOUNDS.1), YIELD_HORIZON);
            }
            None => approach(1.0, FORGET_HORIZON),
        }
    }

    /// True if nothing was delivered for [`SILENCE`] within the reports at hand.
    fn is_silent(&self) -> bool {
        // Whether it moves is asked, not how far: it may wrap around.
        let packets = |report: &HopReport| report.stations.iter().map(|s| s.tx_packets).fold(0, u64::wrapping_add);
        let reports = self.hop.reports();
        let mut progress = (reports[0].0, packets(&reports[0].1));
        reports.iter().any(|(at, report)| {
            if !has_backlog(report) || packets(report) != progress.1 {
                progress = (*at, packets(report));
            }
            at.since(progress.0) >= SILENCE
        })
    }
}

/// True if the driver knows neither a channel nor a rate of any station: the hop is a wired one.
fn has_no_air(report: &HopReport) -> bool {
    let wired = |station: &StationReport| station.phy_rate.is_zero() && station.tx_airtime.is_none();
    report.channel.busy.is_none() && report.stations.iter().all(wired)
}

/// True if packets wait, for a station or in a queue of the interface.
fn has_backlog(report: &HopReport) -> bool {
    report.stations.iter().any(|station| station.backlog_packets > 0)
        || report.queues.iter().any(|queue| queue.backlog_packets > 0)
}

/// The paper's capacity rule.
#[derive(Clone, Debug, Default)]
struct Slots {
    start: Option<(Time, HopReport)>,
    congested: bool,
    done: VecDeque<Slot>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    end: Time,
    goodput: Rate,
    counts: bool,
}

impl Slots {
    fn update(&mut self, now: Time, report: &HopReport, class: LossClass) {
        self.congested |= class.acts();
        let Some((since, first)) = &self.start else {
            self.start = Some((now, report.clone()));
            return;
        };
        if now.since(*since) < SLOT {
            return;
        }
        if !went_back(first, report) {
            let span = now.since(*since);
            let bytes = pairs(first, report).map(|(old, new)| new.tx_bytes.saturating_sub(old.tx_bytes)).sum::<Bytes>();
            let busy = grown(first.channel.busy, report.channel.busy).map(|busy| busy / span.as_secs_f64());
            let counts = !self.congested && busy.is_some_and(|busy| busy > SLOT_UTILISATION);
            self.done.push_back(Slot { end: now, goodput: Rate::of(bytes, span).unwrap_or(Rate::ZERO), counts });
        }
        while self.done.front().is_some_and(|slot| slot.end + SLOT_AGE < now) {
            self.done.pop_front();
        }
        self.start = Some((now, report.clone()));
        self.congested = class.acts();
    }

    fn capacity(&self) -> Option<Rate> {
        let nearest = self.done.iter().rev().find(|slot| slot.counts).map(|slot| slot.goodput);
        nearest.or_else(|| self.done.iter().map(|slot| slot.goodput).max()).filter(|rate| !rate.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::airtime::tests::saturated;

    fn feed(others: impl Fn(u64) -> Span) -> Capacity {
        let mut capacity = Capacity::default();
        for n in 0..200 {
            let report = saturated(n * 3, others(n));
            let now = Time::from_nanos(report.channel.active.as_nanos());
            capacity.update(now, &report, LossClass::Poor);
        }
        capacity
    }

    /// Half of what is sent is missing, as when half of the exchanges collide: the yield learns it, the hop's own estimate does not.
    #[test]
    fn what_the_model_leaves_out_is_learned_here_and_nowhere_else() {
        let mut lossy = Capacity::default();
        for n in 0..200 {
            let mut report = saturated(n * 3, Span::ZERO);
            report.channel.active = report.channel.active * 2;
            lossy.update(Time::from_nanos(report.channel.active.as_nanos()), &report, LossClass::Poor);
        }
        let clean = feed(|_| Span::ZERO);
        let round = Span::from_millis(5);
        assert!((lossy.airtime() - 0.5).abs() < 0.05 && (clean.airtime() - 1.0).abs() < 0.05);
        assert_eq!(lossy.hop.equal(round), clean.hop.equal(round));
    }

    #[test]
    fn airtime_of_a_neighbour_is_not_ours() {
        // The neighbour takes as long as our exchanges do.
        let own = |n: u64| Span::from_secs_f64(3.0 * (92e-6 + 110.5e-6 + 32.0 * 1544.0 * 8.0 / 390e6)) * n;
        let capacity = feed(own);
        assert!((capacity.airtime() - 0.5).abs() < 0.05, "{}", capacity.airtime());
    }

    #[test]
    fn a_restarted_driver_restarts_the_estimate() {
        let mut capacity = feed(|_| Span::ZERO);
        let before = capacity.link(Node(1), Span::from_millis(5)).expect("reported");
        capacity.update(Time::from_nanos(u64::MAX / 2), &saturated(1, Span::ZERO), LossClass::Good);
        assert_eq!(capacity.hop.reports().len(), 1);
        let after = capacity.link(Node(1), Span::from_millis(5)).expect("still reported");
        assert!((after / before - 1.0).abs() < 0.01);
    }

    #[test]
    fn a_departed_station_may_return_with_fresh_counters() {
        let mut capacity = feed(|_| Span::ZERO);
        let last = capacity.hop.reports().back().expect("fed").clone();
        let mut gone = last.1.clone();
        gone.stations.clear();
        let later = |ms: u64| last.0 + Span::from_millis(ms);
        capacity.update(later(4), &gone, LossClass::Good);
        assert_eq!(capacity.link(Node(1), Span::from_millis(5)), None);
        assert_eq!(capacity.service_round(), Span::ZERO);
        let mut back = saturated(1, Span::ZERO);
        back.channel = last.1.channel;
        capacity.update(later(8), &back, LossClass::Good);
        capacity.update(later(12), &back, LossClass::Good);
        assert!(capacity.airtime().is_finite() && capacity.airtime() <= 1.2);
    }

    #[test]
    fn backlog_drains_at_the_speed_of_its_own_link() {
        let capacity = feed(|_| Span::ZERO);
        let round = Span::from_millis(5);
        let report = saturated(600, Span::ZERO);
        let expected = 150_000.0 * 8.0 / (capacity.link(Node(1), round).expect("reported") * capacity.airtime());
        assert!((capacity.drains_in(&report, round).as_secs_f64() / expected - 1.0).abs() < 1e-6);
    }

    #[test]
    fn the_papers_rule_takes_the_newest_slot_without_congestion() {
        let mut slots = Slots::default();
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        slots.update(at(0), &saturated(0, Span::ZERO), LossClass::Good);
        let calm = saturated(100, Span::ZERO);
        slots.update(at(150), &calm, LossClass::Good);
        let expected = Rate::of(Bytes::new(100 * 32 * 1500), Span::from_millis(150)).expect("no zero span");
        assert_eq!(slots.capacity(), Some(expected));
        slots.update(at(300), &saturated(400, Span::ZERO), LossClass::Bad);
        assert_eq!(slots.capacity(), Some(expected), "a congested slot is passed over");
    }
}
