//! The JSON Schema and the reference page of scenario files, from the declarations that read them.

use crate::quantity::DIMENSIONS;
use crate::tables::Tables;
use lasthop_laws::param::{Kind, prose};
use lasthop_laws::{Place, registry};
use schemars::generate::SchemaSettings;
use serde_json::Value as Json;
use std::fmt::Write;

/// The JSON Schema (draft 7, which TOML editors understand) of a scenario file.
pub fn json_schema() -> Json {
    let mut schema = SchemaSettings::draft07().into_generator().into_root_schema_for::<Tables>().to_value();
    schema["title"] = "Lasthop scenario".into();
    schema
}

/// The reference page of scenario files, in Markdown.
pub fn reference_page() -> String {
    let schema = json_schema();
    let mut page = INTRODUCTION.to_owned();
    page.push_str("\n## Units\n\n| quantity | units |\n|---|---|\n");
    for dimension in DIMENSIONS {
        let units: Vec<String> = dimension.units.iter().map(|(symbol, _)| format!("`{symbol}`")).collect();
        let name = short(dimension.name);
        let _ = writeln!(page, "| {name} | {} |", units.join(", "));
    }
    page.push_str("\n## The file\n\n");
    let tables = tables(&schema);
    table(&mut page, "", &schema, &tables);
    for Table { heading, name, .. } in tables.iter().filter(|table| !table.small && table.name != "Hop") {
        let _ = write!(page, "\n## {heading}\n\n");
        table(&mut page, name, &schema, &tables);
    }
    steps(&mut page, &schema, &tables);
    laws(&mut page);
    page.push_str("\n## Words\n");
    for name in words(&schema) {
        let words = &schema["definitions"][name];
        let _ = write!(page, "\n### {name}\n\n{}", text(&words["description"]));
        if name == "Measure" {
            page.push_str(" Names and meanings: [what a report holds](report.md#the-figures).\n");
            continue;
        }
        page.push_str("\n\n");
        for word in words["oneOf"].as_array().into_iter().flatten() {
            let _ = writeln!(page, "* `\"{}\"`: {}", text(&word["const"]), text(&word["description"]));
        }
    }
    page
}

/// Elements of lists with few keys, all required: one row each.
fn steps(page: &mut String, schema: &Json, tables: &[Table<'_>]) {
    page.push_str(STEPS_INTRODUCTION);
    for Table { heading, name, .. } in tables.iter().filter(|table| table.small) {
        let step = &schema["definitions"][name];
        let keys = step["properties"].as_object().into_iter().flatten();
        let keys: Vec<String> = keys.map(|(key, value)| format!("`{key}` ({})", value_of(value, tables))).collect();
        let _ = writeln!(page, "| {heading} | {} | {} |", keys.join(", "), text(&step["description"]));
    }
}

/// Every law that scenarios can name, then the parameters of those that have some.
fn laws(page: &mut String) {
    // A connection's receiver has what its sender's law is set to.
    let all = || registry::all().filter(|law| law.place != Place::Receiver);
    page.push_str("\n## Laws\n\n| law | at | meaning |\n|---|---|---|\n");
    for law in all() {
        let _ = writeln!(page, "| `{}` | `{}` | {} |", law.name, law.place, law.doc);
    }
    for law in all().filter(|law| !law.table.is_empty()) {
        let _ = writeln!(page, "\n### `{}` (at `{}`)\n", law.name, law.place);
        page.push_str("| parameter | value | default | meaning |\n|---|---|---|---|\n");
        for param in law.table {
            let (kind, default) = (short(param.kind.name()), param.default);
            let bound = param.bound.map(|bound| format!(", {}", bound.strip_prefix("from ").unwrap_or(bound)));
            let value = format!("{kind}{}", bound.unwrap_or_default());
            let _ = writeln!(page, "| `{}` | {value} | `{default}` | {} |", param.key, param.meaning());
        }
        for param in law.table {
            let Kind::Word(words) = param.kind else { continue };
            let _ = write!(page, "\n`{}`:\n\n", param.key);
            for (word, doc) in words.words {
                let _ = writeln!(page, "* `\"{word}\"`: {}", prose(doc));
            }
        }
    }
}

/// Definitions that have `part`: those of `first`, then all others by name.
fn defined<'a>(schema: &'a Json, part: &str, first: &[&'a str]) -> Vec<&'a str> {
    let all = schema["definitions"].as_object().into_iter().flatten().filter(|(_, schema)| schema.get(part).is_some());
    let others = all.map(|(name, _)| name.as_str()).filter(|name| !first.contains(name));
    first.iter().copied().chain(others).collect()
}

/// A table of a file.
struct Table<'a> {
    /// How files write it.
    heading: String,
    name: &'a str,
    /// All of its keys are required, and it is an element of a list: a row on the page.
    small: bool,
}

/// Tables in the order of the page. One that is not listed is headed as files write it.
fn tables(schema: &Json) -> Vec<Table<'_>> {
    let listed = TABLES.map(|(_, name)| name);
    let heading = |name: &str| match TABLES.iter().find(|(_, table)| *table == name) {
        Some((heading, _)) => (*heading).to_owned(),
        None => match place(schema, name, 0) {
            Some((path, true)) => format!("`[[{path}]]`"),
            Some((path, false)) => format!("`[{path}]`"),
            None => format!("`{name}`"),
        },
    };
    let table = |name| {
        let keys = &schema["definitions"][name];
        let small = keys["required"].as_array().map(Vec::len) == keys["properties"].as_object().map(|keys| keys.len());
        Table { heading: heading(name), name, small }
    };
    defined(schema, "properties", &listed).into_iter().map(table).collect()
}

