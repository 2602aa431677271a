//! Metrics of a station's link and its hop over the 100 ms before an item, as the driver counts them: what the paper's Table 2 ranks
//! beside what a tree is given.
//! Source:     \[oal\], the sampling table and Table 2.
//! Equations:  rate of a counter c:  (c(t) - c(s)) / (t - s)
//! Symbols:    s -> the moment of the item before, t - s -> the driver's own clock where it has one
//! Deviations: of the paper's metrics three have no counter here: requeues and the packets of a fifth queue, which drivers have not had
//!             since their queues moved into mac80211, and noise.
//! Validity:   counters are cumulative; a rate over one that fell, and the rates of the first moment, are missing (NaN).
//! Checked by: tests::*

use lasthop_laws::oal::features::Feature;
use lasthop_signals::{HopReport, Node, StationReport};
use lasthop_units::{Span, Time};

macro_rules! metrics {
    ($($id:ident = $name:literal, $unit:literal, $meaning:literal;)*) => {
        /// A metric, by its place in [`Metrics`].
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum MetricId { $(#[doc = $meaning] $id,)* }

        /// Every metric, in the order of [`Metrics`].
        pub const METRICS: &[Feature] = &[$(Feature { name: $name, unit: $unit, meaning: $meaning },)*];
    };
}

metrics! {
    Busy = "busy-100ms", "1", "Share of time in which the channel was busy, over 100 ms.";
    Transmitting = "transmitting-100ms", "1", "Share of time in which the access point transmitted.";
    Receiving = "receiving-100ms", "1", "Share of time in which it received frames of its own BSS.";
    HopDrops = "hop-drops-100ms", "packets/s", "Packets that the hop's queues refused.";
    HopEntered = "hop-entered-100ms", "bit/s", "What entered the hop's queues: what was sent, plus growth of the backlog.";
    Sent = "sent-100ms", "bit/s", "What the station was sent and acknowledged.";
    Received = "received-100ms", "bit/s", "What it sent.";
    ReceivedPackets = "received-packets-100ms", "packets/s", "The same in packets.";
    Retries = "retries-100ms", "frames/s", "Frames to the station that were repeats.";
    Failed = "failed-100ms", "packets/s", "Packets for the station that the radio gave up.";
    Airtime = "airtime-100ms", "1", "Share of time that exchanges with the station took, both ways.";
    PhyRate = "phy-rate", "bit/s", "The PHY rate towards the station at the moment.";
}

/// The metrics of one station at one moment, in the order of [`METRICS`]; NaN: missing.
pub type Metrics = [f32; METRICS.len()];

/// Compares the driver's counters at moments that follow each other.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    last: Option<(Time, HopReport)>,
}

impl Meter {
    /// The driver's counters at a moment; the metrics of its stations since the moment before.
    pub fn moment(&mut self, now: Time, report: &HopReport) -> Vec<(Node, Metrics)> {
        let last = self.last.replace((now, report.clone()));
        let interval = last.as_ref().map(|(at, old)| Interval { now, report, at: *at, old });
        let hop = interval.as_ref().map(Interval::hop).unwrap_or([f32::NAN; METRICS.len()]);
        let station = |new: &StationReport| {
            let mut metrics = hop;
            if let Some(interval) = &interval
                && let Some(old) = interval.old(new.station)
            {
                interval.station(old, new, &mut metrics);
            }
            metrics[MetricId::PhyRate as usize] = new.phy_rate.as_bps() as f32;
            (new.station, metrics)
        };
        report.stations.iter().map(station).collect()
    }
}

/// Two moments that follow each other.
struct Interval<'r> {
    at: Time,
    old: &'r HopReport,
    now: Time,
    report: &'r HopReport,
}

