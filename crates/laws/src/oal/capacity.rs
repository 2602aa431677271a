//! What the hop can carry now, read from a driver's counters.
//! Source:     oal.md A.5, "airtime rule" and "paper's rule".
//! Equations:  w_i = 8 m_i / R_i;   o_i = airtime_i / ppdus_i - n_i w_i
//!             g_i = max{ 8 bytes_i / (airtime_i + k ppdus_i),  8 l_i s_i N_i / (o_i + k + N_i w_i) }
//!             A = y (1 - others - uplink),   y <- y + b ((sum_i 8 bytes_i / g_i) / (dt (1 - others - uplink)) - y)
//!             while the hop is not backlogged:  y <- y + f (1 - y)
//!             C_paper = goodput of the newest slot that was used over 60 % and not congested
//! Symbols:    b, f -> time since the last report over `YIELD_HORIZON`, `FORGET_HORIZON`, R -> `phy_rate`, m -> MPDU bytes, l -> MSDU bytes, n -> attempts a PPDU, s -> success share of attempts,
//!             o -> overhead of an exchange, k -> `CONTENTION`, N -> `frames`, g -> `link`, y -> `yield_`, A -> `airtime()`
//! Deviations: goodput over own airtime understates a link that is not saturated, since small frames pay the same
//!             overhead; the second form of g extrapolates to the aggregation that the hop will have under load. What the
//!             model leaves out (collisions, uplink contention) is learned as the yield y while the hop is backlogged.
//! Validity:   counters cumulative; a counter that went back (driver restart) restarts the estimate. Of a driver that does not
//!             count them, the airtime of others and of the uplink is taken for none, and exchanges are taken for those of an
//!             idle 802.11ac link; without PPDUs the yield is not learned.
//! Checked by: tests::*, sim scenarios

use super::predictor::LossClass;
use lasthop_signals::{HopReport, Node, StationReport};
use lasthop_units::{Bytes, Rate, Span, Time};
use std::collections::{BTreeMap, VecDeque};

/// Service round that plots of capacity assume.
pub const SERVICE_ROUND: Span = Span::from_millis(5);

/// Counters are compared over this long: several service rounds, yet short against the movement of a station.
const WINDOW: Span = Span::from_millis(40);
/// Mean idle time that one access costs: AIFS of AC_BE and half of CWmin slots (IEEE 802.11-2020, table 9-155).
const CONTENTION: Span = Span::from_nanos(110_500);
/// Frames a station and round below which overhead eats more than it should: with 16 MPDUs an exchange overhead of
/// 200 us takes 24 % of the time at 300 Mbit/s and 38 % at 600 Mbit/s.
const FRAMES_A_ROUND: f64 = 16.0;
/// Longest PPDU (IEEE 802.11-2020, aPPDUMaxTime of VHT) and BlockAck window.
const PPDU_MAX: Span = Span::from_micros(5_484);
const BLOCK_ACK_WINDOW: f64 = 64.0;
/// MAC header, FCS, LLC/SNAP, A-MPDU delimiter and padding around an MSDU (IEEE 802.11-2020, 9.2 and 9.7).
const MPDU_OVERHEAD: f64 = 44.0;
/// MSDU size before any was seen.
const DEFAULT_MSDU: f64 = 1500.0;
/// Preamble, SIFS and BlockAck before any exchange was seen: VHT two streams, BlockAck at 24 Mbit/s.
const DEFAULT_OVERHEAD: Span = Span::from_micros(92);
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
    reports: VecDeque<(Time, HopReport)>,
    links: BTreeMap<Node, Link>,
    free: f64,
    yield_: f64,
    slots: Slots,
}

/// What one station's link can do.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Link {
    phy_rate: Rate,
    /// Seconds of an exchange that do not depend on its length.
    overhead: f64,
    msdu: f64,
    success: f64,
    measured: f64,
    active: bool,
    /// When its PHY rate changed last: what was counted before belongs to another rate.
    moved: Time,
}

impl Default for Capacity {
    fn default() -> Capacity {
        Capacity { reports: VecDeque::new(), links: BTreeMap::new(), free: 1.0, yield_: 1.0, slots: Slots::default() }
    }
}

