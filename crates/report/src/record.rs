//! What one run of one law under one seed measured.

use crate::{Delays, Figure, Key, StreamRecord, Track, Window};
use lasthop_signals::Node;
use lasthop_units::{Span, Time};
use std::collections::BTreeMap;

/// The harvest of one run. Equal inputs to the recorder give equal records.
#[derive(Clone, PartialEq, Debug)]
pub struct RunRecord {
    /// When measuring began and ended.
    pub window: Window,
    /// Every figure, measured or absent with its reason.
    pub figures: BTreeMap<Key, Figure>,
    /// The same for each station, in the order given to the recorder.
    pub stations: Vec<StationRecord>,
    /// Each stream, in the order given to the recorder.
    pub streams: Vec<StreamRecord>,
    /// Delays over the hop inside the window, all stations.
    pub hop_delays: Delays,
    /// How much time one bin of a track covers.
    pub bin: Span,
    /// Time series, the warm-up included, in a fixed order.
    pub tracks: Vec<Track>,
    /// Every packet's delay over the hop, if the recorder was asked to keep them; in the order they were recorded.
    pub packets: Option<Vec<PacketDelay>>,
    /// What a reader should know about how this was measured.
    pub notes: Vec<String>,
}

/// One station's share of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct StationRecord {
    /// Its number on the hop.
    pub node: Node,
    /// Its name.
    pub name: String,
    /// Its figures; those that compare stations are missing.
    pub figures: BTreeMap<Key, Figure>,
    /// Its delays over the hop inside the window.
    pub hop_delays: Delays,
}

/// One packet's way over the hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketDelay {
    /// Place of the station in [`RunRecord::stations`].
    pub station: u16,
    /// When it was delivered.
    pub at: Time,
    /// How long it had been queued and in the air.
    pub delay: Span,
}

impl RunRecord {
    /// The value of one figure.
    pub fn figure(&self, key: Key) -> Figure {
        self.figures.get(&key).cloned().unwrap_or_else(|| Figure::absent("not measured by this run"))
    }
}
