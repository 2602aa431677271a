//! An 802.11 BSS: what its standard knows, and what stations and neighbours may be on it.

use super::{LONGEST_RUN, Run, laws, name, packets, plain, span, unique};
use crate::problem::Kind;
use crate::quantity::{Hertz, either, show};
use crate::read::{At, Context, Entry, Quantity};
use crate::trace::{self, Place};
use crate::{Scenario, Standard, phy, raw};
use lasthop_radio::AccessClass;
use lasthop_radio::wifi::{
    Background, Beacons, GuardInterval, Load, Mcs, Mode, NodeParams, Params, Plan, Profile, RateChoice, Role,
};
use lasthop_signals::Node;
use lasthop_units::{Bytes, Rate, Span, Time};
use std::sync::Arc;

/// 9.4.1.3: the beacon interval is a 16-bit count of time units.
const TIME_UNIT: Span = Span::from_nanos(1_024_000);
const MOST_TIME_UNITS: u64 = 65_535;
/// What the radio model holds: the access point, its stations, and two nodes a neighbour.
const MOST_NODES: usize = 1024;
/// The bitmap of a compressed BlockAck (9.3.1.8).
const BLOCK_ACK_WINDOW: u64 = 64;
/// 9.2.3: an MSDU holds at most 2304 octets, 8 of them the LLC header. At the other end: an IPv4 and a UDP header.
const NEIGHBOUR_PACKET: (Bytes, Bytes) = (Bytes::new(28), Bytes::new(2_296));
/// Above this a packet is as good as never received.
const MOST_ERRORS: f64 = 0.99;

/// What rates depend on. `None` is a value that is itself wrong: what depends on it is not checked then.
#[derive(Clone, Copy)]
struct Air {
    standard: Standard,
    channel: Option<u8>,
    width: Option<Hertz>,
}

impl Air {
    /// The mode of an MCS; the guard interval has no say in which exist.
    fn mode(self, mcs: Mcs) -> Option<Mode> {
        let width = phy::radio_width(self.width?)?;
        let standard = phy::radio_standard(self.standard, self.channel?);
        Mode::data(standard, width, GuardInterval::Long, mcs, Profile::Standard)
    }
}

pub(super) fn hop(hop: &raw::WifiHop, raw: &raw::Scenario, run: Run, cx: &mut Context) -> Option<Plan> {
    let standard = hop.standard.get();
    let width = standard.and_then(|standard| width(&hop.width, standard, cx));
    let guard_interval = standard.and_then(|standard| guard_interval(&hop.guard_interval, standard, cx));
    let channel = standard.and_then(|standard| channel(&hop.channel, standard, width, cx));
    let max_ampdu = standard.and_then(|standard| max_ampdu(&hop.max_ampdu, standard, cx));
    let beacon_interval = beacon_interval(&hop.beacon_interval, cx);
    let why = "IEEE 802.11-2020, dot11ShortRetryLimit; the radio model ends at 127";
    let retry_limit = cx.within(&hop.retry_limit, (1, 127), |n| n.to_string(), why);
    let queue = hop.queue.get().and_then(|queue| laws::queue(&queue, false, cx));
    let uplink_queue = packets(&hop.uplink_queue, cx);
    // Rates mean nothing without a standard.
    let air = Air { standard: standard?, channel, width };
    let stations = stations(raw, air, cx);
    let neighbours = neighbours(raw, air, run, cx);

    room_for_all(raw, cx)?;
    let guard_interval = if guard_interval? == phy::SHORT { GuardInterval::Short } else { GuardInterval::Long };
    let mut nodes = vec![NodeParams::new(Role::Ap, Mcs::new(0, 1))];
    nodes.extend(stations?);
    let mut background = Vec::new();
    for neighbour in neighbours? {
        let from = Node(u16::try_from(nodes.len()).ok()?);
        let node = NodeParams { role: Role::Neighbour, rate: RateChoice::Fixed(neighbour.mcs), mpdu_error: 0.0 };
        nodes.extend([node.clone(), node]);
        background.push(Background {
            from,
            to: Node(from.0.checked_add(1)?),
            class: AccessClass::BestEffort,
            packet: neighbour.packet,
            load: neighbour.load,
            active: neighbour.active,
        });
    }
    let standard = phy::radio_standard(air.standard, channel?);
    let params = Params {
        ap_queue: queue?,
        station_queue_packets: uplink_queue?,
        retry_limit: u8::try_from(retry_limit?).ok()?,
        max_ampdu_mpdus: u16::from(max_ampdu?),
        beacons: Some(Beacons { interval: beacon_interval?, ..Beacons::default() }),
        background,
        ..Params::new(standard, phy::radio_width(width?)?, guard_interval, nodes)
    };
    // The radio knows best what it can be built from. Whatever it refuses beyond the checks here has no line of its own.
    params.validate().map_err(|error| cx.impossible(&hop.place, error.to_string(), "change what it names")).ok()
}

