//! IEEE 802.11 MAC frames: headers, A-MSDUs, BlockAcks.
//! Source:     IEEE 802.11-2020: 9.2.4 (header fields), 9.3.1 (control frames), 9.3.2 (data frames; 9.3.2.2 A-MSDU).
//! Deviations: S1G, DMG and extension frames are named, not taken apart.
//! Checked by: tests::*, tests/integration/monitor_props.rs, the laws' tests/integration/aggregation_captures.rs, fuzz target `dot11`

mod block_ack;
mod header;
mod msdu;
#[cfg(test)]
mod tests;

pub use block_ack::{BlockAck, BlockAckRequest};
pub use header::{FrameControl, Header, Kind, QosControl, SequenceControl};
pub use msdu::{Subframe, Subframes, count_msdus, snap_ethertype, write_snap, write_subframe};

/// Octets of the frame check sequence that ends every frame.
pub const FCS: usize = 4;
/// The frame check sequence (9.2.4.9) of a frame that begins with its MAC header, in the order of the air.
pub fn check_sequence(frame: &[u8]) -> [u8; FCS] {
    crc32fast::hash(frame).to_le_bytes()
}

/// Octets of an A-MSDU subframe's head: destination, source, length.
pub const SUBFRAME_HEAD: usize = 14;
/// Octets of an LLC/SNAP header.
pub const SNAP: usize = 8;
