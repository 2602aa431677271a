//! A station of a cell: its channel, its carriers, what it decodes and when it changes its cell.

use super::power::Dbm;
use super::table::CellStation;
use super::{cqi, errors, layers, optional, tables};
use crate::bounds::{LONGEST_RUN, span};
use crate::over_time;
use crate::problem::Kind;
use crate::quantity::show;
use crate::read::{Context, Entry, Quantity};
use lasthop_radio::cell::mcs::{Cqi, Tables};
use lasthop_radio::cell::{self, DecoderErrors, Handovers, Link, MOST_CARRIERS, StationParams};
use lasthop_radio::wifi;
use lasthop_radio::wired;
use lasthop_units::{Span, Time};

/// How often the quality is looked at while the power changes: some terminals report as often.
const LOOK: Span = Span::from_millis(10);
/// What a terminal can report, and stronger ones beside an antenna (3GPP TS 36.133 table 9.1.4-1 ends at -44 dBm).
const POWERS: (Dbm, Dbm) = (Dbm(-156_000), Dbm(-30_000));
/// Above this share of misses nobody can know a cell.
const MOST_MISSED: f64 = 0.9;
/// A run has no more: one a second for a minute is a train between small cells.
const MOST_HANDOVERS: usize = 50;

pub(super) fn station(
    table: &CellStation,
    (uplink, link): (Option<wired::Params>, Option<Link>),
    carriers: Option<usize>,
    cx: &mut Context,
) -> Option<StationParams> {
    let errors = errors(&table.bit_error_rate, cx);
    let tables = tables(&table.modulation);
    let channel = channel(table, link, tables, cx);
    let layers = layers(&table.layers, cx);
    let most = carriers.unwrap_or(MOST_CARRIERS) as u64;
    let primary = optional(&table.primary_carrier, 1, (1, most), "the carriers of the hop", cx);
    let use_of = optional(&table.carriers, most, (1, most), "the carriers of the hop", cx);
    let missed = probability(&table.missed_dci, MOST_MISSED, "a probability; with more misses nobody knows a cell", cx);
    let spurious = probability(&table.false_dci, 1.0, "a probability", cx);
    let handovers = handovers(table, cx);
    let errors = errors?;
    Some(StationParams {
        channel: channel?.into_iter().map(|(at, cqi)| cell::Step { at, cqi, errors }).collect(),
        tables: tables?,
        layers: layers?,
        primary: primary? - 1,
        carriers: use_of?,
        uplink: uplink?,
        decodes: true,
        decoder: DecoderErrors { missed: missed?, spurious: spurious? },
        handovers: handovers?,
    })
}

/// The quality over time, from the one key that says what the channel is like.
fn channel(
    table: &CellStation,
    link: Option<Link>,
    tables: Option<Tables>,
    cx: &mut Context,
) -> Option<Vec<(Time, Cqi)>> {
    let ways = [table.cqi.given_at(), table.cqi_trace.given_at(), table.rsrp_trace.given_at()];
    let mut given = ways.into_iter().flatten();
    let (first, second) = (given.next(), given.next());
    if let (Some(first), Some(second)) = (first, second) {
        let remedy = format!("keep one of `{}` and `{}`", first.name(), second.name());
        cx.impossible(second, "two keys say what the channel is like", remedy);
        return None;
    }
    if table.cqi.given {
        return cqi(&table.cqi, 0, cx).map(|cqi| vec![(Time::ZERO, cqi)]);
    }
    if table.cqi_trace.given {
        return over_time::steps(&table.cqi_trace.get()?, |entry, cx| cqi(entry, 0, cx), cx);
    }
    if table.rsrp_trace.given {
        let points = over_time::steps(&table.rsrp_trace.get()?, power, cx)?;
        return Some(qualities(&points, link?, tables?));
    }
    let at = table.place.below("cqi");
    let remedy = "add `cqi = 12`, `cqi-trace` or `rsrp-trace`";
    cx.problem(Kind::Missing, &at, "nothing says what the channel is like", remedy);
    None
}

fn power(entry: &Entry<Dbm>, cx: &mut Context) -> Option<wifi::Dbm> {
    let why = "below, no terminal hears a cell; above, it stands on the antenna";
    cx.within(entry, POWERS, Dbm::show, why).map(|power| wifi::Dbm(power.0 as f64 / 1_000.0))
}

