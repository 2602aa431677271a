//! What hosts send each other.

pub mod table;

use crate::bounds::{self, Run, plain, span, unknown_name};
use crate::group::group;
use crate::hosts::Known;
use crate::problem::Kind;
use crate::quantity::show;
use crate::read::{Context, Entry, Quantity};
use crate::tables::{Tables, World};
use crate::{Scenario, SetUp, Stream, StreamKind};
use lasthop_signals::HostId;
use lasthop_units::{Bytes, Span, Time};
use table::{Class, Program, Traffic, TrafficKind};

/// UDP payload that fits one packet of 1500 B: less the IPv4 and UDP headers.
const MOST_PROBE: Bytes = Bytes::new(1_472);
/// A sequence number and a time stamp.
const LEAST_PROBE: Bytes = Bytes::new(16);
const MOST_DATA: Bytes = Bytes::new(1_000_000_000_000);
const MOST_FLOWS: u64 = 256;

pub(crate) fn streams(
    raw: &Tables,
    stations: Option<&[String]>,
    known: Option<&Known>,
    run: Run,
    cx: &mut Context,
) -> Option<Vec<Stream>> {
    let tables = raw.traffic.get()?;
    if tables.is_empty() {
        let remedy = "add the table `[[traffic]]`";
        cx.problem(Kind::OutOfRange, &raw.traffic.at, "a scenario without traffic shows nothing", remedy);
        return None;
    }
    let read: Vec<Option<Vec<Stream>>> =
        tables.iter().map(|table| expand(table, raw, stations, known, run, cx)).collect();
    let mut streams = read.into_iter().collect::<Option<Vec<_>>>()?.concat();
    streams.iter_mut().enumerate().for_each(|(number, stream)| stream.number = number);
    Some(streams)
}

/// One stream for each station and parallel flow that the table stands for.
fn expand(
    table: &Traffic,
    raw: &Tables,
    stations: Option<&[String]>,
    known: Option<&Known>,
    run: Run,
    cx: &mut Context,
) -> Option<Vec<Stream>> {
    let kind = table.kind.get();
    if let Some(kind) = kind {
        foreign_keys(table, kind, cx);
    }
    let ends = ends(table, stations, known, cx);
    let times = times(table, run, cx);
    let stream = kind.and_then(|kind| match kind {
        TrafficKind::Bulk => bulk(table, raw, cx),
        TrafficKind::Probe => probe(table, run, cx),
        TrafficKind::Fetch => fetch(table, run, cx),
        TrafficKind::Udp => udp(table, raw, cx),
    });
    let flows = flows(table, cx);
    let Class(class) = table.class.get()?;
    let ((start, stop), kind, flows) = (times?, stream?, flows?);
    let each = ends?.into_iter().map(|(from, to)| Stream { number: 0, from, to, start, stop, class, kind });
    Some(each.flat_map(|stream| std::iter::repeat_n(stream, flows)).collect())
}

/// Between which hosts: one pair for each stream.
fn ends(
    table: &Traffic,
    stations: Option<&[String]>,
    known: Option<&Known>,
    cx: &mut Context,
) -> Option<Vec<(HostId, HostId)>> {
    let (senders, receivers) = (hosts(&table.from, stations, known, cx), hosts(&table.to, stations, known, cx));
    let (senders, receivers) = (senders?, receivers?);
    let (from, to) = (table.from.get()?, table.to.get()?);
    if senders.len() > 1 && receivers.len() > 1 {
        let what = format!("from several hosts (\"{from}\") to several (\"{to}\")");
        cx.impossible(&table.to.at, what, "name one host in `from` or in `to`, and write a table for each other");
        return None;
    }
    let pairs: Vec<(HostId, HostId)> =
        senders.iter().flat_map(|from| receivers.iter().map(move |to| (*from, *to))).collect();
    if pairs.iter().any(|(from, to)| from == to) {
        let of_several = senders.len().max(receivers.len()) > 1;
        let what = if of_several {
            format!("from \"{from}\" to \"{to}\", one host would send to itself")
        } else {
            format!("\"{from}\" would send to itself")
        };
        cx.impossible(&table.to.at, what, "name different hosts in `from` and `to`");
        return None;
    }
    let regulated = table.kind.get() == Some(TrafficKind::Udp) && !table.rate.given;
    if regulated && pairs.iter().any(|(from, _)| *from != Scenario::SERVER) {
        let what =
            "UDP without a rate goes as fast as a regulator lets the server send, and this does not come from there";
        cx.impossible(&table.from.at, what, "give the traffic a `rate`, or delete this key");
        return None;
    }
    Some(pairs)
}

