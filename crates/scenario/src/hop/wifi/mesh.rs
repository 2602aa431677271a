//! A mesh: which nodes hear each other follows from where they stand.

use super::links;
use super::places::{self, Places};
use super::table::{Mesh, MeshRouting, WifiHop};
use crate::bounds::plain;
use crate::quantity::{Metres, show};
use crate::read::{Context, Entry, Quantity};
use crate::tables::{Station, Tables};
use lasthop_radio::queue;
use lasthop_radio::wifi::{self, Link, NodeParams, PathLoss, Reach, ReachMatrix, Role, Snr};
use lasthop_signals::Node;

const LEAST_RANGE: Metres = Metres(1_000);

/// Makes peers of access point and stations, which are the first nodes.
pub(super) fn peers(nodes: &mut [NodeParams], gateway: queue::Kind) {
    let first = nodes.get(1).cloned();
    for node in nodes.iter_mut() {
        node.role = Role::Peer;
    }
    if let (Some(own), Some(first)) = (nodes.first_mut(), first) {
        // Of a link between peers, what is said of the transmitter counts.
        (own.rate, own.mpdu_error, own.link) = (first.rate, first.mpdu_error, first.link);
        (own.queue, own.reports) = (Some(gateway), true);
    }
}

/// The reach of every pair. A node that no way leads to is refused.
pub(super) fn hearing(mesh: &Mesh, raw: &Tables, cx: &mut Context) -> Option<ReachMatrix> {
    let stations = raw.station.get()?;
    foreign(raw, &stations, cx);
    if mesh.routing.get() == Some(MeshRouting::Olsr) {
        given_routes(raw, &stations, cx);
    }
    let decodes = range(&mesh.range, cx);
    let senses = optional(&mesh.carrier_sense_range, decodes, "range", cx);
    let interferes = optional(&mesh.interference_range, senses, "carrier-sense-range", cx);
    let mut places = vec![places::standing(&mesh.position, cx)];
    for station in &stations {
        places.push(place(station, raw, cx));
    }
    let (decodes, senses, interferes) = (decodes?, senses?, interferes?);
    let places = places.into_iter().collect::<Option<Vec<Places>>>()?;
    let mut reach = ReachMatrix::nobody(places.len());
    let node = |place: usize| u16::try_from(place).ok().map(Node);
    for (a, from) in places.iter().enumerate() {
        for (b, to) in places.iter().enumerate().skip(a + 1) {
            let square = places::nearest(from, to);
            let within = |range: Metres| square <= u128::from(range.0).pow(2);
            let how = match () {
                () if within(decodes) => Reach::Decodes,
                () if within(senses) => Reach::Senses,
                () if within(interferes) => Reach::Interferes,
                () => Reach::None,
            };
            reach.set_both(node(a)?, node(b)?, how);
        }
    }
    connected(&reach, &stations, decodes, cx).then_some(reach)
}

/// How links fade; `Some(None)`: they do not.
pub(super) fn fading(hop: &WifiHop, cx: &mut Context) -> Option<Option<wifi::Fading>> {
    if !hop.mesh.given {
        return Some(None);
    }
    let mesh = hop.mesh.get()?;
    if !mesh.fading.given {
        return Some(None);
    }
    if !hop.capture.get()? {
        let remedy = "add `capture = true` to `[hop.wifi]`, or delete this key";
        cx.impossible(
            &mesh.fading.at,
            "`fading` means nothing without powers, which follow from positions with `capture`",
            remedy,
        );
        return None;
    }
    links::fading(&mesh.fading.get()?, cx).map(Some)
}

/// Radio conditions between two nodes by where they stand, for those that [`hearing`] has found right.
pub(super) fn strength(
    mesh: &Mesh,
    stations: &[Station],
    (loss, fading): (PathLoss, Option<wifi::Fading>),
    ends: [Node; 2],
) -> Option<Link> {
    let place = |node: Node| match node.index().checked_sub(1) {
        None => Places::of(&mesh.position, None),
        Some(station) => {
            let station = stations.get(station)?;
            Places::of(&station.wifi.position, Some(&station.wifi.path))
        }
    };
    let walk = places::distances(&place(ends[0])?, &place(ends[1])?);
    Some(Link { snr: Snr::Distance { loss, walk }, fading })
}

