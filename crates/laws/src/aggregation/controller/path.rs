//! What one station's account says of the path before the hop: of packets that are late, or missing, without having waited at the hop.
//! Source:     own; what is concluded from it: `aggregation/backhaul.rs`.
//! Equations:  none of its own.
//! Symbols:    none.
//! Deviations: none.
//! Validity:   accounts with packets of the tunnel counted at both ends.
//! Checked by: tests/integration/aggregation_backhaul.rs

use crate::aggregation::backhaul::{self, Detector, Earliest};

/// Of one station.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Path {
    /// When its packets come at the earliest.
    pub earliest: Earliest,
    /// What its last account says: one that is late must not be missing in the sum.
    pub stream: Option<backhaul::Stream>,
    /// True if that account is of the last slot.
    pub fresh: bool,
    /// What it finds if its packets are missing, and not those of most.
    pub own: Detector,
}

impl Path {
    /// What is kept of it when the station begins anew.
    pub fn kept(&self) -> Path {
        Path { earliest: self.earliest, ..Path::default() }
    }

    /// Looks after its packets, if they are its `own` matter: not if those of most are missing.
    pub fn detect(&mut self, own: bool) {
        if !own {
            self.own = Detector::default();
        } else if let Some(slot) =
            self.stream.filter(|_| self.fresh).and_then(|own| backhaul::Slot::of([own].into_iter()))
        {
            self.own.update(&slot);
        }
    }
}
