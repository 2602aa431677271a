//! Macros that make a struct or an enum, its reader and its schema from one declaration.

use super::Need;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value as Json, json};
use toml::de::DeValue;

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
            let value = DeValue::parse(text).expect("defaults are TOML: tests/integration/props.rs reads every one");
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

/// Declares a public enum with variants that are written as fixed words.
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
