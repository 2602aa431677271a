//! What a report of the receiver changes.
//! Source:     Zhang, Buck, Zappala 2011 and ATP (Sundaresan et al. 2005), the latter not checked against the original.
//! Deviations: what a report claims is bounded, for without a key any host that knows the connection can forge one:
//!             - An echo of a serial number that was never used says nothing of serial numbers; the rest of the report counts. Until an echo is
//!               right again, what is missing is lost when a report shows nothing new and the last packet left long enough ago.
//!             - An echo that was overtaken counts again while the path is unknown: the one that overtook it was forged, or kept.
//!             - A next expected packet that was never made acknowledges nothing; the window counts from it.
//!             - A next expected packet that a block has acknowledged shows that the block was forged: the present report alone counts.
//!             - An epoch is 40 ms to 1 s, a round trip at most 4 s.
//!             - An acknowledgement of what never came cannot be undone. While answers to probes show one, `contradicted` says since when.
//! Validity:   fewer than 2^31 packets in flight.     Checked by: src/atp/tests.rs, crates/agents/src/endpoint/tests.rs

use super::{MOST, Sender};
use crate::atp::Packet;
use lasthop_laws::atp::{LONGEST_DELAY, believed_epoch};
use lasthop_signals::{PathDelay, Signal};
use lasthop_units::Time;
use lasthop_wire::atp::{BLOCKS, Blocks, Header, Kind, NOT_TOLD};

impl Sender {
    /// A packet of the receiver has come.
    pub fn on_packet(&mut self, now: Time, packet: &Packet) {
        let Header { kind, connection, number, serial, average, epoch, window, .. } = packet.header;
        if connection != self.connection || !matches!(kind, Kind::Answer | Kind::Ack) {
            return;
        }
        // What a later report has overtaken, or somebody has kept, says nothing of now.
        if is_before(number, self.una) {
            if kind == Kind::Answer && self.probe.is_some() {
                self.contradicted.get_or_insert(now);
            }
            return;
        }
        let known = serial == self.echoed || is_before(serial, self.serial);
        if known && is_before(serial, self.echoed) && self.probe.is_none() {
            return;
        }
        self.contradicted = None;
        match kind {
            Kind::Answer => self.round_trip = now.since(self.left).min(LONGEST_DELAY),
            _ => self.counters.reports += 1,
        }
        self.epoch = believed_epoch(epoch);
        self.on_ack(now, (number, known.then_some(serial)), &packet.header.blocks, window);
        if average == NOT_TOLD {
            return;
        }
        let average = average.max(self.own_delay).max(std::mem::take(&mut self.first_delay));
        self.tell(now, &Signal::PathDelay(PathDelay { average, epoch }));
    }

    /// The receiver expects `next`; `serial` is what it echoes, if that is one that was used.
    fn on_ack(&mut self, now: Time, (next, serial): (u32, Option<u32>), blocks: &Blocks, window: u16) {
        let advance = next.wrapping_sub(self.una);
        if advance as usize > self.flying.len() {
            // It takes forged packets for those that are to be made: these it does not wait for, and its window begins behind them.
            if advance <= MOST {
                self.window = advance + u32::from(window);
            }
            return;
        }
        let before = self.acked;
        for flying in self.flying.drain(..advance as usize) {
            self.acked += if flying.acked { 0 } else { u64::from(flying.payload) };
        }
        self.una = next;
        self.window = u32::from(window);
        for (from, to) in blocks.as_slice() {
            let (from, to) = (from.wrapping_sub(next) as usize, to.wrapping_sub(next) as usize);
            for flying in self.flying.iter_mut().take(to).skip(from) {
                self.acked += if flying.acked { 0 } else { u64::from(flying.payload) };
                flying.acked = true;
            }
        }
        // A report that is full says nothing of what lies beyond its last block.
        let known = match blocks.as_slice() {
            full @ [.., (_, to)] if full.len() == BLOCKS => to.wrapping_sub(next) as usize,
            _ => usize::MAX,
        };
        if self.flying.front().is_some_and(|front| front.acked) {
            self.believe_only(next, blocks, known);
        }
        // What left before something that has come is lost. So is all the rest where nothing has come between two reports though the last of
        // it left long enough ago.
        let news = serial.map_or(advance > 0 || self.acked > before, |serial| serial != self.echoed);
        let stalled = !news && now.since(self.left) >= self.epoch + self.round_trip;
        let overtaken = |own: u32| stalled || serial.is_some_and(|serial| is_before(own, serial));
        self.echoed = serial.unwrap_or(self.echoed);
        self.lost = 0;
        for (place, flying) in self.flying.iter_mut().enumerate().filter(|(_, flying)| !flying.acked) {
            if place < known && flying.serial.is_some_and(overtaken) {
                flying.serial = None;
            }
            if flying.serial.is_none() {
                self.lost = place + 1;
            }
        }
    }

    /// Takes back, of the first `known` packets, what the blocks of this report do not show.
    fn believe_only(&mut self, next: u32, blocks: &Blocks, known: usize) {
        let shown = |number: u32| {
            let within = |(from, to): &(u32, u32)| number.wrapping_sub(*from) < to.wrapping_sub(*from);
            blocks.as_slice().iter().any(within)
        };
        for (place, flying) in self.flying.iter_mut().take(known).enumerate().filter(|(_, flying)| flying.acked) {
            if !shown(next.wrapping_add(place as u32)) {
                flying.acked = false;
                self.acked -= u64::from(flying.payload);
            }
        }
    }
}

/// True if one number is before the other, on the circle of their 32 bits.
fn is_before(one: u32, other: u32) -> bool {
    (one.wrapping_sub(other) as i32) < 0
}
