//! What a hop can carry by its airtime: what stations' links do with it, and how much of it others leave.
//! Source:     own; \[oal\] takes the rate of the nearest slot without congestion.
//! Equations:  w_i = 8 m_i / R_i;   o_i = airtime_i / ppdus_i - n_i w_i
//!             g_i = max{ 8 bytes_i / (airtime_i + k ppdus_i),  8 l_i s_i N_i / (o_i + k + N_i w_i) }
//!             F = 1 - others - uplink;   C = F mean_i g_i
//! Symbols:    R -> `phy_rate`, m -> MPDU bytes, l -> MSDU bytes, n -> attempts a PPDU, s -> success share of attempts,
//!             o -> overhead of an exchange, k -> `CONTENTION`, N -> `frames`, g -> `link`, F -> `free`, C -> `equal`
//! Deviations: goodput over own airtime understates a link that is not saturated, since small frames pay the same
//!             overhead; the second form of g extrapolates to the aggregation that the hop will have under load. Collisions are left out.
//! Validity:   counters cumulative; a counter that went back (driver restart) restarts the estimate. Of a driver that does not
//!             count them, the airtime of others and of the uplink is taken for none, and exchanges are taken for those of an
//!             idle 802.11ac link.
//! Checked by: tests::*, sim scenarios
//!
//! It depends on what a driver counts and on nothing that a law has learned: so it may be drawn beside any law.

use lasthop_signals::{HopReport, Node, StationReport};
use lasthop_units::{Rate, Span, Time};
use std::collections::{BTreeMap, VecDeque};

/// Service round that plots of capacity assume.
pub const SERVICE_ROUND: Span = Span::from_millis(5);

/// Counters are compared over this long: several service rounds, yet short against the movement of a station.
const WINDOW: Span = Span::from_millis(40);
/// Mean idle time that one access costs: AIFS of AC_BE and half of CWmin slots (IEEE 802.11-2020, table 9-155).
pub(crate) const CONTENTION: Span = Span::from_nanos(110_500);
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
/// The estimator.
#[derive(Clone, Debug)]
pub struct Airtime {
    reports: VecDeque<(Time, HopReport)>,
    links: BTreeMap<Node, Link>,
    /// Links that carry something, or have something to carry.
    active: usize,
    free: f64,
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

impl Default for Airtime {
    fn default() -> Airtime {
        Airtime { reports: VecDeque::new(), links: BTreeMap::new(), active: 0, free: 1.0 }
    }
}

impl Airtime {
    /// Folds one driver report in. Gives the time, by the counters' own clock, over which counters are compared; `None` while there is
    /// none.
    pub fn update(&mut self, now: Time, report: &HopReport) -> Option<f64> {
        let span = self.fold(now, report);
        self.active = self.links.values().filter(|link| link.active).count();
        span
    }

