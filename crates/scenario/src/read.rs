//! From TOML to raw tables: every key read, every problem kept.
//!
//! `serde` stops at the first thing that is wrong. A person who writes a scenario wants to hear of all of them at
//! once, with the place of each, so tables are declared here by macros that yield the raw struct, its reader, and its
//! part of the JSON Schema from one text: what is documented is what is read.

use crate::problem::{Kind, Problem};
use crate::quantity::{self, Dimension, Measured, either};
use miette::NamedSource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value as Json, json};
use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A TOML value and its place.
pub(crate) type Value<'a> = Spanned<DeValue<'a>>;

/// What a reader needs to know, and where it leaves problems.
pub(crate) struct Context<'a> {
    pub source: Arc<NamedSource<String>>,
    pub base_dir: &'a Path,
    pub problems: Vec<Problem>,
}

/// A place in the scenario.
#[derive(Clone, Debug)]
pub(crate) struct At {
    pub key: String,
    pub span: Range<usize>,
}

impl At {
    fn child(&self, key: &str, span: Range<usize>) -> At {
        let key = if self.key.is_empty() { key.to_owned() } else { format!("{}.{key}", self.key) };
        At { key, span }
    }

    fn element(&self, index: usize, span: Range<usize>) -> At {
        At { key: format!("{}[{index}]", self.key), span }
    }
}

/// One key's value.
#[derive(Clone, Debug)]
pub(crate) struct Entry<T> {
    /// `None` if absent, or present and already reported as wrong.
    pub value: Option<T>,
    /// The value if it is in the file, else the table that lacks it.
    pub at: At,
    /// Whether the file has the key.
    pub given: bool,
}

impl<T: Clone> Entry<T> {
    pub fn get(&self) -> Option<T> {
        self.value.clone()
    }

    /// The same place with another value.
    pub fn map<U>(&self, change: impl FnOnce(T) -> U) -> Entry<U> {
        Entry { value: self.get().map(change), at: self.at.clone(), given: self.given }
    }
}

/// What a table says of a key that is absent.
#[derive(Clone, Copy)]
pub(crate) enum Need {
    Required,
    Optional,
    /// The TOML text that is read in its place.
    Default(&'static str),
}

/// What can stand behind a key. The [`JsonSchema`] describes the same texts that `read` accepts.
pub(crate) trait Read: Sized + JsonSchema {
    fn read(value: &Value<'_>, at: &At, cx: &mut Context) -> Option<Self>;
}

impl Context<'_> {
    pub fn problem(&mut self, kind: Kind, at: &At, what: impl Into<String>, remedy: impl Into<String>) {
        let source = Arc::clone(&self.source);
        self.problems.push(Problem::new(kind, &at.key, what, remedy, source, at.span.clone()));
    }

    pub fn impossible(&mut self, at: &At, what: impl Into<String>, remedy: impl Into<String>) {
        self.problem(Kind::Impossible, at, what, remedy);
    }

    /// `value` if it lies within the bounds; else a problem that names them and says where they come from.
    pub fn within<T: PartialOrd + Copy>(
        &mut self,
        entry: &Entry<T>,
        (least, most): (T, T),
        show: impl Fn(T) -> String,
        why: &str,
    ) -> Option<T> {
        let value = entry.value?;
        // Written so that NaN is outside.
        if least <= value && value <= most {
            return Some(value);
        }
        let what = format!("{} is outside {} to {} ({why})", show(value), show(least), show(most));
        self.problem(
            Kind::OutOfRange,
            &entry.at,
            what,
            format!("write a value from {} to {}", show(least), show(most)),
        );
        None
    }

    fn wrong_type(&mut self, value: &Value<'_>, at: &At, wanted: &str, remedy: String) {
        let found = match value.get_ref() {
            DeValue::String(_) => "text",
            DeValue::Integer(_) | DeValue::Float(_) => "a bare number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.problem(Kind::WrongType, at, format!("{wanted} is needed, and this is {found}"), remedy);
    }
}

/// A table while it is read: remembers which keys were asked for, so that the others can be reported.
pub(crate) struct Table<'v> {
    table: &'v DeTable<'v>,
    at: At,
    asked: Vec<String>,
}

impl<'v> Table<'v> {
    pub fn open(value: &'v Value<'v>, at: &At, cx: &mut Context) -> Option<Table<'v>> {
        let DeValue::Table(table) = value.get_ref() else {
            cx.wrong_type(value, at, "a table", format!("write it as a table: [{}]", at.key));
            return None;
        };
        Some(Table { table, at: at.clone(), asked: Vec::new() })
    }

