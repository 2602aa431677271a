//! Who hears whom: everybody, but for what `reach-ap`, `reach-stations` and `hidden-from` take away.

use crate::check::unknown_name;
use crate::raw;
use crate::read::{Context, Entry};
use lasthop_radio::wifi::{Reach, ReachMatrix};
use lasthop_signals::Node;

/// The nodes that a name stands for: one of a station, two of a neighbour.
struct Named {
    name: String,
    nodes: Vec<Node>,
}

pub(super) fn hearing(raw: &raw::Scenario, cx: &mut Context) -> Option<ReachMatrix> {
    let (stations, neighbours) = (raw.station.get()?, raw.neighbour.get()?);
    let node = |index: usize| u16::try_from(index).ok().map(Node);
    let mut named = Vec::new();
    for (index, station) in stations.iter().enumerate() {
        named.push(Named { name: station.name.get()?, nodes: vec![node(1 + index)?] });
    }
    let first = 1 + stations.len();
    for (index, neighbour) in neighbours.iter().enumerate() {
        let (from, to) = (node(first + 2 * index)?, node(first + 2 * index + 1)?);
        named.push(Named { name: neighbour.name.get()?, nodes: vec![from, to] });
    }
    let mut reach = ReachMatrix::all_hear_all(first + 2 * neighbours.len());
    let (of_stations, of_neighbours) = named.split_at(stations.len());
    for (table, own) in neighbours.iter().zip(of_neighbours) {
        // One that is wrong was reported where it was read.
        let word = |entry: &Entry<raw::Reach>| entry.get().map_or(Reach::Decodes, |raw::Reach(reach)| reach);
        let (ap, others) = (word(&table.reach_ap), word(&table.reach_stations));
        for &node in &own.nodes {
            reach.set_both(Node(0), node, ap);
            of_stations.iter().for_each(|station| reach.set_both(station.nodes[0], node, others));
        }
    }
    let lists =
        stations.iter().map(|table| &table.hidden_from).chain(neighbours.iter().map(|table| &table.hidden_from));
    let mut legal = true;
    for (place, list) in lists.enumerate() {
        legal &= hide(&named, place, list, &mut reach, cx);
    }
    legal.then_some(reach)
}

/// Hides the radios at `place` from those that a list names.
fn hide(named: &[Named], place: usize, list: &Entry<Vec<String>>, reach: &mut ReachMatrix, cx: &mut Context) -> bool {
    let Some(names) = list.get() else { return false };
    let mut legal = true;
    for name in &names {
        // A station and a neighbour may share a name: both are meant then.
        let others: Vec<usize> = (0..named.len()).filter(|&other| named[other].name == *name).collect();
        if others.is_empty() {
            let known = named.iter().map(|other| other.name.as_str());
            let what = format!("there is no station or neighbour \"{name}\"");
            unknown_name(&list.at, what, name, known, cx);
            legal = false;
        }
        if others.contains(&place) && others.len() == 1 {
            cx.impossible(&list.at, format!("\"{name}\" cannot be hidden from itself"), "take it out of the list");
            legal = false;
        }
        for &other in others.iter().filter(|&&other| other != place) {
            for &a in &named[place].nodes {
                named[other].nodes.iter().for_each(|&b| reach.set_both(a, b, Reach::None));
            }
        }
    }
    legal
}
