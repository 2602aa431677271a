//! The last hop, and what each kind asks of the rest of a file.

use super::Hop;
use crate::bounds::Run;
use crate::problem::Kind;
use crate::quantity::either;
use crate::read::{Context, Keys as _};
use crate::tables::Tables;
use lasthop_radio::LastHop;

/// The hop of a file.
pub(crate) fn hop(raw: &Tables, run: Run, cx: &mut Context) -> Option<LastHop> {
    let hop = raw.hop.get()?;
    match hop.kinds()[..] {
        [_] => {}
        [] => {
            let all: Vec<String> = Hop::all().into_iter().map(|key| format!("`[hop.{key}]`")).collect();
            let remedy = format!("add the table {}", either(&all));
            cx.problem(Kind::Missing, &hop.place, "nothing says what the hop is", remedy);
            return None;
        }
        [first, second, ..] => {
            let remedy = format!("keep one of `[hop.{}]` and `[hop.{}]`", first.name(), second.name());
            cx.impossible(second, "a scenario has one last hop, and here are two", remedy);
            return None;
        }
    }
    let instead = hop.instead::<Tables>();
    for station in &raw.station.get().unwrap_or_default() {
        let wifi = station.wifi.given().into_iter().filter(|_| !hop.wifi.given).map(|at| (at, "a Wi-Fi hop", "wifi"));
        let cell = station.cell.given().into_iter().filter(|_| !hop.cell.given).map(|at| (at, "a cell", "cell"));
        for (at, other, key) in wifi.chain(cell) {
            let what = format!("this key is for a station of {other}");
            cx.impossible(at, what, format!("delete it, or use `[hop.{key}]`; {instead}"));
        }
    }
    if !hop.wifi.given && !hop.cell.given {
        without_radio(raw, hop.called::<Tables>(), cx);
    }
    hop.plan(raw, run, cx)
}

/// Refuses what else only Wi-Fi has, on a hop that is called so.
fn without_radio(raw: &Tables, hop: &str, cx: &mut Context) {
    if let Some(neighbour) = raw.neighbour.get().unwrap_or_default().first() {
        let what = format!("{hop} has no neighbours");
        cx.impossible(&neighbour.place, what, "delete this table, or use `[hop.wifi]`");
    }
    if let Some(table) = raw.access_point.get().unwrap_or_default().first() {
        let what = format!("{hop} has one access point");
        cx.impossible(&table.place, what, "delete this table, or use `[hop.wifi]`");
    }
}
