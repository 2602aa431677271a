//! All tables of a file.

use crate::cable::{Backhaul, Host, Link, Route, Wire};
use crate::hop::Hop;
use crate::hop::cell::table::CellStation;
use crate::hop::wifi::table::{AccessPoint, Neighbour, WifiStation};
use crate::laws::table::Law;
use crate::measures::Measure;
use crate::read::{Named, Quantity, table, words};
use crate::seeds::Seeds;
use crate::traffic::table::Traffic;
use lasthop_units::Span;

table! {
    /// Hosts and cables, a last hop, traffic, and the laws to compare.
    Tables {
        /// One line for tables and reports.
        required title: String,
        /// What it shows, and where its parameters come from.
        default("\"\"") description: String,
        /// Where it runs. `--world` overrides it.
        default("\"default\"") world: World,
        /// Length of one run, warm-up included.
        required duration: Quantity<Span>,
        /// First part of the run, left out of every figure.
        default("\"0 s\"") warm_up: Quantity<Span>,
        /// Number of runs (seeds 1 to n), or list of seeds; at most 1000.
        default("5") seeds: Seeds,
        /// The path between server and access point.
        required wire: Wire,
        /// A link between `wire` and access point.
        optional backhaul: Backhaul,
        /// The last hop, of one kind.
        required hop: Hop,
        /// The stations behind the hop.
        required station: Vec<Station>,
        /// Further access points of the Wi-Fi hop.
        default("[]") access_point: Vec<AccessPoint>,
        /// Other BSSs that share the Wi-Fi channel.
        default("[]") neighbour: Vec<Neighbour>,
        /// Further hosts on cables.
        default("[]") host: Vec<Host>,
        /// Cables between hosts.
        default("[]") link: Vec<Link>,
        /// Routes that override those of fewest links.
        default("[]") route: Vec<Route>,
        /// What hosts send each other.
        required traffic: Vec<Traffic>,
        /// The laws to compare, in the report's order. The command line also takes other sender
        /// laws by name.
        required laws: Named<Law>,
        /// Figures to report. Default: all that the traffic yields.
        optional measures: Vec<Measure>,
    }
}

words! {
    /// Where a scenario runs.
    World {
        /// The lab as root, otherwise the simulator.
        Default = "default",
        /// The simulator: virtual time, own TCP.
        Sim = "sim",
        /// The lab: wall-clock time, the kernel's TCP, an emulated hop.
        Lab = "lab",
    }
}

table! {
    /// A station.
    Station {
        /// Unique in the scenario: letters, digits and `-`, at most 32.
        required name: String,
        /// How many, named `NAME-1`, `NAME-2` and so on; traffic to `NAME` goes to each.
        default("1") count: u64,
        /// On Wi-Fi.
        flatten wifi: WifiStation,
        /// In a cell.
        flatten cell: CellStation,
    }
}
