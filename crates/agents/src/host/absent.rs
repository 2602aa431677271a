//! The agent of a build without eBPF: says what is missing.

use super::error::Error;
use super::{Config, Summary, Way};
use crate::service;
use crate::service::Stop;
use lasthop_laws::Choice;
use std::convert::Infallible;

/// Never there.
pub struct Host(Infallible);

impl Host {
    /// Always [`service::Error::NotBuilt`].
    ///
    /// # Errors
    /// Always.
    pub fn open(config: &Config, _: &Choice) -> Result<Host, Error> {
        config.validate()?;
        Err(service::Error::NotBuilt.into())
    }

    /// Nobody gets so far.
    pub fn way(&self) -> Way {
        match self.0 {}
    }

    /// Nobody gets so far.
    ///
    /// # Errors
    /// None.
    pub fn run(self, _: &Stop) -> Result<Summary, Error> {
        match self.0 {}
    }
}