/// Where a station stands or walks; what is wrong with that is reported.
fn place(station: &Station, raw: &Tables, cx: &mut Context) -> Option<Places> {
    if station.wifi.path.given {
        if station.wifi.position.given {
            cx.impossible(&station.wifi.path.at, "`position` and `path` contradict each other", "keep one of them");
            return None;
        }
        if !raw.hop.get()?.wifi.get()?.capture.get()? {
            let remedy = "add `capture = true` to `[hop.wifi]`, or write `position`";
            cx.impossible(
                &station.wifi.path.at,
                "a `path` changes powers, and there are none without `capture`",
                remedy,
            );
            return None;
        }
        return places::walking(&station.wifi.path, cx);
    }
    if !station.wifi.position.given {
        let remedy = "add `position = [\"100 m\", \"0 m\"]`";
        cx.problem(crate::problem::Kind::Missing, &station.place, "a node of a mesh needs a position", remedy);
        return None;
    }
    places::standing(&station.wifi.position, cx)
}

/// Reports what a mesh does not have.
fn foreign(raw: &Tables, stations: &[Station], cx: &mut Context) {
    for station in stations {
        let keys = [
            station.wifi.access_point.given_at(),
            station.wifi.hidden_from.given_at(),
            station.wifi.distance.given_at(),
            station.wifi.walk.given_at(),
            station.wifi.monitor.given_at(),
        ];
        for at in keys.into_iter().flatten() {
            let what = format!("in a mesh `{}` has no meaning: who hears whom follows from positions", at.name());
            cx.impossible(at, what, "delete this key, or the key `mesh`: stations of an access point have it");
        }
    }
    let neighbours = raw.neighbour.get().unwrap_or_default();
    let access_points = raw.access_point.get().unwrap_or_default();
    let tables = neighbours.iter().map(|table| &table.place).chain(access_points.iter().map(|table| &table.place));
    for at in tables {
        cx.impossible(at, "a mesh has one gateway and no other BSS beside it", "delete this table, or the key `mesh`");
    }
}

/// Reports routes from node to node that the nodes would find themselves.
fn given_routes(raw: &Tables, stations: &[Station], cx: &mut Context) {
    let is_node =
        |name: String| name == "ap" || stations.iter().any(|station| station.name.get() == Some(name.clone()));
    for route in raw.route.get().unwrap_or_default() {
        if route.at.get().is_some_and(is_node) && route.via.get().is_some_and(is_node) {
            let what = "between nodes of the mesh, routes are found by OLSR";
            cx.impossible(&route.at.at, what, "delete this table, or the key `routing` of `mesh`");
        }
    }
}

/// A position without a mesh says nothing.
pub(super) fn no_mesh(raw: &Tables, cx: &mut Context) {
    for station in raw.station.get().unwrap_or_default() {
        for at in [station.wifi.position.given_at(), station.wifi.path.given_at()].into_iter().flatten() {
            let what = format!("`{}` has a meaning in a mesh only", at.name());
            cx.impossible(at, what, "delete this key, or add `mesh` to `[hop.wifi]`");
        }
    }
}

fn range(entry: &Entry<Quantity<Metres>>, cx: &mut Context) -> Option<Metres> {
    let why = "radios reach some metres, and not over the horizon";
    cx.within(&plain(entry), (LEAST_RANGE, places::MOST), show, why)
}

/// A range that is `below` unless it is given, and at least that.
fn optional(entry: &Entry<Quantity<Metres>>, below: Option<Metres>, of: &str, cx: &mut Context) -> Option<Metres> {
    if !entry.given {
        return below;
    }
    let (own, below) = (range(entry, cx)?, below?);
    if own < below {
        let what = format!("{} is below `{of}`, {}", show(own), show(below));
        cx.impossible(&entry.at, what, format!("write at least \"{}\", or delete this key", show(below)));
        return None;
    }
    Some(own)
}

/// Two coordinates.
/// True if every station has a way to the access point; otherwise those that have none are reported.
fn connected(reach: &ReachMatrix, stations: &[Station], range: Metres, cx: &mut Context) -> bool {
    let count = reach.nodes();
    let mut found = vec![false; count];
    let mut next = vec![0];
    found[0] = true;
    while let Some(at) = next.pop() {
        for (other, found) in found.iter_mut().enumerate() {
            let decodes = reach.get(Node(at as u16), Node(other as u16)) == Reach::Decodes;
            if decodes && !std::mem::replace(found, true) {
                next.push(other);
            }
        }
    }
    for (station, _) in stations.iter().zip(&found[1..]).filter(|(_, found)| !**found) {
        let what =
            format!("no way leads from here to the access point: no node that has one is within {}", show(range));
        cx.impossible(
            station.wifi.path.given_at().unwrap_or(&station.wifi.position.at),
            what,
            "move it nearer, or make `range` larger",
        );
    }
    found.into_iter().all(|found| found)
}
