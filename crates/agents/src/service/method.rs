//! How programs are attached to an interface, and what is found there of earlier agents.

use serde::{Serialize, Serializer};
use std::fmt;

/// How the programs are attached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Method {
    /// TCX if the kernel has it (Linux 6.6), else clsact.
    #[default]
    Best,
    /// TCX links: the kernel detaches them when the process ends, however it ends.
    Tcx,
    /// Filters on the clsact qdisc.
    Clsact,
}

impl Method {
    /// As accounts and statuses name what was attached: `tcx` or `clsact`.
    pub const fn name(self) -> &'static str {
        match self {
            Method::Clsact => "clsact",
            Method::Best | Method::Tcx => "tcx",
        }
    }
}

impl Serialize for Method {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Method::Best => "the best way there is",
            Method::Tcx => "TCX",
            Method::Clsact => "clsact",
        })
    }
}

/// What cleaning an interface has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cleaned {
    /// Filters that were removed.
    pub removed: usize,
    /// Programs of an agent that lives.
    pub still_attached: usize,
}
