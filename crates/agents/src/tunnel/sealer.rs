//! One pair of keys: sealing packets and opening them.

use lasthop_wire::tunnel::{SEALED_HEADER, TAG, sealed_header};
use snow::StatelessTransportState;

/// The keys of both directions.
pub struct Sealer {
    keys: StatelessTransportState,
    /// The other end's number for them.
    remote: u32,
}

/// Why a packet was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It was opened before, or is too old to say.
    Repeated,
    /// Whoever sealed it does not hold the key, or it was changed on the way.
    Forged,
    /// No such keys are known, or they are too old.
    Unknown,
}

impl Sealer {
    pub(super) fn new(keys: StatelessTransportState, remote: u32) -> Sealer {
        Sealer { keys, remote }
    }

    /// Appends the datagram of packet `number` to `out`. A number must never be sealed twice.
    pub fn seal(&self, number: u64, packet: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&sealed_header(self.remote, number));
        let at = out.len();
        out.resize(at + packet.len() + TAG, 0);
        self.keys.write_message(number, packet, &mut out[at..]).expect("packets are far shorter than Noise allows");
    }

    /// Opens packet `number` into `packet`, and returns how long it is. That it was opened before is the caller's to notice.
    ///
    /// # Errors
    /// [`Refused::Forged`].
    pub fn open(&self, number: u64, sealed: &[u8], packet: &mut [u8]) -> Result<usize, Refused> {
        // Number 2^64 - 1 is reserved by Noise.
        if number == u64::MAX {
            return Err(Refused::Forged);
        }
        self.keys.read_message(number, sealed, packet).map_err(|_| Refused::Forged)
    }

    /// Octets of the datagram of a packet.
    pub fn sealed_len(packet: usize) -> usize {
        SEALED_HEADER + packet + TAG
    }
}
