//! A session's keys: sealing packets and opening them, each once.

use super::replay::Replay;
use lasthop_wire::tunnel::{SEALED_HEADER, TAG, sealed_header};
use snow::StatelessTransportState;

/// The keys of a session, and which packets have been opened.
pub struct Sealer {
    keys: StatelessTransportState,
    /// The other end's number for the session.
    remote: u32,
    replay: Replay,
}

/// Why a packet was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It was opened before, or is too old to say.
    Repeated,
    /// Whoever sealed it does not hold the key, or it was changed on the way.
    Forged,
}

impl Sealer {
    pub(super) fn new(keys: StatelessTransportState, remote: u32) -> Sealer {
        Sealer { keys, remote, replay: Replay::new() }
    }

    /// Appends the datagram of packet `number` to `out`. A number must never be sealed twice.
    pub fn seal(&self, number: u64, packet: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&sealed_header(self.remote, number));
        let at = out.len();
        out.resize(at + packet.len() + TAG, 0);
        self.keys.write_message(number, packet, &mut out[at..]).expect("packets are far shorter than Noise allows");
    }

    /// Opens packet `number` into `packet`; returns how long it is, and whether its number is the highest so far.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn open(&mut self, number: u64, sealed: &[u8], packet: &mut [u8]) -> Result<(usize, bool), Refused> {
        // Number 2^64 - 1 is reserved by Noise.
        if number == u64::MAX || !self.replay.is_fresh(number) {
            return Err(Refused::Repeated);
        }
        let len = self.keys.read_message(number, sealed, packet).map_err(|_| Refused::Forged)?;
        let highest = self.replay.is_highest(number);
        self.replay.enter(number);
        Ok((len, highest))
    }

    /// As [`Sealer::open`], but the packet can still be opened.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn try_open(&self, number: u64, sealed: &[u8], packet: &mut [u8]) -> Result<usize, Refused> {
        self.keys.read_message(number, sealed, packet).map_err(|_| Refused::Forged)
    }

    /// Octets of the datagram of a packet.
    pub fn sealed_len(packet: usize) -> usize {
        SEALED_HEADER + packet + TAG
    }
}