    fn fold(&mut self, now: Time, report: &HopReport) -> Option<f64> {
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
        let (since, first) = &self.reports[0];
        // The counters' own clock: a reader that wakes up late must not stretch the interval.
        let span = report.channel.active.saturating_sub(first.channel.active).as_secs_f64();
        if span <= 0.0 {
            return None;
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
        Some(span)
    }

    /// Goodput, in bits, that `station`'s link carries a second of airtime when each of the active stations is served
    /// once in `round`; `None` for a station that the driver does not report, or reports without a rate.
    pub fn link(&self, station: Node, round: Span) -> Option<f64> {
        let turn = round.as_secs_f64() / self.active.max(1) as f64;
        self.links.get(&station).filter(|link| !link.phy_rate.is_zero()).map(|link| link.goodput(turn))
    }

    /// The fraction of time that others, and this BSS's own uplink, leave to its downlink.
    pub fn free(&self) -> f64 {
        self.free
    }

    /// What all stations together get when each has the same airtime and is served once in `round`: one number for plots,
    /// comparable between laws. `None` before the first report with stations.
    pub fn equal(&self, round: Span) -> Option<Rate> {
        let links: Vec<f64> = self.links.keys().filter_map(|station| self.link(*station, round)).collect();
        let sum: f64 = links.iter().sum();
        (!links.is_empty()).then(|| Rate::from_bps((sum / links.len() as f64 * self.free) as u64))
    }

    /// Seconds in which every active station gets one exchange of a reasonable length.
    pub(crate) fn turns(&self) -> f64 {
        let serves = |link: &&Link| link.active && !link.phy_rate.is_zero();
        self.links.values().filter(serves).map(|link| link.turn(FRAMES_A_ROUND)).sum()
    }

    /// The reports over which counters are compared, oldest first.
    pub(crate) fn reports(&self) -> &VecDeque<(Time, HopReport)> {
        &self.reports
    }

    /// True if a station's PHY rate has changed since the oldest of them.
    pub(crate) fn moved(&self) -> bool {
        self.reports.front().is_some_and(|(since, _)| self.links.values().any(|link| *since < link.moved))
    }

    /// Goodput a second, in bits, of `station`'s exchanges of `frames` MPDUs.
    pub(crate) fn exchange(&self, station: Node, frames: f64) -> Option<f64> {
        self.links.get(&station).map(|link| link.at(frames))
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
        // Of a driver that does not count repeats, every frame is taken to have arrived at once.
        let attempts = attempts(old, new).unwrap_or(packets);
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

/// Stations that stand in both reports.
pub(crate) fn pairs<'a>(
    old: &'a HopReport,
    new: &'a HopReport,
) -> impl Iterator<Item = (&'a StationReport, &'a StationReport)> + 'a {
    new.stations.iter().enumerate().filter_map(|(at, station)| {
        // Where none came or went it stands at the same place.
        let is_it = |before: &&StationReport| before.station == station.station;
        let before = old.stations.get(at).filter(is_it).or_else(|| old.stations.iter().find(is_it))?;
        Some((before, station))
    })
}

/// True if any counter that is used here fell: the driver was restarted.
pub(crate) fn went_back(old: &HopReport, new: &HopReport) -> bool {
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
pub(crate) fn grown(old: Option<Span>, new: Option<Span>) -> Option<f64> {
    Some(new?.saturating_sub(old?).as_secs_f64())
}

/// Attempts between two reports, if the driver counts them.
pub(crate) fn attempts(old: &StationReport, new: &StationReport) -> Option<u64> {
    Some(new.tx_attempts? - old.tx_attempts?)
}

pub(crate) fn per(amount: u64, count: u64) -> Option<f64> {
    per_f64(amount as f64, count)
}

pub(crate) fn per_f64(amount: f64, count: u64) -> Option<f64> {
    (count > 0).then(|| amount / count as f64)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use lasthop_signals::ChannelTime;
    use lasthop_units::Bytes;

    /// A link of 390 Mbit/s that sends 32 full MPDUs an exchange, as often as an idle channel lets it.
    pub(crate) fn saturated(exchanges: u64, others: Span) -> HopReport {
        let frame = 1544.0 * 8.0 / 390e6;
        let exchange = Span::from_secs_f64(92e-6 + 32.0 * frame);
        let tx = exchange * exchanges;
        let active = (exchange + CONTENTION) * exchanges + others;
        let station = StationReport {
            station: Node(1),
            backlog_packets: 100,
            backlog_bytes: Bytes::new(150_000),
            head_wait: Some(Span::from_millis(4)),
            queue_drops: 0,
            tx_attempts: Some(exchanges * 32),
            tx_retries: Some(0),
            tx_failed: Some(0),
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
            channel: ChannelTime {
                active,
                busy: Some(tx + others),
                rx: Some(Span::ZERO),
                tx: Some(tx),
                ..ChannelTime::default()
            },
            stations: vec![station],
            ..HopReport::default()
        }
    }

    #[test]
    fn a_saturated_link_has_the_goodput_of_its_exchanges() {
        let mut hop = Airtime::default();
        for n in 0..200 {
            let report = saturated(n * 3, Span::ZERO);
            hop.update(Time::from_nanos(report.channel.active.as_nanos()), &report);
        }
        let exchange = 92e-6 + 110.5e-6 + 32.0 * 1544.0 * 8.0 / 390e6;
        let expected = 32.0 * 12_000.0 / exchange;
        let round = Span::from_secs_f64(exchange);
        let link = hop.link(Node(1), round).expect("reported");
        assert!((link / expected - 1.0).abs() < 0.02, "{link} against {expected}");
        let all = hop.equal(round).expect("reported").as_bps() as f64;
        assert!(hop.free() > 0.999 && (all / expected - 1.0).abs() < 0.02, "{all} against {expected}");
    }
}
