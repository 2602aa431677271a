//! The rate of each data frame, from the controls of its link.

use super::arf::Arf;
use super::minstrel::{Candidate, Choice, Minstrel};
use super::model::Wifi;
use super::params::RateChoice;
use super::rate_control::Sampler;
use lasthop_signals::phy::Format;
use lasthop_units::{Seed, Time};

impl<P: Clone> Wifi<P> {
    /// Builds a sampler for each transmitter on a link with sampled rates.
    pub(super) fn start_samplers(&mut self, seed: Seed) {
        let conditions = self.plan.conditions();
        let sampled = |link: usize| {
            matches!(conditions[link].rate, RateChoice::Minstrel { .. } | RateChoice::Arf | RateChoice::Aarf)
        };
        if !(0..conditions.len()).any(sampled) {
            return;
        }
        let mut samplers: Vec<Option<Sampler>> = (0..self.peers.len()).map(|_| None).collect();
        for (from, port) in self.ports.iter().enumerate() {
            for (slot, &to) in port.receivers.iter().enumerate() {
                let link = self.plan.link(from, usize::from(to));
                if !sampled(link) {
                    continue;
                }
                let control = &conditions[link].rate;
                if matches!(control, RateChoice::Arf | RateChoice::Aarf) {
                    let modes = self.plan.trace(link).iter().map(|step| step.1).collect();
                    let arf = Arf::new(modes, *control == RateChoice::Aarf);
                    samplers[port.first_peer + slot] = Some(Sampler::Arf(arf));
                    continue;
                }
                // That of the slowest rate of the same format.
                let overhead = |format: Format| {
                    let mut modes = self.plan.trace(link).iter().map(|step| &self.plan.modes()[usize::from(step.1)]);
                    let sifs = self.medium.timing.sifs;
                    let lowest = modes.find(|mode| mode.phy.vector().format == format).expect("it has a mode of it");
                    lowest.phy.preamble() + sifs + lowest.block_ack + sifs
                };
                let candidate = |&(_, mode): &(Time, u16)| {
                    let vector = self.plan.modes()[usize::from(mode)].phy.vector();
                    let rate = self.plan.modes()[usize::from(mode)].phy.rate().as_bps() as f64;
                    Candidate { mode, streams: vector.nss, rate, overhead: overhead(vector.format) }
                };
                let candidates: Vec<Candidate> = self.plan.trace(link).iter().map(candidate).collect();
                let stream = seed.stream(&format!("wifi/node{from}/minstrel{to}"));
                samplers[port.first_peer + slot] = Some(Sampler::Minstrel(Box::new(Minstrel::new(candidates, stream))));
            }
        }
        self.samplers = samplers;
    }

    /// The mode that frames from one node to another go out at now, as an index; samples left out.
    pub(super) fn mode(&mut self, from: usize, to: usize, now: Time) -> u16 {
        let link = self.plan.link(from, to);
        match self.plan.conditions()[link].rate {
            RateChoice::Fixed(_) | RateChoice::Trace(_) => self.step(link, now),
            RateChoice::Ideal { .. } => self.ideal(link, now),
            RateChoice::Minstrel { .. } | RateChoice::Arf | RateChoice::Aarf => {
                let peer = self.ports[from].first_peer + self.slot(from, to);
                match &self.samplers[peer] {
                    Some(Sampler::Minstrel(minstrel)) => minstrel.current(),
                    Some(Sampler::Arf(arf)) => arf.current(),
                    None => 0,
                }
            }
        }
    }

    /// How to send the next frame of a session.
    pub(super) fn choose(&mut self, from: usize, slot: usize, session: usize, now: Time) -> Choice {
        let to = usize::from(self.ports[from].receivers[slot]);
        let link = self.plan.link(from, to);
        let mode = match self.plan.conditions()[link].rate {
            RateChoice::Fixed(_) | RateChoice::Trace(_) => self.step(link, now),
            RateChoice::Ideal { .. } => self.ideal(link, now),
            RateChoice::Minstrel { .. } | RateChoice::Arf | RateChoice::Aarf => {
                let unanswered = u32::from(self.sessions[session].unanswered);
                let sampler = self.samplers[self.ports[from].first_peer + slot].as_mut();
                return match sampler.expect("built for every such link") {
                    Sampler::Minstrel(minstrel) => minstrel.choose(now, unanswered),
                    Sampler::Arf(arf) => Choice { mode: arf.current(), probe: false },
                };
            }
        };
        Choice { mode, probe: false }
    }

    /// Tells the sampler of a link, if there is one, what became of a frame.
    pub(super) fn learn(&mut self, now: Time, peer: usize, session: usize, mode: u16, mpdus: u16, acknowledged: u16) {
        let Some(Some(sampler)) = self.samplers.get_mut(peer) else { return };
        let tries = &mut self.sessions[session].unanswered;
        *tries = if acknowledged > 0 { 0 } else { tries.saturating_add(1) };
        match sampler {
            Sampler::Minstrel(minstrel) => minstrel.report(now, mode, u32::from(mpdus), u32::from(acknowledged)),
            Sampler::Arf(arf) => arf.report(acknowledged > 0),
        }
    }

    fn ideal(&mut self, link: usize, now: Time) -> u16 {
        let channel = self.channels[link].as_mut().expect("an ideal control has a link: Plan::check_node");
        channel.best(now, self.plan.trace(link), self.plan.modes())
    }
}
