//! Counters of an agent, each declared once, where it is counted: accounts, statuses and metrics
//! are made of the declaration.

use serde::Serialize;
use serde_json::{Map, Value};

/// What a counter is called, and what it counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meaning {
    /// Its name in the account.
    pub name: &'static str,
    /// Its name among the metrics.
    pub metric: &'static str,
    /// What it counts, line by line.
    pub doc: &'static [&'static str],
}

/// A record of counters by their names, as accounts and statuses have it.
///
/// # Panics
/// If the record is no object, or has a map with keys that are not text.
pub fn account(record: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(record) {
        Ok(Value::Object(account)) => account,
        other => panic!("a record of named counters, not {other:?}"),
    }
}

/// Declares a record of counters, serialised by their names, with its [`Meaning`]s. The doc comments
/// are what users read. `#[metric("…")]` before a counter is its name among the metrics, where that
/// is another one.
macro_rules! counters {
    ($(#[$of:meta])* pub struct $record:ident { $(
        $(#[doc = $doc:literal])+ $(#[metric($metric:literal)])? $(#[serde($($serde:tt)*)])? pub $field:ident: $type:ty,
    )* }) => {
        $(#[$of])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
        pub struct $record {
            $( $(#[doc = $doc])+ $(#[serde($($serde)*)])? pub $field: $type, )*
        }

        impl $record {
            /// What its counters are called, and what they count.
            pub const MEANINGS: &'static [$crate::service::counters::Meaning] = &[$({
                let name = $crate::service::counters::counters!(@name $field $($($serde)*)?);
                $crate::service::counters::Meaning { name, metric: $crate::service::counters::counters!(@metric name $($metric)?), doc: &[$($doc),+] }
            },)*];
        }
    };
    (@name $field:ident rename = $name:literal $($further:tt)*) => { $name };
    (@name $field:ident $($further:tt)*) => { stringify!($field) };
    (@metric $name:ident $metric:literal) => { $metric };
    (@metric $name:ident) => { $name };
}
pub(crate) use counters;
