//! What changes during a run, binned so that memory does not depend on the packet rate.

use lasthop_signals::{FlowId, Node};
use lasthop_units::{Span, Time};
use serde::Serialize;

/// Something that a world or a law samples when it likes; the recorder averages the samples of a bin. What has a state
/// (queues, windows, rates that are set) keeps its last value in bins without a sample, until the run or its flow ends;
/// what is measured (capacity, channel use) does not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Gauge {
    /// Packets that wait at the hop for a station.
    Backlog(Node),
    /// Packets that wait at the hop for anybody. Without it the report adds the backlogs of the stations up.
    Queue,
    /// The receive window that the sender of a flow gets to see, after any rewriting, in bytes.
    Window(FlowId),
    /// The congestion window of a flow in bytes.
    Cwnd(FlowId),
    /// The rate at which a flow's sender paces, in Mbit/s.
    Pacing(FlowId),
    /// What the hop can carry at this moment for everybody together, in Mbit/s: an estimate from the driver's counters,
    /// with equal airtime for every station that has traffic. Radio hops only.
    Capacity,
    /// The PHY rate towards a station in Mbit/s.
    PhyRate(Node),
    /// The share of time that the channel is busy, 0 to 1.
    ChannelBusy,
    /// Packets in a frame to a station.
    Aggregation(Node),
    /// Packets in a frame that a regulator aims at.
    AggregationTarget(Node),
    /// Interval between a station's frames that a regulator aims at, in ms: its target, a longer one while that is out of reach, or a shorter
    /// one where the hop's queue has no room for it.
    IntervalAim(Node),
    /// Overhead of a service round that a regulator estimates, in us.
    Overhead,
    /// The same where there are several regulators: as that of this station estimates it.
    OverheadFor(Node),
}

/// What a series shows, whoever it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SeriesKind {
    /// In-order payload of a bulk flow that reached the application.
    Rate,
    /// Mean one-way delay over the hop, towards a station or all of them.
    HopDelay,
    /// Largest one-way delay over the hop, towards a station or all of them.
    HopDelayMax,
    /// [`Gauge::Backlog`].
    Backlog,
    /// [`Gauge::Queue`].
    Queue,
    /// [`Gauge::Window`].
    Window,
    /// [`Gauge::Cwnd`].
    Cwnd,
    /// [`Gauge::Pacing`].
    Pacing,
    /// [`Gauge::Capacity`].
    Capacity,
    /// [`Gauge::PhyRate`].
    PhyRate,
    /// [`Gauge::ChannelBusy`].
    ChannelBusy,
    /// [`Gauge::Aggregation`].
    Aggregation,
    /// [`Gauge::AggregationTarget`].
    AggregationTarget,
    /// [`Gauge::IntervalAim`].
    IntervalAim,
    /// [`Gauge::Overhead`].
    Overhead,
    /// Frames to a station, a second.
    Frames,
    /// Data frames from a station, a second.
    UplinkFrames,
}

/// Whom a series belongs to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Entity {
    /// The hop as a whole.
    Hop,
    /// A station, by name.
    Station(String),
    /// A flow, by name, and its station's name where known.
    Flow {
        /// The flow's name.
        flow: String,
        /// Its station's name.
        station: Option<String>,
    },
}

/// A finished series: one value a bin, in the unit of its kind.
#[derive(Clone, PartialEq, Debug)]
pub struct Track {
    /// What it shows.
    pub kind: SeriesKind,
    /// Whose.
    pub entity: Entity,
    /// One value a bin, the first bin beginning with the world; `None` where nothing was observed.
    pub values: Vec<Option<f64>>,
}

impl SeriesKind {
    /// Every kind, in the order of the enum.
    pub const ALL: [SeriesKind; 17] = [
        SeriesKind::Rate,
        SeriesKind::HopDelay,
        SeriesKind::HopDelayMax,
        SeriesKind::Backlog,
        SeriesKind::Queue,
        SeriesKind::Window,
        SeriesKind::Cwnd,
        SeriesKind::Pacing,
        SeriesKind::Capacity,
        SeriesKind::PhyRate,
        SeriesKind::ChannelBusy,
        SeriesKind::Aggregation,
        SeriesKind::AggregationTarget,
        SeriesKind::IntervalAim,
        SeriesKind::Overhead,
        SeriesKind::Frames,
        SeriesKind::UplinkFrames,
    ];

