//! Spans as numbers of a unit, for fields that carry the unit in their name: `#[serde(serialize_with = "…")]`.

use crate::Span;
use serde::Serializer;

/// Microseconds, for a field in `_us`.
///
/// # Errors
/// Those of `to`.
pub fn micros<S: Serializer>(span: &Span, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(span.as_nanos() as f64 / 1e3)
}

/// Whole microseconds, for a field in `_us`.
///
/// # Errors
/// Those of `to`.
pub fn whole_micros<S: Serializer>(span: &Span, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(span.as_micros())
}

/// Milliseconds, for a field in `_ms`.
///
/// # Errors
/// Those of `to`.
pub fn millis<S: Serializer>(span: &Span, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(span.as_nanos() as f64 / 1e6)
}
