//! The relay of a build without eBPF: says what is missing.

use super::PerHop;
use super::config::{Config, Summary};
use super::error::Error;
use crate::service::{self, Cleaned, Method, Stop};
use std::convert::Infallible;

/// Never there.
pub struct Relay(Infallible);

impl Relay {
    /// Always [`service::Error::NotBuilt`].
    ///
    /// # Errors
    /// Always.
    pub fn open(config: &Config) -> Result<Relay, Error> {
        config.validate()?;
        Err(service::Error::NotBuilt.into())
    }

    /// Always [`service::Error::NotBuilt`].
    ///
    /// # Errors
    /// Always.
    pub fn open_with(config: &Config, _: Box<dyn PerHop>) -> Result<Relay, Error> {
        Relay::open(config)
    }

    /// Nobody gets so far.
    pub fn devices(&self) -> impl Iterator<Item = (&str, Method)> {
        std::iter::from_fn(|| match self.0 {})
    }

    /// Nobody gets so far.
    ///
    /// # Errors
    /// None.
    pub fn run(self, _: &Stop) -> Result<Summary, Error> {
        match self.0 {}
    }
}

/// Always [`service::Error::NotBuilt`]: what was never built was never attached by this binary.
///
/// # Errors
/// Always.
pub fn clean(_: &str) -> Result<Cleaned, service::Error> {
    Err(service::Error::NotBuilt)
}
