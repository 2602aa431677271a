//! The agent of a build without eBPF: says what is missing.

use super::{Config, Error, Summary};
use crate::service::driver::DriverSource;
use crate::service::{self, Cleaned, Stop};
use lasthop_laws::HopLaw;

/// Always [`service::Error::NotBuilt`].
///
/// # Errors
/// Always.
pub fn run(config: &Config, _: Box<dyn HopLaw>, _: &Stop) -> Result<Summary, Error> {
    config.validate()?;
    Err(service::Error::NotBuilt.into())
}

/// Always [`service::Error::NotBuilt`].
///
/// # Errors
/// Always.
pub fn run_with(config: &Config, _: Box<dyn HopLaw>, _: &mut dyn DriverSource, _: &Stop) -> Result<Summary, Error> {
    config.validate()?;
    Err(service::Error::NotBuilt.into())
}

/// Always [`service::Error::NotBuilt`]: what was never built was never attached by this binary.
///
/// # Errors
/// Always.
pub fn clean(_: &str) -> Result<Cleaned, service::Error> {
    Err(service::Error::NotBuilt)
}
