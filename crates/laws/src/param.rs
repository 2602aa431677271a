//! Parameters of laws: each is declared once, in the law's own [`params!`](crate::params) table.
//!
//! The declaration yields the struct that the law computes with, its defaults, and a table ([`Param`]) from which everything that
//! people write is made: the keys of scenario files, their JSON Schema and reference page, command-line flags with their help, the
//! arguments that the lab gives an agent, and what is said of a value that cannot be.
//!
//! ```
//! use lasthop_laws::{Parameters, Value};
//! use lasthop_units::Span;
//!
//! lasthop_laws::params! {
//!     /// What may be set of a law.
//!     pub struct Params {
//!         /// How long it waits.
//!         wait: Span = "20 ms", |p| p.wait >= Span::from_millis(1) => "at least 1 ms";
//!         /// How much of it is enough.
//!         share: f64 = "0.5";
//!     }
//! }
//!
//! let mut params = Params::default();
//! assert_eq!(params.wait, Span::from_millis(20));
//! params.set("wait", Value::Time(Span::ZERO)).expect("it has the key, and the kind is right");
//! assert_eq!(params.validate().unwrap_err().to_string(), "wait = 0 ns must be at least 1 ms");
//! assert_eq!(Params::TABLE[1].default, "0.5");
//! ```

use lasthop_units::quantity::{self, QuantityError};
use lasthop_units::{Bytes, Rate, Span};
use std::fmt;

/// A parameter that cannot be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ParamError {
    /// A value lies outside its bounds.
    #[error("{key} = {got} must be {bound}")]
    OutOfBounds {
        /// Which parameter, as files write it.
        key: &'static str,
        /// Its value.
        got: String,
        /// What it may be.
        bound: &'static str,
    },
    /// The law has no such parameter.
    #[error("there is no parameter `{key}`")]
    Unknown {
        /// The key that was asked for.
        key: String,
    },
    /// A value of another kind than the parameter's.
    #[error("{key} = {got} must be {wanted}")]
    WrongKind {
        /// Which parameter.
        key: &'static str,
        /// The value.
        got: String,
        /// What kind it must be.
        wanted: &'static str,
    },
}

/// What can stand behind a parameter's key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A length of time with its unit.
    Time,
    /// A data rate with its unit.
    Rate,
    /// An amount of data with its unit.
    Bytes,
    /// A number without a unit.
    Number,
    /// A whole number, zero or more.
    Count,
    /// True or false.
    Flag,
    /// One of a set of words.
    Word(&'static Words),
}

/// A set of words, one of which stands behind a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Words {
    /// The set's name, unique among all laws.
    pub name: &'static str,
    /// What is chosen, as lines of documentation.
    pub doc: &'static [&'static str],
    /// The choices: each with its lines of documentation.
    pub words: &'static [(&'static str, &'static [&'static str])],
}

/// A value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// Of [`Kind::Time`].
    Time(Span),
    /// Of [`Kind::Rate`].
    Rate(Rate),
    /// Of [`Kind::Bytes`].
    Bytes(Bytes),
    /// Of [`Kind::Number`].
    Number(f64),
    /// Of [`Kind::Count`].
    Count(u64),
    /// Of [`Kind::Flag`].
    Flag(bool),
    /// Of [`Kind::Word`].
    Word(&'static str),
}

/// What is declared of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Param {
    /// Its key, as files and flags write it.
    pub key: &'static str,
    /// What it is, as lines of documentation.
    pub doc: &'static [&'static str],
    /// What can stand behind the key.
    pub kind: Kind,
    /// What holds if nothing does, as it would be written, without quotation marks.
    pub default: &'static str,
    /// What it must be, for error texts; `None` if every value of the kind will do.
    pub bound: Option<&'static str>,
}

