//! What a sent packet carried, to be sent again if it is lost.

use std::ops::Range;

/// Contents of a packet that ask for an acknowledgement.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    /// The first part of a stream; nearly every packet has just one.
    pub(super) data: Option<Part>,
    /// Everything else.
    pub(super) more: Vec<Item>,
}

/// Part of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) stream: u32,
    pub(super) range: Range<u64>,
    /// The stream's end was sent with it.
    pub(super) end: bool,
}

/// What is sent until it is acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    Data(Part),
    Open(u32),
    Opened(u32),
    Window(u32),
    Reset {
        stream: u32,
        /// Octets of it that were sent.
        sent: u64,
    },
    Budget,
    Ping,
}

impl Content {
    pub(super) fn add_data(&mut self, part: Part) {
        match self.data {
            None => self.data = Some(part),
            Some(_) => self.more.push(Item::Data(part)),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.data.is_none() && self.more.is_empty()
    }

    /// Everything, one by one.
    pub(super) fn into_items(self) -> impl Iterator<Item = Item> {
        self.data.map(Item::Data).into_iter().chain(self.more)
    }
}
