//! Other BSSs on the channel: what they offer, and when.

use super::table::{Interval, Load, Neighbour};
use super::{Air, channels, phy, rates};
use crate::bounds::{self, Run, name, plain, span, unique};
use crate::problem::Kind;
use crate::quantity::show;
use crate::read::{Context, Entry, Quantity};
use crate::tables::Tables;
use crate::traffic::table::Class;
use lasthop_radio::AccessClass;
use lasthop_radio::wifi::{self, Mcs, Mode, Phy};
use lasthop_units::{Bytes, Span, Time};

/// 9.2.3: an MSDU holds at most 2304 octets, 8 of them the LLC header. At the other end: an IPv4 and a UDP header.
const NEIGHBOUR_PACKET: (Bytes, Bytes) = (Bytes::new(28), Bytes::new(2_296));

/// What a neighbour sends, and how.
pub(super) struct Loaded {
    pub phy: Phy,
    pub mcs: Mcs,
    pub class: AccessClass,
    pub rts_threshold: Option<Bytes>,
    pub packet: Bytes,
    pub load: wifi::Load,
    pub active: Vec<(Time, Time)>,
}

pub(super) fn neighbours(
    raw: &Tables,
    (air, used): (Air, Option<&[u8]>),
    guard_interval: Option<Span>,
    run: Run,
    cx: &mut Context,
) -> Option<Vec<Loaded>> {
    let tables = raw.neighbour.get()?;
    unique(&tables.iter().map(|table| &table.name).collect::<Vec<_>>(), "neighbour", cx);
    let neighbours: Vec<Option<Loaded>> =
        tables.iter().map(|table| neighbour(table, (air, used), guard_interval, run, cx)).collect();
    neighbours.into_iter().collect()
}

fn neighbour(
    table: &Neighbour,
    (air, used): (Air, Option<&[u8]>),
    guard_interval: Option<Span>,
    run: Run,
    cx: &mut Context,
) -> Option<Loaded> {
    name(&table.name, &[], cx);
    if let (Some(own), Some(used)) = (table.channel.get(), used) {
        channels::heard(&table.channel.at, own, used, cx);
    }
    let air = own_air(table, air, cx)?;
    let guard_interval = if table.guard_interval.given {
        super::guard_interval(&table.guard_interval, air.standard, cx)
    } else {
        if table.standard.given { Some(phy::LONG) } else { guard_interval }
    };
    let rts_threshold = super::rts_threshold(&table.rts_threshold, cx);
    let mcs = rates::fixed(&table.nss, &table.mcs, &table.rate, &table.place, air, false, cx);
    let packet = cx.within(&plain(&table.packet), NEIGHBOUR_PACKET, show, "an MSDU, IEEE 802.11-2020, 9.2.3");
    let load = load(table, mcs.and_then(|mcs| air.mode(mcs)), cx);
    let active = active(table, run, cx);
    let phy = Phy {
        standard: phy::radio_standard(air.standard, air.channel?, air.rate_set),
        width: phy::radio_width(air.width?)?,
        guard_interval: phy::radio_guard_interval(guard_interval?)?,
    };
    let Class(class) = table.class.get()?;
    let (mcs, packet, load, active, rts_threshold) = (mcs?, packet?, load?, active?, rts_threshold?);
    Some(Loaded { phy, mcs, class, rts_threshold, packet, load, active })
}

/// Standard and width of a neighbour: the scenario's where it has none of its own.
fn own_air(table: &Neighbour, air: Air, cx: &mut Context) -> Option<Air> {
    let standard = if table.standard.given { table.standard.get()? } else { air.standard };
    let width = match (table.width.given, table.standard.given) {
        (true, _) => super::width(&table.width, standard, cx),
        (false, true) => standard.widths().first().copied(),
        (false, false) => air.width,
    };
    if let (Some(channel), Some(width), true) = (air.channel, width, table.standard.given)
        && !phy::channels(standard, width).contains(&u64::from(channel))
    {
        let what = format!("{standard} at {} has no channel {channel}, which is the scenario's", show(width));
        cx.impossible(&table.standard.at, what, "write a standard of the same band, or another channel for all");
        return None;
    }
    Some(Air { standard, width, ..air })
}

fn load(table: &Neighbour, mode: Option<Mode>, cx: &mut Context) -> Option<wifi::Load> {
    let Load::Rate(rate) = table.load.get()? else { return Some(wifi::Load::Saturated) };
    let entry = Entry { value: Some(Quantity(rate)), at: table.load.at.clone(), given: true };
    let rate = bounds::rate(&entry, cx)?;
    if let Some(mode) = mode.filter(|mode| rate > mode.rate()) {
        let what = format!("{} is more than its PHY rate of {}", show(rate), show(mode.rate()));
        cx.impossible(&entry.at, what, "write \"saturated\" for a neighbour that always has a frame, or offer less");
        return None;
    }
    Some(wifi::Load::Offered(rate))
}

/// When a neighbour is active, spelled out for the run.
fn active(table: &Neighbour, run: Run, cx: &mut Context) -> Option<Vec<(Time, Time)>> {
    let periodic = [&table.period, &table.active_for, &table.first];
    if table.active.given {
        for at in periodic.into_iter().filter_map(Entry::given_at) {
            let what = "`active` and `period` contradict each other";
            cx.impossible(at, what, "keep one of them");
        }
        return intervals(&table.active, run, cx);
    }
    if table.period.given {
        return periods(table, run, cx);
    }
    for at in periodic.into_iter().filter_map(Entry::given_at) {
        let what = format!("`{}` means nothing without `period`", at.name());
        cx.impossible(at, what, "add `period`, or delete this key");
    }
    Some(vec![(Time::ZERO, run.end())])
}

fn intervals(entry: &Entry<Vec<Interval>>, run: Run, cx: &mut Context) -> Option<Vec<(Time, Time)>> {
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

fn periods(table: &Neighbour, run: Run, cx: &mut Context) -> Option<Vec<(Time, Time)>> {
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
