//! Ethernet frames in buffers that are used again and again.

use std::fmt;

/// Room for an Ethernet header, a VLAN tag and the largest packet of a lab interface.
const CAPACITY: usize = 1_536;

/// The length of an Ethernet header without tag.
pub const ETHERNET_HEADER: usize = 14;

/// One Ethernet frame. Its buffer comes from a [`Pool`] and goes back there.
#[derive(Clone)]
pub struct Frame {
    buffer: Box<[u8; CAPACITY]>,
    len: usize,
}

impl Frame {
    fn new() -> Frame {
        Frame { buffer: Box::new([0; CAPACITY]), len: 0 }
    }

    /// The frame's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    /// The frame's bytes, to be changed in place.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[..self.len]
    }

    /// The network-layer packet inside; empty if the frame is shorter than its header.
    pub fn packet(&self) -> &[u8] {
        self.bytes().get(ETHERNET_HEADER..).unwrap_or_default()
    }

    /// The network-layer packet inside, to be changed in place.
    pub fn packet_mut(&mut self) -> &mut [u8] {
        self.bytes_mut().get_mut(ETHERNET_HEADER..).unwrap_or_default()
    }

    /// The receiver's Ethernet address; `None` if the frame is shorter than its header.
    pub fn destination(&self) -> Option<[u8; 6]> {
        if self.len < ETHERNET_HEADER {
            return None;
        }
        self.bytes().first_chunk().copied()
    }

    /// The protocol of the packet inside; 0 if the frame is shorter than its header.
    pub fn ethertype(&self) -> u16 {
        self.bytes().get(12..14).map_or(0, |field| u16::from_be_bytes([field[0], field[1]]))
    }

    /// The whole buffer, to be filled.
    pub(crate) fn buffer(&mut self) -> &mut [u8] {
        &mut self.buffer[..]
    }

    /// Says how much of the buffer was filled.
    pub(crate) fn set_len(&mut self, len: usize) {
        self.len = len.min(CAPACITY);
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Frame({} B, type {:#06x})", self.len, self.ethertype())
    }
}

/// Buffers at rest. A run allocates only while its queues reach a new maximum.
#[derive(Debug, Default)]
pub struct Pool {
    free: Vec<Frame>,
}

impl Pool {
    /// A pool with `count` buffers at rest.
    pub fn with(count: usize) -> Pool {
        Pool { free: std::iter::repeat_with(Frame::new).take(count).collect() }
    }

    /// A buffer with undefined content.
    pub fn take(&mut self) -> Frame {
        self.free.pop().unwrap_or_else(Frame::new)
    }

    /// Puts a buffer back.
    pub fn give(&mut self, frame: Frame) {
        self.free.push(frame);
    }
}
