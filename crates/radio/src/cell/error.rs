//! What cannot be among a cell's parameters.

/// Written so that NaN is outside.
pub(super) fn within(key: &str, got: f64, (min, max): (f64, f64)) -> Result<(), Error> {
    if min <= got && got <= max {
        return Ok(());
    }
    Err(Error::OutOfRange { key: key.to_owned(), got, min, max })
}

/// A value of [`super::Params`] that no cell can be built from.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A number lies outside its bounds.
    #[error("{key} = {got} is outside {min} to {max}")]
    OutOfRange {
        /// Where in the parameters.
        key: String,
        /// The value found.
        got: f64,
        /// Smallest legal value.
        min: f64,
        /// Largest legal value.
        max: f64,
    },
    /// Steps that do not begin at zero or do not rise.
    #[error("{0}.channel must begin at zero and rise in time")]
    Steps(String),
    /// Handovers that overlap, or the first of which is at zero.
    #[error("{0}.handovers.at must be above zero, rise, and leave time for each interruption")]
    Handovers(String),
}