fn room_for_all(raw: &raw::Scenario, cx: &mut Context) -> Option<()> {
    let (stations, neighbours) = (raw.station.get()?.len(), raw.neighbour.get()?.len());
    if 1 + stations + 2 * neighbours <= MOST_NODES {
        return Some(());
    }
    let what = format!("{stations} stations and {neighbours} neighbours are too many");
    let remedy =
        format!("the radio model holds {MOST_NODES} nodes: access point, stations, and two for each neighbour");
    cx.problem(Kind::OutOfRange, &raw.station.at, what, remedy);
    None
}

fn width(entry: &Entry<Quantity<Hertz>>, standard: Standard, cx: &mut Context) -> Option<Hertz> {
    let Quantity(width) = entry.get()?;
    among(entry, width, standard.widths(), &format!("{standard} is not {} wide", show(width)), standard, cx)
}

fn guard_interval(entry: &Entry<Quantity<Span>>, standard: Standard, cx: &mut Context) -> Option<Span> {
    let Quantity(interval) = entry.get()?;
    let what = format!("{standard} has no guard interval of {}", show(interval));
    among(entry, interval, standard.guard_intervals(), &what, standard, cx)
}

/// `value` if it is one of the standard's `choices`.
fn among<T: crate::quantity::Measured + PartialEq>(
    entry: &Entry<Quantity<T>>,
    value: T,
    choices: &[T],
    what: &str,
    standard: Standard,
    cx: &mut Context,
) -> Option<T> {
    if choices.contains(&value) {
        return Some(value);
    }
    let choices: Vec<String> = choices.iter().map(|choice| format!("\"{}\"", show(*choice))).collect();
    cx.impossible(&entry.at, what, format!("write {} ({})", either(&choices), standard.clause()));
    None
}

/// The primary channel, which decides the band.
fn channel(entry: &Entry<u64>, standard: Standard, width: Option<Hertz>, cx: &mut Context) -> Option<u8> {
    if !entry.given {
        return Some(if standard == Standard::G { 1 } else { 36 });
    }
    let (channel, width) = (entry.get()?, width?);
    let legal = phy::channels(standard, width);
    if !legal.contains(&channel) {
        let what = format!("channel {channel} cannot be the primary channel of {standard} at {}", show(width));
        let legal: Vec<String> = legal.iter().map(u64::to_string).collect();
        cx.impossible(&entry.at, what, format!("write {} (IEEE 802.11-2020, Annex E)", either(&legal)));
        return None;
    }
    u8::try_from(channel).ok()
}

fn max_ampdu(entry: &Entry<u64>, standard: Standard, cx: &mut Context) -> Option<u8> {
    if !standard.has_mcs() {
        if entry.given {
            cx.impossible(&entry.at, format!("{standard} does not aggregate"), "delete this key");
            return None;
        }
        return Some(1);
    }
    if !entry.given {
        return Some(64);
    }
    let why = "the bitmap of a BlockAck, IEEE 802.11-2020, 9.3.1.8";
    let most = cx.within(entry, (1, BLOCK_ACK_WINDOW), |n| n.to_string(), why)?;
    u8::try_from(most).ok()
}

