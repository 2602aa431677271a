//! Frames as a monitor interface shows them, live: what a station's agent measures aggregation from.
//!
//! On a monitor interface packets begin with a radiotap header (ARPHRD type 803): `iw dev wlan0 interface add
//! mon0 type monitor` makes one on hardware, the lab makes them itself. [`MonitorReader`] reads it through AF_PACKET.

mod error;
mod reader;

pub use error::MonitorError;
pub use reader::{Heard, MonitorReader};

use crate::service::{self, privileges};

/// Gives up every capability of the calling thread: a reader that is open needs none.
///
/// # Errors
/// [`service::Error::Privileges`].
pub fn drop_privileges() -> Result<(), service::Error> {
    privileges::drop_all_but(&[])
}
