//! The agents of a build without eBPF: they say what is missing.

use super::error::Error;
use super::{ReceiverConfig, ReceiverSummary, SenderConfig, SenderSummary};
use crate::service;
use crate::service::Stop;
use std::convert::Infallible;

/// Never there.
pub struct Sender(Infallible);

impl Sender {
    /// Always [`service::Error::NotBuilt`].
    ///
    /// # Errors
    /// Always.
    pub fn open(config: &SenderConfig) -> Result<Sender, Error> {
        config.validate()?;
        Err(service::Error::NotBuilt.into())
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
    /// Always [`service::Error::NotBuilt`].
    ///
    /// # Errors
    /// Always.
    pub fn open(config: &ReceiverConfig) -> Result<Receiver, Error> {
        config.logs.validate()?;
        Err(service::Error::NotBuilt.into())
    }

    /// Nobody gets so far.
    ///
    /// # Errors
    /// None.
    pub fn run(self, _: &Stop) -> Result<ReceiverSummary, Error> {
        match self.0 {}
    }
}
