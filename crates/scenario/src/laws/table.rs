//! Laws as they are written: a name and parameters, both of the registry of laws.

use crate::problem::Kind;
use crate::quantity::either;
use crate::queue::Queue;
use crate::read::{At, Context, Entry, Need, Quantity, Read, Table, Value, inline_schema, table, word};
use lasthop_laws::param::{Kind as Sort, Param};
use lasthop_laws::registry::KERNEL;
use lasthop_laws::{Choice, Entry as Known, ParamError, Place, Settings, Value as Setting};
use lasthop_units::{Bytes, Rate, Span};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value as Json, json};
use std::borrow::Cow;
use toml::de::DeValue;

table! {
    /// What senders, access point, proxy and stations run.
    Law {
        /// Congestion control of TCP senders: a word, a table with `law` and parameters, or one by
        /// host, `{ default = "cubic", sofa = "bbr" }` (`server`, access points, stations).
        /// `"kernel:NAME"` is the lab kernel's. Default: as a `part` says.
        optional sender: Senders,
        /// The access point's queue under this law, in place of the hop's.
        optional queue: Queue,
        /// The agent on the access point, which rewrites receive windows; `{}` for its defaults.
        /// Default: none.
        optional agent: Agent,
        /// n, ac, ax: the edge proxy, which ends the servers' TCP connections and paces traffic to
        /// each station; `{}` for its defaults. Default: none.
        optional regulator: Regulator,
        /// Laws in full, for what the keys above cannot say.
        default("[]") part: Vec<Part>,
    }
}

/// A law that was chosen, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Picked {
    pub choice: Choice,
    pub at: At,
}

/// What TCP senders run.
#[derive(Clone, Debug)]
pub(crate) struct Senders {
    /// For all that are not named.
    pub default: Option<Picked>,
    /// By host, with the key's place.
    pub named: Vec<(String, Picked)>,
}

/// The agent on the access point.
#[derive(Clone, Debug)]
pub(crate) struct Agent(pub Picked);

/// The edge proxy, and how stations measure.
#[derive(Clone, Debug)]
pub(crate) struct Regulator {
    pub law: Picked,
    pub frames: Picked,
}

/// A law in full.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// Where it runs.
    pub at: Entry<Place>,
    /// On which hosts; all, if it is not given.
    pub on: Entry<Vec<String>>,
    pub law: Picked,
}

/// A law's name at `place`. For a sender that may be one of the kernel's.
fn named(place: Place, value: &Value<'_>, at: &At, cx: &mut Context) -> Option<Choice> {
    if place == Place::Sender
        && let Some(text) = value.get_ref().as_str()
        && let Some(kernel) = text.strip_prefix(KERNEL)
    {
        let legal = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        if (1..16).contains(&kernel.len()) && kernel.chars().all(legal) {
            return Some(Choice::kernel(kernel));
        }
        let what = format!("\"{text}\" is not the name of a kernel's congestion control");
        cx.problem(Kind::UnknownWord, at, what, "write `kernel:` and 1 to 15 letters, digits, `-` and `_`");
        return None;
    }
    // The last is no word that could be written, but what may stand there in the lab.
    let kernel = (place == Place::Sender).then_some(("kernel:NAME", None));
    let laws = place.laws().map(|law| (law.name, Some(law)));
    word(value, at, cx, laws.chain(kernel)).flatten().map(Choice::of)
}

/// What stands behind a parameter's key.
fn setting(param: &Param, value: &Value<'_>, at: &At, cx: &mut Context) -> Option<Setting> {
    match param.kind {
        Sort::Time => Quantity::<Span>::read(value, at, cx).map(|Quantity(time)| Setting::Time(time)),
        Sort::Rate => Quantity::<Rate>::read(value, at, cx).map(|Quantity(rate)| Setting::Rate(rate)),
        Sort::Bytes => Quantity::<Bytes>::read(value, at, cx).map(|Quantity(bytes)| Setting::Bytes(bytes)),
        Sort::Number => f64::read(value, at, cx).map(Setting::Number),
        Sort::Count => u64::read(value, at, cx).map(Setting::Count),
        Sort::Flag => bool::read(value, at, cx).map(Setting::Flag),
        Sort::Word(words) => word(value, at, cx, words.words.iter().map(|(word, _)| (*word, *word))).map(Setting::Word),
    }
}

