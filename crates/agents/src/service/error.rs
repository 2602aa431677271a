//! What can go wrong with any agent.

use super::remedy;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why an agent could not start or go on, where that is not of its own trade.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// This binary was built without the eBPF programs.
    #[error(
        "this build has no eBPF programs: rebuild with feature `bpf` (needs clang, libelf-dev, zlib1g-dev and pkg-config)"
    )]
    NotBuilt,
    /// No such interface in this network namespace.
    #[error("no interface {name} in this network namespace: `ip link` lists those there are")]
    NoInterface {
        /// The name asked for.
        name: String,
    },
    /// The interface's packets do not begin with Ethernet or IP.
    #[error(
        "{name} is of ARPHRD type {arphrd}: only Ethernet-like interfaces (1) and those without link header (65534) will do"
    )]
    LinkType {
        /// The interface.
        name: String,
        /// Its type.
        arphrd: u16,
    },
    /// An address that cannot be had.
    #[error("{what} {address}: {source}{}", remedy::of_address(source))]
    Address {
        /// What it was to be.
        what: &'static str,
        /// The address.
        address: SocketAddr,
        /// What failed.
        source: io::Error,
    },
    /// A value of the configuration that cannot be.
    #[error("{key} = {got} must be {bound}")]
    Config {
        /// Which value.
        key: &'static str,
        /// What it is.
        got: String,
        /// What it may be.
        bound: &'static str,
    },
    /// The law's parameters.
    #[error("these parameters make no law: {0}")]
    Law(#[from] lasthop_laws::ParamError),
    /// The law itself.
    #[error("the law cannot be built: {0}")]
    Build(#[from] lasthop_laws::BuildError),
    /// The process may not do what is needed.
    #[error("not allowed to use {what}: run as root, or with CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN")]
    Permission {
        /// What was refused.
        what: &'static str,
    },
    /// The kernel did not take the programs.
    #[error("the kernel did not load the eBPF programs: {source}\n{said}")]
    Load {
        /// What failed.
        source: Box<dyn std::error::Error + Send + Sync>,
        /// What libbpf and the verifier said.
        said: String,
    },
    /// The programs could not be attached.
    #[error("the eBPF programs could not be attached by {method}: {source} {said}")]
    Attach {
        /// TCX or clsact.
        method: &'static str,
        /// What failed.
        source: io::Error,
        /// What libbpf said.
        said: String,
    },
    /// The interface has an agent already.
    #[error(
        "another agent is attached to this interface: stop that one first (`ss -xp` shows who reads the driver's socket)"
    )]
    Busy,
    /// A map could not be read or written.
    #[error("eBPF map: {source}")]
    Map {
        /// What failed.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The driver's socket.
    #[error("driver socket {path}: {source}{}", remedy::of_driver(source))]
    Driver {
        /// Where it is.
        path: PathBuf,
        /// What failed.
        source: io::Error,
    },
    /// A log.
    #[error("{what} {path}: {source}{}", remedy::of_output(source))]
    Log {
        /// Which.
        what: &'static str,
        /// Where it is.
        path: PathBuf,
        /// What failed.
        source: io::Error,
    },
    /// Privileges could not be dropped.
    #[error("privileges could not be dropped: {0}")]
    Privileges(io::Error),
    /// No such user.
    #[error("there is no user {name} on this machine: `getent passwd` lists those there are")]
    NoUser {
        /// The name or number asked for.
        name: String,
    },
    /// The process may not become another user.
    #[error("cannot become user {name}: {source}; start as root, or as that user and without --user")]
    Become {
        /// The name or number asked for.
        name: String,
        /// What failed.
        source: io::Error,
    },
    /// A kernel interface that always works did not.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What failed.
        source: io::Error,
    },
}

#[cfg(feature = "bpf")]
impl Error {
    pub(crate) fn map(source: libbpf_rs::Error) -> Error {
        match source.kind() {
            libbpf_rs::ErrorKind::PermissionDenied => Error::Permission { what: "eBPF maps" },
            _ => Error::Map { source: source.into() },
        }
    }
}

/// For `map_err`: what was tried when a system call failed.
pub fn system<E: Into<io::Error>>(what: &'static str) -> impl Fn(E) -> Error + Copy {
    move |source| Error::System { what, source: source.into() }
}

/// For `map_err`: what an address was to be that cannot be had.
pub fn address(what: &'static str, address: SocketAddr) -> impl Fn(io::Error) -> Error + Copy {
    move |source| Error::Address { what, address, source }
}

/// The error of an agent, which may be one that any agent can meet.
pub trait AgentError: std::error::Error + Send + Sync + Sized + 'static {
    /// What any agent can meet.
    ///
    /// # Errors
    /// What only this agent can.
    fn common(self) -> Result<Error, Self>;
}

impl AgentError for Error {
    fn common(self) -> Result<Error, Error> {
        Ok(self)
    }
}

/// Makes an enum with a variant `Service` for what any agent can meet an [`AgentError`], which takes the errors of laws for
/// such. A variant with the error of a part is named with that; what any agent can meet there is so here, too.
macro_rules! agent_error {
    ($error:ty $(, $variant:ident($part:ty))*) => {
        $(impl From<$part> for $error {
            fn from(error: $part) -> Self {
                crate::service::AgentError::common(error).map_or_else(Self::$variant, Self::Service)
            }
        })*

        impl crate::service::AgentError for $error {
            fn common(self) -> Result<crate::service::Error, Self> {
                match self {
                    Self::Service(error) => Ok(error),
                    own => Err(own),
                }
            }
        }

        impl From<lasthop_laws::ParamError> for $error {
            fn from(error: lasthop_laws::ParamError) -> Self {
                Self::Service(error.into())
            }
        }

        impl From<lasthop_laws::BuildError> for $error {
            fn from(error: lasthop_laws::BuildError) -> Self {
                Self::Service(error.into())
            }
        }
    };
}
pub(crate) use agent_error;