    /// Reads the key that the struct's field stands for.
    pub fn take<T: Read>(&mut self, field: &str, need: Need, cx: &mut Context) -> Entry<T> {
        let key = kebab(field);
        let found = self.table.get(key.as_str());
        let at = self.at.child(&key, found.map_or(self.at.span.clone(), |value| value.span()));
        self.asked.push(key);
        match (found, need) {
            (Some(value), _) => Entry { value: T::read(value, &at, cx), at, given: true },
            (None, Need::Optional) => Entry { value: None, at, given: false },
            (None, Need::Default(text)) => {
                let value = DeValue::parse(text).expect("defaults are TOML: tests/props.rs reads every one");
                Entry { value: T::read(&value, &at, cx), at, given: false }
            }
            (None, Need::Required) => {
                let example = example_of::<T>(&at.key);
                cx.problem(Kind::Missing, &at, "this key is missing", format!("add {example}"));
                Entry { value: None, at, given: false }
            }
        }
    }

    /// Reports the keys that nobody asked for.
    pub fn close(self, cx: &mut Context) {
        for key in self.table.keys().filter(|key| !self.asked.iter().any(|asked| asked == key.get_ref())) {
            let remedy = match nearest(key.get_ref(), self.asked.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the keys here are {}", self.asked.join(", ")),
            };
            let at = self.at.child(key.get_ref(), key.span());
            let place = if self.at.key.is_empty() { "a scenario".to_owned() } else { format!("`{}`", self.at.key) };
            cx.problem(Kind::UnknownKey, &at, format!("{place} has no key `{}`", key.get_ref()), remedy);
        }
    }
}

/// The spelling in files of a field's or variant's name.
pub(crate) fn kebab(field: &str) -> String {
    field.replace('_', "-")
}

/// The choice that `word` is probably a misspelling of.
pub(crate) fn nearest<'c>(word: &str, choices: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    let plain = |text: &str| text.to_lowercase().replace(['_', ' ', '-', '.'], "");
    let word = plain(word);
    choices
        .map(|choice| (strsim::damerau_levenshtein(&word, &plain(choice)), choice))
        .filter(|(distance, choice)| *distance <= 1 + choice.len() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, choice)| choice)
}

fn example_of<T: JsonSchema>(key: &str) -> String {
    let schema = T::json_schema(&mut SchemaGenerator::default());
    let name = key.rsplit('.').next().unwrap_or(key);
    match schema.get("examples").and_then(|examples| examples.get(0)) {
        Some(Json::String(example)) => format!("`{name} = \"{example}\"`"),
        Some(example) => format!("`{name} = {example}`"),
        None => match schema.get("type").and_then(Json::as_str) {
            Some("object") if schema.get("additionalProperties").is_some_and(Json::is_object) => {
                format!("a table `[{key}.\"NAME\"]`")
            }
            Some("object") => format!("the table `[{key}]`"),
            Some("array") => format!("a table `[[{key}]]`"),
            Some("string") => format!("`{name} = \"…\"`"),
            Some("integer") => format!("`{name}` with a whole number"),
            _ => format!("`{name}`"),
        },
    }
}

/// A quantity with its unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quantity<T>(pub T);

impl<T: Measured> Read for Quantity<T> {
    fn read(value: &Value<'_>, at: &At, cx: &mut Context) -> Option<Self> {
        let text = match value.get_ref() {
            DeValue::String(text) => Cow::Borrowed(text.as_ref()),
            // A bare number gets the same answer as a string without a unit.
            DeValue::Integer(number) => Cow::Owned(number.to_string()),
            DeValue::Float(number) => Cow::Owned(number.to_string()),
            _ => {
                let remedy = format!("write it as text with a unit: \"{}\"", T::DIMENSION.example);
                cx.wrong_type(value, at, T::DIMENSION.name, remedy);
                return None;
            }
        };
        match quantity::parse(&text) {
            Ok(quantity) if value.get_ref().is_str() => Some(Quantity(quantity)),
            Ok(_) => None,
            Err(error) => {
                cx.problem(Kind::Unit, at, error.to_string(), error.remedy());
                None
            }
        }
    }
}

impl<T: Measured> JsonSchema for Quantity<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        T::DIMENSION.name.into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let Dimension { name, example, units, .. } = T::DIMENSION;
        let units: Vec<&str> = units.iter().map(|(symbol, _)| *symbol).collect();
        json_schema!({
            "type": "string",
            "title": name,
            "pattern": format!(r"^\d+(\.\d+)? ?({})$", units.join("|")),
            "examples": [example],
        })
    }
}

