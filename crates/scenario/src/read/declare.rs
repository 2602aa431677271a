//! Macros that make a struct or an enum, its reader and its schema from one declaration.

use super::{At, Context, Need, Table};
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value as Json, json};
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

/// The keys of a table. One table may have the keys of others among its own.
pub(crate) trait Keys: Sized {
    /// Reads them from the table that has them.
    fn take(table: &mut Table<'_>, cx: &mut Context) -> Self;
    /// Adds their schemas, and the names of those that must be there.
    fn describe(generator: &mut SchemaGenerator, properties: &mut Map<String, Json>, required: &mut Vec<String>);
    /// Where those stand that the file has.
    fn given(&self) -> Vec<&At>;
}

/// Declares a table: before each key `required`, `optional` or `default("TOML")`; `flatten` before another table, the keys of which
/// are among its own.
macro_rules! table {
    ($(#[doc = $doc:literal])* $name:ident {
        $( $(#[doc = $key_doc:literal])* $need:ident $(($default:literal))? $key:ident : $type:ty, )*
    }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug)]
        pub(crate) struct $name {
            $( $(#[doc = $key_doc])* pub $key: $crate::read::key!(@type $need $type), )*
            /// Where the table is.
            #[allow(dead_code)]
            pub place: $crate::read::At,
        }

        impl $crate::read::Keys for $name {
            fn take(table: &mut $crate::read::Table<'_>, cx: &mut $crate::read::Context) -> Self {
                $name {
                    $( $key: $crate::read::key!(@take $need $(($default))? $key, table, cx), )*
                    place: table.place(),
                }
            }

            fn describe(
                generator: &mut schemars::SchemaGenerator,
                properties: &mut serde_json::Map<String, serde_json::Value>,
                required: &mut Vec<String>,
            ) {
                $( $crate::read::key!(@describe $need $(($default))? $key: $type, [$($key_doc),*], generator, properties, required); )*
            }

            fn given(&self) -> Vec<&$crate::read::At> {
                let mut given = Vec::new();
                $( $crate::read::key!(@given $need self.$key, given); )*
                given
            }
        }

        impl $crate::read::Read for $name {
            fn read(
                value: &$crate::read::Value<'_>,
                at: &$crate::read::At,
                cx: &mut $crate::read::Context,
            ) -> Option<Self> {
                let mut table = $crate::read::Table::open(value, at, cx)?;
                let read = $crate::read::Keys::take(&mut table, cx);
                table.close(cx);
                Some(read)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let (mut properties, mut required) = Default::default();
                <$name as $crate::read::Keys>::describe(generator, &mut properties, &mut required);
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

/// What a table's declaration makes of one key.
macro_rules! key {
    (@type flatten $type:ty) => { $type };
    (@type $need:ident $type:ty) => { $crate::read::Entry<$type> };
    (@take flatten $key:ident, $table:ident, $cx:ident) => { $crate::read::Keys::take($table, $cx) };
    (@take $need:ident $(($default:literal))? $key:ident, $table:ident, $cx:ident) => {
        $table.take(stringify!($key), $crate::read::need!($need $(($default))?), $cx)
    };
    (@describe flatten $key:ident: $type:ty, [$($doc:literal),*], $generator:ident, $properties:ident, $required:ident) => {
        <$type as $crate::read::Keys>::describe($generator, $properties, $required)
    };
    (
        @describe $need:ident $(($default:literal))? $key:ident: $type:ty, [$($doc:literal),*],
        $generator:ident, $properties:ident, $required:ident
    ) => {
        let need = $crate::read::need!($need $(($default))?);
        let key = $crate::read::kebab(stringify!($key));
        if matches!(need, $crate::read::Need::Required) {
            $required.push(key.clone());
        }
        $properties.insert(key, $crate::read::property::<$type>($generator, &[$($doc),*], need));
    };
    (@given flatten $this:ident.$key:ident, $given:ident) => { $given.extend($crate::read::Keys::given(&$this.$key)) };
    (@given $need:ident $this:ident.$key:ident, $given:ident) => { $given.extend($this.$key.given_at()) };
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

        $crate::read::choices! {
            $name, [$($doc),*], [$($word: [$($word_doc),*],)*],
            $name::ALL.iter().map(|word| (word.as_str(), *word))
        }
    };
}

/// Declares a table of a trace: a time, and what holds from then on. A CSV file may hold such tables, a line each.
macro_rules! step {
    ($(#[doc = $doc:literal])* $name:ident {
        $(#[doc = $key_doc:literal])*
        $key:ident: $type:ty,
    } columns $columns:literal, such as $example:literal, by $value:expr) => {
        $crate::read::table! {
            $(#[doc = $doc])*
            $name {
                /// When, since the run began.
                required at: $crate::read::Quantity<lasthop_units::Span>,
                $(#[doc = $key_doc])*
                required $key: $type,
            }
        }

        impl $crate::read::Step for $name {
            type Value = $type;
            const COLUMNS: &'static str = $columns;
            const EXAMPLE: &'static str = $example;

            fn value(text: &str) -> Result<$type, String> {
                let value: fn(&str) -> Result<$type, String> = $value;
                value(text)
            }
            fn from_line(
                at: $crate::read::Entry<$crate::read::Quantity<lasthop_units::Span>>,
                $key: $crate::read::Entry<$type>,
                place: $crate::read::At,
            ) -> Self {
                $name { at, $key, place }
            }
            fn parts(
                &self,
            ) -> (&$crate::read::Entry<$crate::read::Quantity<lasthop_units::Span>>, &$crate::read::Entry<$type>) {
                (&self.at, &self.$key)
            }
        }
    };
}

/// Gives a value that may be written in several ways its schema, which stands wherever the value does.
macro_rules! inline_schema {
    ($name:ident, $generator:pat => $schema:expr) => {
        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema($generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $schema
            }
        }
    };
}

/// Declares the words for an enum of another room.
macro_rules! foreign_words {
    ($(#[doc = $doc:literal])* $name:ident($type:ty) { $( $(#[doc = $word_doc:literal])* $word:literal => $value:expr, )* }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name(pub $type);

        $crate::read::choices! {
            $name, [$($doc),*], [$($word: [$($word_doc),*],)*],
            [$(($word, $name($value))),*].into_iter()
        }
    };
}

/// Reads one of these words as `$choices` have it, and describes them all.
macro_rules! choices {
    ($name:ident, [$($doc:literal),*], [$($word:literal: [$($word_doc:literal),*],)*], $choices:expr) => {
        impl $crate::read::Read for $name {
            fn read(
                value: &$crate::read::Value<'_>,
                at: &$crate::read::At,
                cx: &mut $crate::read::Context,
            ) -> Option<Self> {
                $crate::read::word(value, at, cx, $choices)
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

pub(crate) use {choices, foreign_words, inline_schema, key, need, step, table, words};
