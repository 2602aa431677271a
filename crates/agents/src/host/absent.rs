//! The agent of a build without eBPF.

use super::error::Error;
use super::{Config, Summary, Way};
use crate::service::absent;

absent!(Host, [Config, &lasthop_laws::Choice], Summary, Error);

impl Host {
    /// Never called.
    pub fn way(&self) -> Way {
        match self.0 {}
    }
}