impl Read for String {
    fn read(value: &Value<'_>, at: &At, cx: &mut Context) -> Option<Self> {
        match value.get_ref() {
            DeValue::String(text) => Some(text.clone().into_owned()),
            _ => {
                cx.wrong_type(value, at, "text", "put it in quotation marks".to_owned());
                None
            }
        }
    }
}

impl Read for bool {
    fn read(value: &Value<'_>, at: &At, cx: &mut Context) -> Option<Self> {
        if let DeValue::Boolean(truth) = value.get_ref() {
            return Some(*truth);
        }
        cx.wrong_type(value, at, "true or false", "write true or false without quotation marks".to_owned());
        None
    }
}

impl Read for u64 {
    fn read(value: &Value<'_>, at: &At, cx: &mut Context) -> Option<Self> {
        if let DeValue::Integer(number) = value.get_ref()
            && let Ok(number) = u64::from_str_radix(number.as_str(), number.radix())
        {
            return Some(number);
        }
        cx.wrong_type(
            value,
            at,
            "a whole number, zero or more,",
            "write it without quotation marks or a unit".to_owned(),
        );
        None
    }
}

impl Read for f64 {
    fn read(value: &Value<'_>, at: &At, cx: &mut Context) -> Option<Self> {
        let number = match value.get_ref() {
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).ok().map(|n| n as f64),
            DeValue::Float(number) => number.as_str().parse().ok(),
            _ => None,
        };
        if number.is_none() {
            cx.wrong_type(value, at, "a number", "write it without quotation marks or a unit".to_owned());
        }
        number
    }
}

impl<T: Read> Read for Vec<T> {
    fn read(value: &Value<'_>, at: &At, cx: &mut Context) -> Option<Self> {
        let DeValue::Array(elements) = value.get_ref() else {
            cx.wrong_type(value, at, "a list", format!("write [ … ], or [[{}]] for tables", at.key));
            return None;
        };
        // Every element is read, so that one bad element does not hide the problems of the next.
        let read: Vec<Option<T>> =
            elements.iter().enumerate().map(|(i, e)| T::read(e, &at.element(i, e.span()), cx)).collect();
        read.into_iter().collect()
    }
}

/// A table whose keys are names, in the order of the file.
#[derive(Clone, Debug)]
pub(crate) struct Named<T>(pub Vec<(String, T)>);

impl<T: Read> Read for Named<T> {
    fn read(value: &Value<'_>, at: &At, cx: &mut Context) -> Option<Self> {
        let DeValue::Table(table) = value.get_ref() else {
            cx.wrong_type(value, at, "a table", format!("write it as a table: [{}.\"NAME\"]", at.key));
            return None;
        };
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(name, _)| name.span().start);
        let read: Vec<Option<(String, T)>> = entries
            .into_iter()
            .map(|(name, value)| {
                let quoted = format!("\"{}\"", name.get_ref());
                T::read(value, &at.child(&quoted, value.span()), cx).map(|table| (name.get_ref().to_string(), table))
            })
            .collect();
        read.into_iter().collect::<Option<Vec<_>>>().map(Named)
    }
}

impl<T: JsonSchema> JsonSchema for Named<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("named {}", T::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "additionalProperties": generator.subschema_for::<T>() })
    }
}

/// Reads one of a fixed set of words.
pub(crate) fn word<'w, T: Copy>(
    value: &Value<'_>,
    at: &At,
    cx: &mut Context,
    words: impl Iterator<Item = (&'w str, T)> + Clone,
) -> Option<T> {
    let spellings = || words.clone().map(|(word, _)| word);
    let all = either(&spellings().map(|word| format!("\"{word}\"")).collect::<Vec<_>>());
    let DeValue::String(text) = value.get_ref() else {
        cx.wrong_type(value, at, "a word", format!("write {all}"));
        return None;
    };
    if let Some((_, choice)) = words.clone().find(|(word, _)| word == text) {
        return Some(choice);
    }
    let remedy = match nearest(text, spellings()) {
        Some(near) => format!("did you mean \"{near}\"? The choices are {all}"),
        None => format!("write {all}"),
    };
    cx.problem(Kind::UnknownWord, at, format!("\"{text}\" is not a choice here"), remedy);
    None
}