/// Why a text is no value of a kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// No quantity.
    #[error("{what}; {}", what.remedy())]
    Quantity {
        /// What is wrong with it.
        #[from]
        what: QuantityError,
    },
    /// Something else than what is needed.
    #[error("`{got}` is not {wanted}")]
    Not {
        /// The text.
        got: String,
        /// What is needed.
        wanted: &'static str,
    },
    /// Not among the words.
    #[error("`{got}` is not a choice here; write {choices}")]
    Unknown {
        /// The text.
        got: String,
        /// The words.
        choices: String,
    },
}

impl Kind {
    /// What it is, with its article.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Time => quantity::TIME.name,
            Kind::Rate => quantity::RATE.name,
            Kind::Bytes => quantity::DATA.name,
            Kind::Number => "a number",
            Kind::Count => "a whole number, zero or more",
            Kind::Flag => "true or false",
            Kind::Word(_) => "a word",
        }
    }

    /// The value that `text` stands for, as a command line has it.
    ///
    /// # Errors
    /// [`ValueError`] says what is wrong and what would be right.
    pub fn parse(self, text: &str) -> Result<Value, ValueError> {
        let not = || ValueError::Not { got: text.to_owned(), wanted: self.name() };
        Ok(match self {
            Kind::Time => Value::Time(quantity::parse(text)?),
            Kind::Rate => Value::Rate(quantity::parse(text)?),
            Kind::Bytes => Value::Bytes(quantity::parse(text)?),
            Kind::Number => Value::Number(text.parse().map_err(|_| not())?),
            Kind::Count => Value::Count(text.parse().map_err(|_| not())?),
            Kind::Flag => Value::Flag(text.parse().map_err(|_| not())?),
            Kind::Word(words) => {
                let word = words.words.iter().find(|(word, _)| *word == text);
                let all = || words.words.iter().map(|(word, _)| format!("`{word}`")).collect::<Vec<_>>();
                let unknown = || ValueError::Unknown { got: text.to_owned(), choices: quantity::either(&all()) };
                Value::Word(word.ok_or_else(unknown)?.0)
            }
        })
    }
}

impl fmt::Display for Value {
    /// As [`Kind::parse`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Time(span) => f.write_str(&quantity::show(*span)),
            Value::Rate(rate) => f.write_str(&quantity::show(*rate)),
            Value::Bytes(bytes) => f.write_str(&quantity::show(*bytes)),
            Value::Number(number) => write!(f, "{number}"),
            Value::Count(count) => write!(f, "{count}"),
            Value::Flag(flag) => write!(f, "{flag}"),
            Value::Word(word) => f.write_str(word),
        }
    }
}

impl Param {
    /// What it is, in a sentence or two.
    pub fn meaning(&self) -> String {
        prose(self.doc)
    }
}

impl Words {
    /// What is chosen.
    pub fn meaning(&self) -> String {
        prose(self.doc)
    }
}

/// Lines of documentation as one paragraph.
pub fn prose(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ").trim().to_owned()
}

/// A type that a parameter can have.
pub trait Typed: Sized + Copy {
    /// What stands behind the key.
    const KIND: Kind;

    /// The values that it can have, in words.
    const WANTED: &'static str = Self::KIND.name();

    /// `None` if the value is of another kind, or too large for the type.
    fn of(value: Value) -> Option<Self>;

    /// The value.
    fn value(self) -> Value;
}

macro_rules! typed {
    ($($type:ty, $kind:ident, $from:expr, $to:expr;)*) => {$(
        impl Typed for $type {
            const KIND: Kind = Kind::$kind;
            fn of(value: Value) -> Option<Self> {
                match value {
                    Value::$kind(value) => $from(value),
                    _ => None,
                }
            }
            fn value(self) -> Value {
                Value::$kind($to(self))
            }
        }
    )*};
}
typed! {
    Span, Time, Some, |span| span;
    Rate, Rate, Some, |rate| rate;
    Bytes, Bytes, Some, |bytes| bytes;
    f64, Number, Some, |number| number;
    u64, Count, Some, |count| count;
    bool, Flag, Some, |flag| flag;
}

