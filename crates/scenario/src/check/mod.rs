//! From raw tables to a validated scenario: bounds, and what cannot stand together.
//!
//! Every function checks all that it can see before it gives up, so that one mistake does not hide the next.

mod cell;
mod delivery;
mod further;
mod group;
mod laws;
mod queues;
mod trace;
mod traffic;
mod wifi;

use crate::model::Scenario;
use crate::problem::Kind;
use crate::quantity::show;
use crate::read::{At, Context, Entry, Quantity, nearest};
use crate::{Stream, StreamKind, raw};
use lasthop_radio::{LastHop, cables, queue, wired};
use lasthop_report::{Key, Needs};
use lasthop_signals::HostId;
use lasthop_units::{Rate, Span, Time};
use std::collections::BTreeSet;

/// Times that every part of a scenario is held against.
#[derive(Clone, Copy)]
struct Run {
    duration: Span,
}

impl Run {
    fn end(self) -> Time {
        Time::ZERO + self.duration
    }
}

const LONGEST_RUN: Span = Span::from_secs(3600);
const LONGEST_DELAY: Span = Span::from_secs(10);
const LONGEST_HOST_DELAY: Span = Span::from_millis(10);
const SLOWEST: Rate = Rate::from_bps(1_000);
const FASTEST: Rate = Rate::from_mbit(100_000);
const MOST_LOST: f64 = 0.9;

