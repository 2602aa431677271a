//! Bytes to structs and back. Nothing here panics, whatever the bytes.

pub mod tcp;