fn beacon_interval(entry: &Entry<Quantity<Span>>, cx: &mut Context) -> Option<Span> {
    let why = "a 16-bit count of time units, IEEE 802.11-2020, 9.4.1.3";
    let interval = span(entry, (TIME_UNIT, TIME_UNIT * MOST_TIME_UNITS), why, cx)?;
    let rest = interval.as_nanos() % TIME_UNIT.as_nanos();
    if rest != 0 {
        let below = interval - Span::from_nanos(rest);
        let what = format!("{} is not a multiple of the time unit of 1024 us", show(interval));
        let remedy = format!("write \"{}\" or \"{}\" (9.4.1.3)", show(below), show(below + TIME_UNIT));
        cx.impossible(&entry.at, what, remedy);
        return None;
    }
    Some(interval)
}

fn stations(raw: &raw::Scenario, air: Air, cx: &mut Context) -> Option<Vec<NodeParams>> {
    let stations = raw.station.get()?;
    let nodes: Vec<Option<NodeParams>> = stations.iter().map(|table| station(table, air, cx)).collect();
    nodes.into_iter().collect()
}

fn station(table: &raw::Station, air: Air, cx: &mut Context) -> Option<NodeParams> {
    let why = "a probability; at 1 nothing would ever arrive";
    let mpdu_error = cx.within(&table.mpdu_error_rate, (0.0, MOST_ERRORS), |p| p.to_string(), why);
    let rate = if table.mcs_trace.given {
        trace_steps(table, air, cx).map(RateChoice::Trace)
    } else {
        fixed(&table.nss, &table.mcs, &table.rate, &table.place, air, true, cx).map(RateChoice::Fixed)
    };
    Some(NodeParams { role: Role::Station { ap: Scenario::AP }, rate: rate?, mpdu_error: mpdu_error? })
}

/// A PHY rate from the keys that name one: `rate` for a and g, `nss` and `mcs` for n and ac.
fn fixed(
    nss: &Entry<u64>,
    mcs: &Entry<u64>,
    rate: &Entry<Quantity<Rate>>,
    table: &At,
    air: Air,
    may_have_trace: bool,
    cx: &mut Context,
) -> Option<Mcs> {
    if !air.standard.has_mcs() {
        let mut legal = true;
        for entry in [nss, mcs].into_iter().filter(|entry| entry.given) {
            no_mcs(&entry.at, air, cx);
            legal = false;
        }
        if !rate.given {
            let remedy = "add the data rate, such as `rate = \"54 Mbit/s\"`";
            cx.problem(Kind::Missing, table, format!("a rate of {} is missing here", air.standard), remedy);
            return None;
        }
        return legacy(rate, air, cx).filter(|_| legal);
    }
    if rate.given {
        let what = format!("rates of {} are named by MCS", air.standard);
        cx.impossible(&rate.at, what, "delete this key, and write `mcs` and `nss`");
    }
    let streams = streams(nss, air, cx);
    if !mcs.given {
        let trace = if may_have_trace { " or `mcs-trace`" } else { "" };
        cx.problem(Kind::Missing, table, "an MCS is missing here", format!("add `mcs`, such as `mcs = 7`{trace}"));
        return None;
    }
    modulation(mcs.get()?, streams?, air, &place(&mcs.at, cx), cx).filter(|_| !rate.given)
}

fn no_mcs(at: &At, air: Air, cx: &mut Context) {
    let what = format!("{} has neither MCS nor spatial streams", air.standard);
    cx.impossible(at, what, "write the data rate, such as `rate = \"54 Mbit/s\"`");
}

