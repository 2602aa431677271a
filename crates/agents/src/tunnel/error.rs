//! What can go wrong with an end of a tunnel: a proxy, a gateway, an end of a stream.

use super::keys::KeyError;
use crate::service::{self, agent_error};
use crate::transparent;

/// Why an end of a tunnel could not start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What any agent can meet.
    #[error(transparent)]
    Service(#[from] service::Error),
    /// Keys.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// The transparent mode.
    #[error(transparent)]
    Transparent(transparent::Error),
}

agent_error!(Error, Transparent(transparent::Error));