impl Typed for u32 {
    const KIND: Kind = Kind::Count;
    const WANTED: &'static str = "a whole number from 0 to 4294967295";
    fn of(value: Value) -> Option<Self> {
        match value {
            Value::Count(count) => count.try_into().ok(),
            _ => None,
        }
    }
    fn value(self) -> Value {
        Value::Count(u64::from(self))
    }
}

/// The value as a `T`, for the parameter `key`.
///
/// # Errors
/// [`ParamError::WrongKind`].
pub fn typed<T: Typed>(key: &'static str, value: Value) -> Result<T, ParamError> {
    T::of(value).ok_or_else(|| ParamError::WrongKind { key, got: value.to_string(), wanted: T::WANTED })
}

/// Whether a value lies between two bounds, both of which it may have. NaN does not.
pub fn from_to<T: PartialOrd>(value: T, least: T, most: T) -> bool {
    least <= value && value <= most
}

/// Whether a value lies above the lower bound and not above the upper one. NaN does not.
pub fn within(value: f64, above: f64, most: f64) -> bool {
    above < value && value <= most
}

/// The octets of a key: those of a field's name, with `-` for `_`.
pub const fn kebab<const N: usize>(field: &str) -> [u8; N] {
    let (from, mut key, mut at) = (field.as_bytes(), [0; N], 0);
    while at < N {
        key[at] = if from[at] == b'_' { b'-' } else { from[at] };
        at += 1;
    }
    key
}

/// A field's name as files write it.
#[doc(hidden)]
#[macro_export]
macro_rules! kebab {
    ($field:ident) => {{
        const KEY: [u8; stringify!($field).len()] = $crate::param::kebab(stringify!($field));
        match std::str::from_utf8(&KEY) {
            Ok(key) => key,
            Err(_) => panic!(),
        }
    }};
}

/// What may be set of a law. Implemented by [`params!`](crate::params).
pub trait Parameters: Clone + fmt::Debug + PartialEq + Default {
    /// Every parameter, in the order of the declaration.
    const TABLE: &'static [Param];

    /// The value of a parameter; `None` if there is none with this key.
    fn get(&self, key: &str) -> Option<Value>;

    /// Sets a parameter. Bounds are not looked at: they may depend on what else is set.
    ///
    /// # Errors
    /// [`ParamError::Unknown`], [`ParamError::WrongKind`].
    fn set(&mut self, key: &str, value: Value) -> Result<(), ParamError>;

    /// Checks that the parameters make a law.
    ///
    /// # Errors
    /// The first parameter that is out of bounds.
    fn validate(&self) -> Result<(), ParamError>;

    /// The defaults with what `settings` has of their keys.
    ///
    /// # Errors
    /// As of [`Parameters::set`] and [`Parameters::validate`].
    fn with(settings: &Settings) -> Result<Self, ParamError> {
        let mut params = Self::default();
        settings.0.iter().try_for_each(|(key, value)| params.set(key, *value))?;
        params.validate().map(|()| params)
    }

    /// All parameters.
    fn settings(&self) -> Settings {
        let all = Self::TABLE.iter().filter_map(|param| Some((param.key, self.get(param.key)?)));
        Settings(all.collect())
    }
}

/// What somebody has set of a law's parameters, in the order in which they were set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings(Vec<(&'static str, Value)>);

impl Settings {
    /// Sets a parameter, in place of what it was set to before.
    pub fn set(&mut self, key: &'static str, value: Value) {
        match self.0.iter_mut().find(|(known, _)| *known == key) {
            Some((_, old)) => *old = value,
            None => self.0.push((key, value)),
        }
    }

    /// What a parameter was set to.
    pub fn get(&self, key: &str) -> Option<Value> {
        self.0.iter().find(|(known, _)| *known == key).map(|(_, value)| *value)
    }

