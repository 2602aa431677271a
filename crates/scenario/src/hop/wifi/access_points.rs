//! Further access points.

use crate::bounds::{name, unique};
use crate::group::group;
use crate::read::Context;
use crate::tables::Tables;

/// Names of the further access points, and where they can be.
pub(crate) fn access_points(raw: &Tables, cx: &mut Context) {
    let Some(tables) = raw.access_point.get() else { return };
    for table in &tables {
        name(&table.name, &["each", "server", "ap", "default", "law"], cx);
    }
    unique(&tables.iter().map(|table| &table.name).collect::<Vec<_>>(), "access point", cx);
    let stations: Vec<String> =
        raw.station.get().unwrap_or_default().iter().filter_map(|station| station.name.get()).collect();
    for table in &tables {
        if let Some(taken) = table.name.get()
            && (stations.contains(&taken) || !group(&taken, &stations).is_empty())
        {
            let what = format!("a station, or a group of them, is called \"{taken}\" too");
            cx.impossible(&table.name.at, what, "give each access point a name of its own");
        }
    }
}
