//! What the laws' parameters have in common: how one that cannot be is refused.

/// A parameter that cannot be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ParamError {
    /// A value lies outside its bounds.
    #[error("{key} = {got} must be {bound}")]
    OutOfBounds {
        /// Which parameter, as its field is called.
        key: &'static str,
        /// Its value.
        got: String,
        /// What it may be.
        bound: &'static str,
    },
}

/// Refuses `got` for `key`, which must be `bound`.
pub(crate) fn refuse(key: &'static str, got: impl std::fmt::Display, bound: &'static str) -> Result<(), ParamError> {
    Err(ParamError::OutOfBounds { key, got: got.to_string(), bound })
}

/// `got` must lie above the lower bound and not above the upper one; NaN does not.
pub(crate) fn within(key: &'static str, got: f64, bounds: (f64, f64), bound: &'static str) -> Result<(), ParamError> {
    if got > bounds.0 && got <= bounds.1 { Ok(()) } else { refuse(key, got, bound) }
}