/// A key of one kind of traffic says nothing of another.
fn foreign_keys(table: &Traffic, kind: TrafficKind, cx: &mut Context) {
    let bulk_only = [table.flows.given_at(), table.program.given_at(), table.send_buffer.given_at()];
    let timed_only = [table.every.given_at()];
    let udp_only = [table.rate.given_at(), table.periodic.given_at()];
    let foreign = match kind {
        TrafficKind::Bulk => [&timed_only[..], &udp_only].concat(),
        TrafficKind::Udp => [&timed_only[..], &bulk_only].concat(),
        TrafficKind::Probe | TrafficKind::Fetch => [&bulk_only[..], &udp_only].concat(),
    };
    for at in foreign.into_iter().flatten() {
        let what = format!("`{}` means nothing to traffic of kind \"{kind}\"", at.name());
        cx.impossible(at, what, "delete this key");
    }
}

/// The hosts that a name stands for: one, the stations of a group, or each of them.
fn hosts(
    entry: &Entry<String>,
    stations: Option<&[String]>,
    known: Option<&Known>,
    cx: &mut Context,
) -> Option<Vec<HostId>> {
    let (name, stations, known) = (entry.get()?, stations?, known?);
    if name == "each" {
        return Some((0..stations.len()).map(Scenario::station_host).collect());
    }
    if let Some(host) = known.host(&name) {
        return Some(vec![host]);
    }
    let group: Vec<HostId> = group(&name, stations).into_iter().map(Scenario::station_host).collect();
    if !group.is_empty() {
        return Some(group);
    }
    unknown_name(&entry.at, format!("there is no host \"{name}\""), &name, known.names().chain(["each"]), cx);
    None
}

fn times(table: &Traffic, run: Run, cx: &mut Context) -> Option<(Time, Time)> {
    let Quantity(start) = table.start.get()?;
    if start >= run.duration {
        let what = format!("it would begin at {}, and the run ends at {}", show(start), show(run.duration));
        cx.impossible(&table.start.at, what, "begin earlier, or lengthen `duration`");
        return None;
    }
    if !table.stop.given {
        return Some((Time::ZERO + start, run.end()));
    }
    let Quantity(stop) = table.stop.get()?;
    if stop <= start {
        let what = format!("it would end at {}, and it begins at {}", show(stop), show(start));
        cx.impossible(&table.stop.at, what, "end after `start`");
        return None;
    }
    if stop > run.duration {
        let what = format!("it would end at {}, and the run ends at {}", show(stop), show(run.duration));
        cx.impossible(&table.stop.at, what, "delete this key to go on to the end of the run, or lengthen `duration`");
        return None;
    }
    Some((Time::ZERO + start, Time::ZERO + stop))
}

fn bulk(table: &Traffic, raw: &Tables, cx: &mut Context) -> Option<StreamKind> {
    let program = if table.program.given { table.program.get()? } else { Program::Own };
    if program == Program::Iperf3 && raw.world.get() == Some(World::Sim) {
        let remedy = "delete this key, or set `world = \"lab\"`";
        cx.impossible(&table.program.at, "the simulator cannot run iperf3", remedy);
        return None;
    }
    let size = if table.size.given { Some(size(table, (Bytes::new(1), MOST_DATA), "it must end", cx)?) } else { None };
    if let (Program::Iperf3, Some(at)) = (program, table.send_buffer.given_at()) {
        cx.impossible(at, "iperf3 sets the buffers of both ends alike", "delete this key, or `program`");
        return None;
    }
    let send_buffer = if table.send_buffer.given {
        let why = "two segments at least, and what a host has memory for";
        Some(cx.within(&plain(&table.send_buffer), (Bytes::new(4_608), Bytes::new(1 << 30)), show, why)?)
    } else {
        None
    };
    Some(StreamKind::Bulk { size, program, send_buffer })
}