/// A section of a file becomes a field of a scenario: a new one needs an edit of this file, of `model.rs` and of `raw/mod.rs`.
pub(crate) fn scenario(name: &str, mut raw: raw::Scenario, cx: &mut Context) -> Option<Scenario> {
    raw.station.value = raw.station.value.map(|stations| spelled_out(stations, cx));
    let title = title(&raw.title, cx);
    let why = "a run must hold some round trips, and its samples must fit in memory";
    let duration = span(&raw.duration, (Span::from_millis(100), LONGEST_RUN), why, cx);
    let warm_up = duration.and_then(|duration| warm_up(&raw, duration, cx));
    // With a duration that is wrong, times are still held against the longest one.
    let run = Run { duration: duration.unwrap_or(LONGEST_RUN) };

    let wire = raw.wire.get().and_then(|table| cable!(&table, &mut *cx));
    let backhaul = if raw.backhaul.given {
        raw.backhaul.get().and_then(|table| cable!(&table, &mut *cx)).map(Some)
    } else {
        Some(None)
    };
    let stations = stations(&raw, cx);
    access_points(&raw, cx);
    let hop = hop(&raw, run, cx);
    let host_delay = host_delay(&raw, cx);
    let further = stations.as_ref().and_then(|stations| further::further(&raw, stations, hop.as_ref(), cx));
    let streams = traffic::streams(&raw, stations.as_deref(), further.as_ref(), run, cx);
    let laws = laws::laws(&raw, cx);
    traffic::regulated(&raw, streams.as_deref(), laws.as_deref(), cx);
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
        mesh_routing: mesh_routing(&raw).unwrap_or(raw::MeshRouting::Static),
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

fn warm_up(raw: &raw::Scenario, duration: Span, cx: &mut Context) -> Option<Span> {
    let Quantity(warm_up) = raw.warm_up.get()?;
    if warm_up >= duration {
        let what = format!("a warm-up of {} leaves nothing of a run of {}", show(warm_up), show(duration));
        cx.impossible(&raw.warm_up.at, what, "the warm-up is part of the duration: shorten it, or lengthen `duration`");
        return None;
    }
    Some(warm_up)
}

/// What the hosts of a radio hop take to answer; nothing on another hop.
fn host_delay(raw: &raw::Scenario, cx: &mut Context) -> Option<Span> {
    match raw.hop.get()?.wifi.get() {
        Some(hop) => span(
            &hop.host_delay,
            (Span::ZERO, LONGEST_HOST_DELAY),
            "a host that takes longer is no delay of interrupt and stack but a queue",
            cx,
        ),
        None => Some(Span::ZERO),
    }
}

/// A time within bounds.
fn span(entry: &Entry<Quantity<Span>>, bounds: (Span, Span), why: &str, cx: &mut Context) -> Option<Span> {
    cx.within(&plain(entry), bounds, show, why)
}

/// A data rate that the clocks can resolve.
fn rate(entry: &Entry<Quantity<Rate>>, cx: &mut Context) -> Option<Rate> {
    let why = "slower, one packet takes longer than a run; faster, packets follow each other within nanoseconds";
    cx.within(&plain(entry), (SLOWEST, FASTEST), show, why)
}

/// Queue lengths are bounded by memory.
fn packets(entry: &Entry<Quantity<crate::quantity::Packets>>, cx: &mut Context) -> Option<usize> {
    let why = "a queue holds a packet at least, and its packets must fit in memory";
    let count = cx.within(&plain(entry).map(|packets| packets.0), (1, 1_000_000), |n| format!("{n} packets"), why)?;
    usize::try_from(count).ok()
}

/// The quantity without its wrapper.
fn plain<T: Clone>(entry: &Entry<Quantity<T>>) -> Entry<T> {
    entry.map(|quantity| quantity.0)
}

/// The rates of a cable over time.
fn changes(entry: &Entry<Vec<raw::RateStep>>, cx: &mut Context) -> Option<Vec<(Time, Rate)>> {
    let mut changes: Vec<(Time, Rate)> = Vec::new();
    for step in entry.get()? {
        let at = step.at.get().map(|at| Time::ZERO + at.0);
        let (Some(at), Some(rate)) = (at, rate(&step.rate, cx)) else { return None };
        if changes.last().is_some_and(|(before, _)| at <= *before) {
            cx.impossible(
                &step.at.at,
                "a change that is not after the one before it",
                "put the changes in order, one at each time",
            );
            return None;
        }
        changes.push((at, rate));
    }
    Some(changes)
}

fn line(
    rate: &Entry<Quantity<Rate>>,
    delay: &Entry<Quantity<Span>>,
    queue: &Entry<Quantity<crate::quantity::Packets>>,
    cx: &mut Context,
) -> Option<wired::Params> {
    let rate = self::rate(rate, cx);
    let delay = span(delay, (Span::ZERO, LONGEST_DELAY), "TCP gives up a connection on longer paths", cx);
    let queue = packets(queue, cx);
    Some(wired::Params { rate: rate?, delay: delay?, queue_packets: queue? })
}

/// What befalls a cable.
fn impairments(
    changes: &Entry<Vec<raw::RateStep>>,
    loss: &Entry<f64>,
    jitter: &Entry<Quantity<Span>>,
    cx: &mut Context,
) -> Option<wired::Impairments> {
    let changes = self::changes(changes, cx);
    let loss =
        cx.within(loss, (0.0, MOST_LOST), |p| p.to_string(), "a probability; a link that loses more is of no use");
    let jitter = span(jitter, (Span::ZERO, LONGEST_DELAY), "TCP gives up a connection on longer paths", cx);
    Some(wired::Impairments { changes: changes?, loss: loss?, jitter: jitter? })
}

/// A cable from the keys that `[wire]`, `[backhaul]` and `[[link]]` share.
macro_rules! cable {
    ($table:expr, $cx:expr) => {{
        let (table, cx) = ($table, $cx);
        let line = $crate::check::line(&table.rate, &table.delay, &table.queue, cx);
        let impairments = $crate::check::impairments(&table.changes, &table.loss, &table.jitter, cx);
        line.zip(impairments).map(|(line, impairments)| $crate::graph::Cable { lines: [line; 2], impairments })
    }};
}
use cable;

/// Names of the stations. Something is returned even if one of them is wrong, so that traffic can be checked too.
fn stations(raw: &raw::Scenario, cx: &mut Context) -> Option<Vec<String>> {
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

/// Names of the further access points, and where they can be.
fn access_points(raw: &raw::Scenario, cx: &mut Context) {
    let Some(tables) = raw.access_point.get() else { return };
    for table in &tables {
        name(&table.name, &["each", "server", "ap", "default", "law"], cx);
    }
    unique(&tables.iter().map(|table| &table.name).collect::<Vec<_>>(), "access point", cx);
    let stations: Vec<String> =
        raw.station.get().unwrap_or_default().iter().filter_map(|station| station.name.get()).collect();
    for table in &tables {
        if let Some(taken) = table.name.get()
            && (stations.contains(&taken) || !group::group(&taken, &stations).is_empty())
        {
            let what = format!("a station, or a group of them, is called \"{taken}\" too");
            cx.impossible(&table.name.at, what, "give each access point a name of its own");
        }
    }
}

/// One table for each station that the tables stand for.
fn spelled_out(tables: Vec<raw::Station>, cx: &mut Context) -> Vec<raw::Station> {
    let mut stations = Vec::new();
    for table in tables {
        let why = "the hop models hold 1024 nodes";
        match cx.within(&table.count, (1, 1000), |n| n.to_string(), why) {
            Some(count) if count > 1 => {
                let named = |n| raw::Station { name: table.name.map(|name| format!("{name}-{n}")), ..table.clone() };
                stations.extend((1..=count).map(named));
            }
            _ => stations.push(table),
        }
    }
    stations
}

/// Places of the stations with a monitor interface.
fn monitors(raw: &raw::Scenario) -> Vec<usize> {
    let stations = raw.station.get().unwrap_or_default();
    let wanted = stations.iter().enumerate().filter(|(_, station)| station.monitor.get() == Some(true));
    wanted.map(|(place, _)| place).collect()
}

/// Where the routes of a mesh's nodes come from; `None` without a mesh.
fn mesh_routing(raw: &raw::Scenario) -> Option<raw::MeshRouting> {
    let wifi = raw.hop.get()?.wifi.get()?;
    if wifi.mesh.given { wifi.mesh.get()?.routing.get() } else { None }
}

/// Places of the stations with a TCP that keeps the queue in the station small.
fn small_queues(raw: &raw::Scenario) -> Vec<usize> {
    let stations = raw.station.get().unwrap_or_default();
    let wanted = stations.iter().enumerate().filter(|(_, station)| station.tcp_small_queues.get() == Some(true));
    wanted.map(|(place, _)| place).collect()
}

/// What the hop models hold: access points, their stations, and two nodes a neighbour.
const MOST_NODES: usize = 1024;

fn room_for_all(raw: &raw::Scenario, stations: usize, cx: &mut Context) -> Option<()> {
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

/// Names become parts of file names, of namespaces and of random streams.
fn name(entry: &Entry<String>, reserved: &[&str], cx: &mut Context) {
    let Some(name) = entry.get() else { return };
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if name.is_empty() || name.len() > 32 || !name.chars().all(legal) {
        let what = format!("\"{name}\" is not a name");
        cx.problem(Kind::OutOfRange, &entry.at, what, "use 1 to 32 letters, digits and `-`");
    } else if reserved.contains(&name.as_str()) {
        let what = format!("the name \"{name}\" is taken: {} have a meaning of their own", reserved.join(", "));
        cx.impossible(&entry.at, what, "use another name");
    }
}

fn unique(names: &[&Entry<String>], what: &str, cx: &mut Context) {
    for (i, entry) in names.iter().enumerate() {
        let earlier = names[..i].iter().find(|earlier| earlier.value.is_some() && earlier.value == entry.value);
        if let (Some(name), Some(_)) = (entry.get(), earlier) {
            cx.impossible(&entry.at, format!("two {what}s are called \"{name}\""), "give each a name of its own");
        }
    }
}

fn hop(raw: &raw::Scenario, run: Run, cx: &mut Context) -> Option<LastHop> {
    let hop = raw.hop.get()?;
    let given = [hop.wired.given_at(), hop.wifi.given_at(), hop.cell.given_at(), hop.trace.given_at()];
    let mut given = given.into_iter().flatten();
    let Some(first) = given.next() else {
        let remedy = "add the table `[hop.cell]`, `[hop.trace]`, `[hop.wifi]` or `[hop.wired]`";
        cx.problem(Kind::Missing, &hop.place, "nothing says what the hop is", remedy);
        return None;
    };
    if let Some(second) = given.next() {
        let remedy = format!("keep one of `[hop.{}]` and `[hop.{}]`", first.name(), second.name());
        cx.impossible(second, "a scenario has one last hop, and here are two", remedy);
        return None;
    }
    if !hop.cell.given {
        for station in &raw.station.get().unwrap_or_default() {
            for at in cell::keys(station).into_iter().flatten() {
                cx.impossible(at, "this key is for a station of a cell", "delete it, or use `[hop.cell]`");
            }
        }
    }
    if hop.wired.given {
        wired_hop(&hop.wired.get()?, raw, cx).map(LastHop::from)
    } else if hop.trace.given {
        delivery::hop(&hop.trace.get()?, raw, cx).map(LastHop::from)
    } else if hop.cell.given {
        cell::hop(&hop.cell.get()?, raw, cx).map(LastHop::from)
    } else {
        wifi::hop(&hop.wifi.get()?, raw, run, cx).map(LastHop::from)
    }
}

/// Keys of a station that only mean something on Wi-Fi, where they are given.
fn wifi_keys(station: &raw::Station) -> [Option<&At>; 18] {
    [
        station.nss.given_at(),
        station.mcs.given_at(),
        station.mcs_trace.given_at(),
        station.rate.given_at(),
        station.mpdu_error_rate.given_at(),
        station.hidden_from.given_at(),
        station.rate_control.given_at(),
        station.snr.given_at(),
        station.snr_trace.given_at(),
        station.distance.given_at(),
        station.walk.given_at(),
        station.fading.given_at(),
        station.queue.given_at(),
        station.monitor.given_at(),
        station.tcp_small_queues.given_at(),
        station.access_point.given_at(),
        station.position.given_at(),
        station.path.given_at(),
    ]
}

/// Refuses what only Wi-Fi has, on a hop that is called so; `instead` says where a station's rate is.
fn without_radio(raw: &raw::Scenario, (hop, instead): (&str, &str), cx: &mut Context) {
    for station in &raw.station.get().unwrap_or_default() {
        for at in wifi_keys(station).into_iter().flatten() {
            let what = format!("a station of {hop} has no radio");
            cx.impossible(at, what, format!("delete this key; {instead}"));
        }
    }
    if let Some(neighbour) = raw.neighbour.get().unwrap_or_default().first() {
        let what = format!("{hop} has no neighbours");
        cx.impossible(&neighbour.place, what, "delete this table, or use `[hop.wifi]`");
    }
    if let Some(table) = raw.access_point.get().unwrap_or_default().first() {
        let what = format!("{hop} has one access point");
        cx.impossible(&table.place, what, "delete this table, or use `[hop.wifi]`");
    }
}

fn wired_hop(hop: &raw::WiredHop, raw: &raw::Scenario, cx: &mut Context) -> Option<cables::Plan> {
    let up = line(&hop.rate, &hop.delay, &hop.uplink_queue, cx);
    let impairments = impairments(&hop.changes, &hop.loss, &hop.jitter, cx);
    let queue = hop.queue.get().and_then(|queue| queues::queue(&queue, true, cx));
    without_radio(raw, ("a wired hop", "the rate is `hop.wired.rate`"), cx);
    let up = up?;
    let queue::Kind::Fifo { packets: limit } = queue? else { return None };
    Some(cables::Plan { down: wired::Params { queue_packets: limit, ..up }, up, impairments: impairments? })
}

/// Reports figures that the traffic cannot yield; without a list, chooses those that it can.
fn measures(
    entry: &Entry<Vec<raw::Measure>>,
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
    let measures: Vec<Key> = entry.get()?.into_iter().map(|raw::Measure(key)| key).collect();
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

/// "no station …", with the one that was probably meant.
fn unknown_name<'n>(at: &At, what: String, name: &str, known: impl Iterator<Item = &'n str> + Clone, cx: &mut Context) {
    let all: Vec<String> = known.clone().map(|name| format!("\"{name}\"")).collect();
    let remedy = match nearest(name, known) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("write {}", crate::quantity::either(&all)),
    };
    cx.problem(Kind::UnknownName, at, what, remedy);
}
