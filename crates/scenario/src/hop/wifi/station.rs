//! A station's radio.

use super::table::{RateControl, WifiStation};
use super::{Air, MOST_ERRORS, links, rates};
use crate::Scenario;
use crate::bounds::unknown_name;
use crate::problem::Kind;
use crate::queue::of_radio;
use crate::read::Context;
use crate::tables::Tables;
use lasthop_radio::wifi::{Mcs, NodeParams, PathLoss, RateChoice, Role};
use lasthop_signals::Node;

pub(super) fn stations(raw: &Tables, air: Air, loss: Option<PathLoss>, cx: &mut Context) -> Option<Vec<NodeParams>> {
    let stations = raw.station.get()?;
    let nodes: Vec<Option<NodeParams>> = stations.iter().map(|table| station(&table.wifi, air, loss, cx)).collect();
    nodes.into_iter().collect()
}

/// The access point of each station. Further ones are the last nodes.
pub(super) fn homes(raw: &Tables, cx: &mut Context) -> Option<Vec<Node>> {
    let (stations, neighbours) = (raw.station.get()?, raw.neighbour.get()?);
    let further: Vec<String> = raw.access_point.get()?.iter().filter_map(|table| table.name.get()).collect();
    let first = 1 + stations.len() + 2 * neighbours.len();
    let homes: Vec<Option<Node>> = stations.iter().map(|table| home(&table.wifi, &further, first, cx)).collect();
    homes.into_iter().collect()
}

fn home(table: &WifiStation, further: &[String], first: usize, cx: &mut Context) -> Option<Node> {
    if !table.access_point.given {
        return Some(Scenario::AP);
    }
    let name = table.access_point.get()?;
    let Some(place) = further.iter().position(|other| *other == name) else {
        let what = format!("there is no access point \"{name}\"");
        if further.is_empty() {
            let remedy = format!("add `[[access-point]]` with `name = \"{name}\"`, or delete this key");
            cx.problem(Kind::UnknownName, &table.access_point.at, what, remedy);
        } else {
            unknown_name(&table.access_point.at, what, &name, further.iter().map(String::as_str), cx);
        }
        return None;
    };
    u16::try_from(first + place).ok().map(Node)
}

fn station(table: &WifiStation, air: Air, loss: Option<PathLoss>, cx: &mut Context) -> Option<NodeParams> {
    let why = "a probability; at 1 nothing would ever arrive";
    let mpdu_error = cx.within(&table.mpdu_error_rate, (0.0, MOST_ERRORS), |p| p.to_string(), why);
    let link = links::link(table, loss, cx);
    let control = table.rate_control.get();
    let queue = if table.queue.given { Some(table.queue.get().and_then(|queue| of_radio(&queue, cx))) } else { None };
    let rate = if let Some(control) = control.filter(|control| *control != RateControl::Fixed) {
        links::controlled(table, control, air, cx)
    } else if table.mcs_trace.given {
        rates::trace_steps(table, air, cx).map(RateChoice::Trace)
    } else {
        rates::fixed(&table.nss, &table.mcs, &table.rate, &table.place, air, true, cx).map(RateChoice::Fixed)
    };
    let params = NodeParams::new(Role::Station { ap: Scenario::AP }, Mcs::new(0, 1));
    let queue = match queue {
        Some(queue) => Some(queue?),
        None => None,
    };
    Some(NodeParams { rate: rate?, mpdu_error: mpdu_error?, link: link?, queue, ..params })
}