fn legacy(entry: &Entry<Quantity<Rate>>, air: Air, cx: &mut Context) -> Option<Mcs> {
    let Quantity(rate) = entry.get()?;
    let mcs = Mcs::legacy(rate);
    if mcs.is_none() {
        let rates: Vec<String> = phy::LEGACY_MBIT.iter().map(|mbit| format!("\"{mbit} Mbit/s\"")).collect();
        let what = format!("{} has no rate of {}", air.standard, show(rate));
        cx.impossible(&entry.at, what, format!("write {} ({})", either(&rates), air.standard.clause()));
    }
    mcs
}

fn streams(nss: &Entry<u64>, air: Air, cx: &mut Context) -> Option<u64> {
    if !nss.given {
        return Some(1);
    }
    let (most, _) = air.standard.most();
    let why = match air.standard {
        Standard::Ac => "the radio model ends at 4; IEEE 802.11-2020, 21.5 goes on to 8",
        _ => air.standard.clause(),
    };
    cx.within(nss, (1, most), |n| n.to_string(), why)
}

/// An MCS that its standard has with these streams and this width.
fn modulation(mcs: u64, nss: u64, air: Air, place: &Place, cx: &mut Context) -> Option<Mcs> {
    let (standard, (_, most)) = (air.standard, air.standard.most());
    if mcs > most {
        let what = format!("MCS {mcs} is outside 0 to {most} ({standard}, {})", standard.clause());
        let remedy = match standard {
            Standard::N if mcs < 32 => {
                format!("MCS indices count for each stream here: write `nss = {}`, `mcs = {}`", mcs / 8 + 1, mcs % 8)
            }
            _ => format!("write a value from 0 to {most}"),
        };
        place.problem(Kind::OutOfRange, what, remedy, cx);
        return None;
    }
    let (index, nss) = (u8::try_from(mcs).ok()?, u8::try_from(nss).ok()?);
    let exists = |index: u8| air.mode(Mcs::new(index, nss)).is_some();
    // Without a width, or without a channel, nothing can be said.
    let (width, _) = (air.width?, air.channel?);
    if !exists(index) {
        let plural = if nss == 1 { "" } else { "s" };
        let what = format!("{standard} has no MCS {mcs} with {nss} spatial stream{plural} at {}", show(width));
        let fitting: Vec<String> = (0..=9).filter(|index| exists(*index)).map(|index| index.to_string()).collect();
        place.problem(Kind::Impossible, what, format!("write {} ({})", either(&fitting), standard.clause()), cx);
        return None;
    }
    Some(Mcs::new(index, nss))
}

fn place(at: &At, cx: &Context) -> Place {
    Place { source: Arc::clone(&cx.source), at: at.clone() }
}

/// An MCS trace: every step legal, the first at zero, times rising.
fn trace_steps(station: &raw::Station, air: Air, cx: &mut Context) -> Option<Vec<(Time, Mcs)>> {
    let entry = &station.mcs_trace;
    if !air.standard.has_mcs() {
        no_mcs(&entry.at, air, cx);
        return None;
    }
    for (at, key) in [(&station.mcs, "mcs"), (&station.rate.map(|_| 0), "rate")]
        .iter()
        .filter(|(e, _)| e.given)
        .map(|(e, key)| (&e.at, key))
    {
        let what = format!("`{key}` and `mcs-trace` contradict each other");
        cx.impossible(at, what, "keep one of them");
    }
    let nss = streams(&station.nss, air, cx);
    let lines = match entry.get()? {
        raw::McsTrace::File(path) => trace::read(&path, &entry.at, cx)?,
        raw::McsTrace::Steps(steps) => inline_lines(&steps, cx)?,
    };
    let Some(first) = lines.first() else {
        let remedy = "add a first step at 0 s";
        cx.problem(Kind::OutOfRange, &entry.at, "the trace is empty", remedy);
        return None;
    };
    if first.at != Time::ZERO {
        let what = format!("the trace begins at {}, and the run at 0 s", show(first.at.since(Time::ZERO)));
        first.place.problem(Kind::Impossible, what, "add a first step at 0 s", cx);
    }
    for pair in lines.windows(2).filter(|pair| pair[1].at <= pair[0].at) {
        let (earlier, later) = (pair[0].at.since(Time::ZERO), pair[1].at.since(Time::ZERO));
        let what =
            format!("the step at {} follows the one at {}: steps are sorted by time", show(later), show(earlier));
        pair[1].place.problem(Kind::Impossible, what, "put the steps in order, one at each time", cx);
    }
    let nss = nss?;
    let steps: Vec<Option<(Time, Mcs)>> =
        lines.iter().map(|line| modulation(line.mcs, nss, air, &line.place, cx).map(|mcs| (line.at, mcs))).collect();
    steps.into_iter().collect()
}

