//! Why a stream did not come to a good end.

use crate::service;
use crate::tunnel::keys::KeyError;
use lasthop_units::Span;

/// What ended a connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// Nobody has ever answered.
    #[error(
        "nobody answered within {0}: start `lasthop recv` there, and look whether the address is right and a firewall lets UDP pass"
    )]
    NoAnswer(Span),
    /// The other end has fallen silent.
    #[error("the other end has not been heard for {0}: it has been killed, or the way to it is gone")]
    Silent(Span),
    /// The receiver has a key and the sender has none.
    #[error("the receiver takes only streams with its key: give the same file with --key")]
    WantsKey,
    /// The sender has a key and the receiver has none.
    #[error(
        "the receiver has no key, and would take a stream from anybody: start it with --key, or leave --key out here"
    )]
    NoKey,
    /// The receiver asks for what it has acknowledged.
    #[error(
        "the receiver lacks what it is said to have: somebody has forged an acknowledgement; give both ends the same --key, and send again"
    )]
    Contradicted,
    /// The receiver serves another sender.
    #[error("the receiver is busy with another stream: wait, or start another one at another port")]
    Busy,
    /// The other end was told to stop.
    #[error("the other end was told to stop")]
    Stopped,
    /// The receiver's application cannot keep what comes.
    #[error("the receiver cannot keep what comes: it says there why")]
    CannotKeep,
    /// The receiver has kept less or more than was sent.
    #[error("the receiver has kept {kept} octets of {sent}")]
    Differs {
        /// What it has kept.
        kept: u64,
        /// What was sent.
        sent: u64,
    },
}

/// Why an end of a stream could not start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// A socket, an address or a law.
    #[error(transparent)]
    Agent(#[from] service::Error),
    /// A key.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// The connection.
    #[error(transparent)]
    Failed(#[from] Failure),
}