/// Where files write a table, from their top, and whether it is one of a list.
fn place(schema: &Json, name: &str, depth: usize) -> Option<(String, bool)> {
    let is_it = |schema: &Json| referred(schema).is_some_and(|referred| referred == name);
    let key = |table: &Json| {
        let mut keys = table["properties"].as_object().into_iter().flatten();
        keys.find(|(_, own)| is_it(own) || is_it(&own["items"])).map(|(key, own)| (key.clone(), is_it(&own["items"])))
    };
    let within = |(other, table): (&String, &Json)| {
        let (key, list) = key(table)?;
        place(schema, other, depth + 1).map(|(path, _)| (format!("{path}.{key}"), list))
    };
    let others = || schema["definitions"].as_object().into_iter().flatten().filter(|_| depth < 3);
    key(schema).or_else(|| others().find_map(within))
}

fn words(schema: &Json) -> Vec<&str> {
    let wanted = defined(schema, "oneOf", &WORDS);
    // Values that may be written in several ways are no words.
    wanted.into_iter().filter(|name| schema["definitions"][name]["oneOf"][0].get("const").is_some()).collect()
}

/// The definition that a property refers to.
fn referred(schema: &Json) -> Option<&str> {
    let reference = schema["$ref"].as_str().or(schema["allOf"][0]["$ref"].as_str());
    reference.and_then(|reference| reference.rsplit('/').next())
}

/// Tables that come first, under headings that tell where they stand.
const TABLES: [(&str, &str); 31] = [
    ("`[wire]`", "Wire"),
    ("`[backhaul]`", "Backhaul"),
    ("`[[link]]`", "Link"),
    ("`[hop]`", "Hop"),
    ("`[hop.wifi]`", "WifiHop"),
    ("`[[hop.wifi.link]]`", "WifiLink"),
    ("`[hop.wifi.mesh]`", "Mesh"),
    ("`[hop.wired]`", "WiredHop"),
    ("`[hop.cell]`", "CellHop"),
    ("`[[hop.cell.background]]`", "CellBackground"),
    ("`[hop.trace]`", "TraceHop"),
    ("`queue`", "Queue"),
    ("`[[access-point]]`", "AccessPoint"),
    ("`[[station]]`", "Station"),
    ("`fading`", "Fading"),
    ("`[[neighbour]]`", "Neighbour"),
    ("`[[traffic]]`", "Traffic"),
    ("`[laws.\"NAME\"]`", "Law"),
    ("`agent`", "Agent"),
    ("`regulator`", "Regulator"),
    ("`[[laws.\"NAME\".part]]`", "Part"),
    ("`[[host]]`", "Host"),
    ("`[[route]]`", "Route"),
    ("`changes`", "RateStep"),
    ("`mcs-trace`", "McsStep"),
    ("`snr-trace`", "SnrStep"),
    ("`cqi-trace`", "CqiStep"),
    ("`rsrp-trace`", "RsrpStep"),
    ("`walk`", "WalkPoint"),
    ("`path`", "PathPoint"),
    ("`active`", "Interval"),
];

