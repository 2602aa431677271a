//! docs/reference/logs.md lists the fields of the agents' logs, no more and no fewer: each log's test shows here what it writes.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The page's parts, each of which lists the fields of one kind of line.
pub(crate) const AP_INTERVAL: &str = "`lasthop ap --log`: an interval";
pub(crate) const AP_OPENED: &str = "`lasthop ap --log`: a flow is there";
pub(crate) const AP_GONE: &str = "`lasthop ap --log`: a flow has gone";
pub(crate) const AP_DRIVER: &str = "`lasthop ap --log`: the driver";
pub(crate) const AP_MISSED: &str = "`lasthop ap --log`: events missed";
pub(crate) const PROXY: &str = "`lasthop proxy --log`";
pub(crate) const PROXY_CELL: &str = "`lasthop proxy --log`: a cell";
pub(crate) const HOST: &str = "`lasthop host --log`";
pub(crate) const STATION: &str = "`lasthop station --log`";
pub(crate) const STATION_CELL: &str = "`lasthop station --log`: a cell";
pub(crate) const OLSR: &str = "`lasthop olsr --json`";
pub(crate) const RELAY: &str = "`lasthop relay --log`";
pub(crate) const MONITOR: &str = "`lasthop monitor --json` and `--parquet`";

/// Fails unless a part of the page lists exactly the fields of this line, which must have something in every list.
pub(crate) fn lists_exactly(part: &str, line: &Value) {
    let page = page();
    let listed: BTreeSet<&str> = page[part].keys().map(String::as_str).collect();
    let mut written = BTreeSet::new();
    fields("", line, &mut written);
    let written: BTreeSet<&str> = written.iter().map(String::as_str).collect();
    let (missing, idle): (Vec<_>, Vec<_>) =
        (written.difference(&listed).collect(), listed.difference(&written).collect());
    assert!(missing.is_empty(), "docs/reference/logs.md, {part}, does not list {missing:?}");
    assert!(idle.is_empty(), "docs/reference/logs.md, {part}, lists {idle:?}, which are never written");
}

/// The lines of a log.
pub(crate) fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("a log");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The paths of all fields: `a.b` of an object in `a`, `a[].b` of objects in a list.
fn fields(at: &str, value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => object.iter().for_each(|(name, value)| {
            let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
            fields(&path, value, into);
            into.insert(path);
        }),
        Value::Array(values) => {
            assert!(!values.is_empty(), "an empty list shows no fields: {at}");
            values.iter().for_each(|value| fields(&format!("{at}[]"), value, into));
        }
        _ => {}
    }
}

/// Fields of a part, each with its unit and its meaning.
type Part = BTreeMap<String, (String, String)>;

/// Fields by part. A row may list several; a line `- as in [PART](…) under `prefix`: …` takes them from another part.
fn page() -> BTreeMap<String, Part> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/logs.md");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let sections = || text.split("\n## ").skip(1).map(|part| part.split_once('\n').expect("a heading and text"));
    let mut own = BTreeMap::new();
    for (name, text) in sections() {
        let mut rows = Part::new();
        for row in text.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |")) {
            let cells: Vec<&str> = row.split(" | ").collect();
            let [fields, unit, meaning] = cells[..] else { panic!("{name}: three cells, not `{row}`") };
            let fields = fields.strip_suffix('`').unwrap_or_else(|| panic!("{name}: no field in `{row}`"));
            for field in fields.split("`, `") {
                let before = rows.insert(field.to_owned(), (unit.to_owned(), meaning.to_owned()));
                assert!(before.is_none(), "{name}: {field} stands there twice");
            }
        }
        own.insert(name.to_owned(), rows);
    }
    let mut parts = own.clone();
    for (name, text) in sections() {
        for line in text.lines().filter_map(|line| line.strip_prefix("- as in [")) {
            let (of, rest) = line.split_once("](").unwrap_or_else(|| panic!("{name}: no link in `{line}`"));
            let (head, fields) = rest.split_once(": ").unwrap_or_else(|| panic!("{name}: no fields in `{line}`"));
            let prefix = head.split_once(" under `").map_or(String::new(), |(_, object)| object.replace('`', "."));
            for field in fields.split(", ").map(|field| field.trim_matches('`')) {
                let same = own[of].get(field).unwrap_or_else(|| panic!("{name}: {of} has no {field}"));
                let before = parts.get_mut(name).and_then(|rows| rows.insert(format!("{prefix}{field}"), same.clone()));
                assert!(before.is_none(), "{name}: {prefix}{field} stands there twice");
            }
        }
    }
    parts
}

#[test]
fn the_page_documents_each_line_and_each_field_with_its_unit() {
    let page = page();
    let kinds = BTreeSet::from([
        AP_INTERVAL,
        AP_OPENED,
        AP_GONE,
        AP_DRIVER,
        AP_MISSED,
        PROXY,
        PROXY_CELL,
        HOST,
        STATION,
        STATION_CELL,
        OLSR,
        RELAY,
        MONITOR,
    ]);
    assert_eq!(page.keys().map(String::as_str).collect::<BTreeSet<_>>(), kinds);
    const ENDINGS: [(&str, &str); 7] = [
        ("_ns", "ns"),
        ("_us", "µs"),
        ("_s", "s"),
        ("_bytes", "octets"),
        ("_bps", "bit/s"),
        ("_pps", "packets/s"),
        ("_packets", "packets"),
    ];
    for (field, (unit, meaning)) in page.values().flatten() {
        assert!(!unit.trim().is_empty() && meaning.trim().len() > 3, "{field}: `{unit}`, `{meaning}`");
        let name = field.trim_end_matches("_p50").trim_end_matches("_p99");
        let said = ENDINGS.iter().find(|(ending, _)| name.ends_with(ending));
        assert!(said.is_none_or(|(_, told)| unit == told), "{field} in {unit}");
    }
}

#[test]
fn the_reports_page_documents_each_counter_of_an_account() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/report.md");
    let page = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let ap = crate::ap::Summary {
        method: crate::service::Method::Tcx,
        shadow: false,
        tally: Default::default(),
        counters: Default::default(),
        log_error: None,
    };
    let accounts = [
        serde_json::to_value(ap),
        serde_json::to_value(crate::host::Summary::new(crate::host::Way::Within)),
        serde_json::to_value(crate::pbe::SenderSummary::default()),
        serde_json::to_value(crate::pbe::ReceiverSummary::default()),
    ];
    let mut named = BTreeSet::new();
    accounts.into_iter().for_each(|account| fields("", &account.expect("a record"), &mut named));
    assert!(named.contains("evicted") && named.contains("most_terminals") && named.contains("promised"), "{named:?}");
    for name in &named {
        assert!(page.contains(&format!("`{name}`")), "the counter `{name}` is not explained");
    }
}
