//! Streams of traffic as reports name them, and what is measured of each.

use crate::jitter::Jitter;
use crate::user_latency::Waits;
use crate::{Figure, Key, Window};
use lasthop_signals::Node;
use lasthop_units::{Bytes, Rate, Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which way a stream goes over the last hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// To a station.
    Down,
    /// From a station.
    Up,
    /// From one station to another: up, and down again.
    Across,
    /// Between wired hosts: not at all.
    Wired,
}

/// A stream of traffic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamInfo {
    /// Its name, unique in the run: `bulk sofa to server`.
    pub name: String,
    /// What it is, as a scenario's `kind` says it; `bulk-udp` for UDP as fast as a regulator allows.
    pub kind: String,
    /// The host that has the data.
    pub from: String,
    /// The host that gets them.
    pub to: String,
    /// Which way it goes.
    pub direction: Direction,
    /// The station with the figures that it counts for; [`crate::NOBODY`] if none of its ends is one.
    pub station: Node,
}

/// One stream's share of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct StreamRecord {
    /// What it is.
    pub info: StreamInfo,
    /// Its figures: those that its kind of traffic yields.
    pub figures: BTreeMap<Key, Figure>,
}

/// What is measured of datagrams, of fetches, and of packets that a stream sends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured {
    pub(crate) waits: Waits,
    pub(crate) jitter: Jitter,
    payload: Bytes,
}

impl Measured {
    /// A datagram that left at `sent` has come.
    pub(crate) fn datagram(&mut self, sent: Time, received: Time, payload: Bytes, window: &Window) {
        if window.contains(sent) {
            self.waits.ended(received.since(sent));
        }
        if window.contains(received) {
            self.payload += payload;
        }
        self.jitter.arrival(sent, received, window.contains(received));
    }

    /// One that left at `sent` has not.
    pub(crate) fn datagram_lost(&mut self, sent: Time, window: &Window) {
        if window.contains(sent) {
            self.waits.never();
        }
    }

    /// All of `other`'s too, but for the jitter, which is of one stream.
    pub(crate) fn merge(&mut self, other: &Measured) {
        self.waits.merge(&other.waits);
        self.payload += other.payload;
    }

    /// Payload that came, over the window.
    pub(crate) fn rate(&self, window: Span) -> Figure {
        match Rate::of(self.payload, window) {
            Some(rate) => Figure::exact(rate.as_mbit_f64()),
            None => Figure::absent("the warm-up leaves no time to measure in"),
        }
    }

    /// Datagrams that never came, over those and the ones that came.
    pub(crate) fn loss(&self) -> Figure {
        Figure::or_absent(self.waits.open_share(), "no datagram was sent in the measuring window")
    }
}
