//! Radio conditions of a station, and what chooses its rates.

use super::table::{Fading, FadingKind, RateControl, WifiHop, WifiLink, WifiStation};
use super::{Air, rates};
use crate::bounds::{LONGEST_RUN, plain, span};
use crate::over_time;
use crate::quantity::{Decibels, Metres, Watts, show};
use crate::read::{At, Context, Entry, Quantity};
use lasthop_radio::wifi::{self, Db, Dbm, Link, PathLoss, RateChoice, Snr};
use lasthop_units::{Span, Time};

/// Beyond, nothing arrives or everything does.
const MOST_DB: Decibels = Decibels(100_000);
/// A rice factor of 60 dB is a line of sight without any fading.
const MOST_K: f64 = 1e6;
/// The default of `k`: indoors with a line of sight.
const USUAL_K: f64 = 4.0;

/// Path loss and noise of the whole BSS.
pub(super) fn path_loss(hop: &WifiHop, cx: &mut Context) -> Option<PathLoss> {
    let why = "a radio without a licence; ITU-R P.525 at the lower end";
    let power = cx.within(&plain(&hop.tx_power), (Watts(1_000), Watts(10_000_000_000)), show, why);
    let why = "free space at the lower end, several floors at the upper";
    let exponent = cx.within(&hop.path_loss_exponent, (1.5, 6.0), |n| n.to_string(), why);
    let why = "a receiver adds some noise";
    let noise = cx.within(&plain(&hop.noise_figure), (Decibels(0), Decibels(30_000)), show, why);
    let milliwatts = power?.0 as f64 / 1e6;
    Some(PathLoss { exponent: exponent?, power: Dbm(10.0 * milliwatts.log10()), noise_figure: db(noise?) })
}

fn db(ratio: Decibels) -> Db {
    Db(ratio.0 as f64 / 1_000.0)
}

/// `Some(None)`: losses are `mpdu-error-rate` and nothing else.
pub(super) fn link(table: &WifiStation, loss: Option<PathLoss>, cx: &mut Context) -> Option<Option<Link>> {
    let ways = [
        (&table.snr.at, table.snr.given, "snr"),
        (&table.snr_trace.at, table.snr_trace.given, "snr-trace"),
        (&table.distance.at, table.distance.given, "distance"),
        (&table.walk.at, table.walk.given, "walk"),
    ];
    let mut given = ways.iter().filter(|way| way.1);
    let Some((_, _, first)) = given.next() else {
        if table.fading.given {
            let remedy = "add `snr`, `snr-trace`, `distance` or `walk`, or delete this key";
            cx.impossible(&table.fading.at, "`fading` means nothing without a signal-to-noise ratio", remedy);
            return None;
        }
        return Some(None);
    };
    if let Some((at, _, second)) = given.next() {
        cx.impossible(at, format!("`{first}` and `{second}` contradict each other"), "keep one of them");
        return None;
    }
    let snr = match *first {
        "snr" => ratio(&table.snr, cx).map(|ratio| Snr::Trace(vec![(Time::ZERO, ratio)])),
        "snr-trace" => over_time::steps(&table.snr_trace.get()?, ratio, cx).map(Snr::Trace),
        "distance" => metres(&table.distance, cx).and_then(|metres| at_distance(loss, vec![(Time::ZERO, metres)])),
        _ => over_time::steps(&table.walk.get()?, metres, cx).and_then(|walk| at_distance(loss, walk)),
    };
    let fading = if table.fading.given { Some(fading(&table.fading.get()?, cx)?) } else { None };
    Some(Some(Link { snr: snr?, fading }))
}