/// Tables that share rows with another one: the page names that table in place of the rows.
const LIKE: [(&str, (&str, &str)); 10] = [
    ("Backhaul", ("`[wire]`", "Wire")),
    ("Link", ("`[wire]`", "Wire")),
    ("Link", ("`[backhaul]`", "Backhaul")),
    ("WiredHop", ("`[wire]`", "Wire")),
    ("WiredHop", ("`[backhaul]`", "Backhaul")),
    ("TraceHop", ("`[backhaul]`", "Backhaul")),
    ("WifiLink", ("`[[station]]`", "Station")),
    ("AccessPoint", ("`[[station]]`", "Station")),
    ("Neighbour", ("`[hop.wifi]`", "WifiHop")),
    ("Neighbour", ("`[[station]]`", "Station")),
];

/// Tables of a law at one of these places: its parameters stand with the law.
const LAWS: [(&str, &[Place]); 2] = [("Agent", &[Place::AccessPoint]), ("Regulator", &[Place::Proxy, Place::Station])];

/// Words that come first.
const WORDS: [&str; 10] = [
    "World",
    "Standard",
    "QueueKind",
    "Class",
    "RateControl",
    "FadingKind",
    "Reach",
    "TrafficKind",
    "Program",
    "Measure",
];

const INTRODUCTION: &str = "\
# Scenario files

<!-- Generated from crates/scenario/src. After a change there: LASTHOP_BLESS=1 cargo test -p lasthop-scenario -->

A scenario is one TOML file. It is checked whole before anything starts: every problem is reported
with its line, what stands there and what would be right. `scenarios/first-light.toml` is a
complete example. Editors that know TOML complete and check a scenario whose first line is

```toml
#:schema scenario.schema.json
```

A value with a dimension is text with its unit: `\"20 ms\"`. Errors are a bare number there, and the
ambiguous units `m` (minutes or milliseconds), `Mb` (megabits or megabytes) and `KB` (1000 or 1024
bytes). Counts and probabilities are bare numbers.

The warm-up is part of the duration: with `duration = \"10 s\"` and `warm-up = \"2 s\"` figures cover
the last eight seconds.
";

const STEPS_INTRODUCTION: &str = "
## Small tables

Elements of these lists, whose keys are all required. Times count from the begin of the run; traces,
walks and paths begin at `\"0 s\"`. In place of a list, traces and `walk` take the path of a CSV file,
relative to the scenario, with the columns given at the key.

| list of | keys | meaning |
|---|---|---|
";

fn text(value: &Json) -> &str {
    value.as_str().unwrap_or_default()
}

