//! What a packet of one station takes on the air, and how well that is known.
//! Source:     own; in \[aggregation\] stations tell the data rate of every frame.
//! Equations:  s' = s + 0.2 (w - s)  while 0.8 s <= w <= 1.25 s;   s' = w  when w has left that: to the same side in two slots, or in
//!             one after four that were within it
//! Symbols:    w -> `time`, s -> `settled`
//! Deviations: a channel that fades has another w in every slot, and is the same hop: one slot alone says nothing after others that
//!             were outside.
//! Validity:   w is the mean of a slot; in the one in which the data rate changes it is between both.
//! Checked by: controller::tests (`shifted`, rates that are told no more)

use super::LEARNT;

/// A station that tells no rates while its frames hold fewer packets than this, for so many slots, has no known rate.
pub(super) const FEW: f64 = 3.0;
pub(super) const FORGOTTEN_AFTER: u32 = 8;
/// A packet that takes so many times as long as was settled, or less long by as much, in two slots is of another hop.
const SHIFT: f64 = 1.25;
/// In one slot, if so many were calm before it.
const CALM: u32 = 4;

/// A station's packets on the air.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AirtimeState {
    /// Seconds a packet (w); zero before anything is known.
    pub time: f64,
    /// True if its station has told data rates; otherwise w is what the rounds leave.
    pub rated: bool,
    /// What w was when it last told them, unless that has turned out to be wrong.
    pub told: Option<f64>,
    /// Slots in a row in which it has told none.
    pub untold: u32,
    /// Slots in a row in which neither that nor rounds have shown what its packets take.
    pub unshown: u32,
    /// True if w is that of the slot before, as far as is known.
    pub steady: bool,
    /// True if w is another hop's, by that of this slot.
    pub shifted: bool,
    /// What w is taken to be while it is about that.
    settled: f64,
    /// To which side of it the w of the last slot was, if it was far from it: longer (true) or less long.
    aside: Option<bool>,
    /// Slots in a row in which it was not.
    calm: u32,
}

impl Default for AirtimeState {
    fn default() -> AirtimeState {
        AirtimeState {
            time: 0.0,
            rated: false,
            told: None,
            untold: 0,
            unshown: 0,
            steady: true,
            shifted: false,
            settled: 0.0,
            aside: None,
            calm: 0,
        }
    }
}

/// True if a packet takes so many times as long as one of another hop would at least, false if it is as much less.
fn off(ratio: f64) -> Option<bool> {
    (!(1.0 / SHIFT..=SHIFT).contains(&ratio)).then_some(ratio > 1.0)
}

impl AirtimeState {
    /// True if anything has said what its packets take.
    pub fn is_known(&self) -> bool {
        self.time > 0.0
    }

    /// What is kept of it when the station begins anew; `first`, if nothing is known.
    pub fn kept(&self, first: f64) -> AirtimeState {
        let time = if self.is_known() { self.time } else { first };
        AirtimeState { time, rated: self.rated, told: self.told, settled: self.settled, ..AirtimeState::default() }
    }

    /// The station has told the data rates of a slot.
    pub fn tell(&mut self, time: f64) {
        let lasted = self.rated && self.untold == 0;
        self.steady = !lasted || off(time / self.time).is_none();
        self.settle(time, lasted);
        (self.time, self.told, self.rated) = (time, Some(time), true);
        (self.untold, self.unshown) = (0, 0);
    }

    /// It has told none of frames that held `level` packets in the mean; `held`: because the path before the hop carries no more. From frames of
    /// a packet or two none can be told again, and a wrong rate that makes them short would stay.
    pub fn tell_nothing(&mut self, level: f64, held: bool) {
        self.untold += 1;
        (self.aside, self.steady) = (None, !self.rated);
        let short = level < FEW && !held;
        if self.rated && short && self.untold >= FORGOTTEN_AFTER {
            (self.rated, self.told) = (false, None);
        }
    }

    /// With this its packets, and those of others, would have taken `load` times all there is. What was told longer ago may still be right
    /// beside what others told.
    pub fn refuse(&mut self, load: f64) {
        (self.time, self.rated) = (self.time / load, false);
        self.told = Some(self.time).filter(|_| self.untold > 0);
    }

    /// `lasted`: w was told in the slot before as well.
    fn settle(&mut self, time: f64, lasted: bool) {
        let side = off(time / self.settled).filter(|_| lasted);
        self.shifted = side.is_some() && (side == self.aside || self.calm >= CALM);
        self.calm = if side.is_none() && lasted { self.calm.saturating_add(1) } else { 0 };
        // A change within a slot goes on in the next.
        self.aside = side;
        match side {
            Some(_) if !self.shifted => {}
            None if lasted => self.settled += LEARNT * (time - self.settled),
            _ => self.settled = time,
        }
    }
}
