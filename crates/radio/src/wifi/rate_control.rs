//! The rate of each data frame: a trace, what carries most at the ratio of the moment, or what a sampler has learnt.
//! Source:     [`super::snr`] for losses, [`super::minstrel`] and [`super::arf`] for the samplers.
//! Equations:  ideal = argmax over modes of rate * probability that an MPDU of 1538 octets arrives
//! Deviations: the ideal control knows the ratio of the block that its frame begins in, without error or delay.
//! Validity:   as `snr`.     Checked by: wifi::tests::*

use super::arf::Arf;
use super::link::Channel;
use super::minstrel::Minstrel;
use super::plan::{Conditions, DataMode, Plan};
use super::snr;
use lasthop_units::{Seed, Time};

/// The MPDU that the ideal control has in mind: 1500 bytes with their headers.
const MPDU: u32 = 1_538;

/// A rate control that learns from what a transmitter sends to one receiver.
#[derive(Clone, Debug)]
pub(super) enum Sampler {
    Minstrel(Box<Minstrel>),
    Arf(Arf),
}

/// The radio conditions of a link at work, if it has any.
pub(super) fn channel(plan: &Plan, link: usize, seed: Seed) -> Option<Box<Channel>> {
    let Conditions { name, node, link, .. } = &plan.conditions()[link];
    let stream = seed.stream(&format!("{name}/fading"));
    Some(Box::new(Channel::new(link.clone()?, plan.phy(*node), plan.modes().len(), stream)))
}

impl Channel {
    /// Logarithm of the probability that a bit of a frame that begins at `at` arrives.
    pub fn ln_success(&mut self, at: Time, mode: u16, modes: &[DataMode]) -> f64 {
        let ratio = self.snr(at);
        let known = &mut self.ln_success[usize::from(mode)];
        if known.is_nan() {
            *known = snr::ln_bit_success(&modes[usize::from(mode)].phy.vector(), ratio);
        }
        *known
    }

    /// The mode that carries most.
    pub fn best(&mut self, at: Time, candidates: &[(Time, u16)], modes: &[DataMode]) -> u16 {
        // Looking at the ratio forgets what belongs to another block.
        self.snr(at);
        if let Some(best) = self.best {
            return best;
        }
        let mut best = (candidates[0].1, 0.0);
        for &(_, mode) in candidates {
            let arrives = snr::success(self.ln_success(at, mode, modes), MPDU);
            let carries = arrives * modes[usize::from(mode)].phy.rate().as_bps() as f64;
            if carries > best.1 {
                best = (mode, carries);
            }
        }
        self.best = Some(best.0);
        best.0
    }
}
