//! The JSON Schema and the reference page of scenario files, from the declarations that read them.

use crate::quantity::DIMENSIONS;
use crate::raw;
use lasthop_laws::param::{Kind, prose};
use lasthop_laws::registry;
use schemars::generate::SchemaSettings;
use serde_json::Value as Json;
use std::fmt::Write;

/// The JSON Schema (draft 7, which TOML editors understand) of a scenario file.
pub fn json_schema() -> Json {
    let mut schema = SchemaSettings::draft07().into_generator().into_root_schema_for::<raw::Scenario>().to_value();
    schema["title"] = "Lasthop scenario".into();
    schema
}

/// The reference page of scenario files, in Markdown.
pub fn reference_page() -> String {
    let schema = json_schema();
    let mut page = INTRODUCTION.to_owned();
    page.push_str("\n## Units\n\n| quantity | units | example |\n| --- | --- | --- |\n");
    for dimension in DIMENSIONS {
        let units: Vec<String> = dimension.units.iter().map(|(symbol, _)| format!("`{symbol}`")).collect();
        let name = dimension.name.trim_start_matches("a ").trim_start_matches("an ");
        let _ = writeln!(page, "| {name} | {} | `\"{}\"` |", units.join(", "), dimension.example);
    }
    page.push_str("\n## The file\n\n");
    let tables = tables(&schema);
    table(&mut page, &schema, &tables);
    for (heading, name) in &tables {
        let _ = write!(page, "\n## {heading}\n\n");
        table(&mut page, &schema["definitions"][name], &tables);
    }
    laws(&mut page);
    page.push_str("\n## Words\n");
    for name in words(&schema) {
        let words = &schema["definitions"][name];
        let _ = write!(page, "\n### {name}\n\n{}\n\n", text(&words["description"]));
        for word in words["oneOf"].as_array().into_iter().flatten() {
            let _ = writeln!(page, "* `\"{}\"`: {}", text(&word["const"]), text(&word["description"]));
        }
    }
    page
}