/// Reads the law's name behind `key`, or takes `default`, and the parameters of the law. Keys that other laws of the place have are
/// refused: a gain that nothing looks at would be taken for one that was tried. An empty `key` is none.
fn law_of(
    table: &mut Table<'_>,
    place: Place,
    (key, default): (&str, Option<&str>),
    cx: &mut Context,
) -> Option<Picked> {
    let whole = table.place();
    let found = if key.is_empty() { None } else { table.value(key) };
    let choice = match (found, default) {
        (Some((value, at)), _) => named(place, value, &at, cx),
        (None, Some(name)) => Choice::named(place, name),
        (None, None) => {
            let all: Vec<String> = place.laws().map(|law| format!("\"{}\"", law.name)).collect();
            cx.problem(Kind::Missing, &whole.below(key), "this key is missing", format!("write {}", either(&all)));
            None
        }
    };
    let own: Option<&Known> = choice.as_ref().and_then(Choice::entry);
    let (mut settings, mut places, mut whole_is_read) = (Settings::default(), Vec::new(), true);
    for (param, laws) in place.parameters() {
        let Some((value, at)) = table.value(param.key) else { continue };
        let Some(choice) = &choice else { continue };
        if !own.is_some_and(|own| laws.contains(&own)) {
            let others: Vec<String> = laws.iter().map(|law| format!("`{key} = \"{}\"`", law.name)).collect();
            let what =
                format!("the {} \"{}\" has no `{}`", if key == "law" { "law" } else { key }, choice.name(), at.name());
            cx.impossible(&at, what, format!("delete this key, or write {}", either(&others)));
            continue;
        }
        match setting(param, value, &at, cx) {
            Some(value) => settings.set(param.key, value),
            None => whole_is_read = false,
        }
        places.push((param.key, at));
    }
    let choice = choice.filter(|_| whole_is_read)?.with(settings);
    if let Err(error) = choice.check() {
        let place_of = |key: &str| places.iter().find(|(known, _)| *known == key).map_or(&whole, |(_, at)| at);
        match &error {
            ParamError::OutOfBounds { key, got, bound } => {
                let remedy = format!("`{key}` must be {bound}");
                cx.problem(Kind::OutOfRange, place_of(key), format!("{got} is not {bound}"), remedy);
            }
            ParamError::WrongKind { key, got, wanted } => {
                let remedy = format!("`{key}` must be {wanted}");
                cx.problem(Kind::OutOfRange, place_of(key), format!("{got} is not {wanted}"), remedy);
            }
            other => cx.impossible(&whole, other.to_string(), "delete the key"),
        }
        return None;
    }
    Some(Picked { choice, at: whole })
}

/// A word, or a table with `law` and parameters.
fn sender(value: &Value<'_>, at: &At, cx: &mut Context) -> Option<Picked> {
    if let DeValue::Table(_) = value.get_ref() {
        let mut table = Table::open(value, at, cx)?;
        let law = law_of(&mut table, Place::Sender, ("law", None), cx);
        table.close(cx);
        return law;
    }
    named(Place::Sender, value, at, cx).map(|choice| Picked { choice, at: at.clone() })
}

impl Read for Senders {
    fn read(value: &Value<'_>, at: &At, cx: &mut Context) -> Option<Self> {
        let hosts = match value.get_ref() {
            DeValue::Table(table) if !table.contains_key("law") => table,
            _ => return sender(value, at, cx).map(|law| Senders { default: Some(law), named: Vec::new() }),
        };
        let mut entries: Vec<_> = hosts.iter().collect();
        entries.sort_by_key(|(name, _)| name.span().start);
        let read: Vec<Option<(String, Picked)>> = entries
            .into_iter()
            .map(|(name, value)| {
                let own = at.at(name.get_ref(), value.span());
                sender(value, &own, cx).map(|law| (name.get_ref().to_string(), law))
            })
            .collect();
        let mut named = read.into_iter().collect::<Option<Vec<_>>>()?;
        let default = named.iter().position(|(name, _)| name == "default").map(|place| named.remove(place).1);
        Some(Senders { default, named })
    }
}

