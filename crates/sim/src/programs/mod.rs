//! The programs that run on hosts: a file for each kind.

pub(crate) mod atp;
pub(crate) mod connection;
pub(crate) mod edge;
pub(crate) mod proxy;
pub(crate) mod router;
pub(crate) mod source;
pub(crate) mod station;
pub(crate) mod terminal;