    /// The name in `series.parquet`.
    pub const fn name(self) -> &'static str {
        match self {
            SeriesKind::Rate => "rate",
            SeriesKind::HopDelay => "hop_delay",
            SeriesKind::HopDelayMax => "hop_delay_max",
            SeriesKind::Backlog => "backlog",
            SeriesKind::Queue => "queue",
            SeriesKind::Window => "window",
            SeriesKind::Cwnd => "cwnd",
            SeriesKind::Pacing => "pacing",
            SeriesKind::Capacity => "capacity",
            SeriesKind::PhyRate => "phy_rate",
            SeriesKind::ChannelBusy => "channel_busy",
            SeriesKind::Aggregation => "aggregation",
            SeriesKind::AggregationTarget => "aggregation_target",
            SeriesKind::IntervalAim => "interval_aim",
            SeriesKind::Overhead => "overhead",
            SeriesKind::Frames => "frames",
            SeriesKind::UplinkFrames => "uplink_frames",
        }
    }

    /// The unit of the values.
    pub const fn unit(self) -> &'static str {
        match self {
            SeriesKind::Rate | SeriesKind::Pacing | SeriesKind::Capacity | SeriesKind::PhyRate => "Mbit/s",
            SeriesKind::HopDelay | SeriesKind::HopDelayMax | SeriesKind::IntervalAim => "ms",
            SeriesKind::Backlog | SeriesKind::Queue | SeriesKind::Aggregation | SeriesKind::AggregationTarget => {
                "packets"
            }
            SeriesKind::Overhead => "us",
            SeriesKind::Frames | SeriesKind::UplinkFrames => "1/s",
            SeriesKind::Window | SeriesKind::Cwnd => "bytes",
            SeriesKind::ChannelBusy => "1",
        }
    }
}

impl Gauge {
    /// What a series of it shows.
    pub const fn kind(self) -> SeriesKind {
        match self {
            Gauge::Backlog(_) => SeriesKind::Backlog,
            Gauge::Queue => SeriesKind::Queue,
            Gauge::Window(_) => SeriesKind::Window,
            Gauge::Cwnd(_) => SeriesKind::Cwnd,
            Gauge::Pacing(_) => SeriesKind::Pacing,
            Gauge::Capacity => SeriesKind::Capacity,
            Gauge::PhyRate(_) => SeriesKind::PhyRate,
            Gauge::ChannelBusy => SeriesKind::ChannelBusy,
            Gauge::Aggregation(_) => SeriesKind::Aggregation,
            Gauge::AggregationTarget(_) => SeriesKind::AggregationTarget,
            Gauge::IntervalAim(_) => SeriesKind::IntervalAim,
            Gauge::Overhead | Gauge::OverheadFor(_) => SeriesKind::Overhead,
        }
    }
}

/// How the time axis is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Grid {
    pub(crate) width: Span,
    pub(crate) bins: usize,
    end: Time,
}

/// The usual width of a bin.
const BIN: Span = Span::from_millis(20);
/// More bins than this are never kept for one series; a longer run gets wider ones.
const MOST_BINS: u64 = 10_000;

impl Grid {
    /// The grid from the world's beginning to `end`: bins of 20 ms, or of the least multiple of that which keeps
    /// their number within bounds.
    pub(crate) fn until(end: Time) -> Grid {
        let span = end.since(Time::ZERO).as_nanos();
        let times = span.div_ceil(BIN.as_nanos() * MOST_BINS).max(1);
        let width = BIN * times;
        Grid { width, bins: span.div_ceil(width.as_nanos()) as usize, end }
    }

    /// The bin that `at` falls into; `None` from the end on.
    pub(crate) fn bin(&self, at: Time) -> Option<usize> {
        (at < self.end).then(|| (at.as_nanos() / self.width.as_nanos()) as usize)
    }

    /// When bin number `bin` begins.
    pub(crate) fn start(&self, bin: usize) -> Time {
        Time::ZERO + self.width * bin as u64
    }

    /// How much of a bin lies before the end: the last one may be cut short.
    pub(crate) fn length(&self, bin: usize) -> Span {
        self.width.min(self.end.since(self.start(bin)))
    }
}

/// Sums and maxima of what fell into each bin.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bins {
    cells: Vec<Cell>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    sum: f64,
    max: f64,
    count: u32,
}

impl Bins {
    /// True if nothing was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Folds one observation in. What is not finite cannot be drawn or averaged, and is left out.
    #[inline]
    pub(crate) fn add(&mut self, grid: &Grid, at: Time, value: f64) {
        let Some(bin) = grid.bin(at).filter(|_| value.is_finite()) else { return };
        if bin >= self.cells.len() {
            self.cells.resize(bin + 1, Cell::default());
        }
        let cell = &mut self.cells[bin];
        cell.max = if cell.count == 0 { value } else { cell.max.max(value) };
        cell.sum += value;
        cell.count = cell.count.saturating_add(1);
    }

    /// Folds all of `other` in.
    pub(crate) fn merge(&mut self, other: &Bins) {
        if other.cells.len() > self.cells.len() {
            self.cells.resize(other.cells.len(), Cell::default());
        }
        for (mine, theirs) in self.cells.iter_mut().zip(&other.cells).filter(|(_, theirs)| theirs.count > 0) {
            mine.max = if mine.count == 0 { theirs.max } else { mine.max.max(theirs.max) };
            mine.sum += theirs.sum;
            mine.count = mine.count.saturating_add(theirs.count);
        }
    }

