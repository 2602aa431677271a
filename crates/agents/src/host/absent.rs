//! The agent of a build without eBPF: says what is missing.

use super::{Config, Summary, Way};
use crate::ap::Stop;
use crate::tunnel::Error;
use lasthop_laws::Choice;
use std::convert::Infallible;

/// Never there.
pub struct Host(Infallible);

impl Host {
    /// Always [`crate::ap::Error::NotBuilt`].
    ///
    /// # Errors
    /// Always.
    pub fn open(config: &Config, _: &Choice) -> Result<Host, Error> {
        config.validate()?;
        Err(crate::ap::Error::NotBuilt.into())
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