/// Adds a key's description to the schema of its type.
pub(crate) fn property<T: JsonSchema>(generator: &mut SchemaGenerator, doc: &[&str], need: Need) -> Json {
    let schema = generator.subschema_for::<T>().to_value();
    // Draft 7 ignores what stands beside a `$ref`.
    let mut schema = match schema {
        Json::Object(object) if object.contains_key("$ref") => json!({ "allOf": [object] }),
        other => other,
    };
    if let Json::Object(object) = &mut schema {
        object.insert("description".to_owned(), prose(doc).into());
        if let Need::Default(text) = need {
            let value = DeValue::parse(text).expect("defaults are TOML: tests/props.rs reads every one");
            object.insert("default".to_owned(), to_json(value.get_ref()));
        }
    }
    schema
}

/// Doc comment lines as one paragraph a blank line.
pub(crate) fn prose(doc: &[&str]) -> String {
    let lines = doc.iter().map(|line| line.trim());
    lines
        .map(|line| if line.is_empty() { "\n\n" } else { line })
        .collect::<Vec<_>>()
        .join(" ")
        .replace(" \n\n ", "\n\n")
        .trim()
        .to_owned()
}

fn to_json(value: &DeValue<'_>) -> Json {
    match value {
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Boolean(truth) => (*truth).into(),
        DeValue::Integer(number) => number.as_str().parse::<i64>().map_or(Json::Null, Json::from),
        DeValue::Float(number) => number.as_str().parse::<f64>().map_or(Json::Null, Json::from),
        DeValue::Array(elements) => elements.iter().map(|element| to_json(element.get_ref())).collect(),
        DeValue::Table(table) => {
            table.iter().map(|(key, value)| (key.get_ref().to_string(), to_json(value.get_ref()))).collect()
        }
        DeValue::Datetime(date) => date.to_string().into(),
    }
}

/// Declares a raw table: `required`, `optional` or `default("TOML")` before each key.
macro_rules! table {
    ($(#[doc = $doc:literal])* $name:ident {
        $( $(#[doc = $key_doc:literal])* $need:ident $(($default:literal))? $key:ident : $type:ty, )*
    }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug)]
        pub(crate) struct $name {
            $( $(#[doc = $key_doc])* pub $key: $crate::read::Entry<$type>, )*
            /// Where the table is.
            #[allow(dead_code)]
            pub place: $crate::read::At,
        }

        impl $crate::read::Read for $name {
            fn read(
                value: &$crate::read::Value<'_>,
                at: &$crate::read::At,
                cx: &mut $crate::read::Context,
            ) -> Option<Self> {
                let mut table = $crate::read::Table::open(value, at, cx)?;
                let read = $name {
                    $( $key: table.take(stringify!($key), $crate::read::need!($need $(($default))?), cx), )*
                    place: at.clone(),
                };
                table.close(cx);
                Some(read)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let mut properties = serde_json::Map::new();
                let mut required: Vec<String> = Vec::new();
                $({
                    let need = $crate::read::need!($need $(($default))?);
                    let key = $crate::read::kebab(stringify!($key));
                    if matches!(need, $crate::read::Need::Required) {
                        required.push(key.clone());
                    }
                    properties.insert(key, $crate::read::property::<$type>(generator, &[$($key_doc),*], need));
                })*
                schemars::json_schema!({
                    "type": "object",
                    "description": $crate::read::prose(&[$($doc),*]),
                    "properties": properties,
                    "required": required,
                    "additionalProperties": false,
                })
            }
        }
    };
}

macro_rules! need {
    (required) => {
        $crate::read::Need::Required
    };
    (optional) => {
        $crate::read::Need::Optional
    };
    (default($text:literal)) => {
        $crate::read::Need::Default($text)
    };
}

/// Declares a public enum whose variants are written as fixed words.
macro_rules! words {
    ($(#[doc = $doc:literal])* $name:ident { $( $(#[doc = $word_doc:literal])* $variant:ident = $word:literal, )* }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum $name {
            $( $(#[doc = $word_doc])* $variant, )*
        }

        impl $name {
            /// Every choice, in the order of the reference.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            /// How files spell it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $( $name::$variant => $word, )*
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl $crate::read::Read for $name {
            fn read(
                value: &$crate::read::Value<'_>,
                at: &$crate::read::At,
                cx: &mut $crate::read::Context,
            ) -> Option<Self> {
                $crate::read::word(value, at, cx, $name::ALL.iter().map(|word| (word.as_str(), *word)))
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "description": $crate::read::prose(&[$($doc),*]),
                    "oneOf": [$({ "const": $word, "description": $crate::read::prose(&[$($word_doc),*]) }),*],
                })
            }
        }
    };
}

pub(crate) use {need, table, words};
