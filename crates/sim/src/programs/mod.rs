//! The programs that run on hosts: a file for each kind.

pub(crate) mod atp;
pub(crate) mod cell_monitor;
pub(crate) mod connection;
pub(crate) mod edge;
pub(crate) mod probe;
pub(crate) mod proxy;
pub(crate) mod relay;
pub(crate) mod router;
pub(crate) mod source;
pub(crate) mod station;
pub(crate) mod tcp;
pub(crate) mod terminal;
pub(crate) mod transfer;
pub(crate) mod udp;
