//! Which nodes hear each other: all, but for what `reach-ap`, `reach-stations` and `hidden-from` take away. An access
//! point and its stations hear each other in any case.

use super::table::Reach;
use crate::Scenario;
use crate::bounds::unknown_name;
use crate::read::{Context, Entry};
use crate::tables::Tables;
use lasthop_radio::wifi::{self, ReachMatrix};
use lasthop_signals::Node;

/// The nodes that a name stands for: one of a station or an access point, two of a neighbour.
struct Named {
    name: String,
    nodes: Vec<Node>,
    /// The access point that a station belongs to.
    home: Option<String>,
    kind: What,
}

/// The hop's own access point.
const OWN: &str = "ap";

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Station,
    Neighbour,
    AccessPoint,
}

pub(super) fn hearing(raw: &Tables, cx: &mut Context) -> Option<ReachMatrix> {
    let (stations, neighbours) = (raw.station.get()?, raw.neighbour.get()?);
    let access_points = raw.access_point.get()?;
    let node = |index: usize| u16::try_from(index).ok().map(Node);
    let mut named = Vec::new();
    for (index, station) in stations.iter().enumerate() {
        let (home, kind) = (station.wifi.access_point.get().or(Some(OWN.into())), What::Station);
        named.push(Named { name: station.name.get()?, nodes: vec![node(1 + index)?], home, kind });
    }
    let first = 1 + stations.len();
    for (index, neighbour) in neighbours.iter().enumerate() {
        let (from, to) = (node(first + 2 * index)?, node(first + 2 * index + 1)?);
        let (home, kind) = (None, What::Neighbour);
        named.push(Named { name: neighbour.name.get()?, nodes: vec![from, to], home, kind });
    }
    let last = first + 2 * neighbours.len();
    for (index, table) in access_points.iter().enumerate() {
        let (home, kind) = (None, What::AccessPoint);
        named.push(Named { name: table.name.get()?, nodes: vec![node(last + index)?], home, kind });
    }
    let mut reach = ReachMatrix::all_hear_all(last + access_points.len());
    named.push(Named { name: OWN.into(), nodes: vec![Scenario::AP], home: None, kind: What::AccessPoint });
    let (of_stations, others) = named.split_at(stations.len());
    let (of_neighbours, of_access_points) = others.split_at(neighbours.len());
    // One that is wrong was reported where it was read.
    let word = |entry: &Entry<Reach>| entry.get().map_or(wifi::Reach::Decodes, |Reach(reach)| reach);
    for (table, own) in access_points.iter().zip(of_access_points) {
        reach.set_both(Scenario::AP, own.nodes[0], word(&table.reach_ap));
    }
    for (table, own) in neighbours.iter().zip(of_neighbours) {
        let (ap, others) = (word(&table.reach_ap), word(&table.reach_stations));
        for &node in &own.nodes {
            of_access_points.iter().for_each(|access_point| reach.set_both(access_point.nodes[0], node, ap));
            of_stations.iter().for_each(|station| reach.set_both(station.nodes[0], node, others));
        }
    }
    let lists = stations.iter().map(|table| &table.wifi.hidden_from);
    let lists = lists.chain(neighbours.iter().map(|table| &table.hidden_from));
    let lists = lists.chain(access_points.iter().map(|table| &table.hidden_from));
    let mut legal = true;
    for (place, list) in lists.enumerate() {
        legal &= hide(&named, place, list, &mut reach, cx);
    }
    legal.then_some(reach)
}

impl Named {
    /// True of a station and its access point.
    fn belongs_to(&self, other: &Named) -> bool {
        self.kind == What::Station && other.kind == What::AccessPoint && self.home.as_ref() == Some(&other.name)
    }
}

/// Hides the radios at `place` from those that a list names.
fn hide(named: &[Named], place: usize, list: &Entry<Vec<String>>, reach: &mut ReachMatrix, cx: &mut Context) -> bool {
    let Some(names) = list.get() else { return false };
    let mut legal = true;
    for name in &names {
        // A station, a neighbour and an access point may share a name: all are meant then.
        let others: Vec<usize> = (0..named.len()).filter(|&other| named[other].name == *name).collect();
        if others.is_empty() {
            let known = named.iter().map(|other| other.name.as_str());
            let what = format!("there is no station, neighbour or access point \"{name}\"");
            unknown_name(&list.at, what, name, known, cx);
            legal = false;
        }
        if others.contains(&place) && others.len() == 1 {
            cx.impossible(&list.at, format!("\"{name}\" cannot be hidden from itself"), "take it out of the list");
            legal = false;
        }
        for &other in others.iter().filter(|&&other| other != place) {
            if named[place].belongs_to(&named[other]) || named[other].belongs_to(&named[place]) {
                let what = format!("\"{name}\" cannot be hidden from what it belongs to, or from its own station");
                cx.impossible(&list.at, what, "take it out of the list, or let the station belong elsewhere");
                legal = false;
            }
            for &a in &named[place].nodes {
                named[other].nodes.iter().for_each(|&b| reach.set_both(a, b, wifi::Reach::None));
            }
        }
    }
    legal
}