impl Interval<'_> {
    fn old(&self, station: Node) -> Option<&StationReport> {
        self.old.stations.iter().find(|old| old.station == station)
    }

    /// The driver's own clock: a reader that wakes up late must not stretch the interval.
    fn seconds(&self) -> f64 {
        match self.report.channel.active.saturating_sub(self.old.channel.active) {
            Span::ZERO => self.now.since(self.at).as_secs_f64(),
            active => active.as_secs_f64(),
        }
    }

    fn rate(&self, grown: Option<f64>) -> f32 {
        let seconds = self.seconds();
        grown.filter(|_| seconds > 0.0).map_or(f32::NAN, |grown| (grown / seconds) as f32)
    }

    fn hop(&self) -> Metrics {
        let mut metrics = [f32::NAN; METRICS.len()];
        let (old, new) = (&self.old.channel, &self.report.channel);
        for (id, old, new) in [
            (MetricId::Busy, old.busy, new.busy),
            (MetricId::Transmitting, old.tx, new.tx),
            (MetricId::Receiving, old.rx, new.rx),
        ] {
            metrics[id as usize] = self.rate(grown_span(old, new));
        }
        let pairs = || self.report.stations.iter().filter_map(|new| Some((self.old(new.station)?, new)));
        let queues = || {
            let old = |queue| self.old.queues.iter().find(|old| old.queue == queue);
            self.report.queues.iter().filter_map(move |new| Some((old(new.queue)?, new)))
        };
        let own = pairs().map(|(old, new)| grown(old.queue_drops, new.queue_drops));
        let drops = own.chain(queues().map(|(old, new)| grown(old.drops, new.drops))).sum();
        let entered = pairs().map(|(old, new)| {
            let backlog = new.backlog_bytes.get() as f64 - old.backlog_bytes.get() as f64;
            grown(old.tx_bytes.get(), new.tx_bytes.get()).map(|sent| 8.0 * (sent + backlog))
        });
        metrics[MetricId::HopDrops as usize] = self.rate(drops);
        let before = queues().map(|(old, new)| 8.0 * (new.backlog_bytes.get() as f64 - old.backlog_bytes.get() as f64));
        let entered = entered.sum::<Option<f64>>().map(|entered| entered + before.sum::<f64>());
        metrics[MetricId::HopEntered as usize] = self.rate(entered);
        metrics
    }

    fn station(&self, old: &StationReport, new: &StationReport, metrics: &mut Metrics) {
        let bits = |old: u64, new: u64| grown(old, new).map(|bytes| 8.0 * bytes);
        let airtime = grown_span(old.tx_airtime, new.tx_airtime).zip(grown_span(old.rx_airtime, new.rx_airtime));
        for (id, grown) in [
            (MetricId::Sent, bits(old.tx_bytes.get(), new.tx_bytes.get())),
            (MetricId::Received, bits(old.rx_bytes.get(), new.rx_bytes.get())),
            (MetricId::ReceivedPackets, grown(old.rx_packets, new.rx_packets)),
            (MetricId::Retries, counted(old.tx_retries, new.tx_retries)),
            (MetricId::Failed, counted(old.tx_failed, new.tx_failed)),
            (MetricId::Airtime, airtime.map(|(down, up)| down + up)),
        ] {
            metrics[id as usize] = self.rate(grown);
        }
    }
}

/// By how much a counter has grown; `None` if it fell.
fn grown(old: u64, new: u64) -> Option<f64> {
    new.checked_sub(old).map(|grown| grown as f64)
}

/// The same of a counter that a driver may lack.
fn counted(old: Option<u64>, new: Option<u64>) -> Option<f64> {
    grown(old?, new?)
}

fn grown_span(old: Option<Span>, new: Option<Span>) -> Option<f64> {
    let (old, new) = old.zip(new)?;
    (new >= old).then(|| new.saturating_sub(old).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_signals::ChannelTime;
    use lasthop_units::{Bytes, Rate};

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// Half of the time busy; 1 Mbit/s sent, and 10 packets a second refused, to each of two stations.
    fn report(ms: u64) -> HopReport {
        let station = |station| StationReport {
            queue_drops: ms / 100,
            tx_bytes: Bytes::new(ms * 125),
            tx_retries: Some(ms / 10),
            rx_packets: ms / 4,
            backlog_bytes: Bytes::new(ms),
            tx_airtime: Some(Span::from_micros(ms * 200)),
            phy_rate: Rate::from_mbit(65),
            ..StationReport::unseen(Node(station))
        };
        let (active, busy) = (Span::from_millis(ms), Some(Span::from_micros(ms * 500)));
        HopReport {
            channel: ChannelTime { active, busy, tx: Some(Span::from_micros(ms * 400)), ..ChannelTime::default() },
            stations: vec![station(1), station(2)],
            ..HopReport::default()
        }
    }

    #[test]
    fn counters_become_rates_of_the_interval() {
        let mut meter = Meter::default();
        let first = meter.moment(at(1000), &report(1000));
        assert!(first[0].1[MetricId::Busy as usize].is_nan(), "of one moment there is no rate");
        // A reader that comes 7 ms late: the driver's clock counts.
        let metrics = meter.moment(at(1107), &report(1100))[1].1;
        let of = |id: MetricId| metrics[id as usize];
        assert_eq!((of(MetricId::Busy), of(MetricId::Transmitting)), (0.5, 0.4));
        assert!(of(MetricId::Receiving).is_nan(), "the driver does not count it");
        assert_eq!((of(MetricId::HopDrops), of(MetricId::Sent)), (20.0, 1e6));
        assert_eq!(of(MetricId::HopEntered), 2.0 * (1e6 + 8000.0));
        assert_eq!((of(MetricId::Retries), of(MetricId::ReceivedPackets), of(MetricId::Airtime)), (100.0, 250.0, 0.2));
        assert_eq!((of(MetricId::Failed), of(MetricId::PhyRate)), (0.0, 65e6));
    }

    #[test]
    fn what_fell_or_is_new_is_missing() {
        let mut meter = Meter::default();
        let mut early = report(1000);
        early.stations[0].tx_bytes = Bytes::new(1 << 40);
        early.stations.pop();
        meter.moment(at(1000), &early);
        let metrics = meter.moment(at(1100), &report(1100));
        assert!(metrics[0].1[MetricId::Sent as usize].is_nan() && metrics[0].1[MetricId::HopEntered as usize].is_nan());
        assert_eq!(metrics[0].1[MetricId::Retries as usize], 100.0);
        assert!(metrics[1].1[MetricId::Retries as usize].is_nan(), "the station was not there");
    }
}
