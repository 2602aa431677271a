//! Any bytes as a history of a PBE receiver: subframes of up to 256 carriers, arrivals, round
//! trips and silences.
//!
//! Input: an octet of settings, then events. The first octet of an event says which it is.

use crate::ReceiverLaw;
use crate::pbe::{Params, Receiver, Translation};
use lasthop_signals::{Arrival, Block, CellCapacity, CellSubframe, Dci, Feedback, Rnti, Signal};
use lasthop_units::{Bytes, Span, Time};
use std::collections::BTreeMap;

/// Bits of a PRB pair that a receiver may assume where no block has shown any: CQI 7 of 3GPP TS
/// 36.213, table 7.2.3-1.
const ASSUMED: f64 = 1.4766 * 120.0;
/// Bits a second that are told at least of a cell that is known.
const LEAST: f64 = 1000.0;
/// Subframes a second.
const SUBFRAMES: f64 = 1000.0;

/// What can be read from the input.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn settings(&mut self) -> Option<Params> {
        let [octet] = self.take()?;
        let translation = if octet & 1 == 0 { Translation::OfGoodput } else { Translation::OfPhysical };
        let overhead = f64::from(octet >> 2) / 126.0;
        Some(Params { translation, user_filter: octet & 2 == 0, overhead, ..Params::default() })
    }

    /// `next` is the number that subframes have come to.
    fn subframe(&mut self, next: &mut u64) -> Option<CellSubframe> {
        let [carrier, step, prb, own, count] = self.take()?;
        let prb = u16::from(prb);
        // Mostly the next one, seldom one of the past.
        *next = if step >= 250 { next.saturating_sub(u64::from(step - 249)) } else { *next + u64::from(step / 64) };
        let own = (own < 240).then(|| Rnti(u16::from(own % 4)));
        let mut dcis = Vec::new();
        for _ in 0..count % 6 {
            dcis.push(self.dci()?);
        }
        Some(CellSubframe { carrier: if carrier < 250 { carrier % 3 } else { carrier }, number: *next, prb, own, dcis })
    }

    fn dci(&mut self) -> Option<Dci> {
        let [rnti, prb, process, shape] = self.take()?;
        let prb = u16::from(prb);
        let rnti = if rnti < 250 { Rnti(u16::from(rnti % 8)) } else { Rnti(0xff00 | u16::from(rnti)) };
        let mut blocks = [None; 2];
        for block in &mut blocks[..usize::from(shape % 3)] {
            let [coding, a, b, c, d] = self.take()?;
            // Mostly of a length that a block can have.
            let bits = u32::from_le_bytes([a, b, c, if shape < 200 { 0 } else { d }]) >> (shape % 8);
            *block = Some(Block { mcs: coding >> 3, redundancy: coding >> 1 & 3, new_data: coding & 1 == 0, bits });
        }
        Some(Dci { rnti, prb, process: process % 8, blocks })
    }
}

/// The most that its carriers can carry for a terminal, by what has been shown of them so far.
#[derive(Default)]
struct Limit {
    /// PRB pairs of each carrier.
    carriers: BTreeMap<u8, u16>,
    /// The most bits of a pair.
    densest: f64,
}

impl Limit {
    fn show(&mut self, subframe: &CellSubframe) {
        let prb = self.carriers.entry(subframe.carrier).or_default();
        *prb = (*prb).max(subframe.prb);
        for dci in subframe.dcis.iter().filter(|dci| dci.is_possible()) {
            let bits: f64 = dci.blocks.iter().flatten().map(|block| f64::from(block.bits)).sum();
            self.densest = self.densest.max(bits / f64::from(dci.prb));
        }
    }

    fn check(&self, told: &CellCapacity) {
        let prb: f64 = self.carriers.values().map(|prb| f64::from(*prb)).sum();
        let most = prb * self.densest.max(ASSUMED) * SUBFRAMES;
        for rate in [told.available, told.fair] {
            let rate = rate.as_bps() as f64;
            assert!(rate <= most.max(LEAST) * (1.0 + 1e-9), "{rate} of {most}: {told:?}");
        }
    }
}

/// Shows the history to a receiver. How often it told something.
///
/// # Panics
/// If the receiver does, or tells of more than its carriers can carry, or decides differently
/// when it is asked again.
pub fn play(bytes: &[u8]) -> usize {
    let mut input = Input(bytes);
    let Some(params) = input.settings() else { return 0 };
    let (mut law, mut limit) = (Receiver::new(params), Limit::default());
    let (mut now, mut number, mut count) = (Time::ZERO, 0, 0);
    while let Some([kind]) = input.take() {
        let Some(signal) = event(kind, &mut input, &mut now, &mut number) else { break };
        if let Signal::Subframe(subframe) = &signal {
            limit.show(subframe);
        }
        law.sense(now, &signal);
        let decision = law.decide(now);
        assert_eq!(decision, law.decide(now));
        if let Some(Feedback::Cell(told)) = decision.feedback {
            limit.check(&told);
            count += 1;
        }
    }
    count
}

fn event(kind: u8, input: &mut Input<'_>, now: &mut Time, number: &mut u64) -> Option<Signal> {
    Some(match kind % 8 {
        0..=3 => {
            *now += Span::from_micros(u64::from(kind) * 10);
            Signal::Subframe(input.subframe(number)?)
        }
        4 | 5 => {
            let ([a, b, c, d], [low, high]) = (input.take()?, input.take()?);
            let sent = Time::ZERO + Span::from_micros(u64::from(u32::from_le_bytes([a, b, c, d])));
            let len = Bytes::new(u64::from(u16::from_le_bytes([low, high])));
            Signal::Arrival(Arrival { at: *now, sent: (kind < 240).then_some(sent), len })
        }
        6 => {
            let [a, b, c] = input.take()?;
            Signal::RoundTrip(Span::from_micros(u64::from(u32::from_le_bytes([a, b, c, 0]))))
        }
        7 if kind >= 240 => Signal::Flows(u32::from(input.take::<1>()?[0])),
        _ => {
            let [low, high] = input.take()?;
            *now += Span::from_millis(u64::from(u16::from_le_bytes([low, high])) >> (kind >> 4));
            Signal::Wakeup
        }
    })
}
