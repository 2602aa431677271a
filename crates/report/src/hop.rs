//! Series of a hop, from its driver's reports: the same in every world.

use crate::{Gauge, Recorder, SeriesKind};
use lasthop_laws::airtime::{Airtime, SERVICE_ROUND};
use lasthop_signals::{ChannelTime, HopReport};
use lasthop_units::{Span, Time};

/// Turns an access point's driver reports into series: queues, PHY rates, channel use, and, for a radio hop, an estimate
/// of what it can carry.
#[derive(Clone, Debug)]
pub struct HopMeter {
    channel: ChannelTime,
    /// The same estimate for every law, and no law's own, or charts could not be compared. None for a wired hop, which
    /// has no channel access and no cost of one to estimate.
    capacity: Option<Airtime>,
    /// It is one of several access points: what belongs to the hop as a whole cannot be told from one report.
    partial: bool,
}

/// What has been counted before the first report.
const NOTHING: ChannelTime = ChannelTime {
    active: Span::ZERO,
    busy: Some(Span::ZERO),
    rx: Some(Span::ZERO),
    tx: Some(Span::ZERO),
    scan: None,
    noise: None,
};

impl HopMeter {
    /// A meter for a radio hop, or a wired one.
    pub fn new(radio: bool) -> HopMeter {
        HopMeter { channel: NOTHING, capacity: radio.then(Airtime::default), partial: false }
    }

    /// A meter for one of several access points on a channel: backlogs and rates of its stations, and channel use.
    pub fn of_one_of_several() -> HopMeter {
        HopMeter { channel: NOTHING, capacity: None, partial: true }
    }

    /// Folds in the report of `at`, not earlier than the one before.
    pub fn add(&mut self, recorder: &mut Recorder, at: Time, report: &HopReport) {
        let packets: u64 = report.stations.iter().map(|station| u64::from(station.backlog_packets)).sum();
        if !self.partial {
            recorder.sample(at, Gauge::Hop(SeriesKind::Queue), packets as f64);
        }
        for station in &report.stations {
            recorder.sample(
                at,
                Gauge::Station(SeriesKind::Backlog, station.station),
                f64::from(station.backlog_packets),
            );
            recorder.sample(at, Gauge::Station(SeriesKind::PhyRate, station.station), station.phy_rate.as_mbit_f64());
        }
        let active = report.channel.active.saturating_sub(self.channel.active);
        if let Some((old, new)) = self.channel.busy.zip(report.channel.busy).filter(|_| !active.is_zero()) {
            let busy = new.saturating_sub(old);
            recorder.sample(at, Gauge::Hop(SeriesKind::ChannelBusy), busy.as_secs_f64() / active.as_secs_f64());
        }
        self.channel = report.channel;
        if let Some(estimate) = &mut self.capacity {
            estimate.update(at, report);
            if let Some(capacity) = estimate.equal(SERVICE_ROUND) {
                recorder.sample(at, Gauge::Hop(SeriesKind::Capacity), capacity.as_mbit_f64());
            }
        }
    }
}
