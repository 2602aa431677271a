//! PHY rates: which exist, fixed or from a trace.

use super::table::{RateSet, Standard, WifiStation};
use super::{Air, phy};
use crate::over_time;
use crate::problem::Kind;
use crate::quantity::{either, show};
use crate::read::{At, Context, Entry, Quantity};
use lasthop_radio::wifi::Mcs;
use lasthop_units::{Rate, Time, count};

/// A PHY rate from the keys that name one: `rate` for a and g, `nss` and `mcs` for n, ac and ax.
pub(super) fn fixed(
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
        for at in [nss, mcs].into_iter().filter_map(Entry::given_at) {
            no_mcs(at, air, cx);
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
    modulation(mcs.get()?, streams?, air, &mcs.at, cx).filter(|_| !rate.given)
}

fn no_mcs(at: &At, air: Air, cx: &mut Context) {
    let what = format!("{} has neither MCS nor spatial streams", air.standard);
    cx.impossible(at, what, "write the data rate, such as `rate = \"54 Mbit/s\"`");
}

fn legacy(entry: &Entry<Quantity<Rate>>, air: Air, cx: &mut Context) -> Option<Mcs> {
    let Quantity(rate) = entry.get()?;
    // Without a width, or without a channel, nothing can be said.
    let (_, _) = (air.width?, air.channel?);
    let mcs = Mcs::legacy(rate).filter(|mcs| air.mode(*mcs).is_some());
    if mcs.is_none() {
        let rates: Vec<String> = phy::legacy_rates(air.rate_set).map(|rate| format!("\"{}\"", show(rate))).collect();
        let what = format!("{} has no rate of {}", air.standard, show(rate));
        let mut remedy = format!("write {} ({})", either(&rates), air.standard.clause());
        if air.standard == Standard::G && phy::legacy_rates(RateSet::Erp).any(|known| known == rate) {
            remedy += ", or add `rate-set = \"erp\"` to `[hop.wifi]`";
        }
        cx.impossible(&entry.at, what, remedy);
    }
    mcs
}

pub(super) fn streams(nss: &Entry<u64>, air: Air, cx: &mut Context) -> Option<u64> {
    if !nss.given {
        return Some(1);
    }
    let (most, _) = air.standard.most();
    let why = match air.standard {
        Standard::Ac | Standard::Ax => "the radio model ends at 4; the standard goes on to 8",
        _ => air.standard.clause(),
    };
    cx.within(nss, (1, most), |n| n.to_string(), why)
}

/// An MCS that its standard has with these streams and this width.
fn modulation(mcs: u64, nss: u64, air: Air, at: &At, cx: &mut Context) -> Option<Mcs> {
    let (standard, (_, most)) = (air.standard, air.standard.most());
    if mcs > most {
        let what = format!("MCS {mcs} is outside 0 to {most} ({standard}, {})", standard.clause());
        let remedy = match standard {
            Standard::N if mcs < 32 => {
                format!("MCS indices count for each stream here: write `nss = {}`, `mcs = {}`", mcs / 8 + 1, mcs % 8)
            }
            _ => format!("write a value from 0 to {most}"),
        };
        cx.problem(Kind::OutOfRange, at, what, remedy);
        return None;
    }
    let (index, nss) = (u8::try_from(mcs).ok()?, u8::try_from(nss).ok()?);
    let exists = |index: u8| air.mode(Mcs::new(index, nss)).is_some();
    // Without a width, or without a channel, nothing can be said.
    let (width, _) = (air.width?, air.channel?);
    if !exists(index) {
        let what = format!("{standard} has no MCS {mcs} with {} at {}", count(nss, "spatial stream"), show(width));
        let fitting: Vec<String> = (0..=11).filter(|index| exists(*index)).map(|index| index.to_string()).collect();
        cx.impossible(at, what, format!("write {} ({})", either(&fitting), standard.clause()));
        return None;
    }
    Some(Mcs::new(index, nss))
}

/// An MCS over time.
pub(super) fn trace_steps(station: &WifiStation, air: Air, cx: &mut Context) -> Option<Vec<(Time, Mcs)>> {
    let entry = &station.mcs_trace;
    if !air.standard.has_mcs() {
        no_mcs(&entry.at, air, cx);
        return None;
    }
    for at in [station.mcs.given_at(), station.rate.given_at()].into_iter().flatten() {
        let what = format!("`{}` and `mcs-trace` contradict each other", at.name());
        cx.impossible(at, what, "keep one of them");
    }
    let nss = streams(&station.nss, air, cx);
    over_time::steps(&entry.get()?, |mcs, cx| modulation(mcs.get()?, nss?, air, &mcs.at, cx), cx)
}