fn probe(table: &Traffic, run: Run, cx: &mut Context) -> Option<StreamKind> {
    let why = "sequence number and time stamp; what fits one packet of 1500 B";
    let size = if table.size.given { size(table, (LEAST_PROBE, MOST_PROBE), why, cx) } else { Some(Bytes::new(64)) };
    // More often, a probe is a load and not a probe any more.
    let every = every(table, (Span::from_micros(100), run.duration), Span::from_millis(20), cx);
    Some(StreamKind::Probe { size: size?, every: every? })
}

fn fetch(table: &Traffic, run: Run, cx: &mut Context) -> Option<StreamKind> {
    let why = "something, and what one run can carry";
    let size = if table.size.given {
        size(table, (Bytes::new(1), Bytes::new(1_000_000_000)), why, cx)
    } else {
        Some(Bytes::new(100_000))
    };
    let every = every(table, (Span::from_millis(1), run.duration), Span::from_secs(1), cx);
    Some(StreamKind::Fetch { size: size?, every: every? })
}

fn udp(table: &Traffic, raw: &Tables, cx: &mut Context) -> Option<StreamKind> {
    if raw.world.get() == Some(World::Lab) && !table.rate.given {
        let remedy = "give the traffic a `rate`, or set `world = \"sim\"`";
        cx.impossible(&table.kind.at, "in the lab no regulator paces UDP", remedy);
        return None;
    }
    let why = "what fits one packet of 1500 B";
    let size = if table.size.given { size(table, (LEAST_PROBE, MOST_PROBE), why, cx) } else { Some(MOST_PROBE) };
    let rate = if table.rate.given { Some(bounds::rate(&table.rate, cx)?) } else { None };
    let periodic = if table.periodic.given { table.periodic.get()? } else { false };
    if let (Some(at), None) = (table.periodic.given_at(), rate) {
        cx.impossible(at, "`periodic` means nothing without `rate`", "give the traffic a `rate`, or delete this key");
        return None;
    }
    Some(StreamKind::Udp { size: size?, rate, periodic })
}

/// UDP traffic without a rate of its own needs one from the law.
pub(crate) fn regulated(raw: &Tables, streams: Option<&[Stream]>, laws: Option<&[SetUp]>, cx: &mut Context) {
    let (Some(streams), Some(laws)) = (streams, laws) else { return };
    let greedy = |stream: &Stream| matches!(stream.kind, StreamKind::Udp { rate: None, .. });
    let Some(law) = laws.iter().find(|law| law.regulator().is_none()) else { return };
    if streams.iter().any(greedy) {
        let what = format!("under the law \"{}\" nothing says how fast UDP traffic goes", law.name);
        cx.impossible(&raw.traffic.at, what, "give the traffic a `rate`, or every law a `regulator`");
    }
}

fn size(table: &Traffic, bounds: (Bytes, Bytes), why: &str, cx: &mut Context) -> Option<Bytes> {
    cx.within(&plain(&table.size), bounds, show, why)
}

fn every(table: &Traffic, bounds: (Span, Span), default: Span, cx: &mut Context) -> Option<Span> {
    if !table.every.given {
        return Some(default);
    }
    span(&table.every, bounds, "an interval is not zero and recurs within the run", cx)
}

fn flows(table: &Traffic, cx: &mut Context) -> Option<usize> {
    if !table.flows.given {
        return Some(1);
    }
    let why = "one connection at least; each is a socket and a buffer";
    let flows = cx.within(&table.flows, (1, MOST_FLOWS), |n| n.to_string(), why)?;
    usize::try_from(flows).ok()
}
