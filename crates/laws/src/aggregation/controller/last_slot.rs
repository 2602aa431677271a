//! What a slot has shown of one station: how many packets its frames held, how often they came, and what was sent to it.
//! Source:     own; [`lasthop_signals::StationFeedback`] is the account.
//! Equations:  m' = m + 0.2 (min{ y/g, 2 } - m),   o' = o + 0.2 (max{ y - 2 g, 0 } - o)
//! Symbols:    y -> `arrived`, g -> `goodput`, m -> `repeats`, o -> `foreign`
//! Deviations: packets beyond two for each that is new come from hosts that send to the station past the proxy.
//! Validity:   where nobody counts the new ones, m and o stay what they were.
//! Checked by: controller::tests, crates/sim/tests/integration/short_queue.rs

use super::LEARNT;
use crate::aggregation::stations::Frames;

/// More packets than this for each that is new are others': no rate control puts up with every other MPDU being damaged.
const MOST_REPEATS: f64 = 2.0;

/// Of the last slot of which the station has told.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LastSlot {
    /// True if a slot's frames have been seen since it was last idle.
    pub known: bool,
    /// True if the last slot is the first of these: the station may have come in its middle.
    pub joined: bool,
    /// Packets a frame.
    pub level: f64,
    /// Frames.
    pub frames: f64,
    /// Time between them, seconds.
    pub interval: f64,
    /// Packets a second that arrived.
    pub arrived: f64,
    /// Packets in frames for each that is new, averaged: MPDUs that are damaged are sent again.
    pub repeats: f64,
    /// Packets a second in its frames beyond those, averaged: others send it something, too.
    pub foreign: f64,
    /// Packets a second that were sent to it.
    pub sent: f64,
    /// True if these are about as many as were allowed.
    pub paced: bool,
    /// True if its packets came so late that some wait for every round.
    pub waits: bool,
    /// True if more were sent than arrived or were lost.
    pub overruns: bool,
}

impl Default for LastSlot {
    fn default() -> LastSlot {
        LastSlot {
            known: false,
            joined: false,
            level: 1.0,
            frames: 0.0,
            interval: f64::INFINITY,
            arrived: 0.0,
            repeats: 1.0,
            foreign: 0.0,
            sent: 0.0,
            paced: true,
            waits: false,
            overruns: false,
        }
    }
}

impl LastSlot {
    /// What is kept of it when the station begins anew.
    pub fn kept(&self) -> LastSlot {
        LastSlot { repeats: self.repeats, foreign: self.foreign, ..LastSlot::default() }
    }

    /// The station has told of its frames.
    pub fn tell(&mut self, told: &Frames) {
        (self.joined, self.known) = (!self.known, true);
        (self.level, self.interval, self.arrived) = (told.level, told.interval, told.rate);
        self.frames = told.seconds / told.interval;
        if let Some(new) = told.goodput.filter(|new| *new > 0.0) {
            self.repeats += LEARNT * ((told.rate / new).clamp(1.0, MOST_REPEATS) - self.repeats);
            self.foreign += LEARNT * ((told.rate - MOST_REPEATS * new).max(0.0) - self.foreign);
        }
    }
}
