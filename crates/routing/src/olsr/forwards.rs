//! Messages of others that wait to be forwarded, each for a random moment (RFC 3626, section 3.4.1, step 8: jitter).

use lasthop_units::Time;
use lasthop_wire::olsr::{MESSAGE_HEADER_LEN, Message};
use std::collections::VecDeque;

/// Messages that wait, and their octets: twice what a mesh of 50 nodes forwards in a quarter of a HELLO interval.
pub const MOST_FORWARDS: usize = 256;
/// Octets of messages that wait.
pub const MOST_FORWARD_OCTETS: usize = 65_536;

/// Whole messages in the order in which they came, each with when it goes at the latest.
#[derive(Clone, Debug, Default)]
pub(super) struct Forwards {
    waiting: VecDeque<(Time, Vec<u8>)>,
    octets: usize,
}

impl Forwards {
    /// A message, its header as it is to go, waits until `due`. False if there is no room.
    pub(super) fn push(&mut self, due: Time, message: &Message<'_>) -> bool {
        let len = message.len();
        if self.waiting.len() >= MOST_FORWARDS || self.octets + len > MOST_FORWARD_OCTETS {
            return false;
        }
        let mut octets = Vec::with_capacity(len);
        let written = message.encode(&mut octets).is_ok();
        debug_assert!(written, "what came in a packet fits into one");
        self.octets += octets.len();
        self.waiting.push_back((due, octets));
        true
    }

    /// When the next goes.
    pub(super) fn next(&self) -> Option<Time> {
        self.waiting.iter().map(|(due, _)| *due).min()
    }

    /// Takes the first, whether it is due or not, if it has at most `room` octets.
    pub(super) fn pop(&mut self, room: usize) -> Option<Vec<u8>> {
        self.waiting.front().filter(|(_, octets)| octets.len() <= room)?;
        let (_, octets) = self.waiting.pop_front()?;
        debug_assert!(octets.len() >= MESSAGE_HEADER_LEN, "a message");
        self.octets -= octets.len();
        Some(octets)
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}