    /// The mean of each bin.
    pub(crate) fn means(&self, grid: &Grid) -> Vec<Option<f64>> {
        self.each(grid, |cell| cell.sum / f64::from(cell.count))
    }

    /// The mean of each bin that begins before `until`; a bin without an observation has the mean of the one before it.
    pub(crate) fn held(&self, grid: &Grid, until: Time) -> Vec<Option<f64>> {
        let mut last = None;
        let hold = |(bin, mean): (usize, Option<f64>)| {
            last = mean.or(last).filter(|_| mean.is_some() || grid.start(bin) < until);
            last
        };
        self.means(grid).into_iter().enumerate().map(hold).collect()
    }

    /// The largest of each bin.
    pub(crate) fn maxima(&self, grid: &Grid) -> Vec<Option<f64>> {
        self.each(grid, |cell| cell.max)
    }

    /// Observations a second in each bin, 0 where nothing came.
    pub(crate) fn rates(&self, grid: &Grid) -> Vec<Option<f64>> {
        let rate =
            |bin| f64::from(self.cells.get(bin).map_or(0, |cell: &Cell| cell.count)) / grid.length(bin).as_secs_f64();
        (0..grid.bins).map(|bin| Some(rate(bin))).collect()
    }

    /// The sum of each bin, 0 where nothing came.
    pub(crate) fn sums(&self, grid: &Grid) -> Vec<f64> {
        (0..grid.bins).map(|bin| self.cells.get(bin).map_or(0.0, |cell| cell.sum)).collect()
    }

    fn each(&self, grid: &Grid, value: impl Fn(&Cell) -> f64) -> Vec<Option<f64>> {
        (0..grid.bins).map(|bin| self.cells.get(bin).filter(|cell| cell.count > 0).map(&value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Time {
        Time::from_nanos(n * 1_000_000)
    }

    #[test]
    fn the_list_of_kinds_has_every_one_of_them() {
        for (place, kind) in SeriesKind::ALL.into_iter().enumerate() {
            assert_eq!(serde_json::to_value(kind).expect("a name"), serde_json::json!(kind.name()));
            assert_eq!(kind as usize, place);
        }
        // The last of the enum: a kind that follows it belongs into the list.
        assert_eq!(SeriesKind::ALL.last(), Some(&SeriesKind::UplinkFrames));
    }

    #[test]
    fn a_long_run_gets_wider_bins_not_more_of_them() {
        assert_eq!(Grid::until(ms(10_000)).width, Span::from_millis(20));
        assert_eq!(Grid::until(ms(10_000)).bins, 500);
        let day = Grid::until(ms(86_400_000));
        assert!(day.bins <= 10_000);
        assert_eq!(day.width.as_nanos() % BIN.as_nanos(), 0);
        assert_eq!(Grid::until(Time::MAX).bin(Time::from_nanos(u64::MAX - 1)).map(|b| b < 10_000), Some(true));
    }

    #[test]
    fn a_bin_keeps_mean_and_maximum_and_a_gap_stays_a_gap() {
        let (grid, mut bins) = (Grid::until(ms(60)), Bins::default());
        for (at, value) in [(1, 2.0), (19, 4.0), (45, -3.0), (46, f64::NAN), (60, 9.0)] {
            bins.add(&grid, ms(at), value);
        }
        assert_eq!(bins.means(&grid), vec![Some(3.0), None, Some(-3.0)]);
        assert_eq!(bins.maxima(&grid), vec![Some(4.0), None, Some(-3.0)]);
        assert_eq!(bins.sums(&grid), vec![6.0, 0.0, -3.0]);
        assert_eq!(bins.rates(&grid), vec![Some(100.0), Some(0.0), Some(50.0)]);
    }

    #[test]
    fn a_held_gauge_fills_gaps_from_its_first_observation_to_its_end() {
        let (grid, mut bins) = (Grid::until(ms(140)), Bins::default());
        for (at, value) in [(25, 2.0), (26, 4.0), (85, 7.0)] {
            bins.add(&grid, ms(at), value);
        }
        let held = [None, Some(3.0), Some(3.0), Some(3.0), Some(7.0), Some(7.0), None];
        assert_eq!(bins.held(&grid, ms(120)), held);
        assert_eq!(bins.held(&grid, ms(140))[6], Some(7.0));
    }

    #[test]
    fn the_last_bin_may_be_short() {
        let grid = Grid::until(ms(50));
        assert_eq!((grid.bins, grid.length(1), grid.length(2)), (3, Span::from_millis(20), Span::from_millis(10)));
    }
}
