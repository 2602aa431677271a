//! Bytes to structs and back. Nothing here panics, whatever the bytes.
//!
//! Parsers are strict: a length that contradicts another or reaches beyond the buffer is an [`Error`], never a guess,
//! because what is parsed here is also rewritten here.

pub mod atp;
pub mod checksum;
pub mod datagram;
pub mod dci;
pub mod delivery;
pub mod dot11;
pub mod driver;
mod error;
pub mod ethernet;
mod flow;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod ip;
pub mod monitor;
pub mod nl80211;
pub mod nla;
pub mod notice;
pub mod olsr;
mod packet;
pub mod pcap;
pub mod proxy;
pub mod radiotap;
pub mod relay;
pub mod sock_diag;
pub mod tcp;
pub mod tcp_info;
pub mod tunnel;

pub use error::Error;
pub use flow::FlowKey;
pub use packet::{Link, TcpPacket, ip_tcp_packet};

/// The bytes `at..at + N` as an array; `None` if the buffer is shorter.
fn take<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// A big-endian (network order) `u16` at `at`.
fn be16(bytes: &[u8], at: usize) -> Result<u16, Error> {
    take(bytes, at).map(u16::from_be_bytes).ok_or(Error::Truncated { needed: at.saturating_add(2), got: bytes.len() })
}

/// A big-endian (network order) `u32` at `at`.
fn be32(bytes: &[u8], at: usize) -> Result<u32, Error> {
    take(bytes, at).map(u32::from_be_bytes).ok_or(Error::Truncated { needed: at.saturating_add(4), got: bytes.len() })
}
