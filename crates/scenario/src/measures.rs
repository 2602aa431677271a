//! Which figures are reported.

use crate::problem::Kind;
use crate::read::{At, Context, Entry, Read, Value, word};
use crate::{Stream, StreamKind};
use lasthop_report::{Key, Needs};
use lasthop_signals::HostId;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// A figure of the report, by its name there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure(pub Key);

impl Read for Measure {
    fn read(value: &Value<'_>, at: &At, cx: &mut Context) -> Option<Self> {
        word(value, at, cx, Key::ALL.into_iter().map(|key| (key.name(), Measure(key))))
    }
}

impl JsonSchema for Measure {
    fn schema_name() -> Cow<'static, str> {
        "Measure".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let word = |key: Key| serde_json::json!({ "const": key.name(), "description": key.meaning() });
        let words: Vec<serde_json::Value> = Key::ALL.into_iter().map(word).collect();
        json_schema!({ "description": "A figure of the report.", "oneOf": words })
    }
}

/// Reports figures that the traffic cannot yield; without a list, chooses those that it can.
pub(crate) fn measures(
    entry: &Entry<Vec<Measure>>,
    streams: Option<&[Stream]>,
    stations: usize,
    cx: &mut Context,
) -> Option<Vec<Key>> {
    let streams = streams?;
    // Stations follow the server and the access point; every other host comes after them.
    let station = |host: HostId| (2..2 + stations).contains(&host.index());
    let goes_up = |stream: &Stream| station(stream.from);
    let needs = |key: Key| match key.column().needs {
        Needs::Anything => None,
        Needs::Probes => Some(("probe", streams.iter().any(is_probe))),
        Needs::Fetches => Some(("fetch", streams.iter().any(is_fetch))),
        Needs::Bulk | Needs::BulkAtSeveral => Some(("bulk", streams.iter().any(is_bulk))),
        Needs::Udp => Some(("udp", streams.iter().any(is_udp))),
        Needs::Uploads => Some(("bulk", streams.iter().any(|stream| is_bulk(stream) && goes_up(stream)))),
    };
    if !entry.given {
        // A file that asks for an index of one station gets to hear that there is none; no other misses it.
        let served: BTreeSet<(HostId, HostId)> =
            streams.iter().filter(|s| is_bulk(s)).map(|stream| (stream.from, stream.to)).collect();
        let yields = |key: &Key| match key.column().needs {
            Needs::BulkAtSeveral => served.len() > 1,
            _ => needs(*key).is_none_or(|(_, there)| there),
        };
        return Some(Key::ALL.into_iter().filter(yields).collect());
    }
    let measures: Vec<Key> = entry.get()?.into_iter().map(|Measure(key)| key).collect();
    if measures.is_empty() {
        let remedy = "name at least one figure, or delete the key for all of them";
        cx.problem(Kind::OutOfRange, &entry.at, "a run without figures shows nothing", remedy);
    }
    for (i, measure) in measures.iter().enumerate() {
        if let Some((kind, false)) = needs(*measure) {
            let what = format!("no traffic yields `{measure}`");
            cx.impossible(&entry.at, what, format!("add a `[[traffic]]` of kind \"{kind}\", or leave the figure out"));
        }
        if measures[..i].contains(measure) {
            cx.impossible(&entry.at, format!("`{measure}` is listed twice"), "list each figure once");
        }
    }
    Some(measures)
}

fn is_bulk(stream: &Stream) -> bool {
    stream.is_bulk()
}

fn is_udp(stream: &Stream) -> bool {
    matches!(stream.kind, StreamKind::Udp { rate: Some(_), .. })
}

fn is_probe(stream: &Stream) -> bool {
    matches!(stream.kind, StreamKind::Probe { .. })
}

fn is_fetch(stream: &Stream) -> bool {
    matches!(stream.kind, StreamKind::Fetch { .. })
}