impl Capacity {
    /// Folds one driver report in. `class` is the loss class that was predicted for the interval it ends.
    pub fn update(&mut self, now: Time, report: &HopReport, class: LossClass) {
        if self.reports.iter().any(|(_, old)| went_back(old, report)) {
            self.reports.clear();
        }
        self.links.retain(|station, _| report.stations.iter().any(|reported| reported.station == *station));
        for station in &report.stations {
            let link = self.links.entry(station.station).or_insert_with(|| Link::unseen(station.phy_rate));
            link.set_rate(now, station.phy_rate);
        }
        self.reports.push_back((now, report.clone()));
        while self.reports.len() > 2 && self.reports[1].0 + WINDOW <= now {
            self.reports.pop_front();
        }
        self.slots.update(now, report, class);
        let (since, first) = &self.reports[0];
        // The counters' own clock: a reader that wakes up late must not stretch the interval.
        let span = report.channel.active.saturating_sub(first.channel.active).as_secs_f64();
        if span <= 0.0 {
            return;
        }
        for (old, new) in pairs(first, report) {
            if let Some(link) = self.links.get_mut(&new.station) {
                link.update(*since, old, new);
            }
        }
        let share = |old: Option<Span>, new: Option<Span>| grown(old, new).map(|grown| grown / span);
        let (old, new) = (first.channel, report.channel);
        let others = || {
            let own = share(old.tx, new.tx)? + share(old.rx, new.rx)?;
            Some((share(old.busy, new.busy)? - own).max(0.0))
        };
        let uplink: f64 = pairs(first, report).filter_map(|(old, new)| share(old.rx_airtime, new.rx_airtime)).sum();
        self.free = (1.0 - others().unwrap_or(0.0) - uplink).clamp(0.05, 1.0);
        self.learn_yield(span);
    }

    /// Goodput, in bits, that `station`'s link carries a second of airtime when each of the active stations is served
    /// once in `round`; `None` for a station that the driver does not report, or reports without a rate.
    pub fn link(&self, station: Node, round: Span) -> Option<f64> {
        let active = self.links.values().filter(|link| link.active).count().max(1);
        let turn = round.as_secs_f64() / active as f64;
        self.links.get(&station).filter(|link| !link.phy_rate.is_zero()).map(|link| link.goodput(turn))
    }

    /// How long the hop takes to send what waits; stations of unknown rate are left out.
    pub fn drains_in(&self, report: &HopReport, round: Span) -> Span {
        let airtime =
            |station: &StationReport| Some(station.backlog_bytes.bits() as f64 / self.link(station.station, round)?);
        let airtime: f64 = report.stations.iter().filter_map(airtime).sum();
        Span::from_secs_f64(airtime / self.airtime())
    }

    /// The fraction of time that this BSS can have for its downlink exchanges, contention included.
    pub fn airtime(&self) -> f64 {
        self.free * self.yield_
    }

    /// Time in which every active station gets one exchange of a reasonable length; zero if none is active.
    pub fn service_round(&self) -> Span {
        let serves = |link: &&Link| link.active && !link.phy_rate.is_zero();
        let turns: f64 = self.links.values().filter(serves).map(|link| link.turn(FRAMES_A_ROUND)).sum();
        Span::from_secs_f64(turns / self.airtime())
    }

    /// What all stations together get when each has the same airtime and is served once in `round`: one number for plots,
    /// comparable between laws. `None` before the first report with stations.
    pub fn equal_airtime(&self, round: Span) -> Option<Rate> {
        let links: Vec<f64> = self.links.keys().filter_map(|station| self.link(*station, round)).collect();
        let sum: f64 = links.iter().sum();
        (!links.is_empty()).then(|| Rate::from_bps((sum / links.len() as f64 * self.airtime()) as u64))
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
        let newest = self.reports.iter().rev().take(2).map(|(at, _)| *at).collect::<Vec<_>>();
        let passed = newest[0].since(*newest.last().unwrap_or(&newest[0])).as_secs_f64();
        let mut approach = |target: f64, horizon: Span| {
            self.yield_ += (passed / horizon.as_secs_f64()).min(1.0) * (target - self.yield_);
        };
        let backlogged = |(_, report): &(Time, HopReport)| report.stations.iter().any(|s| s.backlog_packets > 0);
        let since = self.reports[0].0;
        if !self.reports.iter().all(backlogged) {
            return approach(1.0, FORGET_HORIZON);
        }
        if self.links.values().any(|link| since < link.moved) {
            return;
        }
        let (first, last) = (&self.reports[0].1, &self.reports[self.reports.len() - 1].1);
        let used = |(old, new): (&StationReport, &StationReport)| {
            let (packets, attempts) = (new.tx_packets - old.tx_packets, new.tx_attempts - old.tx_attempts);
            if (packets, attempts) == (0, 0) {
                return Some(0.0);
            }
            let link = self.links.get(&new.station)?;
            let ppdus = new.tx_ppdus? - old.tx_ppdus?;
            let frames = per(attempts, ppdus)?;
            if packets == 0 {
                // Exchanges that deliver nothing take time from the others all the same.
                return Some(grown(old.tx_airtime, new.tx_airtime)? + ppdus as f64 * CONTENTION.as_secs_f64());
            }
            let bits = (new.tx_bytes - old.tx_bytes).bits() as f64;
            Some(bits / link.at(frames))
        };
        // What was sent in exchanges that nobody counted took a time that nobody knows: not none.
        match pairs(first, last).map(used).sum::<Option<f64>>() {
            Some(used) => {
                approach((used / (span * self.free)).clamp(YIELD_BOUNDS.0, YIELD_BOUNDS.1), YIELD_HORIZON);
            }
            None => approach(1.0, FORGET_HORIZON),
        }
    }

