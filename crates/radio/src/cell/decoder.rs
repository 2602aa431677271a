//! What a station's decoder makes of the control channel: DCIs that it misses, and noise that it takes for one.
//! Source:     Xie, Jamieson 2022 (NG-Scope): a blind decoder tries every RNTI, so that noise passes the check of 16 bits now and then.
//!             Logs of NG-Scope show it: numbers that come once, with redundancy versions 2 and 3 or MCS 29 and above, and up to 44 PRBs.
//! Equations:  each DCI is missed with probability `missed`;   a subframe of a carrier has one false DCI with probability `spurious`
//! Deviations: all fields of a false DCI are independent and uniform, as bits of noise are; it may give more than is left. A station that
//!             misses its own DCI receives its blocks all the same: the decoder stands beside the modem.
//! Checked by: tests::*, tests/integration/cell_decoder.rs

use super::harq::PROCESSES;
use super::mcs::{Mcs, Tables};
use super::numbers::{RNTIS, uniform};
use super::station::DecoderErrors;
use super::tbs;
use lasthop_signals::{Block, Dci, Rnti};
use lasthop_units::{Seed, Stream};
use rand::Rng;

/// The decoder of one station. What it errs in is drawn from streams of its own.
#[derive(Clone, Debug)]
pub(super) struct Decoder {
    errors: DecoderErrors,
    misses: Stream,
    noise: Stream,
}

impl Decoder {
    /// The decoder of the station at `place`.
    pub fn new(errors: DecoderErrors, place: usize, seed: Seed) -> Decoder {
        let stream = |what: &str| seed.stream(&format!("cell/station{place}/decoder/{what}"));
        Decoder { errors, misses: stream("misses"), noise: stream("noise") }
    }

    /// What it sees of a subframe of a carrier with `prb` PRB pairs on which `sent` was.
    pub fn see(&mut self, prb: u8, sent: &[Dci]) -> Vec<Dci> {
        let DecoderErrors { missed, spurious } = self.errors;
        let mut seen = sent.to_vec();
        if missed > 0.0 {
            seen.retain(|_| uniform(&mut self.misses) >= missed);
        }
        if spurious > 0.0 && uniform(&mut self.noise) < spurious {
            seen.push(self.noise_as_dci(prb));
        }
        seen
    }

    fn noise_as_dci(&mut self, prb: u8) -> Dci {
        let rnti = RNTIS.0 + self.below(u64::from(RNTIS.1 - RNTIS.0) + 1) as u16;
        let prb = 1 + self.below(u64::from(prb)) as u8;
        let process = self.below(PROCESSES) as u8;
        let second = self.below(2) == 1;
        let first = self.block(prb);
        let blocks = [Some(first), second.then(|| self.block(prb))];
        Dci { rnti: Rnti(rnti), prb: u16::from(prb), process, blocks }
    }

    fn block(&mut self, prb: u8) -> Block {
        let mcs = self.below(32) as u8;
        let redundancy = self.below(4) as u8;
        let new_data = self.below(2) == 1;
        // Which tables a terminal has is not on the control channel: decoders take those up to 64QAM.
        let known = Mcs::new(mcs, Tables::Qam64);
        let bits = known.and_then(|mcs| tbs::bits(mcs.tbs_index(Tables::Qam64), prb)).unwrap_or(0);
        Block { mcs, redundancy, new_data, bits }
    }

    /// Uniformly one of the first so many numbers. The bias of the remainder is below 1e-14.
    fn below(&mut self, count: u64) -> u64 {
        self.noise.next_u64() % count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn dci(rnti: u16) -> Dci {
        let block = Block { mcs: 5, redundancy: 0, new_data: true, bits: 328 };
        Dci { rnti: Rnti(rnti), prb: 4, process: 0, blocks: [Some(block), None] }
    }

    #[test]
    fn what_it_misses_does_not_depend_on_noise() {
        let sent: Vec<Dci> = (100..110).map(dci).collect();
        let decoder = |missed, spurious| Decoder::new(DecoderErrors { missed, spurious }, 0, Seed(4));
        let (mut quiet, mut noisy, mut right) = (decoder(0.2, 0.0), decoder(0.2, 1.0), decoder(0.0, 0.0));
        for _ in 0..200 {
            let (a, b) = (quiet.see(50, &sent), noisy.see(50, &sent));
            assert_eq!(a, b[..b.len() - 1]);
            assert_eq!(right.see(50, &sent), sent);
        }
    }

    #[test]
    fn noise_has_every_field_that_a_dci_can_have() {
        let mut decoder = Decoder::new(DecoderErrors { missed: 0.0, spurious: 1.0 }, 1, Seed(5));
        let all: Vec<Dci> = (0..4000).flat_map(|_| decoder.see(50, &[])).collect();
        assert_eq!(all.len(), 4000);
        let values = |of: &dyn Fn(&Dci) -> u16| all.iter().map(of).collect::<BTreeSet<u16>>();
        let block = |dci: &Dci| dci.blocks[0].expect("a first block");
        assert_eq!(values(&|dci| dci.prb), (1..=50).collect());
        assert_eq!(values(&|dci| u16::from(block(dci).mcs)), (0..32).collect());
        assert_eq!(values(&|dci| u16::from(block(dci).redundancy)), (0..4).collect());
        assert_eq!(values(&|dci| u16::from(dci.process)), (0..8).collect());
        assert!(all.iter().all(|dci| (0x3d..=0xfff3).contains(&dci.rnti.0)));
        // Of 4000 numbers out of 65 463 some 118 are drawn twice.
        assert!(values(&|dci| dci.rnti.0).len() > 3800);
        assert!(all.iter().all(|dci| dci.is_possible() && (block(dci).bits == 0) == (block(dci).mcs > 28)));
    }
}