/// The conditions that the table of a single link tells; `Some(None)` if it tells none.
pub(super) fn of_link(table: &WifiLink, cx: &mut Context) -> Option<Option<Link>> {
    let snr = match (table.snr.given, table.snr_trace.given) {
        (false, false) => return Some(None),
        (true, true) => {
            cx.impossible(&table.snr_trace.at, "`snr` and `snr-trace` contradict each other", "keep one of them");
            return None;
        }
        (true, false) => ratio(&table.snr, cx).map(|ratio| Snr::Trace(vec![(Time::ZERO, ratio)])),
        (false, true) => over_time::steps(&table.snr_trace.get()?, ratio, cx).map(Snr::Trace),
    };
    Some(Some(Link { snr: snr?, fading: None }))
}

fn at_distance(loss: Option<PathLoss>, walk: Vec<(Time, f64)>) -> Option<Snr> {
    Some(Snr::Distance { loss: loss?, walk })
}

fn ratio(entry: &Entry<Quantity<Decibels>>, cx: &mut Context) -> Option<Db> {
    let why = "below, nothing arrives; above, nothing is lost";
    cx.within(&plain(entry), (Decibels(0), MOST_DB), show, why).map(db)
}

fn metres(entry: &Entry<Quantity<Metres>>, cx: &mut Context) -> Option<f64> {
    let why = "path loss is counted from one metre on";
    let metres = cx.within(&plain(entry), (Metres(1_000), Metres(10_000_000)), show, why)?;
    Some(metres.0 as f64 / 1_000.0)
}

pub(super) fn fading(table: &Fading, cx: &mut Context) -> Option<wifi::Fading> {
    let why = "a frame sees one gain; a longer one than a run is no fading";
    let coherence = span(&table.coherence, (Span::from_millis(1), LONGEST_RUN), why, cx);
    let k = match (table.kind.get()?, table.k.given) {
        (FadingKind::Rayleigh, true) => {
            cx.impossible(&table.k.at, "rayleigh fading has no direct path", "delete this key, or write \"rician\"");
            None
        }
        (FadingKind::Rayleigh, false) => Some(0.0),
        (FadingKind::Rician, false) => Some(USUAL_K),
        (FadingKind::Rician, true) => {
            cx.within(&table.k, (0.0, MOST_K), |k| k.to_string(), "the direct path over all others, a plain ratio")
        }
    };
    Some(wifi::Fading { coherence: coherence?, k: k? })
}

/// A rate that somebody chooses while the run goes on.
pub(super) fn controlled(table: &WifiStation, control: RateControl, air: Air, cx: &mut Context) -> Option<RateChoice> {
    let mut legal = true;
    let mut forbid = |at: &At, given: bool, what: String, remedy: &str| {
        if given {
            cx.impossible(at, what, remedy);
            legal = false;
        }
    };
    let against = |key: &str| format!("`{key}` and the rate control \"{control}\" contradict each other");
    forbid(&table.mcs.at, table.mcs.given, against("mcs"), "keep one of them");
    forbid(&table.mcs_trace.at, table.mcs_trace.given, against("mcs-trace"), "keep one of them");
    forbid(&table.rate.at, table.rate.given, against("rate"), "keep one of them");
    let has_snr = table.snr.given || table.snr_trace.given || table.distance.given || table.walk.given;
    let blind = control == RateControl::Ideal && !has_snr;
    let what = "an ideal rate control goes by the signal-to-noise ratio, and there is none".to_owned();
    forbid(&table.rate_control.at, blind, what, "add `snr`, `snr-trace`, `distance` or `walk`");
    let lone = matches!(control, RateControl::Arf | RateControl::Aarf);
    let what = format!("{control} goes by frames of one MPDU, and {} aggregates", air.standard);
    forbid(&table.rate_control.at, lone && air.standard.has_mcs(), what, "write \"minstrel\", or use 802.11a or g");
    let nss = u8::try_from(rates::streams(&table.nss, air, cx)?).ok()?;
    legal.then_some(match control {
        RateControl::Ideal => RateChoice::Ideal { nss },
        RateControl::Arf => RateChoice::Arf,
        RateControl::Aarf => RateChoice::Aarf,
        _ => RateChoice::Minstrel { nss },
    })
}
