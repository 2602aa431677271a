//! What changes during a run, binned so that memory does not depend on the packet rate.

use lasthop_signals::{FlowId, Node};
use lasthop_units::{Span, Time};
use serde::{Serialize, Serializer};

/// Something that a world or a law samples when it likes; the recorder puts the samples of a bin together as the series says
/// ([`Held`]).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Gauge {
    /// Of the hop as a whole.
    Hop(SeriesKind),
    /// Of a station.
    Station(SeriesKind, Node),
    /// Of a flow.
    Flow(SeriesKind, FlowId),
}

/// What is said of a series beside its meaning: one entry of the table of [`SeriesKind`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Series {
    /// The name in `series.parquet`.
    pub name: &'static str,
    /// The unit of the values.
    pub unit: &'static str,
    /// What has one, in words.
    pub of: &'static str,
    /// How the samples of a bin become its value.
    pub held: Held,
    /// The chart of the page, if it has one.
    pub chart: Option<Chart>,
}

/// How samples become one value a bin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Held {
    /// Their mean; nothing where nothing was sampled. For what is measured.
    No,
    /// Their mean, or else that of the bin before, until the run or its flow ends. For what has a state: queues, windows, rates
    /// that are set.
    Yes,
}

/// How a series is drawn.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Chart {
    /// Its heading.
    pub title: &'static str,
    /// The unit of its axis.
    pub unit: &'static str,
    /// From the series' unit into the chart's.
    pub factor: f64,
    /// Laws may differ by orders of magnitude: a logarithmic axis may be asked for.
    pub wide: bool,
    /// How the hop's values come about.
    pub whole: Whole,
    /// The series that stations have in its place.
    pub stations: Option<SeriesKind>,
}

/// How the series of several flows or stations make up that of the hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whole {
    /// Their sum.
    Sum,
    /// There is a series of the hop itself, and nothing else will do.
    Own,
    /// The hop's own series, or else the sum.
    OwnOrSum,
}