fn inline_lines(steps: &[raw::McsStep], cx: &mut Context) -> Option<Vec<trace::Line>> {
    let why = "no run lasts longer";
    let lines: Vec<Option<trace::Line>> = steps
        .iter()
        .map(|step| {
            let at = span(&step.at, (Span::ZERO, LONGEST_RUN), why, cx);
            let mcs = step.mcs.get();
            Some(trace::Line { at: Time::ZERO + at?, mcs: mcs?, place: place(&step.mcs.at, cx) })
        })
        .collect();
    lines.into_iter().collect()
}

/// What a neighbour sends, and how.
struct Neighbour {
    mcs: Mcs,
    packet: Bytes,
    load: Load,
    active: Vec<(Time, Time)>,
}

fn neighbours(raw: &raw::Scenario, air: Air, run: Run, cx: &mut Context) -> Option<Vec<Neighbour>> {
    let tables = raw.neighbour.get()?;
    unique(&tables.iter().map(|table| &table.name).collect::<Vec<_>>(), "neighbour", cx);
    let neighbours: Vec<Option<Neighbour>> = tables.iter().map(|table| neighbour(table, air, run, cx)).collect();
    neighbours.into_iter().collect()
}

fn neighbour(table: &raw::Neighbour, air: Air, run: Run, cx: &mut Context) -> Option<Neighbour> {
    name(&table.name, &[], cx);
    if let (Some(own), Some(ours)) = (table.channel.get(), air.channel)
        && own != u64::from(ours)
    {
        let what = format!("a neighbour on channel {own} is not heard on channel {ours}");
        let remedy = format!("write `channel = {ours}`, or delete the neighbour: it changes nothing");
        cx.impossible(&table.channel.at, what, remedy);
    }
    let mcs = fixed(&table.nss, &table.mcs, &table.rate, &table.place, air, false, cx);
    let packet = cx.within(&plain(&table.packet), NEIGHBOUR_PACKET, show, "an MSDU, IEEE 802.11-2020, 9.2.3");
    let load = load(table, mcs.and_then(|mcs| air.mode(mcs)), cx);
    let active = active(table, run, cx);
    Some(Neighbour { mcs: mcs?, packet: packet?, load: load?, active: active? })
}

fn load(table: &raw::Neighbour, mode: Option<Mode>, cx: &mut Context) -> Option<Load> {
    let raw::Load::Rate(rate) = table.load.get()? else { return Some(Load::Saturated) };
    let entry = Entry { value: Some(Quantity(rate)), at: table.load.at.clone(), given: true };
    let rate = super::rate(&entry, cx)?;
    if let Some(mode) = mode.filter(|mode| rate > mode.rate()) {
        let what = format!("{} is more than its PHY rate of {}", show(rate), show(mode.rate()));
        cx.impossible(&entry.at, what, "write \"saturated\" for a neighbour that always has a frame, or offer less");
        return None;
    }
    Some(Load::Offered(rate))
}

