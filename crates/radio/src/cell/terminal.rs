//! What the base station keeps for one terminal.
//! Source:     3GPP TS 36.213 section 7.1.7 (block sizes), 36.321 section 5.3.2 (new data indicator).
//! Equations:  a block fails if a draw is below the probability of its length and of how often it was sent
//! Deviations: the quality of the channel is known at once; real reports come every few subframes and are some old.
//! Checked by: tests/integration/cell.rs

use super::carriers::Carriers;
use super::codewords;
use super::decoder::Decoder;
use super::handover::Course;
use super::harq::{PROCESSES, Sent};
use super::mcs::{Cqi, Mcs, Tables};
use super::numbers::uniform;
use super::rlc::Rlc;
use super::scheduler::{Average, Candidate};
use super::station::{BlockError, Step};
use crate::{Drop, Outbox, Packet};
use lasthop_signals::{Node, Rnti};
use lasthop_units::{Stream, Time};

/// Octets without which no block is built: headers and something to carry, as ns-3 has it.
const LEAST_OCTETS: u32 = 7;

/// A station, or a terminal of the background.
#[derive(Clone, Debug)]
pub(super) struct Terminal<P> {
    /// `None` in the background.
    pub node: Option<Node>,
    pub rnti: Rnti,
    /// What it sees of the control channel, if it decodes that.
    pub decoder: Option<Decoder>,
    pub course: Course,
    pub rlc: Rlc<P>,
    pub carriers: Carriers,
    /// By carrier of the cell.
    pub averages: Vec<Average>,
    channel: Vec<Step>,
    /// The step that holds.
    step: usize,
    tables: Tables,
    /// Layers of each codeword.
    codewords: &'static [u8],
    /// The new data indicators: by carrier of the cell, process and codeword.
    new_data: Vec<[[bool; 2]; PROCESSES as usize]>,
    draws: Stream,
}

/// Of what kind a terminal is.
#[derive(Clone, Debug)]
pub(super) struct Make {
    pub node: Option<Node>,
    pub rnti: Rnti,
    /// What it sees of the control channel, if it decodes that.
    pub decoder: Option<Decoder>,
    pub course: Course,
    pub channel: Vec<Step>,
    pub tables: Tables,
    pub layers: u8,
    pub carriers: Carriers,
    pub draws: Stream,
}

impl<P> Terminal<P> {
    /// A terminal of a cell with so many carriers.
    pub fn new(make: Make, carriers: usize) -> Terminal<P> {
        let Make { node, rnti, decoder, course, channel, tables, layers, carriers: own, draws } = make;
        Terminal {
            node,
            rnti,
            decoder,
            course,
            rlc: Rlc::new(),
            carriers: own,
            averages: vec![Average::new(); carriers],
            channel,
            step: 0,
            tables,
            codewords: codewords::layers_of_codewords(layers),
            new_data: vec![[[false; 2]; PROCESSES as usize]; carriers],
            draws,
        }
    }

    /// Takes a packet into its queue, which holds `limit` octets.
    pub fn queue(&mut self, now: Time, packet: Packet<P>, limit: u64, out: &mut impl Outbox<P>) {
        if let Err(packet) = self.rlc.push(now, packet, limit) {
            out.dropped(now, packet, Drop::QueueFull);
        }
    }

    /// Its channel at `now`, which never goes back.
    fn channel(&mut self, now: Time) -> (Cqi, BlockError) {
        while self.channel.get(self.step + 1).is_some_and(|next| next.at <= now) {
            self.step += 1;
        }
        (self.channel[self.step].cqi, self.channel[self.step].errors)
    }

    /// How it is sent to at `now`; `None` out of range and between cells.
    pub fn mcs(&mut self, now: Time) -> Option<Mcs> {
        if self.course.is_away(now) {
            return None;
        }
        Mcs::for_cqi(self.channel(now).0, self.tables)
    }

    /// What it would be given on a carrier of `prb`, if anything waits and it is in range. `average`: what it had lately.
    pub fn candidate(&mut self, place: usize, now: Time, prb: u8, average: f64) -> Option<Candidate> {
        let mcs = self.mcs(now).filter(|_| self.rlc.waiting() > 0)?;
        let (tables, codewords) = (self.tables, self.codewords);
        let block = |prb, layers: &u8| codewords::bits(mcs, tables, prb, *layers).unwrap_or(0);
        let bits = |prb| codewords.iter().map(|layers| block(prb, layers)).sum::<u32>();
        let most = bits(prb);
        let needs = self.rlc.needs(codewords.len() as u64) * 8;
        let fewest = |enough: &dyn Fn(u8) -> bool| (1..prb).find(|n| enough(*n)).unwrap_or(prb);
        // Every codeword's block must be of use, and the first has the fewest layers.
        let least = fewest(&|n| codewords.first().is_some_and(|layers| block(n, layers) >= 8 * LEAST_OCTETS));
        let wants = if u64::from(most) <= needs { prb } else { fewest(&|n| n >= least && u64::from(bits(n)) >= needs) };
        Some(Candidate { terminal: place as u16, least, wants, metric: f64::from(most) / average })
    }

    /// Fills the codewords of an assignment of `prb` in which nothing is repeated; all empty if nothing waits or fits.
    pub fn fill(&mut self, now: Time, on: (usize, u64), prb: u8, blocks: &mut [Option<Sent>; 2]) {
        let Some(mcs) = self.mcs(now) else { return };
        let (carrier, subframe) = on;
        let indicators = &mut self.new_data[carrier][(subframe % PROCESSES) as usize];
        let codewords = blocks.iter_mut().zip(indicators).zip(self.codewords);
        for ((block, new_data), layers) in codewords.filter(|((block, _), _)| block.is_none()) {
            let Some(bits) = codewords::bits(mcs, self.tables, prb, *layers) else { return };
            let Some(sequence) = self.rlc.fill(now, u64::from(bits / 8)) else { return };
            *new_data = !*new_data;
            *block = Some(Sent { sequence, bits, mcs, tables: self.tables, new_data: *new_data, repeats: 0 });
        }
    }

    /// Whether a block that has just been on the air arrives.
    pub fn decodes_block(&mut self, now: Time, sent: &Sent) -> bool {
        let errors = self.channel(now).1;
        uniform(&mut self.draws) >= errors.probability(sent.bits, sent.repeats)
    }
}
