//! What changes over time: a list of steps, or a CSV file that holds them.
//!
//! A file has the column `at_s` and one more, with the unit of its values in its name since CSV values have none; one
//! step a line, `#` begins a comment. Its steps become the tables that a list would have, with their places in the
//! file, so that whatever is checked of a list is checked of a file.

use super::{At, Context, Entry, Quantity, Read, Value};
use crate::file;
use crate::problem::Kind;
use crate::quantity::{self, Measured, QuantityError};
use lasthop_units::{Span, count};
use miette::NamedSource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use toml::de::DeValue;

/// A table that a line of a CSV file can stand for.
pub(crate) trait Step: Read {
    /// What holds from its time on.
    type Value;
    /// The first line of a file.
    const COLUMNS: &'static str;
    /// A line of a file.
    const EXAMPLE: &'static str;

    /// The value as it stands in its column.
    ///
    /// # Errors
    /// What is wrong with it.
    fn value(text: &str) -> Result<Self::Value, String>;
    /// The table of a line.
    fn from_line(at: Entry<Quantity<Span>>, value: Entry<Self::Value>, place: At) -> Self;
    /// Its time and its value.
    fn parts(&self) -> (&Entry<Quantity<Span>>, &Entry<Self::Value>);
}

/// Steps, from the scenario or from a file that it names.
#[derive(Clone, Debug)]
pub(crate) struct Trace<T> {
    pub steps: Vec<T>,
    /// The list, or the first line of the file: where a step would have to be added.
    pub place: At,
}

impl<T: Step> Read for Trace<T> {
    fn read(value: &Value<'_>, at: &At, cx: &mut Context) -> Option<Self> {
        match value.get_ref() {
            DeValue::String(path) => from_file(path, at, cx),
            DeValue::Array(_) => Vec::read(value, at, cx).map(|steps| Trace { steps, place: at.clone() }),
            _ => {
                let header = at.list_header();
                let remedy =
                    format!("write {header} before each step, or \"FILE.csv\" with the columns `{}`", T::COLUMNS);
                cx.wrong_type(value, at, "a list of steps or the path of a CSV file", remedy);
                None
            }
        }
    }
}

impl<T: JsonSchema> JsonSchema for Trace<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("trace of {}", T::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "title": "a list of steps, the first at 0 s, or the path of a CSV file",
            "anyOf": [
                { "type": "array", "items": generator.subschema_for::<T>(), "minItems": 1 },
                { "type": "string" },
            ],
        })
    }
}

/// Reads the file at `path`, relative to the scenario. Problems inside it are shown with its own lines.
fn from_file<T: Step>(path: &str, at: &At, cx: &mut Context) -> Option<Trace<T>> {
    let full = cx.base_dir.join(path);
    let text = match file::text(&full) {
        Ok(text) => text,
        Err(error) => {
            let what = format!("the trace {} cannot be read: {error}", full.display());
            cx.problem(Kind::File, at, what, "write a path relative to the scenario file");
            return None;
        }
    };
    // Spreadsheets begin a file with a byte order mark.
    let text = text.trim_start_matches('\u{feff}');
    let source = Arc::new(NamedSource::new(full.display().to_string(), text.to_owned()));
    let place = |span: Range<usize>| At { source: Arc::clone(&source), span, ..at.clone() };
    let mut lines = pieces(text, '\n', 0).filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let (header, columns) = lines.next().unwrap_or((0..0, ""));
    if columns.replace(' ', "") != T::COLUMNS {
        let remedy = format!("write `{}` on the first line", T::COLUMNS);
        cx.problem(Kind::File, &place(header), "a trace begins with its columns", remedy);
        return None;
    }
    let steps: Vec<Option<T>> = lines
        .map(|(span, line)| {
            let step = step(&place(span), line);
            step.map_err(|(at, what)| {
                let remedy = format!("write a line as `{}` has it, such as `{}`", T::COLUMNS, T::EXAMPLE);
                cx.problem(Kind::File, &at, what, remedy);
            })
            .ok()
        })
        .collect();
    Some(Trace { steps: steps.into_iter().collect::<Option<_>>()?, place: place(header) })
}

/// The step that a line stands for, or the place in it that is wrong, and how.
fn step<T: Step>(place: &At, line: &str) -> Result<T, (At, String)> {
    let fields: Vec<_> = pieces(line, ',', place.span.start).collect();
    let [(at_span, at), (value_span, value)] = &fields[..] else {
        return Err((
            place.clone(),
            format!("a line has two columns, and this one has {}", count(fields.len(), "column")),
        ));
    };
    let entry = |span: &Range<usize>| At { span: span.clone(), ..place.clone() };
    let (at_place, value_place) = (entry(at_span), entry(value_span));
    let at = number(at, "s").map_err(|what| (at_place.clone(), what))?;
    let value = T::value(value).map_err(|what| (value_place.clone(), what))?;
    Ok(T::from_line(here(at, at_place), here(value, value_place), place.clone()))
}

fn here<V>(value: V, at: At) -> Entry<V> {
    Entry { value: Some(value), at, given: true }
}

/// A number. Its column names the unit.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn number<T: Measured>(text: &str, unit: &str) -> Result<Quantity<T>, String> {
    quantity::parse(&format!("{text} {unit}")).map(Quantity).map_err(|error| match error {
        QuantityError::Negative { .. } | QuantityError::TooFine { .. } | QuantityError::TooLarge { .. } => {
            error.to_string()
        }
        // The unit is right: what stands before it is read as a part of it.
        _ => format!("`{text}` is not a decimal number"),
    })
}

/// What stands between the separators, without surrounding space, and where it stands in a text in which `text` begins
/// at `offset`.
fn pieces(text: &str, separator: char, offset: usize) -> impl Iterator<Item = (Range<usize>, &str)> {
    text.split(separator).scan(offset, move |offset, piece| {
        let start = *offset + (piece.len() - piece.trim_start().len());
        *offset += piece.len() + separator.len_utf8();
        Some((start..start + piece.trim().len(), piece.trim()))
    })
}