/// When a neighbour is active, spelled out for the run.
fn active(table: &raw::Neighbour, run: Run, cx: &mut Context) -> Option<Vec<(Time, Time)>> {
    let periodic = [&table.period, &table.active_for, &table.first];
    if table.active.given {
        for entry in periodic.into_iter().filter(|entry| entry.given) {
            let what = "`active` and `period` contradict each other";
            cx.impossible(&entry.at, what, "keep one of them");
        }
        return intervals(&table.active, run, cx);
    }
    if table.period.given {
        return periods(table, run, cx);
    }
    for entry in periodic.into_iter().filter(|entry| entry.given) {
        let key = entry.at.key.rsplit('.').next().unwrap_or_default().to_owned();
        cx.impossible(&entry.at, format!("`{key}` means nothing without `period`"), "add `period`, or delete this key");
    }
    Some(vec![(Time::ZERO, run.end())])
}

fn intervals(entry: &Entry<Vec<raw::Interval>>, run: Run, cx: &mut Context) -> Option<Vec<(Time, Time)>> {
    let tables = entry.get()?;
    if tables.is_empty() {
        let remedy = "delete the neighbour, or this key if it is always active";
        cx.problem(Kind::OutOfRange, &entry.at, "a neighbour that is never active changes nothing", remedy);
        return None;
    }
    let mut intervals: Vec<(Time, Time)> = Vec::new();
    let mut legal = true;
    for table in &tables {
        let (Some(Quantity(from)), Some(Quantity(until))) = (table.from.get(), table.until.get()) else {
            legal = false;
            continue;
        };
        let earlier = intervals.last().map_or(Span::ZERO, |(_, until)| until.since(Time::ZERO));
        let refused = if until <= from {
            Some((
                &table.until,
                format!("it ends at {}, and it begins at {}", show(until), show(from)),
                "end after `from`",
            ))
        } else if from < earlier {
            let what = format!("it begins at {}, before the one before it has ended", show(from));
            Some((&table.from, what, "sort the intervals, and let them not overlap"))
        } else if until > run.duration {
            let what = format!("it ends at {}, and the run at {}", show(until), show(run.duration));
            Some((&table.until, what, "end within the run, or lengthen `duration`"))
        } else {
            None
        };
        if let Some((entry, what, remedy)) = refused {
            cx.impossible(&entry.at, what, remedy);
            legal = false;
        }
        intervals.push((Time::ZERO + from, Time::ZERO + until));
    }
    legal.then_some(intervals)
}

/// A shorter period would spell out more intervals than a run has use for; an A-MPDU alone lasts up to 5.484 ms.
const SHORTEST_PERIOD: Span = Span::from_millis(10);

fn periods(table: &raw::Neighbour, run: Run, cx: &mut Context) -> Option<Vec<(Time, Time)>> {
    let why = "shorter, it is one or two A-MPDUs; longer, it does not recur within the run";
    let period = span(&table.period, (SHORTEST_PERIOD, run.duration), why, cx);
    let first = if table.first.given {
        span(&table.first, (Span::ZERO, run.duration - Span::from_nanos(1)), "it begins within the run", cx)
    } else {
        Some(Span::ZERO)
    };
    if !table.active_for.given {
        let remedy = "add how long it is active in each period, such as `active-for = \"1 s\"`";
        cx.problem(Kind::Missing, &table.active_for.at, "`period` needs this key", remedy);
        return None;
    }
    let Quantity(active_for) = table.active_for.get()?;
    let (period, first) = (period?, first?);
    if active_for.is_zero() || active_for >= period {
        let what = format!("{} of every {} is no coming and going", show(active_for), show(period));
        cx.impossible(&table.active_for.at, what, "be active for more than nothing and less than the period");
        return None;
    }
    let begins = (0..).map(|n| Time::ZERO + first + period * n).take_while(|begin| *begin < run.end());
    Some(begins.map(|begin| (begin, (begin + active_for).min(run.end()))).collect())
}