impl Read for Agent {
    fn read(value: &Value<'_>, at: &At, cx: &mut Context) -> Option<Self> {
        let mut table = Table::open(value, at, cx)?;
        let law = law_of(&mut table, Place::AccessPoint, ("law", Some(DEFAULT_AGENT)), cx);
        table.close(cx);
        law.map(Agent)
    }
}

impl Read for Regulator {
    fn read(value: &Value<'_>, at: &At, cx: &mut Context) -> Option<Self> {
        let mut table = Table::open(value, at, cx)?;
        let law = law_of(&mut table, Place::Proxy, ("controller", Some(DEFAULT_REGULATOR)), cx);
        let frames = law_of(&mut table, Place::Station, ("", Some(FRAMES)), cx);
        table.close(cx);
        Some(Regulator { law: law?, frames: frames? })
    }
}

/// A place that laws are for.
fn place(value: &Value<'_>, at: &At, cx: &mut Context) -> Option<Place> {
    word(value, at, cx, places().map(|place| (place.name(), place)))
}

fn places() -> impl Iterator<Item = Place> + Clone {
    // A connection's receiver has what its sender's law is set to.
    Place::ALL.into_iter().filter(|place| *place != Place::Receiver && place.laws().next().is_some())
}

impl Read for Part {
    fn read(value: &Value<'_>, at: &At, cx: &mut Context) -> Option<Self> {
        let mut table = Table::open(value, at, cx)?;
        let place = match table.value("at") {
            Some((value, at)) => Entry { value: place(value, &at, cx), at, given: true },
            None => {
                let places: Vec<String> = places().map(|place| format!("\"{place}\"")).collect();
                let remedy = format!("write {}", either(&places));
                cx.problem(Kind::Missing, &at.below("at"), "this key is missing", remedy);
                Entry { value: None, at: at.clone(), given: false }
            }
        };
        let on = table.take("on", Need::Optional, cx);
        let at_place = place.get()?;
        let law = law_of(&mut table, at_place, ("law", None), cx);
        table.close(cx);
        Some(Part { at: place, on, law: law? })
    }
}

/// The laws where none is named.
const DEFAULT_AGENT: &str = "oal";
const DEFAULT_REGULATOR: &str = "aggregation";
const FRAMES: &str = "frames";

/// The schema of one parameter's values.
fn schema_of(kind: Sort, generator: &mut SchemaGenerator) -> Json {
    match kind {
        Sort::Time => Quantity::<Span>::json_schema(generator).to_value(),
        Sort::Rate => Quantity::<Rate>::json_schema(generator).to_value(),
        Sort::Bytes => Quantity::<Bytes>::json_schema(generator).to_value(),
        Sort::Number => json!({ "type": "number" }),
        Sort::Count => json!({ "type": "integer", "minimum": 0 }),
        Sort::Flag => json!({ "type": "boolean" }),
        Sort::Word(words) => {
            let all =
                words.words.iter().map(|(word, doc)| json!({ "const": word, "description": crate::read::prose(doc) }));
            json!({ "title": "a word", "oneOf": all.collect::<Vec<_>>() })
        }
    }
}

/// A default as JSON has it.
fn default_of(param: &Param) -> Json {
    match param.kind.parse(param.default) {
        Ok(Setting::Number(number)) => number.into(),
        Ok(Setting::Count(count)) => count.into(),
        Ok(Setting::Flag(flag)) => flag.into(),
        _ => param.default.into(),
    }
}

