//! TCP headers (RFC 9293, section 3.1) and the options that laws and endpoints use.

mod capacity;
mod header;
mod parse;
mod write;

pub use capacity::{CAPACITY_LEN, Capacity, LogRate};
pub use header::{Flags, SackBlock, SackBlocks, TcpHeader, TcpOptions, Timestamps};
pub use parse::parse;
pub use write::write;

/// Offset of the window field.
pub const WINDOW_AT: usize = 14;
/// Offset of the checksum field.
pub const CHECKSUM_AT: usize = 16;

/// Length of a header without options.
const MIN_LEN: usize = 20;

/// Option kinds (IANA registry "TCP Option Kind Numbers").
mod kind {
    pub const END: u8 = 0;
    pub const NO_OPERATION: u8 = 1;
    pub const MSS: u8 = 2;
    pub const WINDOW_SCALE: u8 = 3;
    pub const SACK_PERMITTED: u8 = 4;
    pub const SACK: u8 = 5;
    pub const TIMESTAMPS: u8 = 8;
    pub const MD5: u8 = 19;
    pub const AO: u8 = 29;
    pub const MPTCP: u8 = 30;
    pub const EXPERIMENT: u8 = 253;
}
