//! Stations.

use crate::bounds::{name, unique};
use crate::problem::Kind;
use crate::read::Context;
use crate::tables::{Station, Tables};

/// Names of the stations. Something is returned even if one of them is wrong, so that traffic can be checked too.
pub(crate) fn stations(raw: &Tables, cx: &mut Context) -> Option<Vec<String>> {
    let stations = raw.station.get()?;
    if stations.is_empty() {
        cx.problem(Kind::OutOfRange, &raw.station.at, "a scenario needs a station", "add the table `[[station]]`");
        return None;
    }
    room_for_all(raw, stations.len(), cx)?;
    let names: Vec<String> = stations.iter().filter_map(|station| station.name.get()).collect();
    for station in &stations {
        name(&station.name, &["each", "server", "ap", "default", "law"], cx);
    }
    unique(&stations.iter().map(|station| &station.name).collect::<Vec<_>>(), "station", cx);
    Some(names)
}

/// One table for each station that the tables stand for.
pub(crate) fn spelled_out(tables: Vec<Station>, cx: &mut Context) -> Vec<Station> {
    let mut stations = Vec::new();
    for table in tables {
        let why = "the hop models hold 1024 nodes";
        match cx.within(&table.count, (1, 1000), |n| n.to_string(), why) {
            Some(count) if count > 1 => {
                let named = |n| Station { name: table.name.map(|name| format!("{name}-{n}")), ..table.clone() };
                stations.extend((1..=count).map(named));
            }
            _ => stations.push(table),
        }
    }
    stations
}

/// Places of the stations with a monitor interface.
pub(crate) fn monitors(raw: &Tables) -> Vec<usize> {
    let stations = raw.station.get().unwrap_or_default();
    let wanted = stations.iter().enumerate().filter(|(_, station)| station.wifi.monitor.get() == Some(true));
    wanted.map(|(place, _)| place).collect()
}

/// Places of the stations with a TCP that keeps the queue in the station small.
pub(crate) fn small_queues(raw: &Tables) -> Vec<usize> {
    let stations = raw.station.get().unwrap_or_default();
    let wanted = stations.iter().enumerate().filter(|(_, station)| station.wifi.tcp_small_queues.get() == Some(true));
    wanted.map(|(place, _)| place).collect()
}

/// What the hop models hold: access points, their stations, and two nodes a neighbour.
const MOST_NODES: usize = 1024;

fn room_for_all(raw: &Tables, stations: usize, cx: &mut Context) -> Option<()> {
    let neighbours = raw.neighbour.value.as_ref().map_or(0, Vec::len);
    let further = raw.access_point.value.as_ref().map_or(0, Vec::len);
    if 1 + stations + 2 * neighbours + further <= MOST_NODES {
        return Some(());
    }
    let what = format!("too many nodes: stations {stations}, neighbours {neighbours}, further access points {further}");
    let remedy = format!("the hop models hold {MOST_NODES} nodes: access points, stations, and two for each neighbour");
    cx.problem(Kind::OutOfRange, &raw.station.at, what, remedy);
    None
}