/// Every law of the registry with its parameters.
fn laws(page: &mut String) {
    page.push_str("\n## Laws\n\nWhat each may be set to; a word's choices are listed below its parameter.\n");
    for law in registry::all() {
        let _ = write!(page, "\n### `{}` (at `{}`)\n\n{}\n", law.name, law.place, law.doc);
        if law.table.is_empty() {
            continue;
        }
        page.push_str("\n| parameter | value | default | must be | meaning |\n| --- | --- | --- | --- | --- |\n");
        for param in law.table {
            let (kind, default, bound) = (param.kind.name(), param.default, param.bound.unwrap_or_default());
            let _ = writeln!(page, "| `{}` | {kind} | `{default}` | {bound} | {} |", param.key, param.meaning());
        }
        for param in law.table {
            let Kind::Word(words) = param.kind else { continue };
            let _ = write!(page, "\n`{}`: {}\n\n", param.key, words.meaning());
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

/// Tables by heading and name, in the order of the page. One that is not listed is headed as files write it at their top.
fn tables(schema: &Json) -> Vec<(String, &str)> {
    let listed = TABLES.map(|(_, name)| name);
    let heading = |name: &str| match TABLES.iter().find(|(_, table)| *table == name) {
        Some((heading, _)) => (*heading).to_owned(),
        None => schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .find_map(|(key, property)| {
                let is_it = |schema: &Json| referred(schema).is_some_and(|referred| referred == name);
                let list = is_it(&property["items"]);
                (list || is_it(property)).then(|| if list { format!("`[[{key}]]`") } else { format!("`[{key}]`") })
            })
            .unwrap_or_else(|| format!("`{name}`")),
    };
    defined(schema, "properties", &listed).into_iter().map(|name| (heading(name), name)).collect()
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
const TABLES: [(&str, &str); 28] = [
    ("`[wire]`", "Wire"),
    ("`[backhaul]`", "Backhaul"),
    ("`changes` of a backhaul or link", "RateStep"),
    ("`[[host]]`", "Host"),
    ("`[[link]]`", "Link"),
    ("`[[route]]`", "Route"),
    ("`[hop]`", "Hop"),
    ("`[hop.wifi]`", "WifiHop"),
    ("`[hop.wired]`", "WiredHop"),
    ("`[hop.cell]`", "CellHop"),
    ("`[[hop.cell.background]]`", "CellBackground"),
    ("`[hop.trace]`", "TraceHop"),
    ("`queue`", "Queue"),
    ("`[[access-point]]`", "AccessPoint"),
    ("`[[station]]`", "Station"),
    ("Steps of `mcs-trace`", "McsStep"),
    ("Steps of `snr-trace`", "SnrStep"),
    ("Points of `walk`", "WalkPoint"),
    ("Points of `path`", "PathPoint"),
    ("Steps of `cqi-trace`", "CqiStep"),
    ("`fading`", "Fading"),
    ("`[[neighbour]]`", "Neighbour"),
    ("Intervals of `active`", "Interval"),
    ("`[[traffic]]`", "Traffic"),
    ("`[laws.\"NAME\"]`", "Law"),
    ("`agent`", "Agent"),
    ("`regulator`", "Regulator"),
    ("`[[laws.\"NAME\".part]]`", "Part"),
];

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

<!-- Generated from crates/scenario/src/raw. After a change there: LASTHOP_BLESS=1 cargo test -p lasthop-scenario -->

A scenario is one TOML file. It is checked whole before anything starts, and everything that is wrong is reported at
once, each problem with its line, what stands there and what would be right. `scenarios/first-light.toml` is a complete
example. Editors that know TOML complete and check a scenario through `scenarios/scenario.schema.json` when its first line
names it:

```toml
#:schema scenario.schema.json
```

A value with a dimension is text with its unit: `\"20 ms\"`. A bare number is an error there, and so is a unit that two
trades read differently: `m` (minutes or milliseconds), `Mb` (megabits or megabytes), `KB` (1000 or 1024 bytes). What has no
dimension, such as a count or a probability, is a bare number.

The warm-up is part of the duration: a scenario with `duration = \"10 s\"` and `warm-up = \"2 s\"` runs for ten seconds, and
its figures cover the last eight.
";

fn text(value: &Json) -> &str {
    value.as_str().unwrap_or_default()
}

/// A table's description, then one row a key.
fn table(page: &mut String, schema: &Json, tables: &[(String, &str)]) {
    let _ = write!(
        page,
        "{}\n\n| key | value | default | meaning |\n| --- | --- | --- | --- |\n",
        text(&schema["description"])
    );
    let required = |key: &str| schema["required"].as_array().is_some_and(|keys| keys.iter().any(|k| k == key));
    // What must be there comes first; both parts are in the order of the alphabet, as JSON objects are.
    let properties = || schema["properties"].as_object().into_iter().flatten();
    let (must, may) = (properties().filter(|(key, _)| required(key)), properties().filter(|(key, _)| !required(key)));
    for (key, property) in must.chain(may) {
        let default = match &property["default"] {
            _ if required(key) => "required".to_owned(),
            Json::Null => String::new(),
            default => format!("`{default}`"),
        };
        let meaning = text(&property["description"]).replace("\n\n", "<br>").replace('|', "\\|");
        let _ = writeln!(page, "| `{key}` | {} | {default} | {meaning} |", value_of(property, tables));
    }
}

/// What stands behind a key, in a few words.
fn value_of(property: &Json, tables: &[(String, &str)]) -> String {
    if let Some(title) = property["title"].as_str() {
        let example = property["examples"][0].as_str().filter(|_| property["default"].is_null());
        let example = example.map(|example| format!(", `\"{example}\"`"));
        return format!("{title}{}", example.unwrap_or_default());
    }
    let named = |schema: &Json| {
        let name = referred(schema).map(str::to_owned);
        let heading = name.as_ref().and_then(|name| tables.iter().find(|(_, table)| table == name));
        match (heading, &name) {
            (Some((heading, _)), _) => heading.to_string(),
            (None, Some(name)) => format!("[a word](#{})", name.to_lowercase()),
            (None, None) => match text(&schema["type"]) {
                "string" => "text".to_owned(),
                "integer" => "a whole number".to_owned(),
                "boolean" => "true or false".to_owned(),
                other => format!("a {other}"),
            },
        }
    };
    match text(&property["type"]) {
        "array" => format!("a list: {}", named(&property["items"])),
        "object" => format!("tables: {}", named(&property["additionalProperties"])),
        _ => named(property),
    }
}