    /// Every key that was set, with its value.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Value)> + '_ {
        self.0.iter().copied()
    }

    /// True if nothing was set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Declares the parameters of a law: `KEY: TYPE = "DEFAULT";`, or with a bound
/// `KEY: TYPE = "DEFAULT", |p| CONDITION ON p => "what it must be, and why";`.
///
/// Types are [`Span`], [`Rate`], [`Bytes`], `f64`, `u32`, `u64`, `bool` and enums declared with [`words!`](crate::words). The doc
/// comments are what users read.
#[macro_export]
macro_rules! params {
    ($(#[doc = $doc:literal])* $vis:vis struct $name:ident {
        $( $(#[doc = $key_doc:literal])* $key:ident: $type:ty = $default:literal $(, $check:expr => $bound:literal)?; )*
    }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $name {
            $( $(#[doc = $key_doc])* pub $key: $type, )*
        }

        impl Default for $name {
            fn default() -> $name {
                use $crate::param::{Kind, Typed};
                $name {
                    $( $key: <$type as Typed>::of(
                        Kind::parse(<$type as Typed>::KIND, $default).expect("tests read every default"),
                    ).expect("tests read every default"), )*
                }
            }
        }

        impl $name {
            /// Checks that the parameters make a law.
            ///
            /// # Errors
            /// The first parameter that is out of bounds.
            pub fn validate(&self) -> Result<(), $crate::ParamError> {
                $crate::Parameters::validate(self)
            }
        }

        impl $crate::Parameters for $name {
            const TABLE: &'static [$crate::param::Param] = &[$(
                $crate::param::Param {
                    key: $crate::kebab!($key),
                    doc: &[$($key_doc),*],
                    kind: <$type as $crate::param::Typed>::KIND,
                    default: $default,
                    bound: $crate::params!(@bound $($bound)?),
                },
            )*];

            fn get(&self, key: &str) -> Option<$crate::Value> {
                $( if key == $crate::kebab!($key) { return Some($crate::param::Typed::value(self.$key)); } )*
                None
            }

            fn set(&mut self, key: &str, value: $crate::Value) -> Result<(), $crate::ParamError> {
                $( if key == $crate::kebab!($key) {
                    self.$key = $crate::param::typed($crate::kebab!($key), value)?;
                    return Ok(());
                } )*
                Err($crate::ParamError::Unknown { key: key.to_owned() })
            }

            fn validate(&self) -> Result<(), $crate::ParamError> {
                $($(
                    let holds: fn(&$name) -> bool = $check;
                    if !holds(self) {
                        return Err($crate::ParamError::OutOfBounds {
                            key: $crate::kebab!($key),
                            got: $crate::param::Typed::value(self.$key).to_string(),
                            bound: $bound,
                        });
                    }
                )?)*
                Ok(())
            }
        }
    };
    (@bound $bound:literal) => { Some($bound) };
    (@bound) => { None };
}

/// Declares an enum with variants that are written as words: a set of choices of a parameter.
#[macro_export]
macro_rules! words {
    ($(#[doc = $doc:literal])* $vis:vis enum $name:ident {
        $( $(#[doc = $word_doc:literal])* $variant:ident = $word:literal, )*
    }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        $vis enum $name {
            $( $(#[doc = $word_doc])* $variant, )*
        }

        impl $name {
            /// Every choice, in the order of the declaration.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            /// How files and flags spell it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $( $name::$variant => $word, )*
                }
            }
        }

        $crate::word_of! {
            $(#[doc = $doc])*
            $name { $( $(#[doc = $word_doc])* $variant = $word, )* }
        }
    };
}

/// Declares the words for an enum of another room.
#[macro_export]
macro_rules! word_of {
    ($(#[doc = $doc:literal])* $name:ident { $( $(#[doc = $word_doc:literal])* $variant:ident = $word:literal, )* }) => {
        impl $crate::param::Typed for $name {
            const KIND: $crate::param::Kind = $crate::param::Kind::Word(&$crate::param::Words {
                name: stringify!($name),
                doc: &[$($doc),*],
                words: &[$( ($word, &[$($word_doc),*]) ),*],
            });
            fn of(value: $crate::Value) -> Option<$name> {
                match value {
                    $( $crate::Value::Word($word) => Some($name::$variant), )*
                    _ => None,
                }
            }
            fn value(self) -> $crate::Value {
                $crate::Value::Word(match self { $( $name::$variant => $word, )* })
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    words! {
        /// How it is done.
        enum Way {
            /// One after the other.
            InTurn = "in-turn",
            /// All together.
            AtOnce = "at-once",
        }
    }

    params! {
        /// Of a law that does nothing.
        struct Params {
            /// How long it waits.
            longest_wait: Span = "20 ms", |p| p.longest_wait > p.wait => "longer than wait";
            /// How long it waits at least.
            wait: Span = "5 ms";
            /// How it is done.
            way: Way = "at-once";
            /// How often.
            times: u32 = "3", |p| p.times > 0 => "at least 1";
            /// With what gain.
            gain: f64 = "0.5";
            /// Whether.
            really: bool = "true";
            /// How fast.
            rate: Rate = "1 Mbit/s";
            /// How much.
            size: Bytes = "1500 B";
        }
    }

    #[test]
    fn a_default_is_what_its_text_says() {
        let params = Params::default();
        assert_eq!((params.way, params.times, params.really), (Way::AtOnce, 3, true));
        assert_eq!((params.validate(), Way::ALL.len(), Way::InTurn.as_str()), (Ok(()), 2, "in-turn"));
        for param in Params::TABLE {
            assert_eq!(params.get(param.key), param.kind.parse(param.default).ok(), "{}", param.key);
            let shown = params.get(param.key).map(|value| value.to_string()).expect("it has the key");
            assert_eq!(params.get(param.key), param.kind.parse(&shown).ok(), "{}", param.key);
        }
        assert_eq!((Params::TABLE[0].key, Params::TABLE[0].bound), ("longest-wait", Some("longer than wait")));
        assert_eq!(Params::TABLE[1].meaning(), "How long it waits at least.");
    }

    #[test]
    fn settings_change_what_they_name_and_no_more() {
        let mut settings = Settings::default();
        settings.set("way", Value::Word("in-turn"));
        settings.set("times", Value::Count(7));
        settings.set("times", Value::Count(8));
        let params = Params::with(&settings).expect("legal");
        assert_eq!(params, Params { way: Way::InTurn, times: 8, ..Params::default() });
        assert_eq!(Params::with(&params.settings()), Ok(params));
    }

    #[test]
    fn what_cannot_be_is_refused_by_its_key() {
        let with = |key, value| {
            let mut settings = Settings::default();
            settings.set(key, value);
            Params::with(&settings).expect_err("wrong").to_string()
        };
        assert_eq!(with("longest-wait", Value::Time(Span::ZERO)), "longest-wait = 0 ns must be longer than wait");
        assert_eq!(
            with("times", Value::Count(1 << 32)),
            "times = 4294967296 must be a whole number from 0 to 4294967295"
        );
        assert_eq!(with("gain", Value::Flag(true)), "gain = true must be a number");
        assert_eq!(with("weight", Value::Count(1)), "there is no parameter `weight`");
    }

    #[test]
    fn a_text_is_read_as_its_kind_says() {
        let told = |kind: Kind, text: &str| kind.parse(text).expect_err("wrong").to_string();
        assert_eq!(told(Kind::Count, "-1"), "`-1` is not a whole number, zero or more");
        assert_eq!(
            told(<Way as Typed>::KIND, "at once"),
            "`at once` is not a choice here; write `in-turn` or `at-once`"
        );
        assert!(told(Kind::Time, "20").contains("a time needs a unit; write"));
    }
}
