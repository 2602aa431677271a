//! What can go wrong with a station's agent.

use crate::monitor::MonitorError;
use crate::service::{self, agent_error};
use crate::tunnel::keys::KeyError;
use crate::{pbe, transparent};

/// Why a station's agent could not start or go on.
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
    /// The logs of the cell.
    #[error(transparent)]
    Cell(pbe::Error),
    /// The monitor interface.
    #[error("monitor interface: {0}")]
    Monitor(MonitorError),
    /// The monitor interface, which an ordinary user may not open.
    #[error(
        "monitor interface: {0} (`--user NAME` gives all rights up once it is open); or leave it out: without a monitor \
         interface, frames are told from the arrival times of packets, which needs no right"
    )]
    MonitorRight(MonitorError),
}

agent_error!(Error, Transparent(transparent::Error), Cell(pbe::Error));