/// The rows of a table: what must be there first, both parts in the order of the alphabet, as JSON objects are.
fn rows(schema: &Json, tables: &[Table<'_>]) -> Vec<(String, String)> {
    let required = |key: &str| schema["required"].as_array().is_some_and(|keys| keys.iter().any(|k| k == key));
    let properties = || schema["properties"].as_object().into_iter().flatten();
    let (must, may) = (properties().filter(|(key, _)| required(key)), properties().filter(|(key, _)| !required(key)));
    let row = |(key, property): (&String, &Json)| {
        let meaning = text(&property["description"]).replace("\n\n", "<br>").replace('|', "\\|");
        // A default that depends on other keys ends the text.
        let (meaning, told) = match meaning.rsplit_once(" Default: ") {
            Some((meaning, default)) => (meaning.to_owned(), default.trim_end_matches('.').to_owned()),
            None => (meaning, String::new()),
        };
        let default = match &property["default"] {
            _ if required(key) => "required".to_owned(),
            Json::Null => told,
            default => format!("`{default}`"),
        };
        (key.clone(), format!("| `{key}` | {} | {default} | {meaning} |\n", value_of(property, tables)))
    };
    must.chain(may).map(row).collect()
}

/// A table's description, then one row a key.
fn table(page: &mut String, name: &str, schema: &Json, tables: &[Table<'_>]) {
    let own = if name.is_empty() { schema } else { &schema["definitions"][name] };
    page.push_str(text(&own["description"]));
    let mut rows = rows(own, tables);
    for (_, (heading, base)) in LIKE.iter().filter(|(like, _)| *like == name) {
        let base = self::rows(&schema["definitions"][base], tables);
        let (same, differing): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| base.contains(row));
        let same: Vec<String> = same.into_iter().map(|(key, _)| format!("`{key}`")).collect();
        let anchor: String = heading.chars().filter(|c| c.is_alphanumeric() || *c == '-').collect();
        let _ = write!(page, " As of [{heading}](#{anchor}): {}.", same.join(", "));
        rows = differing;
    }
    if let Some((_, places)) = LAWS.iter().find(|(table, _)| *table == name) {
        let is_parameter = |key: &str| places.iter().any(|place| place.laws().any(|law| law.param(key).is_some()));
        rows.retain(|(key, _)| !is_parameter(key));
        let laws = places.iter().flat_map(|place| place.laws());
        let links: Vec<String> = laws.map(|law| format!("[`{0}`](#{0}-at-{1})", law.name, law.place)).collect();
        let _ = write!(page, " Parameters: {}.", links.join(", "));
    }
    page.push_str("\n\n| key | value | default | meaning |\n|---|---|---|---|\n");
    page.extend(rows.into_iter().map(|(_, row)| row));
}

/// A kind of value in a word or two.
fn short(kind: &str) -> &str {
    match kind.strip_prefix("a ").or(kind.strip_prefix("an ")).unwrap_or(kind) {
        "list of steps, the first at 0 s, or the path of a CSV file" => "[steps](#small-tables) or CSV file",
        "the path of a packet-delivery trace" => "path",
        "amount of data" => "data",
        "number of packets" => "packets",
        "ratio in decibels" => "decibels",
        "power in dBm" => "dBm",
        "number or a list of numbers" => "number or list",
        "law of senders, or a table of them by host" => "word or table",
        "true or false" => "boolean",
        "whole number, zero or more" => "integer",
        kind => kind,
    }
}

/// What stands behind a key, in a few words.
fn value_of(property: &Json, tables: &[Table<'_>]) -> String {
    if let Some(title) = property["title"].as_str() {
        return short(title).to_owned();
    }
    let named = |schema: &Json| {
        let name = referred(schema);
        let table = name.and_then(|name| tables.iter().find(|table| table.name == name));
        match (table, name) {
            (Some(Table { heading, small: true, .. }), _) => format!("[{heading}](#small-tables)"),
            (Some(Table { heading, .. }), _) => heading.clone(),
            (None, Some(name)) => format!("[word](#{})", name.to_lowercase()),
            (None, None) => match (schema["title"].as_str(), text(&schema["type"])) {
                (Some(title), _) => short(title).to_owned(),
                (None, "string") => "text".to_owned(),
                (None, other) => other.to_owned(),
            },
        }
    };
    match text(&property["type"]) {
        "array" => format!("list: {}", named(&property["items"])),
        "object" => format!("tables: {}", named(&property["additionalProperties"])),
        _ => named(property),
    }
}