/// The qualities at powers that change evenly between points, the last of which holds.
fn qualities(points: &[(Time, wifi::Dbm)], link: Link, tables: Tables) -> Vec<(Time, Cqi)> {
    let mut steps: Vec<(Time, Cqi)> = Vec::new();
    let mut look = |at: Time, rsrp: wifi::Dbm| {
        let quality = link.cqi(rsrp, tables);
        if steps.last().is_none_or(|(_, last)| *last != quality) {
            steps.push((at, quality));
        }
    };
    for pair in points.windows(2) {
        let ((from, before), (until, after)) = (pair[0], pair[1]);
        let mut at = from;
        while at < until {
            let part = at.since(from).as_secs_f64() / until.since(from).as_secs_f64();
            look(at, wifi::Dbm(before.0 + (after.0 - before.0) * part));
            at += LOOK;
        }
    }
    if let Some((at, rsrp)) = points.last() {
        look(*at, *rsrp);
    }
    steps
}

fn probability(entry: &Entry<f64>, most: f64, why: &str, cx: &mut Context) -> Option<f64> {
    if !entry.given {
        return Some(0.0);
    }
    cx.within(entry, (0.0, most), |p| p.to_string(), why)
}

fn handovers(table: &CellStation, cx: &mut Context) -> Option<Handovers> {
    let interruption = if table.handover_interruption.given {
        let bounds = (Span::ZERO, Span::from_secs(10));
        span(&table.handover_interruption, bounds, "a connection that is gone for longer is set up anew", cx)?
    } else {
        Handovers::INTERRUPTION
    };
    if !table.handovers.given {
        if let Some(at) = table.handover_interruption.given_at() {
            cx.impossible(at, "no handover interrupts it", "add `handovers = [\"8 s\"]`, or delete this key");
        }
        return Some(Handovers { at: Vec::new(), interruption });
    }
    let entry = &table.handovers;
    let times = entry.get()?;
    if times.len() > MOST_HANDOVERS {
        let what = format!("{} handovers are outside 0 to {MOST_HANDOVERS} (each takes an RNTI)", times.len());
        cx.problem(Kind::OutOfRange, &entry.at, what, "write fewer, or use more stations");
        return None;
    }
    let mut free = Span::ZERO;
    let mut at = Vec::new();
    for Quantity(time) in times {
        let what = if time.is_zero() {
            "the run begins in a cell, and a handover at 0 s leaves none".to_owned()
        } else if time > LONGEST_RUN {
            format!("no run lasts until a handover at {}", show(time))
        } else if time <= free {
            format!("a handover at {} begins before the one before it is over, at {}", show(time), show(free))
        } else {
            free = time + interruption;
            at.push(Time::ZERO + time);
            continue;
        };
        cx.impossible(&entry.at, what, "put the times in order, above zero, each after the interruption of the last");
        return None;
    }
    Some(Handovers { at, interruption })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_radio::wifi::{Db, Dbm};

    #[test]
    fn a_walk_has_the_qualities_of_its_powers_in_turn() {
        let seconds = |n| Time::ZERO + Span::from_secs(n);
        let link = Link { noise_figure: Db(9.0), margin: Db(3.0) };
        let points = [(seconds(0), Dbm(-85.0)), (seconds(10), Dbm(-105.0)), (seconds(20), Dbm(-85.0))];
        let steps = qualities(&points, link, Tables::Qam64);
        let numbers: Vec<u8> = steps.iter().map(|(_, cqi)| cqi.number()).collect();
        assert_eq!(numbers, [15, 14, 13, 12, 11, 10, 11, 12, 13, 14, 15]);
        // The way back mirrors the way there.
        for n in 1..5 {
            let (left, came) = (steps[n].0, steps[11 - n].0);
            let apart = (left.since(Time::ZERO) + came.since(Time::ZERO)).as_secs_f64() - 20.0;
            assert!(apart.abs() < 0.021, "{left:?} and {came:?}");
        }
        assert_eq!(qualities(&points[..1], link, Tables::Qam64), [(seconds(0), link.cqi(Dbm(-85.0), Tables::Qam64))]);
    }
}
