//! What is different on single links, and in a mesh with capture how strong its nodes hear each other.

use super::table::{WifiHop, WifiLink};
use super::{Air, MOST_ERRORS, links, rates};
use crate::Scenario;
use crate::bounds::unknown_name;
use crate::read::Context;
use crate::tables::Tables;
use lasthop_radio::wifi::{Link, LinkParams, Reach, ReachMatrix};
use lasthop_signals::Node;
use std::collections::BTreeSet;

/// The nodes that links may be between, by name.
struct Named {
    name: String,
    node: Node,
    /// Of a station, its access point.
    home: Option<Node>,
}

/// Every `[[hop.wifi.link]]`, once a direction.
pub(super) fn links(
    hop: &WifiHop,
    raw: &Tables,
    (homes, reach): (&[Node], &ReachMatrix),
    air: Air,
    cx: &mut Context,
) -> Option<Vec<LinkParams>> {
    let mut named = vec![Named { name: "ap".to_owned(), node: Scenario::AP, home: None }];
    for (place, (station, home)) in raw.station.get()?.iter().zip(homes).enumerate() {
        named.push(Named { name: station.name.get()?, node: Scenario::station_node(place), home: Some(*home) });
    }
    let further = raw.access_point.get()?;
    let first = reach.nodes() - further.len();
    for (place, table) in further.iter().enumerate() {
        let node = Node(u16::try_from(first + place).ok()?);
        named.push(Named { name: table.name.get()?, node, home: None });
    }
    let (mut seen, mut made, mut legal) = (BTreeSet::new(), Vec::new(), true);
    for table in hop.link.get()? {
        let Some(params) = link(&table, &named, reach, (air, hop.mesh.given), cx) else {
            legal = false;
            continue;
        };
        let back = LinkParams { from: params.to, to: params.from, ..params.clone() };
        let ways = if table.both.get()? { vec![params, back] } else { vec![params] };
        for way in ways {
            if !seen.insert((way.from.0, way.to.0)) {
                cx.impossible(&table.to.at, "another table is for this link already", "say it all in one of them");
                legal = false;
            }
            made.push(way);
        }
    }
    legal.then_some(made)
}

fn link(
    table: &WifiLink,
    named: &[Named],
    reach: &ReachMatrix,
    (air, mesh): (Air, bool),
    cx: &mut Context,
) -> Option<LinkParams> {
    let ends = [&table.from, &table.to].map(|entry| {
        let name = entry.get()?;
        let found = named.iter().find(|named| named.name == name);
        if found.is_none() {
            let what = format!("there is no station or access point \"{name}\"");
            unknown_name(&entry.at, what, &name, named.iter().map(|named| named.name.as_str()), cx);
        }
        found
    });
    let mpdu_error = if table.mpdu_error_rate.given {
        let why = "a probability; at 1 nothing would ever arrive";
        Some(cx.within(&table.mpdu_error_rate, (0.0, MOST_ERRORS), |p| p.to_string(), why))
    } else {
        None
    };
    let rated = table.mcs.given || table.rate.given || table.nss.given;
    let rate = rated.then(|| rates::fixed(&table.nss, &table.mcs, &table.rate, &table.place, air, false, cx));
    let snr = links::of_link(table, cx);
    let [Some(from), Some(to)] = ends else { return None };
    if from.node == to.node {
        cx.impossible(&table.to.at, "a link leads from one node to another", "name two different nodes");
        return None;
    }
    let decode = |a: Node, b: Node| reach.get(a, b) == Reach::Decodes;
    let related = mesh || from.home == Some(to.node) || to.home == Some(from.node);
    let exchanges = related && decode(from.node, to.node) && decode(to.node, from.node);
    if (rated || table.mpdu_error_rate.given) && !exchanges {
        let what = format!("\"{}\" and \"{}\" exchange no frames", from.name, to.name);
        cx.impossible(&table.to.at, what, "name a station and its access point, or keep `snr` only");
        return None;
    }
    if !(rated || table.mpdu_error_rate.given || table.snr.given || table.snr_trace.given) {
        cx.impossible(&table.place, "nothing is said of this link", "add `mcs`, `rate`, `mpdu-error-rate` or `snr`");
        return None;
    }
    // What is given and wrong was reported.
    let (rate, mpdu_error) =
        (rate.map_or(Some(None), |rate| rate.map(Some))?, mpdu_error.map_or(Some(None), |p| p.map(Some))?);
    let params = LinkParams::new(from.node, to.node);
    Some(LinkParams { rate: rate.map(lasthop_radio::wifi::RateChoice::Fixed), mpdu_error, link: snr?, ..params })
}

/// Adds the strength of every link that has none of its own.
pub(super) fn add_strengths(links: &mut Vec<LinkParams>, reach: &ReachMatrix, of: impl Fn(Node, Node) -> Option<Link>) {
    let nodes = 0..u16::try_from(reach.nodes()).unwrap_or(u16::MAX);
    for (from, to) in nodes.clone().flat_map(|a| nodes.clone().map(move |b| (Node(a), Node(b)))) {
        if from == to || reach.get(from, to) == Reach::None {
            continue;
        }
        match links.iter_mut().find(|link| (link.from, link.to) == (from, to)) {
            Some(own) if own.link.is_some() => (),
            Some(own) => own.link = of(from, to),
            None => links.push(LinkParams { link: of(from, to), ..LinkParams::new(from, to) }),
        }
    }
}
