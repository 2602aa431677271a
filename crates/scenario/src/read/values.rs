//! Readers of what stands behind keys.

use super::{At, Context, Read, Value, nearest};
use crate::problem::Kind;
use crate::quantity::{self, Dimension, Measured, either};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;
use toml::de::DeValue;

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
                let remedy = match value.get_ref() {
                    DeValue::Array(_) | DeValue::Table(_) => "write one text in quotation marks",
                    _ => "put it in quotation marks",
                };
                cx.wrong_type(value, at, "text", remedy.to_owned());
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
        let remedy = match value.get_ref() {
            DeValue::Integer(_) | DeValue::Float(_) => "write 0, 1, 2 or more",
            _ => "write it without quotation marks or a unit",
        };
        cx.wrong_type(value, at, "a whole number, zero or more,", remedy.to_owned());
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
            let schema = T::json_schema(&mut SchemaGenerator::default());
            let of_tables = schema.get("type").is_some_and(|kind| kind == "object");
            let remedy =
                if of_tables { format!("write {} before each", at.list_header()) } else { "write [ … ]".to_owned() };
            cx.wrong_type(value, at, "a list", remedy);
            return None;
        };
        // Every element is read, so that one bad element does not hide the problems of the next.
        let read: Vec<Option<T>> =
            elements.iter().enumerate().map(|(i, e)| T::read(e, &at.element(i, e.span()), cx)).collect();
        read.into_iter().collect()
    }
}

/// A table with names as keys, in the order of the file.
#[derive(Clone, Debug)]
pub(crate) struct Named<T>(pub Vec<(String, T)>);

impl<T: Read> Read for Named<T> {
    fn read(value: &Value<'_>, at: &At, cx: &mut Context) -> Option<Self> {
        let DeValue::Table(table) = value.get_ref() else {
            cx.wrong_type(value, at, "a table", format!("write it as a table: {}", at.named_header()));
            return None;
        };
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(name, _)| name.span().start);
        let read: Vec<Option<(String, T)>> = entries
            .into_iter()
            .map(|(name, value)| {
                // The escapes of JSON are escapes of TOML, too. TOML's own writer may choose a string of several lines,
                // which no key can be.
                let quoted = serde_json::Value::from(name.get_ref().as_ref()).to_string();
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
