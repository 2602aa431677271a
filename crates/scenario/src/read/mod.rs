//! From TOML to raw tables: every key read, every problem kept.
//!
//! `serde` stops at the first thing that is wrong. A person who writes a scenario wants to hear of all of them at
//! once, with the place of each, so tables are declared here by macros that yield the raw struct, its reader, and its
//! part of the JSON Schema from one text: what is documented is what is read.

mod declare;
mod trace;
mod values;

pub(crate) use declare::{Keys, choices, foreign_words, inline_schema, key, need, property, prose, step, table, words};
pub(crate) use trace::{Step, Trace, number};
pub(crate) use values::{Named, Quantity, word};

use crate::problem::{Kind, Problem};
use miette::NamedSource;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value as Json;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A TOML value and its place.
pub(crate) type Value<'a> = Spanned<DeValue<'a>>;

/// What a reader needs to know, and where it leaves problems.
pub(crate) struct Context<'a> {
    pub base_dir: &'a Path,
    pub problems: Vec<Problem>,
}

/// A place in the scenario, or in a file that it names.
#[derive(Clone, Debug)]
pub(crate) struct At {
    pub source: Arc<NamedSource<String>>,
    /// With the tables around it and its place in lists: `station[0].walk`.
    pub key: String,
    /// The same as headers in TOML have it, which count nothing: `station.walk`.
    path: String,
    pub span: Range<usize>,
}

impl At {
    /// Where a document begins.
    pub fn beginning(source: Arc<NamedSource<String>>) -> At {
        At { source, key: String::new(), path: String::new(), span: 0..0 }
    }

    fn child(&self, key: &str, span: Range<usize>) -> At {
        let below = |parent: &str| if parent.is_empty() { key.to_owned() } else { format!("{parent}.{key}") };
        At { source: Arc::clone(&self.source), key: below(&self.key), path: below(&self.path), span }
    }

    /// The place of a key in the table that stands here.
    pub fn at(&self, key: &str, span: Range<usize>) -> At {
        self.child(key, span)
    }

    /// The place of a key that the table here lacks.
    pub fn below(&self, key: &str) -> At {
        self.child(key, self.span.clone())
    }

    fn element(&self, index: usize, span: Range<usize>) -> At {
        At { key: format!("{}[{index}]", self.key), span, ..self.clone() }
    }

    /// The header of a table that stands here.
    fn header(&self) -> String {
        // No key ends like an index: what is not bare ends with a quotation mark.
        if self.key.ends_with(']') { self.list_header() } else { format!("`[{}]`", self.path) }
    }

    /// The header of each table in a list that stands here.
    fn list_header(&self) -> String {
        format!("`[[{}]]`", self.path)
    }

    /// The header of a table among those with names of their own that stand here.
    fn named_header(&self) -> String {
        format!("`[{}.\"NAME\"]`", self.path)
    }

    /// The key without those of the tables around it.
    pub fn name(&self) -> &str {
        self.key.rsplit('.').next().unwrap_or_default()
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

    /// Where the key stands, if the file has it.
    pub fn given_at(&self) -> Option<&At> {
        self.given.then_some(&self.at)
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
        let source = Arc::clone(&at.source);
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

    pub fn wrong_type(&mut self, value: &Value<'_>, at: &At, wanted: &str, remedy: String) {
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
            cx.wrong_type(value, at, "a table", format!("write it as a table: {}", at.header()));
            return None;
        };
        Some(Table { table, at: at.clone(), asked: Vec::new() })
    }

    /// Where it stands.
    pub fn place(&self) -> At {
        self.at.clone()
    }

    /// What stands behind a key, if the table has it.
    pub fn value(&mut self, key: &str) -> Option<(&'v Value<'v>, At)> {
        if !self.asked.iter().any(|asked| asked == key) {
            self.asked.push(key.to_owned());
        }
        self.table.get(key).map(|value| (value, self.at.child(key, value.span())))
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
                let value =
                    DeValue::parse(text).expect("defaults are TOML: tests/integration/props.rs reads every one");
                Entry { value: T::read(&value, &at, cx), at, given: false }
            }
            (None, Need::Required) => {
                let example = example_of::<T>(&at);
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

fn example_of<T: JsonSchema>(at: &At) -> String {
    let schema = T::json_schema(&mut SchemaGenerator::default());
    let name = at.name();
    match schema.get("examples").and_then(|examples| examples.get(0)) {
        Some(Json::String(example)) => format!("`{name} = \"{example}\"`"),
        Some(example) => format!("`{name} = {example}`"),
        None => match schema.get("type").and_then(Json::as_str) {
            Some("object") if schema.get("additionalProperties").is_some_and(Json::is_object) => {
                format!("a table {}", at.named_header())
            }
            Some("object") => format!("the table {}", at.header()),
            Some("array") if schema.get("items").is_some_and(|items| items.get("$ref").is_none()) => {
                format!("`{name} = [\"…\"]`")
            }
            Some("array") => format!("a table {}", at.list_header()),
            Some("string") => format!("`{name} = \"…\"`"),
            Some("integer") => format!("`{name}` with a whole number"),
            _ => format!("`{name}`"),
        },
    }
}
