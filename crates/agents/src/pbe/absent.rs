//! The agents of a build without eBPF: they say what is missing.

use super::{ReceiverConfig, ReceiverSummary, SenderConfig, SenderSummary};
use crate::ap::Stop;
use crate::tunnel::Error;
use std::convert::Infallible;

/// Never there.
pub struct Sender(Infallible);

impl Sender {
    /// Always [`crate::ap::Error::NotBuilt`].
    ///
    /// # Errors
    /// Always.
    pub fn open(config: &SenderConfig) -> Result<Sender, Error> {
        config.validate()?;
        Err(crate::ap::Error::NotBuilt.into())
    }

    /// Nobody gets so far.
    ///
    /// # Errors
    /// None.
    pub fn run(self, _: &Stop) -> Result<SenderSummary, Error> {
        match self.0 {}
    }
}

/// Never there.
pub struct Receiver(Infallible);

impl Receiver {
    /// Always [`crate::ap::Error::NotBuilt`].
    ///
    /// # Errors
    /// Always.
    pub fn open(config: &ReceiverConfig) -> Result<Receiver, Error> {
        config.logs.validate()?;
        Err(crate::ap::Error::NotBuilt.into())
    }

    /// Nobody gets so far.
    ///
    /// # Errors
    /// None.
    pub fn run(self, _: &Stop) -> Result<ReceiverSummary, Error> {
        match self.0 {}
    }
}
