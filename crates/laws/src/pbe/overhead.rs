//! What headers and padding add to the payload, measured.
//! Source:     Lasthop's own; the paper takes gamma = 0.068 for all cells.
//! Equations:  gamma = B / P - 1, at least H / (L - H), at most the constant
//! Symbols:    B, bits of the terminal's new blocks, and P, bits of payload that have come, both in the last one to two
//!             seconds; L, mean length of packets; H = 52 octets of IPv4 and TCP with timestamps; the constant ->
//!             `Params::overhead`
//! Deviations: what other flows of the terminal carry is in B alone, and blocks with missed assignments in P alone:
//!             the bounds hold gamma where a cell's headers are.
//! Validity:   gamma is the constant until a second has gone by.     Checked by: tests::*

use lasthop_signals::CellSubframe;
use lasthop_units::{Bytes, Span, Time};

/// Headers of a packet above the radio's own, which capacities are told without: IPv4 20, TCP with timestamps 32.
pub const HEADERS: Bytes = Bytes::new(52);
/// Sums are over one to two of these.
const MOMENT: Span = Span::from_secs(1);

/// What the terminal's blocks carry beside payload.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Overhead {
    moment: u64,
    now: Sums,
    before: Option<Sums>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    block_bits: u64,
    packets: u64,
    octets: u64,
}

impl Overhead {
    /// Folds in what a subframe has for the terminal.
    pub(super) fn on_subframe(&mut self, now: Time, subframe: &CellSubframe) {
        let own = subframe.dcis.iter().filter(|dci| dci.is_possible() && Some(dci.rnti) == subframe.own);
        let new = own.flat_map(|dci| dci.blocks.iter().flatten()).filter(|block| !block.is_repeat());
        self.at(now).block_bits += new.map(|block| u64::from(block.bits)).sum::<u64>();
    }

    /// Folds in a packet of that length.
    pub(super) fn on_packet(&mut self, now: Time, len: Bytes) {
        let sums = self.at(now);
        (sums.packets, sums.octets) = (sums.packets + 1, sums.octets + len.get());
    }

    /// gamma; `most` is the constant.
    pub(super) fn get(&self, most: f64) -> f64 {
        let Some(before) = self.before else { return most };
        let add = |of: fn(&Sums) -> u64| of(&before).saturating_add(of(&self.now));
        let (packets, octets) = (add(|sums| sums.packets), add(|sums| sums.octets));
        let headers = packets.saturating_mul(HEADERS.get());
        let Some(payload) = octets.checked_sub(headers).filter(|payload| *payload > 0) else { return most };
        let payload = payload as f64;
        let least = headers as f64 / payload;
        let measured = add(|sums| sums.block_bits) as f64 / 8.0 / payload - 1.0;
        measured.max(least).min(most)
    }

    fn at(&mut self, now: Time) -> &mut Sums {
        let moment = now.as_nanos() / MOMENT.as_nanos();
        match moment.saturating_sub(self.moment) {
            0 => {}
            1 => (self.before, self.now) = (Some(self.now), Sums::default()),
            _ => (self.before, self.now) = (None, Sums::default()),
        }
        self.moment = self.moment.max(moment);
        &mut self.now
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_cell::{OWN, dci, repeat, subframe};
    use super::*;
    use lasthop_signals::Rnti;

    const MOST: f64 = 0.068;

    /// gamma after so many milliseconds, in each of which a block of `bits` and `packets` of 1500 octets come.
    fn after(ms: u64, bits: u32, packets: u64) -> f64 {
        let mut overhead = Overhead::default();
        for n in 0..ms {
            let now = Time::ZERO + Span::from_millis(n);
            // A repeat, and what others have, do not count.
            let seen = subframe(n, vec![dci(OWN, 100, bits), dci(Rnti(9), 50, 30_000), repeat(OWN, 100)]);
            overhead.on_subframe(now, &seen);
            (0..packets).for_each(|_| overhead.on_packet(now, Bytes::new(1500)));
        }
        overhead.get(MOST)
    }

    #[test]
    fn it_is_what_blocks_have_beside_payload() {
        // Two packets of 1448 octets of payload in 3010 octets.
        let gamma = after(2500, 8 * 3010, 2);
        assert!((gamma - (3010.0 / 2896.0 - 1.0)).abs() < 1e-9, "{gamma}");
    }

    #[test]
    fn it_is_the_constant_until_it_is_known_and_at_most() {
        assert_eq!(after(999, 8 * 3010, 2), MOST);
        assert_eq!(after(2500, 8 * 3010, 0), MOST, "nothing has come");
        assert_eq!(after(2500, 8 * 6000, 2), MOST, "half of the blocks are another flow's");
        let mut old = Overhead::default();
        old.on_packet(Time::ZERO, Bytes::new(1500));
        old.on_packet(Time::ZERO + MOMENT * 5, Bytes::new(1500));
        assert_eq!(old.get(MOST), MOST, "what was seconds ago says nothing");
    }

    #[test]
    fn it_is_at_least_what_the_packets_themselves_have() {
        let gamma = after(2500, 8 * 2800, 2);
        assert!((gamma - 52.0 / 1448.0).abs() < 1e-9, "a tenth of the assignments was missed: {gamma}");
        let mut short = Overhead::default();
        (0..2).for_each(|n| short.on_packet(Time::ZERO + MOMENT * n, Bytes::new(40)));
        assert_eq!(short.get(MOST), MOST, "acknowledgements have no payload");
    }
}
