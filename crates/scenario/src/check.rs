//! From the tables of a file to a validated scenario.
//!
//! Every function checks all that it can see before it gives up, so that one mistake does not hide the next.

use crate::bounds::{LONGEST_RUN, Run, span};
use crate::hop::check::hop;
use crate::hop::wifi::table::MeshRouting;
use crate::hop::wifi::{access_points, host_delay, mesh_routing};
use crate::hosts::further;
use crate::laws::laws;
use crate::measures::measures;
use crate::model::Scenario;
use crate::problem::Kind;
use crate::quantity::show;
use crate::read::{Context, Entry, Quantity};
use crate::station::{monitors, small_queues, spelled_out, stations};
use crate::tables::Tables;
use crate::traffic::{regulated, streams};
use lasthop_units::Span;

/// A section of a file becomes a field of a scenario: a new one needs an edit of this file, of `tables.rs` and of `model.rs`.
pub(crate) fn scenario(name: &str, mut raw: Tables, cx: &mut Context) -> Option<Scenario> {
    raw.station.value = raw.station.value.map(|stations| spelled_out(stations, cx));
    let title = title(&raw.title, cx);
    let why = "a run must hold some round trips, and its samples must fit in memory";
    let duration = span(&raw.duration, (Span::from_millis(100), LONGEST_RUN), why, cx);
    let warm_up = duration.and_then(|duration| warm_up(&raw, duration, cx));
    // With a duration that is wrong, times are still held against the longest one.
    let run = Run { duration: duration.unwrap_or(LONGEST_RUN) };

    let wire = raw.wire.get().and_then(|table| table.cable(cx));
    let backhaul = if raw.backhaul.given {
        raw.backhaul.get().and_then(|table| table.cable.cable(cx)).map(Some)
    } else {
        Some(None)
    };
    let stations = stations(&raw, cx);
    access_points(&raw, cx);
    let hop = hop(&raw, run, cx);
    let host_delay = host_delay(&raw, cx);
    let further = stations.as_ref().and_then(|stations| further(&raw, stations, hop.as_ref(), cx));
    let streams = streams(&raw, stations.as_deref(), further.as_ref(), run, cx);
    let laws = laws(&raw, cx);
    regulated(&raw, streams.as_deref(), laws.as_deref(), cx);
    let measures = measures(&raw.measures, streams.as_deref(), stations.as_ref().map_or(0, Vec::len), cx);
    let scenario = Scenario {
        text: String::new(),
        name: name.to_owned(),
        title: title?,
        description: raw.description.get()?.trim().to_owned(),
        world: raw.world.get()?,
        duration: duration?,
        warm_up: warm_up?,
        seeds: raw.seeds.get()?.0,
        wire: wire?,
        backhaul: backhaul?,
        hop: hop?,
        mesh_routing: mesh_routing(&raw).unwrap_or(MeshRouting::Static),
        host_delay: host_delay?,
        stations: stations?,
        further: further?.made?,
        access_points: raw.access_point.get()?.iter().filter_map(|table| table.name.get()).collect(),
        monitors: monitors(&raw),
        small_queues: small_queues(&raw),
        streams: streams?,
        laws: laws?,
        measures: measures?,
    };
    for law in &scenario.laws {
        if let Some(what) = scenario.unfit(law) {
            let what = format!("with the law \"{}\": {what}", law.name);
            cx.impossible(&raw.laws.at, what, "use another law there, or change the scenario");
        }
    }
    Some(scenario)
}

fn title(entry: &Entry<String>, cx: &mut Context) -> Option<String> {
    let title = entry.get()?;
    if title.trim().is_empty() || title.contains('\n') {
        cx.problem(Kind::OutOfRange, &entry.at, "a title is one line of text", "write a line that names the scenario");
        return None;
    }
    Some(title)
}

fn warm_up(raw: &Tables, duration: Span, cx: &mut Context) -> Option<Span> {
    let Quantity(warm_up) = raw.warm_up.get()?;
    if warm_up >= duration {
        let what = format!("a warm-up of {} leaves nothing of a run of {}", show(warm_up), show(duration));
        cx.impossible(&raw.warm_up.at, what, "the warm-up is part of the duration: shorten it, or lengthen `duration`");
        return None;
    }
    Some(warm_up)
}
