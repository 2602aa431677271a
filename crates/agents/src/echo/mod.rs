//! Probes of a link: an agent answers those of its neighbours, and asks one if it is told to.
//!
//! [`Echo::open`] binds a socket to an interface and gives all privileges up. Whatever comes from beyond the interface's own networks
//! has no influence. An answer is as long as its probe, goes to its sender, and is no probe itself; answers leave no faster
//! than the law allows.

mod config;
mod probe;
mod run;

pub use config::{Config, PORT, Tally};
pub use run::Echo;