/// Declares the series: the doc comment is what pages say of one.
macro_rules! series {
    ($( $(#[doc = $doc:literal])* $kind:ident = $series:expr; )*) => {
        /// What a series shows, whoever it belongs to. The order is that of files and pages.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum SeriesKind {
            $( $(#[doc = $doc])* $kind, )*
        }

        impl SeriesKind {
            /// Every kind, in the order of the enum.
            pub const ALL: [SeriesKind; [$(stringify!($kind)),*].len()] = [$(SeriesKind::$kind),*];
            const TABLE: [Series; SeriesKind::ALL.len()] = [$($series),*];
            const MEANINGS: [&'static [&'static str]; SeriesKind::ALL.len()] = [$(&[$($doc),*]),*];
        }
    };
}

const fn of(of: &'static str, name: &'static str, unit: &'static str) -> Series {
    Series { name, unit, of, held: Held::No, chart: None }
}

impl Series {
    const fn held(self) -> Series {
        Series { held: Held::Yes, ..self }
    }

    /// Drawn in its own unit, the hop's values as `whole` says.
    const fn drawn(self, title: &'static str, whole: Whole) -> Series {
        let chart = Chart { title, unit: self.unit, factor: 1.0, wide: false, whole, stations: None };
        Series { chart: Some(chart), ..self }
    }

    const fn drawn_as(self, title: &'static str, (unit, factor): (&'static str, f64), whole: Whole) -> Series {
        let chart = Chart { title, unit, factor, wide: false, whole, stations: None };
        Series { chart: Some(chart), ..self }
    }

    const fn wide(self) -> Series {
        match self.chart {
            Some(chart) => Series { chart: Some(Chart { wide: true, ..chart }), ..self },
            None => self,
        }
    }
}

/// It is no truth of the world's.
const CAPACITY: &str = "Capacity of the hop, estimated from the driver's counters (equal airtime)";
const OVERHEAD: &str = "Overhead of a round, as the regulator estimates it";
const WINDOWS: &str = "Receive window that senders see, sum of flows";

series! {
    /// In-order payload of a bulk flow that reached its application.
    Rate = of("flow", "rate", "Mbit/s").drawn("Throughput", Whole::Sum);
    /// One-way delay over the hop, mean of the bin.
    HopDelay = of("station, hop", "hop_delay", "ms").drawn("Delay over the hop, mean", Whole::Own).wide();
    /// The same, largest of the bin.
    HopDelayMax = of("station, hop", "hop_delay_max", "ms");
    /// Packets that wait at the hop for it.
    Backlog = of("station", "backlog", "packets").held();
    /// Packets that wait at the hop for all stations.
    Queue = Series {
        chart: Some(Chart {
            title: "Queue at the hop", unit: "packets", factor: 1.0, wide: false, whole: Whole::OwnOrSum,
            stations: Some(SeriesKind::Backlog),
        }),
        ..of("hop", "queue", "packets").held()
    };
    /// Receive window that the sender sees, after any rewriting.
    Window = of("flow", "window", "bytes").held().drawn_as(WINDOWS, ("kB", 1e-3), Whole::Sum).wide();
    /// The sender's congestion window.
    Cwnd = of("flow", "cwnd", "bytes").held()
        .drawn_as("Congestion window, sum of flows", ("kB", 1e-3), Whole::Sum).wide();
    /// The sender's smoothed round-trip time.
    RoundTrip = of("flow", "round_trip", "ms").held().drawn("Round-trip time, mean of flows", Whole::Own).wide();
    /// Sender's congestion control state in Linux's numbers: 0 Open, 1 Disorder, 2 CWR, 3
    /// Recovery, 4 Loss.
    CaState = of("flow", "ca_state", "state").held();
    /// Rate at which the sender paces.
    Pacing = of("flow", "pacing", "Mbit/s").held().drawn("Pacing rate, sum of flows", Whole::Sum);
    /// Estimated capacity for all stations, from driver counters: equal airtime for stations with
    /// traffic, no collisions; radio hops only.
    Capacity = of("hop", "capacity", "Mbit/s").drawn(CAPACITY, Whole::Own);
    /// PHY rate towards it.
    PhyRate = of("station", "phy_rate", "Mbit/s").held().drawn("PHY rate", Whole::Own);
    /// D of a mesh's node, which it stamps into packets of ATP.
    NodeDelay = of("station", "node_delay", "ms");
    /// Share of time that the channel is busy; of a cell, share of resource blocks assigned.
    ChannelBusy = of("hop", "channel_busy", "1").drawn_as("Channel busy", ("%", 100.0), Whole::Own);
    /// Packets in a frame.
    Aggregation = of("station", "aggregation", "packets").drawn("Packets in a frame", Whole::Own);
    /// Packets in a frame that a regulator aims at.
    AggregationTarget = of("station", "aggregation_target", "packets").held();
    /// Interval between its frames that a regulator aims at: the target, or less (no room in the
    /// queue), or more (out of reach).
    IntervalAim = of("station", "interval_aim", "ms").held();
    /// A regulator's estimate of a service round's overhead; a station's with several regulators.
    Overhead = of("hop, station", "overhead", "us").held().drawn(OVERHEAD, Whole::Own).wide();
    /// Data frames a second to it, of which it received something.
    Frames = of("station", "frames", "1/s");
    /// Data frames a second from it: uploads, acknowledgements, feedback, probes.
    UplinkFrames = of("station", "uplink_frames", "1/s");
}

/// What a series belongs to.
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
    /// What it belongs to.
    pub entity: Entity,
    /// One value a bin, the first bin beginning with the world; `None` where nothing was observed.
    pub values: Vec<Option<f64>>,
}

impl SeriesKind {
    /// What the table says of it.
    pub const fn series(self) -> &'static Series {
        &SeriesKind::TABLE[self as usize]
    }

    /// What it shows, in a sentence or two.
    pub fn meaning(self) -> String {
        crate::doc::prose(SeriesKind::MEANINGS[self as usize])
    }

    /// The name in `series.parquet`.
    pub const fn name(self) -> &'static str {
        self.series().name
    }

    /// The unit of the values.
    pub const fn unit(self) -> &'static str {
        self.series().unit
    }
}

impl Serialize for SeriesKind {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

impl Gauge {
    /// What a series of it shows.
    pub const fn kind(self) -> SeriesKind {
        match self {
            Gauge::Hop(kind) | Gauge::Station(kind, _) | Gauge::Flow(kind, _) => kind,
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
    fn a_series_is_written_by_its_name() {
        for (place, kind) in SeriesKind::ALL.into_iter().enumerate() {
            assert_eq!(serde_json::to_value(kind).expect("a name"), serde_json::json!(kind.name()));
            assert_eq!(kind as usize, place);
            assert!(kind.meaning().ends_with('.'), "{}: {}", kind.name(), kind.meaning());
        }
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
    fn a_held_gauge_fills_gaps_from_first_sample_to_end() {
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