/// The keys of the laws that can run at `place`. What several laws have is described once for each.
fn parameters(place: Place, generator: &mut SchemaGenerator) -> Map<String, Json> {
    let several = place.laws().count() > 1;
    let mut keys = Map::new();
    for (param, laws) in place.parameters() {
        let mut schema = schema_of(param.kind, generator);
        let own: Vec<&Param> = laws.iter().filter_map(|law| law.param(param.key)).collect();
        let alike = own.iter().all(|other| other.default == param.default && other.doc == param.doc);
        let describe = |(law, param): (&&Known, &&Param)| {
            let default = if alike { String::new() } else { format!(" Default `{}`.", param.default) };
            format!("`{}`: {}{default}", law.name, param.meaning())
        };
        let text = match (several, alike && laws.len() > 1) {
            (false, _) | (true, true) => param.meaning(),
            _ => laws.iter().zip(&own).map(describe).collect::<Vec<_>>().join(" "),
        };
        if let Json::Object(object) = &mut schema {
            object.insert("description".into(), text.into());
            if alike {
                object.insert("default".into(), default_of(param));
            }
        }
        keys.insert(param.key.into(), schema);
    }
    keys
}

/// The key that names the law.
fn names(place: Place, default: Option<&str>) -> Json {
    let words: Vec<Json> = place.laws().map(|law| json!({ "const": law.name, "description": law.doc })).collect();
    let mut schema = json!({ "title": "a word", "description": "The law.", "oneOf": words });
    if let (Some(default), Json::Object(object)) = (default, &mut schema) {
        object.insert("default".into(), default.into());
    }
    schema
}

fn object(doc: &str, properties: Map<String, Json>, required: &[&str]) -> Schema {
    json_schema!({
        "type": "object",
        "description": doc,
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

impl JsonSchema for Agent {
    fn schema_name() -> Cow<'static, str> {
        "Agent".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut keys = parameters(Place::AccessPoint, generator);
        keys.insert("law".into(), names(Place::AccessPoint, Some(DEFAULT_AGENT)));
        object("The agent on the access point: its law and the parameters of it.", keys, &[])
    }
}

impl JsonSchema for Regulator {
    fn schema_name() -> Cow<'static, str> {
        "Regulator".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut keys = parameters(Place::Proxy, generator);
        keys.append(&mut parameters(Place::Station, generator));
        keys.insert("controller".into(), names(Place::Proxy, Some(DEFAULT_REGULATOR)));
        let doc = "The edge proxy: its law, and parameters of it and of the stations' reports. `lasthop proxy` and its \
                   stations have an `interval` of 500 ms under either law.";
        object(doc, keys, &[])
    }
}

/// A sender's law with its parameters, as a word or a table.
fn sender_schema(generator: &mut SchemaGenerator) -> Json {
    let mut keys = parameters(Place::Sender, generator);
    keys.insert("law".into(), names(Place::Sender, None));
    let mut words = names(Place::Sender, None)["oneOf"].clone();
    let kernel = "A congestion control of the lab's kernel; not in the simulator.";
    if let Json::Array(words) = &mut words {
        words.push(json!({ "type": "string", "pattern": "^kernel:[A-Za-z0-9_-]{1,15}$", "description": kernel }));
    }
    let with = object("A law with its parameters.", keys, &["law"]).to_value();
    json!({ "anyOf": [{ "oneOf": words }, with] })
}

inline_schema!(Senders, generator => {
    let one = sender_schema(generator);
    json_schema!({
        "title": "a law of senders, or a table of them by host",
        "anyOf": [one, { "type": "object", "additionalProperties": one }],
        "examples": ["cubic"],
    })
});

impl JsonSchema for Part {
    fn schema_name() -> Cow<'static, str> {
        "Part".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let places: Vec<&str> =
            Place::ALL.into_iter().filter(|place| place.laws().next().is_some()).map(Place::name).collect();
        json_schema!({
            "type": "object",
            "description": "A law in full: these keys, and the law's parameters.",
            "properties": {
                "at": { "title": "a word", "enum": places, "description": "Where it runs: the law's place." },
                "on": {
                    "title": "a list: text", "type": "array", "items": { "type": "string" }, "minItems": 1,
                    "description": "The hosts that it runs on: `server`, access points (`ap`: the hop's), stations, \
                                    groups of them. Default: all of the place.",
                },
                "law": { "title": "text", "type": "string", "description": "Its name." },
            },
            "required": ["at", "law"],
        })
    }
}
