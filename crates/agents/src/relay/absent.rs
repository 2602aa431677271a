//! The relay of a build without eBPF.

use super::PerHop;
use super::config::{Config, Summary};
use super::error::Error;
use crate::service::{self, Cleaned, Method, absent};

absent!(Relay, [Config], Summary, Error);

impl Relay {
    /// As [`Relay::open`].
    ///
    /// # Errors
    /// Always.
    pub fn open_with(config: &Config, _: Box<dyn PerHop>) -> Result<Relay, Error> {
        Relay::open(config)
    }

    /// Never called.
    pub fn devices(&self) -> impl Iterator<Item = (&str, Method)> {
        std::iter::from_fn(|| match self.0 {})
    }
}

/// Always [`service::Error::NotBuilt`]: what was never built was never attached by this binary.
///
/// # Errors
/// Always.
pub fn clean(_: &str) -> Result<Cleaned, service::Error> {
    Err(service::Error::NotBuilt)
}