    /// True if nothing was delivered for [`SILENCE`] within the reports at hand.
    fn is_silent(&self) -> bool {
        // Whether it moves is asked, not how far: it may wrap around.
        let packets = |report: &HopReport| report.stations.iter().map(|s| s.tx_packets).fold(0, u64::wrapping_add);
        let mut progress = (self.reports[0].0, packets(&self.reports[0].1));
        self.reports.iter().any(|(at, report)| {
            let waits = report.stations.iter().any(|s| s.backlog_packets > 0);
            if !waits || packets(report) != progress.1 {
                progress = (*at, packets(report));
            }
            at.since(progress.0) >= SILENCE
        })
    }
}

impl Link {
    fn unseen(phy_rate: Rate) -> Link {
        Link {
            phy_rate,
            overhead: DEFAULT_OVERHEAD.as_secs_f64(),
            msdu: DEFAULT_MSDU,
            success: 1.0,
            measured: 0.0,
            active: false,
            moved: Time::ZERO,
        }
    }

    fn set_rate(&mut self, now: Time, phy_rate: Rate) {
        if self.phy_rate != phy_rate {
            (self.phy_rate, self.moved, self.measured) = (phy_rate, now, 0.0);
        }
    }

    /// Folds in what was counted since `since`.
    fn update(&mut self, since: Time, old: &StationReport, new: &StationReport) {
        let packets = new.tx_packets - old.tx_packets;
        let bytes = (new.tx_bytes - old.tx_bytes).get() as f64;
        self.active = packets > 0 || new.backlog_packets > 0;
        let Some(msdu) = per_f64(bytes, packets) else { return };
        // Small packets (ACKs, probes) say nothing of what a full frame costs.
        self.msdu = msdu.max(200.0);
        let attempts = new.tx_attempts - old.tx_attempts;
        self.success = per(packets, attempts).unwrap_or(1.0).clamp(0.05, 1.0);
        if since < self.moved {
            // The counts span two rates: neither their overhead nor their goodput belongs to the new one.
            return;
        }
        let ppdus = old.tx_ppdus.zip(new.tx_ppdus).map(|(old, new)| new - old);
        let (Some(airtime), Some(ppdus)) = (grown(old.tx_airtime, new.tx_airtime), ppdus) else { return };
        let Some(exchange) = per_f64(airtime, ppdus) else { return };
        let frames = per(attempts, ppdus).unwrap_or(1.0);
        let overhead = exchange - frames * self.frame();
        if (20e-6..1e-3).contains(&overhead) {
            self.overhead = overhead;
        }
        self.measured = 8.0 * bytes / (airtime + ppdus as f64 * CONTENTION.as_secs_f64());
    }

    /// Airtime of one MPDU inside an A-MPDU, in seconds.
    fn frame(&self) -> f64 {
        8.0 * (self.msdu + MPDU_OVERHEAD) / (self.phy_rate.as_bps() as f64).max(1e6)
    }

    /// Time that an exchange of `frames` MPDUs takes from the channel, contention included, in seconds.
    fn turn(&self, frames: f64) -> f64 {
        self.overhead + CONTENTION.as_secs_f64() + frames * self.frame()
    }

    /// Goodput a second of such exchanges, in bits.
    fn at(&self, frames: f64) -> f64 {
        8.0 * self.msdu * self.success * frames / self.turn(frames)
    }

