//! TCP headers (RFC 9293, section 3.1) and the options that laws and endpoints use.

mod header;

pub use header::{Flags, SackBlock, SackBlocks, TcpHeader, TcpOptions, Timestamps};
