//! The points of the reference data as cases that the model can run.

use lasthop_radio::queue::Kind;
use lasthop_radio::wifi::{Beacons, GuardInterval, Mcs, NodeParams, Params, Plan, Profile, Role, Standard, Width};
use lasthop_signals::Node;
use lasthop_units::{Bytes, Span};

/// A file of the reference data as rows of named cells.
pub struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// One row.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    table: &'a Table,
    cells: &'a [String],
}

impl Table {
    /// Reads a file; `None`, said loudly, if the data is not there.
    pub fn read(name: &str) -> Option<Table> {
        let text = crate::common::reference(name)?;
        let split = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<String>>();
        let mut lines = text.lines();
        let header = split(lines.next()?);
        Some(Table { header, rows: lines.map(split).collect() })
    }

    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.rows.iter().map(|cells| Row { table: self, cells })
    }
}

impl<'a> Row<'a> {
    pub fn text(&self, column: &str) -> &'a str {
        let at = self.table.header.iter().position(|name| name == column);
        &self.cells[at.unwrap_or_else(|| panic!("no column {column}"))]
    }

    /// A cell as a number; `nan`, which stands for "one seed, no spread", is 0.
    pub fn number(&self, column: &str) -> f64 {
        let number: f64 = self.text(column).parse().unwrap_or_else(|_| panic!("{column}: {}", self.text(column)));
        if number.is_nan() { 0.0 } else { number }
    }

    pub fn index(&self, column: &str) -> u8 {
        self.text(column).parse().expect("a small number")
    }
}

/// Stations that are treated alike.
#[derive(Clone, Copy, Debug)]
pub struct Class {
    pub stations: u16,
    pub mcs: Mcs,
    /// Packets a second to each of them.
    pub rate: f64,
}

/// Packets that wait for an address in S1. That its program resolves addresses follows from the reference, which says that
/// S2's differs from it by permanent entries; how many packets wait it does not say. This figure was chosen with the visible
/// points in view: three seeds of a case begin the window with a queue of about so many. It matters at nominal capacity alone,
/// where a queue once there does not drain: docs/reference/ns3-validation.md, which has the verdicts with ns-3's default too.
pub const CHOSEN: usize = 100;
/// ns-3's own default (`PendingQueueSize`).
pub const DEFAULT: usize = 3;

/// What is simulated for one point.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    pub classes: Vec<Class>,
    pub gi: GuardInterval,
    pub queue: usize,
    /// From the source's start to that of the measuring window.
    pub lead: Span,
    pub measured: Span,
    /// Packets that wait while the access point asks for the station's address; `None` if it knows it.
    pub pending: Option<usize>,
    /// Whether the flows begin anywhere within their first gap.
    pub phases: bool,
    /// Offered load over nominal capacity; not a number where the reference's tag has none.
    pub load: f64,
}

impl Case {
    /// A row of S1: one station. Its source starts at 0.15 s, and the window opens at 0.3 s. `pending`: how many packets wait
    /// for its address.
    pub fn one_station(row: Row, pending: usize) -> Case {
        let (nss, index) = (row.index("nss"), row.index("mcs"));
        let short = row.text("sgi") == "1";
        let load = row.number("load_frac_of_nominal_cap");
        let class = Class { stations: 1, mcs: Mcs::new(index, nss), rate: row.number("x_pkts_per_s") };
        Case {
            name: format!("{} load {load:.2}", one_station_group(nss, index, short)),
            classes: vec![class],
            gi: if short { GuardInterval::Ns400 } else { GuardInterval::Ns800 },
            queue: 1000,
            lead: Span::from_millis(150),
            measured: Span::from_secs_f64(row.number("meas_s")),
            pending: Some(pending),
            phases: false,
            load,
        }
    }

    /// The rows of S2 that share tag, station count and streams: each is a class of stations. Sources start 0.15 s
    /// before the window; addresses are known from the start.
    pub fn several_stations(rows: &[Row]) -> Case {
        let (tag, first) = (rows[0].text("tag"), rows[0]);
        let stations: u16 = first.text("n_sta").parse().expect("a number");
        let nss = first.index("nss");
        let class = |row: &Row| Class {
            stations: stations / u16::try_from(rows.len()).expect("few classes"),
            mcs: Mcs::new(row.index("sta_class(mcs)"), nss),
            rate: row.number("offered_mbps_ip_avg") * 1e6 / 12_000.0,
        };
        let load = tag.rsplit(|c: char| !c.is_ascii_digit() && c != '.').next().and_then(|load| load.parse().ok());
        Case {
            name: format!("{stations} stations, {nss} stream{}, {tag}", if nss > 1 { "s" } else { "" }),
            classes: rows.iter().map(class).collect(),
            gi: GuardInterval::Ns400,
            queue: 500 * usize::from(stations),
            lead: Span::from_millis(150),
            measured: Span::from_millis(800),
            pending: None,
            phases: true,
            load: load.unwrap_or(f64::NAN),
        }
    }

    /// The hop of this case, under either profile.
    pub fn plan(&self, profile: Profile) -> Plan {
        let mut nodes = vec![NodeParams::new(Role::Ap, self.classes[0].mcs)];
        for class in &self.classes {
            let station = || NodeParams::new(Role::Station { ap: Node(0) }, class.mcs);
            nodes.extend((0..class.stations).map(|_| station()));
        }
        let mut params = Params::new(Standard::Dot11ac, Width::Mhz80, self.gi, nodes);
        params.ap_queue = Kind::Fifo { packets: self.queue };
        params.beacons = Some(Beacons { mpdu: BEACON, ..Beacons::default() });
        params.profile = profile;
        params.validate().expect("the reference scenario is legal")
    }

    /// At the saturation knee delay hangs on the last per mille of capacity.
    pub fn at_knee(&self) -> bool {
        (0.97..1.03).contains(&self.load)
    }
}

pub fn one_station_group(nss: u8, mcs: u8, short: bool) -> String {
    format!("NSS {nss} MCS {mcs} {}", if short { "short GI" } else { "long GI" })
}

/// ns-3's beacon of an 802.11ac access point with a short SSID, header and FCS included: 240 us at 6 Mbit/s.
const BEACON: Bytes = Bytes::new(162);