    /// Goodput a second when exchanges may last `turn` seconds.
    fn goodput(&self, turn: f64) -> f64 {
        let longest = (PPDU_MAX.as_secs_f64() / self.frame()).clamp(1.0, BLOCK_ACK_WINDOW);
        let frames = ((turn - self.turn(0.0)) / self.frame()).clamp(1.0, longest);
        self.at(frames).max(self.measured)
    }
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

/// Stations that stand in both reports.
fn pairs<'a>(
    old: &'a HopReport,
    new: &'a HopReport,
) -> impl Iterator<Item = (&'a StationReport, &'a StationReport)> + 'a {
    new.stations.iter().filter_map(|station| {
        let before = old.stations.iter().find(|before| before.station == station.station)?;
        Some((before, station))
    })
}

/// True if any counter that is used here fell: the driver was restarted.
fn went_back(old: &HopReport, new: &HopReport) -> bool {
    let station = |(old, new): (&StationReport, &StationReport)| {
        new.tx_bytes < old.tx_bytes
            || new.tx_packets < old.tx_packets
            || new.tx_attempts < old.tx_attempts
            || new.tx_ppdus < old.tx_ppdus
            || new.tx_airtime < old.tx_airtime
            || new.rx_airtime < old.rx_airtime
    };
    new.channel.active < old.channel.active || pairs(old, new).any(station)
}

/// By how many seconds a counter has grown, if the driver has it.
fn grown(old: Option<Span>, new: Option<Span>) -> Option<f64> {
    Some(new?.saturating_sub(old?).as_secs_f64())
}

fn per(amount: u64, count: u64) -> Option<f64> {
    per_f64(amount as f64, count)
}

fn per_f64(amount: f64, count: u64) -> Option<f64> {
    (count > 0).then(|| amount / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_signals::ChannelTime;

    /// A link of 390 Mbit/s that sends 32 full MPDUs an exchange, as often as an idle channel lets it.
    fn saturated(exchanges: u64, others: Span) -> HopReport {
        let frame = 1544.0 * 8.0 / 390e6;
        let exchange = Span::from_secs_f64(92e-6 + 32.0 * frame);
        let tx = exchange * exchanges;
        let active = (exchange + CONTENTION) * exchanges + others;
        let station = StationReport {
            station: Node(1),
            backlog_packets: 100,
            backlog_bytes: Bytes::new(150_000),
            head_wait: Span::from_millis(4),
            queue_drops: 0,
            tx_attempts: exchanges * 32,
            tx_retries: 0,
            tx_failed: 0,
            tx_packets: exchanges * 32,
            tx_bytes: Bytes::new(exchanges * 32 * 1500),
            rx_packets: 0,
            rx_bytes: Bytes::ZERO,
            tx_airtime: Some(tx),
            rx_airtime: Some(Span::ZERO),
            tx_ppdus: Some(exchanges),
            phy_rate: Rate::from_mbit(390),
        };
        HopReport {
            channel: ChannelTime { active, busy: Some(tx + others), rx: Some(Span::ZERO), tx: Some(tx) },
            stations: vec![station],
        }
    }

    fn feed(others: impl Fn(u64) -> Span) -> Capacity {
        let mut capacity = Capacity::default();
        for n in 0..200 {
            let report = saturated(n * 3, others(n));
            let now = Time::from_nanos(report.channel.active.as_nanos());
            capacity.update(now, &report, LossClass::Poor);
        }
        capacity
    }

    #[test]
    fn a_saturated_link_has_the_goodput_of_its_exchanges() {
        let capacity = feed(|_| Span::ZERO);
        let exchange = 92e-6 + 110.5e-6 + 32.0 * 1544.0 * 8.0 / 390e6;
        let expected = 32.0 * 12_000.0 / exchange;
        let link = capacity.link(Node(1), Span::from_secs_f64(exchange)).expect("reported");
        assert!((link / expected - 1.0).abs() < 0.02, "{link} against {expected}");
        assert!((capacity.airtime() - 1.0).abs() < 0.05, "{}", capacity.airtime());
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
        assert_eq!(capacity.reports.len(), 1);
        let after = capacity.link(Node(1), Span::from_millis(5)).expect("still reported");
        assert!((after / before - 1.0).abs() < 0.01);
    }

    #[test]
    fn a_station_that_leaves_is_forgotten_and_may_come_back_with_fresh_counters() {
        let mut capacity = feed(|_| Span::ZERO);
        let last = capacity.reports.back().expect("fed").clone();
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
